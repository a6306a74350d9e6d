"""The needle measure: what of a few incidental facts is left after many turns and compactions, without a model.

`python -m tests.evals.needles [--seeds 10] [--rounds 5] [--window 8192] [--model hash|none|minilm]`

Eight facts are mentioned in passing, each of another kind, among 48 turns of other work; the session is compacted five
times. A fact counts as in view when its exact text stands in what the model would get, as reachable when one search
of the session, or one context for a natural question, shows it. The question never holds the answer.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from indexer import Embedder, MiniLM
from indexer.testing import HashEmbedder
from memory_service.config import Settings
from memory_service.messages.shapes import text_of
from memory_service.runtime.base import CompactionCall
from memory_service.schemas.compaction import CompactRequest, SessionContextRequest
from memory_service.service import MemoryService
from memory_service.service.short_term import WorkspaceSessions

Language = Literal["en", "zh"]
SESSION = "needles"
FILLERS = 48
ROUNDS = 5
WINDOW = 8_192
SEARCH_LIMIT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Needle:
    """A fact.

    Attributes:
        kind: What it is: a path, a command, a number and so on.
        text: What has to be found, word for word.
        said: The message that mentions it in passing.
        question: A natural one, without the answer.
    """

    kind: str
    text: str
    said: str
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What became of the facts of one session; each list holds kinds."""

    in_view: tuple[str, ...]
    reachable: tuple[str, ...]
    lost: tuple[str, ...]
    view_tokens: tuple[int, ...]

    @property
    def share(self) -> float:
        """Of all facts, those that are in view or one search away."""
        kept = len({*self.in_view, *self.reachable})
        return kept / (kept + len(self.lost))


_WORDS = "amber basil cobalt dune ember fjord garnet hazel indigo juniper krill lotus maple nectar onyx prism".split()


def needles(rng: random.Random, language: Language) -> list[Needle]:
    """Eight facts, one of each kind."""
    word = rng.sample(_WORDS, 4)
    facts = {
        "path": f"/srv/{word[0]}/conf/retry-{rng.randint(10, 99)}.toml",
        "command": f"make migrate-{word[1]} STEP={rng.randint(2, 9)}",
        "number": f"{rng.randint(110, 990)} ms",
        "id": f"INC-{rng.randint(10_000, 99_999)}",
        "url": f"https://wiki.example.net/runbooks/{word[2]}-{rng.randint(100, 999)}",
        "date": f"2027-{rng.randint(1, 9):02}-{rng.randint(10, 28)}",
        "name": rng.choice(_NAMES[language]),
        "rule": _RULES[language].format(word=word[3], hour=rng.randint(17, 22)),
    }
    return [
        Needle(kind=kind, text=fact, said=said.format(fact), question=question)
        for (kind, fact), (said, question) in zip(facts.items(), _SAID[language], strict=True)
    ]


_NAMES = {
    "en": ("Ilka Marwood", "Tobin Ashgrove", "Senna Okumbe", "Bram Velasky"),
    "zh": ("沈砚秋", "陆闻溪", "顾北川", "程以宁"),
}
_RULES = {"en": "never restart the {word} worker before {hour}:40", "zh": "{hour}点以前绝不重启{word}服务"}
# How each kind is mentioned in passing, and what is asked later.
_SAID = {
    "en": (
        (
            "Let us look at the paging of the list. By the way, the retry policy lives in {}, we may need that later.",
            "Where does the retry policy live?",
        ),
        (
            "I ran the database migration with `{}` just now and it went well. Please change the colour of the button.",
            "Which command runs the database migration?",
        ),
        (
            "In the load test the gateway had a latency of {}, better than last month. Now about the login page.",
            "What was the latency of the gateway in the load test?",
        ),
        (
            "The incident with the double payments was {}, it is closed. Let us go on with the export.",
            "What was the number of the incident with the double payments?",
        ),
        (
            "I put the on-call runbook at {} for whoever needs it. First fix the sorting of the table.",
            "Where is the on-call runbook?",
        ),
        (
            "The certificate renewal is planned for {}, no hurry. Explain this piece of caching code first.",
            "When is the certificate renewal planned?",
        ),
        (
            "Our contact in accounting is {}, mostly there in the mornings. Back to the invoice template.",
            "Who is our contact in accounting?",
        ),
        (
            "One more thing: {}, the nightly batch would suffer. Next is the search box.",
            "Is there a rule about when workers may be restarted?",
        ),
    ),
    "zh": (
        ("先看一下列表分页的问题。对了，重试策略的配置文件放在 {}，以后可能会用到。", "重试策略的配置文件放在哪里？"),
        ("刚才迁移数据库我是用 `{}` 跑的，跑得挺顺。现在帮我改一下按钮的颜色。", "迁移数据库用的是什么命令？"),
        ("压测的时候网关的延迟是 {}，比上个月好一些。接着说登录页面吧。", "压测时网关的延迟是多少？"),
        ("那次支付重复扣款的故障单是 {}，已经关掉了。我们继续看导出功能。", "支付重复扣款的故障单号是什么？"),
        ("值班手册我放在 {} 了，有空可以看。先把表格的排序修好。", "值班手册的链接是什么？"),
        ("证书续期排在 {}，不急。你先解释一下这段缓存的代码。", "证书续期排在哪一天？"),
        ("财务那边的对接人是{}，她一般上午在。好，回到发票模板。", "财务那边的对接人是谁？"),
        ("还有一点：{}，夜里的批处理会受影响。接下来看搜索框。", "重启服务有什么时间上的规定？"),
    ),
}
_TOPICS = {
    "en": "chart legend,upload form,dark theme,mail footer,audit page,tag editor,date picker,avatar crop,help text,"
    "empty state,sidebar,toast,print view,shortcut list".split(","),
    "zh": "图表的图例、上传表单、深色主题、邮件页脚、审计页面、标签编辑器、日期选择器、头像裁剪、帮助文字、空白状态、"
    "侧边栏、提示条、打印视图、快捷键".split("、"),
}


