"""Serving a host by standard input and output, for as long as it holds them open.

Invariants: the protocol's package is imported beside the first answers, and the service opened behind them: they need
neither.
"""

from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from memory_service.errors import Forbidden, Unauthorized
from memory_service.mcp import tools
from memory_service.mcp.opening import answer_first
from memory_service.service import ALL_RIGHTS, without_collector

if TYPE_CHECKING:
    from memory_service.service import Grant, MemoryService

_log = logging.getLogger("memory_service.mcp")


class LazyService:
    """The service on a home, opened when it is first needed.

    Args:
        home: The folder; None for the one of the settings.
    """

    def __init__(self, home: Path | None) -> None:
        self._home = home
        self._lock = threading.Lock()
        self._service: MemoryService | None = None
        self._warming: threading.Thread | None = None

    def get(self) -> MemoryService:
        """The open service.

        Raises:
            MemoryServiceError: A setting cannot be used.
        """
        with self._lock:
            if self._service is None:
                from memory_service.service import MemoryService

                self._service = MemoryService.open(self._home)
            return self._service

    def warm_up(self) -> None:
        """Open it in the background, and load its models; returns at once."""
        if self._warming is None:
            self._warming = threading.Thread(target=self._load, name="warm-up", daemon=True)
            self._warming.start()

    def close(self) -> None:
        """Give back all files."""
        with self._lock:
            if self._service is not None:
                self._service.close()

    def _load(self) -> None:
        try:
            self.get().warm_up()
        except Exception as error:
            # A call that needs it meets the same, and tells it to the model.
            _log.warning("%s", error)


def serve_stdio(home: Path | None, workspace: str, api_key: str = "") -> None:
    """Serve a workspace of a home to the host that started this process, until its input ends.

    Args:
        home: The folder; None for the one of the settings.
        workspace: The workspace.
        api_key: The key whose rights the host has; without one those of the files' owner, who started it.
    """
    lazy = LazyService(home)
    package = threading.Thread(target=_load_package, name="protocol", daemon=True)
    package.start()
    try:
        history = answer_first(sys.stdin.buffer, sys.stdout.buffer, lazy.warm_up)
        if history.ended:
            return
        package.join()
        from memory_service.mcp.protocol import speak_stdio

        speak_stdio(
            lambda: _place(lazy.get(), workspace, api_key),
            lazy.warm_up,
            history.lines,
            history.answered,
        )
    finally:
        lazy.close()


def _place(service: MemoryService, workspace: str, api_key: str) -> tools.CallPlace:
    """The memory that a call is for, with the rights of a key; looked up at each call, as it may be withdrawn.

    Raises:
        Unauthorized: The key is none of this home.
        Forbidden: It is for another workspace.
    """
    grant: Grant | None = ALL_RIGHTS
    if api_key and service.access.is_required():
        grant = service.access.grant(api_key)
    if grant is None:
        raise Unauthorized("The key of the tools is none of this home. Start `memory-service mcp` with another one.")
    if not grant.allows(workspace):
        raise Forbidden("The key is not for this workspace. Use a key of it, or one for '*'.")
    return tools.CallPlace(service=service, workspace=workspace, grant=grant)


def _load_package() -> None:
    with without_collector():
        import memory_service.mcp.protocol  # noqa: F401
