"""The scale benchmark's own parts: its corpus, its arithmetic, its table and its picture."""

from __future__ import annotations

import json
import time
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.language.terms import STOP_WORDS
from indexer.types import Vectors
from tests.benchmarks.scale import picture, table, texts, vectors
from tests.benchmarks.scale.__main__ import settings_from
from tests.benchmarks.scale.material import Material, prepared
from tests.benchmarks.scale.peers.base import SYSTEMS, system
from tests.benchmarks.scale.run import Settings, measured, reason_in, run
from tests.benchmarks.scale.trial import ask, build
from tests.benchmarks.scale.values import KINDS, Line, Report

SIZE = 1200


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scale")


@pytest.fixture(scope="module")
def material(folder: Path) -> Material:
    return prepared(folder, SIZE, "clustered", 24)


def run_settings(folder: Path, *systems: str, most_seconds: float = 60.0, direct: bool = False) -> Settings:
    return Settings(
        sizes=(SIZE,),
        systems=systems,
        made=("clustered", "minilm"),
        minilm_most=0,
        questions=24,
        rounds=1,
        direct=direct,
        most_seconds=most_seconds,
        folder=folder,
    )


# Texts


def test_a_small_corpus_is_the_beginning_of_a_large_one() -> None:
    assert list(texts.passages(250)) == list(islice(texts.passages(1000), 250))


def test_passages_have_their_lengths_and_differ() -> None:
    drawn = [words for number in range(20) for words in texts.words_of_file(number)]
    lengths = {len(words) for words in drawn}
    assert (min(lengths), max(lengths)) == (texts.SHORTEST, texts.LONGEST)
    assert len({texts.joined(words) for words in drawn}) == len(drawn)


def test_one_passage_in_twenty_is_chinese_without_spaces() -> None:
    chinese = [text for text in texts.passages(4000) if not text.isascii()]
    assert 0.03 < len(chinese) / 4000 < 0.07
    assert not any(" " in text for text in chinese)


def test_words_are_used_as_english_uses_them() -> None:
    words = texts.english().words
    assert len(set(words)) == len(words) == texts.WORDS
    assert words[:3] == ("the", "of", "and")
    drawn = [word for number in range(20) for passage in texts.words_of_file(number) for word in passage]
    share = [drawn.count(word) / len(drawn) for word in words[:8]]
    assert share == pytest.approx([0.95 / (rank * 11.4) for rank in range(1, 9)], rel=0.15)


@given(st.integers(0, 9_999_999))
def test_a_row_is_known_by_its_path_and_line(row: int) -> None:
    number, place = divmod(row, texts.FILE_PASSAGES)
    assert texts.row_of(texts.path_of_file(number), texts.FIRST_LINE + place) == row


def test_questions_are_made_of_their_passage() -> None:
    asked = texts.questions(80, 5000)
    rows = list(texts.passages(5000))
    assert [one.kind for one in asked[:4]] == list(KINDS)
    assert asked == texts.questions(80, 5000)
    for one in asked:
        if one.text.isascii():
            words = one.text.split()
            assert set(words) <= set(rows[one.row].split())
            stops = sum(word in STOP_WORDS for word in words)
            assert (len(words), stops) == {
                "3 words": (3, 0),
                "8 words": (8, 0),
                "8 with stop words": (8, 3),
                "common words": (5, 0),
            }[one.kind]


def test_common_words_are_common() -> None:
    common = [one for one in texts.questions(80, 5000) if one.kind == "common words" and one.text.isascii()]
    assert all(word in texts.english().words[:400] for one in common for word in one.text.split())


# Vectors


def test_vectors_are_unit_rows_and_the_same_in_every_size() -> None:
    large = np.concatenate(list(vectors.clustered_chunks(2500)))
    small = np.concatenate(list(vectors.clustered_chunks(1200)))
    assert large.shape == (2500, vectors.DIMENSIONS)
    assert np.array_equal(large[:1200], small)
    assert np.linalg.norm(large, axis=1) == pytest.approx(1.0, abs=1e-5)


