"""The wheel holds what is needed and nothing else, and its content runs by itself."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.pages import PAGES

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (
    "indexer",
    "memory_service",
    "data",
    "docs",
    "examples",
    "tests",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    ".gitignore",
)
RECORDED = "sessions/desk-2026-47.jsonl"
# What somebody leaves beside the sample who takes its folder for a home, notes among it.
MADE = (
    "memory/2026-11-25.md",
    "memory/store/users/lena/shipping.md",
    "../team/memory/2026-11-25.md",
    "../.server.json",
    "index.sqlite",
    "receipts/2026-11-20.jsonl",
    ".locks/memory.lock",
    "sessions/support-42.jsonl",
    "sessions/.locks/5f.lock",
    "sessions/blobs/3f/3f79bb7b435b05321651daefd374cdc681dc06faa65e374e38337b88ca046dea",
)
MODELS = ("indexer/embeddings/e5_model", "indexer/embeddings/minilm_model")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None, reason="hatchling builds the wheel: pip install '.[test]'"
)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which somebody has already worked with the sample."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("node_modules"))
        else:
            shutil.copy2(ROOT / name, folder / name)
    for name in MADE:
        (folder / "data" / "default" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "data" / "default" / name).write_bytes(b"made at run time")
    return folder


def built(checkout: Path, target: str, folder: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)],
        cwd=checkout, check=True, capture_output=True, timeout=250,
    )  # fmt: skip
    (found,) = folder.iterdir()
    return found


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(checkout, "wheel", tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def files(package: str) -> set[str]:
    """The files of a package in the checkout."""
    found = (path for path in (ROOT / package).rglob("*") if path.is_file() and path.parent.name != "__pycache__")
    return {path.relative_to(ROOT).as_posix() for path in found}


def test_the_wheel_is_for_every_platform(wheel: Path) -> None:
    assert wheel.name.startswith("memory_service-") and wheel.name.endswith("-py3-none-any.whl")


def test_it_holds_both_packages_and_their_types(wheel: Path) -> None:
    found = names(wheel)
    assert files("indexer") | files("memory_service") <= found
    assert {"indexer/py.typed", "memory_service/py.typed"} <= found


@pytest.mark.parametrize("folder", MODELS)
def test_it_holds_the_models_with_their_licences(wheel: Path, folder: str) -> None:
    model = {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).iterdir() if path.is_file()}
    assert {f"{folder}/{name}" for name in ("model.onnx", "LICENSE", "NOTICE", "README.md")} <= model
    assert model <= names(wheel)


def test_it_is_no_larger_than_two_models_make_it(wheel: Path) -> None:
    assert wheel.stat().st_size <= 95_000_000


def test_it_holds_what_is_written_into_hosts(wheel: Path) -> None:
    found = {name.partition("/hosts/data/")[2] for name in names(wheel) if "/hosts/data/" in name}
    assert {"SKILL.md", "opencode.ts", "openclaw/index.ts", "openclaw/openclaw.plugin.json"} <= found


def test_it_names_all_licences(wheel: Path) -> None:
    licences = {name.partition(".dist-info/licenses/")[2] for name in names(wheel)}
    assert {"LICENSE", *(f"{model}/LICENSE" for model in MODELS)} <= licences


def sample() -> set[str]:
    """The files of the sample that are bundled."""
    source = ROOT / "data" / "default"
    return {path.relative_to(source).as_posix() for path in source.rglob("*.md")} | {RECORDED}


def chinese_sample() -> set[str]:
    """The files of the sample in Chinese."""
    source = ROOT / "data" / "chinese"
    return {path.relative_to(source).as_posix() for path in source.rglob("*.md")} | {"sessions/caigou-2026-47.jsonl"}


def test_it_holds_the_sample_and_nothing_that_was_made_from_it(wheel: Path) -> None:
    found = {name.removeprefix("memory_service/_sample/") for name in names(wheel) if "/_sample/" in name}
    assert found == sample()
    with zipfile.ZipFile(wheel) as archive:
        bundled = archive.read(f"memory_service/_sample/{RECORDED}")
    assert bundled == (ROOT / "data" / "default" / RECORDED).read_bytes()
    chinese = {name.removeprefix("memory_service/_sample_chinese/") for name in names(wheel) if "/_sample_chi" in name}
    assert chinese == chinese_sample()


def test_the_source_archive_holds_it_too(checkout: Path, tmp_path: Path) -> None:
    # To press the models takes most of the time.
    light = shutil.copytree(checkout, tmp_path / "light", ignore=shutil.ignore_patterns("*.onnx", "tokenizer.model"))
    with tarfile.open(built(light, "sdist", tmp_path / "built")) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert {name.removeprefix("data/default/") for name in held if name.startswith("data/")} == {
        *sample(),
        *(f"data/chinese/{name}" for name in chinese_sample()),
        "data/README.md",
    }
    assert set(PAGES) <= held


def test_it_holds_nothing_else(wheel: Path) -> None:
    found = names(wheel)
    assert {name.split("/")[0].removesuffix(".dist-info") for name in found} == {
        "indexer",
        "memory_service",
        wheel.name.removesuffix("-py3-none-any.whl"),
    }
    unwanted = ("__pycache__", ".pyc", "tests/", ".sqlite", ".lock", ".git")
    assert [name for name in found if any(part in name for part in unwanted)] == []


def test_the_command_is_installed(unpacked: Path) -> None:
    (entry_points,) = unpacked.glob("*.dist-info/entry_points.txt")
    assert "memory-service = memory_service.__main__:start" in entry_points.read_text("utf-8")


def test_its_content_answers_from_the_samples_in_an_empty_folder(unpacked: Path, tmp_path: Path) -> None:
    empty, homes = tmp_path / "empty", tmp_path / "homes"
    empty.mkdir()
    ours = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_SERVICE_")}
    program = f"""
from pathlib import Path
import indexer, memory_service
from memory_service.service import MemoryService
from memory_service.service import Recording, copy_sample
print(indexer.__file__, memory_service.__file__)
homes = Path({str(homes)!r})
for language, said in ("en", 140), ("zh", 88):
    with MemoryService.open(homes / language, embedding_model="none") as service:
        copy_sample(service.storage, language=language)
        assert len(Recording(service.storage, language).messages) >= said
    (homes / language / "default" / "sessions").rename(homes / f"sessions {{language}}")
for file in (homes / "en" / "default" / "memory").glob("2026-10-*.md"): file.unlink()
for language, model, question in (
    ("en", "minilm", "When do the backups start?"), ("zh", "auto", "陶盆分给哪两家？")
):
    with MemoryService.open(homes / language, embedding_model=model) as service:
        found = service.search("default", question)
        print(found.degraded, *(each.text for each in found.results[:3]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=empty, env={**ours, "PYTHONPATH": str(unpacked), "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled")},
        capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    places, *answers = done.stdout.splitlines()
    assert [Path(place).parent.parent for place in places.split()] == [unpacked, unpacked]
    assert [answer.startswith("[] ") for answer in answers] == [True, True]
    assert "02:15" in answers[0] and "景德镇" in answers[1]
    assert list(empty.iterdir()) == []
