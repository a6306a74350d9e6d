"""The relevance measure: is the probability that a hit carries the share of such hits that do bear on the question?

`python -m tests.evals.relevance [PATH/locomo10.json] [--model multilingual-e5-small|all] [--write]`

Fits the weights of `indexer/engine/relevance.py` and judges them. Questions are asked of indexes that hold what answers
them, and of indexes that do not: of a part of the notes is known what answers which question, so leaving it out makes a
question that nothing answers, though everything around it is there. Of LoCoMo's conversations (not part of the
project: name the file) the questions of the next one are asked too, with its people's names changed to those of this
one.

What is judged is never fitted: the groups (a conversation, the notes of one subject, a half of the Chinese lines) are
dealt into five parts, and each is judged by weights that were fitted to the other four. `--write` then fits to all and
writes the table.

A conversation has few lines that are known to answer a question and many that bear on it all the same, so lines of it
that are not among the known count little in the first two fits: those tell what looks like an answer from what is
found where there is none. The last fit, to all lines as they are, makes probabilities of that. The second function,
`answers`, is one fit to all lines as they are.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from indexer import CachedEmbedder, Hit, Index, MiniLM, Mode, MultilingualE5, RankingSettings
from indexer.engine.relevance import (
    PASSAGE_SIGNALS,
    QUESTION_SIGNALS,
    RULES,
    Calibration,
    Regime,
    Signals,
    Table,
    Weights,
)
from tests.evals import chinese, paraphrases
from tests.evals.locomo import Conversation
from tests.evals.locomo import load as load_conversations

Floats = NDArray[np.float64]
Answers = NDArray[np.bool_]
TABLE = Path(__file__).parents[2] / "indexer" / "engine" / "relevance.json"
PARTS = 5
# Lines of a small index of Chinese notes, and the share of the other questions that it is asked.
_PAGE, _OTHERS = 20, 0.03
# Share that lines of a conversation count with which are not known to answer.
_UNKNOWN = 0.01
# Hits of a question that the last fit and the judgement look at.
_SHOWN = 20
_BINS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_MODES: tuple[Mode, ...] = ("hybrid", "text", "vector")
_WITH_VECTORS: tuple[Mode, ...] = ("hybrid", "vector")
_REGIMES: tuple[Regime, ...] = ("hybrid", "words", "characters", "vector")
_BY_VECTORS: tuple[Regime, ...] = ("hybrid", "vector")
_MODELS: dict[str, type[MiniLM] | type[MultilingualE5]] = {"minilm": MiniLM, "multilingual-e5-small": MultilingualE5}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The hits of one question.

    Attributes:
        kind: Where they are from.
        group: Questions of one group are in the same part.
        weight: How much the question counts in a fit.
        unknown: How much a hit counts there that is not known to answer it.
        answers: True for each hit that does.
    """

    kind: str
    group: int
    weight: float
    unknown: float
    signals: Signals
    answers: Answers


_NOTHING = Signals(regime="hybrid", question=np.zeros(0), passages=np.zeros((0, 0)), share=1.0)


class Recorder(Calibration):
    """A calibration that keeps the signals it is given."""

    def __init__(self) -> None:
        super().__init__("", {})
        self.seen = _NOTHING

    def problem(self, regime: Regime, model: str, settings: RankingSettings) -> str:
        return ""

    def judge(self, found: Signals) -> tuple[Floats, Floats]:
        self.seen = found
        return np.zeros(len(found.passages)), np.zeros(len(found.passages))


