"""Pictures as SVG, written by the server: bars of a score, a calendar, the budget of prompts over time.

Invariants: what a picture shows is told in words, too, in its title or in the table beside it; colours are classes of
the style sheet, which has them for light and dark.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from html import escape

from markupsafe import Markup

_CELL = 13
_DAYS = 7
_PARTS = ("system", "memory", "summary", "tail", "free")


def share_bar(share: float, label: str) -> Markup:
    """A bar of a share from 0 to 1, with what it says as its name."""
    width = round(100 * min(max(share, 0.0), 1.0), 1)
    return _picture(
        100, 8, label, f'<rect class="track" width="100" height="8"/><rect class="part0" width="{width}" height="8"/>'
    )


def parts_bar(parts: Mapping[str, float], label: str) -> Markup:
    """The parts of a sum as one bar."""
    total = sum(value for value in parts.values() if value > 0) or 1.0
    rectangles, left = list[str](), 0.0
    for number, (name, value) in enumerate(parts.items()):
        if value <= 0:
            continue
        width = 100 * value / total
        rectangles.append(
            f'<rect class="part{number % 6}" x="{left:.2f}" width="{width:.2f}" height="8">'
            f"<title>{escape(name)}: {value:.3f}</title></rect>"
        )
        left += width
    return _picture(100, 8, label, "".join(rectangles))


def calendar(days: Mapping[dt.date, int], until: dt.date, weeks: int, label: str, link: str) -> Markup:
    """A calendar of weeks as columns, each day the darker the more there is of it, and a link where there is anything.

    Args:
        days: How much there is of each day.
        until: The last day.
        weeks: How many weeks.
        label: What it shows, in words.
        link: Address of a day, with `{day}` for it.
    """
    first = until - dt.timedelta(days=until.weekday() + _DAYS * (weeks - 1))
    most = max(days.values(), default=1)
    cells = list[str]()
    for number in range((until - first).days + 1):
        day = first + dt.timedelta(days=number)
        count = days.get(day, 0)
        shade = 0 if not count else 1 + min(3, 4 * count // (most + 1))
        place = f'x="{_CELL * (number // _DAYS)}" y="{_CELL * (number % _DAYS)}"'
        cell = (
            f'<rect class="shade{shade}" {place} width="{_CELL - 2}" height="{_CELL - 2}" rx="2">'
            f"<title>{day}: {count}</title></rect>"
        )
        cells.append(f'<a href="{escape(link.format(day=day))}">{cell}</a>' if count else cell)
    return _picture(_CELL * weeks, _CELL * _DAYS, label, "".join(cells), group=True)


def budgets(prompts: Sequence[Mapping[str, int]], label: str) -> Markup:
    """The parts of prompts, one column each, in the order of `_PARTS`; what is free of the window stands on top."""
    height, width = 120, 1000
    column = min(40.0, width / max(1, len(prompts)))
    shapes = list[str]()
    for number, prompt in enumerate(prompts):
        window = max(1, sum(prompt.get(part, 0) for part in _PARTS))
        top = float(height)
        for kind, part in enumerate(_PARTS):
            size = height * prompt.get(part, 0) / window
            top -= size
            shapes.append(
                f'<rect class="part{kind}" x="{column * number:.1f}" y="{top:.2f}" width="{column * 0.9:.1f}" '
                f'height="{size:.2f}"><title>{number + 1} · {part}: {prompt.get(part, 0)}</title></rect>'
            )
    return _picture(width, height, label, "".join(shapes), wide=True)


def _picture(width: int, height: int, label: str, inside: str, *, wide: bool = False, group: bool = False) -> Markup:
    name = escape(label)
    stretch = ' preserveAspectRatio="none"' if wide else ""
    # A picture with links in it is a group, so that they can be reached.
    role = "group" if group else "img"
    # All that comes from outside was escaped above.
    return Markup(
        f'<svg class="chart" role="{role}" aria-label="{name}" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}"{stretch}>{inside}</svg>'
    )
