"""The MCP server: five tools, two resources and a prompt over one `App`, for every era of the protocol.

Decides how an answer, an error and the instructions become protocol messages. Must never know how bytes
arrive, nor which stores answer. Definitions are our own (`handler.tools`): the library neither reads nor
mends arguments.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

import mcp_types as types
from anyio import CapacityLimiter, to_thread
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from engine.answer import Answer
from engine.errors import BadInput, EngineError, Refused, quoted
from engine.pack import framed_bytes
from engine.requests import Request
from engine.sight import Caller
from handler.app import App
from handler.arguments import check_text, parse_arguments
from handler.faults import tell
from handler.metering.prices import FREE, Prices
from handler.texts import QUERY_LANGUAGE, VISITOR_INSTRUCTIONS, question_prompt
from handler.tools.schema import definitions
from handler.tools.table import TOOLS
from handler.wire import whole_characters

if TYPE_CHECKING:
    from handler.payment.desk import Desk

__all__ = ["LOCAL_CALLER", "CallerOf", "Context", "build_server"]

Context = ServerRequestContext[CapacityLimiter, Any]
"""What a handler is given; its `lifespan_context` limits the threads that answer."""

CallerOf = Callable[[Context], Caller]
"""Who sends this request. May raise an EngineError."""

LOCAL_CALLER = Caller("local")
"""Whoever reaches a server without access control."""

CORPUS_URI = "hayfork://corpus"
QUERY_LANGUAGE_URI = "hayfork://query-language"
PROMPT = "answer_from_messages"

_QUESTION_CHARS = 2_000
"""Longest question a prompt takes: at six bytes a character it still fits a result."""

_RESOURCE_NOT_FOUND = -32002
"""The handshake eras' code; from 2026-07-28 on it is INVALID_PARAMS."""

_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000

_CACHE_HINTS: Mapping[Any, CacheHint] = {
    # What depends on sight or snapshot is short-lived, the rest lives with a release. All stay private: a
    # gateway may show its callers different servers under one address.
    "server/discover": CacheHint(ttl_ms=_MINUTE_MS, scope="private"),
    "tools/list": CacheHint(ttl_ms=_HOUR_MS, scope="private"),
    "prompts/list": CacheHint(ttl_ms=_HOUR_MS, scope="private"),
    "resources/list": CacheHint(ttl_ms=_HOUR_MS, scope="private"),
    "resources/templates/list": CacheHint(ttl_ms=_HOUR_MS, scope="private"),
    "resources/read": CacheHint(ttl_ms=_MINUTE_MS, scope="private"),
}

_T = TypeVar("_T")


def build_server(
    app: App,
    *,
    caller_of: CallerOf = lambda _: LOCAL_CALLER,
    threads: int = 8,
    prices: Prices = FREE,
    desk: "Desk | None" = None,
) -> Server[CapacityLimiter]:
    """The server over `app`, which it calls in at most `threads` threads at once. `prices` are told, not charged; at
    the `desk`, if there is one, callers without an account pay for each call.
    """
    return _Handlers(app, caller_of, threads, prices, desk).server()


