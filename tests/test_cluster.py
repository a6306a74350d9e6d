"""The files of examples/cluster fit the service: settings, routes, and a proxy that sends a workspace to one server."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from indexer.testing import HashEmbedder
from memory_service.config import load_settings
from memory_service.service import MemoryService
from tests.benchmarks.postgres_routing import Cluster, Load, simulate
from tests.pages import ROOT
from tests.serving import serving, settings

FOLDER = ROOT / "examples" / "cluster"
PREFIX = "MEMORY_SERVICE_"
PATHS = json.loads((ROOT / "tests/memory_service/api/openapi.json").read_text("utf-8"))["paths"]
CONFIGURATION = (FOLDER / "nginx.conf").read_text("utf-8")
GIVEN = {"MEMORY_SERVICE_API_KEY": "key", "POSTGRES_PASSWORD": "s/cr@t"}


def documents(name: str) -> list[Any]:
    """What a file of YAML holds, with the variables that the person gives."""
    yaml = importlib.import_module("yaml")
    text = (FOLDER / name).read_text("utf-8")
    return list(yaml.safe_load_all(re.sub(r"\$\{(\w+):\?[^}]*\}", lambda match: GIVEN[match[1]], text)))


def environments() -> dict[str, dict[str, str]]:
    """The variables of each container that runs the service."""
    services = documents("compose.yaml")[0]["services"]
    pod = documents("kubernetes.yaml")[0]["spec"]["template"]["spec"]
    secret = {"database-url": "postgresql://u@database.example/memory", "api-keys": "key:*"}
    return {name: service["environment"] for name, service in services.items() if name.startswith("memory")} | {
        container["name"]: {
            entry["name"]: entry.get("value") or secret[entry["valueFrom"]["secretKeyRef"]["key"]]
            for entry in container["env"]
        }
        for container in pod["containers"] + pod["initContainers"]
    }


def test_each_variable_is_a_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert set(environments()) == {"memory-1", "memory-2", "memory-service", "migrate"}
    for environment in environments().values():
        with monkeypatch.context() as patch:
            for name, value in environment.items():
                # That of the driver takes any password as it is.
                assert (name.startswith(PREFIX) or name == "PGPASSWORD") and isinstance(value, str)
                patch.setenv(name, value)
            patch.setenv("MEMORY_SERVICE_HOME", str(tmp_path))
            loaded = load_settings()
        assert (loaded.host, loaded.port, loaded.api_keys) == ("0.0.0.0", 8765, {"key": "*"})
        assert loaded.database_url.get_secret_value().startswith("postgresql://")


def test_probes_ask_routes_that_are_there() -> None:
    deployment, service, budget = documents("kubernetes.yaml")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    probes = {name: probe["httpGet"]["path"] for name, probe in container.items() if name.endswith("Probe")}
    assert probes == {
        "startupProbe": "/health/live",
        "livenessProbe": "/health/live",
        "readinessProbe": "/health/ready",
    }
    compose = documents("compose.yaml")[0]["services"]
    asked = re.findall(r"127\.0\.0\.1:8765(/[\w/]+)", json.dumps(compose["memory-1"]["healthcheck"]))
    assert {*probes.values(), *asked} <= set(PATHS)
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert labels == deployment["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    assert labels == budget["spec"]["selector"]["matchLabels"]
    assert container["ports"][0]["containerPort"] == int(environments()["memory-service"]["MEMORY_SERVICE_PORT"])
    assert deployment["spec"]["replicas"] > budget["spec"]["minAvailable"] > 0
    volumes = {volume["name"] for volume in deployment["spec"]["template"]["spec"]["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes


def test_the_proxy_finds_the_workspace_of_each_route() -> None:
    match = re.search(r'"~(\^[^"]+)" \$name_in_path;', CONFIGURATION)
    assert match is not None
    pattern = re.compile(match[1].replace("(?<", "(?P<"))
    for path in PATHS:
        found = pattern.match(path.replace("{workspace}", "team-1.x") + "?limit=2")
        assert (found["name_in_path"] if found else None) == ("team-1.x" if "{workspace}" in path else None), path
    servers = set(re.findall(r"server ([\w-]+):8765", CONFIGURATION))
    assert servers == {name for name in documents("compose.yaml")[0]["services"] if name.startswith("memory-")}
    size = re.search(r"client_max_body_size (\d+)m;", CONFIGURATION)
    assert size is not None and int(size[1]) * 1024 * 1024 == settings(ROOT).max_body_bytes


@contextmanager
def proxy(folder: Path, ports: dict[str, int]) -> Iterator[httpx.Client]:
    """The proxy of the example before servers on these ports."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        pytest.skip("there is no nginx")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    text = CONFIGURATION.replace("listen 8080", f"listen 127.0.0.1:{port}")
    for name, own in ports.items():
        text = text.replace(f"{name}:8765", f"127.0.0.1:{own}")
    (folder / "nginx.conf").write_text(text, "utf-8")
    command = [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "errors")]
    more = f"daemon off; pid {folder}/pid; worker_shutdown_timeout 1s;"
    tried = subprocess.run([*command, "-t", "-g", more], capture_output=True, text=True, timeout=60)
    assert tried.returncode == 0, tried.stderr
    process = subprocess.Popen([*command, "-g", more], stderr=subprocess.DEVNULL)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
            for _ in range(2_400):
                try:
                    client.get("/health/live")
                    break
                except httpx.TransportError:
                    time.sleep(0.05)
            yield client
    finally:
        process.terminate()
        process.wait(timeout=120)


def test_a_workspace_has_one_server_until_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "proxy").mkdir()
    with ExitStack() as first, ExitStack() as second:
        # Each has a home of its own here: so a memory tells which server took it.
        servers = [
            stack.enter_context(serving(MemoryService(settings(tmp_path / name), embedder=HashEmbedder())))
            for name, stack in (("one", first), ("two", second))
        ]
        with proxy(tmp_path / "proxy", {f"memory-{n}": server.port for n, server in enumerate(servers, 1)}) as client:
            for name in [f"w{number}" for number in range(12)] * 3:
                text = {"text": f"Note of {name} at {time.monotonic_ns()}."}
                assert client.post(f"/v1/workspaces/{name}/memories", json=text).is_success
            homes = Counter(
                home for name in range(12) for home in ("one", "two") if (tmp_path / home / f"w{name}").is_dir()
            )
            assert sum(homes.values()) == 12 and len(homes) == 2, "each has one server, and both have some"
            second.close()
            for number in range(12):
                assert client.get(f"/v1/workspaces/w{number}/memories").status_code in (200, 404)


def test_routing_by_workspace_spares_downloads_once_the_disks_together_have_room() -> None:
    load = Load(workspaces=400, passages=100_000, searches=20_000)
    roomy = Cluster(replicas=4, memory_bytes=20 * load.pack_bytes, disk_bytes=140 * load.pack_bytes)
    small = Cluster(replicas=4, memory_bytes=20 * load.pack_bytes, disk_bytes=40 * load.pack_bytes)
    by_chance, by_workspace = simulate(roomy, load, "random"), simulate(roomy, load, "by workspace")
    assert by_workspace.downloads < 0.005 < 0.1 < by_chance.downloads
    assert by_workspace.in_memory > by_chance.in_memory and by_workspace.p95_ms < by_chance.p95_ms
    assert simulate(small, load, "by workspace").downloads > 0.05
