"""The server as the real client meets it, in memory and over HTTP, in both eras of the protocol."""

import json
import logging
import threading
from collections.abc import Iterator
from typing import Any, Literal

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceLink, TextContent, TextResourceContents

from engine.answer import Answer
from engine.errors import NotFound, Unavailable
from engine.limits import Limits, PageBudget
from engine.pack import framed_bytes
from engine.requests import Request, SearchRequest
from engine.sight import Caller
from handler.mcp_server import build_server
from handler.texts import QUERY_LANGUAGE
from handler.tools.table import TOOLS
from tests.handler.running import MODERN, VERSIONS, exchange, running
from tests.handler.small_app import MESSAGES, SmallApp, structured_limits

pytestmark = pytest.mark.anyio

Mode = Literal["legacy", "auto"]
MODES: tuple[Mode, ...] = ("legacy", "auto")
PAGE = Limits().page


@pytest.fixture(scope="module")
def app() -> SmallApp:
    return SmallApp()


@pytest.fixture(scope="module")
def port(app: SmallApp) -> Iterator[int]:
    with running(app) as number:
        yield number


def text_of(result: Any) -> str:
    first = result.content[0]
    assert isinstance(first, TextContent)
    return first.text


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_in_memory_finds_and_reads(mode: Mode) -> None:
    async with Client(build_server(SmallApp()), mode=mode) as client:
        assert [t.name for t in (await client.list_tools()).tools] == list(TOOLS)
        found = await client.call_tool("search_messages", {"query": "docker", "limit": 1})
        assert text_of(found) == "found: 2 messages\n[C1:1.1] Docker will not start on my laptop"
        assert (found.is_error, found.structured_content) == (False, None)


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_over_http_finds_and_reads(port: int, mode: Mode) -> None:
    async with Client(f"http://127.0.0.1:{port}/mcp", mode=mode) as client:
        found = await client.call_tool("search_messages", {"query": "日本"})
        assert text_of(found) == "found: 1 messages\n[C2:3.1] 日本語のテキスト 🎉"
        opened = await client.call_tool("open_thread", {"message": "C2:4.1"})
        assert text_of(opened) == 'found: 1 messages\n[C2:4.1] a "quoted" line ⏎ and another'


@pytest.mark.parametrize("mode", MODES)
async def test_instructions_are_made_for_each_caller_when_it_connects(mode: Mode) -> None:
    names = iter(["ada", "bob"])
    server = build_server(SmallApp(), caller_of=lambda _: Caller(next(names)))
    for name in ("ada", "bob"):
        async with Client(server, mode=mode) as client:
            told = client.instructions
        assert told == f"Hayfork searches tests: {len(MESSAGES)} messages, as seen by {name}. Größe ж 語."


@pytest.mark.parametrize("version", VERSIONS)
def test_instructions_stand_in_the_first_answer_of_every_version(port: int, version: str) -> None:
    first = exchange(port, "server/discover" if version == MODERN else "initialize", version=version)
    result = first.json["result"]
    assert result["instructions"].startswith("Hayfork searches tests: 4 messages, as seen by local.")
    assert first.result_bytes <= PAGE.page_bytes
    if version == MODERN:
        assert (result["cacheScope"], result["ttlMs"]) == ("private", 60_000)
    else:
        assert result["protocolVersion"] == version


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_connects_even_when_there_is_nothing_to_search_yet(mode: Mode) -> None:
    def nothing(_: Caller) -> str:
        raise NotFound("no_snapshot", "no snapshot yet")

    async with Client(build_server(SmallApp(facts=nothing)), mode=mode) as client:
        assert client.instructions is None
        assert len((await client.list_tools()).tools) == 5


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("structured", [False, True])
def test_every_list_fits_16_kib_as_sent(version: str, *, structured: bool) -> None:
    limits = structured_limits() if structured else Limits()
    with running(SmallApp(limits)) as port:
        for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
            reply = exchange(port, method, version=version)
            assert reply.status == 200
            assert reply.result_bytes <= PAGE.page_bytes
            if version == MODERN:
                assert (reply.json["result"]["cacheScope"], reply.json["result"]["ttlMs"]) == (
                    "private",
                    3_600_000,
                )


