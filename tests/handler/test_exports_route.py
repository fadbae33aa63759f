"""The route of an export's link."""

from typing import Any

import anyio
import pytest
from starlette.types import Message, Receive, Scope, Send

from engine.errors import Unavailable
from handler.answer_headers import with_security_headers
from handler.exports_route import with_exports

ID = "k" * 43


async def inner(scope: Scope, receive: Receive, send: Send) -> None:
    del receive
    await send({"type": "http.response.start", "status": 418, "headers": []})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


def asked(path: str, method: str = "GET", answer: Any = "https://store.test/file") -> tuple[int, dict[str, str]]:
    """Status and headers; `answer` is what the store says of ID."""
    asked_for: list[str] = []

    def presigned_of(export_id: str, method: str) -> str | None:
        asked_for.append(export_id)
        if isinstance(answer, Exception):
            raise answer
        return f"{answer}?signed-for-{method}" if answer and export_id == ID else None

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError("nothing is read")

    async def run() -> None:
        served = with_security_headers(with_exports(inner, presigned_of), https=True)
        await served({"type": "http", "path": path, "method": method}, receive, send)

    anyio.run(run)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    body = b"".join(message["body"] for message in sent[1:])
    assert len(body) == (0 if method == "HEAD" else int(headers.get("content-length", len(body))))
    assert all(ID not in value for value in headers.values())
    assert len(asked_for) <= 1
    return sent[0]["status"], headers


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_link_redirects_and_is_kept_by_no_cache(method: str) -> None:
    status, headers = asked(f"/exports/{ID}", method)
    assert (status, headers["location"]) == (302, f"https://store.test/file?signed-for-{method}")
    assert (headers["cache-control"], headers["referrer-policy"]) == ("no-store", "no-referrer")


@pytest.mark.parametrize(
    "path", ["/exports/", f"/exports/{'b' * 43}", f"/exports/{ID}/", "/exports/../CURRENT", "/exports/ж"]
)
def test_an_unknown_link_is_not_found(path: str) -> None:
    assert asked(path)[0] == 404


def test_an_expired_link_is_as_one_that_never_was() -> None:
    assert asked(f"/exports/{ID}", answer=None) == asked(f"/exports/{'b' * 43}")


def test_only_reading_is_served() -> None:
    status, headers = asked(f"/exports/{ID}", "POST")
    assert (status, headers["allow"]) == (405, "GET, HEAD")


def test_a_store_that_does_not_answer_is_told_apart() -> None:
    status, headers = asked(f"/exports/{ID}", answer=Unavailable("store_unreachable", "gone", detail="X"))
    assert (status, headers["retry-after"]) == (503, "5")


@pytest.mark.parametrize("path", ["/mcp", "/exports", "/", "/health"])
def test_everything_else_passes(path: str) -> None:
    assert asked(path)[0] == 418
