"""The body of a request: how large, how slow and how deep it may be before anybody reads what it says.

Decides what is refused unread: a body is held whole, once, so that memory and time are bounded by settings and not by
who sends. Must never know what a body means.
"""

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

import anyio
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

if TYPE_CHECKING:
    from handler.settings_table import ServerSettings

__all__ = ["BodyLimits", "BodyRefused", "body_limits", "deeper_than", "read_body", "replayed"]

_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_BRACKETS = re.compile(rb"[\[{\]}]")


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """The longest body in bytes, the time to send it in seconds, and how deep arrays and objects may nest in it."""

    max_bytes: int = 1_048_576
    seconds: float = 10.0
    levels: int = 32


class BodyRefused(Exception):
    """Not read: `status`, the words for whoever sent it, and further headers of the answer."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        # Of who sends too much the rest is let run out, or they would see a broken connection instead of the answer.
        self.headers = {"connection": "close"} if status == HTTPStatus.REQUEST_TIMEOUT else {}


def body_limits(server: "ServerSettings") -> BodyLimits:
    """The limits of a deployment."""
    return BodyLimits(server.max_body_bytes, server.body_seconds, server.json_levels)


async def read_body(scope: Scope, receive: Receive, limits: BodyLimits) -> bytes:
    """The whole body. What it says of its length is believed only when that is too much.

    Raises:
        BodyRefused: too long, too slow or too deep.
    """
    too_long = BodyRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is over {limits.max_bytes} bytes")
    declared = Headers(scope=scope).get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > limits.max_bytes:
        raise too_long
    body = bytearray()
    try:
        with anyio.fail_after(limits.seconds):
            more = True
            while more:
                message = await receive()
                body += message.get("body", b"")
                if len(body) > limits.max_bytes:
                    raise too_long
                more = message["type"] == "http.request" and message.get("more_body", False)
    except TimeoutError:
        raise BodyRefused(
            HTTPStatus.REQUEST_TIMEOUT, f"the body did not come within {limits.seconds:g} seconds"
        ) from None
    if deeper_than(body, limits.levels):
        raise BodyRefused(HTTPStatus.BAD_REQUEST, f"the body is nested more than {limits.levels} levels deep")
    return bytes(body)


def deeper_than(body: bytes | bytearray, levels: int) -> bool:
    """Whether arrays and objects nest deeper, by their brackets alone: a parser that recurses is not asked first."""
    if body.count(b"[") + body.count(b"{") <= levels:
        return False
    depth = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub(b"", body)):
        depth += 1 if bracket in b"[{" else -1
        if depth > levels:
            return True
    return False


def replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives `body` whole, and then what comes after it."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay
