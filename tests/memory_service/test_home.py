"""Messages of what is missing or went wrong, for those who may know where a home lies and those who may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_service.errors import MemoryServiceError, NotFound, StorageFailed
from memory_service.home import SearchedPlace

HOME = Path("/srv/memories")


def told(
    error: MemoryServiceError,
    *,
    workspace: str = "shop",
    shows_home: bool = False,
    home: Path = HOME,
    place: str = "",
) -> str:
    searched = SearchedPlace(home=home, place=place or str(home), workspace=workspace, shows_home=shows_home)
    return searched.error_message(error)


def test_who_may_know_the_home_is_told_it_once() -> None:
    place = " It was looked for in the workspace shop of /srv/memories."
    assert told(NotFound("There is no file a."), shows_home=True) == f"There is no file a.{place}"
    named = "There is no workspace shop in the home /srv/memories."
    assert told(NotFound(named), shows_home=True) == named
    assert told(StorageFailed("The disk is full."), shows_home=True) == "The disk is full."


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("The home /srv/memories is full.", "The home of this server is full."),
        ("the shop of the home /srv/memories failed", "the shop of the home of this server failed"),
        ("'/srv/memories/shop/memory/a.md' is a link.", "'shop/memory/a.md' is a link."),
        ("/srv/memories: no space", "the home of this server: no space"),
        ("in /srv/memories-of-others", "in /srv/memories-of-others"),
        ("in /mnt/srv/memories.", "in /mnt/srv/memories."),
    ],
)
def test_who_may_not_is_told_names_within_it(message: str, shown: str) -> None:
    assert told(StorageFailed(message)) == shown


def test_where_the_database_of_a_home_is_stays_hidden_too() -> None:
    place = "db.shop.example:5432/memories"
    named = f"There is no workspace shop in the home {place}."
    assert told(NotFound(named), place=place).startswith("There is no workspace shop in the home of this server.")
    failed = StorageFailed(f"The database {place} failed: it is full.")
    assert told(failed, place=place) == "The database of this server failed: it is full."
    assert told(NotFound(named), place=place, shows_home=True) == named
    missing = told(NotFound("There is no file a."), place=place, shows_home=True)
    assert missing == f"There is no file a. It was looked for in the workspace shop of {place}."


@pytest.mark.parametrize("home", [Path("/"), Path(".")])
def test_a_home_with_a_short_name_garbles_no_message(home: Path) -> None:
    message = "The path memory/a.md ends here. Use /docs."
    assert told(StorageFailed(message), home=home) == message


def test_a_request_without_a_workspace_was_answered_from_none() -> None:
    assert told(NotFound("There is no host x."), workspace="", shows_home=True) == "There is no host x."
