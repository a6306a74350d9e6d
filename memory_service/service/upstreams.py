"""Upstreams: the providers that a client's call is sent on to, and which of them is asked for a model.

Rules: `NAME/MODEL` is the model of the upstream of that name, which gets the model's name alone; any other model goes
to the first upstream that speaks the call's protocol. Without configured upstreams there is one, made of `llm_model`:
`llm_api_base` or the provider's own address, with the provider's own key variable.

Invariants: pure but for the environment, which is read at each call and holds the keys; a key is never part of a
message; a caller's own key goes to no upstream where this server has keys of its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from memory_service.config import Settings, Upstream
from memory_service.errors import NotFound

CallProtocol = Literal["chat", "responses", "messages"]

_SPOKEN: dict[CallProtocol, frozenset[str]] = {
    "chat": frozenset({"openai", "chat"}),
    "responses": frozenset({"openai"}),
    "messages": frozenset({"anthropic"}),
}
_PATHS: dict[CallProtocol, str] = {"chat": "/chat/completions", "responses": "/responses", "messages": "/v1/messages"}
# The providers whose own protocols the gateway speaks, by litellm's names for them: address and variable of the key.
_OWN: dict[str, Upstream] = {
    "openai": Upstream(base_url="https://api.openai.com/v1", api_key_env="OPENAI_API_KEY"),
    "anthropic": Upstream(protocol="anthropic", base_url="https://api.anthropic.com", api_key_env="ANTHROPIC_API_KEY"),
}
# Providers that speak OpenAI's chat completions at `llm_api_base`, by litellm's names for them.
_LIKE_OPENAI = frozenset({
    "custom_openai", "deepseek", "fireworks_ai", "groq", "hosted_vllm", "litellm_proxy", "lm_studio", "mistral",
    "openai_like", "openrouter", "together_ai", "xai",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The place that a call goes to.

    Attributes:
        upstream: Its name.
        protocol: Its protocol.
        url: The route.
        model: The name of the model there.
        headers: Those that it needs, its key among them.
        takes_callers_key: Whether the caller's own key is sent on.
    """

    upstream: str
    protocol: str
    url: str
    model: str
    headers: Mapping[str, str]
    takes_callers_key: bool


class Upstreams:
    """The upstreams of a service.

    Args:
        settings: See `memory_service.config`.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._implicit = dict[str, Upstream]()
        provider = _provider(settings.llm_model)
        own = _OWN.get(provider)
        if own is None and provider in _LIKE_OPENAI and settings.llm_api_base:
            own = Upstream(protocol="chat", base_url=settings.llm_api_base, api_key_env=f"{provider.upper()}_API_KEY")
        if settings.llm_model and own:
            base = settings.llm_api_base or own.base_url
            self._implicit[provider] = own.model_copy(update={"base_url": base})

    @property
    def named(self) -> Mapping[str, Upstream]:
        """The upstreams by name: those configured, or the one that `llm_model` stands for."""
        return self._settings.gateway.upstreams or self._implicit

    def target(self, protocol: CallProtocol, model: str, path: str = "") -> Target:
        """The place that a call goes to.

        Args:
            protocol: What the caller speaks.
            model: What it asks for; empty is `llm_model`.
            path: What follows the route, such as `/count_tokens`.

        Raises:
            NotFound: No upstream speaks the protocol.
        """
        own_model = self._settings.llm_model
        wanted = model or own_model
        name, slash, rest = wanted.partition("/")
        spoken = _SPOKEN[protocol]
        if slash and name in self.named and self.named[name].protocol in spoken:
            return self._target(name, protocol, rest, path)
        for name, upstream in self.named.items():
            if upstream.protocol in spoken:
                return self._target(name, protocol, wanted, path)
        known = ", ".join(f"{name} ({upstream.protocol})" for name, upstream in self.named.items()) or "none"
        raise NotFound(
            f"No upstream speaks the protocol of this route; there are: {known}. "
            "Set gateway.upstreams, or llm_model to a model of OpenAI, of Anthropic, or of a server like OpenAI's with "
            "llm_api_base."
        )

    def listing(self, name: str) -> Target:
        """The place that lists the models of an upstream."""
        protocol: CallProtocol = "messages" if self.named[name].protocol == "anthropic" else "chat"
        target = self._target(name, protocol, "", "")
        return replace(target, url=target.url.removesuffix(_PATHS[protocol]) + _MODELS[protocol])

    @property
    def timeout_seconds(self) -> float:
        """How long an upstream may say nothing."""
        return self._settings.llm_timeout_seconds

    def _target(self, name: str, protocol: CallProtocol, model: str, path: str) -> Target:
        upstream = self.named[name]
        base = upstream.base_url.rstrip("/")
        key = os.environ.get(upstream.api_key_env, "") if upstream.api_key_env else ""
        if upstream.protocol == "anthropic":
            # Its own clients take the address without the version.
            base = base.removesuffix("/v1")
            headers = {"x-api-key": key} if key else {}
        else:
            headers = {"authorization": f"Bearer {key}"} if key else {}
        return Target(
            upstream=name,
            protocol=upstream.protocol,
            url=f"{base}{_PATHS[protocol]}{path}",
            model=model,
            headers=headers,
            takes_callers_key=not key and not self._settings.api_keys,
        )


_MODELS: dict[CallProtocol, str] = {"chat": "/models", "responses": "/models", "messages": "/v1/models"}


def _provider(model: str) -> str:
    """The provider of a litellm name; of one without, as litellm takes it."""
    provider, slash, _ = model.partition("/")
    return provider if slash else "anthropic" if model.startswith("claude") else "openai"
