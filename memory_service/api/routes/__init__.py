"""The routes, one router per noun."""

from memory_service.api.routes import (
    compactions,
    context,
    events,
    flushes,
    health,
    memories,
    messages,
    operations,
    pins,
    prompts,
    search,
    sessions,
    status,
)

ROUTERS = (
    memories.router,
    search.router,
    context.router,
    sessions.router,
    messages.router,
    prompts.router,
    compactions.router,
    flushes.router,
    pins.router,
    events.router,
    operations.router,
    status.router,
    health.router,
)

__all__ = ["ROUTERS"]
