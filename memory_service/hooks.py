"""Hooks of a program that runs the service in process: functions called before and after its work.

Invariants: hooks are called in the order they were added, in the thread that does the work; a hook that fails
never breaks the work, and is named among the failures, with the kind of its error but not its text, which may
hold that of a message; what the hook itself did before it failed is its own matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from memory_service.messages.shapes import Message
from memory_service.schemas.sessions import EventField, SessionEvent

HookedWork = Literal["compaction", "flush"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The messages that a summary has to stand for, for a hook that writes it.

    Attributes:
        messages: What the view is about to lose, in order, as it was said; empty if no summary is needed.
        previous: The summary that the new one takes the place of; empty for the first.
        target_tokens: The longest summary wanted.
    """

    messages: tuple[Message, ...] = ()
    previous: str = ""
    target_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """An operation that is about to be done to a session.

    Attributes:
        fields: Numbers, ids and reasons, as the event at its beginning has them.
        material: Gives what a summary has to stand for; it is planned when this is called.
    """

    work: HookedWork
    workspace: str
    session_id: str
    fields: Mapping[str, EventField] = field(default_factory=dict)
    material: Callable[[], Material] = Material


@dataclass(frozen=True, slots=True)
class Refused:
    """A hook's veto: the work is not done."""

    reason: str


@dataclass(frozen=True, slots=True)
class Instructions:
    """A hook's wish for how the work is done, in words for the model that does it."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Provided:
    """A hook's replacement for the service's own part of a compaction; of several hooks the last one counts.

    Attributes:
        prompt: What the model is asked, in the place of the service's words; it gets the messages before it, between
            tags. The summary is checked as always.
        summary: The finished summary: no model is asked, and nothing is checked; tags of ours in it are disarmed.
        continue_note: Whether a note to go on may stand behind the messages after an overflow.
    """

    prompt: str = ""
    summary: str = ""
    continue_note: bool = True


HookAnswer: TypeAlias = Refused | Instructions | Provided | None
BeforeHook = Callable[[Intent], HookAnswer]
AfterHook = Callable[[SessionEvent], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answers of all hooks to an intent, put together.

    Attributes:
        refused: The first veto; after it no hook is asked.
        instructions: Those of all hooks, one paragraph each; empty without any.
        provided: What they put in the place of the service's own.
        failures: Hooks that failed, each "part: why and what to do", for `degraded`.
    """

    refused: Refused | None = None
    instructions: str = ""
    provided: Provided = Provided()
    failures: tuple[str, ...] = ()


class Hooks:
    """The hooks of one service. Add them before work begins; each `before_…` and `after_…` is also a decorator."""

    def __init__(self) -> None:
        self._before: dict[HookedWork, list[BeforeHook]] = {"compaction": [], "flush": []}
        self._after: dict[HookedWork, list[AfterHook]] = {"compaction": [], "flush": []}

    def before_compaction(self, hook: BeforeHook) -> BeforeHook:
        """Ask `hook` before each compaction."""
        self._before["compaction"].append(hook)
        return hook

    def after_compaction(self, hook: AfterHook) -> AfterHook:
        """Tell `hook` the event at the end of each compaction."""
        self._after["compaction"].append(hook)
        return hook

    def before_flush(self, hook: BeforeHook) -> BeforeHook:
        """Ask `hook` before each flush."""
        self._before["flush"].append(hook)
        return hook

    def after_flush(self, hook: AfterHook) -> AfterHook:
        """Tell `hook` the event of each flush."""
        self._after["flush"].append(hook)
        return hook

    def ask(self, intent: Intent) -> Verdict:
        """The answer of the hooks to what is about to be done."""
        instructions: list[str] = []
        failures: list[str] = []
        provided_value = Provided()
        for hook in tuple(self._before[intent.work]):
            try:
                answer: object = hook(intent)
            except Exception as error:
                failures.append(_failure(f"before_{intent.work}", hook, f"raised {type(error).__name__}"))
                continue
            match answer:
                case Refused():
                    return Verdict(refused=answer, failures=tuple(failures))
                case Instructions(text):
                    instructions.append(text)
                case Provided(prompt=str(), summary=str(), continue_note=bool()) if intent.work == "compaction":
                    provided_value = Provided(
                        prompt=answer.prompt.strip() or provided_value.prompt,
                        summary=answer.summary.strip() or provided_value.summary,
                        continue_note=answer.continue_note and provided_value.continue_note,
                    )
                case None:
                    pass
                case _:
                    # Hooks may be written without types.
                    this_text = f"gave a {type(answer).__name__} that cannot be used"
                    failures.append(_failure(f"before_{intent.work}", hook, this_text))
        return Verdict(instructions="\n\n".join(instructions), provided=provided_value, failures=tuple(failures))

    def tell(self, work: HookedWork, event: SessionEvent) -> tuple[str, ...]:
        """Tell the hooks what was done; gives those that failed, as in `Verdict.failures`."""
        failures: list[str] = []
        for hook in tuple(self._after[work]):
            try:
                hook(event)
            except Exception as error:
                failures.append(_failure(f"after_{work}", hook, f"raised {type(error).__name__}"))
        return tuple(failures)


def _failure(place: str, hook: Callable[..., object], text: str) -> str:
    name = getattr(hook, "__qualname__", type(hook).__name__)
    return f"hooks: {name}, a hook of {place}, {text}. It was passed over; mend or remove it."
