"""The built artifact answers as the product does: over both gateways, to both eras of the official client."""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from typing import Any, Literal
from urllib.parse import urlsplit

import anyio
import pytest
from mcp import Client
from mcp_types import ResourceLink, TextContent

from engine.sight import Caller
from handler.arguments import parse_arguments
from handler.settings import load_settings
from handler.wiring import build_app, build_export_links, system_clock
from infra.deploy.build_artifact import ROOT
from tests.aws.conftest import Deployment
from tests.aws.gateway import Kind, event_of, fetched, gateway
from tests.aws.runtime_api import Function

pytestmark = [pytest.mark.aws, pytest.mark.slow]

Mode = Literal["legacy", "auto"]

CASES = [json.loads(line) for line in (ROOT / "tests/fixtures/cases-fabric.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def mcp(deployment: Deployment) -> Iterator[Function]:
    with deployment.run("McpFunction") as function:
        yield function


def called(function: Function, tool: str, arguments: dict[str, Any], kind: Kind = "http-api") -> dict[str, Any]:
    """The result of a tool call by a raw request of the handshake era."""
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    answer = function.invoke(event_of(kind, body=json.dumps(request).encode()))
    assert answer["statusCode"] == 200, answer
    result: dict[str, Any] = json.loads(answer["body"])["result"]
    return result


def text_of(result: Any) -> str:
    first = result.content[0]
    assert isinstance(first, TextContent)
    return first.text


def counts(text: str) -> tuple[int, int]:
    """Messages and conversations in a count's line of what was found; one conversation may go without saying."""
    words = next(line for line in text.splitlines() if line.startswith("found:")).replace(",", "").split()
    return int(words[1]), int(words[words.index("in") + 1]) if "in" in words else min(int(words[1]), 1)


@pytest.mark.parametrize(("kind", "mode"), [("http-api", "auto"), ("function-url", "legacy")])
def test_every_case_of_the_slice_is_counted_exactly(mcp: Function, kind: Kind, mode: Mode) -> None:
    async def ask(address: str) -> None:
        async with Client(f"{address}/mcp", mode=mode) as client:
            for case in CASES:
                arguments = {"query": case["query"], **case["filters"]}
                text = text_of(await client.call_tool("count_messages", arguments))
                assert counts(text) == (case["messages"], case["conversations"]), (case, text)

    with gateway(mcp, kind) as address:
        anyio.run(ask, address)


def test_unseen_over_eight_containers_shows_every_message_once(deployment: Deployment) -> None:
    with ExitStack() as stack:
        functions = [stack.enter_context(deployment.run("McpFunction")) for _ in range(8)]
        first = called(functions[0], "search_messages", {"query": "docker", "limit": 1})["content"][0]["text"]
        session = first.split("session ")[1].split()[0]
        arguments = {"query": "docker", "session": session, "limit": 10, "text_limit": 40}
        answers = [first]
        lock = threading.Lock()

        def read_on(function: Function) -> None:
            while ids(text := called(function, "unseen_messages", arguments)["content"][0]["text"]):
                with lock:
                    answers.append(text)

        threads = [threading.Thread(target=read_on, args=(function,)) for function in functions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        last = called(functions[0], "unseen_messages", arguments)["content"][0]["text"]
    shown = [each for text in answers for each in ids(text)]
    assert sorted(shown) == sorted(set(shown))
    found = counts(first)[0]
    for text in [*answers, last]:
        parts = [part_of(text, name) for name in ("shown", "copies", "left out", "seen before")]
        assert (sum(parts), parts[0]) == (found, len(ids(text))), text
    assert len(shown) + sum(part_of(text, "copies") for text in answers) == found
    assert (part_of(last, "left out"), part_of(last, "seen before")) == (0, found)


def part_of(text: str, name: str) -> int:
    """A number of a result's line of what is shown; what is not said is 0."""
    line = next(line for line in text.splitlines() if line.startswith("shown "))
    said = re.search(rf"\b{name} ([\d,]+)", line)
    return int(said[1].replace(",", "")) if said else 0


def ids(text: str) -> list[str]:
    """The ids of the messages a result shows."""
    return [line[1:].split("]")[0] for line in text.splitlines() if line.startswith("[")]


def scanned(deployment: Deployment, patch: pytest.MonkeyPatch, query: str) -> list[dict[str, Any]]:
    """The rows of an export by a scan alone, as `--brute` makes it, of the same snapshot."""
    for name, value in deployment.environment("InvokeFunction").items():
        patch.setenv(name, value)
    settings = load_settings()
    app = build_app(settings, system_clock)
    request = parse_arguments("export_messages", {"query": query}, app.limits)
    link = app.call(request, Caller("key:scan"), brute=True).link
    assert link is not None
    url = build_export_links(settings, system_clock)(link.rsplit("/", 1)[1], "GET")
    assert url is not None
    return [json.loads(line) for line in fetched(url)[1].splitlines()]


@pytest.mark.parametrize("kind", ["http-api", "function-url"])
def test_an_export_is_fetched_by_its_link_and_equals_the_scan(
    deployment: Deployment, mcp: Function, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "документаци OR couchdb"
    result = called(mcp, "export_messages", {"query": query}, kind)
    text = result["content"][0]["text"]
    link = next(line for line in text.splitlines() if line.startswith("link: ")).removeprefix("link: ")
    assert result["content"][1]["uri"] == link
    assert link.startswith("https://hayfork.test/exports/")
    answer = mcp.invoke(event_of(kind, "GET", link.removeprefix("https://hayfork.test")))
    assert (answer["statusCode"], answer["headers"]["cache-control"]) == (302, "no-store")
    status, body, headers = fetched(answer["headers"]["location"])
    assert (status, headers["Content-Disposition"]) == (200, 'attachment; filename="hayfork.jsonl"')
    rows = [json.loads(line) for line in body.splitlines()]
    found = called(mcp, "count_messages", {"query": query}, kind)["content"][0]["text"]
    assert len(rows) == counts(found)[0]
    assert rows == scanned(deployment, monkeypatch, query)
    assert f"{len(rows)} rows as jsonl, {len(body)} bytes" in text
    assert hashlib.sha256(body).hexdigest() in text
    assert [row["sent_at"] for row in rows] == sorted(row["sent_at"] for row in rows)
    assert fetched(answer["headers"]["location"].split("?")[0])[0] == 403
    assert link.rsplit("/", 1)[1] not in mcp.output()


def test_the_head_of_an_export_is_asked_by_its_link(mcp: Function) -> None:
    link = called(mcp, "export_messages", {"query": "couchdb"})["content"][1]["uri"]
    answer = mcp.invoke(event_of("http-api", "HEAD", link.removeprefix("https://hayfork.test")))
    assert (answer["statusCode"], answer.get("body") or "") == (302, "")
    url = urlsplit(answer["headers"]["location"])
    connection = HTTPConnection(url.netloc, timeout=30)
    connection.request("HEAD", f"{url.path}?{url.query}")
    assert connection.getresponse().status == 200
    connection.close()


def test_a_resource_link_reaches_the_official_client(mcp: Function) -> None:
    async def ask(address: str) -> None:
        async with Client(f"{address}/mcp") as client:
            result = await client.call_tool("export_messages", {"query": "couchdb", "format": "csv"})
            links = [part for part in result.content if isinstance(part, ResourceLink)]
            assert [part.mime_type for part in links] == ["text/csv"]

    with gateway(mcp) as address:
        anyio.run(ask, address)


@pytest.mark.parametrize("path", ["/exports/", "/exports/short", f"/exports/{'a' * 43}", f"/exports/{'%2e' * 20}"])
def test_a_link_that_never_was_is_not_found_and_says_no_more(mcp: Function, path: str) -> None:
    answer = mcp.invoke(event_of("http-api", "GET", path))
    assert answer["statusCode"] == 404
    assert json.loads(answer["body"]) == {"message": "no such export, or it has expired; export again"}


def test_a_session_belongs_to_who_signed_the_request(mcp: Function) -> None:
    text = called(mcp, "search_messages", {"query": "docker", "limit": 1})["content"][0]["text"]
    session = text.split("session ")[1].split()[0]
    arguments = {"query": "docker", "session": session, "limit": 1}
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "unseen_messages", "arguments": arguments},
    }
    event = event_of("http-api", body=json.dumps(request).encode())
    event["requestContext"]["authorizer"]["iam"]["userArn"] = "arn:aws:iam::000000000000:user/somebody-else"
    other = json.loads(mcp.invoke(event)["body"])["result"]
    assert other["isError"]
    assert other["content"][0]["text"].startswith("unknown_session: ")
    assert "isError" not in (own := called(mcp, "unseen_messages", arguments)) or own["isError"] is False


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_stream_that_would_never_end_is_refused(mcp: Function, method: str) -> None:
    answer = mcp.invoke(event_of("http-api", method, "/mcp"))
    assert (answer["statusCode"], answer["headers"]["allow"]) == (405, "POST")


def test_a_function_url_without_a_public_address_links_to_itself(deployment: Deployment) -> None:
    environment = {**deployment.environment("McpFunction"), "HAYFORK_AWS_PUBLIC_URL": ""}
    with deployment.run("McpFunction", environment=environment) as function:
        text = called(function, "export_messages", {"query": "couchdb"}, "function-url")["content"][0]["text"]
        host = event_of("function-url")["requestContext"]["domainName"]
        assert f"link: https://{host}/exports/" in text
