"""The README's way in the environment of the tests; `.ci/run` goes it in a fresh clone, with all that it installs.

The demo is left out: `.ci/run` types it there, and `tests/memory_service/cli/test_demo.py` looks at its story.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.campaigns.newcomer import Step, Stumble, arriving
from tests.pages import ROOT, blocks
from tests.test_readme import SERVER, printed_by

BIN = Path(sys.executable).parent

pytestmark = [
    pytest.mark.skipif(not (BIN / "memory-service").exists(), reason="the package is not installed as a command"),
    pytest.mark.skipif(not (shutil.which("bash") and shutil.which("curl")), reason="bash and curl type the blocks"),
]


def walk(clone: Path, page: str = "README.md") -> list[Step]:
    with arriving(clone, BIN, page, demo=False) as newcomer:
        return list(newcomer.steps())


def walk_ours(clone: Path, page: str) -> list[Step]:
    """Walk one of our pages, whose blocks all print what they must."""
    shutil.copy2(ROOT / page, clone)
    steps = walk(clone, Path(page).name)
    assert [step.text for step in steps if step.text != SERVER and printed_by(step.text) not in step.printed] == []
    return steps


@pytest.mark.timeout(600)
def test_every_block_works_in_its_order_and_says_nothing_unasked(tmp_path: Path) -> None:
    steps = walk_ours(tmp_path, "README.md")
    typed = [text for language, text in blocks("README.md") if language in ("sh", "bash", "python")]
    assert [step.text for step in steps] == [text for text in typed if "pytest" not in text and "demo" not in text]
    told = ("memory-service search", "chat(user", "curl")
    found, chat, answer = (next(step.printed for step in steps if word in step.text) for word in told)
    # Its examples are its best case: what is asked for comes first, and nobody is told of another one's matters.
    assert re.search(r"^1\. memory/.*#L5  relevant  ", found, re.MULTILINE)
    assert json.loads(answer)["results"][0]["text"].startswith("Deploys go out on Tuesdays")
    assert chat.splitlines()[-4:] == [
        "tuesday  lena: I'd like to order a cactus.",
        "        shop: To Graz, then.",
        "tuesday  tom: I'd like to order a cactus.",
        "        shop: Gladly. Where shall we send it?",
    ]


@pytest.mark.timeout(600)
def test_the_chinese_page_works_likewise(tmp_path: Path) -> None:
    steps = walk_ours(tmp_path, "docs/zh.md")
    found, chat = (step.printed for step in steps if "memory-service search" in step.text or "chat(" in step.text)
    assert re.search(r"^1\. memory/.*#L5  (?:relevant|likely)  ", found, re.MULTILINE)
    assert chat.splitlines()[-3:] == [
        "        花店：好的，寄到成都。",
        "tuesday  laowang：请寄到我的收货地址。",
        "        花店：好的，寄到哪里？",
    ]


@pytest.mark.parametrize(
    ("block", "why"),
    [
        ("```bash\nfalse\n```\n", "ended with 1"),
        ("```bash\necho 'a warning' >&2\n```\n", "a warning"),
        ('```bash\necho \'{"degraded": ["vector: no"]}\'\n```\n', "vector: no"),
        ("```python\nprint(unknown)\n```\n", "NameError"),
    ],
)
def test_a_step_that_does_not_go_as_promised_is_a_stumble(tmp_path: Path, block: str, why: str) -> None:
    (tmp_path / "README.md").write_text(f"Activate it: `. .venv/bin/activate`\n\n{block}", "utf-8")
    with pytest.raises(Stumble, match=why):
        walk(tmp_path)


def test_an_environment_that_nobody_activated_is_a_stumble(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("```bash\ntrue\n```\n", "utf-8")
    with pytest.raises(Stumble, match="activate"):
        walk(tmp_path)
