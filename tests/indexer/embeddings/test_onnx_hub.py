"""A model of the hub, fetched from a server on loopback that answers as the hub does."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.indexer.embeddings.onnx_graphs import save_apart, save_small

COMMIT = "c0ffee" + "0" * 34


class Hub(BaseHTTPRequestHandler):
    """The requests of huggingface_hub for one repository, small/model."""

    folder: Path
    asked: list[str]

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        path = urlsplit(self.path).path
        self.asked.append(f"{self.command} {path}")
        head = "/small/model/resolve/main/"
        if path.startswith("/api/models/small/model"):
            siblings = [
                {"rfilename": file.relative_to(self.folder).as_posix(), "size": file.lstat().st_size}
                for file in sorted(self.folder.rglob("*"))
                if not file.is_dir()
            ]
            content = json.dumps({"id": "small/model", "sha": COMMIT, "siblings": siblings}).encode()
        elif path.startswith(head) and (self.folder / path.removeprefix(head)).is_file():
            content = (self.folder / path.removeprefix(head)).read_bytes()
        else:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[tuple[str, list[str], Path]]:
    folder = save_small(tmp_path / "published", files={"README.md": "no", "openvino/config.json": {}})
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model.onnx")
    (folder / "onnx" / "model_int8.onnx").write_bytes(b"another graph")
    (folder / "model.safetensors").write_bytes(b"weights for another engine")
    asked: list[str] = []
    handler = type("OneHub", (Hub,), {"folder": folder, "asked": asked})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", asked, folder
    server.shutdown()
    server.server_close()
    thread.join()


def run(address: str, cache: Path, code: str, **more: str) -> str:
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("HF_")},
        **{"HF_ENDPOINT": address, "HF_HOME": str(cache), "HF_HUB_DISABLE_XET": "1", **more},
    }
    opening = "from indexer import OnnxEmbedder; from indexer.errors import *\nmodel = OnnxEmbedder('small/model')\n"
    done = subprocess.run(
        [sys.executable, "-c", opening + code], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr, "no progress bars and no warnings"
    return done.stdout.strip()


ASK = "try:\n    print(len(model.embed_query('a')))\nexcept EmbedderUnavailable as error:\n    print(error)\n"


def test_an_index_run_fetches_once_and_a_question_never(hub: tuple[str, list[str], Path], tmp_path: Path) -> None:
    address, asked, _ = hub
    cache = tmp_path / "cache"
    assert "is not on this machine yet. Run `memory-service reindex` to fetch it." in run(address, cache, ASK)
    assert asked == []
    assert run(address, cache, "print(model.embed_documents(['a']).shape, model.dimensions)") == "(1, 8) 8"
    fetched = {line.removeprefix("GET /small/model/resolve/main/") for line in asked if line.startswith("GET /small")}
    assert fetched == {"config.json", "tokenizer.json", "onnx/model.onnx"}
    asked.clear()
    assert run(address, cache, ASK, HF_HUB_OFFLINE="1") == "8"
    assert run(address, cache, "print(model.embed_documents(['a']).shape)") == "(1, 8)"
    assert asked == []


def test_a_hub_that_does_not_answer_says_what_to_do(tmp_path: Path) -> None:
    ask = ASK.replace("embed_query('a')", "embed_documents(['a'])")
    said = run("http://127.0.0.1:9", tmp_path / "cache", ask)
    assert "the hub did not give a model of that name" in said and "Check embedding_model and the network" in said


def test_a_fetch_that_was_cut_short_is_taken_up(hub: tuple[str, list[str], Path], tmp_path: Path) -> None:
    address, asked, folder = hub
    fetch = ASK.replace("embed_query('a')", "embed_documents(['a'])[0]")
    graph, away = folder / "onnx" / "model.onnx", folder.parent / "away.onnx"
    graph.rename(away)
    graph.symlink_to(folder.parent / "nowhere")  # in the hub's list, and not given
    assert "the hub did not give a model of that name" in run(address, tmp_path / "cache", fetch)
    assert "GET /small/model/resolve/main/tokenizer.json" in asked
    assert "is not on this machine yet" in run(address, tmp_path / "cache", ASK), "the graph comes last"
    graph.unlink()
    away.rename(graph)
    assert run(address, tmp_path / "cache", fetch) == "8"


def test_weights_beside_the_graph_are_fetched_before_it(hub: tuple[str, list[str], Path], tmp_path: Path) -> None:
    address, asked, folder = hub
    kept = save_apart(folder / "onnx" / "model.onnx")
    fetch = ASK.replace("embed_query('a')", "embed_documents(['a'])[0]")
    assert run(address, tmp_path / "cache", fetch) == "8"
    weights, graph = (f"GET /small/model/resolve/main/onnx/{name}" for name in ("words", "model.onnx"))
    assert asked[-1] == graph and weights in asked
    for fetched in (tmp_path / "cache").rglob(kept.name):
        fetched.unlink()  # another program may have fetched the graph alone
    assert "is not on this machine yet" in run(address, tmp_path / "cache", ASK)
    assert run(address, tmp_path / "cache", fetch) == "8"


def test_a_reindex_after_a_change_of_the_setting_fetches_the_model(
    hub: tuple[str, list[str], Path], tmp_path: Path
) -> None:
    address, cache = hub[0], tmp_path / "cache"
    code = (
        "from memory_service.service import MemoryService\n"
        f"with MemoryService.open({str(tmp_path / 'home')!r}) as service:\n"
        "    service.remember('default', 'Tea is at four.')\n"
        f"with MemoryService.open({str(tmp_path / 'home')!r}, embedding_model='onnx/small/model') as service:\n"
        "    report = service.reindex('default')\n"
        "    print(report.added, report.degraded, service.status('default').fingerprint.dimensions)\n"
    )
    away = run("http://127.0.0.1:9", cache, code)
    assert away.startswith("0 ['vector: There is no folder small/model, and the hub") and away.endswith("384")
    assert run(address, cache, code) == "1 [] 8"
