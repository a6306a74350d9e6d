"""Tests of the adapters, each in an environment that `.ci/run` makes of its lock in `.ci/integrations`."""
