"""The version, and which of the two wheels is installed here: the server's, which has all, or the client's.

Importing this looks at nothing but the version of Python; the functions look at the folders of the libraries.
"""

from __future__ import annotations

import sys
from pathlib import Path

__version__ = "0.1.0"

if sys.version_info < (3, 11):  # noqa: UP036 (where it is run without being installed)
    raise ImportError(
        f"memory-service {__version__} needs Python 3.11 or later, and this is {sys.version.split()[0]}. "
        "Make the environment with a newer Python."
    )

_HERE = Path(__file__).resolve().parent


def distribution() -> str:
    """The name of the package that is installed."""
    return "memory-service" if (_HERE / "service" / "facade.py").is_file() else "memory-service-client"


def require_server(part: str) -> None:
    """Check that a part of the server can be imported here.

    Args:
        part: Its name, for the message.

    Raises:
        ImportError: The client alone is installed, or the name of one of our libraries is somebody else's.
    """
    if distribution() != "memory-service":
        raise ImportError(
            f"{part} is part of the server, and only memory-service-client is installed here. "
            "Install the server with: pip install memory-service (in a checkout: pip install .)",
            name="memory_service",
        )
    require_indexer()


def require_indexer() -> None:
    """Check that the library `indexer` is the one that came with this package.

    Raises:
        ImportError: A module of that name stands before it.
    """
    from importlib.util import find_spec

    try:
        spec = find_spec("indexer")
    except ValueError:  # a module that a program put there by itself
        spec = None
    origin = Path(spec.origin).resolve() if spec and spec.origin else None
    if origin != _HERE.parent / "indexer" / "__init__.py":
        raise ImportError(
            f"The name 'indexer' belongs to {origin or 'a module without a file'}, and memory-service needs its own "
            f"library of that name in {_HERE.parent}. Rename the module, or start the program from another folder.",
            name="indexer",
        )
