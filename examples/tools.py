"""An agent whose model looks into its memory and writes to it, by calling tools."""

import json

from memory_service import MemoryClient


def described(name, argument):
    """A tool with one argument, in the shape of OpenAI's API."""
    parameters = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


TOOLS = [described("search_memory", "query"), described("remember", "text")]


def asks(name, **arguments):
    """A message in which the model calls a tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "tool_calls": [{"id": f"call-{name}", "type": "function", "function": function}]}


def model(messages):  # a script; a real one is called as chat.completions.create(messages=messages, tools=TOOLS)
    last = messages[-1]
    if last["role"] == "tool":
        return f"Done: {last['content']}"
    if "when" in last["content"].lower():
        return asks("search_memory", query=last["content"])
    return asks("remember", text=last["content"])


def run(memory, name, arguments):
    """Run the tool that the model called; gives its result as text."""
    if name == "remember":
        stored = memory.remember(arguments["text"], origin="agent")
        return f"kept in {stored.path}"
    found = memory.search(arguments["query"], limit=3, sources=["memory"], min_relevance=0.1)
    return "\n".join(f"{result.text} ({result.citation})" for result in found.results) or "nothing relevant"


with MemoryClient("http://127.0.0.1:8765", workspace="ops-team") as memory:
    session = memory.session("release-talk", context_window=16_000)
    for line in ("Deploys go out on Tuesdays.", "When do we deploy?", "When is the next full moon?"):
        print("user: ", line)
        reply = session.complete(model, user=line, tools=TOOLS, recall="never")  # memory comes through the tools alone
        while reply.tool_calls:
            for call in reply.tool_calls:
                function = call["function"]
                result = run(memory, function["name"], json.loads(function["arguments"]))
                print(f"  {function['name']}({function['arguments']}) -> {result}")
                session.append({"role": "tool", "tool_call_id": call["id"], "content": result})
            reply = session.complete(model, tools=TOOLS, recall="never")
        print("agent:", reply.text)
