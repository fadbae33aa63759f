"""The five tools through the real client over the application as it is wired, in both eras of the protocol."""

from collections.abc import Iterator
from typing import Any, Literal

import pytest
from jsonschema import Draft202012Validator
from mcp import Client
from mcp_types import TextContent

from engine.limits import Limits
from handler.tools.output import OUTPUT_SCHEMAS
from tests.handler.running import VERSIONS, exchange, running
from tests.handler.wired_app import wired_app

PAGE_BYTES = Limits().page.page_bytes
COUNT_BYTES = Limits().page.count_bytes


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with running(wired_app(tmp_path_factory.mktemp("text"))) as number:
        yield number


@pytest.fixture(scope="module")
def structured_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with running(wired_app(tmp_path_factory.mktemp("both"), structured=True)) as number:
        yield number


def lines(result: Any) -> list[str]:
    content = result.content[0]
    assert isinstance(content, TextContent)
    assert not result.is_error, content.text
    return content.text.split("\n")


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_agent_counts_searches_reads_on_opens_and_exports(port: int, mode: Literal["legacy", "auto"]) -> None:
    async with Client(f"http://127.0.0.1:{port}/mcp", mode=mode) as client:
        assert client.instructions is not None
        assert client.instructions.startswith("Hayfork searches messages: 120 messages, 2016-01-07 to 2016-11-07")
        counted = lines(await client.call_tool("count_messages", {"query": "docker", "author": "Юрий"}))
        assert counted[1] == "found: 40 messages by 1 author in 1 conversation, 2016-01-07 to 2016-11-07"
        first = lines(await client.call_tool("search_messages", {"query": "docker", "limit": 2}))
        assert first[2].startswith("shown 2, left out 118 (unseen_messages)")
        session = first[2].partition("session ")[2].partition(" ")[0]
        more = {"query": "docker", "limit": 2, "session": session}
        second = lines(await client.call_tool("unseen_messages", more))
        assert "seen before 2" in second[2]
        assert second[2].endswith(f"session {session} batch 2")
        shown = [line.partition("]")[0] + "]" for line in (*first, *second) if line.startswith("[")]
        assert len(set(shown)) == 4
        opened = await client.call_tool("open_thread", {"message": shown[0][1:-1], "session": session})
        assert any(shown[0] in line for line in lines(opened))
        exported = lines(await client.call_tool("export_messages", {"query": "docker"}))
        assert any("120 rows" in line for line in exported)


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("count_messages", {}),
    ("count_messages", {"query": "docker OR " + "ы" * 4_000}),
    ("count_messages", {"by": ["author", "month"], "compare": ["код", "日本"]}),
    ("search_messages", {"query": "docker", "limit": 50, "text_limit": 4_000, "context": 5}),
    ("search_messages", {"query": "nothing of the kind"}),
    ("unseen_messages", {"limit": 50, "text_limit": 4_000, "order": "oldest"}),
    ("open_thread", {"message": "support:1", "earlier": 100, "later": 100}),
    ("export_messages", {"query": "docker"}),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_every_result_fits_as_sent_and_has_the_form_its_schema_names(
    port: int, structured_port: int, version: str, tool: str, arguments: dict[str, Any]
) -> None:
    most = COUNT_BYTES if tool == "count_messages" and "by" not in arguments else PAGE_BYTES
    plain = exchange(port, "tools/call", {"name": tool, "arguments": arguments}, version=version)
    assert plain.json["result"]["isError"] is False
    assert "structuredContent" not in plain.json["result"]
    assert plain.result_bytes <= most
    both = exchange(structured_port, "tools/call", {"name": tool, "arguments": arguments}, version=version)
    Draft202012Validator(OUTPUT_SCHEMAS[tool]).validate(both.json["result"]["structuredContent"])
    assert both.result_bytes <= most


@pytest.mark.parametrize("version", VERSIONS)
def test_the_corpus_in_numbers_fits_as_sent(port: int, version: str) -> None:
    reply = exchange(port, "resources/read", {"uri": "hayfork://corpus"}, version=version)
    assert '"found":{"messages":120,' in reply.json["result"]["contents"][0]["text"]
    assert reply.result_bytes <= PAGE_BYTES


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("search_messages", {"query": "(docker OR"}, "bad_query"),
        ("search_messages", {"author": "Zora"}, "unknown_value"),
        ("search_messages", {"after": "2016-13-01"}, "bad_time"),
        ("search_messages", {"session": "x" * 22}, "unknown_session"),
        ("search_messages", {"fields": ["nope"]}, "bad_value"),
        ("search_messages", {"query": " OR ".join(f"t{n}" for n in range(257))}, "query_too_long"),
        ("search_messages", {"query": "'; DROP TABLE messages; --"}, None),
        ("search_messages", {"query": 'say "hello'}, None),
        ("open_thread", {"message": "support:999"}, "unknown_message"),
        ("export_messages", {}, "missing_parameter"),
        ("export_messages", {"export": "e" * 22}, "unknown_export"),
    ],
)
def test_errors_of_the_engine_are_short_and_the_server_goes_on(
    port: int, version: str, tool: str, arguments: dict[str, Any], code: str | None
) -> None:
    reply = exchange(port, "tools/call", {"name": tool, "arguments": arguments}, version=version)
    result = reply.json["result"]
    text = result["content"][0]["text"]
    assert result["isError"] is (code is not None), text
    if code is not None:
        assert text.startswith(f"{code}: "), text
        assert len(text.encode()) <= 2_048
