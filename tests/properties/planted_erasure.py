"""Bugs of erasure and of sessions that two processes work on, each one change of our text."""
# ruff: noqa: E501  (the texts are as they stand)

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from indexer.engine.segments import builder
from indexer.sync import run, runner
from memory_service.memories import entries, erasures, long_term
from memory_service.prompts import build as contexts
from memory_service.prompts import build as recalls
from memory_service.prompts import session_recall
from memory_service.runtime import compactions, flushes, log_changes, session
from memory_service.storage.files import disk, file_records, jsonl_log, log_file, log_folder
from tests.properties import erased
from tests.properties.planted import Planted, _mutant

PLANTED_ERASURE: Mapping[str, Planted] = MappingProxyType(
    {
        "a log that was replaced is read on": _mutant(
            log_file,
            "if signature is None or now[2] != signature[2] or now[0] < self.end:",
            "if signature is None or now[0] < self.end:",
            erased.check_a_log_that_was_replaced_is_read_afresh,
        ),
        "a header that was taken back counts": _mutant(
            log_file,
            "        self._headers = [seq for seq in self._headers if seq <= self.last_seq]\n",
            "",
            erased.check_a_torn_end_is_one_finding,
        ),
        "logs are told apart by their last line": _mutant(
            log_file,
            "            return self._glimpse(stream) == self._glances\n",
            "            return True\n",
            erased.check_a_log_in_the_same_file_is_read_afresh,
        ),
        "a session begun anew is read on": _mutant(
            session,
            "            if not read.is_same:\n",
            "            if not read.is_same and self.log.status().last_seq < self._state.last_seq:\n",
            erased.check_a_session_begun_anew_is_read_alone,
        ),
        "a commit goes into whatever log there is": _mutant(
            log_file,
            "            if self.offsets.edition != edition:\n",
            "            if False:\n",
            erased.check_a_delete_stops_what_is_under_way,
        ),
        "a commit begins a log": _mutant(
            log_file,
            "                descriptor = stack.enter_context(self.writing(must_exist=True))\n",
            "                descriptor = stack.enter_context(self.writing())\n                edition = self.offsets.edition\n",
            erased.check_a_delete_stops_what_is_under_way,
        ),
        "a context goes on with words of another session": _mutant(
            contexts,
            "        if self.snapshot.state.edition != before:\n",
            "        if False:\n",
            erased.check_a_delete_stops_what_is_under_way,
        ),
        "a flush writes what was deleted meanwhile": _mutant(
            flushes,
            "                with snapshot.session.hold(snapshot.state) if drafts else nullcontext():\n",
            "                with nullcontext():\n",
            erased.check_a_delete_stops_what_is_under_way,
        ),
        "a receipt is stored behind a delete": _mutant(
            recalls,
            "            with snapshot.session.hold(snapshot.state):\n",
            "            if True:\n",
            erased.check_no_receipt_follows_a_delete,
        ),
        "an erased session is found by its words": _mutant(
            session_recall,
            "(edition, live.upto) != (snapshot.state.edition, snapshot.state.last_seq)",
            "live.upto != snapshot.state.last_seq",
            erased.check_a_session_begun_anew_is_read_alone,
        ),
        "receipts outlive their session": _mutant(
            file_records,
            '                    lines[start:end] = b" " * (end - start)\n',
            "                    pass\n",
            erased.check_a_session_is_gone_with_its_receipts,
        ),
        "a trim forgets idempotency keys": _mutant(
            log_changes,
            'frozenset({"message", "usage"})',
            'frozenset({"message", "usage", "keyed"})',
            erased.check_a_trim_keeps_what_the_view_is_built_on,
        ),
        "a trim forgets how far was flushed": _mutant(
            log_changes,
            'frozenset({"message", "usage"})',
            'frozenset({"message", "usage", "flush"})',
            erased.check_a_trim_keeps_what_the_view_is_built_on,
        ),
        "a trim takes what is pinned": _mutant(
            log_changes,
            "at >= border or kind not in _GOES or seq in also",
            "at >= border or kind not in _GOES",
            erased.check_a_trim_keeps_what_the_view_is_built_on,
        ),
        "a trim takes the ledger": _mutant(
            session,
            "        head = replace(state.heads[trim_record.head], ledger=trim_record.ledger)\n",
            "        head = state.heads[trim_record.head]\n",
            erased.check_a_trim_keeps_what_the_view_is_built_on,
        ),
        "the log goes before its backups": _mutant(
            log_folder,
            "            for file in reversed(own):\n",
            "            for file in own:\n",
            erased.check_a_broken_delete_can_be_repeated,
        ),
        "a failed batch takes what others name": _mutant(
            jsonl_log,
            "new += [sha256] if is_new else []",
            "new += [sha256]",
            erased.check_contents_that_others_name_stay,
        ),
        "the lock on contents is let go too early": _mutant(
            jsonl_log,
            "        with self._blobs_lock.hold():\n            new = ",
            "        if True:\n            new = ",
            erased.check_a_sweep_waits_for_who_names,
        ),
        "a stretch is marked before it is written": _mutant(
            flushes,
            "            with self._services.logs.unit():\n",
            "            if stretch:\n                snapshot.session.note([FlushRecord(from_seq=stretch[0].seq, to_seq=stretch[-1].seq)], snapshot.state)\n            with self._services.logs.unit():\n",
            erased.check_a_flush_marks_what_it_wrote,
        ),
        "a lost race counts as a failure": _mutant(
            compactions,
            "        except (Conflict, CallCancelled) as error:\n",
            "        except CallCancelled as error:\n",
            erased.check_a_lost_race_is_no_strike,
        ),
        "drafts stay": _mutant(
            disk,
            "            draft.unlink(missing_ok=True)\n\n\ndef sweep_old",
            "            pass\n\n\ndef sweep_old",
            erased.check_drafts_are_swept,
        ),
        "a copied id takes another entry along": _mutant(
            entries,
            "            self._check_copies(memory_id, entries)\n",
            "",
            erased.check_forget_takes_true_bearers_alone,
        ),
        "an erasure is not marked": _mutant(
            erasures,
            "                self.mark()\n",
            "                pass\n",
            erased.check_a_broken_erasure_is_ended,
        ),
        "the mark goes before the deed": _mutant(
            erasures,
            "            if left:\n                self._unmarked = not self._has_mark()\n            elif not before:\n",
            "            if not before:\n",
            erased.check_a_mark_stays_until_all_is_gone,
        ),
        "a mark is never looked for": _mutant(
            long_term,
            "        return self.erasures.end_broken(self._end_erasures)\n",
            "        return []\n",
            erased.check_a_broken_erasure_is_ended,
        ),
        "what was read of a deleted log is kept": _mutant(
            run,
            "        if not new_paths:\n            return\n        states",
            "        if True:\n            return\n        states",
            erased.check_what_is_read_is_taken_back,
        ),
        "a deleted file stays in the packed part": _mutant(
            builder,
            "            standing = segment.standing([*(number for number, _, _ in changes.files), *changes.gone])\n            if",
            "            standing = segment.standing([number for number, _, _ in changes.files])\n            if",
            erased.check_what_is_deleted_leaves_the_packed_file,
        ),
        "a stopped rebuild keeps what was edited out": _mutant(
            runner,
            "stale = (*plan.removed, *(file.path for file in plan.suspects))",
            "stale = plan.removed",
            erased.check_a_stopped_rebuild_has_no_edited_word,
        ),
    }
)
