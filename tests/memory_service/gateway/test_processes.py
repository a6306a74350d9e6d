"""Two server processes on one home: what comes to both at once is kept once."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from memory_service.service import MemoryService
from tests.serving import settings

# Each of many talks goes to both processes at the same moment, as a client's retry does through a round-robin.
SENDER = """
import sys, time
from memory_service.service import MemoryService
from memory_service.conversations.client_calls import ConversationCall
from memory_service.config import load_settings

home, begin = sys.argv[1], float(sys.argv[2])
with MemoryService(load_settings(home=home, embedding_model="none")) as service:
    talks = service.conversations("default", make=True)
    for number in range(20):
        time.sleep(max(0.0, begin + number * 0.1 - time.time()))
        call = ConversationCall(messages=[{"role": "user", "content": f"Talk {number}"}])
        prompt = talks.prompt(call)
        # An index that the other one has open just now is told, and is no matter of the log.
        assert not any(each.startswith("session") for each in prompt.degraded), prompt.degraded
        talks.append_answer(prompt, [{"role": "assistant", "content": f"Answer {number}"}])
"""


def test_a_retry_that_reaches_two_processes_at_once_is_appended_once(tmp_path: Path) -> None:
    begin = str(time.time() + 4)
    processes = [
        subprocess.Popen([sys.executable, "-c", SENDER, str(tmp_path), begin], stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    errors = [process.communicate(timeout=240)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], errors
    with MemoryService(settings(tmp_path, embedding_model="none")) as service:
        store = service.sessions("default").store
        kept = [store.log_view(session.session_id).messages for session in store.list_sessions()]
        # Who comes after the answer begins a branch, as a regeneration does; nothing stands twice in any of them.
        texts = {tuple(str(message["content"]) for message in each) for each in kept}
        assert texts == {(f"Talk {number}", f"Answer {number}") for number in range(20)}
