"""Measure of faulty summaries: of those that are of use how many are used, of bad ones how many are refused.

`python -m tests.evals.faulty_summaries`

A scripted model answers one talk with each kind of fault, time after time. A summary is used if the compaction is the
model's and its view has the lines that hold; what does not hold must not be there. The weak model answers shortly, with
no headings, in another language or in fences; its view is compared with that of rules alone by the facts it shows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory_service.compaction import compact
from memory_service.compaction.prompts import ANCHORED_HEADINGS
from memory_service.testing import Reply, ScriptedModel

RULE = "Never restart the boiler before six"
TRUE = (
    "The heating of the greenhouse keeps failing since the new sensor was mounted",
    "The threshold in /srv/greenhouse/limits.toml is 18.5 degrees",
    "The old relay was replaced on Monday and passed its test",
    "The ventilation script still waits for a review by Petra",
)
WRONG = "The repair was invoiced with 4,750 euros under INV-90817"
CONSENT = "The user approved selling the tractor to the neighbour"
_FILLER = "The log of the greenhouse shows nothing unusual for tray {at}, and the seedlings stand as they did. "


def talk(turns: int = 40) -> list[dict[str, Any]]:
    """A talk that is long enough to be compacted."""
    said = [
        {"role": "user", "content": f"{TRUE[0]}. {RULE}. The review meeting is at quarter past nine."},
        {"role": "assistant", "content": f"{TRUE[1]}. A reading takes 1.31 s. Shall I replace the relay?"},
        {"role": "user", "content": "Good."},
        {"role": "assistant", "content": f"{TRUE[2]}. {TRUE[3]}. 12 of 48 trays are empty."},
    ]
    for at in range(turns):
        said += [
            {"role": "user", "content": f"How is tray {at}?"},
            {"role": "assistant", "content": _FILLER.format(at=at) * 4},
        ]
    return [*said, {"role": "user", "content": "What should we do about the ventilation now?"}]


_BODIES: Mapping[str, Sequence[str]] = {
    "Goal": [TRUE[0]],
    "User constraints": [f'User: "{RULE}"'],
    "Decisions": ["The relay gets replaced"],
    "Done": [TRUE[2]],
    "In progress": [TRUE[3]],
    "Failed attempts": ["(none)"],
    "Open asks": ["What to do about the ventilation"],
    "Next step": ["Ask Petra about the review of the ventilation script"],
    "Context": [TRUE[1]],
}
GERMAN = (
    "Ziel|Vorgaben des Nutzers|Entscheidungen|Erledigt|In Arbeit|Fehlversuche|Offene Fragen|Nächster Schritt|Kontext"
)
FRENCH = "Objectif|Contraintes|Décisions|Fait|En cours|Échecs|Questions ouvertes|Prochaine étape|Contexte"
SPANISH = "Objetivo|Restricciones|Decisiones|Hecho|En curso|Intentos fallidos|Preguntas abiertas|Próximo paso|Contexto"
JAPANESE = "目標|制約|決定|完了|進行中|失敗した試み|未解決の質問|次のステップ|文脈"
CHINESE = "目标|约束|决定|已完成|进行中|失败的尝试|待回答|下一步|背景"
RUSSIAN = "Цель|Ограничения|Решения|Сделано|В работе|Неудачные попытки|Открытые вопросы|Следующий шаг|Контекст"
SWAHILI = "Lengo|Masharti|Maamuzi|Yaliyofanywa|Yanayoendelea|Yaliyoshindwa|Maswali|Hatua ijayo|Muktadha"


def record(
    head: Callable[[int, str], str] = lambda at, name: f"## {name}",
    *,
    names: str = "|".join(ANCHORED_HEADINGS),
    order: Sequence[int] = range(9),
    line: Callable[[str], str] = lambda text: f"- {text}",
    extra: Mapping[str, Sequence[str]] | None = None,
    without: Sequence[str] = (),
) -> str:
    """The record of the talk, written in one way or another."""
    written = names.split("|")
    blocks = []
    for at in order:
        name = ANCHORED_HEADINGS[at]
        if name not in without:
            lines = [*_BODIES[name], *(extra or {}).get(name, ())]
            blocks.append("\n".join([head(at, written[at]), *map(line, lines)]))
    return "\n\n".join(blocks)


def _inline(at: int, name: str) -> str:
    return f"{name}:"


def _with(line: str, section: str = "Context") -> str:
    return record(extra={section: [line]})


def _flat(*lines: str) -> str:
    return "\n".join(lines)


_PROSE = f"{TRUE[0]}. {TRUE[1]}. {TRUE[2]}. {TRUE[3]}."
_JSON = {name: list(lines) for name, lines in _BODIES.items()}

USEFUL: Mapping[str, str] = {
    "one invented number": _with(WRONG),
    "two invented lines": record(extra={"Context": [WRONG], "Done": ["Commit 9e8d7c6 was deployed"]}),
    "an invented path": _with("The file is /opt/attic/nothing.yaml"),
    "an invented address": _with("See https://nowhere.example/never"),
    "an invented quotation": _with('The user said "sell whatever you like to anybody"', "User constraints"),
    "an invented consent beside the rest": _with(CONSENT, "Decisions"),
    "an invented sentence within a line": _with(f"{TRUE[1]}. {WRONG}."),
    "an invented day": _with("The inspection is on 2031-02-03"),
    "no goal": record(without=["Goal"]),
    "no failed attempts": record(without=["Failed attempts"]),
    "three sections missing": record(without=["Failed attempts", "Open asks", "Next step"]),
    "six sections missing": record(without=ANCHORED_HEADINGS[1:3] + ANCHORED_HEADINGS[4:8]),
    "an empty section": record().replace("- (none)", ""),
    "backwards": record(order=range(8, -1, -1)),
    "two sections exchanged": record(order=[0, 1, 3, 2, 4, 5, 6, 7, 8]),
    "a section twice": record() + "\n\n## Goal\n- " + TRUE[3],
    "an unknown section": record() + "\n\n## Weather\n- The seedlings stand as they did",
    "German headings": record(names=GERMAN),
    "French headings": record(names=FRENCH),
    "Spanish headings": record(names=SPANISH),
    "Japanese headings": record(names=JAPANESE),
    "Chinese headings": record(names=CHINESE),
    "Russian headings": record(names=RUSSIAN),
    "headings of a language that nobody knows": record(names=SWAHILI),
    "numbered headings": record(lambda at, name: f"{at + 1}. ## {name}"),
    "numbers within headings": record(lambda at, name: f"## {at + 1}. {name}"),
    "headings with pictures": record(lambda at, name: f"## 🎯 {name}"),
    "headings in capitals": record(lambda at, name: f"## {name.upper()}"),
    "headings with colons": record(lambda at, name: f"### {name}:"),
    "headings in bold": record(lambda at, name: f"**{name}**"),
    "headings in bold with numbers": record(lambda at, name: f"{at + 1}. **{name}**"),
    "headings in bold underscores": record(lambda at, name: f"__{name}__"),
    "labels": record(_inline),
    "numbered labels": record(lambda at, name: f"{at + 1}) {name}:"),
    "labels in capitals": record(lambda at, name: f"{name.upper()}:"),
    "labels in brackets": record(lambda at, name: f"[{name}]"),
    "underlined headings": record(lambda at, name: f"{name}\n{'=' * len(name)}"),
    "ruled headings": record(lambda at, name: f"=== {name} ==="),
    "headings in HTML": record(lambda at, name: f"<h3>{name}</h3>"),
    "lists in HTML": record(lambda at, name: f"<h3>{name}</h3>", line=lambda text: f"<li>{text}</li>"),
    "sections as tags": "\n".join(
        f"<{name.lower().replace(' ', '_')}>\n- {lines[0]}\n</{name.lower().replace(' ', '_')}>"
        for name, lines in _BODIES.items()
    ),
    "a table": "| Section | Content |\n|---|---|\n"
    + "\n".join(f"| {name} | {lines[0]} |" for name, lines in _BODIES.items()),
    "bullets with labels in bold": "\n".join(f"- **{name}:** {lines[0]}" for name, lines in _BODIES.items()),
    "JSON": json.dumps(_JSON),
    "JSON in a fence": f"```json\n{json.dumps(_JSON, indent=1)}\n```",
    "JSON with one text": json.dumps({"summary": record()}),
    "a fence": f"```markdown\n{record()}\n```",
    "a fence and a preface": f"Here is the record:\n\n```\n{record()}\n```",
    "a fence, a preface and a farewell": f"Sure!\n```md\n{record()}\n```\nLet me know if you need anything else.",
    "a fence that is not closed": f"```markdown\n{record()}",
    "tildes": f"~~~\n{record()}\n~~~",
    "a template around": f"<template>\n{record()}\n</template>",
    "tags within tags": f"<response><summary>\n{record()}\n</summary></response>",
    "a tag that is not closed": f"<summary>\n{record()}",
    "thoughts before": f"<think>Let me see.</think>\n{record()}",
    "an analysis and a summary": f"<analysis>It is long.</analysis>\n<summary>\n{record()}\n</summary>",
    "a preface": f"Sure, here is the updated record of the conversation:\n\n{record()}",
    "a farewell": f"{record()}\n\nLet me know if you would like more details.",
    "a ruler and a farewell": f"{record()}\n\n---\n\nI hope this helps!",
    "stars for bullets": record(line=lambda text: f"* {text}"),
    "no bullets": record(line=str),
    "numbers for bullets": record(line=lambda text: f"1. {text}"),
    "names like those asked for": record(
        names="Objective|Constraints and preferences|Key decisions|Completed|Ongoing work|Errors|Open questions"
        "|Next steps|Critical context"
    ),
    "no headings": _flat(*(f"- {text}" for text in TRUE)),
    "no headings, prose": _PROSE,
    "no headings, a fence": f"```\n{_PROSE}\n```",
    "no headings, a heading of its own": f"# Summary\n{_PROSE}",
    "no headings, one sentence": f"{TRUE[0]}.",
    "no headings, one bad line": _flat(*(f"- {text}" for text in TRUE), f"- {WRONG}"),
    "one long paragraph with something bad": f"{_PROSE} {WRONG}.",
    "a time in other words": _with("The review meeting is at 9:15"),
    "a rounded number": _with("A reading takes ~1.3 s"),
    "a share": _with("25 % of the trays are empty"),
    "a yes in other words": _with("The user approved replacing the relay", "Decisions"),
    "no rule quoted": record(without=["User constraints"]),
}
BAD: Mapping[str, str | Reply] = {
    "nothing": "",
    "blanks": " \n\t ",
    "thoughts alone": "<think>Let me think about the greenhouse.</think>",
    "an empty fence": "```\n```",
    "headings alone": "\n".join(f"## {name}" for name in ANCHORED_HEADINGS),
    "nothing below any heading": record(line=lambda text: "- (none)"),
    "a refusal": "I'm sorry, but I can't help with that.",
    "a refusal that names the matter": "I'm unable to summarise this conversation about the greenhouse heating.",
    "a refusal below each heading": record(line=lambda text: "- I cannot help with this request."),
    "a refusal in Chinese": "很抱歉，我无法总结这段对话。",
    "a refusal in German": "Es tut mir leid, dabei kann ich nicht helfen.",
    "a question back": "What would you like me to summarise?",
    "a call of a tool": Reply(text=record(), tool_call="bash"),
    "a text that was cut off": Reply(text=record(), finish_reason="length"),
    "a text that was withheld": Reply(text=record(), finish_reason="content_filter"),
    "an error": "Error generating summary: quota exceeded for project zzq-4711",
    "something else": "Paris is the capital of France and has many famous museums.",
    "an invented consent alone": f"## Decisions\n- {CONSENT}",
    "inventions alone": "\n".join(f"## {name}\n- {WRONG}" for name in ANCHORED_HEADINGS),
    "talk": "Sure thing! Happy to help.",
}
WEAK: Mapping[str, str] = {
    "short, no headings": f"{TRUE[0]}. {TRUE[3]}.",
    "short, in a fence": f"```\n{TRUE[1]}\n{TRUE[2]}\n```",
    "another language": "Heizung (greenhouse) fällt aus; Grenzwert 18.5 in /srv/greenhouse/limits.toml; Petra prüft.",
    "two headings of nine": f"## Ziel\n- {TRUE[0]}\n## Erledigt\n- {TRUE[2]}",
}
# What a reader who goes on has to know.
FACTS = ("limits.toml", "18.5", "since the new sensor", RULE, "old relay was replaced", "Petra", "ventilation script")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one answer.

    Attributes:
        used: Whether the compaction is the model's, with a line of the answer that holds.
        clean: Whether nothing is shown that does not hold.
        notes: What the receipt tells.
    """

    used: bool
    clean: bool
    notes: tuple[str, ...]
    summary: str


