"""Upstreams: the providers that a client's call is sent on to, and which of them is asked for a model.

Rules: `NAME/MODEL` is the model of the upstream of that name, which gets the model's name alone; any other model goes
to the first upstream that speaks the call's protocol. Without configured upstreams they are made of `llm_model`:
`llm_api_base` or the provider's own address, with the provider's own key variable; and litellm for the protocols that
this provider does not speak. A model without a provider's name is one of the provider of `llm_model` there.

Invariants: pure but for the environment, which is read at each call and holds the keys; a key is never part of a
message. The key of a caller is here only where this server has no keys of its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import urlsplit

from memory_service.config import Settings, Upstream
from memory_service.errors import NotFound
from memory_service.gateway.translation import TranslatedCall, UpstreamAnswer, translate_call

CallProtocol = Literal["chat", "responses", "messages"]

LITELLM = "litellm"
_SPOKEN: dict[CallProtocol, frozenset[str]] = {
    "chat": frozenset({"openai", "chat", LITELLM}),
    "responses": frozenset({"openai"}),
    "messages": frozenset({"anthropic", LITELLM}),
}
_PATHS: dict[CallProtocol, str] = {"chat": "/chat/completions", "responses": "/responses", "messages": "/v1/messages"}
# The providers whose own protocols the gateway speaks, by litellm's names for them: address and variable of the key.
_OWN: dict[str, Upstream] = {
    "openai": Upstream(base_url="https://api.openai.com/v1", api_key_env="OPENAI_API_KEY"),
    "anthropic": Upstream(protocol="anthropic", base_url="https://api.anthropic.com", api_key_env="ANTHROPIC_API_KEY"),
}
# litellm takes the key of each provider from a variable of its own.
_SECRET_VARIABLES = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
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
        url: The route; of litellm the address alone, empty for the provider's own.
        model: The name of the model there.
        headers: Those that it needs, its key among them.
        takes_callers_key: Whether the caller's own key is sent on.
        call: The protocol of the call.
        key: Its key, if one is set.
    """

    upstream: str
    protocol: str
    url: str
    model: str
    headers: Mapping[str, str]
    takes_callers_key: bool
    call: CallProtocol
    key: str = field(repr=False)


class Upstreams:
    """The upstreams of a service.

    Args:
        settings: See `memory_service.config`.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._implicit = dict[str, Upstream]()
        self._provider = provider = _provider(settings.llm_model)
        own = _OWN.get(provider)
        if own is None and provider in _LIKE_OPENAI and settings.llm_api_base:
            own = Upstream(protocol="chat", base_url=settings.llm_api_base, api_key_env=f"{provider.upper()}_API_KEY")
        if settings.llm_model and own:
            base = settings.llm_api_base or own.base_url
            self._implicit[provider] = own.model_copy(update={"base_url": base})
        if settings.llm_model:
            self._implicit[LITELLM] = Upstream(protocol="litellm", base_url=settings.llm_api_base)

    @property
    def by_name(self) -> Mapping[str, Upstream]:
        """The upstreams by name: those configured, or the ones that `llm_model` stands for."""
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
        wanted_model = model or own_model
        name, slash, rest = wanted_model.partition("/")
        spoken_keys = _SPOKEN[protocol]
        if slash and name in self.by_name and self.by_name[name].protocol in spoken_keys:
            return self._target(name, protocol, rest, path)
        for name, upstream in self.by_name.items():
            if upstream.protocol in spoken_keys:
                return self._target(name, protocol, wanted_model, path)
        known_text = ", ".join(f"{name} ({upstream.protocol})" for name, upstream in self.by_name.items()) or "none"
        raise NotFound(
            f"No upstream speaks the protocol of this route; there are: {known_text}. "
            "Set llm_model, or gateway.upstreams to one that does."
        )

    def passing(self, protocol: CallProtocol, named_text: str, path: str) -> Target:
        """The place that a request of any other path goes to.

        Args:
            protocol: What the caller speaks.
            named_text: The upstream that it names; empty for the first one that speaks the protocol itself.
            path: The path below the version, with percent signs.

        Raises:
            NotFound: No upstream speaks the protocol itself.
        """
        spoken_keys = _SPOKEN[protocol] - {LITELLM}
        name = named_text or next(
            (name for name, upstream in self.by_name.items() if upstream.protocol in spoken_keys), ""
        )
        if not name or self.by_name[name].protocol == LITELLM:
            raise NotFound(
                "No upstream has this path: it is passed on to a provider that speaks the client's own protocol, not "
                "to litellm. Set gateway.upstreams to one that does."
            )
        theirs: CallProtocol = "messages" if self.by_name[name].protocol == "anthropic" else "chat"
        target = self._target(name, theirs, "", "")
        version = "/v1/" if theirs == "messages" else "/"
        return replace(target, url=f"{target.url.removesuffix(_PATHS[theirs])}{version}{path}")

    @property
    def several(self) -> bool:
        """True if a model is told apart by the name of its upstream."""
        return len(self._settings.gateway.upstreams) > 1

    def is_listed(self, name: str) -> bool:
        """True if an upstream can be asked for its models."""
        return self.by_name[name].protocol != LITELLM

    def listing(self, name: str) -> Target:
        """The place that lists the models of an upstream."""
        protocol: CallProtocol = "messages" if self.by_name[name].protocol == "anthropic" else "chat"
        target = self._target(name, protocol, "", "")
        return replace(target, url=target.url.removesuffix(_PATHS[protocol]) + _MODELS[protocol])

    def secrets(self) -> frozenset[str]:
        """The keys that this server has: those of its callers, and those it may send to a provider."""
        variables = {upstream.api_key_env for upstream in self.by_name.values()}
        values = {value for name, value in os.environ.items() if name in variables or name.endswith(_SECRET_VARIABLES)}
        addresses = (self._settings.llm_api_base, *(upstream.base_url for upstream in self.by_name.values()))
        values |= {password for address in addresses if (password := urlsplit(address).password)}
        return frozenset({*values, *self._settings.api_keys} - {""})

    @property
    def timeout_seconds(self) -> float:
        """How long an upstream may say nothing."""
        return self._settings.llm_timeout_seconds

    def _target(self, name: str, protocol: CallProtocol, model: str, path: str) -> Target:
        upstream = self.by_name[name]
        base = upstream.base_url.rstrip("/")
        if upstream.protocol == LITELLM and not self._settings.gateway.upstreams:
            model = model if "/" in model else f"{self._provider}/{model}"
            # The address is that of one provider.
            base = base if _provider(model) == self._provider else ""
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
            url=base if upstream.protocol == LITELLM else f"{base}{_PATHS[protocol]}{path}",
            model=model,
            headers=headers,
            takes_callers_key=not key,
            call=protocol,
            key=key,
        )

    async def translate(self, target: Target, body: Mapping[str, Any]) -> UpstreamAnswer:
        """Send a call to any provider; see `memory_service.gateway.translation`."""
        if target.call == "responses":
            raise NotFound(f"The upstream {target.upstream} does not speak the protocol of this route. Name another.")
        return await translate_call(
            TranslatedCall(
                protocol=target.call,
                model=target.model,
                body=body,
                api_base=target.url,
                api_key=target.key,
                timeout_seconds=self.timeout_seconds,
            )
        )


_MODELS: dict[CallProtocol, str] = {"chat": "/models", "responses": "/models", "messages": "/v1/models"}


def _provider(model: str) -> str:
    """The provider of a litellm name; of one without, as litellm takes it."""
    provider, slash, _ = model.partition("/")
    return provider if slash else "anthropic" if model.startswith("claude") else "openai"
