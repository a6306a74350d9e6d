from __future__ import annotations

import pytest

from memory_service.compaction.checkpoint import Checkpoint
from memory_service.compaction.prompts import ANCHORED_HEADINGS
from memory_service.hosts.dialects import host_chars
from memory_service.hosts.hooks.host_records import _rendered_record

REQUEST = "Now print the label of shelf seven."
PINS = [("Never deploy on Fridays.", None)]


@pytest.mark.parametrize("fill", ["the backup runs before the deploy does", "部署之前先备份数据库", "&<>" * 10])
@pytest.mark.parametrize("room", [2_500, 4_000, 9_800])
def test_a_long_summary_keeps_the_beginning_of_every_section(fill: str, room: int) -> None:
    summary = "\n".join(
        f"## {heading}\n" + "\n".join(f"- {number}: {fill}." for number in range(60)) for heading in ANCHORED_HEADINGS
    )
    record = _rendered_record(PINS, Checkpoint(summary=summary, request=REQUEST, request_seq=9), room)
    assert room * 0.8 < host_chars(record) <= room
    assert all(f"## {heading}\n- 0:" in record for heading in ANCHORED_HEADINGS)
    assert REQUEST in record and PINS[0][0] in record and record.rstrip().endswith("[End of checkpoint]")


def test_a_summary_of_one_line_is_cut_too() -> None:
    record = _rendered_record([], Checkpoint(summary="word " * 4_000, request=REQUEST, request_seq=9), 3_000)
    assert 2_000 < host_chars(record) <= 3_000 and REQUEST in record and "[End of checkpoint]" in record
