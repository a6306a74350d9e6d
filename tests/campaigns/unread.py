"""Clients that ask for a long log and never read it: what each of them costs the server.

`python -m tests.campaigns.unread [--clients 20] [--megabytes 16]`

One line of JSON: resident memory before, while they wait, and what that is for each.
"""

from __future__ import annotations

import argparse
import json
import socket
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from memory_service.sessions.records import MessageRecord
from memory_service.storage.files.log_folder import LogFolder
from tests.campaigns.load import resident_bytes
from tests.serving import NO_TLS, W, own_process

_MESSAGE_CHARS = 100_000
_LOG = f"{W}/sessions/long/messages"


def measure(clients: int, megabytes: int) -> dict[str, object]:
    """Run it; gives what was measured."""
    environment = {"MEMORY_SERVICE_EMBEDDING_MODEL": "none"}
    with tempfile.TemporaryDirectory() as home, ExitStack() as stack:
        # Before the server is there, which would index each of them: only what the readers cost is measured.
        folder = Path(home) / "default" / "sessions"
        log, words = LogFolder(folder).open("long", must_exist=False), "周二 word " * (_MESSAGE_CHARS // 12)
        for n in range(megabytes * 10):
            log.append(
                [MessageRecord(text=json.dumps({"role": "user", "content": f"{n} {words}"}, ensure_ascii=False))]
            )
        url, pid = stack.enter_context(own_process(Path(home), environment))
        answer = httpx.get(f"{url}{_LOG}", params={"view": "log"}, timeout=60, trust_env=False, verify=NO_TLS)
        size = len(answer.content)
        before = resident_bytes(pid)
        for _ in range(clients):
            stack.enter_context(_unread(url))
        time.sleep(3)
        after = resident_bytes(pid)
        return {
            "clients": clients,
            "log_mb": size >> 20,
            "before_mb": before >> 20,
            "while_mb": after >> 20,
            "each_kb": (after - before) // clients >> 10,
        }


def _unread(url: str) -> socket.socket:
    address = urlsplit(url)
    connection = socket.create_connection((address.hostname or "", address.port or 0), timeout=30)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.sendall(f"GET {_LOG}?view=log HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return connection


def main() -> None:
    """Run it and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--megabytes", type=int, default=16)
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.clients, arguments.megabytes)))


if __name__ == "__main__":
    main()
