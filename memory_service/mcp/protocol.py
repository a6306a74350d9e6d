"""The Model Context Protocol, spoken through its official package: by stdio, by HTTP, or on to a running server.

Both eras of the protocol are served at once: the one that begins with a handshake, and the one since 2026-07-28 in
which every request stands alone. Nothing is kept from one request to the next, so any process answers any of them.

Invariants: a failure of the service is the answer of a tool, in the service's words, so that the model reads it; a
defect is answered without details and logged.
"""

from __future__ import annotations

import base64
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, cast

import anyio
import anyio.to_thread
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types.version import LATEST_MODERN_VERSION

from memory_service._version import __version__
from memory_service.errors import ConnectionFailed, MemoryServiceError
from memory_service.mcp import tools

if TYPE_CHECKING:
    from memory_service.service import MemoryService

_log = logging.getLogger("memory_service.mcp")
# Images beyond this are named, not sent: a model pays for them, and hosts refuse more.
_MAX_IMAGE_BYTES = 1_000_000
_CONNECTOR = "openai-mcp"
_DEFECT = "The server met a defect. Its log has the details."

_Context = ServerRequestContext[Any, Any]
_Answer = TypeVar("_Answer")
PlaceOf = Callable[[_Context], tools.CallPlace]


class ToolServer:
    """The tools as handlers of the protocol.

    Args:
        place_of: The memory that a request is for; called in a thread.
        on_listed: Called when a client has asked for the tools, and so will soon call one.
        run: Runs the work of a tool in a thread; may refuse it.
    """

    def __init__(
        self, place_of: PlaceOf, on_listed: Callable[[], None] = lambda: None, run: tools.RunTool | None = None
    ) -> None:
        self._place_of = place_of
        self._on_listed = on_listed
        self._run = run

    async def list_tools(self, context: _Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """The tools, under the names that the client looks for."""
        self._on_listed()
        listed_tools = [*map(types.Tool.model_validate, tools.described_tools(connector=_is_connector(context)))]
        return types.ListToolsResult(tools=listed_tools, ttl_ms=tools.LIST_TTL_MS, cache_scope="private")

    async def call_tool(self, context: _Context, asked: types.CallToolRequestParams) -> types.CallToolResult:
        """The answer of a tool, or why there is none."""
        if asked.name not in tools.tools():
            raise MCPError(types.INVALID_PARAMS, f"There is no such tool. There are: {', '.join(tools.tools())}.")
        call = partial(self._call, context, asked.name, asked.arguments or {})
        if self._run is None:
            return await anyio.to_thread.run_sync(call)
        try:
            answer: types.CallToolResult = await self._run(tools.tools()[asked.name].kind, call)
        except MemoryServiceError as error:
            return _failure(str(error))
        return answer

    def _call(self, context: _Context, name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
        place: tools.CallPlace | None = None
        try:
            place = self._place_of(context)
            answer, medium = tools.call(name, arguments, place)
            json = tools.as_json(answer)
        except MemoryServiceError as error:
            return _failure(place.error_message(error) if place else str(error))
        except Exception:
            _log.exception("defect in the tool %s", name)
            return _failure(_DEFECT)
        content: list[types.ContentBlock] = [_text(tools.as_text(json))]
        if medium is not None and medium.mime.startswith("image/") and len(medium.content) <= _MAX_IMAGE_BYTES:
            data = base64.b64encode(medium.content).decode()
            content.append(types.ImageContent(type="image", data=data, mime_type=medium.mime))
        return types.CallToolResult(content=content, structured_content=json)


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _failure(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[_text(message.encode("utf-8", "replace").decode())], is_error=True)


def _is_connector(context: _Context) -> bool:
    """True if the client looks for `fetch`: it says so in the address, or is the one that is known to."""
    if context.request is None:
        return False
    client = context.request.query_params.get("client") or context.request.headers.get("user-agent", "")
    return bool(client == "connector" or client.startswith(_CONNECTOR))


def _input_schema(name: str) -> Mapping[str, Any] | None:
    tool = tools.tools().get(name)
    return tool.input_schema() if tool else None


def _server(handlers: ToolServer | Forwarding) -> Server[Any]:
    return Server(
        tools.SERVER_NAME,
        version=__version__,
        title=tools.SERVER_TITLE,
        instructions=tools.INSTRUCTIONS,
        get_tool_input_schema=_input_schema,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
    )


def http_manager(service: MemoryService, run: tools.RunTool, *, max_body_bytes: int) -> StreamableHTTPSessionManager:
    """The handler of HTTP requests; who may ask, and for which workspace, is decided before.

    Args:
        service: What it serves.
        run: Runs the work of a tool in a thread; may refuse it.
        max_body_bytes: The largest request.
    """

    def place_of(context: _Context) -> tools.CallPlace:
        assert context.request is not None
        state = context.request.state
        return tools.CallPlace(
            service=service,
            workspace=state.workspace,
            session_id=state.session_id,
            shows_home=state.shows_home,
            grant=state.grant,
        )

    return StreamableHTTPSessionManager(
        _server(ToolServer(place_of, run=run)), json_response=True, stateless=True, max_request_body_size=max_body_bytes
    )


def speak_stdio(
    place: Callable[[], tools.CallPlace],
    on_listed: Callable[[], None],
    lines: Sequence[bytes],
    answered: int | str | None,
) -> None:
    """Serve one memory by standard input and output, until the input ends.

    Args:
        place: The memory, opened when it is first asked for.
        on_listed: Called when the host has asked for the tools, and so will soon call one.
        lines: Lines of the input that were read before.
        answered: The id of a handshake among them that was answered.
    """
    anyio.run(_run_stdio, _server(ToolServer(lambda _: place(), on_listed)), lines, answered)


def forward_stdio(url: str, headers: Mapping[str, str]) -> None:
    """Serve what a running server serves, until the input ends.

    Args:
        url: The address of the server.
        headers: Sent with every request: the key and the workspace.

    Raises:
        ConnectionFailed: No server answers there, or it refuses the key.
    """
    anyio.run(_forward, url, headers)


async def _run_stdio(server: Server[Any], lines: Sequence[bytes] = (), answered_value: int | str | None = None) -> None:
    file = anyio.wrap_file(cast(TextIO, _Input(lines)))
    async with stdio_server(stdin=file) as (read, write), anyio.create_task_group() as tasks:
        stream, answers = anyio.create_memory_object_stream[SessionMessage](0)
        tasks.start_soon(_tell, answers, write, answered_value)
        await server.run(read, stream, server.create_initialization_options())


async def _tell(answers: Any, write: Any, answered_value: int | str | None) -> None:
    """Pass answers on, but that to a handshake which was answered before."""
    async with answers, write:
        async for value in answers:
            if answered_value is not None and getattr(value.message, "id", None) == answered_value:
                answered_value = None
            else:
                await write.send(value)


class _Input:
    """The standard input, as far as the package reads it, behind the lines that were read of it before."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = iter(lines)

    def readline(self) -> str:
        """The next line; empty at the end."""
        return (next(self._lines, None) or sys.stdin.buffer.readline()).decode("utf-8", "replace")


class Forwarding:
    """The tools of another server as handlers of the protocol.

    Each request is a connection of its own, so that the server may end and come back meanwhile.

    Args:
        url: The address of that server.
        http: Sends the requests, with the key and the workspace.
    """

    def __init__(self, url: str, http: Any) -> None:
        self._url = url.rstrip("/")
        self._http = http
        http.event_hooks = {"response": [self._note_refusal]}
        self._refusal = ""

    async def list_tools(
        self, _: _Context | None = None, __: types.PaginatedRequestParams | None = None
    ) -> types.ListToolsResult:
        """See `ToolServer.list_tools`.

        Raises:
            ConnectionFailed: No server answers, or it refuses the key.
        """
        return await self._ask(lambda client: client.list_tools())

    async def call_tool(self, _: _Context, asked: types.CallToolRequestParams) -> types.CallToolResult:
        """See `ToolServer.call_tool`."""
        try:
            return await self._ask(lambda client: client.call_tool(asked.name, asked.arguments))
        except ConnectionFailed as error:
            return _failure(str(error))

    async def _ask(self, ask: Callable[[Client], Awaitable[_Answer]]) -> _Answer:
        self._refusal = ""
        transport = streamable_http_client(f"{self._url}/mcp", http_client=self._http)
        try:
            async with Client(transport, mode=LATEST_MODERN_VERSION) as client:
                return await ask(client)
        except Exception as error:
            cause = _first(error)
            if isinstance(cause, MCPError) and cause.code == types.INVALID_PARAMS:
                raise cause from None
            raise ConnectionFailed(self._refusal or self._absence()) from error

    async def _note_refusal(self, response: Any) -> None:
        """Keep what the server says of a request that it turns away: the package tells its status alone."""
        if response.status_code in (401, 403, 413, 429, 503):
            await response.aread()
            with suppress(ValueError, KeyError, TypeError):
                self._refusal = str(json.loads(response.content)["error"]["message"])

    def _absence(self) -> str:
        return (
            f"No memory-service answers at {self._url}. Start it with `memory-service serve`, or leave the address out "
            "to work on a home."
        )


def _first(error: BaseException) -> BaseException:
    """The failure inside the groups that tasks put around it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _forward(url: str, headers: Mapping[str, str]) -> None:
    async with create_mcp_http_client(headers=dict(headers)) as http:
        forwarding = Forwarding(url, http)
        await forwarding.list_tools()
        await _run_stdio(_server(forwarding))
