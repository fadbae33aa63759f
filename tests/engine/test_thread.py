"""`open_thread`: messages whole, with what was said around them, to the last character and within the room."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.errors import BadInput, NotFound, Refused
from engine.limits import Limits, PageBudget
from engine.model import ACTIVITY, TOMBSTONE
from engine.pack import fits
from engine.record import UNRECORDED
from engine.sight import Sight
from engine.text import display
from infra.sqlite import SqliteSeen
from tests.engine.corpora import Desk, corpus_of, desk_of, random_messages, said


def numbers(told: dict[str, Any]) -> list[int]:
    return [int(m["id"].partition(":")[2]) for m in told["messages"]]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Twenty messages of a conversation, 3 to 7 a thread whose root 2 is deleted, and one by whom nobody hears."""
    authors = ("Ann", "Bo")
    messages = [
        said(n, f"text {n}", author=authors[n % 2], thread_native_id="2" if 2 < n < 8 else None)
        for n in range(20)
        if n != 2
    ]
    messages += [
        said(2, kind=TOMBSTONE, author="Gone"),
        said(21, "joined", kind=ACTIVITY),
        said(30, "reply", conversation="other", thread_native_id="9"),
        said(31, "another", conversation="other", thread_native_id="9", author="Bo"),
        said(32, "alone", conversation="other", thread_native_id="8"),
    ]
    return desk_of(tmp_path, corpus_of(tmp_path, messages, index=False))


def test_a_message_outside_threads_stands_among_its_neighbours(desk: Desk) -> None:
    told = desk.thread("general:10", earlier=2, later=1, fields=("sent_at", "author", "text"))
    session = told.object["session"]
    assert told.text.split("\n") == [
        "view: conversation in #general (times UTC)",
        f"shown 4, left out earlier 8, later 8 | session {session} batch 1",
        " [general:8] 2016-11-30 12:08 Ann: text 8",
        " [general:9] 2016-11-30 12:09 Bo: text 9",
        "[general:10] 2016-11-30 12:10 Ann: text 10",
        " [general:11] 2016-11-30 12:11 Bo: text 11",
    ]
    assert told.object["left_out"] == {"earlier": 8, "later": 8}
    assert told.object["messages"][2] == {
        "id": "general:10",
        "sent_at": "2016-11-30T12:10:00Z",
        "author": "Ann",
        "text": "text 10",
    }


@pytest.mark.parametrize(
    ("message", "arguments", "view", "shown", "left_out"),
    [
        ("general:5", {}, "thread", [2, 3, 4, 5, 6, 7], (0, 0)),
        ("general:5", {"earlier": 1, "later": 0}, "thread", [4, 5], (2, 2)),
        ("general:2", {"later": 1}, "thread", [2, 3], (0, 4)),
        ("general:5", {"view": "conversation", "earlier": 1, "later": 1}, "conversation", [4, 5, 6], (4, 13)),
        ("general:5", {"view": "author", "earlier": 1, "later": 1}, "author", [3, 5, 7], (1, 6)),
        ("general:0", {"earlier": 0, "later": 0}, "conversation", [0], (0, 19)),
        ("general:0", {"view": "thread"}, "thread", [0], (0, 0)),
        ("general:19", {"earlier": 100, "later": 100}, "conversation", list(range(20)), (0, 0)),
        ("general:21", {}, "conversation", [21], (0, 0)),
        ("general:21", {"view": "author"}, "conversation", [21], (0, 0)),
        ("other:31", {}, "thread", [30, 31], (0, 0)),
        ("other:32", {}, "conversation", [30, 31, 32], (0, 0)),
        ("[general:0]", {"later": 1}, "conversation", [0, 1], (0, 18)),
    ],
)
def test_a_view_shows_what_it_names(
    desk: Desk, message: str, arguments: dict[str, Any], view: str, shown: list[int], left_out: tuple[int, int]
) -> None:
    told = desk.thread(message, **arguments).object
    assert (told["view"], numbers(told), told["shown"]) == (view, shown, len(shown))
    assert told["left_out"] == {"earlier": left_out[0], "later": left_out[1]}


def test_a_deleted_root_stands_in_its_thread_without_text(desk: Desk) -> None:
    told = desk.thread("general:3", later=0)
    assert told.object["messages"][0] | {"sent_at": ""} == {
        "id": "general:2",
        "sent_at": "",
        "author": "Gone",
        "from_role": "unknown",
        "kind": "tombstone",
        "text": "",
    }
    assert (told.object["thread"], told.object["thread_size"]) == ("general:2", 5)
    assert told.text.startswith("view: thread in #general, thread general:2 of 5 messages (times UTC)\n")
    assert " [general:2] 2016-11-30 12:02 Gone (unknown, tombstone)\n" in told.text


