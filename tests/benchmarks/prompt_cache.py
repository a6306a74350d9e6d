"""What 100 turns cost by the cache rules of three providers: blocks that stand, that move, and in the system prompt.

`python -m tests.benchmarks.prompt_cache` talks 100 turns with a session, writes a memory before each, and prices the
prompts that the service gives, and the same talk with one block, that of the newest turn: before its message, and in
the system prompt. Answers are not priced. Tokens are estimated (characters / 4).

Prices and rules are assumptions, dollars for a million tokens of input as the providers published them in 2025:
Anthropic writes a cache at 1.25 times the price and reads at a tenth, from 1,024 tokens on; OpenAI reads at a tenth
from 1,024 tokens on, by 128; DeepSeek at a tenth, by 64. Every turn comes before a cache ends.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memory_service.config import Settings
from memory_service.memories.block_text import is_block
from memory_service.messages.sizes import MESSAGE_TOKENS, count_tokens
from memory_service.schemas.compaction import SessionContextRequest
from memory_service.schemas.sessions import NewSession
from memory_service.service import MemoryService

TURNS = 100
_WORKSPACE, _SESSION = "default", "talk"
_SYSTEM = "You help the people of a harbour office. Answer in a few words."
_SUBJECTS = ("the ferry to Sifnos", "the crane on pier 3", "the pilot boat", "货柜码头的门禁", "the customs shed")
_FACTS = ("leaves at {}:25", "is kept by Marta, desk {}", "is inspected on day {} of the month", "costs {} euros")

Prompt = list[tuple[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheRules:
    """Price of input by a provider: dollars for a million tokens, and how a known beginning is read from its cache."""

    name: str
    price: float
    read: float
    write: float
    least_tokens: int
    step_tokens: int

    def cost(self, tokens: int, known_tokens: int) -> float:
        """Dollars for a prompt whose first tokens are known."""
        held = known_tokens // self.step_tokens * self.step_tokens if known_tokens >= self.least_tokens else 0
        written = self.write if tokens >= self.least_tokens else 1.0
        return self.price * (held * self.read + (tokens - held) * written) / 1_000_000


PROVIDERS = (
    CacheRules(name="Anthropic (Sonnet)", price=3.0, read=0.1, write=1.25, least_tokens=1024, step_tokens=1),
    CacheRules(name="OpenAI (GPT-5)", price=1.25, read=0.1, write=1.0, least_tokens=1024, step_tokens=128),
    CacheRules(name="DeepSeek (chat)", price=0.28, read=0.1, write=1.0, least_tokens=64, step_tokens=64),
)


def talk(home: Path) -> tuple[list[Prompt], list[Prompt]]:
    """The prompts of a talk, each message as its JSON and its tokens; and the whole block for each turn."""
    prompts, whole = list[Prompt](), list[Prompt]()
    with MemoryService(Settings(home=home)) as service:
        service.create_session(_WORKSPACE, NewSession(session_id=_SESSION, context_window=32_000))
        for turn in range(TURNS):
            subject, fact = _SUBJECTS[turn % len(_SUBJECTS)], _FACTS[turn % len(_FACTS)].format(turn)
            service.remember(_WORKSPACE, f"{subject} {fact}.")
            said = {"role": "user", "content": f"What do we know of {subject} by now? This is call {turn}. " * 2}
            service.append(_WORKSPACE, _SESSION, [said])
            made = service.session_context(_WORKSPACE, _SESSION, SessionContextRequest(system_prompt=_SYSTEM))
            prompts.append([_sized(message["role"], str(message["content"])) for message in made.messages])
            block = service.context(_WORKSPACE, said["content"], **service.settings.recall.model_dump()).block
            whole.append([_sized("user", block)] if block else [])
            answer = f"Call {turn}: {subject} {fact}. " + "I have written that into the book of the harbour. " * 6
            service.append(_WORKSPACE, _SESSION, [{"role": "assistant", "content": answer}])
    return prompts, whole


def _sized(role: str, content: str) -> tuple[str, int]:
    return json.dumps([role, content], ensure_ascii=False), count_tokens(content) + MESSAGE_TOKENS


def _is_block(message: tuple[str, int]) -> bool:
    return is_block(json.loads(message[0])[1])


def moving(prompt: Prompt, block: Prompt) -> Prompt:
    """A prompt without blocks that stand, and the whole one of its turn before the newest message."""
    rest = [message for message in prompt if not _is_block(message)]
    return [*rest[:-1], *block, rest[-1]]


def in_system(prompt: Prompt, block: Prompt) -> Prompt:
    """The same with the block behind the system prompt."""
    rest = [message for message in prompt if not _is_block(message)]
    return [rest[0], *block, *rest[1:]]


def price(prompts: Sequence[Prompt], rules: CacheRules) -> tuple[float, float]:
    """Dollars for all prompts, and the share of their tokens that begin as the one before did."""
    dollars, known_tokens, tokens = 0.0, 0, 0
    for before, prompt in zip([[], *prompts], prompts, strict=False):
        same = 0
        for one, other in zip(before, prompt, strict=False):
            if one != other:
                break
            same += one[1]
        size = sum(each[1] for each in prompt)
        dollars += rules.cost(size, same)
        known_tokens, tokens = known_tokens + same, tokens + size
    return dollars, known_tokens / tokens


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as home:
        given, whole = talk(Path(home))
    ways = {
        "stands": given,
        "moves": list(map(moving, given, whole)),
        "in the system prompt": list(map(in_system, given, whole)),
    }
    print(f"{'block':22}{'same beginning':>16}" + "".join(f"{rules.name:>22}" for rules in PROVIDERS))
    for name, prompts in ways.items():
        costs = [price(prompts, rules) for rules in PROVIDERS]
        print(f"{name:22}{costs[0][1]:>16.3f}" + "".join(f"{f'${dollars:.4f}':>22}" for dollars, _ in costs))


if __name__ == "__main__":
    main()
