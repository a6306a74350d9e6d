"""Bugs of the outer edge and of durable writes, each one change of our text: the properties have to find every one.

A change is kept as the text that goes and the text that comes, so that it stays what it was when code around it moves.
"""
# ruff: noqa: E501  (the texts are as they stand)

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any

import pytest

from indexer.testing import HashEmbedder
from memory_service import errors
from memory_service.api import app, auth, body_limit
from memory_service.api import errors as api_errors
from memory_service.client import _wire
from memory_service.compaction import audit, cut, model_summary, note, plan, plan_sizes, pruning, view
from memory_service.memories import block, daily_notes, entries
from memory_service.runtime import access
from memory_service.service import MemoryService
from memory_service.storage.files import blobs, disk, document_files, jsonl_log, log_file
from tests.memory_service.api import test_keys as keys
from tests.memory_service.client import test_waiting as waiting
from tests.properties import compacting, durable
from tests.serving import RunningServer, serving, settings

Check = Callable[[Path], None]
_LOCKED = (
    "        with self._writing():\n"
    "            bearers = self._bearers(memory_id)\n"
    "            self._history.erase_removals([entry.removal() for entry in bearers])\n"
    "            for path in dict.fromkeys(entry.path for entry in bearers):\n"
)


class TextChanged(Exception):
    """The text that a mutant changes is not there any more: write the mutant anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A bug.

    Attributes:
        removed: The text that goes; it stands in the module once.
        added: What comes in its place.
        check: The property that has to break.
    """

    module: ModuleType
    removed: str
    added: str
    check: Check

    def apply(self, patch: pytest.MonkeyPatch) -> None:
        """Put it into our code."""
        source = inspect.getsource(self.module)
        if source.count(self.removed) != 1:
            raise TextChanged(
                f"{self.module.__name__}: {self.removed!r} stands there {source.count(self.removed)} times"
            )
        made = compile(source.replace(self.removed, self.added), str(self.module.__file__), "exec", dont_inherit=True)
        codes = {code.co_qualname: code for code in _codes(made)}
        changed = 0
        for function in _functions(self.module):
            code = codes.get(function.__code__.co_qualname)
            if code is not None and code.co_freevars == function.__code__.co_freevars:
                changed += _instructions(code) != _instructions(function.__code__)
                patch.setattr(function, "__code__", code)
        if not changed:
            self._set_constants(made, patch)

    def _set_constants(self, made: CodeType, patch: pytest.MonkeyPatch) -> None:
        """The change is in a constant: the values of the changed text take its place."""
        values: dict[str, Any] = {"__name__": self.module.__name__, "__package__": self.module.__package__}
        exec(made, values)
        name = next(name for name in vars(self.module) if name.isupper() and values[name] != getattr(self.module, name))
        patch.setattr(self.module, name, values[name])


def _instructions(code: CodeType) -> tuple[object, ...]:
    return code.co_code, code.co_consts, code.co_names


