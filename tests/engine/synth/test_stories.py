"""Every count of the answer key, recomputed by brute force over what was written."""

import json
import shlex
from datetime import UTC, datetime
from typing import Any

import pytest

from engine.model import SourceMessage
from engine.synth import Story, generate
from engine.synth.openai import DOUBTS
from engine.synth.people import CLIENT_DOMAINS
from engine.text import fold
from tests.engine.synth.written import Written

SILENT = ("channel_", "pinned_", "bot_add", "reminder_", "tombstone")


def _said(record: dict[str, Any]) -> str:
    cards = [text for card in record.get("attachments", ()) for text in (card["title"], card["text"])]
    return fold("\n".join([record["text"], *cards, *(file["title"] for file in record.get("files", ()))]))


def _clients(written: Written) -> set[str]:
    return {
        user["id"]
        for user in written.listed("users.json")
        if user["profile"].get("email", "").partition("@")[2] in CLIENT_DOMAINS
    }


def _matches(written: Written, story: Story) -> list[str]:
    """Ids of the matches of the story's first call: every term occurs, and a client said it if asked so."""
    arguments = story.calls[0].arguments
    terms = [fold(term) for term in shlex.split(str(arguments["query"]))]
    clients = _clients(written)
    return [
        f"{room}:{record['ts']}"
        for room, record in written.records()
        if not record.get("subtype", "").startswith(SILENT)
        and all(term in _said(record) for term in terms)
        and ("from_role" not in arguments or record.get("user") in clients)
    ]


def test_every_story_counts_what_its_first_call_finds(written: Written) -> None:
    counted = {story.name: story.counts["matches"] for story in written.key.stories}
    assert counted == {story.name: len(_matches(written, story)) for story in written.key.stories}
    del counted["broad"]
    assert counted == {
        "openai_from_clients": 105,
        "openai_doubts": 105,
        "openai_and_client": 39,
        "outage_in_russian": 1,
        "decision_in_japanese": 1,
        "known_item": 1,
        "how_it_ended": 1,
        "bot_of_two_weeks": 39,
        "copies": 10,
    }


def test_every_message_named_by_a_story_was_written(written: Written) -> None:
    ids = {f"{room}:{record['ts']}" for room, record in written.records()}
    for story in written.key.stories:
        assert set(story.message_ids) <= ids
        assert len(set(story.message_ids)) == len(story.message_ids)


def test_105_messages_by_clients_name_openai_in_ten_conversations(written: Written) -> None:
    story = written.key.story("openai_from_clients")
    found = _matches(written, story)
    assert sorted(found) == sorted(story.message_ids)
    assert len({message_id.partition(":")[0] for message_id in found}) == story.counts["conversations"] == 10


def test_39_messages_hold_openai_and_client_nearly_all_by_others(written: Written) -> None:
    story = written.key.story("openai_and_client")
    assert sorted(_matches(written, story)) == sorted(story.message_ids)
    clients = _clients(written)
    by_clients = [
        record
        for room, record in written.records()
        if f"{room}:{record['ts']}" in story.message_ids and record.get("user") in clients
    ]
    assert len(by_clients) == story.counts["by_clients"] == 3


def test_doubts_do_not_repeat_the_questions_words(written: Written) -> None:
    story = written.key.story("openai_doubts")
    doubts = [_said(r) for room, r in written.records() if f"{room}:{r['ts']}" in story.message_ids]
    assert len(doubts) == story.counts["doubts"] == sum(len(texts) for texts in DOUBTS.values()) == 29
    assert {theme: story.counts[f"theme_{theme}"] for theme in DOUBTS} == {t: len(x) for t, x in DOUBTS.items()}
    for text in doubts:
        assert "openai" in text
        assert not [word for word in ("concern", "worr", "client", "have about") if word in text]


