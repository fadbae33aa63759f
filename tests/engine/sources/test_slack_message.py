"""One record of a day file: what it becomes, by its shape."""

import json
from collections import Counter
from typing import Any

import pytest

from engine.model import SourceMessage
from engine.redaction import redacted
from engine.sources.roles import RoleRule, RoleRules
from engine.sources.slack_message import (
    BadRecord,
    Conversation,
    Skipped,
    current_version,
    instant_of,
    message_of,
)
from engine.sources.slack_people import People
from engine.sources.slack_text import Naming
from tests.engine.planted import LOOKALIKES, PLANTED

_TS = "1485334142.000004"
_GENERAL = Conversation("C1", "general")
_RULES = RoleRules(
    {
        "client": RoleRule(email_domain=("partner.example",)),
        "teammate": RoleRule(user=("UTEAM", "BTEAM"), conversation=("C7", "staff")),
    }
)
_USERS: list[dict[str, Any]] = [
    {"id": "U1", "name": "ann", "profile": {"display_name": "Ann Ash", "email": "ann@partner.example"}},
    {"id": "U2", "name": "bo", "real_name": "Bo Birch", "profile": {"display_name": "", "real_name": ""}},
    {
        "id": "U3",
        "name": "cy",
        "profile": {"display_name": " cy@partner.example ", "email": "CY@partner.example"},
    },
    {"id": "UBOT", "is_bot": True, "profile": {"real_name": "Deploy &amp; Co", "bot_id": "BDEPLOY"}},
    {"id": "UTEAM", "is_bot": True, "name": "helper"},
    {"id": "U4", "profile": "none"},
]


def _people() -> People:
    people = People(_RULES)
    assert [people.add(user) for user in _USERS] == [True] * len(_USERS)
    return people


def _made(
    record: dict[str, Any], place: Conversation = _GENERAL, url: str | None = None
) -> SourceMessage | Skipped | BadRecord:
    people = _people()
    naming = Naming(people.name_of, lambda channel_id: channel_id)
    return message_of(current_version({"ts": _TS, **record}), place, people, naming, url)


def _message(record: dict[str, Any], place: Conversation = _GENERAL) -> SourceMessage:
    made = _made(record, place)
    assert isinstance(made, SourceMessage)
    return made


def test_a_reply_becomes_one_whole_message() -> None:
    record = {
        "user": "U1",
        "text": "see <@U2> &amp; https://files.slack.com/x?t=xoxe-1-a",
        "subtype": "thread_broadcast",
        "thread_ts": "1485334000.000001",
        "root": {"text": "the root", "ts": "1485334000.000001"},
        "edited": {"user": "U1", "ts": "1485334150.000000"},
        "reactions": [
            {"name": "+1", "users": ["U1", "U2"], "count": 2},
            {"name": "eyes", "users": ["U1"]},
            {},
        ],
        "files": [{"name": "a.png", "filetype": "png", "size": 7, "url_private": "https://x?t=xoxe-1-a"}],
    }
    assert _made(record, url="https://x.slack.com/") == SourceMessage(
        conversation_id="C1",
        conversation="general",
        native_id=_TS,
        sent_at=1_485_334_142_000_004,
        author_id="U1",
        author="Ann Ash",
        body="see @Bo Birch & https://files.slack.com/x?\na.png",
        thread_native_id="1485334000.000001",
        from_role="client",
        kind="message",
        link="https://x.slack.com/archives/C1/p1485334142000004?thread_ts=1485334000.000001&cid=C1",
        edited_at=1_485_334_150_000_000,
        attributes='{"subtype":"thread_broadcast","reactions":{"+1":2,"eyes":1},'
        '"files":[{"name":"a.png","type":"png","size":7}]}',
    )


@pytest.mark.parametrize(
    ("ts", "expected"),
    [
        ("1485334142.000004", 1_485_334_142_000_004),
        ("1485334142.1", 1_485_334_142_100_000),
        ("1485334142", 1_485_334_142_000_000),
        ("4102444799.999999", 4_102_444_799_999_999),
        ("4102444800.000000", None),
        ("1485334142000.000004", None),
        ("1485334142000", None),
        ("0.000000", None),
        ("-1.0", None),
        ("١٢٣.000000", None),
        ("1485334142.0000041", None),
        (" 1485334142.000004", None),
        ("", None),
        (1485334142.000004, None),
        (None, None),
    ],
)
def test_ts_is_read_exactly_or_not_at_all(ts: object, expected: int | None) -> None:
    assert instant_of(ts) == expected


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"ts": None}, BadRecord("no ts")),
        ({"ts": 1485334142.000004}, BadRecord("its ts is not a time")),
        ({"ts": "1485334142000000"}, BadRecord("its ts is not a time")),
        ({"subtype": "message_deleted", "deleted_ts": _TS}, Skipped("deleted")),
        ({"subtype": "tombstone", "text": "This message was deleted."}, Skipped("deleted")),
        ({"subtype": "tombstone", "thread_ts": _TS, "reply_count": 0}, Skipped("deleted")),
        ({"subtype": "tombstone", "thread_ts": "1485334000.000001"}, Skipped("deleted")),
        ({"subtype": "message_replied", "message": {"ts": _TS}}, Skipped("event")),
        ({"subtype": "message_changed", "message": {"text": "no ts"}}, Skipped("event")),
        ({"hidden": True, "text": "x"}, Skipped("hidden")),
    ],
)
def test_what_is_no_message_says_why(record: dict[str, Any], expected: Skipped | BadRecord) -> None:
    assert _made(record) == expected