class World:
    """An index of some files, to be asked."""

    def __init__(self, files: dict[str, str], embedder: CachedEmbedder) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="relevance-")
        root = Path(self._folder.name)
        for path, text in files.items():
            # Relevance is measured by folder: these have one.
            top, _, below = path.rpartition("/")[0].partition("/")
            name = f"{below}-{Path(path).name}".lstrip("-")
            (root / top).mkdir(parents=True, exist_ok=True)
            (root / top / name).write_text(text, "utf-8")
        self._recorder = Recorder()
        self._index = Index(root, embedder, today=lambda: chinese.TODAY, calibration=self._recorder)
        self._index.sync()

    def ask(self, question: str, mode: Mode, limit: int) -> tuple[Signals, tuple[Hit, ...]]:
        """The hits of a question, and their signals; none where one was replaced, which has changed the order."""
        self._recorder.seen = _NOTHING
        hits = self._index.search(question, limit=limit, mode=mode, snippets=False).hits
        return (_NOTHING, ()) if any(hit.replaced_by for hit in hits) else (self._recorder.seen, hits)

    def close(self) -> None:
        self._index.close()
        self._folder.cleanup()


def facts(embedder: CachedEmbedder, mode: Mode) -> Iterator[Asked]:
    """Short notes of eight subjects, as files of one line, as one file, and without what they begin with."""
    subjects = json.loads((Path(__file__).parent / "fact_notes.json").read_text("utf-8"))
    for group, (subject, made) in enumerate(subjects.items()):
        notes, some = made["notes"], random.Random(group)
        for layout, left_out in ((layout, part) for layout in ("files", "list", "diary") for part in range(PARTS)):
            texts = [note.partition(": ")[2] or note if layout == "diary" else note for note in notes]
            left = {i for i in range(len(notes)) if left_out and i % (PARTS - 1) == left_out - 1}
            world = World(_fact_files(subject, texts, left, layout), embedder)
            for question, wanted in made["asked"]:
                # Of a part, those questions whose answer is out, and a few others.
                if left and not left & set(wanted) and some.random() > 0.15:
                    continue
                right = {texts[i] for i in wanted}
                found, hits = world.ask(question, mode, 20)
                answers = np.array([hit.passage.text in right for hit in hits], bool)
                yield Asked(kind="facts", group=group, weight=0.3, unknown=1.0, signals=found, answers=answers)
            world.close()


def _fact_files(subject: str, texts: Sequence[str], left: set[int], layout: str) -> dict[str, str]:
    files: dict[str, str] = {}
    for i, text in enumerate(texts):
        if i not in left:
            paths = {"files": f"memory/n{i}.md", "list": "memory/notes.md", "diary": f"memory/2026-0{1 + i % 6}-11.md"}
            path = paths[layout]
            files[path] = files.get(path, f"# {subject}\n\n" if layout == "list" else "") + f"- {text}\n"
    return files


def chinese_lines(embedder: CachedEmbedder, mode: Mode) -> Iterator[Asked]:
    """The Chinese notes: all of their lines, half of them, few, and twenty at a time."""
    for place, group in enumerate(chinese.GROUPS):
        notes, kind = chinese.load(group), f"Chinese, {group}"
        for share in (1.0, 0.5, 0.15):
            some = random.Random(place)
            files = {
                path: "".join(f"{line}\n" for line in lines if not line.startswith("- ") or some.random() < share)
                for path, lines in notes.files.items()
            }
            yield from _asked_of(World(files, embedder), enumerate(notes.pairs), kind, mode)
        lines = list(notes.lines)
        for start in range(0, len(lines), _PAGE):
            page = {text for _, text in lines[start : start + _PAGE]}
            some = random.Random(start)
            wanted = [each for each in enumerate(notes.pairs) if each[1].answer in page or some.random() < _OTHERS]
            world = World({"memory/page.md": "".join(f"- {text}\n" for text in sorted(page))}, embedder)
            yield from _asked_of(world, wanted, f"{kind}, {_PAGE} lines", mode)


def _asked_of(
    world: World, pairs: Iterable[tuple[int, chinese.Pair]], kind: str, mode: Mode, *, weight: float = 1.0
) -> Iterator[Asked]:
    for number, pair in pairs:
        found, hits = world.ask(pair.question, mode, 60)
        answers = np.array([pair.answer in hit.passage.text for hit in hits], bool)
        yield Asked(kind=kind, group=number, weight=weight, unknown=1.0, signals=found, answers=answers)
    world.close()


