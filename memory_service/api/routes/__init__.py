"""The routes, one router per noun; their order is that of the HTTP docs page."""

from memory_service.api.routes.compactions import compactions_router, flushes_router
from memory_service.api.routes.hosts import hosts_router
from memory_service.api.routes.memories import context_router, memories_router, search_router
from memory_service.api.routes.sessions import messages_router, pins_router, prompts_router, sessions_router
from memory_service.api.routes.workspace import events_router, health_router, operations_router, status_router

ROUTERS = (
    memories_router,
    search_router,
    context_router,
    sessions_router,
    messages_router,
    prompts_router,
    compactions_router,
    flushes_router,
    pins_router,
    events_router,
    hosts_router,
    operations_router,
    status_router,
    health_router,
)

__all__ = ["ROUTERS"]
