"""The link of an export: `GET /exports/<id>` redirects to the file by a URL signed at that moment.

Decides that an id which is unknown, expired or revoked looks the same as one that never was. The id is the
whole secret, so it is never logged nor echoed. Must never know where files lie.
"""

import re
from collections.abc import Callable
from http import HTTPStatus

from anyio import to_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.errors import EngineError
from handler.faults import tell
from handler.wire import compact

__all__ = ["EXPORTS_PATH", "PresignedOf", "with_exports"]

EXPORTS_PATH = "/exports/"

PresignedOf = Callable[[str, str], str | None]
"""From an export's id and the method, GET or HEAD, a URL that takes just that for a short time; `None` when there is
nothing to fetch."""

_ID = re.compile(r"[A-Za-z0-9_-]{22,86}")


def with_exports(inner: ASGIApp, presigned_of: PresignedOf) -> ASGIApp:
    """`inner`, with the links of exports answered before it. `presigned_of` may block."""

    async def routed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(EXPORTS_PATH):
            await inner(scope, receive, send)
        elif scope["method"] not in {"GET", "HEAD"}:
            await _respond(send, HTTPStatus.METHOD_NOT_ALLOWED, b"allow", b"GET, HEAD")
        elif scope["method"] == "HEAD":
            await _redirect(_without_body(send), scope, presigned_of)
        else:
            await _redirect(send, scope, presigned_of)

    return routed


def _without_body(send: Send) -> Send:
    """`send` for HEAD: the headers of GET alone."""

    async def bodiless(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return bodiless


async def _redirect(send: Send, scope: Scope, presigned_of: PresignedOf) -> None:
    export_id, method = scope["path"].removeprefix(EXPORTS_PATH), scope["method"]
    try:
        url = await to_thread.run_sync(presigned_of, export_id, method) if _ID.fullmatch(export_id) else None
    except EngineError as error:
        tell(error)
        await _respond(send, HTTPStatus.SERVICE_UNAVAILABLE, b"retry-after", b"5")
        return
    if url is None:
        await _respond(send, HTTPStatus.NOT_FOUND)
    else:
        await _respond(send, HTTPStatus.FOUND, b"location", url.encode("ascii"))


_WORDS = {
    HTTPStatus.FOUND: "the file is at the address in Location",
    HTTPStatus.NOT_FOUND: "no such export, or it has expired; export again",
    HTTPStatus.METHOD_NOT_ALLOWED: "only GET and HEAD are served here",
    HTTPStatus.SERVICE_UNAVAILABLE: "the store did not answer; try again",
}


async def _respond(send: Send, status: HTTPStatus, name: bytes = b"", value: bytes = b"") -> None:
    body = compact({"message": _WORDS[status]})
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    if name:
        headers.append((name, value))
    await send({"type": "http.response.start", "status": int(status), "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