def other_words(embedder: CachedEmbedder, mode: Mode) -> Iterator[Asked]:
    """Notes of thirteen languages, asked for in other words: all of them, half of them, few."""
    for place, language in enumerate(paraphrases.LANGUAGES):
        notes = paraphrases.load(language)
        for share in (1.0, 0.5, 0.2):
            some = random.Random(place)
            files = {
                path: "".join(f"{line}\n" for line in lines if some.random() < share)
                for path, lines in notes.files.items()
            }
            yield from _asked_of(World(files, embedder), enumerate(notes.pairs), "other words", mode, weight=0.5)


def conversations(path: Path, embedder: CachedEmbedder, mode: Mode) -> Iterator[Asked]:
    """LoCoMo: own questions, those of the next conversation about these people, own ones where days are missing."""
    talks = list(load_conversations(path))
    for group, talk in enumerate(talks):
        other = talks[(group + 1) % len(talks)]
        whole = World(talk.files, embedder)
        for question in talk.questions:
            found, hits = whole.ask(question.text, mode, 128)
            answers = _holding(hits, question.evidence)
            yield Asked(kind="conversations", group=group, weight=1.0, unknown=_UNKNOWN, signals=found, answers=answers)
        for question in other.questions:
            found, hits = whole.ask(_about_others(question.text, other, talk), mode, 128)
            answers = np.zeros(len(hits), bool)
            yield Asked(kind="other people", group=group, weight=1.0, unknown=1.0, signals=found, answers=answers)
        whole.close()
        for share in (0.5, 0.15):
            some = random.Random(group)
            part = World({path: text for path, text in talk.files.items() if some.random() < share}, embedder)
            for question in talk.questions:
                found, hits = part.ask(question.text, mode, 128)
                answers = _holding(hits, question.evidence)
                unknown = _UNKNOWN if answers.any() else 1.0
                yield Asked(
                    kind="days missing", group=group, weight=0.3, unknown=unknown, signals=found, answers=answers
                )
            part.close()


def _holding(hits: Sequence[Hit], evidence: Sequence[str]) -> Answers:
    return np.array([any(each in hit.passage.text for each in evidence) for hit in hits], bool)


def _about_others(question: str, theirs: Conversation, ours: Conversation) -> str:
    for name, other in zip(_speakers(theirs), _speakers(ours), strict=True):
        question = question.replace(name, other)
    return question


def _speakers(talk: Conversation) -> list[str]:
    return list(dict.fromkeys(name for day in talk.days for name, _ in day.turns))[:2]


def fitted(rows: Sequence[Asked]) -> Table:
    """The weights for the questions of one regime."""
    return Table(relevance=_fitted_relevance(rows), answers=_fitted_answers(rows))


def _fitted_answers(rows: Sequence[Asked]) -> Weights:
    """Weights of the probability that a passage is one of those that are known to answer."""
    found = np.vstack([np.hstack([_repeated(row), row.signals.share * row.signals.passages]) for row in rows])
    answers = np.concatenate([row.answers for row in rows]).astype(float)
    weights, intercept = _logistic(found, answers, np.concatenate([_even(row) for row in rows]))
    return _weights(weights[: len(QUESTION_SIGNALS)], weights[len(QUESTION_SIGNALS) :], intercept)


