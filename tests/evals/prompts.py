"""The judge of prompts: its worlds of notes, its training, and how well it does on worlds that took no part.

`python -m tests.evals.prompts [--write]`

A world is some weeks of notes of one life or work, with prompts that a note matters for, prompts that nothing there
concerns, questions about that life that no note answers, and short ones that go on with the turn before. Each is asked
of an index of its world, made with the model that would be chosen for it and by words alone. One world in four is only
judged.
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from indexer import CachedEmbedder, Embedder, Hit, Index, MiniLM, multilingual_embedder
from memory_service.text.prompt_judge import (
    PROMPT_FIGURES,
    PROMPT_WEIGHTS,
    Space,
    _judged_prompt,
    _prompt_figures,
    _prompt_rows,
    prompt_weights,
)
from memory_service.text.sentence_judge import Floats, LinearFunction, Weights, logistic
from tests.evals.judges import Answers

WORLDS = Path(__file__).parent / "worlds"
KINDS = ("related", "unrelated", "unanswered", "followup")
_PARTS = 4
_C = 0.5
_TODAY = dt.date(2026, 11, 25)
_LIMIT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt, asked of its world.

    Attributes:
        world: The world.
        language: Of the world.
        kind: One of `KINDS`.
        text: The prompt.
        before: The turn before it.
        wants: True if something of its world belongs into it.
        space: The model of the index; empty for words alone.
        figures: See `_prompt_figures`.
    """

    world: str
    language: str
    kind: str
    text: str
    before: str
    wants: bool
    space: Space
    figures: list[float]

    @property
    def judged(self) -> bool:
        """True if its world takes no part in the training."""
        return _is_judged(self.world)


def asked(folder: Path = WORLDS) -> Iterator[Prompt]:
    """All prompts, each asked of the indexes of its world."""
    for world in _worlds(folder):
        yield from _asked_by_meaning(world)
        yield from _asked(world, "", None)


def judged_by_meaning(folder: Path = WORLDS) -> Iterator[Prompt]:
    """The prompts of the worlds that take no part in the training, each asked of the index with vectors."""
    for world in _worlds(folder):
        if _is_judged(world["name"]):
            yield from _asked_by_meaning(world)


def _worlds(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.json")):
        yield json.loads(path.read_text("utf-8"))


def _is_judged(world: str) -> bool:
    return hashlib.blake2b(f"held {world}".encode(), digest_size=1).digest()[0] % _PARTS == 0


def _asked_by_meaning(world: dict[str, Any]) -> Iterator[Prompt]:
    if world["language"] == "en":
        return _asked(world, "minilm", CachedEmbedder(MiniLM()))
    return _asked(world, "e5", multilingual_embedder())


def _asked(world: dict[str, Any], space: Space, embedder: Embedder | None) -> Iterator[Prompt]:
    with tempfile.TemporaryDirectory(prefix="world-") as folder:
        root = Path(folder)
        (root / "memory").mkdir()
        days: dict[str, list[str]] = {}
        for note in world["notes"]:
            days.setdefault(note["date"], []).append(note["text"])
        for day, notes in days.items():
            (root / "memory" / f"{day}.md").write_text(f"# {day}\n\n" + "\n\n".join(notes) + "\n", "utf-8")
        index = Index(root, embedder, today=lambda: _TODAY)
        index.sync()
        for each in world["prompts"]:
            before = each.get("before") or ""
            text = _judged_prompt(each["text"], before)
            hits: Sequence[Hit] = index.search(text, limit=_LIMIT, snippets=False).hits
            yield Prompt(
                world=world["name"],
                language=world["language"],
                kind=each["kind"],
                text=each["text"],
                before=before,
                wants=each["kind"] == "related" or bool(each.get("wants") and each.get("note") is not None),
                space=space,
                figures=_prompt_figures(each["text"], hits, space),
            )
        index.close()


def vectors_of(prompts: Sequence[Prompt]) -> Floats:
    """Vectors of the prompts, as the judge sees them."""
    # Each is asked of several indexes.
    embedder = CachedEmbedder(multilingual_embedder())
    rows = [embedder.embed_query(_judged_prompt(each.text, each.before)) for each in prompts]
    return np.array(rows, np.float64)


def trained(prompts: Sequence[Prompt], vectors: Floats) -> Weights:
    """Weights trained on these prompts."""
    from sklearn.linear_model import LogisticRegression

    mean = np.rint(vectors.mean(axis=0) * 1000) / 1000
    rows = _prompt_rows(mean, vectors, np.array([each.figures for each in prompts]))
    model = LogisticRegression(C=_C, class_weight="balanced", max_iter=3000).fit(rows, [each.wants for each in prompts])
    return Weights(
        embedder=multilingual_embedder().fingerprint,
        figures=PROMPT_FIGURES,
        mean=mean,
        functions={"wants": LinearFunction(labels=("wants",), matrix=model.coef_, bias=model.intercept_)},
    )


def chances_of(prompts: Sequence[Prompt], vectors: Floats, weights: Weights) -> Floats:
    """Probability that something belongs into each prompt."""
    rows = _prompt_rows(weights.mean, vectors, np.array([each.figures for each in prompts]))
    chances: Floats = logistic(weights.functions["wants"].scores(rows))[:, 0]
    return chances


def report(prompts: Sequence[Prompt], chances: Floats, thresholds: Sequence[float] = (0.2, 0.3, 0.4, 0.5)) -> str:
    """Shares that pass, by language and kind."""
    lines = []
    for language in [*sorted({each.language for each in prompts}), "all"]:
        for threshold in thresholds:
            shares = []
            for kind in KINDS:
                of: Answers = np.array([each.kind == kind and language in (each.language, "all") for each in prompts])
                shares.append(f"{kind} {(chances[of] >= threshold).mean():.3f}")
            lines.append(f"{language:4} {threshold}: " + ", ".join(shares))
    return "\n".join(lines)


def main() -> None:
    """Train if that is asked, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="train anew and write the weights")
    options = parser.parse_args()
    prompts = list(asked())
    vectors = vectors_of(prompts)
    apart = np.array([each.judged for each in prompts])
    print(f"{len(prompts) // 2} prompts of {len({each.world for each in prompts})} worlds")
    if options.write:
        train = [each for each in prompts if not each.judged]
        PROMPT_WEIGHTS.write_text(trained(train, vectors[~apart]).as_json() + "\n", "utf-8")
    weights = prompt_weights(multilingual_embedder().fingerprint)
    for name, spaces in (("with vectors", ("minilm", "e5")), ("by words alone", ("",))):
        part = np.array([each.judged and each.space in spaces for each in prompts])
        judged = [each for each, holds in zip(prompts, part, strict=True) if holds]
        print(f"worlds that took no part, {name}\n" + report(judged, chances_of(judged, vectors[part], weights)))


if __name__ == "__main__":
    main()
