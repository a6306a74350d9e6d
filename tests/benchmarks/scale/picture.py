"""The picture of a report: p50 by size and system, with p99 as whiskers, as one SVG file. Pure but for `main`.

`python -m tests.benchmarks.scale.picture scale.json [--svg tests/benchmarks/scale.svg]`

Invariants: no script, no font and no address outside the file; readable on light and on dark ground.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from tests.benchmarks.scale.table import from_json, number
from tests.benchmarks.scale.values import Line, Made, Report

WIDTH, HEIGHT = 800, 476
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 566, 74, 400
_LABEL_GAP = 33
_DODGE = 5
_NOTE_GAP = 15
# Of middle lightness, so that each stands out on white and on black; ours comes first.
_COLOURS = ("#e8590c", "#1c7ed6", "#2f9e44", "#ae3ec9", "#0c8599", "#b08900", "#868e96", "#e64980")
_STYLE = """
svg{color:#1f2328;font:13px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
@media(prefers-color-scheme:dark){svg{color:#e6edf3}}
text{fill:currentColor}.h{font-size:17px;font-weight:600}.s{font-size:11.5px;opacity:.72}.o{font-weight:700}
.g{stroke:currentColor;opacity:.16}.f{stroke:currentColor;opacity:.06}.a{stroke:currentColor;opacity:.45}
.l{fill:none;stroke-width:1.8}.l.o{stroke-width:3.4}.w{stroke-width:1.2;opacity:.6}.d{stroke-dasharray:1 3;opacity:.7}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A system at a size, in the units of the axes."""

    passages: int
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A system's line: its points by size, and why it has no more of them."""

    title: str
    does: str
    points: tuple[Point, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The axes: decades of passages and of milliseconds that fill the field."""

    first_size: int
    last_size: int
    lowest_ms: float
    highest_ms: float

    def x(self, passages: float) -> float:
        """Where a size stands."""
        return _place(passages, self.first_size, self.last_size, _LEFT + 34, _RIGHT - 34)

    def y(self, milliseconds: float) -> float:
        """Where a time stands."""
        return _place(milliseconds, self.lowest_ms, self.highest_ms, _BOTTOM, _TOP)


def series_of(lines: Sequence[Line], made: Made = "clustered") -> list[Series]:
    """The systems of a report, in its order."""
    wanted = [line for line in lines if line.vectors == made]
    return [
        _series([line for line in wanted if line.system == name])
        for name in dict.fromkeys(line.system for line in wanted)
    ]


def _series(lines: Sequence[Line]) -> Series:
    points, missing = [], []
    for line in sorted(lines, key=lambda line: line.passages):
        if line.p50_ms is None or line.p99_ms is None:
            missing.append(f"{line.title}, {size_text(line.passages)}: {line.note or 'not measured'}")
        else:
            points.append(Point(passages=line.passages, p50_ms=line.p50_ms, p99_ms=line.p99_ms))
    return Series(title=lines[0].title, does=lines[0].does, points=tuple(points), missing=tuple(missing))


def frame_of(series: Sequence[Series]) -> Frame:
    """Axes that hold all points, from decade to decade in time."""
    points = [point for one in series for point in one.points]
    if not points:
        raise ValueError("The report has no times to draw. Run the benchmark with a system that is installed.")
    low = min(point.p50_ms for point in points)
    high = max(point.p99_ms for point in points)
    return Frame(
        first_size=min(point.passages for point in points),
        last_size=max(point.passages for point in points),
        lowest_ms=10.0 ** math.floor(math.log10(low)),
        highest_ms=10.0 ** math.ceil(math.log10(high)),
    )


def picture(report: Report) -> str:
    """The report as SVG."""
    series = series_of(report.lines)
    frame = frame_of(series)
    notes = [note for one in series for note in one.missing]
    height = HEIGHT + _NOTE_GAP * len(notes)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="t">',
        f"<style>{_STYLE}</style>",
        '<title id="t">Time of a search by number of passages, for each system: median and 99th percentile</title>',
        '<text class="h" x="20" y="30">Time of a search</text>',
        '<text class="s" x="20" y="50">median, whiskers to the 99th percentile; embedding of the question excluded; '
        "both axes logarithmic</text>",
        *_axes(frame, series),
        *_curves(frame, series),
        *(_small(20, HEIGHT - 18 + _NOTE_GAP * (i + 1), note) for i, note in enumerate(notes)),
        _small(20, HEIGHT - 18, f"{report.machine}; 384 dimensions, one question at a time"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def spread(wanted: Sequence[float], gap: float, lowest: float, highest: float) -> list[float]:
    """Places for labels as near as can be to where they should be, in the same order, no two nearer than the gap.

    Too many for the room come as near as they must.
    """
    if not wanted:
        return []
    gap = min(gap, (highest - lowest) / max(1, len(wanted) - 1))
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    # Without the gaps before it, each only has to stand no higher than the next: those that do not share their mean.
    blocks: list[tuple[float, int]] = []
    for rank, i in enumerate(order):
        mean, size = wanted[i] - rank * gap, 1
        while blocks and blocks[-1][0] > mean:
            before, many = blocks.pop()
            mean, size = (before * many + mean * size) / (many + size), many + size
        blocks.append((mean, size))
    bare = [min(max(mean, lowest), highest - gap * (len(wanted) - 1)) for mean, size in blocks for _ in range(size)]
    placed = {i: place + rank * gap for rank, (i, place) in enumerate(zip(order, bare, strict=True))}
    return [placed[i] for i in range(len(wanted))]


def size_text(passages: int) -> str:
    """1000 as "1k", 1000000 as "1M"."""
    if passages >= 1_000_000:
        return f"{passages / 1_000_000:g}M"
    return f"{passages / 1000:g}k" if passages >= 1000 else str(passages)


def time_text(milliseconds: float) -> str:
    """A time with its unit."""
    return f"{milliseconds / 1000:g} s" if milliseconds >= 1000 else f"{milliseconds:g} ms"


def _place(value: float, low: float, high: float, start: float, end: float) -> float:
    if low == high:
        return (start + end) / 2
    return start + (math.log10(value) - math.log10(low)) / (math.log10(high) - math.log10(low)) * (end - start)


def _axes(frame: Frame, series: Sequence[Series]) -> Iterator[str]:
    for decade in range(round(math.log10(frame.lowest_ms)), round(math.log10(frame.highest_ms)) + 1):
        y = frame.y(10.0**decade)
        yield _straight("g", _LEFT, y, _RIGHT, y)
        yield f'<text class="s" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{time_text(10.0**decade)}</text>'
        for step in range(2, 10):
            if 10.0**decade * step < frame.highest_ms:
                yield _straight("f", _LEFT, frame.y(10.0**decade * step), _RIGHT, frame.y(10.0**decade * step))
    yield _straight("a", _LEFT, _BOTTOM, _RIGHT, _BOTTOM)
    for size in sorted({point.passages for one in series for point in one.points}):
        x = frame.x(size)
        yield _straight("a", x, _BOTTOM, x, _BOTTOM + 5)
        yield f'<text x="{x:.1f}" y="{_BOTTOM + 21}" text-anchor="middle">{size_text(size)}</text>'
    yield f'<text class="s" x="{(_LEFT + _RIGHT) / 2}" y="{_BOTTOM + 36}" text-anchor="middle">passages</text>'


def _curves(frame: Frame, series: Sequence[Series]) -> Iterator[str]:
    drawn = [(i, one) for i, one in enumerate(series) if one.points]
    places = spread([frame.y(one.points[-1].p50_ms) for _, one in drawn], _LABEL_GAP, _TOP + 6, _BOTTOM - 14)
    # The first goes on top of the others.
    for (i, one), place in reversed(list(zip(drawn, places, strict=True))):
        yield from _curve(frame, one, place, number_in_order=i, count=len(series))


def _curve(frame: Frame, one: Series, label_y: float, *, number_in_order: int, count: int) -> Iterator[str]:
    own = " o" if number_in_order == 0 else ""
    colour = _COLOURS[number_in_order % len(_COLOURS)]
    aside = (number_in_order - (count - 1) / 2) * _DODGE
    places = [(frame.x(p.passages) + aside, frame.y(p.p50_ms), frame.y(p.p99_ms)) for p in one.points]
    yield f'<g stroke="{colour}">'
    for x, middle, top in places:
        yield f'<path class="w" fill="none" d="M{x:.1f} {middle:.1f}V{top:.1f}m-3 0h6"/>'
    yield f'<polyline class="l{own}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)}"/>'
    x, y, _ = places[-1]
    yield _straight("d", x + 6, y, _RIGHT + 10, label_y)
    yield "</g>"
    for x, y, _ in places:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{4.5 if own else 3.2}" fill="{colour}"/>'
    yield f'<circle cx="{_RIGHT + 12}" cy="{label_y:.1f}" r="3.5" fill="{colour}"/>'
    last = one.points[-1]
    times = f"{number(last.p50_ms)} ms at {size_text(last.passages)}, {one.does}"
    yield f'<text class="n{own}" x="{_RIGHT + 20}" y="{label_y + 4:.1f}">{escape(one.title)}</text>'
    yield _small(_RIGHT + 20, label_y + 18, times)


def _straight(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path class="{kind}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def _small(x: float, y: float, text: str) -> str:
    return f'<text class="s" x="{x:.0f}" y="{y:.1f}">{escape(text)}</text>'


def main() -> None:
    """Draw a report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("--svg", type=Path, default=Path(__file__).parents[1] / "scale.svg")
    given = parser.parse_args()
    given.svg.write_text(picture(from_json(given.report.read_text("utf-8"))), "utf-8")
    print(given.svg)


if __name__ == "__main__":
    main()