@pytest.mark.parametrize(
    "roots",
    [{"reply_count": 2}, {"replies": [{"user": "U1", "ts": "1485334143.000000"}]}, {"thread_ts": _TS}],
)
def test_a_deleted_root_with_replies_is_kept_without_its_text(roots: dict[str, Any]) -> None:
    record = {
        "subtype": "tombstone",
        "user": "USLACKBOT",
        "text": "This message was deleted.",
        "hidden": True,
    }
    made = _message({**record, "thread_ts": _TS, **roots})
    assert (made.kind, made.body, made.attributes, made.thread_id) == ("tombstone", "", None, f"C1:{_TS}")


def test_a_changed_message_is_its_new_version_edited_at_the_change() -> None:
    event = {"subtype": "message_changed", "ts": "1485334200.000000", "hidden": True}
    made = _message({**event, "message": {"user": "U1", "text": "new", "ts": _TS}})
    assert (made.native_id, made.body, made.edited_at) == (_TS, "new", 1_485_334_200_000_000)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({}, None),
        ({"thread_ts": _TS}, None),
        ({"thread_ts": _TS, "reply_count": 1}, _TS),
        ({"thread_ts": _TS, "replies": [{}]}, _TS),
        ({"thread_ts": "1485334000.000001"}, "1485334000.000001"),
        ({"thread_ts": "soon"}, None),
        ({"thread_ts": 1485334000.000001}, None),
    ],
)
def test_threads_are_found_by_thread_ts(record: dict[str, Any], expected: str | None) -> None:
    assert _message(record).thread_native_id == expected


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"user": "U1"}, "message"),
        ({"user": "U1", "subtype": "me_message"}, "message"),
        ({"user": "U1", "subtype": "reply_broadcast"}, "message"),
        ({"user": "U1", "subtype": "never_heard_of"}, "message"),
        ({"user": "U1", "subtype": "channel_join"}, "activity"),
        ({"user": "U1", "subtype": "group_unarchive"}, "activity"),
        ({"user": "U1", "subtype": "channel_convert_to_private"}, "activity"),
        ({"user": "U1", "subtype": "unpinned_item"}, "activity"),
        ({"user": "U1", "subtype": "file_mention", "file": {"name": "a"}}, "activity"),
        ({"user": "USLACKBOT", "subtype": "reminder_add"}, "activity"),
        ({"user": "UBOT", "subtype": "channel_join"}, "activity"),
        ({"user": "U1", "subtype": "bot_disable", "bot_id": "B1"}, "activity"),
        ({"user": "U1", "subtype": "file_share"}, "file"),
        ({"user": "U1", "subtype": "file_comment"}, "file"),
        ({"user": "U1", "files": [{"name": "a"}]}, "file"),
        ({"user": "U1", "files": [None, {}]}, "message"),
        ({"user": "UBOT", "files": [{"name": "a"}]}, "bot"),
        ({"subtype": "bot_message", "username": "ci"}, "bot"),
    ],
)
def test_kinds_follow_subtypes_files_and_authors(record: dict[str, Any], expected: str) -> None:
    assert _message(record).kind == expected


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"user": "U1"}, ("U1", "Ann Ash", "client")),
        ({"user": "U2"}, ("U2", "Bo Birch", "unknown")),
        ({"user": "U3"}, ("U3", "cy", "client")),
        ({"user": "U4"}, ("U4", "U4", "unknown")),
        ({"user": "U9"}, ("U9", "U9", "unknown")),
        (
            {"user": "U9", "user_profile": {"display_name": "", "real_name": "Guest"}},
            ("U9", "Guest", "unknown"),
        ),
        ({"user": "U9", "user_profile": {"name": "gus"}}, ("U9", "gus", "unknown")),
        ({"user": "U9", "username": "gus"}, ("U9", "gus", "unknown")),
        ({"user": "USLACKBOT"}, ("USLACKBOT", "Slackbot", "bot")),
        ({"user": "UBOT", "bot_id": "BDEPLOY"}, ("UBOT", "Deploy & Co", "bot")),
        ({"user": "U1", "bot_id": "B1", "bot_profile": {"name": "poster"}}, ("U1", "Ann Ash", "client")),
        ({"user": "U9", "bot_id": "B1", "bot_profile": {"name": "poster"}}, ("U9", "poster", "bot")),
        ({"user": "UTEAM"}, ("UTEAM", "helper", "teammate")),
        ({"subtype": "bot_message", "username": "ci", "bot_id": "B1"}, ("B1", "ci", "bot")),
        (
            {"subtype": "bot_message", "bot_id": "B1", "bot_profile": {"name": "poster"}},
            ("B1", "poster", "bot"),
        ),
        ({"subtype": "bot_message", "bot_id": "BDEPLOY", "user": None}, ("BDEPLOY", "Deploy & Co", "bot")),
        ({"subtype": "bot_message", "bot_id": "B1"}, ("B1", "B1", "bot")),
        ({"subtype": "bot_message", "username": "ci"}, ("ci", "ci", "bot")),
        ({"bot_id": "BTEAM"}, ("BTEAM", "BTEAM", "teammate")),
        ({"user": "UBOT", "bot_id": "BTEAM"}, ("UBOT", "Deploy & Co", "teammate")),
        ({}, ("unknown", "unknown", "unknown")),
        (
            {"subtype": "file_comment", "user": "U2", "comment": {"user": "U1", "comment": "x"}},
            ("U1", "Ann Ash", "client"),
        ),
        ({"subtype": "file_comment", "user": "U2"}, ("U2", "Bo Birch", "unknown")),
        ({"subtype": "file_share", "file": {"user": "U1"}}, ("U1", "Ann Ash", "client")),
        ({"subtype": "file_share"}, ("unknown", "unknown", "unknown")),
    ],
)
def test_authors_are_named_and_have_their_role(record: dict[str, Any], expected: tuple[str, str, str]) -> None:
    made = _message(record)
    assert (made.author_id, made.author, made.from_role) == expected