@pytest.mark.parametrize("version", VERSIONS)
def test_list_changes_and_subscriptions_are_not_advertised(port: int, version: str) -> None:
    first = exchange(port, "server/discover" if version == MODERN else "initialize", version=version)
    assert first.json["result"]["capabilities"] == {
        "prompts": {"listChanged": False},
        "resources": {"listChanged": False, "subscribe": False},
        "tools": {"listChanged": False},
    }


def test_subscriptions_are_not_served(port: int) -> None:
    reply = exchange(port, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    assert (reply.status, reply.json["error"]) == (
        404,
        {"code": -32601, "message": "no method 'subscriptions/listen'"},
    )


def full(filler: str, *, structured: bool) -> Answer:
    """An answer that fills what the packer may fill, to the byte."""
    value = {"messages": [{"id": "C1:1.1"}]}
    room = PAGE.page - framed_bytes("", value if structured else None)
    text = filler * (room // (len(json.dumps(filler, ensure_ascii=False).encode()) - 2))
    text += "x" * (PAGE.page - framed_bytes(text, value if structured else None))
    return Answer(text, value)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("filler", ["x", "ж", "🎉", '"', "\\", "\n", "\x01"])
def test_a_full_page_leaves_within_16_kib_with_all_stamps(version: str, filler: str, *, structured: bool) -> None:
    answer = full(filler, structured=structured)
    assert framed_bytes(answer.text, answer.object if structured else None) == 15_872
    app = SmallApp(structured_limits() if structured else Limits(), lambda _, __: answer)
    with running(app) as port:
        reply = exchange(port, "tools/call", {"name": "count_messages", "arguments": {}}, version=version)
    result = reply.json["result"]
    assert (result["content"], result["isError"]) == ([{"type": "text", "text": answer.text}], False)
    assert result.get("structuredContent") == (answer.object if structured else None)
    assert reply.result_bytes <= 16_384


@pytest.mark.parametrize("mode", MODES)
async def test_the_object_travels_beside_the_text_only_by_setting(mode: Mode) -> None:
    async with Client(build_server(SmallApp(structured_limits())), mode=mode) as client:
        assert all(t.output_schema for t in (await client.list_tools()).tools)
        result = await client.call_tool("search_messages", {"query": "docker", "limit": 1})
        assert result.structured_content == {
            "searched": {"not_searched": {"activity": 0}},
            "found": {"messages": 2},
            "shown": 1,
            "left_out": {"messages": 1},
            "messages": [{"id": "C1:1.1", "text": MESSAGES["C1:1.1"]}],
        }
        failed = await client.call_tool("search_messages", {"limit": 0})
        assert (failed.is_error, failed.structured_content) == (True, None)
    async with Client(build_server(SmallApp()), mode=mode) as client:
        assert not any(t.output_schema for t in (await client.list_tools()).tools)


@pytest.mark.parametrize("mode", MODES)
async def test_an_engine_error_is_told_as_text_only(mode: Mode) -> None:
    async with Client(build_server(SmallApp()), mode=mode) as client:
        unknown = await client.call_tool("open_thread", {"message": "C9:1"})
        assert (unknown.is_error, unknown.structured_content, len(unknown.content)) == (True, None, 1)
        assert text_of(unknown) == ("unknown_message: no message 'C9:1'; copy an id from a result, or search_messages")
        wrong = await client.call_tool("count_messages", {"role": "client"})
        assert text_of(wrong) == ("unknown_parameter: count_messages has no parameter 'role'; use from_role")


@pytest.mark.parametrize("mode", MODES)
async def test_anything_else_is_told_by_reference_and_logged_without_words(
    mode: Mode, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(request: Request, _: Caller) -> Answer:
        assert isinstance(request, SearchRequest)
        raise ValueError(f"secret {request.criteria.query}") from KeyError("of the vault")

    async with Client(build_server(SmallApp(answer=fail)), mode=mode) as client:
        result = await client.call_tool("search_messages", {"query": "private words"})
    text = text_of(result)
    assert result.is_error
    assert text.startswith("internal error, reference ")
    reference = text.removeprefix("internal error, reference ")
    assert len(reference) == 8
    logged = [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR]
    assert len(logged) == 1
    assert reference in logged[0]
    assert "builtins.ValueError at" in logged[0]
    assert "from builtins.KeyError" in logged[0]
    assert "handler/test_mcp.py" in logged[0]
    everything = "\n".join(r.getMessage() + str(r.exc_info) for r in caplog.records)
    assert not any(word in everything for word in ("secret", "private words", "vault"))


async def test_what_an_error_says_for_the_log_stays_there(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: Request, __: Caller) -> Answer:
        raise Unavailable("store_unreachable", "sessions cannot be read", next_step="try again", detail="timeout")

    async with Client(build_server(SmallApp(answer=fail))) as client:
        result = await client.call_tool("search_messages", {})
    assert text_of(result) == "store_unreachable: sessions cannot be read; try again"
    assert [r.getMessage() for r in caplog.records if r.name.startswith("handler")] == ["store_unreachable: timeout"]


async def test_a_result_over_its_page_is_a_fault_of_ours_and_never_sent() -> None:
    app = SmallApp(answer=lambda _, __: Answer("x" * 15_900, {}))
    async with Client(build_server(app)) as client:
        result = await client.call_tool("count_messages", {})
    assert result.is_error
    assert text_of(result).startswith("internal error, reference ")


@pytest.mark.parametrize("mode", MODES)
async def test_an_export_has_its_link_beside_the_text(mode: Mode) -> None:
    async with Client(build_server(SmallApp()), mode=mode) as client:
        result = await client.call_tool("export_messages", {"query": "docker"})
    link = result.content[1]
    assert isinstance(link, ResourceLink)
    assert (link.uri, link.mime_type) == ("https://files.example/exports/1", "application/jsonl")


async def test_a_path_is_no_link() -> None:
    app = SmallApp(answer=lambda _, __: Answer("link: out/1.jsonl", {}, "out/1.jsonl", "application/jsonl"))
    async with Client(build_server(app)) as client:
        assert len((await client.call_tool("export_messages", {"query": "x"})).content) == 1


@pytest.mark.parametrize("mode", MODES)
async def test_resources_tell_the_corpus_and_the_query_language(mode: Mode) -> None:
    async with Client(build_server(SmallApp()), mode=mode) as client:
        assert [r.uri for r in (await client.list_resources()).resources] == [
            "hayfork://corpus",
            "hayfork://query-language",
        ]
        corpus = (await client.read_resource("hayfork://corpus")).contents[0]
        language = (await client.read_resource("hayfork://query-language")).contents[0]
        assert isinstance(corpus, TextResourceContents)
        assert isinstance(language, TextResourceContents)
        assert json.loads(corpus.text) == {"searched": {}, "found": {"messages": 4}}
        assert (language.text, language.mime_type) == (QUERY_LANGUAGE, "text/markdown")
        with pytest.raises(MCPError, match="no resource 'hayfork://other'; read hayfork://corpus or"):
            await client.read_resource("hayfork://other")


@pytest.mark.parametrize("mode", MODES)
async def test_the_prompt_sets_an_agent_on_a_question(mode: Mode) -> None:
    async with Client(build_server(SmallApp()), mode=mode) as client:
        prompts = (await client.list_prompts()).prompts
        assert [(p.name, [a.name for a in p.arguments or []]) for p in prompts] == [
            ("answer_from_messages", ["question"])
        ]
        prompt = await client.get_prompt("answer_from_messages", {"question": "Что с ротацией ключей?"})
        content = prompt.messages[0].content
        assert isinstance(content, TextContent)
        assert content.text.endswith("\n\nQuestion: Что с ротацией ключей?")
        for arguments, message in [
            ({}, "missing_parameter: answer_from_messages needs question; give what to find out"),
            ({"q": "x"}, "unknown_parameter: answer_from_messages has no argument 'q'; use question"),
            (
                {"question": "x" * 2001},
                "bad_value: question has 2001 characters, 2000 at most; say it shorter",
            ),
        ]:
            with pytest.raises(MCPError) as caught:
                await client.get_prompt("answer_from_messages", arguments)
            assert str(caught.value) == message
        with pytest.raises(MCPError, match="unknown_prompt: no prompt is called 'other'; use answer_from_messages"):
            await client.get_prompt("other")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_longest_prompt_fits_16_kib(port: int, version: str) -> None:
    params = {"name": "answer_from_messages", "arguments": {"question": "\x01" * 1_999 + "?"}}
    assert exchange(port, "prompts/get", params, version=version).result_bytes <= PAGE.page_bytes


@pytest.mark.parametrize("mode", MODES)
async def test_an_unknown_tool_and_a_cursor_are_errors_of_the_protocol(mode: Mode) -> None:
    async with Client(build_server(SmallApp()), mode=mode) as client:
        with pytest.raises(MCPError, match="no tool is called 'find'; use count_messages, search_messages"):
            await client.call_tool("find", {})
        with pytest.raises(MCPError, match="unknown cursor; this list is one page, ask without"):
            await client.list_tools(cursor="2")


async def test_calls_run_in_threads_beside_the_loop_and_at_most_so_many_at_once() -> None:
    together = threading.Barrier(3, timeout=10)

    def meet(_: Request, __: Caller) -> Answer:
        together.wait()
        return Answer("met", {})

    app = SmallApp(answer=meet)
    async with Client(build_server(app, threads=3)) as client, anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(client.call_tool, "count_messages", {})
    assert len(app.calls) == 6
    assert threading.current_thread().name not in app.threads
    assert len(app.threads) <= 3


BAD = [
    {"nope": 1},
    {"query": 7},
    {"query": "\0"},
    {"query": "\ud800"},
    {"author": ["\udfff"]},
    {"limit": -1},
    {"limit": 10**400},
    {"limit": "'; DROP TABLE messages; --"},
    {"query": "x" * 4097},
    {"author": ["x"] * 5_000},
    {"\ud800": 1},
    {"order": "🎉" * 1_000},
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("arguments", BAD, ids=range(len(BAD)))
def test_bad_arguments_are_a_short_error_in_every_version(port: int, version: str, arguments: dict[str, Any]) -> None:
    reply = exchange(port, "tools/call", {"name": "search_messages", "arguments": arguments}, version=version)
    result = reply.json["result"]
    assert (reply.status, result["isError"], "structuredContent" in result) == (200, True, False)
    assert len(result["content"][0]["text"].encode()) <= 2_048
    assert result["content"][0]["text"].partition(":")[0] in {
        "unknown_parameter",
        "bad_type",
        "bad_value",
        "query_too_long",
        "too_many_values",
    }


def test_a_message_that_holds_half_a_character_is_sent_all_the_same() -> None:
    with running(SmallApp(answer=lambda _, __: Answer("a\ud800b", {}))) as port:
        for version in VERSIONS:
            reply = exchange(port, "tools/call", {"name": "count_messages", "arguments": {}}, version=version)
            assert reply.json["result"]["content"][0]["text"] == "a\ufffdb"


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unknown_method_and_resource_are_not_echoed_at_length(port: int, version: str) -> None:
    for method, params in (("x/" + "y" * 5_000, {}), ("resources/read", {"uri": "z:" + "y" * 5_000})):
        headers = {"mcp-method": method, "mcp-name": str(params.get("uri", ""))} if version == MODERN else {}
        reply = exchange(port, method, params, version=version, headers=headers)
        assert "error" in reply.json
        assert len(reply.body) <= 2_048


def test_the_page_budget_is_that_of_the_contract() -> None:
    assert PageBudget(16_384, 512, 4_096, structured=False) == PAGE
