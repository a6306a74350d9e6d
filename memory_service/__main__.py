"""The command `memory-service`, which is also `python -m memory_service`."""

from __future__ import annotations

import atexit
import os
import sys
import threading

from memory_service._version import require_server


def start() -> None:
    """Run the command line as a process of its own; it ends in one line where it cannot be loaded."""
    try:
        require_server("The command memory-service")
    except ImportError as error:
        sys.exit(f"error: {error}")
    from memory_service.cli.root import main

    try:
        main()
    except SystemExit as end:
        _leave(end)
        raise


def _leave(end: SystemExit) -> None:
    """End the process here, if nothing runs behind it and all of its output has left; else return.

    Python would take every module apart first: a sixth of a second once the service is loaded.
    Source: our measurement; mypy:mypy/util.py, hard_exit
    """
    if not all(thread.daemon or thread is threading.main_thread() for thread in threading.enumerate()):
        return
    atexit._run_exitfuncs()
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except (OSError, ValueError):
        return
    os._exit(end.code if isinstance(end.code, int) else int(end.code is not None))


if __name__ == "__main__":
    start()