def test_a_conversation_gives_its_role_by_name_and_by_id_but_not_to_bots() -> None:
    by_name, by_id = Conversation("C5", "Staff"), Conversation("C7", "other")
    assert [_message({"user": "U9"}, place).from_role for place in (by_name, by_id)] == ["teammate"] * 2
    assert _message({"user": "UBOT"}, by_name).from_role == "bot"
    assert _message({"user": "U1"}, by_name).from_role == "client"


def test_strangers_are_known_from_what_messages_carry_and_members_are_not_overwritten() -> None:
    people = _people()
    people.add_inline("U8", {"display_name": "Gus", "email": "g@partner.example"})
    people.add_inline("U7", {"real_name": "Robo", "is_bot": True})
    people.add_inline("U1", {"display_name": "Other"})
    people.add_inline("", {"display_name": "Nobody"})
    people.add_bot("B1", "first")
    people.add_bot("B1", "second")
    assert [people.name_of(each) for each in ("U8", "U7", "U1", "B1")] == ["Gus", "Robo", "Ann Ash", "first"]
    assert people.author_of({"user": "U8"}, "general", "C1").role == "client"
    assert people.author_of({"user": "U7"}, "general", "C1").is_bot
    assert ("U8" in people, "" in people) == (True, False)


@pytest.mark.parametrize("user", [None, [], {}, {"id": ""}, {"id": None}, {"id": {}}])
def test_users_without_an_id_are_not_taken_in(user: object) -> None:
    assert not People(_RULES).add(user)


@pytest.mark.parametrize(
    ("place", "record", "expected"),
    [
        (Conversation("C1", "general"), {}, "https://x.slack.com/archives/C1/p1485334142000004"),
        (
            Conversation("C1", "general"),
            {"thread_ts": _TS, "reply_count": 1},
            "https://x.slack.com/archives/C1/p1485334142000004",
        ),
        (Conversation("C/1", "odd"), {}, "https://x.slack.com/archives/C%2F1/p1485334142000004"),
        (Conversation("general", "general", is_listed=False), {}, None),
    ],
)
def test_links_need_the_conversations_own_id(place: Conversation, record: dict[str, Any], expected: str | None) -> None:
    made = _made(record, place, "https://x.slack.com")
    assert isinstance(made, SourceMessage)
    assert made.link == expected


def test_attributes_hold_no_address_and_no_token() -> None:
    file = {
        "name": 'x?t=xoxe-1-a","',
        "filetype": "png",
        "size": "big",
        "url_private": "https://x?t=xoxe-1-a",
    }
    record = {"user": "U1", "file": file, "files": "none", "user_profile": {"email": "ann@partner.example"}}
    assert json.loads(_message(record).attributes or "") == {"files": [{"name": 'x?","', "type": "png"}]}
    assert _message({"user": "U1", "files": [{}], "reactions": [{"count": 3}]}).attributes is None


def test_a_token_that_somebody_posted_is_left_to_redaction_which_counts_it() -> None:
    posted = [planted for planted in PLANTED if planted.kind.startswith("slack") and "?t=" not in planted.text]
    found: Counter[str] = Counter()
    records = [{"user": "U1", "text": planted.text.replace("&", "&amp;")} for planted in posted]
    kept = list(redacted(map(_message, records), found))
    assert [message.body for message in kept] == [planted.clean for planted in posted]
    assert found == Counter(planted.kind for planted in posted)
    assert found["slack token"] > 4


def test_what_only_looks_like_a_token_comes_whole_through_source_and_redaction() -> None:
    found: Counter[str] = Counter()
    records = [
        {"user": "U1", "text": text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}
        for text in LOOKALIKES
    ]
    assert [message.body for message in redacted(map(_message, records), found)] == LOOKALIKES
    assert not found
