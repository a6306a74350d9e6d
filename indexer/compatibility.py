"""Compatibility of an index with the configured embedder and rules, and the status of an index.

Invariants: vectors of two models are never mixed; an index that has to do without something says so. To tell the model
that an index would be built with embeds nothing and uses no network, so a status never waits for a provider; a model
that is not there now is taken for the one that built the index, so that nothing is rebuilt for its absence.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from indexer.documents import formats, markdown, transcripts
from indexer.embeddings.base import Embedder
from indexer.embeddings.bundled import LanguageChoice
from indexer.errors import EmbedderUnavailable, EmbeddingError, StoreOutdated
from indexer.language import terms
from indexer.language.languages import Writing
from indexer.stores.base import IndexStore, StoreCounts
from indexer.sync.rebuild import RebuildState
from indexer.types import FileFailure, Fingerprint, Mode, SyncProgress, Vectors

_RULES = re.compile(r"([a-z]+)-([0-9]+)")
_FIRST_TEXT = "The first text tells how long the vectors are."


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus:
    """Status of an index.

    Attributes:
        stored: What it was built with; None before the first sync.
        current: What a sync would build it with now.
        pending: Files that were added, changed or removed since the last sync.
        failed: Files that could not be indexed.
        rebuild: Progress of a running or interrupted rebuild.
        problem: Why the model cannot be used, as far as that shows without using it; empty where nothing is known.
        unjudged: Why hits have no relevance, as `degraded` says it; empty where they have.
        packed: Passages of the packed part, which is searched by compact codes first; 0 for a small index.
        slow: Why the index is not packed although it is large; empty where it is, or need not be.
        syncing: Progress of a sync that runs in this process; None if none does.
        unread: Why replaced values may stand unmarked, as `degraded` says it; empty where they do not.
        choice: Which model was chosen by what the workspace is written in, and why; empty where a name is configured.
        moving: True if the index goes on with another model until it is made anew with that one.
    """

    counts: StoreCounts | None
    stored: Fingerprint | None
    current: Fingerprint
    pending: int
    failed: tuple[FileFailure, ...]
    rebuild: RebuildState | None = None
    problem: str = ""
    unjudged: str = ""
    packed: int = 0
    slow: str = ""
    unread: str = ""
    syncing: SyncProgress | None = None
    choice: str = ""
    moving: bool = False

    @property
    def unembedded(self) -> int:
        """Number of passages without a vector that the model should have made."""
        counts = self.counts
        return counts.passages - counts.embedded if counts and (self.current.model or self.problem) else 0

    @property
    def outdated(self) -> str:
        """Why the index should be rebuilt, and what to do; empty if it is up to date."""
        if self.stored is None or self.moving or not rebuild_reason(self.stored, self.current):
            return ""
        if self.rebuild and self.rebuild.running and self.rebuild.current:
            share = f"{self.rebuild.share:.0%} of the files are done"
            return f"{_difference(self.stored, self.current)}, and is being made anew: {share}. Wait for that."
        return rebuild_reason(self.stored, self.current)


def rebuild_reason(stored: Fingerprint, current: Fingerprint) -> str:
    """Why an index should be rebuilt, and how; empty if it need not. An index of words alone fits any model."""
    if not stored.model:
        current = replace(current, model="", dimensions=0)
    if stored == current:
        return ""
    difference = _difference(stored, current)
    if _is_older(stored, current):
        how = "A server makes it anew by itself, `memory-service reindex` at once"
    elif stored.schema > current.schema:
        how = "Update this installation, or run `memory-service reindex --full` to build it anew"
    else:
        how = "Run `memory-service reindex --full` to build it anew"
    return f"{difference}. {how}; no memory is lost."


def _is_older(fingerprint: Fingerprint, current: Fingerprint) -> bool:
    """True if an older version made an index, so that it is made anew without anybody having to ask for it."""
    if fingerprint.schema != current.schema:
        return fingerprint.schema < current.schema
    before, now = _versions(fingerprint.rules), _versions(current.rules)
    return before != now and before.keys() == now.keys() and all(before[name] <= now[name] for name in now)


def _versions(rules: str) -> dict[str, int]:
    """The versions of all rules, by name, of "passages-6/terms-8"; empty where they are not of this form."""
    matches = [_RULES.fullmatch(part) for part in rules.split("/")]
    return {match[1]: int(match[2]) for match in matches if match} if all(matches) else {}


def _difference(fingerprint: Fingerprint, current: Fingerprint) -> str:
    if fingerprint.schema != current.schema:
        age = "an older" if fingerprint.schema < current.schema else "a newer"
        text = f"made by {age} version (schema {fingerprint.schema}, and this one reads {current.schema})"
    elif fingerprint.model == current.model and 0 < current.dimensions != fingerprint.dimensions:
        now = f"{current.model} gives {current.dimensions:,} now"
        text = f"made of vectors of {fingerprint.dimensions:,} numbers, and {now}"
    elif fingerprint.model != current.model:
        text = f"made with the model {fingerprint.model or 'none'}, and {current.model or 'none'} is configured"
    elif _is_older(fingerprint, current):
        text = "made by an older version"
    else:
        text = "made by another version"
    return f"The index was {text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A model as an index knows it.

    Attributes:
        model: Its fingerprint; empty for none.
        dimensions: Length of its vectors; 0 for none, and where only a text would tell.
        problem: Why it cannot be used; empty if nothing is known against it.
    """

    model: str = ""
    dimensions: int = 0
    problem: str = ""


