from memory_service import MemoryClient


def model(messages):  # a script, so that this runs; yours is openai, anthropic, litellm …
    prompt = "\n".join(str(message["content"]) for message in messages)
    return "To Graz, then." if "Graz" in prompt else "Gladly. Where shall we send it?"


def chat(user, day, *lines):
    with MemoryClient("http://127.0.0.1:8765", workspace=f"customer-{user}") as memory:  # one workspace per user
        session = memory.session(day, context_window=16_000)
        for line in lines:  # or: while line := input("> ")
            reply = session.complete(model, user=line, system_prompt="You are the shop's assistant.")
            print(f"{day}  {user}: {line}\n        shop: {reply.text}")
        session.flush()  # what outlives the conversation goes into a Markdown file


chat("lena", "monday", "I'd like to order a fern.", "I live in Graz, please remember that.")
chat("lena", "tuesday", "I'd like to order a cactus.")
chat("tom", "tuesday", "I'd like to order a cactus.")