def turn(rng: random.Random, language: Language, number: int, needle: Needle | None = None) -> list[dict[str, Any]]:
    """A turn of work: asked, a file read with a tool, answered. With a needle, the user mentions that."""
    topic, size, port = rng.choice(_TOPICS[language]), rng.randint(2, 900), rng.randint(2_000, 9_000)
    file = f"src/{rng.choice(_WORDS)}/{rng.choice(_WORDS)}_{number}.ts"
    call = {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "read_file", "arguments": f'{{"path": "{file}"}}'},
    }
    code = "\n".join(
        f"export const {rng.choice(_WORDS)}{at} = {rng.randint(1, 999)} // {rng.choice(_WORDS)}" for at in range(12)
    )
    if language == "zh":
        asked = f"第{number}个问题：{topic}在小屏幕上显示不对，能不能看看是什么原因？我这边试了 {size} 次都能重现。"
        answer = f"看过 {file} 了：{topic}的宽度写死成了 {size} 像素，改成弹性布局就好了。端口 {port} 的预览已经更新。"
    else:
        asked = f"Question {number}: the {topic} looks wrong on small screens, can you see why? I tried {size} times."
        answer = (
            f"I read {file}: the width of the {topic} is fixed at {size} pixels; a flexible layout mends it. "
            f"The preview on port {port} is up to date, reload it to see the effect."
        )
    return [
        {"role": "user", "content": needle.said if needle else asked},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": code},
        {"role": "assistant", "content": answer},
    ]


def conversation(rng: random.Random, language: Language) -> tuple[list[Needle], list[list[dict[str, Any]]]]:
    """Turns with the facts at random places of the first three quarters."""
    found = needles(rng, language)
    turns = FILLERS + len(found)
    places = dict(
        zip(sorted(rng.sample(range(turns * 3 // 4), len(found))), rng.sample(found, len(found)), strict=True)
    )
    return found, [turn(rng, language, number, places.get(number)) for number in range(turns)]


def in_rounds(turns: Sequence[list[dict[str, Any]]], rounds: int) -> Iterator[list[dict[str, Any]]]:
    """The messages of each round."""
    for number in range(rounds):
        part = turns[len(turns) * number // rounds : len(turns) * (number + 1) // rounds]
        yield [message for each in part for message in each]


def measured(sessions: WorkspaceSessions, language: Language, *, seed: int, rounds: int = ROUNDS) -> Score:
    """Talk, compact, and look for every fact."""
    found, turns = conversation(random.Random(f"{language}{seed}"), language)
    name, sizes = f"{SESSION}-{language}-{seed}", list[int]()
    for messages in in_rounds(turns, rounds):
        sessions.append(name, messages)
        sessions.compactions.compact(name, CompactionCall(request=CompactRequest(force=True)))
        sizes.append(sessions.snapshot(name).view().tokens)
    view = "\n".join(map(text_of, sessions.snapshot(name).view().messages))
    seen = [needle.kind for needle in found if needle.text in view]
    reached = [needle.kind for needle in found if is_reachable(sessions, name, needle)]
    return Score(
        in_view=tuple(seen),
        reachable=tuple(reached),
        lost=tuple(needle.kind for needle in found if needle.kind not in {*seen, *reached}),
        view_tokens=tuple(sizes),
    )


def is_reachable(sessions: WorkspaceSessions, session_id: str, needle: Needle) -> bool:
    """Whether one search of the session, or one context, shows the fact."""
    hits = sessions.search(session_id, needle.question, limit=SEARCH_LIMIT).results
    if any(needle.text in hit.text for hit in hits):
        return True
    made = sessions.context(
        session_id, SessionContextRequest(query=needle.question, auto=False, memory_budget_tokens=1_000)
    )
    return needle.text in "\n".join(map(text_of, made.prompt.messages))


def opened(home: Path, *, embedder: Embedder | None, window: int = WINDOW) -> MemoryService:
    """A service for the measure."""
    given: dict[str, Any] = {"home": home, "timezone": "UTC", "context_window": window, "flush": {"mode": "off"}}
    if embedder is None:
        given["embedding_model"] = "none"
    return MemoryService(Settings.model_validate(given), embedder=embedder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--window", type=int, default=WINDOW)
    parser.add_argument("--model", choices=["hash", "none", "minilm"], default="none")
    given = parser.parse_args()
    embedders: dict[str, Embedder | None] = {"hash": HashEmbedder(), "none": None}
    embedder = MiniLM() if given.model == "minilm" else embedders[given.model]
    with tempfile.TemporaryDirectory() as home, opened(Path(home), embedder=embedder, window=given.window) as service:
        sessions = service.sessions("default", make=True)
        languages: tuple[Language, ...] = ("en", "zh")
        for language in languages:
            scores = [measured(sessions, language, seed=seed, rounds=given.rounds) for seed in range(given.seeds)]
            facts = 8 * len(scores)
            lost = sorted(kind for score in scores for kind in score.lost)
            print(
                f"{language}: in view {sum(len(score.in_view) for score in scores) / facts:.1%}, one search away "
                f"{sum(len(score.reachable) for score in scores) / facts:.1%}, either "
                f"{1 - len(lost) / facts:.1%} of {facts} facts; lost: {', '.join(lost) or 'none'}; "
                f"view {max(max(score.view_tokens) for score in scores)} tokens at most"
            )


if __name__ == "__main__":
    main()
