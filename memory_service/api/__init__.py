"""The HTTP API: a thin door to `memory_service.service`."""
