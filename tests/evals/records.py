"""Records that only look alike, none of which replaces another: `python -m tests.evals.records [--failures]`.

People, servers, offers and contacts are written down in every layout that notes have, in eight languages, in one file
or in several, dated or not. Each tells of another thing, so that a mark "since replaced" is false wherever it stands.
The command prints the number of records and of false marks for each layout.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from indexer import Index
from indexer.types import Hit
from tests.indexer.memory_store import InMemoryStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A thing and what is known of it."""

    name: str
    fields: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Words of a language: title of the records, their names, the names of their fields with values.

    Attributes:
        sentence: A sentence about a thing, with its `{name}` and `{value}`.
        named: Of a field "name".
    """

    title: str
    names: tuple[str, ...]
    fields: tuple[tuple[str, tuple[str, ...]], ...]
    sentence: str
    named: str = "Name"

    def records(self) -> list[Record]:
        """The records, each with a value of its own for each field."""
        return [
            Record(
                name=name,
                fields=tuple((field, values[place % len(values)]) for field, values in self.fields),
            )
            for place, name in enumerate(self.names)
        ]


_PORTS = ("8080", "5432", "6379", "9000")
_PHONES = ("0664 111", "0664 222", "0664 333", "0664 444")
_PRICES = ("499 €", "899 €", "1,200 €", "75 €")
WORDS: dict[str, tuple[Words, ...]] = {
    "en": (
        Words(
            title="People",
            names=("Mia Berg", "Bo Lind", "Ana Ruiz", "Tom Hale"),
            fields=(
                ("Phone", _PHONES),
                ("Email", ("mia@example.org", "bo@example.org", "ana@example.org", "tom@example.org")),
                ("City", ("Graz", "Linz", "Porto", "Leeds")),
                ("Role", ("designer", "engineer", "nurse", "teacher")),
                ("Birthday", ("March 3", "June 9", "July 1", "May 7")),
            ),
            sentence="{name} lives in {value}.",
        ),
        Words(
            title="Servers",
            names=("web01", "db01", "cache01", "mail01"),
            fields=(
                ("Port", _PORTS),
                ("Status", ("up", "down", "paused", "live")),
                ("Version", ("1.2", "15.4", "7.2", "3.9")),
                ("Owner", ("Kim", "Lou", "Pat", "Ana")),
                ("Region", ("eu-west-1", "us-east-1", "ap-south-1", "eu-north-1")),
            ),
            sentence="The port of {name} is {value}.",
        ),
        Words(
            title="Offers",
            names=("Fridge", "Oven", "Piano", "Sofa"),
            fields=(
                ("Price", _PRICES),
                ("Color", ("white", "black", "brown", "grey")),
                ("Warranty until", ("9.3.2028", "7.4.2033", "1.1.2027", "5.6.2030")),
                ("Delivery", ("Monday", "Tuesday", "Friday", "Sunday")),
                ("Now", ("in stock", "sold out", "reserved", "in stock")),
            ),
            sentence="The {name} now costs {value}.",
        ),
    ),
    "zh": (
        Words(
            title="联系人",
            names=("张伟", "李娜", "王芳", "刘洋"),
            fields=(
                ("电话", ("13800001111", "13800002222", "13800003333", "13800004444")),
                ("城市", ("北京", "上海", "广州", "成都")),
                ("职位", ("工程师", "设计师", "会计", "老师")),
                ("生日", ("3月3日", "6月9日", "7月1日", "5月7日")),
            ),
            sentence="{name}的电话是{value}。",
            named="姓名",
        ),
        Words(
            title="服务器",
            names=("前端机", "数据库机", "缓存机", "邮件机"),
            fields=(
                ("端口", _PORTS),
                ("状态", ("已启用", "已停用", "暂停", "上线")),
                ("版本", ("1.2", "15.4", "7.2", "3.9")),
                ("负责人", ("小张", "小李", "小王", "小刘")),
            ),
            sentence="{name}现在的端口是{value}。",
            named="名称",
        ),
    ),
    "de": (
        Words(
            title="Kontakte",
            names=("Mia Berg", "Bo Lind", "Jonas Auer", "Lea Holz"),
            fields=(
                ("Telefon", _PHONES),
                ("Stadt", ("Graz", "Linz", "Bern", "Köln")),
                ("Status", ("aktiv", "inaktiv", "pausiert", "offen")),
                ("Preis", _PRICES),
            ),
            sentence="{name} wohnt jetzt in {value}.",
        ),
    ),
    "fr": (
        Words(
            title="Contacts",
            names=("Luc Petit", "Anne Roux", "Paul Blanc", "Zoé Faure"),
            fields=(
                ("Téléphone", _PHONES),
                ("Ville", ("Lyon", "Lille", "Nantes", "Nice")),
                ("Prix", _PRICES),
                ("Version", ("1.2", "2.4", "3.1", "4.9")),
            ),
            sentence="{name} habite maintenant à {value}.",
            named="Nom",
        ),
    ),
    "es": (
        Words(
            title="Contactos",
            names=("Luis Pardo", "Ana Gil", "Eva Mora", "Paco Ríos"),
            fields=(
                ("Teléfono", _PHONES),
                ("Ciudad", ("Madrid", "Sevilla", "Bilbao", "Vigo")),
                ("Precio", _PRICES),
                ("Color", ("rojo", "azul", "verde", "negro")),
            ),
            sentence="{name} ahora vive en {value}.",
            named="Nombre",
        ),
    ),
    "ja": (
        Words(
            title="連絡先",
            names=("田中さん", "鈴木さん", "佐藤さん", "高橋さん"),
            fields=(
                ("電話", _PHONES),
                ("住所", ("東京", "大阪", "京都", "札幌")),
                ("価格", ("1200円", "980円", "4500円", "300円")),
                ("状態", ("稼働中", "停止", "保留", "完了")),
            ),
            sentence="{name}は今{value}に住んでいます。",
            named="名前",
        ),
    ),
    "ko": (
        Words(
            title="연락처",
            names=("김민수", "이지은", "박서준", "최유리"),
            fields=(
                ("전화", _PHONES),
                ("도시", ("서울", "부산", "대구", "인천")),
                ("가격", ("1200원", "980원", "4500원", "300원")),
                ("Version", ("1.2", "2.4", "3.1", "4.9")),
            ),
            sentence="{name}는 이제 {value}에 산다.",
            named="이름",
        ),
    ),
    "ru": (
        Words(
            title="Контакты",
            names=("Иван Петров", "Ольга Ли", "Пётр Ильин", "Анна Белая"),
            fields=(
                ("Телефон", _PHONES),
                ("Город", ("Москва", "Казань", "Омск", "Тула")),
                ("Цена", ("1200 ₽", "980 ₽", "4500 ₽", "300 ₽")),
                ("Статус", ("открыт", "закрыт", "готов", "новый")),
            ),
            sentence="{name} теперь живёт в городе {value}.",
            named="Имя",
        ),
    ),
}

Layout = Callable[[Words, Sequence[Record]], str]


def _listed(words: Words, records: Sequence[Record], before: Callable[[Record], str], mark: str = "- ") -> str:
    body = "".join(
        f"{before(each)}\n" + "".join(f"{mark}{field}: {value}\n" for field, value in each.fields) + "\n"
        for each in records
    )
    return f"# {words.title}\n\n{body}"


def _lines(words: Words, lines: Sequence[str]) -> str:
    return f"# {words.title}\n\n" + "\n".join(lines) + "\n"


def _fields(each: Record, of: str) -> list[str]:
    return [of.format(name=each.name, field=field, value=value) for field, value in each.fields]


def _each(of: str) -> Layout:
    return lambda words, records: _lines(words, [line for each in records for line in _fields(each, of)])


def _nested(words: Words, records: Sequence[Record], *, mark: str = "- ") -> str:
    lines = list[str]()
    for place, each in enumerate(records, 1):
        lines.append(f"{place}. {each.name}" if mark == "1." else f"{mark}{each.name}")
        lines += [f"   - {field}: {value}" for field, value in each.fields]
    return _lines(words, lines)


def _deep(words: Words, records: Sequence[Record]) -> str:
    lines = list[str]()
    for each in records:
        lines += [f"- {each.name}", "  - details"]
        lines += [f"    - {field}: {value}" for field, value in each.fields]
    return _lines(words, lines)


def _table(words: Words, records: Sequence[Record]) -> str:
    head = [words.named, *(field for field, _ in records[0].fields)]
    rows = [[each.name, *(value for _, value in each.fields)] for each in records]
    lines = [head, ["---"] * len(head), *rows]
    return _lines(words, ["| " + " | ".join(cells) + " |" for cells in lines])


def _blocks(rule: str) -> Layout:
    def laid(words: Words, records: Sequence[Record]) -> str:
        blocks = [
            "\n".join([f"{words.named}: {each.name}", *(f"{field}: {value}" for field, value in each.fields)])
            for each in records
        ]
        return f"# {words.title}\n\n" + rule.join(blocks) + "\n"

    return laid


def _sections(words: Words, records: Sequence[Record]) -> str:
    return "".join(f"[{each.name}]\n" + "".join(f"{f} = {v}\n" for f, v in each.fields) + "\n" for each in records)


def _headed(level: str, mark: str) -> Layout:
    return lambda words, records: _listed(words, records, lambda each: f"{level} {each.name}\n", mark)


def _changelog(words: Words, records: Sequence[Record]) -> str:
    parts = "".join(
        f"## {len(records) - place}.0\n\n" + "".join(f"- {field}: {value}\n" for field, value in each.fields) + "\n"
        for place, each in enumerate(records)
    )
    return f"# Changelog\n\n{parts}"


def _numbered(words: Words, records: Sequence[Record]) -> str:
    field = records[0].fields[0][0]
    lines = [f"{place}、{field}：{each.fields[0][1]}（{each.name}）" for place, each in enumerate(records, 1)]
    return _lines(
        words, [*lines, "", *(f"6、{words.sentence.format(name=r.name, value=r.fields[0][1])}" for r in records)]
    )


def _prose(words: Words, records: Sequence[Record]) -> str:
    place = 2 if len(records[0].fields) > 2 else 0
    return _lines(
        words, [words.sentence.format(name=each.name, value=each.fields[place][1]) + "\n" for each in records]
    )


LAYOUTS: dict[str, Layout] = {
    "nested list": _nested,
    "numbered list": lambda words, records: _nested(words, records, mark="1."),
    "nested twice": _deep,
    "bold line": lambda words, records: _listed(words, records, lambda each: f"**{each.name}**\n"),
    "bold line, close": lambda words, records: _listed(words, records, lambda each: f"**{each.name}**"),
    "name and colon": lambda words, records: _listed(words, records, lambda each: f"{each.name}:\n"),
    "name and colon, close": lambda words, records: _listed(words, records, lambda each: f"{each.name}:"),
    "plain caption": lambda words, records: _listed(words, records, lambda each: f"{each.name}\n"),
    "heading and items": _headed("##", "- "),
    "heading and lines": _headed("##", ""),
    "deep heading": _headed("####", "* "),
    "items with a name": lambda words, records: _lines(
        words, [f"- {f}: {v}" for r in records for f, v in ((words.named, r.name), *r.fields)]
    ),
    "blocks": _blocks("\n\n"),
    "blocks and rules": _blocks("\n\n---\n\n"),
    "sections": _sections,
    "table": _table,
    "table without a head": _each("| {name} | {field}: {value} |"),
    "one line each": _each("- {name}: {field}: {value}"),
    "one line, dash": _each("- {name} – {field}: {value}"),
    "one line, brackets": _each("- {field} ({name}): {value}"),
    "one line, behind": _each("- {field}: {value} ({name})"),
    "one line, slash": _each("- {name} / {field}: {value}"),
    "one line, arrow": _each("- {name} → {field}: {value}"),
    "tasks": lambda words, records: _listed(words, records, lambda each: f"- [ ] {each.name}", "  - [x] "),
    "quotes": lambda words, records: _listed(words, records, lambda each: f"> {each.name}", "> "),
    "changelog": _changelog,
    "numbers": _numbered,
    "sentences": _prose,
}
DAYS = ("2026-01-04", "2026-02-11", "2026-03-20", "2026-04-02")


def _files(name: str, words: Words, spread: str) -> dict[str, str]:
    """The files of a case: all records in one file, or one a file."""
    records, layout = words.records(), LAYOUTS[name]
    if spread == "one file":
        return {"records.md": layout(words, records)}
    if spread == "one day":
        return {f"memory/{DAYS[0]}.md": layout(words, records)}
    if spread == "days":
        return {f"memory/{day}.md": layout(words, [each]) for day, each in zip(DAYS, records, strict=True)}
    return {f"memory/list-{place}.md": layout(words, [each]) for place, each in enumerate(records)}


SPREADS = ("one file", "one day", "days", "files")


def marks_of(files: dict[str, str], questions: Sequence[str]) -> list[Hit]:
    """The hits that are marked as replaced, each once."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        index = Index(root, None, store=InMemoryStore())
        index.sync()
        found = [hit for question in questions for hit in index.search(question, limit=50).hits]
        index.close()
    return [*{(hit.path, hit.ordinal): hit for hit in found if hit.replaced_by}.values()]