def test_several_messages_share_the_room_and_those_that_meet_are_one_talk(desk: Desk) -> None:
    apart = desk.thread("general:0", "general:18", "other:31", earlier=1, later=1)
    assert [(numbers(talk), talk["view"]) for talk in apart.object["talks"]] == [
        ([0, 1], "conversation"),
        ([17, 18, 19], "conversation"),
        ([30, 31], "thread"),
    ]
    assert list(apart.object) == ["session", "batch", "talks"]
    assert apart.text.count("\n\nview: ") == 2
    assert apart.text.count("| session") == 1
    bridged = desk.thread("general:10", "general:16", "general:13", earlier=1, later=1)
    assert numbers(bridged.object) == list(range(9, 18))
    again = desk.thread("general:10", "general:10", earlier=0, later=0)
    assert numbers(again.object) == [10]


def test_what_does_not_fit_between_two_messages_is_counted(tmp_path: Path) -> None:
    messages = [said(n, f"text {n} " + "x" * 300) for n in range(30)]
    page = PageBudget(page_bytes=3_500)
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, index=False), limits=Limits(page=page))
    told = desk.thread("general:5", "general:20", earlier=3, later=15)
    left = told.object["left_out"]
    assert left["between"] > 0
    assert told.object["shown"] + sum(left.values()) == 30
    assert f", between {left['between']}, later" in told.text
    shown = numbers(told.object)
    assert {5, 20} <= set(shown)
    assert {4, 6, 19, 21} & set(shown)


def test_neighbours_seen_before_are_shortened_and_the_message_itself_never(tmp_path: Path) -> None:
    messages = [said(n, f"text {n} " + "word " * 100) for n in range(3)]
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, index=False))
    session = desk.search("text", text_limit=40).object["session"]
    seen = desk.thread("general:1", session=session).object
    assert [len(m["text"]) <= 91 for m in seen["messages"]] == [True, False, True]
    assert seen["messages"][1]["text"] == messages[1].body
    assert [m.get("truncated") for m in seen["messages"]] == [507, None, 507]
    fresh = desk.thread("general:1").object
    assert [len(m["text"]) > 200 for m in fresh["messages"]] == [True, True, True]
    short = desk.thread("general:1", session=session, text_limit=40).object
    assert all(len(m["text"]) <= 41 for m in (short["messages"][0], short["messages"][2]))


def test_what_a_thread_showed_is_seen(desk: Desk) -> None:
    session = desk.thread("general:5", earlier=1, later=1).object["session"]
    told = desk.unseen("text", session=session, limit=50).object
    assert told["left_out"] == {"messages": 0, "seen": 3}
    assert not {"general:4", "general:5", "general:6"} & {m["id"] for m in told["messages"]}


@pytest.mark.parametrize("seed", range(6))
def test_slices_followed_from_0_give_every_character_once(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    letters = ("a ", "ж", "花", "👩‍👩‍👧", "e\u0301", "\n", "…", " ", "https://example.org/" + "x" * 90, "⟦", "\u202e")
    body = "".join(chance.choice(letters) for _ in range(chance.randint(2_000, 6_000)))
    page = PageBudget(page_bytes=chance.choice((5_000, 16_384)), structured=seed % 2 == 0)
    messages = [said(0, "before"), said(1, body), said(2, "after")]
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, index=False), limits=Limits(page=page))
    pieces, offset = [], 0
    while True:
        told = desk.thread("general:1", text_offset=offset)
        assert fits(told.text, told.object, page, page.page)
        [message] = [m for m in told.object["messages"] if m["id"] == "general:1"]
        pieces.append(message["text"])
        assert message["truncated"] == len(body)
        if "next_offset" not in message:
            break
        assert f"…/{len(body)} next_offset {message['next_offset']}" in told.text
        assert 0 < message["next_offset"] - offset <= 6_000
        offset = message["next_offset"]
    assert "".join(pieces) == display(body)


def test_a_slice_keeps_the_last_blank_and_dots_of_the_text(tmp_path: Path) -> None:
    body = "x" * 50 + "wait… "
    desk = desk_of(tmp_path, corpus_of(tmp_path, [said(1, body)], index=False), limits=Limits(slice_chars=56))
    assert desk.thread("general:1").text.endswith("wait… ")
    assert desk.thread("general:1", text_offset=50).text.endswith("): wait… ")
    cut = desk_of(tmp_path, corpus_of(tmp_path, [said(1, body + "more")], index=False), limits=Limits(slice_chars=56))
    assert cut.thread("general:1").text.endswith("wait…  …/60 next_offset 56")


PAST_THE_END = "text_offset 6 is past the end of the text, which has 6 characters"


@pytest.mark.parametrize(
    ("messages", "arguments", "code", "text"),
    [
        (("general:99",), {}, "unknown_message", "no message 'general:99'"),
        (("general:0, general:1",), {}, "unknown_message", "no message 'general:0, general:1'"),
        (("general:0", "no\0"), {}, "unknown_message", "no message 'no\\u0000'"),
        (
            ("general:0",),
            {"text_offset": 6},
            "bad_value",
            "text_offset 6 is past the end of the text, which has 6 characters",
        ),
        (("general:0", "general:1"), {"text_offset": 1}, "bad_value", "text_offset goes with one message"),
        (("general:0",), {"session": "invented"}, "unknown_session", "this session is unknown or expired"),
    ],
)
def test_what_cannot_be_opened_is_an_error(
    desk: Desk, messages: tuple[str, ...], arguments: dict[str, Any], code: str, text: str
) -> None:
    with pytest.raises((BadInput, NotFound)) as raised:
        desk.thread(*messages, **arguments)
    assert (raised.value.code, raised.value.message) == (code, text)


