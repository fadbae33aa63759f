"""Bad input in bulk: a clear error under 2 KiB or a literal search with its note, and a server that goes on."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handler.tools.parameters import Type
from handler.tools.table import TOOLS
from tests.depth import depth
from tests.front.corpora import app_over, table_settings
from tests.front.told import ERAS, Told, ask
from tests.handler.running import exchange, running

ERROR_BYTES = 2_048
ROWS = [
    {
        "conversation": "room",
        "native_id": str(n),
        "sent_at": f"2016-09-{1 + n:02}T10:00:00Z",
        "author": "Ada",
        "body": f'docker (compose {n} "quoted" \'; DROP TABLE messages; --',
    }
    for n in range(9)
]


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    app = app_over(table_settings(tmp_path_factory.mktemp("bad"), ROWS))
    app.refresh()
    with running(app) as number:
        yield number
        assert ask(number, "count_messages").number("found: ") == 9, "it still answers after all of them"


def assert_clear(told: Told) -> None:
    assert len(told.text.encode()) < ERROR_BYTES
    assert "internal error" not in told.text
    code, colon, message = told.text.partition(": ")
    assert colon, told.text
    assert code.replace("_", "").isalpha()
    assert code.islower()
    assert message
    assert "\n" not in told.text


REQUIRED: dict[str, dict[str, Any]] = {"open_thread": {"message": "room:1"}, "export_messages": {"query": "docker"}}
NO_STRING = [5, 1.5, True, {"a": "b"}, [["a"]], [1]]
NO_INTEGER = ["5", "", 1.5, True, [1], {"a": 1}, -1, -(10**30), 10**30, 2**63, 10**400]


def wrong_types() -> Iterator[tuple[str, str, Any]]:
    for tool in TOOLS.values():
        for parameter in tool.parameters:
            values = NO_INTEGER if parameter.type is Type.INTEGER else NO_STRING
            for value in values:
                if value != "":
                    yield tool.name, parameter.name, value


@pytest.mark.parametrize("version", ERAS)
def test_every_parameter_of_every_tool_refuses_what_is_not_of_its_type_or_range(port: int, version: str) -> None:
    asked = list(wrong_types())
    assert len(asked) > 400
    for tool, parameter, value in asked:
        told = ask(port, tool, version=version, **{**REQUIRED.get(tool, {}), parameter: value})
        assert told.is_error, (tool, parameter, value)
        assert_clear(told)
        assert parameter in told.text


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    "name", ["role", "Query", "__class__", "limit\n", "х" * 3_000, "'; DROP TABLE messages; --", " "]
)
def test_every_tool_refuses_a_parameter_it_does_not_have(port: int, version: str, tool: str, name: str) -> None:
    told = ask(port, tool, version=version, **{**REQUIRED.get(tool, {}), name: "x"})
    assert told.is_error
    assert_clear(told)
    assert told.text.startswith(f"unknown_parameter: {tool} has no parameter '")


UNFIT = ["\0", "a\0b", "\ud800", "x\udfff", "\udc00\ud800"]


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("value", UNFIT, ids=ascii)
def test_nul_and_halves_of_pairs_are_refused_by_name_in_every_text(port: int, version: str, value: str) -> None:
    for tool in TOOLS.values():
        for parameter in tool.parameters:
            if parameter.type is Type.INTEGER:
                continue
            told = ask(port, tool.name, version=version, **{**REQUIRED.get(tool.name, {}), parameter.name: value})
            assert told.is_error
            assert_clear(told)
            assert parameter.name in told.text


LITERAL = {
    "'; DROP TABLE messages; --": 9,
    "' OR '1'='1": 9,
    "(compose": 9,
    '"quoted': 9,
    'say "hello': 0,
    ")": 0,
    "((((": 0,
    "%' UNION SELECT * FROM read_csv('/etc/passwd') --": 0,
    "${jndi:ldap://x}": 0,
    "\\": 0,
    "\x01\x1b[31m": 0,
    "\u202e\u200b": 0,
}
"""Without an operator a query that does not parse is searched as it stands: how many of the nine hold it."""


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("query", LITERAL, ids=ascii)
def test_what_does_not_parse_is_searched_literally(port: int, version: str, query: str) -> None:
    told = ask(port, "search_messages", version=version, query=query)
    assert not told.is_error, told.text
    assert told.number("found: ") == LITERAL[query]
    unbalanced = query.count("(") != query.count(")") or query.count('"') % 2
    assert any(line.startswith("note: searched literally: ") for line in told.lines) == bool(unbalanced)


WRONG_QUERIES = [
    "(docker OR",
    "docker OR",
    "AND",
    "NOT",
    '(docker AND "x',
    "topic:(x",
    "docker NOT NOT",
    ") OR (",
    "a OR b)",
    " OR ".join(f"t{n}" for n in range(5_000)),
    " ".join(f"t{n}" for n in range(600)),
    "(" * 65 + "a OR b" + ")" * 65,
    "(" * 2_000 + "a OR b" + ")" * 2_000,
    "NOT " * 1_000 + "a",
    "x" * 4_097,
    "🎉" * 5_000,
]


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("query", WRONG_QUERIES, ids=lambda query: query[:16])
def test_a_query_that_cannot_be_meant_is_a_clear_error(port: int, version: str, query: str) -> None:
    for tool in ("count_messages", "search_messages", "unseen_messages", "export_messages"):
        told = ask(port, tool, version=version, query=query)
        assert told.is_error, told.text
        assert_clear(told)
        assert told.text.partition(":")[0] in {"bad_query", "query_too_long", "query_too_deep"}
    told = ask(port, "count_messages", version=version, compare=["docker", query])
    assert told.is_error
    assert_clear(told)


WRONG_VALUES: list[tuple[str, dict[str, Any], str]] = [
    ("search_messages", {"after": "2016-13"}, "bad_time"),
    ("search_messages", {"after": "tomorrow"}, "bad_time"),
    ("search_messages", {"after": "0000-01-01"}, "bad_time"),
    ("search_messages", {"before": "99999"}, "bad_time"),
    ("search_messages", {"after": "2016-02-30T25:00:00"}, "bad_time"),
    ("search_messages", {"after": "2017", "before": "2016"}, "bad_time"),
    ("search_messages", {"author": "Zara"}, "unknown_value"),
    ("search_messages", {"conversation": "room'; --"}, "unknown_value"),
    ("search_messages", {"from_role": "🎉" * 300}, "unknown_value"),
    ("search_messages", {"thread": "room:99"}, "unknown_value"),
    ("search_messages", {"author": ["Ada"] * 101}, "too_many_values"),
    ("search_messages", {"author": ["Ada", " "]}, "bad_value"),
    ("search_messages", {"author": "x" * 100_000}, "bad_value"),
    ("search_messages", {"order": "random"}, "bad_value"),
    ("search_messages", {"fields": ["secret"]}, "bad_value"),
    ("search_messages", {"limit": 51}, "bad_value"),
    ("search_messages", {"limit": 0}, "bad_value"),
    ("count_messages", {"by": ["author", "month", "kind"]}, "too_many_values"),
    ("count_messages", {"by": ["author", "author"]}, "bad_value"),
    ("count_messages", {"compare": ["x"] * 6}, "too_many_values"),
    ("open_thread", {}, "missing_parameter"),
    ("open_thread", {"message": []}, "missing_parameter"),
    ("open_thread", {"message": "room:77"}, "unknown_message"),
    ("open_thread", {"message": ["room:1"] * 11}, "too_many_values"),
    ("open_thread", {"message": "room:1", "text_offset": 9_999}, "bad_value"),
    ("open_thread", {"message": ["room:1", "room:2"], "text_offset": 1}, "bad_value"),
    ("export_messages", {}, "missing_parameter"),
    ("export_messages", {"query": "docker", "fields": ["password"]}, "bad_value"),
    ("export_messages", {"export": "../../etc/passwd"}, "unknown_export"),
    ("export_messages", {"export": "x", "query": "docker"}, "bad_value"),
]


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(("tool", "arguments", "code"), WRONG_VALUES, ids=lambda value: str(value)[:30])
def test_a_wrong_value_is_a_clear_error(
    port: int, version: str, tool: str, arguments: dict[str, Any], code: str
) -> None:
    told = ask(port, tool, version=version, **arguments)
    assert told.is_error, told.text
    assert_clear(told)
    assert told.text.partition(":")[0] == code


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
_NAMES = st.sampled_from(sorted({p.name for tool in TOOLS.values() for p in tool.parameters}))


@settings(max_examples=depth(150, 60), deadline=None, derandomize=True)
@given(tool=st.sampled_from(sorted(TOOLS)), arguments=st.dictionaries(_NAMES | st.text(max_size=8), _JSON, max_size=4))
def test_any_json_at_all_is_answered_or_refused_clearly(port: int, tool: str, arguments: dict[str, Any]) -> None:
    params = {"name": tool, "arguments": arguments}
    for version in ERAS:
        reply = exchange(port, "tools/call", params, version=version)
        assert reply.status in {200, 400}
        told = reply.json.get("result")
        if told is None:
            assert len(reply.body) < ERROR_BYTES
            assert "internal" not in reply.json["error"]["message"].casefold()
        elif told["isError"]:
            assert_clear(Told(told["content"][0]["text"], is_error=True, size=reply.result_bytes, object=None))


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("arguments", [[], "x", 5, [["query", "x"]]], ids=["list", "string", "number", "pairs"])
def test_arguments_that_are_no_object_are_refused(port: int, version: str, arguments: Any) -> None:
    reply = exchange(port, "tools/call", {"name": "count_messages", "arguments": arguments}, version=version)
    assert reply.json["error"]["code"] == -32602
    assert len(reply.body) < ERROR_BYTES


def test_a_body_over_its_limit_is_refused(port: int) -> None:
    reply = exchange(port, "tools/call", {"name": "count_messages", "arguments": {"query": "🎉" * 100_000}})
    assert (reply.status, len(reply.body) < ERROR_BYTES) == (413, True)


def test_deep_nesting_is_refused_and_the_server_goes_on(port: int) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count_messages","arguments":{"query":%b}}}'
    for version in ERAS:
        reply = exchange(port, "tools/call", {"name": "count_messages"}, version=version, body=body % deep)
        assert reply.status in {200, 400}
        assert len(reply.body) < ERROR_BYTES
        assert ask(port, "count_messages", version=version).number("found: ") == 9