def _fitted_relevance(rows: Sequence[Asked]) -> Weights:
    """Weights of the probability that a passage bears on the question."""
    hits = np.concatenate([row.signals.passages for row in rows])
    question = np.concatenate([_repeated(row) for row in rows])
    answers = np.concatenate([row.answers for row in rows]).astype(float)
    weights = np.concatenate([row.weight * np.where(row.answers, 1.0, row.unknown) for row in rows])
    share = np.concatenate([np.full(len(row.answers), row.signals.share) for row in rows])
    # What of a passage speaks for an answer; then what of the question does, given as much of that as counts.
    first, _ = _logistic(np.hstack([question, hits]), answers, weights)
    own = share * (hits @ first[len(QUESTION_SIGNALS) :])
    second, start = _logistic(question, answers, weights, offset=own)
    score = question @ second + start + own
    # Probabilities, by the hits that are shown.
    shown = np.concatenate([np.arange(len(row.answers)) < _SHOWN for row in rows])
    even = np.concatenate([_even(row) for row in rows])
    size = question[:, -1]
    (slope, by_size), low = _logistic(np.stack([score, size], axis=1)[shown], answers[shown], even[shown])
    by_question = slope * second
    by_question[-1] += by_size
    return _weights(by_question, slope * first[len(QUESTION_SIGNALS) :], float(low + slope * start))


def _repeated(row: Asked) -> Floats:
    return np.repeat(row.signals.question[None], len(row.answers), axis=0)


def _even(row: Asked) -> Floats:
    return np.full(len(row.answers), row.weight)


def _weights(question: Floats, passages: Floats, intercept: float) -> Weights:
    return Weights(
        intercept=round(intercept, 4),
        question=dict(zip(QUESTION_SIGNALS, question.round(4).tolist(), strict=True)),
        passages=dict(zip(PASSAGE_SIGNALS, passages.round(4).tolist(), strict=True)),
    )


def _logistic(
    signals: Floats, answers: Floats, weights: Floats, *, offset: Floats | float = 0.0, ridge: float = 2.0
) -> tuple[Floats, float]:
    """Weights and intercept of a ridge logistic regression, by Newton's method with steps that do not lose."""
    mean, spread = signals.mean(axis=0), signals.std(axis=0)
    spread = np.where(spread > 1e-9, spread, np.inf)
    design = np.hstack([np.ones((len(signals), 1)), (signals - mean) / spread])
    penalty = ridge * np.eye(design.shape[1])
    penalty[0, 0] = 1e-6

    def loss(weights_now: Floats) -> float:
        logits = design @ weights_now + offset
        return float(weights @ (np.logaddexp(0, logits) - answers * logits) + weights_now @ penalty @ weights_now / 2)

    found, lost = np.zeros(design.shape[1]), loss(np.zeros(design.shape[1]))
    for _ in range(100):
        chance = 1 / (1 + np.exp(-np.clip(design @ found + offset, -500, 500)))
        slope = design.T @ (weights * (answers - chance)) - penalty @ found
        bend = (design * (weights * chance * (1 - chance))[:, None]).T @ design + penalty
        step = np.linalg.solve(bend, slope)
        while (now := loss(found + step)) > lost and np.abs(step).max() > 1e-7:
            step /= 2
        found, lost = found + step, now
        if np.abs(step).max() < 1e-7:
            break
    by_signal = found[1:] / spread
    return by_signal, float(found[0] - mean @ by_signal)


def judged(rows: Sequence[Asked]) -> list[tuple[Floats, Floats]]:
    """Relevance of the hits of each question and whether they answer, by weights that were fitted to other parts."""
    found: list[tuple[Floats, Floats]] = [(np.zeros(0), np.zeros(0))] * len(rows)
    for part in range(PARTS):
        table = fitted([row for row in rows if row.group % PARTS != part])
        calibration = Calibration("", {row.signals.model: {row.signals.regime: table} for row in rows})
        for place, row in enumerate(rows):
            if row.group % PARTS == part:
                found[place] = calibration.judge(row.signals)
    return found


def calibration_error(relevance: Floats, answers: Answers) -> tuple[float, list[tuple[str, int, float, float]]]:
    """Expected calibration error, and of each bin the number of hits, what was said and what is so."""
    lines, error = [], 0.0
    for low, high in pairwise(_BINS):
        there = (relevance >= low) & (relevance < high if high < 1 else relevance <= 1)
        if there.any():
            said, true = float(relevance[there].mean()), float(answers[there].mean())
            error += there.sum() / len(relevance) * abs(said - true)
            lines.append((f"{low:.2f} to {high:.2f}", int(there.sum()), said, true))
    return error, lines