def test_passages_of_a_cluster_are_near_each_other() -> None:
    rows = vectors.clustered(0)
    cosines = rows @ rows.T - np.eye(len(rows))
    near = cosines.max(axis=1)
    assert 0.3 < float(np.median(near[near > 0.3])) < 0.6
    assert abs(float(np.median(cosines))) < 0.05


def test_a_question_is_near_its_passage() -> None:
    asked = texts.questions(40, 2000)
    questions = vectors.clustered_questions(asked)
    rows = np.concatenate(list(vectors.clustered_chunks(2000)))
    own = [float(questions[i] @ rows[one.row]) for i, one in enumerate(asked)]
    assert np.mean(own) == pytest.approx(0.7, abs=0.05)


def random_rows(count: int, seed: int) -> Vectors:
    return np.random.default_rng(seed).standard_normal((count, 8)).astype(np.float32)


@pytest.mark.parametrize("count", [4, 10, 19_995, 45_001])
def test_the_exact_tenth_is_that_of_a_full_sort(count: int) -> None:
    rows, questions = random_rows(count, 1), random_rows(5, 2)
    expected = np.sort(questions @ rows.T, axis=1)[:, -min(10, count)]
    assert vectors.lowest_of_first(rows, questions) == pytest.approx(expected)


def test_recall_counts_what_is_truly_near() -> None:
    rows, questions = random_rows(3000, 3), random_rows(4, 4)
    lowest = vectors.lowest_of_first(rows, questions)
    best = np.argsort(-(questions @ rows.T), axis=1)

    def of(found: list[list[int]]) -> float:
        return vectors.recall(found, rows, questions, lowest)

    assert of(best[:, :10].tolist()) == 1.0
    assert of(best[:, 10:20].tolist()) == 0.0
    assert of(best[:, 5:15].tolist()) == 0.5
    assert of([[int(row[0])] * 10 for row in best]) == pytest.approx(0.1)
    assert of([[], [], [], []]) == 0.0
    assert of(best[:2, :10].tolist()) == 1.0


# Material and trials


def test_material_is_made_once_and_read_in_runs(folder: Path, material: Material) -> None:
    stamp = (material.folder / "vectors.npy").stat().st_mtime_ns
    again = prepared(folder, SIZE, "clustered", 24)
    assert (again.folder / "vectors.npy").stat().st_mtime_ns == stamp
    runs = list(again.batches(500))
    assert [start for start, _, _ in runs] == [0, 500, 1000]
    assert [text for _, part, _ in runs for text in part] == list(texts.passages(SIZE))
    assert np.array_equal(np.concatenate([part for _, _, part in runs]), again.vectors)


@pytest.mark.parametrize(("name", "direct"), [("ours", False), ("ours", True), ("plain", False), ("rank-bm25", False)])
def test_a_system_finds_what_is_there(material: Material, tmp_path: Path, name: str, direct: bool) -> None:
    built = build(system(name, direct=direct), material, tmp_path)
    asked = ask(system(name, direct=direct), material, tmp_path, began=time.time(), rounds=2, most_seconds=60)
    questions = material.questions()
    matrix = np.stack([question.vector for question in questions])
    assert built.seconds > 0
    assert (built.disk_bytes > SIZE * vectors.DIMENSIONS * 4) == (name != "rank-bm25")
    assert min(asked.base_bytes, asked.resident_bytes, built.peak_bytes) > 10_000_000
    assert {kind: len(times) for kind, times in asked.milliseconds.items()} == dict.fromkeys(KINDS, 12)
    assert asked.first_text == list(texts.passages(SIZE))[asked.found[0][0]]
    assert all(len(found) == 10 for found in asked.found)
    own = [question.row in found for question, found in zip(questions, asked.found, strict=True)]
    assert np.mean(own) > 0.8
    if name == "rank-bm25":
        assert asked.nearest == []
    else:
        assert vectors.recall(asked.nearest, material.vectors, matrix, material.lowest) == 1.0


