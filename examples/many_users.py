"""A service with many users at once: asynchronous, a workspace for each of them."""

import asyncio

from memory_service import AsyncMemoryClient

CITIES = {"ana": "Lisbon", "bo": "Malmö", "chen": "成都", "dora": "Graz"}


async def model(messages):  # a script; yours is awaited in the same way
    await asyncio.sleep(0.01)
    prompt = "\n".join(str(message["content"]) for message in messages)
    return "You live in " + ", ".join(city for city in CITIES.values() if city in prompt) + "."


async def serve(user, city):
    """What one user says in two conversations; gives the last answer."""
    async with AsyncMemoryClient("http://127.0.0.1:8765", workspace=f"user-{user}") as memory:
        await memory.remember(f"The user lives in {city}.", tags=["profile"], origin="agent")
        session = memory.session("welcome", context_window=16_000)
        reply = await session.complete(model, user="Where do I live?", system_prompt="You know the user.")
        return f"{user}: {reply.text}"


async def main():
    for line in await asyncio.gather(*(serve(user, city) for user, city in CITIES.items())):
        print(line)


asyncio.run(main())
