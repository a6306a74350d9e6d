"""What an assistant says again of a memory is told from what it says anew."""

from __future__ import annotations

import pytest

from memory_service.text.retelling import retells_any
from tests.growth import at_most_readings

DEPLOYS = "User: We decided: deploys go out on Tuesdays at 10:00, never on Fridays."
部署 = "用户（2026-11-23）：我们决定：每周二上午十点部署，周五绝不部署。"
HOME = "User: I live in Graz and my sister Anna works for Siemens."
住址 = "用户：我住在上海，以后快递都放在门卫室。"


@pytest.mark.parametrize(
    ("note", "memory"),
    [
        ("Assistant: As I remember, deploys go out on Tuesdays at 10:00, never on Fridays.", DEPLOYS),
        ("Assistant: From what I recall, deploys are on Tuesdays.", DEPLOYS),
        ("Assistant (2026-11-23): According to my notes, you decided: deploys go out on Tuesdays.", DEPLOYS),
        ('Assistant, asked "When do we deploy?": On Tuesdays at 10:00.', DEPLOYS),
        ("Assistant: You live in Graz, and your sister Anna works for Siemens.", HOME),
        ("Assistant: Right, you said earlier that you live in Graz.", HOME),
        ("助手：我记得，每周二上午十点部署，周五绝不部署。", 部署),
        ("助手（问：什么时候部署？）：每周二上午十点。", 部署),
        ("助手：根据我的记忆，您住在上海，快递都放在门卫室。", 住址),
        ("助手：您之前说过快递都放在门卫室。", 住址),
    ],
)  # fmt: skip
def test_what_is_said_again_is_no_news(note: str, memory: str) -> None:
    assert retells_any(note, [memory])


@pytest.mark.parametrize(
    ("note", "memory"),
    [
        ("Assistant: As I remember, deploys go out on Wednesdays at 10:00.", DEPLOYS),
        ("Assistant: As I remember, deploys go out on Tuesdays at 11:00.", DEPLOYS),
        ("Assistant: Deploys go out on Fridays.", DEPLOYS),
        ("Assistant: Deploys never go out on Tuesdays.", DEPLOYS),
        ('Assistant, asked "When is lunch?": On Tuesdays at 10:00.', DEPLOYS),
        ("Assistant: Deploys go out on Tuesdays.", "User: Deploys on Tuesdays are cancelled."),
        ("Assistant: Anna is the owner of billing.", "User: Anna was the owner of billing."),
        ("Assistant: We moved the database from Vienna to Graz.", "User: We moved the database from Graz to Vienna."),
        ("Assistant: I will send the report by Friday.", "User: I will send the report by Friday."),
        ("Assistant: You will send the report by Friday.", "Assistant: I will send the report by Friday."),
        ("User: As I remember, deploys go out on Tuesdays at 10:00.", DEPLOYS),
        ("Assistant: Tuesdays.", DEPLOYS),
        ("助手：我记得每周三上午十点部署。", 部署),
        ("助手：每周五部署。", 部署),
        ("助手：您住在北京。", 住址),
        ("助手：我住在上海。", 住址),
        ("用户：我记得每周二上午十点部署。", 部署),
    ],
)
def test_what_differs_is_news(note: str, memory: str) -> None:
    assert not retells_any(note, [memory])


@pytest.mark.parametrize("piece", ["as I remember, ", "a, ", "我记得", "(", "you said "])
def test_hostile_text_takes_little_time(piece: str) -> None:
    text = piece * (20_000 // len(piece))
    with at_most_readings(200):
        assert not retells_any(f"Assistant: {text} x y", ["User: other words"])
        retells_any(f"Assistant: {text}", [f"User: {text}"])
