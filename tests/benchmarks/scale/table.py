"""The report as text and as JSON: an aligned table, the ratios that matter below it. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from tests.benchmarks.scale.values import Line, Report

NONE = "–"
_MEGABYTE = 1_000_000
_HEAD = (
    "passages",
    "vectors",
    "system",
    "by",
    "build s",
    "passages/s",
    "disk MB",
    "start s",
    "p50 ms",
    "p99 ms",
    "cpu ms",
    "RSS MB",
    "recall@10",
    "found@10",
    "note",
)
_LEFT = {"vectors", "system", "by", "note"}


def table(lines: Sequence[Line]) -> str:
    """The lines as an aligned table."""
    rows = [_HEAD, *(_cells(line) for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    return "\n".join(_aligned(row, widths) for row in rows)


def markdown(lines: Sequence[Line]) -> str:
    """The same as a Markdown table."""
    rows = [_HEAD, tuple("---" if name in _LEFT else "---:" for name in _HEAD), *(_cells(line) for line in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def said_of(line: Line) -> str:
    """A line in short: its median where it has one, its note where there is one."""
    median = "" if line.p50_ms is None else f"p50 {number(line.p50_ms)} ms"
    said = "; ".join(part for part in (median, line.note) if part)
    return f"{line.passages:,} {line.vectors} {line.title}: {said}"


def ratios(lines: Sequence[Line], own: str = "ours", plain: str = "plain") -> list[str]:
    """How ours stands to the plain design, and its slowest searches to its median.

    Processor time is told beside, as on a busy machine the clock tells of the others too.
    """
    said = []
    for line in lines:
        if line.system != own or line.p50_ms is None or line.p99_ms is None:
            continue
        where = f"{line.passages:,} {line.vectors}"
        said.append(f"{where}: p99 / p50 of {line.title} {line.p99_ms / line.p50_ms:.1f}")
        for left, share in (line.filtered or {}).items():
            said.append(f"{where}: recall@10 of {line.title} where a filter leaves {left} of the days: {share:.3f}")
        if line.resident_bytes and line.base_bytes:
            said.append(
                f"{where}: {(line.resident_bytes - line.base_bytes) / line.passages:.0f} bytes a passage resident"
            )
        for other in lines:
            same = (other.passages, other.vectors) == (line.passages, line.vectors)
            if other.system == plain and same and other.p50_ms is not None:
                times = f"p50 {other.p50_ms / line.p50_ms:.1f}"
                if other.cpu_ms and line.cpu_ms:
                    times += f", processor time {other.cpu_ms / line.cpu_ms:.1f}"
                said.append(f"{where}: {other.title} / {line.title}: {times}")
    return said


def to_json(report: Report) -> str:
    """A report as text that `from_json` reads."""
    return json.dumps(asdict(report), indent=1) + "\n"


def from_json(text: str) -> Report:
    """A report that was written before."""
    parts = json.loads(text)
    lines = tuple(Line(**line) for line in parts["lines"])
    return Report(machine=parts["machine"], versions=parts["versions"], lines=lines)


def _cells(line: Line) -> tuple[str, ...]:
    return (
        f"{line.passages:,}",
        line.vectors,
        line.title,
        line.does,
        number(line.build_seconds),
        number(line.passages_per_second),
        number(line.disk_bytes, _MEGABYTE),
        number(line.start_seconds),
        number(line.p50_ms),
        number(line.p99_ms),
        number(line.cpu_ms),
        number(line.resident_bytes, _MEGABYTE),
        NONE if line.recall is None else f"{line.recall:.3f}",
        NONE if line.found is None else f"{line.found:.2f}",
        line.note,
    )


def number(value: float | None, unit: float = 1.0) -> str:
    """A number with about three figures; a dash for none."""
    if value is None:
        return NONE
    scaled = value / unit
    return f"{scaled:,.0f}" if scaled >= 100 else f"{scaled:.1f}" if scaled >= 10 else f"{scaled:.2f}"


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.ljust(width) if name in _LEFT else cell.rjust(width)
        for name, cell, width in zip(_HEAD, row, widths, strict=True)
    ]
    return "  ".join(cells).rstrip()