def test_a_run_has_a_line_for_each_system_and_size(folder: Path) -> None:
    told: list[Report] = []
    report = run(run_settings(folder, "plain", "rank-bm25"), told.append)
    assert [so_far.lines for so_far in told] == [report.lines[:1], report.lines]
    assert [(line.system, line.vectors, line.note) for line in report.lines] == [
        ("plain", "clustered", ""),
        ("rank-bm25", "clustered", ""),
    ]
    plain, words = report.lines
    assert (plain.recall, plain.searches) == (1.0, 24)
    assert words.recall is None
    assert report.versions["sqlite-vec"] != "not installed"


def test_what_takes_too_long_has_a_line_with_the_reason(folder: Path, material: Material) -> None:
    line = measured("plain", material, material.questions(), run_settings(folder, "plain", most_seconds=0.01))
    assert line.note == "> 0.01 s to build"
    assert line.p50_ms is None


def test_what_fails_has_a_line_with_the_reason(folder: Path, material: Material) -> None:
    (material.folder / "texts.txt").rename(material.folder / "away.txt")
    try:
        line = measured("plain", material, material.questions(), run_settings(folder, "plain"))
    finally:
        (material.folder / "away.txt").rename(material.folder / "texts.txt")
    assert line.note.startswith("build: FileNotFoundError")


def test_reasons_are_the_last_line_and_short() -> None:
    assert reason_in("Traceback\n  File\nValueError: no\n\n", 1) == "ValueError: no"
    assert reason_in("", -9) == "it ended with -9"
    assert len(reason_in("x" * 5000, 1)) == 120


def test_the_command_line_names_systems_and_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    chosen, json_path = settings_from(["--sizes", "10,20", "--systems", "ours,plain", "--vectors", "minilm"])
    assert (chosen.sizes, chosen.systems, chosen.made, json_path) == ((10, 20), ("ours", "plain"), ("minilm",), None)
    assert settings_from([])[0].systems == tuple(SYSTEMS)
    with pytest.raises(SystemExit):
        settings_from(["--systems", "nosuch"])
    assert "'nosuch'" in capsys.readouterr().err


# Table and picture

DONE = Line(
    system="ours",
    title="this project",
    does="hybrid",
    passages=100_000,
    vectors="clustered",
    build_seconds=20.0,
    passages_per_second=5000.0,
    disk_bytes=250_000_000,
    p50_ms=4.0,
    p99_ms=10.0,
    cpu_ms=5.0,
    recall=0.998,
    found=1.0,
)
PLAIN = replace(DONE, system="plain", title="plain <&>", p50_ms=36.0, p99_ms=60.0, cpu_ms=30.0)
LATE = Line(
    system="late", title="late one", does="words", passages=100_000, vectors="clustered", note="> 60 s to build"
)
REPORT = Report(machine="a machine", versions={"numpy": "2"}, lines=(DONE, PLAIN, LATE))


def test_a_table_is_aligned_and_says_what_is_missing() -> None:
    head, ours, plain, late = table.table(REPORT.lines).splitlines()
    assert head.index("p50 ms") + len("p50 ms") == ours.index("4.00") + 4 == plain.index("36.0") + 4
    assert late.endswith("> 60 s to build")
    assert late.split().count(table.NONE) == 10
    assert "250" in ours and "0.998" in ours


def test_a_line_in_short_says_its_median_or_why_there_is_none() -> None:
    assert table.said_of(DONE) == "100,000 clustered this project: p50 4.00 ms"
    assert table.said_of(LATE) == "100,000 clustered late one: > 60 s to build"
    assert table.said_of(replace(DONE, note="half")).endswith("p50 4.00 ms; half")