def _identify(embedder: Embedder | None, stored: Callable[[], Fingerprint | None]) -> Identity:
    """The model that an index would be built with now.

    Args:
        embedder: The configured one.
        stored: Gives the fingerprint of the index; called only where the model itself does not tell.
    """
    if embedder is None:
        return Identity()
    try:
        model = embedder.fingerprint
    except EmbedderUnavailable as error:
        fingerprint = stored()
        if fingerprint is None:
            return Identity(problem=str(error))
        return Identity(model=fingerprint.model, dimensions=fingerprint.dimensions, problem=str(error))
    dimensions = embedder.dimensions
    if not dimensions:
        fingerprint = stored()
        dimensions = fingerprint.dimensions if fingerprint and fingerprint.model == model else 0
    return Identity(model=model, dimensions=dimensions)


def _learn(embedder: Embedder | None, *, briefly: bool = False) -> None:
    """Have a model say what has to be known before an index is built with it; it may embed a text for that.

    Args:
        embedder: The configured one.
        briefly: Embed it as a question: that fetches no model, and gives a provider only seconds to answer.

    Raises:
        EmbeddingError: The model does not answer.
    """
    if embedder is None:
        return
    try:
        is_known = bool(embedder.fingerprint and embedder.dimensions)
    except EmbedderUnavailable:
        is_known = False
    if not is_known and briefly:
        embedder.embed_query(_FIRST_TEXT)
    elif not is_known:
        embedder.embed_documents([_FIRST_TEXT])


