"""The synchronous client is what the script makes of the asynchronous one."""

from __future__ import annotations

import pytest

from tests.generate_client import CLIENT, COMMAND, FILES, generated, synchronous


@pytest.mark.parametrize("name", FILES)
def test_the_synchronous_files_are_made_from_the_asynchronous_ones(name: str) -> None:
    assert (CLIENT / name).read_text(encoding="utf-8") == generated(name), (
        f"memory_service/client/{name} is not what {FILES[name]} makes it. "
        f"Make every change in {FILES[name]}, then run `{COMMAND}`."
    )


@pytest.mark.parametrize("name", FILES)
def test_nothing_asynchronous_is_left(name: str) -> None:
    assert "async" not in generated(name).split("\n", 1)[1].lower()


def test_sentences_and_examples_are_rewritten_with_the_code() -> None:
    source = '''"""The async way. Use within one event loop.

```python
async def ask(session):
    return (await session.context(system_prompt="用中文（简短）")).messages
```
"""

from collections.abc import AsyncIterator, Callable
'''
    assert (
        synchronous(source, "_async_x.py").split("\n", 1)[1]
        == '''"""The blocking way. Safe to use from several threads.

```python
def ask(session):
    return session.context(system_prompt="用中文（简短）").messages
```
"""

from collections.abc import Callable, Iterator
'''
    )
