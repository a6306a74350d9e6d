"""Embedder and reranker that ask a provider through litellm.

Invariants: nothing is sent before the first text; a request that fails, or a text that is refused, costs no other its
vector; after a hopeless failure (no key, no credit, no such model) the provider is left alone for a while; no error
that leaves has the text of a memory or of a provider's error. Retries and waits are our own: litellm retries nothing.
A reranker sends one request for one question's texts, never again, as the question waits.

`Limits` learns from refusals how many texts, tokens and characters one request may have, for as long as the process
lasts; a limit only ever falls. Sizes are estimates, so a provider's number is taken in the proportion in which the
estimate was wrong.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from indexer.common.lru import LRU
from indexer.common.patterns import lazy_regex
from indexer.common.scripts import DENSE
from indexer.embeddings.base import empty_rows, unit_rows, without_surrogates
from indexer.embeddings.model_folder import Prompts, prompts_of, reads_more_than_latin
from indexer.embeddings.reranking import DEADLINE_SECONDS, RERANKED_HITS, Scores
from indexer.errors import EmbedderUnavailable, EmbeddingError
from indexer.language.terms import is_spaced
from indexer.providers.errors import HOPELESS, SIZES, EmbeddingFailure, FailureKind
from indexer.providers.litellm_package import ProviderFailed, Target, embed, require_litellm, rerank
from indexer.types import Vectors

# What every provider takes that we know of, but for a few, which say so. Four requests of a sync's 256 texts run at
# once, so more in one would not be faster.
_ITEMS = 64
_REQUEST_TOKENS = 32_000
# A text that is too long even at this length is refused for another reason.
_SHORTEST_CHARACTERS = 32
# How long a reranking model that failed is left alone.
_RERANKER_REST_SECONDS = 30.0
# Longest wait that a provider may ask for; after that the call fails and says so.
_LONGEST_WAIT_SECONDS = 60.0
# Left free, as another text may have more tokens to the character.
_MARGIN = 0.9
_DENSE_CHARACTER = lazy_regex(f"[{DENSE}]")


def estimated_tokens(text: str) -> int:
    """Size of a text: characters / 4, CJK characters one token each; at least 1."""
    quarters = len(text) if text.isascii() else len(text) + 3 * len(_DENSE_CHARACTER.findall(text))
    return max(1, -(-quarters // 4))


class Limits:
    """Limits of one request to a provider. Thread-safe."""

    def __init__(self) -> None:
        self._items = _ITEMS
        self._request_tokens = _REQUEST_TOKENS
        self._text_tokens: int | None = None
        self._learning = threading.Lock()

    def batches(self, texts: Sequence[str]) -> Iterator[range]:
        """Indices 0..n-1 in batches within the limits; a text that exceeds them alone has its own batch."""
        start = tokens = 0
        for place, text in enumerate(texts):
            size = estimated_tokens(text)
            if place > start and (place - start >= self._items or tokens + size > self._request_tokens):
                yield range(start, place)
                start, tokens = place, 0
            tokens += size
        if texts:
            yield range(start, len(texts))

    def truncate(self, text: str) -> str:
        """The beginning of a text that the model takes, as far as that is known."""
        limit = self._text_tokens
        while limit is not None and len(text) > _SHORTEST_CHARACTERS and (size := estimated_tokens(text)) > limit:
            text = text[: max(_SHORTEST_CHARACTERS, min(len(text) * limit // size, len(text) - 1))]
        return text

    def learn(self, failure: EmbeddingFailure, texts: Sequence[str]) -> bool:
        """Lower a limit after a refusal; False if the same texts would be sent in the same way again.

        Args:
            failure: `items`, `request`, or `text` for a single text.
            texts: The refused texts.
        """
        tokens = sum(map(estimated_tokens, texts))
        with self._learning:
            if len(texts) == 1:
                return self._learn_text(failure, texts[0], tokens)
            if failure.kind == "items":
                self._items = min(self._items, failure.limit or len(texts) // 2, len(texts) - 1)
            elif failure.kind == "request":
                self._request_tokens = min(self._request_tokens, _estimate_of_limit(failure, tokens))
            else:
                return False
        return True

    def _learn_text(self, failure: EmbeddingFailure, text: str, tokens: int) -> bool:
        if failure.kind == "items" or len(text) <= _SHORTEST_CHARACTERS:
            return False
        limit = _estimate_of_limit(failure, tokens)
        self._text_tokens = limit if self._text_tokens is None else min(self._text_tokens, limit)
        return True


def _estimate_of_limit(failure: EmbeddingFailure, tokens: int) -> int:
    """A provider's limit in our estimate of tokens, which was `tokens` for the refused texts; always less."""
    if failure.limit and failure.given and failure.given > failure.limit:
        return max(1, int(tokens * failure.limit / failure.given * _MARGIN))
    if failure.limit and failure.limit < tokens:
        return max(1, int(failure.limit * _MARGIN))
    return max(1, tokens // 2)


LITELLM_PREFIX = "litellm/"

# Requests at the same time while many texts are embedded.
_PARALLEL = 4
# So few texts are what somebody has just written and waits for: a provider that hangs has as long for them as for a
# question. They get their vectors later.
_FEW_TEXTS = 32
_SHORTEST_SECONDS = 0.1
# Names of refused texts that are remembered, 16 bytes each.
_REFUSED_TEXTS = 10_000
_RULES = 1

# How a provider is told what a text is for: the parameter, for what is stored, for a question. Others are told by
# what stands before the text, or need not know.
# Source: the providers' references of their embedding endpoints, and litellm/llms/<provider>.
_PURPOSES: dict[str, tuple[str, str, str]] = {
    "cohere": ("input_type", "search_document", "search_query"),
    "bedrock/cohere": ("input_type", "search_document", "search_query"),
    "azure_ai/cohere": ("input_type", "document", "query"),
    "gemini": ("task_type", "RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"),
    "jina_ai/jina-embeddings-v3": ("task", "retrieval.passage", "retrieval.query"),
    "jina_ai/jina-embeddings-v4": ("task", "retrieval.passage", "retrieval.query"),
    "nvidia_nim": ("input_type", "passage", "query"),
    "vertex_ai": ("task_type", "RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"),
    "voyage": ("input_type", "document", "query"),
}

_LATER = "Until it answers, texts are found by their words; then they get their vectors."
_SAYINGS: dict[FailureKind, tuple[str, str]] = {
    "quota": ("has no quota or credit left", f"Pay at its provider. {_LATER}"),
    "auth": ("refused the key", "Set the key in the variable that its provider names, such as OPENAI_API_KEY."),
    "unusable": ("is not there, or embeds no texts", "Check embedding_model and embedding_api_base."),
    "wait": ("is asked too often", _LATER),
    "passing": ("cannot be reached or is overloaded", f"Check embedding_api_base. {_LATER}"),
    "refused": ("refuses every text", "Check embedding_model and embedding_api_base."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One call of the embedder; `deadline` on `time.monotonic` ends its retries, None does not."""

    query: bool
    deadline: float | None = None


class LiteLLMEmbedder:
    """An embedding model by its litellm name.

    Args:
        model: Such as "openai/text-embedding-3-small", "voyage/voyage-3.5" or "ollama/bge-m3".
        api_base: Its address; None is the provider's own.
        api_key: Its key; None is the variable that the provider names.
        retries: Further tries after a failure that may pass: 408, 409, 429, 5xx and broken connections.
        backoff_seconds: The wait before the first of them; it doubles each time and varies by a quarter.
        try_seconds: Timeout of one request of an index run.
        query_seconds: Timeout of a question, or of a few texts just written, all tries together.
        rest_seconds: How long a provider that cannot be used is left alone.
    """

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        retries: int = 4,
        backoff_seconds: float = 0.5,
        try_seconds: float = 60.0,
        query_seconds: float = 10.0,
        rest_seconds: float = 30.0,
    ) -> None:
        self.name = LITELLM_PREFIX + model
        self._model = model
        self._target = Target(model=model, api_base=api_base or None, api_key=api_key or None)
        self._retries = retries
        self._backoff_seconds = backoff_seconds
        self._try_seconds = try_seconds
        self._query_seconds = query_seconds
        self._rest_seconds = rest_seconds
        purpose = _purpose(model)
        self._purpose = purpose
        self._prompts = Prompts() if purpose else prompts_of(model)
        self._fingerprint = _fingerprint(self._target, purpose, self._prompts)
        self._limits = Limits()
        self._cache: LRU[bytes, bool] = LRU(_REFUSED_TEXTS)
        self._dimensions = 0
        self._resting: tuple[float, str] = (0.0, "")

    @property
    def dimensions(self) -> int:
        """See `Embedder`; 0 before the first text."""
        return self._dimensions

    @property
    def fingerprint(self) -> str:
        """See `Embedder`; another address may serve another model under the same name."""
        return self._fingerprint

    def reads(self, text: str) -> bool:
        """See `Embedder`; scripts without spaces only if the model's name says so, as its tokens are unknown."""
        return bool(reads_more_than_latin(self._model)) or is_spaced(text)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`; where some texts got no vector, the error has those of the others."""
        if not texts:
            return np.zeros((0, self._dimensions), np.float32)
        return self._embed(texts, query=False)

    def embed_query(self, text: str) -> Vectors:
        """See `Embedder`."""
        row: Vectors = self._embed([text], query=True)[0]
        return row

    # --- many texts --------------------------------------------------------------------------------------------

    def _embed(self, texts: Sequence[str], *, query: bool) -> Vectors:
        self._check_resting()
        require_litellm(self._model)
        # Only now: that may have taken seconds.
        waited_for = query or len(texts) <= _FEW_TEXTS
        call = _Call(query=query, deadline=time.monotonic() + self._query_seconds if waited_for else None)
        sent_texts = [self._limits.truncate(self._with_prompt(text, call)) for text in texts]
        vectors: list[Vectors | None] = [None] * len(texts)
        failed_value: EmbeddingError | None = None
        for places, outcome in self._ask_batches(sent_texts, call):
            if isinstance(outcome, EmbeddingError):
                # The first tells the cause, unless a later one is hopeless.
                failed_value = (
                    outcome if failed_value is None or isinstance(outcome, EmbedderUnavailable) else failed_value
                )
            else:
                for place, row in zip(places, outcome, strict=True):
                    vectors[place] = row
        return self._gather(vectors, failed_value)

    def _ask_batches(
        self, texts: list[str], call: _Call
    ) -> Iterator[tuple[range, list[Vectors | None] | EmbeddingError]]:
        """Batches of texts, several at a time, each with its rows or its error."""
        batches = list(self._limits.batches(texts))

        def ask(places: range) -> list[Vectors | None] | EmbeddingError:
            try:
                return self._rows([texts[place] for place in places], call)
            except EmbeddingError as error:
                return error

        # The first is asked alone: a wrong key is refused once, and limits are learned before many run into them.
        if len(batches) == 1 or not self._dimensions:
            yield batches[0], ask(batches[0])
            del batches[0]
        if not batches:
            return
        with ThreadPoolExecutor(_PARALLEL, thread_name_prefix="embedding") as pool:
            futures: list[Future[list[Vectors | None] | EmbeddingError]] = [
                pool.submit(ask, places) for places in batches
            ]
            try:
                yield from ((places, future.result()) for places, future in zip(batches, futures, strict=True))
            finally:
                pool.shutdown(cancel_futures=True)

    def _gather(self, new_vectors: list[Vectors | None], error: EmbeddingError | None) -> Vectors:
        """All rows as one array; where some are missing, the error has the others."""
        missing = sum(row is None for row in new_vectors)
        if missing == len(new_vectors):
            raise error or EmbeddingError(_refusal(self.name, missing, len(new_vectors)))
        vectors = np.zeros((len(new_vectors), self._dimensions), np.float32)
        for place, row in enumerate(new_vectors):
            if row is not None:
                vectors[place] = row
        if error is not None:
            error.vectors = vectors
            raise error
        if missing:
            raise EmbeddingError(_refusal(self.name, missing, len(new_vectors)), vectors=vectors)
        return vectors

    def _with_prompt(self, text: str, call: _Call) -> str:
        # Not every provider reads lone surrogates in JSON; most refuse an empty text.
        readable = without_surrogates(text)
        return (self._prompts.query if call.query else self._prompts.document) + (readable if readable.strip() else ".")

    # --- one batch ---------------------------------------------------------------------------------------------

    def _rows(self, texts: list[str], call: _Call) -> list[Vectors | None]:
        """Rows of some texts; None for one that the provider refuses in every way."""
        if len(texts) == 1 and _name_of(texts[0]) in self._cache:
            return [None]
        try:
            return self._request_rows(texts, call)
        except ProviderFailed as provider:
            failure, cause = provider.failure, provider.__cause__
        if self._limits.learn(failure, texts):
            texts = [self._limits.truncate(text) for text in texts]
            batches = list(self._limits.batches(texts))
        elif len(texts) > 1:
            batches = [range(len(texts) // 2), range(len(texts) // 2, len(texts))]
        else:
            self._leave_out(texts[0], call, cause)
            return [None]
        return [row for places in batches for row in self._rows([texts[place] for place in places], call)]

    def _leave_out(self, text: str, call: _Call, cause: BaseException | None) -> None:
        """Remember a refused text, if the provider refuses that text and not every one."""
        if not self._dimensions:
            try:
                self._request_rows([self._with_prompt("hello", call)], call)
            except ProviderFailed:
                raise self._unavailable("refused", 1, None) from cause
        self._cache[_name_of(text)] = True

    def _request_rows(self, texts: list[str], call: _Call) -> list[Vectors | None]:
        """Rows by one request, retried as far as that is of use.

        Raises:
            ProviderFailed: It does not take these texts together, or none of them.
        """
        tries = 0
        while True:
            self._check_resting()
            tries += 1
            try:
                items = self._try(texts, call)
            except ProviderFailed as provider:
                failure = provider.failure
                if failure.kind in SIZES or failure.kind == "refused":
                    raise
                wait = self._wait_seconds(failure, tries)
                # After a rest one try tells whether it is back.
                retries = 0 if self._resting[1] else self._retries
                if failure.kind in HOPELESS or tries > retries or not self._may_wait(wait, call):
                    raise self._unavailable(failure.kind, tries, wait) from provider.__cause__
                time.sleep(wait)
                continue
            rows = unit_rows(self.name, items, texts=len(texts), dimensions=self._dimensions)
            self._dimensions, self._resting = rows.shape[1], (0.0, "")
            bad = set(empty_rows(rows))
            return [None if place in bad else row for place, row in enumerate(rows)]

    def _try(self, texts: list[str], call: _Call) -> list[object]:
        parameter, document, query = self._purpose or ("", "", "")
        fields = {parameter: query if call.query else document} if parameter else {}
        seconds = self._try_seconds
        if call.deadline is not None:
            seconds = min(seconds, max(_SHORTEST_SECONDS, call.deadline - time.monotonic()))
        return embed(self._target, texts, seconds=seconds, fields=fields)

    # --- failures ----------------------------------------------------------------------------------------------

    def _wait_seconds(self, failure: EmbeddingFailure, tries: int) -> float:
        if failure.wait_seconds is not None:
            return failure.wait_seconds
        return min(self._backoff_seconds * 2.0 ** (tries - 1) * random.uniform(0.75, 1.25), _LONGEST_WAIT_SECONDS)

    def _may_wait(self, seconds: float, call: _Call) -> bool:
        in_time = call.deadline is None or time.monotonic() + seconds < call.deadline
        return in_time and seconds <= _LONGEST_WAIT_SECONDS

    def _unavailable(self, kind: FailureKind, tries: int, wait_seconds: float | None) -> EmbedderUnavailable:
        """Error for a provider that cannot be used, which is left alone for a while from now on."""
        text, remedy = _SAYINGS[kind]
        rest = self._rest_seconds
        if kind == "wait" and wait_seconds and wait_seconds > _LONGEST_WAIT_SECONDS:
            text, rest = f"asks to wait for {wait_seconds:,.0f} seconds", min(wait_seconds, 3_600.0)
        times = f" ({tries} tries)" if tries > 1 else ""
        message = f"The embedding model {self._model} {text}{times}. {remedy}"
        self._resting = time.monotonic() + rest, message
        return EmbedderUnavailable(message)

    def _check_resting(self) -> None:
        until, message = self._resting
        if message and time.monotonic() < until:
            raise EmbedderUnavailable(message)


def _refusal(name: str, missing: int, texts: int) -> str:
    return (
        f"The model {name} gave no usable vector for {missing:,} of {texts:,} texts. "
        "They are found by their words; nothing else is needed."
    )


def _purpose(model: str) -> tuple[str, str, str] | None:
    lower = model.lower()
    return next((purpose for prefix, purpose in _PURPOSES.items() if lower.startswith(prefix)), None)


def _fingerprint(target: Target, purpose: tuple[str, str, str] | None, prompts: Prompts) -> str:
    place = (target.api_base or "").rstrip("/")
    text = repr((place, purpose, prompts.query, prompts.document, _RULES))
    return f"litellm-{target.model}-{blake2b(text.encode(), digest_size=4).hexdigest()}"


def _name_of(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


class LiteLLMReranker:
    """A reranking model by its litellm name.

    Args:
        model: Such as "cohere/rerank-v3.5", "voyage/rerank-2.5" or "hosted_vllm/BAAI/bge-reranker-v2-m3".
        api_base: Its address; None is the provider's own.
        api_key: Its key; None is the variable that the provider names.
    """

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
    ) -> None:
        self.name = LITELLM_PREFIX + model
        self.at_once = RERANKED_HITS
        self._target = Target(model=model, api_base=api_base or None, api_key=api_key or None)
        self._resting = 0.0

    def score(self, query: str, texts: Sequence[str]) -> Scores:
        """See `Reranker.score`."""
        if time.monotonic() < self._resting:
            raise EmbedderUnavailable(
                f"The model {self.name} failed a moment ago. Ask again in {_RERANKER_REST_SECONDS:g} s, "
                "or unset rerank_model."
            )
        try:
            values = rerank(self._target, query, texts, seconds=DEADLINE_SECONDS)
        except ProviderFailed as provider:
            self._resting = time.monotonic() + _RERANKER_REST_SECONDS
            raise EmbedderUnavailable(
                f"The model {self.name} cannot be asked ({provider.failure.kind}). "
                "Check rerank_model, its key and embedding_api_base."
            ) from provider.__cause__
        if set(values) != set(range(len(texts))):
            raise EmbeddingError(
                f"The model {self.name} gave {len(values)} scores for {len(texts)} texts. Choose another rerank_model."
            )
        return np.array([values[place] for place in range(len(texts))])