def _codes(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    owners = [module, *(each for each in vars(module).values() if isinstance(each, type))]
    for owner in owners:
        for value in vars(owner).values():
            for each in (value, getattr(value, "fget", None), getattr(value, "__func__", None)):
                found = inspect.unwrap(each) if callable(each) else None
                if isinstance(found, FunctionType) and found.__module__ == module.__name__:
                    yield found


def _does(name: str) -> Check:
    return functools.partial(durable.check_operation, name)


def _keyed(check: Callable[[RunningServer], None]) -> Check:
    """A property of a server with keys."""

    def run(home: Path) -> None:
        made = settings(home / "home", api_keys=keys.KEYS, max_body_bytes=4096)
        with serving(MemoryService(made, embedder=HashEmbedder())) as server:
            check(server)

    return run


def _open(check: Callable[[RunningServer], None]) -> Check:
    """A property of a server without keys."""

    def run(home: Path) -> None:
        with serving(MemoryService(settings(home / "home", embedding_model="none"), embedder=HashEmbedder())) as server:
            check(server)

    return run


def _alone(check: Callable[[], None]) -> Check:
    return lambda home: check()


def _no_lock_behind_a_link(home: Path) -> None:
    with serving(MemoryService(settings(home / "home", embedding_model="none"), embedder=HashEmbedder())) as server:
        keys.check_no_lock_is_made_behind_a_link(server, home)


def _mutant(module: ModuleType, removed: str, added: str, check: Check) -> Planted:
    return Planted(module=module, removed=removed, added=added, check=check)


PLANTED: Mapping[str, Planted] = MappingProxyType(
    {
        "a draft is shown before it is synced": _mutant(
            disk,
            "                _write_all(descriptor, piece)\n            sync_file(descriptor)",
            "                _write_all(descriptor, piece)",
            _does("a new text of a file"),
        ),
        "a rename is not made durable": _mutant(
            disk, '    _confirm(target, "has its new content")\n', "", _does("a new text of a file")
        ),
        "a removal is not made durable": _mutant(disk, '    _confirm(target, "is gone")\n', "", _does("delete a file")),
        "an append is not synced": _mutant(
            disk,
            "        _write_all(descriptor, raw)\n        sync_file(descriptor)\n",
            "        _write_all(descriptor, raw)\n",
            _does("a message more"),
        ),
        "a cut is not synced": _mutant(
            disk,
            "    os.ftruncate(descriptor, size)\n    sync_file(descriptor)\n",
            "    os.ftruncate(descriptor, size)\n",
            durable.check_a_cut_is_synced,
        ),
        "a new folder is not made durable": _mutant(
            disk,
            "        folder.mkdir(mode=mode)\n    sync_folder(folder.parent)\n",
            "        folder.mkdir(mode=mode)\n",
            _does("the first memory"),
        ),
        "the compare comes before the draft": _mutant(
            disk,
            "        if current_signature(target) != expected:\n",
            "        if False:\n",
            durable.check_a_change_during_the_write_stays,
        ),
        "an unconfirmed name is a plain failure": _mutant(
            disk,
            '    except OSError as error:\n        raise StorageFailed(\n            f"{target.name} {state}',
            '    except ZeroDivisionError as error:\n        raise StorageFailed(\n            f"{target.name} {state}',
            durable.check_an_unconfirmed_write_is_told_as_it_is,
        ),
        "a new log is not made durable": _mutant(
            log_file,
            "                disk.sync_folder(self.path.parent)\n",
            "                pass\n",
            _does("the first message"),
        ),
        "a trim that fails takes its backup": _mutant(
            jsonl_log,
            "                if disk.is_at(path, descriptor):\n",
            "                if True:\n",
            durable.check_an_unconfirmed_trim_keeps_the_log,
        ),
        "a lock is made behind a link": _mutant(
            log_file,
            "            # First without the lock, whose file would be made in what a link leads to.\n            self._check_place()\n",
            "            pass\n",
            _no_lock_behind_a_link,
        ),
        "a torn end is cut before it is kept": _mutant(
            log_file,
            '            path = save_beside(self._path, lambda: disk.pieces(descriptor, end), "torn")\n            disk.truncate_durably(descriptor, end)\n',
            '            torn = b"".join(disk.pieces(descriptor, end))\n            disk.truncate_durably(descriptor, end)\n            path = save_beside(self._path, lambda: [torn], "torn")\n',
            durable.check_a_torn_end_is_kept_before_it_is_cut,
        ),
        "a damaged content stays": _mutant(
            blobs,
            "is_new = self._read(target) != content",
            "is_new = not self._read(target)",
            durable.check_a_damaged_content_is_mended,
        ),
        "a content that is there is not made durable": _mutant(
            blobs,
            "                disk.sync_folder(target.parent)\n",
            "                pass\n",
            durable.check_a_content_that_is_there_is_synced,
        ),
        "a new page is not made durable": _mutant(
            document_files,
            "            disk.sync_folder(target.parent)\n",
            "            pass\n",
            _does("the first memory"),
        ),
        "a failed append removes what is there": _mutant(
            document_files,
            "                disk.drop_empty(target, descriptor)\n",
            "                target.unlink(missing_ok=True)\n",
            durable.check_a_failed_first_append_takes_no_file,
        ),
        "what the disk refused is remembered": _mutant(
            daily_notes,
            "                self._pages.pop(day)\n",
            "                pass\n",
            durable.check_a_failed_append_is_no_duplicate,
        ),
        "an editor that renames swallows a memory": _mutant(
            document_files,
            " or disk.current_signature(target) != disk.signature(after):\n",
            ":\n",
            durable.check_an_editor_that_renames_swallows_nothing,
        ),
        "each waits for the disk alone": _mutant(
            daily_notes,
            "            self._asked = other_items\n",
            "            self._asked = chosen_items[1:] + other_items\n            del chosen_items[1:]\n",
            durable.check_those_who_wait_together_share_a_sync,
        ),
        "two of one text are written together": _mutant(
            daily_notes,
            "(other_items if asked_value.draft.folded in texts else chosen_items).append(asked_value)",
            "chosen_items.append(asked_value)",
            durable.check_those_who_wait_together_share_a_sync,
        ),
        "an entry is erased without the lock": _mutant(
            entries,
            _LOCKED,
            _LOCKED.replace("with self._writing():", "if True:"),
            durable.check_an_append_waits_for_a_forget,
        ),
        "a page that was saved meanwhile is removed": _mutant(
            document_files,
            "if expected is not None and disk.current_signature(target) != _signature(expected):",
            "if False:",
            durable.check_a_saved_page_is_not_removed,
        ),
        "a key opens what begins with its workspace": _mutant(
            auth,
            "    if not grant.allows(workspace):\n",
            "    if not grant.is_for_all and not workspace.startswith(grant.workspaces):\n",
            _keyed(keys.check_no_key_opens_another_workspace),
        ),
        "a key opens what its workspace begins with": _mutant(
            auth,
            "    if not grant.allows(workspace):\n",
            "    if not grant.is_for_all and not grant.workspaces[0].startswith(workspace):\n",
            _keyed(keys.check_no_key_opens_another_workspace),
        ),
        "what begins like a key is one": _mutant(
            access,
            'return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()',
            'return hashlib.sha256(key.encode("utf-8", "replace")[:3]).hexdigest()',
            _keyed(keys.check_what_is_no_key_opens_nothing),
        ),
        "a page needs no key": _mutant(
            auth,
            'if grant is None and role != "none":',
            'if grant is None and scope["path"].startswith("/v"):',
            _keyed(keys.check_what_is_no_key_opens_nothing),
        ),
        "what ends like localhost is this machine": _mutant(
            auth,
            'if host == "localhost":',
            'if host.endswith("localhost"):',
            _open(keys.check_foreign_names_are_turned_away),
        ),
        "another scheme is the same page": _mutant(
            auth,
            "(page.scheme, page.netloc.lower()) != (scheme, host.lower())",
            "page.netloc.lower() != host.lower()",
            _open(keys.check_foreign_names_are_turned_away),
        ),
        "a malformed origin is a defect": _mutant(
            auth,
            '    except ValueError:\n        return urlsplit("")\n',
            "    except ZeroDivisionError:\n        raise\n",
            _open(keys.check_foreign_names_are_turned_away),
        ),
        "a body in pieces has no limit": _mutant(
            body_limit,
            'seen_count += len(message.get("body", b""))',
            'seen_count = len(message.get("body", b""))',
            _keyed(keys.check_a_body_in_pieces_has_a_limit),
        ),
        "a body of the very limit is refused": _mutant(
            body_limit,
            "            if seen_count > self._max_bytes:\n                raise",
            "            if seen_count >= self._max_bytes:\n                raise",
            _keyed(keys.check_a_body_in_pieces_has_a_limit),
        ),
        "an announced body of the very limit is refused": _mutant(
            body_limit,
            "elif _content_length(scope) > self._max_bytes:",
            "elif _content_length(scope) >= self._max_bytes:",
            _keyed(keys.check_an_announced_body_has_a_limit),
        ),
        "the body is judged before the key": _mutant(
            app,
            "        Middleware(RequireKey, access=access),\n        Middleware(RefuseEarly, queues=shared.pools.queues, routes=routes),\n        Middleware(BodyLimitMiddleware, max_bytes=settings.max_body_bytes),\n",
            "        Middleware(BodyLimitMiddleware, max_bytes=settings.max_body_bytes),\n        Middleware(RequireKey, access=access),\n        Middleware(RefuseEarly, queues=shared.pools.queues, routes=routes),\n",
            _keyed(keys.check_the_key_comes_before_the_body),
        ),
        "a call that timed out is sent again": _mutant(
            _wire,
            "_UNREACHED = (httpx.ConnectError,",
            "_UNREACHED = (httpx.ReadTimeout, httpx.ConnectError,",
            _alone(waiting.check_a_call_that_times_out_is_sent_once),
        ),
        "a long timeout is cut": _mutant(
            _wire,
            "if timeout.read is not None and call.least_seconds > timeout.read:",
            "if timeout.read is not None and call.least_seconds:",
            _alone(waiting.check_a_long_timeout_stays),
        ),
        "an error comes out as its parent": _mutant(
            errors,
            "error = _BY_CODE.get(code, _BY_STATUS.get(status, ServerFailed))(message)",
            "error = _BY_STATUS.get(status, _BY_CODE.get(code, ServerFailed))(message)",
            _alone(waiting.check_every_error_keeps_its_class),
        ),
        "the wire has the code of the parent": _mutant(
            api_errors,
            "return _answer(error.status, error.code, message or str(error), {**retry_headers(error), **(headers or {})}, parts)",
            "return _answer(error.status, type(error).__mro__[1].code, message or str(error), {**retry_headers(error), **(headers or {})}, parts)",
            _alone(waiting.check_every_error_keeps_its_class),
        ),
        "system messages of a split turn are summarised": _mutant(
            cut,
            "tuple(message for message in prefix if not is_system(message.message)),",
            "tuple(prefix),",
            _alone(compacting.check_no_system_message_is_covered),
        ),
        "of many rules the oldest are checked": _mutant(
            audit, "[-_MAX_RULES:]", "[:_MAX_RULES]", _alone(compacting.check_the_newest_rules_are_quoted)
        ),
        "body and prefix together are over the length": _mutant(
            model_summary,
            "return self._request.target_tokens - self._prefix_tokens()",
            "return self._request.target_tokens",
            _alone(compacting.check_the_report_of_a_split_turn_is_whole),
        ),
        "a note makes a summary longer than its room": _mutant(
            note,
            "previous = previous if count_tokens(previous) <= room else clip_sections(previous, room, texts)",
            "previous = str(previous)",
            _alone(compacting.check_a_note_keeps_its_room),
        ),
        "at exactly the threshold nothing is compacted": _mutant(
            plan,
            "and self._before < self._sizes.hard():",
            "and self._before <= self._sizes.hard():",
            _alone(compacting.check_at_exactly_the_threshold_there_is_a_plan),
        ),
        "a request that stays is counted twice": _mutant(
            plan_sizes,
            "if place < at else 0",
            "if place <= at else 0",
            _alone(compacting.check_a_request_that_stays_is_counted_once),
        ),
        "a cache is warm at its age": _mutant(
            pruning,
            "last_used_at > latest:",
            "last_used_at >= latest:",
            _alone(compacting.check_a_cache_is_cold_at_its_age),
        ),
        "as many replies as stay are too few": _mutant(
            pruning,
            "if len(replies) < keep:",
            "if len(replies) <= keep:",
            _alone(compacting.check_a_result_before_exactly_the_last_replies_is_pruned),
        ),
        "a rendered block is not measured": _mutant(
            block,
            "while picked_numbers and quarters(block) > 4 * budget_tokens:",
            "while False:",
            _alone(compacting.check_a_block_is_never_over_its_budget),
        ),
        "a pinned message at the border stands twice": _mutant(
            view,
            "if seq is None or seq < head.tail_start]",
            "if seq is None or seq <= head.tail_start]",
            _alone(compacting.check_a_pin_at_the_border_stands_once),
        ),
        "the first of the last turn loses its thinking": _mutant(
            view,
            "keeps_thinking=at >= turn or message.seq > head.upto",
            "keeps_thinking=at > turn or message.seq > head.upto",
            _alone(compacting.check_thinking_of_the_last_turn_stays),
        ),
        "the thinking of all turns of the tail stays": _mutant(
            view,
            "turn = max((at for at, message in enumerate(messages) if",
            "turn = min((at for at, message in enumerate(messages) if",
            _alone(compacting.check_thinking_of_the_last_turn_stays),
        ),
        "thinking stays as long as nothing newer was said": _mutant(
            view,
            "keeps_thinking=at >= turn or message.seq > head.upto",
            "keeps_thinking=at >= turn or message.seq >= head.tail_start",
            _alone(compacting.check_thinking_of_the_last_turn_stays),
        ),
        "the cost of the neighbour before is stale": _mutant(
            block,
            "for j in (self._neighbour(i, -1), self._neighbour(i, 1)) if j is not None]",
            "for j in (self._neighbour(i, 1),) if j is not None]",
            _alone(compacting.check_costs_follow_both_neighbours),
        ),
    }
)