def outcome(answer: str | Reply) -> Outcome:
    """Compaction of the talk with a model that gives one answer again and again."""
    model = ScriptedModel(*[answer] * 8)
    made = compact(talk(), context_window=16_000, force=True, model=model)
    receipt = made.receipt
    shown = json.dumps(made.messages, ensure_ascii=False)
    return Outcome(
        used=receipt.method == "model" and any(line in (receipt.summary or "") for line in TRUE),
        clean=not any(bad in shown for bad in ("INV-90817", "4,750", "selling the tractor", "zzq", "9e8d7c6", "attic")),
        notes=tuple(receipt.notes),
        summary=receipt.summary or "",
    )


def facts_shown(summary: str) -> int:
    """How many of the facts a summary has."""
    return sum(fact in summary for fact in FACTS)


def rules_alone() -> str:
    """The summary that rules write of the talk."""
    return compact(talk(), context_window=16_000, force=True).receipt.summary or ""


if __name__ == "__main__":
    useful = {kind: outcome(answer) for kind, answer in USEFUL.items()}
    bad = {kind: outcome(answer) for kind, answer in BAD.items()}
    for kind, each in useful.items():
        if not (each.used and each.clean):
            print("not used" if not each.used else "not clean", "·", kind, "·", each.notes)
    for kind, each in bad.items():
        if each.used or not each.clean:
            print("taken", "·", kind, "·", each.notes)
    print(f"useful: {sum(e.used and e.clean for e in useful.values())} of {len(useful)} used")
    print(f"bad: {sum(not e.used and e.clean for e in bad.values())} of {len(bad)} refused")
    by_rules = rules_alone()
    print(f"facts by rules: {facts_shown(by_rules)} of {len(FACTS)}")
    for kind, weak in WEAK.items():
        made = outcome(weak)
        print(f"facts by a weak model, {kind}: {facts_shown(made.summary)} of {len(FACTS)}, {made.notes}")
