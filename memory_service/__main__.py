"""The command `memory-service`, which is also `python -m memory_service`."""

from __future__ import annotations

import sys

from memory_service._version import require_server


def start() -> None:
    """Run the command line as a process of its own; it ends in one line where it cannot be loaded."""
    try:
        require_server("The command memory-service")
    except ImportError as error:
        sys.exit(f"error: {error}")
    from memory_service.cli import run

    run()


if __name__ == "__main__":
    start()
