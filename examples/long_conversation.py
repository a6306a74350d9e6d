"""A conversation that outgrows its window, in one process and without a server: compacted, searched, and undone."""

import tempfile

from memory_service import schemas
from memory_service.service import MemoryService

PLACE = ("default", "support-42")

with tempfile.TemporaryDirectory() as home, MemoryService.open(home) as service:
    service.create_session(PLACE[0], schemas.NewSession(session_id=PLACE[1], context_window=4_000))
    service.pin(*PLACE, "Never promise a delivery date.")
    for number in range(1, 121):
        service.append(*PLACE, [{"role": "user", "content": f"Order ORD-{4700 + number} has not come. What now?"}])
        service.append(*PLACE, [{"role": "assistant", "content": f"I asked the carrier about ORD-{4700 + number}."}])
        prompt = service.session_context(*PLACE, schemas.SessionContextRequest(system_prompt="You help."))
        assert prompt.tokens.total <= prompt.tokens.window  # whatever was said
        if prompt.compaction:
            done = prompt.compaction
            print(f"after {2 * number} messages: {done.tokens_before} tokens became {done.tokens_after}")

    kept = any("Never promise a delivery date." in str(message["content"]) for message in prompt.messages)
    print("the pin is in the prompt:", kept)
    said = service.messages(*PLACE, view="log")
    print("messages in the log:", len(said.messages), "of 240; in the prompt:", len(prompt.messages))
    (hit, *_) = service.session_search(*PLACE, "ORD-4711").results
    print("found although compacted:", hit.text)
    newest = service.compactions(*PLACE).compactions[0]
    service.undo(*PLACE, newest.compaction_id)
    print("undone: the prompt before it had", newest.tokens_before, "tokens")
