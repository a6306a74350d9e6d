"""Words, redirections and here-documents of command lines."""

from __future__ import annotations

import pytest

from memory_service.compaction.shell_commands import shell_commands
from tests.growth import at_most_readings


@pytest.mark.parametrize(
    ("line", "words", "written"),
    [
        ("rg 'a => b' src", [("rg", "a => b", "src")], []),
        ("awk '$1 > 5' f.txt | tee -a log.txt", [("awk", "$1 > 5", "f.txt"), ("tee", "-a", "log.txt")], []),
        ('echo "a > b" >> "my file.txt" 2>/dev/null', [("echo", "a > b")], ["my file.txt"]),
        ("make &> build.log", [("make",)], ["build.log"]),
        ("ls 2>&1 # > c", [("ls",)], []),
        ("cat <<< 'x > y'", [("cat",)], []),
        ("FOO=1 sudo env run a.sh", [("run", "a.sh")], []),
        ("if true; then echo x > y.txt; fi", [("true",), ("echo", "x"), ("fi",)], ["y.txt"]),
    ],
)
def test_quotations_and_comments_hold_no_operators(line: str, words: list[tuple[str, ...]], written: list[str]) -> None:
    found = list(shell_commands(line))
    assert [each.words for each in found] == words
    assert [path for each in found for path in each.raw_words] == written


def test_here_documents_are_apart() -> None:
    script = "cat > notes.md <<'EOF'\nif a > b then c\n$ tee thing.txt\nEOF\npython - <<END\nx = y > z\nEND\nls > l.txt"
    first, second, third = shell_commands(script)
    assert first.raw_words == ("notes.md",) and first.document == "if a > b then c\n$ tee thing.txt"
    assert second.words == ("python", "-") and second.document == "x = y > z"
    assert third.raw_words == ("l.txt",)


def test_a_document_without_an_end_is_its_own() -> None:
    (command,) = shell_commands("cat <<EOF > a.txt\nx > y\nmore > z")
    assert command.raw_words == ("a.txt",) and command.document == "x > y\nmore > z"


def test_a_line_full_of_quotes_takes_no_time() -> None:
    with at_most_readings(600):
        list(shell_commands("'\"" * 20_000))