def report(regime: str, rows: Sequence[Asked], relevance: Sequence[Floats]) -> None:
    """Print the reliability table of a regime's probability."""
    for kind in dict.fromkeys(row.kind for row in rows):
        places = [place for place, row in enumerate(rows) if row.kind == kind]
        said = np.concatenate([relevance[place][:_SHOWN] for place in places])
        true = np.concatenate([rows[place].answers[:_SHOWN] for place in places])
        error, _ = calibration_error(said, true)
        print(f"{regime}, {kind}: {len(places)} questions, {len(said)} hits, error {error:.4f}")
    said = np.concatenate([each[:_SHOWN] for each in relevance])
    true = np.concatenate([row.answers[:_SHOWN] for row in rows])
    error, lines = calibration_error(said, true)
    print(f"{regime}: expected calibration error {error:.4f}, AUC of the question {_auc(rows, relevance):.3f}")
    for name, count, mean, share in lines:
        print(f"  {name}: {count:6} hits, said {mean:.3f}, so {share:.3f}")


def _auc(rows: Sequence[Asked], relevance: Sequence[Floats]) -> float:
    """How surely the best hit tells a question that something answers from one that nothing does."""
    best = np.array([each.max(initial=0.0) for each in relevance])
    answered = np.array([bool(row.answers.any()) for row in rows])
    order = np.empty(len(best))
    order[np.argsort(best, kind="stable")] = np.arange(1, len(best) + 1)
    yes, no = int(answered.sum()), int((~answered).sum())
    return float((order[answered].sum() - yes * (yes + 1) / 2) / max(1, yes * no))


def gathered(path: Path | None, embedder: CachedEmbedder) -> Iterator[Asked]:
    """All questions in all modes; by vectors alone in those languages that the model reads."""
    for mode in _MODES if embedder.name == "minilm" else _WITH_VECTORS:
        yield from facts(embedder, mode)
        if mode != "vector" or embedder.name != "minilm":
            yield from chinese_lines(embedder, mode)
        if embedder.name != "minilm":
            yield from other_words(embedder, mode)
        if path:
            yield from conversations(path, embedder, mode)
        print(f"asked in mode {mode}", file=sys.stderr)


def fit(model: str, path: Path | None, *, write: bool) -> None:
    """Judge the tables of a model, and write them."""
    made_by = _MODELS[model]
    rows = [row for row in gathered(path, CachedEmbedder(made_by(), capacity=65_536)) if len(row.answers)]
    tables = json.loads(TABLE.read_text("utf-8"))["tables"]
    # What is known of words alone is fitted once, where the other model does not read a question.
    for regime in _REGIMES if made_by is MiniLM else _BY_VECTORS:
        of_regime = [row for row in rows if row.signals.regime == regime]
        relevance, answers = zip(*judged(of_regime), strict=True)
        report(f"{regime}, relevance", of_regime, relevance)
        report(f"{regime}, answers", of_regime, answers)
        tables.setdefault(of_regime[0].signals.model, {})[regime] = asdict(fitted(of_regime))
    if write:
        made = {"ranking": RULES, "tables": tables}
        TABLE.write_text(json.dumps(made, indent=2) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, nargs="?", help="LoCoMo's file; without it the conversations are left out")
    parser.add_argument("--model", choices=[*_MODELS, "all"], default="minilm", help="whose vectors are judged")
    parser.add_argument("--write", action="store_true", help="fit to everything and write the model's tables")
    arguments = parser.parse_args()
    for model in _MODELS if arguments.model == "all" else [arguments.model]:
        # The other model's tables are fitted to notes alone.
        fit(model, arguments.path if model == "minilm" or arguments.model != "all" else None, write=arguments.write)


if __name__ == "__main__":
    main()
