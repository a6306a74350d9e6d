"""Twenty things with five attributes each, written down in six layouts: `python -m tests.evals.layouts [--failures]`.

What a line tells of stands somewhere above it: in a heading, a list item, a label, the first row of a table. The
command asks for every attribute of every thing and prints the share of the questions whose passage comes first, and of
those whose answer stands in a block of few tokens together with the name of its thing.
"""

from __future__ import annotations

import argparse
import datetime as dt
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from indexer import Embedder, Index, MiniLM
from indexer.types import Hit
from memory_service.memories.block import build_context, candidates_for

BUDGET_TOKENS = 60
_NOW = dt.datetime(2026, 11, 25, 12, 0, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """What is known of each thing.

    Attributes:
        question: With `{}` for the thing.
        value: Makes the value of the thing with that number, different from those of all others.
    """

    name: str
    question: str
    value: Callable[[int], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """Things of one kind."""

    title: str
    things: tuple[str, ...]
    attributes: tuple[Attribute, ...]

    def records(self) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
        """Each thing with its attributes."""
        for number, thing in enumerate(self.things):
            yield thing, tuple((each.name, each.value(number)) for each in self.attributes)

    def asked(self) -> Iterator[tuple[str, str, str]]:
        """Question, thing and value of each attribute of each thing."""
        for number, thing in enumerate(self.things):
            for each in self.attributes:
                yield each.question.format(thing), thing, each.value(number)


_MONTHS = ("January", "March", "April", "June", "September", "October")
_SHOPS = tuple(
    "Amstel Bergmann Corvo Delmar Eichner Fontana Grunwald Hollis Ivarsen Jansson Keller Lindqvist Moretti Nordahl"
    " Okafor Pascual Quist Rosner Salvatore Tannberg".split()
)
_PLACES = tuple(
    "attic basement bedroom cellar corridor den garden greenhouse hall kitchen larder loft nursery office pantry porch"
    " shed studio study terrace".split()
)
_TOWNS = tuple(
    "Aarhus Bergen Cadiz Dijon Essen Faro Ghent Hull Ivrea Jena Kiel Lugano Malaga Namur Oulu Parma Rennes Siena Turku"
    " Uppsala".split()
)
_FOODS = tuple(
    "almonds barley celery dairy eggs fish gluten hazelnuts iodine kiwi lupin mustard nickel oats peanuts quinoa rye"
    " sesame tomatoes walnuts".split()
)
TOPICS = (
    Topic(
        title="Household",
        things=(
            *("Garage door", "Washing machine", "Piano", "Oven", "Lawn mower", "Coffee grinder", "Sofa", "Heat pump"),
            *("Cargo bike", "Desk lamp", "Freezer", "Drill", "Tent", "Canoe", "Projector", "Sewing machine"),
            *("Vacuum cleaner", "Bookshelf", "Wardrobe", "Toaster"),
        ),
        attributes=(
            Attribute(name="Cost", question="how much did the {} cost?", value=lambda n: f"{137 + 83 * n} €"),
            Attribute(name="Bought at", question="in which shop did I buy the {}?", value=lambda n: _SHOPS[n]),
            Attribute(
                name="Warranty until",
                question="how long is the warranty of the {}?",
                value=lambda n: f"{_MONTHS[n % 6]} {2027 + n}",
            ),
            Attribute(name="Stands in", question="where is the {}?", value=lambda n: f"the {_PLACES[n]}"),
            Attribute(
                name="Serial number", question="serial number of the {}", value=lambda n: f"SN-{4410 + 37 * n}-{n + 11}"
            ),
        ),
    ),
    Topic(
        title="People",
        things=(
            *("Mia Berg", "Bo Lind", "Ana Ruiz", "Tom Hale", "Eva Stone", "Kim Novak", "Lou Carter", "Pat Murray"),
            *("Ida Moser", "Max Huber", "Zoe Frost", "Ben Adler", "Uma Rao", "Leo Falk", "Nina Voss", "Carl Ekman"),
            *("Rosa Pinto", "Hugo Lang", "Vera Cruz", "Omar Said"),
        ),
        attributes=(
            Attribute(name="Phone", question="what is the phone number of {}?", value=lambda n: f"0664 {201 + 31 * n}"),
            Attribute(name="Allergy", question="what is {} allergic to?", value=lambda n: _FOODS[n]),
            Attribute(name="Lives in", question="where does {} live?", value=lambda n: _TOWNS[n]),
            Attribute(name="Employer", question="who does {} work for?", value=lambda n: f"{_SHOPS[n]} Ltd"),
            Attribute(name="Birthday", question="when is {}'s birthday?", value=lambda n: f"{_MONTHS[n % 6]} {1 + n}"),
        ),
    ),
)


def _table(topic: Topic) -> Iterator[str]:
    names = [each.name for each in topic.attributes]
    yield f"| Name | {' | '.join(names)} |"
    yield "|---" * (1 + len(names)) + "|"
    for thing, fields in topic.records():
        yield f"| {thing} | {' | '.join(value for _, value in fields)} |"


def _heading_and_items(topic: Topic) -> Iterator[str]:
    for thing, fields in topic.records():
        yield f"## {thing}"
        yield from (f"- {name}: {value}" for name, value in fields)
        yield ""


def _heading_and_paragraphs(topic: Topic) -> Iterator[str]:
    for thing, fields in topic.records():
        yield f"## {thing}\n"
        yield from (f"{name}: {value}.\n" for name, value in fields)


def _one_line_each(topic: Topic) -> Iterator[str]:
    for thing, fields in topic.records():
        yield from (f"- {thing}: {name}: {value}" for name, value in fields)


def _nested_list(topic: Topic) -> Iterator[str]:
    for thing, fields in topic.records():
        yield f"- {thing}"
        yield from (f"  - {name}: {value}" for name, value in fields)


def _label_and_items(topic: Topic) -> Iterator[str]:
    for thing, fields in topic.records():
        yield f"**{thing}**\n"
        yield from (f"- {name}: {value}" for name, value in fields)
        yield ""


LAYOUTS: Mapping[str, Callable[[Topic], Iterator[str]]] = {
    "table": _table,
    "heading + items": _heading_and_items,
    "heading + paragraphs": _heading_and_paragraphs,
    "one line each": _one_line_each,
    "nested list": _nested_list,
    "label + items": _label_and_items,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Shares of the questions of one layout.

    Attributes:
        first: Those whose passage comes first.
        value: Those whose answer stands in the block.
        both: Those whose answer stands there with the name of its thing.
        missed: Questions that lack one of these, each with the first hit and the block.
    """

    first: float
    value: float
    both: float
    missed: tuple[tuple[str, str, str], ...]


def is_of(hit: Hit, thing: str, value: str) -> bool:
    """True if a hit is the passage of a thing that has a value."""
    return value in hit.passage.text and (thing in hit.passage.text or thing in hit.passage.heading)


def measure(topic: Topic, layout: str, embedder: Embedder | None, folder: Path) -> Score:
    """Write a topic down in a layout, and ask for all of it."""
    path = folder / "memory" / f"{topic.title.lower()}.md"
    path.parent.mkdir(parents=True)
    path.write_text(f"# {topic.title}\n\n" + "\n".join(LAYOUTS[layout](topic)) + "\n", "utf-8")
    index = Index(folder, embedder)
    index.sync()
    firsts, values, both, missed = 0, 0, 0, list[tuple[str, str, str]]()
    asked = [*topic.asked()]
    for question, thing, value in asked:
        hits = index.search(question, limit=candidates_for(BUDGET_TOKENS)).hits
        block = build_context(
            hits, query=question, budget_tokens=BUDGET_TOKENS, receipt_id="r20261125-0123456789abcdef", created_at=_NOW
        ).block
        first = bool(hits) and is_of(hits[0], thing, value)
        firsts, values = firsts + first, values + (value in block)
        both += value in block and thing in block
        if not first or value not in block or thing not in block:
            missed.append((question, f"{hits[0].passage.heading} {hits[0].passage.text}" if hits else "", block))
    index.close()
    count = len(asked)
    return Score(first=firsts / count, value=values / count, both=both / count, missed=tuple(missed))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the shares of every layout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--failures", action="store_true", help="print the questions that fail")
    parser.add_argument("--words", action="store_true", help="by words alone")
    chosen = parser.parse_args(arguments)
    embedder = None if chosen.words else MiniLM()
    print(f"{'':34} first  value  value and thing in {BUDGET_TOKENS} tokens")
    for layout in LAYOUTS:
        for topic in TOPICS:
            with tempfile.TemporaryDirectory() as folder:
                score = measure(topic, layout, embedder, Path(folder))
            print(f"{layout:22} {topic.title:10} {score.first:6.2f} {score.value:6.2f} {score.both:6.2f}")
            if chosen.failures:
                for question, first, block in score.missed:
                    print(f"    {question}\n      first: {first}\n      block: {block!r}")


if __name__ == "__main__":
    main()
