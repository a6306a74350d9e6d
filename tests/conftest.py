"""One way for all tests that hypothesis drives: how long an input takes says nothing on a machine that others use."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")
