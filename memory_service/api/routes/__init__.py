"""The routes, one router per noun."""

from memory_service.api.routes import context, health, memories, operations, search, status

ROUTERS = (memories.router, search.router, context.router, operations.router, status.router, health.router)

__all__ = ["ROUTERS"]