def test_every_doubt_is_found_by_words_of_the_writers(written: Written) -> None:
    story = written.key.story("openai_doubts")
    alternatives = str(story.calls[-1].arguments["query"]).removeprefix("OpenAI (").removesuffix(")").split(" OR ")
    words = [fold(word.strip('"')) for word in alternatives]
    asked = {f"{room}:{r['ts']}": _said(r) for room, r in written.records()}
    matches = _matches(written, story)
    found = [message_id for message_id in matches if any(word in asked[message_id] for word in words)]
    assert set(story.message_ids) <= set(found)
    assert len(found) == story.counts["found_by_words"] <= 40


def test_a_story_is_asked_for_by_its_name(written: Written) -> None:
    assert written.key.story("known_item").counts == {"matches": 1}
    with pytest.raises(KeyError):
        written.key.story("another")


def test_the_outage_is_one_thread(written: Written) -> None:
    story = written.key.story("outage_in_russian")
    root = story.message_ids[0].partition(":")[2]
    thread = [r["ts"] for _, r in written.records() if r.get("thread_ts") == root]
    assert [message_id.partition(":")[2] for message_id in story.message_ids] == thread


def test_the_end_is_told_later_by_the_same_author_in_other_words(written: Written) -> None:
    story = written.key.story("how_it_ended")
    first, last = (r for room, r in written.records() if f"{room}:{r['ts']}" in story.message_ids)
    assert first["user"] == last["user"]
    assert float(last["ts"]) - float(first["ts"]) > 8 * 86_400
    shared = set(fold(first["text"]).split()) & set(fold(last["text"]).split())
    assert not [word for word in shared if len(word) > 4]


def test_the_bot_wrote_within_two_weeks_and_nothing_else(written: Written) -> None:
    story = written.key.story("bot_of_two_weeks")
    wren = next(u["profile"]["bot_id"] for u in written.listed("users.json") if u["name"] == "migrationwren")
    times = [float(r["ts"]) for _, r in written.records() if r.get("bot_id") == wren]
    assert len(times) == story.counts["matches"]
    days = [datetime.fromtimestamp(at, UTC).date().isoformat() for at in (min(times), max(times))]
    assert days == ["2025-06-02", "2025-06-14"]


def test_the_notice_was_copied_exactly_and_nearly(written: Written) -> None:
    story = written.key.story("copies")
    texts = [_said(r) for room, r in written.records() if f"{room}:{r['ts']}" in story.message_ids]
    assert len(set(texts)) == story.counts["hits_when_merged"] == 4
    assert max(texts.count(text) for text in texts) == story.counts["equal"] == 7
    authors = {r["user"] for room, r in written.records() if f"{room}:{r['ts']}" in story.message_ids}
    assert len(authors) == 10


def _line(message: SourceMessage) -> bytes:
    sent_at = datetime.fromtimestamp(message.sent_at // 1_000_000, UTC)
    fields = {
        "message_id": message.message_id,
        "conversation_id": message.conversation_id,
        "conversation": message.conversation,
        "thread_id": message.thread_id,
        "sent_at": f"{sent_at:%Y-%m-%dT%H:%M:%S}.{message.sent_at % 1_000_000:06d}Z",
        "author_id": message.author_id,
        "author": message.author,
        "from_role": message.from_role,
        "kind": message.kind,
        "body": message.body,
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


@pytest.mark.parametrize(("messages", "seed"), [(1_000, 1), (2_000, 2), (2_000, 3)])
def test_what_clients_say_of_openai_is_too_much_for_a_page(messages: int, seed: int) -> None:
    asked = [m for m in generate(messages, seed) if m.from_role == "client" and "openai" in fold(m.body)]
    assert (len(asked), len({m.conversation_id for m in asked})) == (105, 10)
    assert 95_000 <= sum(len(_line(m)) for m in asked) <= 101_000


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_both_words_meet_39_times_whatever_the_seed(seed: int) -> None:
    folded = [fold(m.body) for m in generate(1_000, seed) if m.kind != "activity"]
    assert sum("openai" in text and "client" in text for text in folded) == 39
