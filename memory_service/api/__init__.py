"""The HTTP API: a thin door to `memory_service.service`."""

from memory_service.api.app import create_app

__all__ = ["create_app"]
