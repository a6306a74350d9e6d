"""German, which is one file: days, stop words, small talk, rules and facts; and that no other file names a language."""

import ast
import datetime as dt
import subprocess
import sys
from pathlib import Path

import pytest

import indexer.language
from indexer.language import asked_terms, is_assent, is_bare_assent, is_continuation
from indexer.language.asked_days import asked_days
from indexer.language.facts import facts_of
from indexer.language.restated import restating
from indexer.language.tables import LANGUAGES
from memory_service.text.recall import decide_recall
from memory_service.text.sentences import Sentence
from memory_service.text.statements import Kind, kind_of, rules_of

TODAY = dt.date(2026, 11, 20)  # a Friday


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("Was war letzten Dienstag?", "2026-11-17", "2026-11-17"),
        ("Was haben wir letzten Freitag besprochen?", "2026-11-13", "2026-11-13"),
        ("Was ist übermorgen geplant?", "2026-11-22", "2026-11-22"),
        ("Was steht morgen an?", "2026-11-21", "2026-11-21"),
        ("Was war vorgestern?", "2026-11-18", "2026-11-18"),
        ("Was passierte vor drei Tagen?", "2026-11-17", "2026-11-17"),
        ("Wann war der Termin letzte Woche?", "2026-11-09", "2026-11-15"),
        ("Was steht am nächsten Wochenende an?", "2026-11-28", "2026-11-29"),
        ("Was war letztes Jahr?", "2025-01-01", "2025-12-31"),
    ],
)
def test_relative_days(question: str, first: str, last: str) -> None:
    day = dt.date.fromisoformat
    assert asked_days(question, TODAY).ranges == ((day(first).toordinal(), day(last).toordinal()),)


@pytest.mark.parametrize("question", ["Wie war es an jenem Morgen?", "Wer sagt guten Morgen?"])
def test_the_morning_is_no_day(question: str) -> None:
    assert not asked_days(question, TODAY)


@pytest.mark.parametrize(
    ("question", "months", "days"),
    [
        ("Was war am 3. März?", frozenset({3}), frozenset({3})),
        ("Was haben wir im Mai gemacht?", frozenset({5}), frozenset[int]()),
        ("Was geschah am 24. Dezember 2025?", frozenset({12}), frozenset({24})),
    ],
)
def test_dates_and_months(question: str, months: frozenset[int], days: frozenset[int]) -> None:
    asked = asked_days(question, TODAY)
    assert (asked.months, asked.days) == (months, days)


def test_a_search_goes_without_words_of_grammar() -> None:
    assert asked_terms("Wann war der Termin mit der Vermieterin?") == asked_terms("Termin Vermieterin")
    # Elsewhere "war" and "die" are words like others.
    assert "war" in asked_terms("the end of the war") and "die" in asked_terms("a die that was cast")


@pytest.mark.parametrize("reply", ["Ja.", "Passt so", "Alles klar!", "Mach das bitte", "In Ordnung, danke"])
def test_assents(reply: str) -> None:
    assert is_assent(reply) and is_bare_assent(reply)


def test_going_on() -> None:
    assert is_continuation("mach bitte weiter") and not is_continuation("mach den Ofen weiter auf")


@pytest.mark.parametrize(
    "message",
    ["Guten Morgen!", "Vielen Dank, super.", "Alles klar, danke dir", "Hallo, wie geht es dir?"],
)
def test_small_talk_needs_no_memory(message: str) -> None:
    assert not decide_recall(message).search


@pytest.mark.parametrize("message", ["Wann war der Umzug?", "Weißt du noch, was wir sagten?", "Danke, und der Preis?"])
def test_a_question_needs_memories(message: str) -> None:
    assert decide_recall(message).search


