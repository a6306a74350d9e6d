"""Owns how a context engine is found by its name: what a program registered, then what packages offer.

Invariants: nothing is loaded before it is asked for by name; an unknown name and an engine that cannot be loaded are
two errors. Packages offer engines as entry points of the group `memory_service.context_engines`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points

from memory_service.engines.base import ContextEngine, EngineInfo, EnginePlace
from memory_service.errors import InvalidRequest, UpstreamFailed

GROUP = "memory_service.context_engines"
DEFAULT = "default"

EngineFactory = Callable[[EnginePlace], ContextEngine]

_registered: dict[str, EngineFactory] = {}
_registering = threading.Lock()


def register(name: str, factory: EngineFactory) -> None:
    """Offer an engine to services that this process opens from now on; the same name again takes the place.

    Raises:
        InvalidRequest: The name is empty, or the service's own.
    """
    if not name or name == DEFAULT:
        raise InvalidRequest(f"A context engine cannot be named {name!r}. Choose another name.")
    with _registering:
        _registered[name] = factory


def unregister(name: str) -> None:
    """Offer it no longer; nothing happens if it was not registered."""
    with _registering:
        _registered.pop(name, None)


def engine_names() -> list[str]:
    """All engines that may be chosen, the default one first."""
    return [DEFAULT, *sorted({*_registered, *(point.name for point in entry_points(group=GROUP))} - {DEFAULT})]


def check_engine(name: str) -> None:
    """Make sure that there is an engine of a name; it is not loaded.

    Raises:
        InvalidRequest: There is none.
    """
    if name != DEFAULT and name not in _registered and _offered(name) is None:
        raise InvalidRequest(
            f"The context engine {name[:80]!r} is unknown. Install the package that offers it, or set context_engine "
            f"to one of {', '.join(engine_names())}."
        )


def load_engine(name: str, place: EnginePlace) -> ContextEngine:
    """Make an engine for a workspace.

    Raises:
        InvalidRequest: There is none of that name.
        UpstreamFailed: It is known, and cannot be loaded or made, or is no engine.
    """
    check_engine(name)
    try:
        engine = _factory(name)(place)
    except Exception as error:
        raise _unloadable(name, f"loading it raised {type(error).__name__}") from error
    missing = [part for part in ("ingest", "assemble", "compact") if not callable(getattr(engine, part, None))]
    if missing or not isinstance(getattr(engine, "info", None), EngineInfo):
        raise _unloadable(name, f"it has no {missing[0] if missing else 'EngineInfo as its info'}") from TypeError(name)
    return engine


def _factory(name: str) -> EngineFactory:
    if name in _registered:
        return _registered[name]
    point = _offered(name)
    if point is None:
        raise LookupError(name)
    factory: EngineFactory = point.load()
    return factory


def _offered(name: str) -> EntryPoint | None:
    return next(iter(entry_points(group=GROUP, name=name)), None)


def _unloadable(name: str, why: str) -> UpstreamFailed:
    return UpstreamFailed(
        f"The context engine {name[:80]!r} is installed and cannot be used: {why}. Mend or reinstall its package, or "
        "set context_engine to default.",
        kind="engine",
    )
