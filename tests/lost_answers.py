"""Faults between boto3 and a real server: answers that are lost, requests that never arrive, refusals.

Each fault is for one operation of one client, and passes everything through when its times are over.
"""

from collections.abc import Callable, Iterator
from typing import Any

from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ReadTimeoutError
from botocore.httpsession import URLLib3Session

__all__ = ["answer_after", "answer_instead", "before", "lose_answers", "lose_requests"]


def lose_answers(client: Any, operation: str, times: int = 1) -> None:
    """The server gets the request and does it; the client sees a timeout."""

    def lose(request: Any) -> None:
        URLLib3Session().send(request)
        raise ReadTimeoutError(endpoint_url=request.url)

    _at(client, operation, times, lose)


def lose_requests(client: Any, operation: str, times: int = 1) -> None:
    """The server never gets the request; the client sees a timeout."""

    def lose(request: Any) -> None:
        raise ReadTimeoutError(endpoint_url=request.url)

    _at(client, operation, times, lose)


def answer_instead(client: Any, operation: str, status: int, body: str, times: int = 1) -> None:
    """The client gets this answer, and the server no request."""

    def answer(request: Any) -> AWSResponse:
        return AWSResponse(request.url, status, HTTPHeaders(), _Body(body.encode()))

    _at(client, operation, times, answer)


def answer_after(client: Any, operation: str, status: int, body: str, times: int = 1) -> None:
    """The server gets the request and does it; the client gets this answer."""

    def answer(request: Any) -> AWSResponse:
        URLLib3Session().send(request)
        return AWSResponse(request.url, status, HTTPHeaders(), _Body(body.encode()))

    _at(client, operation, times, answer)


def before(client: Any, operation: str, act: Callable[[], object], times: int = 1) -> None:
    """`act` runs just before the request goes out."""

    def run(request: Any) -> None:
        del request
        act()

    _at(client, operation, times, run)


def _at(client: Any, operation: str, times: int, fault: Callable[[Any], AWSResponse | None]) -> None:
    left = times

    def handle(request: Any, **_: Any) -> AWSResponse | None:
        nonlocal left
        left -= 1
        return fault(request) if left >= 0 else None

    client.meta.events.register(f"before-send.{client.meta.service_model.service_id.hyphenize()}.{operation}", handle)


class _Body:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, *_: object, **__: object) -> Iterator[bytes]:
        yield self._content