def test_without_the_store_a_thread_answers_unrecorded(desk: Desk, tmp_path: Path) -> None:
    session = desk.thread("general:0").object["session"]
    (tmp_path / "file").touch()
    broken = replace(desk, seen=SqliteSeen(tmp_path / "file" / "seen.sqlite"))
    for handle in (None, session):
        told = broken.thread("general:0", session=handle)
        assert (told.object["notes"], told.object.get("session"), "batch" in told.object) == (
            [UNRECORDED],
            handle,
            False,
        )
        assert told.text.split("\n")[2] == f"note: {UNRECORDED}"


def test_the_link_comes_with_the_message_asked_for_alone(tmp_path: Path) -> None:
    messages = [said(n, "x", link=f"https://example.org/{n}", attributes="{}") for n in range(3)]
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, index=False))
    told = desk.thread("general:1")
    assert [m.get("link") for m in told.object["messages"]] == [None, "https://example.org/1", None]
    assert told.text.split("\n")[3].endswith(": x https://example.org/1")
    bare = desk.thread("general:1", fields=("author",)).object["messages"]
    assert bare == [{"id": f"general:{n}", "author": "Ann"} for n in range(3)]


def test_a_page_too_small_drops_links_then_fields_then_messages_and_says_so(tmp_path: Path) -> None:
    messages = [
        said(n, "слово " * 90, link="https://example.org/" + "x" * 900, author="ж" * 90, conversation=f"{n}" + "я" * 90)
        for n in range(4)
    ]
    corpus = corpus_of(tmp_path, messages, index=False)
    ids = [m.message_id for m in corpus.messages(range(4))]
    seen = set()
    for page_bytes in range(1_000, 9_000, 250):
        page = PageBudget(page_bytes=page_bytes)
        desk = desk_of(tmp_path, corpus, limits=Limits(page=page))
        try:
            told = desk.thread(*ids)
        except Refused as refused:
            seen.add(refused.code)
            continue
        assert fits(told.text, told.object, page, page.page)
        seen.update(told.object.get("notes", ["whole"]))
    assert seen == {
        "page_too_small",
        "1 message asked for did not fit: open the last ones in another call",
        "2 messages asked for did not fit: open the last ones in another call",
        "3 messages asked for did not fit: open the last ones in another call",
        "all fields but the text left out to fit",
        "attributes and link left out to fit",
        "whole",
    }


@pytest.mark.parametrize("seed", range(6))
def test_every_message_of_a_sequence_is_shown_or_counted(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    messages = random_messages(chance, 60)
    page = PageBudget(page_bytes=chance.choice((2_500, 4_000, 16_384)), structured=chance.random() < 0.5)
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, index=False), limits=Limits(page=page))
    sent_at = {m.message_id: m.sent_at for m in messages}
    for _ in range(8):
        ids = [m.message_id for m in chance.sample(messages, min(len(messages), chance.choice((1, 1, 3, 10))))]
        view = chance.choice(("auto", "thread", "conversation", "author"))
        told = desk.thread(*ids, view=view, earlier=chance.choice((0, 4, 100)), later=chance.choice((0, 8, 100)))
        assert fits(told.text, told.object, page, page.page)
        talks = told.object.get("talks", [told.object])
        assert {m["id"] for talk in talks for m in talk["messages"]} >= set(ids) or "notes" in told.object
        for talk in talks:
            row = desk.view.row_of(talk["messages"][0]["id"])
            assert row is not None
            asked = next(m["id"] for m in talk["messages"] if m["id"] in ids)
            total = talk["shown"] + sum(talk["left_out"].values())
            assert total == len(sequence(desk, asked, talk["view"]))
            instants = [sent_at[m["id"]] for m in talk["messages"]]
            assert instants == sorted(instants)


def sequence(desk: Desk, message_id: str, kind: str) -> list[int]:
    row = desk.view.row_of(message_id)
    assert row is not None
    view = desk.view
    if not view.talked[row]:
        return [row]
    if kind == "thread":
        return [int(r) for r in view.thread_rows(row)]
    rows = [int(r) for r in view.conversation_rows(row)]
    if kind == "conversation":
        return rows
    person = view.people[view.narrow.author[row]]
    return [r for r in rows if view.people[view.narrow.author[r]] == person]


def test_a_message_out_of_sight_cannot_be_opened(desk: Desk) -> None:
    with pytest.raises(NotFound):
        replace(desk, view=type(desk.view)(desk.view.corpus, Sight(deny=("general",)), Limits())).thread("general:0")
