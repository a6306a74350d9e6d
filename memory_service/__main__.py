"""Run the command line as `python -m memory_service`."""

from memory_service.cli import run

run()
