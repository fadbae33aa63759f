"""Raw arguments become requests, and whatever is off is told by name, shortly, with a way out."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.choices import COLUMNS, DIMENSIONS
from engine.errors import MAX_ERROR_BYTES, BadInput
from engine.limits import Limits, QueryLimits
from engine.requests import (
    CountRequest,
    Criteria,
    ExportRequest,
    Request,
    SearchRequest,
    ThreadRequest,
    UnseenRequest,
)
from engine.times import TIME_FORMS
from handler.arguments import parse_arguments
from handler.tools.parameters import FIELDS, Type
from handler.tools.table import TOOLS
from tests.depth import depth

LIMITS = Limits()
ALL_TOOLS = "count_messages, search_messages, unseen_messages, open_thread, export_messages"
ALONE = "give only export to ask after it, or leave export out to start another"
COUNT_PARAMETERS = ", ".join(p.name for p in TOOLS["count_messages"].parameters)
SHORTER = "use stems, or split into two calls"
THE_MESSAGE = "The `id` of a message, or up to ten; they share the room"


def refused(tool: str, raw: dict[str, Any]) -> str:
    with pytest.raises(BadInput) as caught:
        parse_arguments(tool, raw, LIMITS)
    return caught.value.to_text()


@pytest.mark.parametrize(
    ("tool", "raw", "request_"),
    [
        ("count_messages", {}, CountRequest()),
        (
            "count_messages",
            {"query": "docker", "by": ["from_role", "month"], "compare": "podman", "min_words": 8},
            CountRequest(Criteria("docker", min_words=8), ("from_role", "month"), ("podman",)),
        ),
        ("search_messages", {}, SearchRequest()),
        (
            "search_messages",
            {
                "query": "a OR b",
                "from_role": "client",
                "author": ["Zara", "U1"],
                "limit": 50,
                "order": "newest",
            },
            SearchRequest(Criteria("a OR b", from_role=("client",), author=("Zara", "U1")), limit=50, order="newest"),
        ),
        (
            "search_messages",
            {"after": "2016-11", "before": "2016-12", "fields": "headers", "session": "abc", "context": 5.0},
            SearchRequest(Criteria(after="2016-11", before="2016-12"), context=5, fields=("headers",), session="abc"),
        ),
        ("unseen_messages", {"after_batch": 0}, UnseenRequest(SearchRequest(), 0)),
        (
            "unseen_messages",
            {"query": "x", "limit": 1, "session": "s"},
            UnseenRequest(SearchRequest(Criteria("x"), limit=1, session="s")),
        ),
        ("open_thread", {"message": "C1:1.1"}, ThreadRequest(("C1:1.1",))),
        (
            "open_thread",
            {"message": ["a:1", "a:2"], "earlier": 0, "later": 100, "view": "author", "text_offset": 6000},
            ThreadRequest(("a:1", "a:2"), earlier=0, later=100, view="author", text_offset=6000),
        ),
        (
            "export_messages",
            {"query": "x", "format": "parquet", "fields": ["message_id", "body"]},
            ExportRequest(Criteria("x"), "parquet", ("message_id", "body")),
        ),
        ("export_messages", {"export": "abc"}, ExportRequest(export="abc")),
        (
            "search_messages",
            {"query": "", "after": "", "author": None, "limit": None, "session": ""},
            SearchRequest(),
        ),
    ],
)
def test_arguments_become_the_request_they_ask_for(tool: str, raw: dict[str, Any], request_: Request) -> None:
    assert parse_arguments(tool, raw, LIMITS) == request_


def test_defaults_of_the_table_are_those_of_the_requests() -> None:
    for name, tool in TOOLS.items():
        needed: dict[str, Any] = {p.name: "C1:1.1" for p in tool.parameters if p.required}
        explicit = {p.name: p.default for p in tool.parameters if p.default not in (None, "")}
        if name == "export_messages":
            explicit.pop("min_words")
        assert parse_arguments(name, needed | explicit, LIMITS) == parse_arguments(name, needed, LIMITS)


@pytest.mark.parametrize(
    ("tool", "raw", "text"),
    [
        (
            "count_messages",
            {"role": "client"},
            "unknown_parameter: count_messages has no parameter 'role'; use from_role",
        ),
        (
            "count_messages",
            {"session": "x"},
            f"unknown_parameter: count_messages has no parameter 'session'; it has {COUNT_PARAMETERS}",
        ),
        (
            "search_messages",
            {"text_limits": 9},
            "unknown_parameter: search_messages has no parameter 'text_limits'; use text_limit",
        ),
        (
            "open_thread",
            {"context": 3},
            "unknown_parameter: open_thread has no parameter 'context'; use earlier",
        ),
        (
            "search_messages",
            {"Since": "2016"},
            "unknown_parameter: search_messages has no parameter 'Since'; use after",
        ),
        (
            "open_thread",
            {},
            f"missing_parameter: open_thread needs message; give it: {THE_MESSAGE}",
        ),
        (
            "open_thread",
            {"message": []},
            f"missing_parameter: open_thread needs message; give it: {THE_MESSAGE}",
        ),
        ("search_messages", {"limit": "10"}, "bad_type: limit '10' is a string; give an integer"),
        ("search_messages", {"limit": True}, "bad_type: limit true is a boolean; give an integer"),
        ("search_messages", {"limit": 1.5}, "bad_type: limit 1.5 is a number; give an integer"),
        ("search_messages", {"limit": [1]}, "bad_type: limit is a list; give an integer"),
        ("search_messages", {"query": 7}, "bad_type: query 7 is an integer; give a string"),
        ("search_messages", {"query": {"a": 1}}, "bad_type: query is an object; give a string"),
        (
            "search_messages",
            {"author": 7},
            "bad_type: author 7 is an integer; give a list of strings or one string",
        ),
        ("search_messages", {"author": ["a", None]}, "bad_type: author[1] is null; give a string"),
        ("search_messages", {"author": ["a", " "]}, "bad_value: author[1] is empty; leave it out"),
        (
            "search_messages",
            {"limit": 51},
            "bad_value: limit 51 is out of range; give an integer from 1 to 50",
        ),
        (
            "search_messages",
            {"limit": -1},
            "bad_value: limit -1 is out of range; give an integer from 1 to 50",
        ),
        (
            "search_messages",
            {"min_words": -1},
            "bad_value: min_words -1 is out of range; give an integer 0 or more",
        ),
        (
            "search_messages",
            {"min_words": 10**9 + 1},
            "bad_value: min_words 1000000001 is out of range; give an integer from 0 to 1000000000",
        ),
        (
            "search_messages",
            {"limit": 10**5000},
            "bad_value: limit of 16610 bits is out of range; give an integer from 1 to 50",
        ),
        ("search_messages", {"limit": float("inf")}, "bad_type: limit inf is a number; give an integer"),
        (
            "search_messages",
            {"order": "Newest"},
            "bad_value: order 'Newest' is none of best, newest, oldest; use newest",
        ),
        (
            "export_messages",
            {"format": "xlsx"},
            "bad_value: format 'xlsx' is none of jsonl, csv, parquet; use one of these",
        ),
        (
            "open_thread",
            {"message": "C1:1.1", "fields": ["text", "zzz"]},
            f"bad_value: fields[1] 'zzz' is none of {', '.join(FIELDS.names)}; use one of these",
        ),
        (
            "count_messages",
            {"by": ["hour"]},
            f"bad_value: by[0] 'hour' is none of {', '.join(DIMENSIONS)}; use one of these",
        ),
        (
            "count_messages",
            {"by": "from_role, month"},
            (
                f"bad_value: by[0] 'from_role, month' is none of {', '.join(DIMENSIONS)};"
                ' give a list: ["from_role", "month"]'
            ),
        ),
        ("count_messages", {"by": ["day", "day"]}, "bad_value: by names 'day' twice; name it once"),
        (
            "export_messages",
            {"query": "x", "fields": ["authors"]},
            f"bad_value: fields[0] 'authors' is none of {', '.join(COLUMNS)}; use author",
        ),
        (
            "search_messages",
            {"session": "x" * 1025},
            (
                "bad_value: session has 1025 characters, 1024 at most;"
                " copy it from a result, or leave it out to start another"
            ),
        ),
        (
            "search_messages",
            {"after": "2" * 1025},
            f"bad_value: after has 1025 characters, 1024 at most; give {TIME_FORMS}",
        ),
        (
            "count_messages",
            {"by": ["day", "week", "month"]},
            "too_many_values: by has 3 values, 2 at most; leave some out, or split into several calls",
        ),
        (
            "search_messages",
            {"author": ["a"] * 101},
            "too_many_values: author has 101 values, 100 at most; leave some out, or split into several calls",
        ),
        (
            "search_messages",
            {"query": "x" * 4097},
            "query_too_long: query has 4097 characters, 4096 at most; use stems, or split into two calls",
        ),
        (
            "count_messages",
            {"compare": ["y", "x" * 4098]},
            f"query_too_long: compare[1] has 4098 characters, 4096 at most; {SHORTER}",
        ),
        (
            "search_messages",
            {"author": "x" * 1025},
            "bad_value: author[0] has 1025 characters, 1024 at most; copy a name or an id from a result",
        ),
        (
            "search_messages",
            {"query": "a\0"},
            "bad_value: query holds a NUL character at position 2; leave it out",
        ),
        (
            "search_messages",
            {"author": ["a", "b\ud800"]},
            "bad_value: author[1] holds half of a surrogate pair at position 2; send whole characters",
        ),
        (
            "search_messages",
            {"query": "\ufdd0"},
            "bad_value: query holds half of a surrogate pair at position 1; send whole characters",
        ),
        (
            "export_messages",
            {"export": "abc", "format": "csv", "query": "x"},
            f"bad_value: export stands alone, here it stands beside format, query; {ALONE}",
        ),
        (
            "find",
            {},
            f"unknown_tool: no tool is called 'find'; use {ALL_TOOLS}",
        ),
    ],
)
def test_what_is_off_is_named_with_a_way_out(tool: str, raw: dict[str, Any], text: str) -> None:
    assert refused(tool, raw) == text


def test_limits_of_the_deployment_hold() -> None:
    limits = Limits(query=QueryLimits(chars=16, filter_values=2))
    with pytest.raises(BadInput, match="17 characters, 16 at most"):
        parse_arguments("search_messages", {"query": "x" * 17}, limits)
    with pytest.raises(BadInput, match="3 values, 2 at most"):
        parse_arguments("search_messages", {"kind": ["a", "b", "c"]}, limits)


_ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=50)
    | st.sampled_from(["'; DROP TABLE messages; --", '"', "(", ")", "a" * 5000, "\ud800", "\0", "\u202e", "🎉" * 4096]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=depth(300, 60), deadline=None, derandomize=True)
@given(st.sampled_from(list(TOOLS)), st.data())
def test_any_arguments_give_a_request_or_an_error_under_2_kib(tool: str, data: st.DataObject) -> None:
    names = [p.name for p in TOOLS[tool].parameters]
    raw = data.draw(st.dictionaries(st.sampled_from(names) | st.text(st.characters(), max_size=5000), _ANY_JSON))
    error: BadInput | None = None
    try:
        parse_arguments(tool, raw, LIMITS)
    except BadInput as caught:
        error = caught
    if error is not None:
        assert len(error.to_text().encode("utf-8")) <= MAX_ERROR_BYTES
        assert "\n" not in error.to_text()
        assert error.next_step


def test_a_bare_string_passes_for_a_list_everywhere() -> None:
    for name, tool in TOOLS.items():
        needed = {p.name: "C1:1.1" for p in tool.parameters if p.required}
        for parameter in tool.parameters:
            if parameter.type is Type.STRINGS:
                value = (*parameter.choices, *parameter.names, "x")[0]
                bare = parse_arguments(name, needed | {parameter.name: value}, LIMITS)
                assert bare == parse_arguments(name, needed | {parameter.name: [value]}, LIMITS)