def test_a_markdown_table_has_as_many_cells_in_each_row() -> None:
    assert len({row.count(" | ") for row in table.markdown(REPORT.lines).splitlines()}) == 1


def test_ratios_compare_what_was_measured_alike() -> None:
    other = replace(PLAIN, vectors="minilm", p50_ms=1.0)
    assert table.ratios([DONE, PLAIN, other, LATE]) == [
        "100,000 clustered: p99 / p50 of this project 2.5",
        "100,000 clustered: plain <&> / this project: p50 9.0, processor time 6.0",
    ]


def test_a_report_survives_json() -> None:
    timed = replace(DONE, kind_p50_ms={"3 words": 3.0, "8 words": 5.0})
    report = replace(REPORT, lines=(timed, PLAIN, LATE))
    assert table.from_json(table.to_json(report)) == report
    assert json.loads(table.to_json(report))["lines"][2]["p50_ms"] is None


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "–"), (0.031, "0.03"), (3.456, "3.46"), (34.56, "34.6"), (3456.7, "3,457")]
)
def test_numbers_have_three_figures(value: float | None, shown: str) -> None:
    assert table.number(value) == shown


def many_lines() -> tuple[Line, ...]:
    return tuple(
        replace(DONE, system=name, title=f"{name} {'x' * 12}", passages=10**power, p50_ms=0.3 * 7**i, p99_ms=0.9 * 7**i)
        for i, name in enumerate(SYSTEMS)
        for power in range(3, 7)
    )


def test_the_picture_is_small_self_contained_svg() -> None:
    drawn = picture.picture(replace(REPORT, lines=many_lines()))
    root = ET.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(drawn.encode()) < 20_000
    assert drawn.count("http") == 1  # the name space
    assert not any(word in drawn for word in ("<script", "<image", "href", "url(", "@import", "@font-face"))
    assert "prefers-color-scheme:dark" in drawn and "currentColor" in drawn


def test_the_picture_names_every_system_and_what_is_missing() -> None:
    root = ET.fromstring(picture.picture(REPORT))
    said = ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"this project", "plain <&>", "late one, 100k: > 60 s to build", "100k"} <= set(said)
    assert "4.00 ms at 100k, hybrid" in said


def test_points_stand_inside_the_field() -> None:
    series = picture.series_of(many_lines())
    frame = picture.frame_of(series)
    for one in series:
        xs = [frame.x(point.passages) for point in one.points]
        ys = [y for point in one.points for y in (frame.y(point.p50_ms), frame.y(point.p99_ms))]
        assert xs == sorted(xs) and 0 < xs[0] and xs[-1] < picture.WIDTH
        assert all(0 < y < picture.HEIGHT for y in ys)
        assert all(frame.y(point.p99_ms) < frame.y(point.p50_ms) for point in one.points)


def test_a_report_without_times_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="no times to draw"):
        picture.picture(replace(REPORT, lines=(LATE,)))


@settings(max_examples=70)
@given(st.lists(st.floats(0, 300), min_size=1, max_size=9))
def test_labels_keep_their_order_and_distance(wanted: list[float]) -> None:
    places = picture.spread(wanted, 30, 0, 300)
    ordered = [places[i] for i in sorted(range(len(wanted)), key=lambda i: wanted[i])]
    assert all(b - a >= 30 - 1e-6 for a, b in pairwise(ordered))
    assert -1e-6 <= min(places) and max(places) <= 300 + 1e-6


def test_labels_with_room_stay_where_they_are() -> None:
    assert picture.spread([200, 20, 100], 30, 0, 300) == [200, 20, 100]
    assert picture.spread([100, 100], 30, 0, 300) == [85, 115]


def test_sizes_and_times_are_short() -> None:
    assert [picture.size_text(size) for size in (500, 1000, 100_000, 1_000_000)] == ["500", "1k", "100k", "1M"]
    assert [picture.time_text(value) for value in (0.1, 10, 1000)] == ["0.1 ms", "10 ms", "1 s"]
