"""Where each setting has its value from, and how that value is shown: never with a secret in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, SecretStr

from indexer.common import lazy_regex
from memory_service.home import PREFIX
from memory_service.schemas.status import SettingOrigin, SettingValue
from memory_service.text.secrets import redact

_TABLE = lazy_regex(r"\s*\[\s*([\w.\s\"'-]+?)\s*\]\s*(?:#.*)?")
_KEY = lazy_regex(r"\s*([\w.\"'-]+)\s*=")
# The part of an address that names a user, and what stands behind its path.
_USER = lazy_regex(r"(?<=://)[^/@\s\"]+@")
_QUERY = lazy_regex(r"(?<=\w)\?[^\s\"]+")
_HIDDEN = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingOrigins:
    """The places of the settings of one process.

    Attributes:
        file: The line of each setting of the file, by its whole name; 0 where the line is not known.
        file_name: The path of that file.
        environment: The names that variables set.
        arguments: The names that arguments set.
    """

    # Settings of the same values are equal, wherever these are from.
    file: Mapping[str, int] = field(default_factory=dict, compare=False)
    file_name: str = field(default="", compare=False)
    environment: frozenset[str] = field(default=frozenset(), compare=False)
    arguments: frozenset[str] = field(default=frozenset(), compare=False)

    def origin(self, name: str, *, is_set: bool) -> tuple[SettingOrigin, str]:
        """Where a setting has its value from, and the place there."""
        if name in self.arguments:
            return "argument", ""
        if name in self.environment:
            return "environment", PREFIX + name.upper().replace(".", "__")
        if name in self.file:
            line = self.file[name]
            return "file", f"{self.file_name}:{line}" if line else self.file_name
        # Settings that were not loaded were given by a program.
        return ("argument" if is_set and not self.file_name else "default"), ""


def setting_names(values: Mapping[str, Any], tables: Mapping[str, type[BaseModel]]) -> Iterator[str]:
    """The whole names of the settings in values as the file or the environment has them."""
    for name, value in values.items():
        if name in tables and isinstance(value, dict):
            yield from (f"{name}.{inner}" for inner in value)
        else:
            yield name


def lines_of_names(text: str, names: Iterator[str]) -> dict[str, int]:
    """The line of each name in a settings file; 0 where it is written in another way than most people do."""
    lines, table = dict[str, int](), ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := _TABLE.fullmatch(line):
            table = _plain(header[1])
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            name = _plain(key[1])
            lines.setdefault(f"{table}.{name}" if table else name, number)
    # A value of an inline table has the line of that table.
    return {name: lines.get(name, lines.get(name.partition(".")[0], 0)) for name in names}


def _plain(name: str) -> str:
    return "".join(mark for mark in name if mark not in " \"'")


def shown_settings(settings: BaseModel, origins: SettingOrigins) -> list[SettingValue]:
    """All settings in their order, each with its value as it may be shown, and where that is from."""
    return list(_iter_values(settings, origins, ""))


def _iter_values(settings: BaseModel, origins: SettingOrigins, prefix: str) -> Iterator[SettingValue]:
    for name, field_info in type(settings).model_fields.items():
        value, whole_name = getattr(settings, name), f"{prefix}{name}"
        if isinstance(value, BaseModel):
            yield from _iter_values(value, origins, f"{whole_name}.")
            continue
        origin, place = origins.origin(whole_name, is_set=not prefix and name in settings.model_fields_set)
        yield SettingValue(
            name=whole_name,
            value=_text(whole_name, value),
            origin=origin,
            place=place,
            description=field_info.description or "",
        )


def _text(name: str, value: object) -> str:
    """A value as text: of keys only whose they are, of what is secret only that it is there."""
    if isinstance(value, SecretStr):
        return _HIDDEN if value.get_secret_value() else ""
    if name == "api_keys" and isinstance(value, dict):
        return ", ".join(f"{_HIDDEN}:{workspace}" for workspace in value.values())
    if not value and not isinstance(value, (bool, int, float)):
        return ""
    plain_value = json.loads(json.dumps(value, default=_plain_value))
    text = plain_value if isinstance(plain_value, str) else json.dumps(plain_value, ensure_ascii=False)
    return redact(_QUERY.sub(f"?{_HIDDEN}", _USER.sub(f"{_HIDDEN}@", text)))


def _plain_value(value: object) -> object:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else str(value)