class IndexCompatibility:
    """An embedder, or the choice of one, and the index that it serves.

    Args:
        store: The index.
        embedder: The embedder, or the two that it is chosen from; None for none.
        written: Reads what the workspace is written in.
    """

    def __init__(
        self, store: IndexStore, embedder: Embedder | LanguageChoice | None, written: Callable[[], Writing]
    ) -> None:
        self._store = store
        self._given = embedder
        self._written = written
        self._chosen: Embedder | None = None

    @property
    def target_embedder(self) -> Embedder | None:
        """The embedder that the index would be made with now; None for none."""
        if not isinstance(self._given, LanguageChoice):
            return self._given
        if self._chosen is None:
            fingerprint = self._store.head().fingerprint
            maker = self._given.maker(fingerprint.model) if fingerprint else None
            return maker or self._choose(self._given)[0]
        return self._chosen

    def choose(self) -> str:
        """Look at what is written and choose the embedder by it; which and why, empty where none is chosen."""
        if not isinstance(self._given, LanguageChoice):
            return ""
        embedder, writing = self._choose(self._given)
        return f"{embedder.name}, as {self._given.reason(embedder, writing)}"

    def _choose(self, given_choice: LanguageChoice) -> tuple[Embedder, Writing]:
        fingerprint, writing = self._store.head().fingerprint, self._written()
        self._chosen = given_choice.choose(writing, fingerprint.model if fingerprint else "")
        return self._chosen, writing

    def is_moving(self, fingerprint: Fingerprint | None) -> bool:
        """True if an index is served by one of the two models, and the other was chosen for it since."""
        maker = self.embedder(fingerprint) if fingerprint and fingerprint.model else None
        return maker is not None and maker is not self.target_embedder

    @property
    def current(self) -> Fingerprint:
        """Fingerprint that the index would be built with now."""
        model = self._identity()
        return Fingerprint(
            model=model.model,
            dimensions=model.dimensions,
            rules=f"{markdown.PASSAGE_RULES}/{transcripts.TRANSCRIPT_RULES}/{formats.FILE_RULES}/{terms.TERM_RULES}",
            schema=self._store.schema,
        )

    @property
    def problem(self) -> str:
        """Why the model cannot be used, as far as that shows without using it; empty if nothing is known."""
        return self._identity().problem

    @property
    def is_unread(self) -> bool:
        """True if the index is of an older schema, of which nothing is read."""
        fingerprint = self._store.head().fingerprint
        return fingerprint is not None and fingerprint.schema < self._store.schema

    @property
    def lags(self) -> bool:
        """True if an older version made the index with other rules, and the same model; it answers all the same."""
        fingerprint, current = self._store.head().fingerprint, self.current
        if fingerprint is None or fingerprint.schema != current.schema or not _is_older(fingerprint, current):
            return False
        return not fingerprint.model or (fingerprint.model, fingerprint.dimensions) == (
            current.model,
            current.dimensions,
        )

    def require_readable(self) -> None:
        """Refuse an index of another schema.

        Raises:
            StoreOutdated: Another version made it.
        """
        fingerprint = self._store.head().fingerprint
        if fingerprint and fingerprint.schema != self._store.schema:
            raise StoreOutdated(rebuild_reason(fingerprint, self.current))

    @property
    def is_filled(self) -> bool:
        """True if the index holds anything that a rebuild would have to preserve."""
        fingerprint = self._store.head().fingerprint
        return fingerprint is not None and (
            fingerprint.schema != self._store.schema or bool(self._store.file_versions(1))
        )

    def embedder(self, fingerprint: Fingerprint | None) -> Embedder | None:
        """The embedder, if the vectors of an index are, or would be, its own."""
        if fingerprint is not None and isinstance(self._given, LanguageChoice):
            return self._given.maker(fingerprint.model)
        current = self.current
        fits = fingerprint is None or (fingerprint.model, fingerprint.dimensions) == (current.model, current.dimensions)
        return self.target_embedder if fits and current.model else None

    def dimensions(self) -> int | None:
        """Length of the stored vectors; None if a search cannot use them."""
        fingerprint = self._store.head().fingerprint
        if self.embedder(fingerprint) is None:
            return None
        return fingerprint.dimensions if fingerprint else self.current.dimensions

    def for_search(self, mode: Mode, degraded: list[str]) -> tuple[Embedder | None, Fingerprint | None]:
        """The embedder, if the stored vectors are its own, and the fingerprint of the index.

        Where it is None otherwise, the reason is added to `degraded`.

        Raises:
            StoreOutdated: Another version made the index.
        """
        fingerprint, current = self._store.head().fingerprint, self.current
        if fingerprint and fingerprint.schema != current.schema:
            raise StoreOutdated(rebuild_reason(fingerprint, current))
        if fingerprint and fingerprint.rules != current.rules:
            degraded.append(f"index: {rebuild_reason(fingerprint, current)}")
        if self._given is None:
            if mode == "vector":
                degraded.append("vector: no embedding model is configured. Set embedding_model and run a full reindex.")
            return None, fingerprint
        if mode == "text":
            return None, fingerprint
        usable = self.embedder(fingerprint)
        if fingerprint and usable is None:
            degraded.append(f"vector: {rebuild_reason(fingerprint, current) or self.problem or self._waiting()}")
        return usable, fingerprint

    def _waiting(self) -> str:
        name = self.target_embedder.name if self.target_embedder else "none"
        return f"The index has no vectors yet. They are made as soon as the model {name} answers."

    def fit_vector(self, vector: Vectors | None, stored: Fingerprint | None, degraded: list[str]) -> Vectors | None:
        """A question's vector if it is as long as the stored ones; otherwise None, with the reason."""
        if vector is None or stored is None or len(vector) == stored.dimensions:
            return vector
        degraded.append(f"vector: {rebuild_reason(stored, replace(stored, dimensions=len(vector)))}")
        return None

    def learn(self) -> None:
        """Have the model say what has to be known before an index is built with it.

        Raises:
            EmbeddingError: The model does not answer.
        """
        _learn(self.target_embedder)

    def learn_fingerprint(self) -> Fingerprint:
        """Fingerprint of an index that is to be made anew, of a model that was chosen now and says what it is.

        Raises:
            EmbeddingError: The model does not answer.
        """
        self.choose()
        self.learn()
        fingerprint = self.current
        if self.is_moving(self._store.head().fingerprint) and (embedder := self.embedder(fingerprint)) is not None:
            # The other one does: an index that answers is not given up for one that has no vectors.
            embedder.embed_query(_FIRST_TEXT)
        return fingerprint

    def learned_or_words(self) -> Fingerprint:
        """Fingerprint of an index that is to be made anew: of words alone, to take vectors later, without a model."""
        try:
            return self.learn_fingerprint()
        except EmbeddingError:
            return replace(self.current, model="", dimensions=0)

    def identify(self) -> None:
        """Fetch a model that is not on this machine, if there is an index that it may be another one for.

        Raises:
            EmbeddingError: It cannot be used.
        """
        if self.problem and self.is_filled:
            self.learn()

    def begin(self, *, full: bool, briefly: bool = False) -> tuple[Fingerprint, list[str]]:
        """Create the index if it is missing or to be built again; let one of words alone take vectors.

        Args:
            full: Build it again.
            briefly: Somebody waits: a model that has to tell the length of its vectors is asked as for a question,
                which it answers soon or not at all.

        Returns:
            Fingerprint of the index, and what a sync cannot do to it, each "part: why and what to do".

        Raises:
            StoreOutdated: Another version made it, and `full` is not set.
            EmbeddingError: The model does not say what it is, and there is an index that would lose its vectors.
        """
        if full or not self.is_filled:
            self.choose()
        fingerprint, current = self._store.head().fingerprint, self.current
        problem = ""
        if fingerprint is None or full or (fingerprint != current and not self.is_filled):
            problem = self._try_to_learn()
            # Without its size there is no room for vectors: the index goes by words until the model answers.
            current = replace(self.current, model="", dimensions=0) if problem else self.current
            fingerprint = self._store.begin(current, only_missing=fingerprint is None and not full)
        if fingerprint.schema != current.schema:
            raise StoreOutdated(rebuild_reason(fingerprint, current))
        if not fingerprint.model and self._given is not None and not problem:
            fingerprint, problem = self._with_vectors(fingerprint, briefly=briefly)
        current = self.current
        if self.is_moving(fingerprint):
            # It is served by its own model until it is made anew, which is no matter of this sync.
            current = replace(current, model=fingerprint.model, dimensions=fingerprint.dimensions)
        part = "index" if fingerprint.model == current.model else "vector"
        difference = rebuild_reason(fingerprint, current)
        return fingerprint, [
            *([f"{part}: {difference}"] if difference else []),
            *([f"vector: {problem}"] if problem else []),
        ]

    def _with_vectors(self, fingerprint: Fingerprint, *, briefly: bool) -> tuple[Fingerprint, str]:
        """The fingerprint of an index of words that takes vectors now, and why it does not."""
        try:
            _learn(self.target_embedder, briefly=briefly)
        except EmbeddingError as error:
            return fingerprint, str(error)
        model = self._identity()
        if not model.model or not model.dimensions:
            return fingerprint, model.problem or self._waiting()
        wanted_fingerprint = replace(fingerprint, model=model.model, dimensions=model.dimensions)
        return self._store.begin(wanted_fingerprint, keeping=fingerprint), ""

    def answers(self) -> str:
        """Why the model gives no vectors now, tried with one short question; empty if it does."""
        embedder = self.embedder(self._store.head().fingerprint) or self.target_embedder
        if embedder is None:
            return ""
        try:
            embedder.embed_query(f"Is somebody there? {time.monotonic_ns()}")
        except EmbeddingError as error:
            return str(error)
        return ""

    def _try_to_learn(self) -> str:
        try:
            self.learn()
        except EmbeddingError as error:
            if self.is_filled:
                raise
            return str(error)
        return ""

    def _identity(self) -> Identity:
        return _identify(self.target_embedder, lambda: self._store.head().fingerprint)
