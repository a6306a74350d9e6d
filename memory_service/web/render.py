"""Pages as HTML: the templates, the words of both languages, and the headers that every page has.

Invariants: all text is escaped, by the templates and nowhere else, but for Markdown that `markdown` has rendered; a
page loads nothing from another host, and runs no script but the files beside it, which its policy holds.
"""

from __future__ import annotations

import datetime as dt
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse

from memory_service._version import __version__
from memory_service.web import charts
from memory_service.web.markdown import to_html

Language = Literal["en", "zh"]

LANGUAGE_COOKIE: Final = "page_language"
_CHARTS: Final = {
    "share_bar": charts.share_bar,
    "parts_bar": charts.parts_bar,
    "calendar": charts.calendar,
    "budgets": charts.budgets,
    "budget_top": charts.budget_top,
    "prompt_parts": charts.prompt_parts,
    "prompt_marks": charts.prompt_marks,
}
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Vary": "Accept, Accept-Language, Cookie",
}


def page_language(headers: Headers, cookies: Mapping[str, str]) -> Language:
    """The language of a page: the one that was chosen, else the first that the browser names."""
    language_name = cookies.get(LANGUAGE_COOKIE) or headers.get("accept-language", "")
    return "zh" if language_name.strip().lower().startswith("zh") else "en"


def render(template: str, language: Language, status: int = 200, /, **values: Any) -> HTMLResponse:
    """A page.

    Args:
        template: Name of its template.
        language: The language of its words.
        status: Status of the response.
        values: What the template shows.
    """
    text = _environment(language).get_template(f"{template}.html").render(**values)
    return HTMLResponse(text, status, HEADERS)


@cache
def words(language: Language) -> Mapping[str, str]:
    """The words of a language, by the English ones; none for English."""
    if language == "en":
        return {}
    table: dict[str, str] = tomllib.loads((files(__package__) / "chinese.toml").read_text("utf-8"))
    return table


@cache
def _environment(language: Language) -> Environment:
    environment = Environment(
        loader=PackageLoader("memory_service.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    table = words(language)

    def translate(text: str, /, **values: object) -> str:
        return table.get(text, text).format(**values) if values else table.get(text, text)

    environment.globals.update(t=translate, language=language, version=__version__, ids=id, **_CHARTS)
    environment.filters.update(
        day=_day, moment=_moment, size=_size, part=lambda text: quote(str(text), safe=""), where=_where, md=_markdown
    )
    return environment


def _markdown(text: str, first: int | None = None) -> Markup:
    # `to_html` escapes what is no Markdown.
    return Markup(to_html(text, first))


def _day(value: dt.date | dt.datetime | None) -> str:
    return f"{value:%Y-%m-%d}" if value else ""


def _moment(value: dt.datetime | str | None) -> str:
    if isinstance(value, str):
        try:
            return _moment(dt.datetime.fromisoformat(value))
        except ValueError:
            return value
    return f"{value.astimezone(dt.UTC):%Y-%m-%d %H:%M} UTC" if value else ""


def _size(count: float) -> str:
    for unit in ("B", "KB", "MB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GB"


def _where(path: str) -> str:
    """A path as a part of a URL, with its slashes."""
    return quote(path, safe="/")
