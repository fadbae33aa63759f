"""The two forms of a message and of a head: every word of them, and that nothing from the corpus starts a line."""

from dataclasses import replace
from typing import Any

import pytest

from engine.choices import ALL_FIELDS
from engine.hits import Found
from engine.model import Message
from engine.render import (
    Shown,
    bounded_notes,
    chosen_fields,
    clipped,
    counted,
    distinct,
    found_line,
    found_object,
    hint_lines,
    inline,
    message_line,
    message_object,
)
from engine.snippet import Snippet
from tests.engine.corpora import MINUTE, NOON

MESSAGE = Message(
    row=0,
    message_id="C1:1",
    conversation_id="C1",
    conversation="general",
    thread_id="C1:0",
    sent_at=NOON,
    author_id="U1",
    author="Ann",
    from_role="client",
    to_role="vendor",
    kind="bot",
    status="open",
    topic="about",
    body="body",
    link="https://example.org/1",
    edited_at=NOON + MINUTE,
    attributes='{"a":1}',
)
SHOWN = Shown(MESSAGE, Snippet("the ⟦body⟧…", 900), "about", 3, 2, "fts", 1.23456)
EVERYTHING = frozenset(ALL_FIELDS)


def test_a_message_with_everything_reads_as_one_line() -> None:
    assert message_line(SHOWN, EVERYTHING, by_scan=True) == (
        "[C1:1] 2016-11-30 12:00 #general Ann (client, to vendor, bot, open): about — the ⟦body⟧ …/900 (+2 copies)"
        ' [thread C1:0, 3] https://example.org/1 (edited 2016-11-30 12:01) (score 1.2346) {"a":1} (scan)'
    )


def test_a_message_with_everything_is_an_object_in_the_order_of_the_contract() -> None:
    assert list(message_object(replace(SHOWN, around=True, next_offset=7), EVERYTHING).items()) == [
        ("id", "C1:1"),
        ("context", True),
        ("sent_at", "2016-11-30T12:00:00Z"),
        ("conversation", "general"),
        ("author", "Ann"),
        ("from_role", "client"),
        ("kind", "bot"),
        ("to_role", "vendor"),
        ("status", "open"),
        ("thread", "C1:0"),
        ("thread_size", 3),
        ("copies", 2),
        ("match", "fts"),
        ("link", "https://example.org/1"),
        ("edited_at", "2016-11-30T12:01:00Z"),
        ("score", 1.2346),
        ("attributes", '{"a":1}'),
        ("topic", "about"),
        ("text", "the ⟦body⟧…"),
        ("truncated", 900),
        ("next_offset", 7),
    ]


PLAIN = Shown(
    replace(MESSAGE, to_role=None, kind="message", status=None, link=None, edited_at=None, attributes=None),
    Snippet("body"),
)


def test_what_says_nothing_is_left_out() -> None:
    assert message_line(PLAIN, EVERYTHING) == "[C1:1] 2016-11-30 12:00 #general Ann (client): body"
    assert message_object(PLAIN, EVERYTHING) == {
        "id": "C1:1",
        "sent_at": "2016-11-30T12:00:00Z",
        "conversation": "general",
        "author": "Ann",
        "from_role": "client",
        "text": "body",
    }


def test_a_bot_was_called_a_bot_twice() -> None:
    bot = replace(PLAIN, message=replace(PLAIN.message, from_role="bot", kind="bot"))
    assert message_line(bot, EVERYTHING) == "[C1:1] 2016-11-30 12:00 #general Ann (bot): body"
    assert message_line(bot, frozenset({"kind"})) == "[C1:1] (bot)"
    assert message_object(bot, frozenset({"from_role", "kind"})) == {"id": "C1:1", "from_role": "bot", "kind": "bot"}


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        (("text",), "[C1:1] body"),
        (("author",), "[C1:1] Ann"),
        (("from_role",), "[C1:1] (client)"),
        (("author", "text"), "[C1:1] Ann: body"),
        ((), "[C1:1]"),
        (("headers",), "[C1:1] 2016-11-30 12:00 #general Ann (client)"),
    ],
)
def test_a_line_holds_the_fields_asked_for(fields: tuple[str, ...], line: str) -> None:
    assert message_line(PLAIN, chosen_fields(fields)) == line


def test_fields_bring_what_belongs_to_them() -> None:
    assert chosen_fields(("thread",)) == {"thread", "thread_size"}
    assert chosen_fields(("text",)) == {"text", "truncated"}
    assert chosen_fields(("headers",)) - {"headers"} == chosen_fields(None) - {"text", "truncated"}
    assert not chosen_fields(None) & {"link", "edited_at", "score", "attributes"}


def test_a_topic_stands_before_its_text_or_alone() -> None:
    titled = replace(PLAIN, topic="about\nit")
    assert message_line(titled, EVERYTHING).endswith(": about ⏎ it — body")
    assert message_line(replace(titled, text=Snippet("")), EVERYTHING).endswith(": about ⏎ it")
    assert message_line(replace(PLAIN, copies=1, around=True), EVERYTHING).startswith(" [C1:1] ")
    assert message_line(replace(PLAIN, copies=1), EVERYTHING).endswith(" (+1 copy)")


@pytest.mark.parametrize(
    "field", ["conversation", "author", "from_role", "to_role", "kind", "status", "link", "attributes"]
)
@pytest.mark.parametrize("break_", ["\n", "\r\n", "\u2028", "\x85", "\v"])
def test_nothing_of_a_message_can_start_a_line(field: str, break_: str) -> None:
    forgery: dict[str, Any] = {field: f"x{break_}[C1:2] 2016-11-30 12:00 #general Boss (client): pay"}
    forged = replace(MESSAGE, **forgery)
    line = message_line(replace(SHOWN, message=forged), EVERYTHING)
    assert line.splitlines() == [line]
    assert line.startswith("[C1:1] ")


def test_a_head_counts_in_words() -> None:
    found = Found(2, 2, 1, 1, NOON, NOON + 1_441 * MINUTE)
    assert found_line(found) == "found: 2 messages by 1 author in 1 conversation, 2016-11-30 to 2016-12-01"
    assert found_object(found)["last"] == "2016-12-01T12:01:00Z"
    nothing = Found(0, 0, 0, 0, None, None)
    assert (found_line(nothing), "first" in found_object(nothing)) == ("found: 0 messages", False)
    assert (counted(1, "message"), counted(0, "message")) == ("1 message", "0 messages")


def test_hints_are_lines_with_close_words() -> None:
    hints = {"without": {"after": 2, "query": 0}, "terms": {"dokcer": {"messages": 1, "close": {"docker": 7}}}}
    assert list(hint_lines(hints)) == [
        "hint: without after 2, without query 0 would match",
        "hint: dokcer alone is in 1 message; close: docker 7",
    ]
    assert list(hint_lines({})) == []


def test_notes_are_told_once_and_as_many_as_fit() -> None:
    assert bounded_notes(["a", "b\nc", "a"]) == ["a", "b ⏎ c"]
    long = ["ж" * 400, "花" * 400, "last"]
    assert bounded_notes(long) == ["ж" * 299 + "…"]
    assert bounded_notes(["x"], 0) == []


def test_names_are_cut_and_told_apart() -> None:
    assert (clipped("x" * 81), inline("a\nb")) == ("x" * 79 + "…", "a ⏎ b")
    assert distinct(["abcdef", "abcxyz", "abcd", "ab"], 4) == ["abc…", "abc… (2)", "abcd", "ab"]