def cases(languages: Sequence[str] = tuple(WORDS)) -> Iterator[tuple[str, str, str, dict[str, str], list[str], int]]:
    """Layout, language, spread, files, questions and number of records of each case."""
    for language in languages:
        for words in WORDS[language]:
            questions = [" ".join(name for name, _ in words.fields), " ".join(words.names)]
            for name in LAYOUTS:
                for spread in SPREADS:
                    if name == "changelog" and spread in ("days", "files"):
                        continue
                    yield name, language, spread, _files(name, words, spread), questions, len(words.names)


def main() -> None:
    """Print false marks by layout, and each of them where `--failures` is given."""
    records, false = Counter[str](), Counter[str]()
    for name, language, spread, files, questions, count in cases():
        marked = marks_of(files, questions)
        records[name] += count
        false[name] += len(marked)
        if marked and "--failures" in sys.argv:
            for hit in marked[:3]:
                by = hit.replaced_by
                print(f"  {name}, {language}, {spread}: {hit.passage.text!r} by {by and by.text!r} ({by and by.about})")
    for name in LAYOUTS:
        print(f"{name:<24} {records[name]:>5} records, {false[name]} false marks")
    print(f"{'all':<24} {records.total():>5} records, {false.total()} false marks")


if __name__ == "__main__":
    main()