@pytest.mark.parametrize(
    "rule",
    [
        "Ab jetzt antworte auf Deutsch.",
        "Immer zuerst die Tests laufen lassen.",
        "Antworte mir immer in ganzen Sätzen.",
        "Nie ohne Rückfrage löschen.",
        "Du darfst niemals direkt nach main pushen.",
        "Bitte nie nach 20 Uhr anrufen.",
        "In Zukunft bitte kurze Antworten.",
    ],
)
def test_rules(rule: str) -> None:
    assert rules_of(rule) == [rule]
    assert kind_of(Sentence(text=rule, voice="user"))[0] is Kind.RULE


@pytest.mark.parametrize(
    "sentence",
    ["Ich bin immer müde.", "Das war noch nie so.", "Soll ich immer fragen?", "Gestern war Markt."],
)
def test_no_rules(sentence: str) -> None:
    assert rules_of(sentence) == []


def test_a_decision() -> None:
    assert kind_of(Sentence(text="Wir haben uns für Postgres entschieden.", voice="user"))[0] is Kind.DECISION


@pytest.mark.parametrize(
    ("older", "newer", "thing"),
    [
        ("Mein Umzug ist am 3. März.", "Mein Umzug ist jetzt am 4. Mai.", "@me umzug|day"),
        ("Ich wohne in Wien.", "Ich wohne jetzt in Graz.", "@me|location"),
        ("Ich wohne in Wien.", "Ich wohne in Graz.", "@me|location"),
        ("Ich wohne in Wien.", "Ich bin nach Graz gezogen.", "@me|location"),
        ("Ich arbeite bei Siemens.", "Ich arbeite jetzt bei Bosch.", "@me|employer"),
        ("Die Miete beträgt 800 Euro.", "Die Miete beträgt jetzt 850 Euro.", "|price"),
        ("Das Treffen findet am Montag statt.", "Das Treffen wurde auf Dienstag verlegt.", "treffen|day"),
        ("Die Telefonnummer von Lena ist 555-1234.", "Die Telefonnummer von Lena ist jetzt 555-9876.", "lena|phone"),
        ("Lena ist ledig.", "Lena ist jetzt verheiratet.", "lena|relationship"),
        ("Der Drucker kostet 200 Euro.", "Der Drucker kostet jetzt 180 Euro.", "drucker|price"),
    ],
)
def test_a_later_fact_replaces_an_earlier_one(older: str, newer: str, thing: str) -> None:
    values = []
    for text in (older, newer):
        claim = next(claim for claim in facts_of(text).claims if claim.thing == thing)
        assert claim.single or claim.changes
        values.append(claim.value)
    assert values[0] != values[1]


def test_a_tool_takes_the_place_of_another_of_its_kind() -> None:
    claims = facts_of("Wir nutzen jetzt MySQL.").claims
    assert any((claim.thing, claim.value, claim.changes) == ("@we|use database", "mysql", True) for claim in claims)


@pytest.mark.parametrize(
    ("stated", "ended", "thing"),
    [
        ("Ich trinke Kaffee.", "Ich trinke keinen Kaffee mehr.", "@me|drink=kaffee"),
        ("Ich arbeite bei Siemens.", "Ich arbeite nicht mehr bei Siemens.", "@me|employer=siemens"),
    ],
)
def test_what_ends(stated: str, ended: str, thing: str) -> None:
    assert [claim.value for claim in facts_of(stated).claims if claim.thing == thing] == ["on"]
    assert [claim.value for claim in facts_of(ended).claims if claim.thing == thing] == ["off"]


@pytest.mark.parametrize(
    "text",
    [
        "Vielleicht wohne ich in Graz.",
        "Wohnst du in Graz?",
        "Ich würde bei Bosch arbeiten.",
        "The bin is full.",
        "the war in the east",
    ],
)
def test_no_facts(text: str) -> None:
    assert not [claim for claim in facts_of(text).claims if "said" not in claim.thing]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Der Kurs beginnt um 9 Uhr.", "Der Kurs beginnt um 10 Uhr."),
        ("Der Schlüssel liegt hinter der Uhr.", "Der Schlüssel hängt neben der Tür."),
        ("Mein Zug fährt am Montag ab.", "Mein Zug fährt am Dienstag ab."),
    ],
)
def test_a_sentence_says_again_with_another_value(older: str, newer: str) -> None:
    assert restating(older, newer) is not None


