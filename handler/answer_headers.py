"""What every answer says to a browser, errors and faults included; and which pages of the web may read answers at all.

Decides headers, and that no fault leaves as anything but a reference. An answer is data for a program: no browser
shall guess at it, keep it, frame it or run it. Must never know what is answered.
"""

from collections.abc import Sequence

from starlette.datastructures import MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from handler.faults import tell
from handler.wire import compact

__all__ = ["SECURITY_HEADERS", "with_cors", "with_security_headers"]

SECURITY_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}

_HSTS = "max-age=31536000"
"""A year: shorter and a first visit is unprotected too often. No subdomains: they are not ours to promise for."""

_ASKED_WITH = ("authorization", "x-api-key", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name")


def with_security_headers(inner: ASGIApp, *, https: bool = False) -> ASGIApp:
    """`inner`, with SECURITY_HEADERS on every answer; and where it came by `https`, that it always shall.

    What `inner` raises is answered and logged by a reference: servers log what reaches them word for word.
    """

    async def secured(scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def add(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(raw=list(message["headers"]))
                for name, value in SECURITY_HEADERS.items():
                    headers[name] = value
                if https or scope["scheme"] == "https":
                    headers["strict-transport-security"] = _HSTS
                message = {**message, "headers": headers.raw}
            await send(message)

        if scope["type"] != "http":
            await inner(scope, receive, send)
            return
        try:
            await inner(scope, receive, add)
        except Exception as error:  # noqa: BLE001 - the one place that answers for everybody
            told = compact({"error": tell(error)})
            if not started:
                raw = [(b"content-type", b"application/json"), (b"content-length", str(len(told)).encode())]
                await add({"type": "http.response.start", "status": 500, "headers": raw})
                await add({"type": "http.response.body", "body": told, "more_body": False})

    return secured


def with_cors(inner: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """`inner`, whose answers pages of `origins` may read; without any, no page may, and nothing is said of it."""
    if not origins:
        return inner
    return CORSMiddleware(
        inner,
        allow_origins=origins,
        allow_methods=("POST",),
        allow_headers=_ASKED_WITH,
        expose_headers=("www-authenticate",),
        max_age=600,
    )
