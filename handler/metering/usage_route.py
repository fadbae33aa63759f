"""`GET /usage`: what the caller of this request has used, and never another.

Decides status and shape; `?month=2026-12` asks for another month than the current one. It stands behind the same proof
as `/mcp`: who asks is what the gate found. Must never know how usage is kept.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

from anyio import to_thread
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.errors import BadInput, EngineError
from engine.sight import Caller
from handler.faults import tell
from handler.http import HttpOptions, Places, refuse
from handler.wire import compact

__all__ = ["USAGE_PATH", "CallerIn", "ReportOf", "with_usage"]

USAGE_PATH = "/usage"

ReportOf = Callable[[str, str], dict[str, Any]]
"""From a caller's id and a month, empty for the current one, what they have used; may block and raise."""

CallerIn = Callable[[Scope], Caller]

_READ = frozenset({"rows_scanned", "bytes_scanned", "s3_requests"})
"""What calls read of the whole corpus: whoever sees a part would learn from it how large the rest is and what words it
holds.
"""


def with_usage(inner: ASGIApp, report_of: ReportOf, caller_in: CallerIn, options: HttpOptions | None = None) -> ASGIApp:
    """`inner`, with the usage of a request's caller answered before it; hosts are accepted as `options` say."""
    places = Places(options or HttpOptions())

    async def routed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != USAGE_PATH:
            await inner(scope, receive, send)
            return
        refused = places.refused(Headers(scope=scope))
        if refused is not None:
            await refuse(send, *refused)
        elif scope["method"] not in {"GET", "HEAD"}:
            await _respond(
                send, HTTPStatus.METHOD_NOT_ALLOWED, {"message": "only GET is served here"}, ("allow", "GET, HEAD")
            )
        else:
            answer = send if scope["method"] == "GET" else _head_of(send)
            await _report(scope, answer, report_of, caller_in(scope))

    return routed


def _head_of(send: Send) -> Send:
    """What HEAD asks for: the answer of GET without its body."""

    async def sent(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return sent


async def _report(scope: Scope, send: Send, report_of: ReportOf, caller: Caller) -> None:
    asked = parse_qs(scope.get("query_string", b"").decode("ascii", "replace"), keep_blank_values=True)
    month = asked.get("month", [""])[-1]
    try:
        told = await to_thread.run_sync(report_of, caller.caller_id, month)
    except BadInput as error:
        await _respond(send, HTTPStatus.BAD_REQUEST, {"error": error.to_object()})
    except EngineError as error:
        tell(error)
        await _respond(
            send, HTTPStatus.SERVICE_UNAVAILABLE, {"message": "the store did not answer"}, ("retry-after", "5")
        )
    else:
        if not caller.sight.is_everything:
            told = {name: value for name, value in told.items() if name not in _READ}
        await _respond(send, HTTPStatus.OK, told)


async def _respond(send: Send, status: HTTPStatus, value: object, *headers: tuple[str, str]) -> None:
    body = compact(value)
    all_headers = (
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        *headers,
    )
    raw = [(name.encode("ascii"), text.encode("ascii")) for name, text in all_headers]
    await send({"type": "http.response.start", "status": int(status), "headers": raw})
    await send({"type": "http.response.body", "body": body, "more_body": False})
