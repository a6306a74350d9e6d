"""Pictures as SVG, written by the server: bars of a sum, a calendar, the budget of prompts over time.

Invariants: what a picture shows is told in words, too, in its title or in the table beside it; colours are classes of
the style sheet, which has them for light and dark.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from html import escape

from markupsafe import Markup

from memory_service.schemas.compaction import PromptMeasure

_CELL = 13
_DAYS = 7
PROMPT_PARTS = ("system", "tools", "pins", "summary", "memory", "tail", "free")


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
            f'<rect class="part{number % 7}" x="{left:.2f}" width="{width:.2f}" height="8">'
            f"<title>{escape(name)}: {value:.3f}</title></rect>"
        )
        left += width
    return _picture(100, 8, label, "".join(rectangles))


def calendar(
    days: Mapping[dt.date, int], until: dt.date, weeks: int, label: str, links: Mapping[dt.date, str]
) -> Markup:
    """A calendar of weeks as columns, each day the darker the more there is of it, and a link where there is anything.

    Args:
        days: How much there is of each day.
        until: The last day.
        weeks: How many weeks.
        label: What it shows, in words.
        links: Addresses of the days that have one.
    """
    first = until - dt.timedelta(days=until.weekday() + _DAYS * (weeks - 1))
    most = max(days.values(), default=1)
    cells = list[str]()
    for number in range((until - first).days + 1):
        day = first + dt.timedelta(days=number)
        count = days.get(day, 0)
        shade = 0 if not count else 1 + min(3, 4 * count // (most + 1))
        left, top = _CELL * (number // _DAYS), _CELL * (number % _DAYS + 1)
        if day.day == 1:
            cells.append(f'<text x="{left}" y="{_CELL - 4}">{day:%m}</text>')
        place = f'x="{left}" y="{top}"'
        cell = (
            f'<rect class="shade{shade}" {place} width="{_CELL - 2}" height="{_CELL - 2}" rx="2">'
            f"<title>{day}: {count}</title></rect>"
        )
        cells.append(f'<a href="{escape(links[day])}">{cell}</a>' if day in links else cell)
    return _picture(_CELL * weeks, _CELL * (_DAYS + 1), label, "".join(cells), group=True)


def budgets(prompts: Sequence[PromptMeasure], label: str) -> Markup:
    """Prompts over time, one column each: their parts from the first to the last, and what is free of the window.

    A line across a column is the end of the prefix that a provider's cache could hold; a line between two columns is a
    compaction, a dot above one a flush. Where prompts leave most of the window free, the picture ends above them.
    """
    top_tokens, height, width, band = budget_top(prompts), 120, 1000, 8
    column = min(60.0, width / max(1, len(prompts)))
    shapes, before = list[str](), None
    for number, prompt in enumerate(prompts):
        left, top = column * number, float(height)
        for kind, (part, tokens) in enumerate(prompt_parts(prompt).items()):
            size = min(height * tokens / top_tokens, top)
            top -= size
            if tokens:
                shapes.append(
                    f'<rect class="part{kind}" x="{left:.1f}" y="{band + top:.2f}" width="{column * 0.86:.1f}" '
                    f'height="{size:.2f}"><title>{number + 1} · {escape(part)}: {tokens}</title></rect>'
                )
        cached = band + height - min(height * prompt.cached_prefix_tokens / top_tokens, height)
        shapes.append(
            f'<rect class="cached" x="{left:.1f}" y="{cached - 1:.2f}" width="{column * 0.86:.1f}" height="2"/>'
        )
        is_compacted, is_flushed = prompt_marks(before, prompt)
        if is_compacted:
            shapes.append(
                f'<rect class="compacted" x="{max(left - column * 0.1, 0):.1f}" width="2" height="{height + band}"/>'
            )
        if is_flushed:
            shapes.append(f'<rect class="flushed" x="{left:.1f}" width="{column * 0.86:.1f}" height="{band - 3}"/>')
        before = prompt
    return _picture(width, height + band, label, "".join(shapes), wide=True)


def budget_top(prompts: Sequence[PromptMeasure]) -> int:
    """Tokens at the upper edge of the picture of some prompts."""
    window = max((prompt.window for prompt in prompts), default=1)
    most = max((prompt.window - prompt.free for prompt in prompts), default=1)
    return max(1, window if most * 4 >= window else most * 4 // 3)


def prompt_parts(prompt: PromptMeasure) -> dict[str, int]:
    """The parts of a prompt and their tokens, in the order of the prompt; what is free stands last."""
    return {name: getattr(prompt, name) for name in PROMPT_PARTS}


def prompt_marks(before: PromptMeasure | None, prompt: PromptMeasure) -> tuple[bool, bool]:
    """True for what came before a prompt and behind the one before it: a compaction, and a flush."""
    compactions, flushed_to = (before.compactions, before.flushed_to) if before else (0, 0)
    return prompt.compactions > compactions, prompt.flushed_to > flushed_to


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