class _Handlers:
    def __init__(self, app: App, caller_of: CallerOf, threads: int, prices: Prices, desk: "Desk | None" = None) -> None:
        self._app = app
        self._caller_of = caller_of
        self._threads = threads
        self._prices = prices
        self._desk = desk
        limits = app.limits
        # What is to be paid is an object that no schema of an answer fits, and clients hold errors to it as well.
        declared = limits.page.structured and desk is None
        self._tools = [
            types.Tool.model_validate(definition if prices.is_free else _priced(definition, prices))
            for definition in definitions(query_chars=limits.query.chars, structured=declared)
        ]
        self._schemas = {tool.name: tool.input_schema for tool in self._tools}

    def server(self) -> Server[CapacityLimiter]:
        @asynccontextmanager
        async def lifespan(_: Server[CapacityLimiter]) -> AsyncIterator[CapacityLimiter]:
            yield CapacityLimiter(self._threads)

        server = Server(
            "hayfork",
            version=version("hayfork"),
            title="Hayfork",
            cache_hints=_CACHE_HINTS,
            lifespan=lifespan,
            get_tool_input_schema=self._schemas.get,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
        )
        server.middleware.append(self.around_every_request)
        return server

    async def around_every_request(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """The catch-all of all methods, and the instructions of those that carry them."""
        if ctx.request_id is None:
            return await call_next(ctx)
        try:
            result = await call_next(ctx)
        except MCPError as error:
            if error.error.code == METHOD_NOT_FOUND:
                # The library echoes the method in the error's data, however long it is.
                raise MCPError(code=METHOD_NOT_FOUND, message=f"no method {quoted(ctx.method)}") from None
            raise
        except ValidationError:
            raise
        except Exception as error:  # noqa: BLE001 - the one catch-all: nothing unforeseen may reach a caller
            raise MCPError(code=INTERNAL_ERROR, message=tell(error)) from None
        if ctx.method in {"initialize", "server/discover"} and isinstance(result, dict):
            instructions = await self._instructions(ctx)
            if instructions:
                return {**result, "instructions": instructions}
        return result

    async def _instructions(self, ctx: Context) -> str | None:
        """`None` when they cannot be had: a client must connect even then, to be told why by a tool."""
        try:
            caller = self._caller_of(ctx)
            if self._is_visitor(caller):
                return f"{VISITOR_INSTRUCTIONS}\n{self._prices.line()}"
            told = whole_characters(await self._in_thread(ctx, lambda: self._app.instructions(caller)))
            return told if self._prices.is_free else f"{told}\n{self._prices.line()}"
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not keep a client from connecting
            tell(error)
            return None

    async def _in_thread(self, ctx: Context, function: Callable[[], _T]) -> _T:
        return await to_thread.run_sync(function, limiter=ctx.lifespan_context)

    async def list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        _refuse_cursor(params)
        caller = self._caller_of(ctx)
        return types.ListToolsResult(tools=[tool for tool in self._tools if caller.has(tool.name)])

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        caller = self._caller_of(ctx)
        tools = [name for name in TOOLS if caller.has(name)]
        if params.name not in tools:
            raise MCPError(
                code=INVALID_PARAMS,
                message=f"unknown_tool: no tool is called {quoted(params.name)}; use {', '.join(tools)}",
            )
        try:
            _refuse_locked(params.name, caller)
            request = parse_arguments(params.name, params.arguments or {}, self._app.limits)
            if self._desk is not None and self._desk.serves(caller):
                return await self._paid(self._desk, ctx, params, request, caller)
            answer = await self._in_thread(ctx, lambda: self._app.call(request, caller))
            return self._result(answer)
        except Exception as error:  # noqa: BLE001 - the one catch-all of tools, whose errors are results
            return types.CallToolResult(content=[types.TextContent(text=whole_characters(tell(error)))], is_error=True)

    async def _paid(
        self, desk: "Desk", ctx: Context, params: types.CallToolRequestParams, request: Request, visitor: Caller
    ) -> types.CallToolResult:
        from handler.payment.desk import PaidCall  # noqa: PLC0415 - who sells nothing does not carry it

        def run(function: Callable[[], Any]) -> Awaitable[Any]:
            return self._in_thread(ctx, function)

        return await desk.answer(PaidCall(params, request, visitor, self._app, run, self._result))

    def _is_visitor(self, caller: Caller) -> bool:
        return self._desk is not None and self._desk.serves(caller)

    def _result(self, answer: Answer) -> types.CallToolResult:
        text = whole_characters(answer.text)
        budget = self._app.limits.page
        if framed_bytes(text, answer.object if budget.structured else None) > budget.page:
            raise OverflowError
        content: list[types.ContentBlock] = [types.TextContent(text=text)]
        if answer.link is not None and "://" in answer.link:
            content.append(types.ResourceLink(uri=answer.link, name="export", mime_type=answer.mime_type))
        if budget.structured:
            return types.CallToolResult(content=content, structured_content=answer.object)
        return types.CallToolResult(content=content)

    async def list_resources(
        self, _: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        _refuse_cursor(params)
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=CORPUS_URI,
                    name="corpus",
                    title="The corpus in numbers",
                    description="How many messages, when, where, by whom: count_messages without arguments.",
                    mime_type="application/json",
                ),
                types.Resource(
                    uri=QUERY_LANGUAGE_URI,
                    name="query-language",
                    title="The query language",
                    description="Every form of a query, with examples.",
                    mime_type="text/markdown",
                ),
            ]
        )

    async def list_templates(
        self, _: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        _refuse_cursor(params)
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        if params.uri == QUERY_LANGUAGE_URI:
            text, mime_type = QUERY_LANGUAGE, "text/markdown"
        elif params.uri == CORPUS_URI:
            caller = self._caller_of(ctx)
            if self._is_visitor(caller):
                raise MCPError(
                    code=INVALID_PARAMS,
                    message="payment_required: facts of the corpus are paid for; call count_messages without arguments",
                )
            corpus = await self._in_thread(ctx, lambda: self._app.corpus(caller))
            text, mime_type = (
                json.dumps(corpus, ensure_ascii=False, separators=(",", ":")),
                "application/json",
            )
        else:
            modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
            raise MCPError(
                code=INVALID_PARAMS if modern else _RESOURCE_NOT_FOUND,
                message=f"no resource {quoted(params.uri)}; read {CORPUS_URI} or {QUERY_LANGUAGE_URI}",
                data={"uri": whole_characters(params.uri[:200])},
            )
        text = whole_characters(text)
        if framed_bytes(text, None) > self._app.limits.page.page:
            raise OverflowError
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=params.uri, mime_type=mime_type, text=text)]
        )

    async def list_prompts(self, _: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        _refuse_cursor(params)
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=PROMPT,
                    title="Answer a question from the messages",
                    description="Sets an agent on a question: filters, counts, excerpts, threads, answer.",
                    arguments=[
                        types.PromptArgument(
                            name="question",
                            title="Question",
                            description="What to find out, in plain words.",
                            required=True,
                        )
                    ],
                )
            ]
        )

    async def get_prompt(self, _: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        try:
            question = _question(params)
        except EngineError as error:
            raise MCPError(code=INVALID_PARAMS, message=error.to_text()) from None
        return types.GetPromptResult(
            description="Answer a question from the messages",
            messages=[types.PromptMessage(role="user", content=types.TextContent(text=question_prompt(question)))],
        )


def _priced(definition: Mapping[str, Any], prices: Prices) -> dict[str, Any]:
    return {**definition, "_meta": prices.meta(definition["name"])}


def _question(params: types.GetPromptRequestParams) -> str:
    if params.name != PROMPT:
        raise BadInput("unknown_prompt", f"no prompt is called {quoted(params.name)}", next_step=f"use {PROMPT}")
    arguments = params.arguments or {}
    for name in arguments:
        if name != "question":
            raise BadInput("unknown_parameter", f"{PROMPT} has no argument {quoted(name)}", next_step="use question")
    question = arguments.get("question", "").strip()
    if not question:
        raise BadInput("missing_parameter", f"{PROMPT} needs question", next_step="give what to find out")
    check_text("question", question)
    if len(question) > _QUESTION_CHARS:
        raise BadInput(
            "bad_value",
            f"question has {len(question)} characters, {_QUESTION_CHARS} at most",
            next_step="say it shorter",
        )
    return question


def _refuse_locked(tool: str, caller: Caller) -> None:
    """The gate says so first, as a challenge; no form of a request gets past both."""
    if tool in caller.locked:
        raise Refused(
            "insufficient_scope",
            f"{tool} wants a scope that this token lacks",
            next_step="ask the authorization server for it",
        )


def _refuse_cursor(params: types.PaginatedRequestParams | None) -> None:
    """Every list here is one page, so no cursor was ever given out."""
    if params is not None and params.cursor is not None:
        raise MCPError(code=INVALID_PARAMS, message="unknown cursor; this list is one page, ask without")
