"""Requests of the index to a provider through litellm, the import of that package, and its exceptions.

Invariants: litellm is imported at the first need, quiet and offline; it retries nothing; each of its exceptions ends
here as a `ProviderFailed`. An exception's text may quote a request, so it is read and never shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from indexer.errors import EmbedderUnavailable, EmbeddingError
from indexer.providers.environment import variables
from indexer.providers.errors import EmbeddingFailure, read_failure


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderMessage:
    """Content of an exception.

    Attributes:
        text: Texts of litellm and the provider.
        status: The HTTP status of the provider's answer; None without one.
        wait_seconds: Seconds of its `Retry-After`; None without one.
    """

    text: str
    status: int | None
    wait_seconds: float | None


def litellm_package() -> Any:
    """The package litellm, imported offline.

    Raises:
        ImportError: It, or a package that it needs, is not installed.
    """
    # Without the first it fetches a list of prices when it is imported; without the second it reads a .env file.
    with variables(LITELLM_LOCAL_MODEL_COST_MAP="True", LITELLM_MODE="PRODUCTION"):
        import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    # It takes the 0 that it is given for nothing given. Source: litellm 1.106, llms/openai/openai.py, embedding
    litellm.DEFAULT_MAX_RETRIES = 0
    return litellm


def _even_timeout(seconds: float) -> float:
    """A timeout rounded up to one digit: the package keeps a client with connections for each value.

    The time until a deadline is a new number each time; unrounded, no two requests would share a connection.
    """
    unit = 10.0 ** math.floor(math.log10(seconds))
    return math.ceil(seconds / unit) * unit


def provider_message(error: BaseException) -> ProviderMessage:
    """Content of an exception of litellm and of those that caused it."""
    chain = list(error_chain(error))
    answers = [
        (one_error, status) for one_error in chain if isinstance(status := getattr(one_error, "status_code", None), int)
    ]
    return ProviderMessage(
        text=" | ".join(dict.fromkeys(str(one_error) for one_error in (error, *(one for one, _ in answers)))),
        # The last is the provider's own: litellm makes a 429 of another's 413.
        status=answers[-1][1] if answers else None,
        wait_seconds=next((seconds for one_error in chain if (seconds := _retry_after(one_error)) is not None), None),
    )


def error_chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and those that caused it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _retry_after(error: BaseException) -> float | None:
    response = getattr(error, "response", None)
    for headers in (getattr(error, "litellm_response_headers", None), getattr(response, "headers", None)):
        value = headers.get("retry-after") if headers else None
        if value:
            return _seconds_until(str(value))
    return None


def _seconds_until(value: str) -> float | None:
    """Seconds from a `Retry-After`, a number or a date; None if it is neither."""
    try:
        seconds = float(value)
        return max(seconds, 0.0) if math.isfinite(seconds) else None
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return max((moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A model and its address.

    Attributes:
        model: A litellm name.
        api_base: Address of the server; None is the provider's own.
        api_key: None is the variable that the provider names.
    """

    model: str
    api_base: str | None = None
    api_key: str | None = None


class ProviderFailed(Exception):
    """A failed request; the cause is litellm's exception."""

    def __init__(self, failure: EmbeddingFailure) -> None:
        super().__init__(failure.kind)
        self.failure = failure


def embed(target: Target, texts: Sequence[str], *, seconds: float, fields: Mapping[str, str]) -> list[object]:
    """Vectors of texts by one request, in the order of the texts and unchecked.

    Args:
        target: The model.
        texts: None of them empty.
        seconds: The timeout, rounded up to one digit.
        fields: Parameters of that provider alone.

    Raises:
        ProviderFailed: There was no answer, or an error.
        EmbeddingError: The numbering of the answer makes no sense.
        EmbedderUnavailable: litellm is not installed.
    """
    litellm = require_litellm(target.model)
    try:
        response = litellm.embedding(
            model=target.model,
            input=list(texts),
            encoding_format="float",
            drop_params=True,  # not every provider knows the one above
            **_common(target, seconds),
            **fields,
        )
    except Exception as error:  # litellm's have no common base, and its defects come as anything
        raise ProviderFailed(_failure(error)) from error
    return _in_order(response, target.model)


def rerank(target: Target, query: str, texts: Sequence[str], *, seconds: float) -> dict[int, float]:
    """Scores of texts for a question by one request: score by index of the text.

    Raises:
        ProviderFailed: There was no answer, or an error.
        EmbedderUnavailable: litellm is not installed.
    """
    litellm = require_litellm(target.model)
    try:
        response = litellm.rerank(
            model=target.model, query=query, documents=list(texts), top_n=len(texts), return_documents=False,
            **_common(target, seconds),
        )  # fmt: skip
        return {int(result["index"]): float(result["relevance_score"]) for result in response.results or ()}
    except Exception as error:
        raise ProviderFailed(_failure(error)) from error


def _common(target: Target, seconds: float) -> dict[str, object]:
    place = {"api_base": target.api_base, "api_key": target.api_key}
    known_fields = {name: value for name, value in place.items() if value}
    return {"timeout": _even_timeout(seconds), "max_retries": 0, "num_retries": 0, **known_fields}


def _in_order(response: Any, name: str) -> list[object]:
    """The vectors of an answer in the order of the texts."""
    entries = list(getattr(response, "data", None) or ())
    pairs = [(_field(entry, "index"), _field(entry, "embedding")) for entry in entries]
    indices = [index for index, _ in pairs if isinstance(index, int)]
    if len(indices) == len(pairs) and len(set(indices)) > 1:
        if sorted(indices) != list(range(len(pairs))):
            raise EmbeddingError(
                f"The model {name} numbered its {len(pairs):,} vectors {min(indices)} to {max(indices)}, "
                "some twice or not at all. Ask its provider, or choose another embedding_model."
            )
        pairs.sort(key=lambda entry: entry[0] or 0)
    return [vector for _, vector in pairs]


def _field(entry: Any, name: str) -> Any:
    return entry.get(name) if isinstance(entry, dict) else getattr(entry, name, None)


def _failure(error: Exception) -> EmbeddingFailure:
    if isinstance(error, ImportError):
        return EmbeddingFailure(kind="unusable")
    message = provider_message(error)
    return read_failure(message.text, status=message.status, wait_seconds=message.wait_seconds)


def require_litellm(model: str) -> Any:
    """The package litellm, for a model.

    Raises:
        EmbedderUnavailable: It is not installed.
    """
    try:
        return litellm_package()
    except ImportError as error:
        raise EmbedderUnavailable(
            f"The model {model} needs the package {error.name or 'litellm'}, which cannot be imported. "
            'Install it with pip install "memory-service[llm]", or choose another model.'
        ) from error