def test_what_a_verb_takes_several_of_ends_nothing() -> None:
    assert restating("Wir nutzen Postgres für Logs.", "Wir nutzen SQLite für Logs.") is None


def test_an_amount_of_a_clause_without_a_wording_changes() -> None:
    older, newer = (
        {claim.thing: claim for claim in facts_of(text).claims if claim.thing.endswith("|slot")}
        for text in ("Die Probe dauert 40 Minuten.", "Die Probe wurde auf 50 Minuten verlängert.")
    )
    assert [claim.value for claim in older.values()] == ["40"]
    assert [(claim.value, claim.changes) for claim in newer.values()] == [("50", True)]


def test_words_of_german_claim_nothing_in_english() -> None:
    assert not [claim for claim in facts_of("The old war die was cast in an hour.").claims if claim.changes]


_ESPERANTO = """
import re
from indexer.language.base import Days, Grammar, Language, Replies
from indexer.language.fact_tables import FactTable, Nouns, Script

PARTS = {"N": r"(?P<n>\\S.{0,60}?)", "V": r"(?P<v>\\S.{0,50}?)"}
ESPERANTO = Language(
    name="Esperanto",
    grammar=Grammar(grammar_words="la estas kaj mi ni kun por", stop_words=frozenset("la estas kaj".split())),
    replies=Replies(assents="jes|bone"),
    days=Days(day_words={"hieraŭ": -1, "hodiaŭ": 0}, relative=((r"\\bhieraŭ\\b", "-1"),)),
    nouns=Nouns(attributes={"price": ("prezo",)}),
    facts=FactTable(
        wordings="attribute N estas V",
        script=Script(
            gap=r"\\s+", first_gap=r"\\b", word_end=r"(?!\\w)", parts=PARTS, end="", units=re.compile("[a-z]+"),
            firsts={"S": "", **{name: "^" + part for name, part in PARTS.items()}},
            lasts={"V": r"(?P<v>\\S.*)"},
        ),
    ),
)
"""
_USE = """
import datetime as dt, sys
import indexer.language
indexer.language.__path__.append(sys.argv[1])
from indexer.language import LANGUAGES, is_assent
from indexer.language.asked_days import asked_days
from indexer.language.facts import facts_of
print([language.name for language in LANGUAGES][:4], is_assent("Jes!"))
print(asked_days("Kio estis hieraŭ?", dt.date(2026, 11, 20)).ranges == ((dt.date(2026, 11, 19).toordinal(),) * 2,))
print([claim.value for claim in facts_of("La prezo estas 40 eŭroj.").claims if claim.thing.endswith("|price")])
"""


def test_another_language_is_one_file(tmp_path: Path) -> None:
    """A language whose file lies in a folder of the room is read by all engines, and no other file changes."""
    (tmp_path / "esperanto_language.py").write_text(_ESPERANTO, encoding="utf-8")
    command = [sys.executable, "-X", "utf8", "-c", _USE, str(tmp_path)]
    answer = subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout.splitlines()
    assert answer == ["['English', 'Chinese', 'Esperanto', 'German'] True", "True", "['40 eŭroj']"]


def test_languages_are_known_to_their_table_alone() -> None:
    """No file imports the words of one language but the files of that language, and `tables` by the names of files."""
    root = Path(indexer.language.__file__).parent
    files = {"english", "chinese", "german_language", "others"}
    named = []
    for path in sorted([*root.parent.rglob("*.py"), *(root.parent.parent / "memory_service").rglob("*.py")]):
        if path.is_relative_to(root) and path.relative_to(root).parts[0].removesuffix(".py") in files:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            named += [f"{path.name}: {module}" for module in modules if files & set(module.split(".")[2:3])]
    assert named == []


def test_each_language_has_a_name_of_its_own() -> None:
    names = [language.name for language in LANGUAGES]
    assert len(set(names)) == len(names) and {"English", "Chinese", "German"} <= set(names)
