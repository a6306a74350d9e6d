"""Calls that agents write into their words, and the files that they change."""

from __future__ import annotations

from memory_service.compaction.ledger import ledger_of
from memory_service.messages.shapes import Message
from memory_service.messages.sizes import number_message
from tests.memory_service.compaction.work import called, said


def kinds(messages: list[Message], *wanted: str) -> list[tuple[str, str]]:
    ledger = ledger_of([number_message(message, at) for at, message in enumerate(messages, 1)])
    return [(entry.kind, entry.text) for entry in ledger if entry.kind in (wanted or ("file_modified",))]


def test_a_block_of_a_shell_is_a_command_where_output_follows() -> None:
    words = said("assistant", "I patch it.\n\n```bash\nsed -i 's/a/b/' src/core.py && cat src/core.py\n```")
    output = said("user", "<returncode>0</returncode>\n<output>\nb\n</output>")
    assert kinds([words, output]) == [("file_modified", "src/core.py")]
    assert kinds([words, said("user", "Looks good, thanks.")]) == []


def test_an_editor_changes_the_file_that_it_has_open() -> None:
    talk = [
        said("assistant", "Let me open it.\n```\nopen xarray/core/dataset.py 40\n```"),
        said("user", "OBSERVATION:\n[File: /repo/xarray/core/dataset.py (900 lines total)]\n40:x = 1 > 2"),
        said("assistant", "I edit it.\n```\nedit 40:41\nif a > b:\n    pass\nend_of_edit\n```"),
        said("user", "OBSERVATION:\nFile updated. Please review the changes."),
        said("assistant", "```\ncreate reproduce.py\n```"),
        said("user", "OBSERVATION:\n[File: /repo/reproduce.py (1 lines total)]"),
    ]
    assert [text for _, text in kinds(talk)] == ["/repo/xarray/core/dataset.py", "reproduce.py"]


def test_an_edit_that_was_refused_changed_nothing() -> None:
    edit = {"command": "str_replace", "path": "/repo/a.py", "old_str": "x", "new_str": "y"}
    assert kinds(called("str_replace_editor", edit, "No replacement was performed, old_str did not appear.", "c")) == []
    assert kinds(called("str_replace_editor", edit, "The file /repo/a.py has been edited.", "c"))


def test_blocks_to_search_and_replace_name_their_file() -> None:
    block = "src/app.py\n```python\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n```\n"
    inside = "```\nsrc/b.ts\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n```"
    edits = said("assistant", f"Here it is.\n\n{block}\n{inside}")
    assert [text for _, text in kinds([edits])] == ["src/app.py", "src/b.ts"]


def test_tags_are_calls() -> None:
    open_hands = said(
        "assistant",
        "<function=str_replace_editor>\n<parameter=command>create</parameter>\n<parameter=path>/w/n.py</parameter>\n"
        "</function>",
    )
    cline = said("assistant", "<write_to_file>\n<path>src/x.js</path>\n<content>\n1 > 0\n</content>\n</write_to_file>")
    assert [text for _, text in kinds([open_hands, cline])] == ["/w/n.py", "src/x.js"]


def test_changed_files_are_the_last_to_go() -> None:
    work: list[Message] = [said("user", "Refactor all modules.")]
    for at in range(45):
        work += called("Edit", {"file_path": f"/src/mod{at}.py", "old_string": "a"}, "The file was updated.", f"e{at}")
        found = "\n".join(f"/lib/x{at}/y{line}.py:12: id abc{at}{line}-12f" for line in range(20))
        work += called("Bash", {"command": f"grep -rn thing /lib/x{at}/"}, found, f"g{at}")
    assert [text for _, text in kinds(work)][-40:] == [f"/src/mod{at}.py" for at in range(5, 45)]


def test_tags_patterns_and_escapes_of_output_are_no_paths() -> None:
    output = "<status>success</status>\n<tool_use_error>no</tool_use_error> *.log"
    escaped = '{"out": "src/App.tsx\\nsrc/b.tsx"}'
    found = kinds([*called("Task", {}, output, "a"), *called("Task", {}, escaped, "b")], "path")
    assert [text for _, text in found] == ["src/App.tsx", "src/b.tsx"]


def test_a_failure_names_its_tool_and_what_went_wrong() -> None:
    result = "Error: exit code 4\nE   AssertionError: total was 3, expected 4"
    (failure,) = kinds(called("Bash", {"command": "pytest -q"}, result, "c", failed=True), "failure")
    assert failure[1] == "Bash: E AssertionError: total was 3, expected 4"
