"""`search_messages` and `unseen_messages`: what a page holds, and that its counts add up over a whole session.

One file, since search and unseen share sessions, pages and their counts.
"""

import random
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.errors import BadInput, BrokenSnapshot, NotFound, Unavailable
from engine.limits import Limits, PageBudget
from engine.model import ACTIVITY
from engine.pack import fits
from engine.ports import Batch
from engine.record import UNRECORDED
from engine.sight import Caller
from infra.sqlite import SqliteSeen
from tests.depth import depth
from tests.engine.corpora import NOON, Desk, corpus_of, desk_of, naive_hits, random_messages, random_query, said

SECOND = 1_000_000
DAY = 24 * 3_600 * SECOND


def accounted(told: dict[str, Any]) -> int:
    """All places a match can be in."""
    return int(told["shown"] + told.get("copies", 0) + told["left_out"]["messages"] + told["left_out"].get("seen", 0))


def hits(told: dict[str, Any]) -> list[str]:
    return [m["id"] for m in told["messages"] if not m.get("context")]


@pytest.mark.parametrize("seed", range(12))
def test_what_is_found_is_shown_a_copy_left_out_or_seen_over_a_whole_session(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    messages = random_messages(chance, 70)
    page = PageBudget(page_bytes=chance.choice((3_000, 16_384)), structured=chance.random() < 0.5)
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, index=False), limits=Limits(page=page))
    session = None
    for _ in range(3):
        query = random_query(chance)
        expected = {m.message_id for m in naive_hits(messages, query)}
        shown: set[str] = set()
        copies = 0
        arguments: dict[str, Any] = {
            "limit": chance.choice((1, 3, 50)),
            "context": chance.choice((0, 0, 2)),
            "order": chance.choice(("best", "newest", "oldest")),
            "fields": chance.choice((None, ("text",), ("headers", "score"))),
        }
        first = desk.search(query, session=session, **arguments)
        told = first.object
        already = told["left_out"].get("seen", 0)
        while True:
            assert told["found"]["messages"] == len(expected) == accounted(told)
            assert fits(first.text, told, page, page.page)
            assert set(hits(told)) <= expected
            session = told.get("session", session)
            shown.update(hits(told))
            copies += told.get("copies", 0)
            if not told["left_out"]["messages"]:
                break
            assert told["shown"] > 0
            first = desk.unseen(query, session=session, **arguments)
            told = first.object
        last = desk.unseen(query, session=session, **arguments).object if session else {}
        if session:
            assert (last["shown"], last["left_out"]) == (
                0,
                {"messages": 0, "seen": len(expected)} if expected else {"messages": 0},
            )
        assert len(shown) + copies + already >= len(expected)


@pytest.mark.parametrize("seed", range(depth(200, 6)))
def test_found_adds_up_whatever_tool_showed_what_before(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    messages = random_messages(chance, 60)
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, index=False))
    session: str | None = None
    kept: list[tuple[str, dict[str, Any], int, list[str]]] = []
    for _ in range(14):
        query = chance.choice(("", "", random_query(chance)))
        filters: dict[str, Any] = chance.choice(
            ({}, {"from_role": ("client", "unknown")}, {"kind": ("bot", ACTIVITY)}, {"min_words": 3})
        )
        arguments = {
            "limit": chance.choice((1, 4)),
            "context": chance.choice((0, 1)),
            "order": chance.choice(("best", "newest")),
            **filters,
        }
        step = chance.choice(("search", "unseen", "unseen", "repeat", "thread"))
        if step == "thread":
            opened = chance.choice([m.message_id for m in messages if m.kind != ACTIVITY] or [messages[0].message_id])
            session = desk.thread(opened, session=session, earlier=1, later=2).object["session"]
            continue
        if step == "repeat" and kept:
            query, arguments, parent, shown = chance.choice(kept)
            told = desk.unseen(query, session=session, after_batch=parent, **arguments).object
            assert (told["repeated"], hits(told)) == (True, shown)
        else:
            tool = desk.search if step == "search" else desk.unseen
            told = tool(query, session=session, **arguments).object
            if step != "search" and told["shown"]:
                kept.append((query, arguments, told["batch"] - 1, hits(told)))
        session = told.get("session", session)
        asked = {name: value for name, value in arguments.items() if name in ("from_role", "kind", "min_words")}
        assert told["found"]["messages"] == len(naive_hits(messages, query, **asked)) == accounted(told)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    messages = [
        said(n, f"docker {n} alpha beta gamma", conversation=("a", "b")[n % 2], author=f"P{n}") for n in range(6)
    ]
    messages += [said(10 + n, "ok docker", author=f"P{n}") for n in range(3)]
    messages += [said(20, "docker", kind=ACTIVITY)]
    return desk_of(tmp_path, corpus_of(tmp_path, messages, index=False), brute=True, now=NOON)


def test_a_search_reads_as_lines_and_as_an_object(desk: Desk) -> None:
    told = desk.search("docker gamma", limit=1)
    session = told.object["session"]
    assert told.text.split("\n") == [
        "searched: docker AND gamma (found by scan; activity not searched: 0 match; times UTC; as of 2016-11-30)",
        "found: 6 messages by 6 authors in 2 conversations, 2016-11-30 to 2016-11-30",
        f"shown 1, left out 5 (unseen_messages), seen before 0, copies 0 | session {session} batch 1",
        "[b:5] 2016-11-30 12:05 #b P5 (unknown): ⟦docker⟧ 5 alpha beta ⟦gamma⟧",
    ]
    assert list(told.object) == ["searched", "found", "shown", "left_out", "session", "batch", "messages"]
    assert told.object["left_out"] == {"messages": 5, "why": "limit", "next": "unseen_messages"}
    assert told.object["messages"] == [
        {
            "id": "b:5",
            "sent_at": "2016-11-30T12:05:00Z",
            "conversation": "b",
            "author": "P5",
            "from_role": "unknown",
            "match": "substring",
            "text": "⟦docker⟧ 5 alpha beta ⟦gamma⟧",
        }
    ]


@pytest.mark.parametrize(
    ("query", "head", "found"),
    [
        ('docker OR "->"', "", {"1": "fts", "2": "substring", "3": "substring"}),
        ('docker NOT "=>"', "", {"1": "fts", "3": "fts"}),
        ('"->"', "found by scan; ", {"2": "substring", "3": "substring"}),
        ('NOT "->"', "found by scan; ", {"1": "substring", "4": "substring"}),
        ("NOT docker", "", {"2": "fts", "4": "fts"}),
        ('NOT docker NOT "=>"', "", {"2": "substring", "4": "substring"}),
        ("", "", {"1": "fts", "2": "fts", "3": "fts", "4": "fts"}),
    ],
)
def test_what_found_a_hit_was_told_for_the_whole_query(
    tmp_path: Path, query: str, head: str, found: dict[str, str]
) -> None:
    bodies = ("docker", "a -> b", "docker -> c", "plain")
    desk = desk_of(tmp_path, corpus_of(tmp_path, [said(n, body) for n, body in enumerate(bodies, 1)]))
    told = desk.search(query, order="oldest")
    assert {message["id"].split(":")[1]: message["match"] for message in told.object["messages"]} == found
    first, *lines = [line for line in told.text.split("\n") if line.startswith(("searched", "["))]
    assert f" ({head}activity not searched" in first
    assert [line.endswith(" (scan)") for line in lines] == [way != "fts" and not head for way in found.values()]
    assert " (scan)" not in desk.search(query, fields=("text",), context=1).text


def test_no_match_starts_no_session_and_gives_hints(desk: Desk) -> None:
    told = desk.search("docker zzz", author=("P1",))
    assert {"session", "batch"} & told.object.keys() == set()
    assert told.object["hints"] == {
        "without": {"author": 0, "query": 2},
        "without_part": {"docker": 0, "zzz": 2},
        "terms": {"docker": {"messages": 10}, "zzz": {"messages": 0}},
    }
    assert desk.unseen("zzz").object.get("session") is None
    session = desk.search("docker").object["session"]
    again = desk.search("zzz", session=session)
    assert (again.object["session"], f"session {session}" in again.text.split("\n")) == (session, True)
    assert desk.unseen("docker", session=session).object["batch"] == 1


def test_newest_and_oldest_are_plain_timelines_without_merging(desk: Desk) -> None:
    oldest = desk.search("docker", order="oldest", limit=50)
    assert [m["sent_at"] for m in oldest.object["messages"]] == sorted(m["sent_at"] for m in oldest.object["messages"])
    assert hits(desk.search("docker", order="newest", limit=50).object) == hits(oldest.object)[::-1]
    assert oldest.object["shown"] == 9


def test_without_words_a_conversation_reads_like_a_log(desk: Desk) -> None:
    told = desk.search(conversation=("b",), order="oldest", limit=2)
    assert hits(told.object) == ["b:1", "b:3"]
    assert [message["match"] for message in told.object["messages"]] == ["fts", "fts"]
    assert told.text.startswith("searched: conversation b (activity not searched: 0 match; times UTC")


def test_context_stands_around_hits_as_grep_has_it(desk: Desk) -> None:
    told = desk.search('"docker 2" OR "docker 3" OR "ok docker"', context=1, order="oldest", limit=2)
    assert told.text.split("\n")[3:] == [
        " [a:0] 2016-11-30 12:00 #a P0 (unknown): docker 0 alpha beta gamma",
        "[a:2] 2016-11-30 12:02 #a P2 (unknown): ⟦docker 2⟧ alpha beta gamma",
        " [a:4] 2016-11-30 12:04 #a P4 (unknown): docker 4 alpha beta gamma",
        "",
        " [b:1] 2016-11-30 12:01 #b P1 (unknown): docker 1 alpha beta gamma",
        "[b:3] 2016-11-30 12:03 #b P3 (unknown): ⟦docker 3⟧ alpha beta gamma",
        " [b:5] 2016-11-30 12:05 #b P5 (unknown): docker 5 alpha beta gamma",
    ]
    assert told.object["shown"] == 2
    assert "shown 2 and 4 around, left out 3 (unseen_messages)" in told.text
    left = desk.unseen("docker", session=told.object["session"], limit=50).object
    assert left["left_out"] == {"messages": 0, "seen": 6}


def test_matches_within_a_window_of_context_are_hits_and_shown_once(desk: Desk) -> None:
    told = desk.search('"ok docker"', context=1, order="oldest", limit=1).object
    assert (hits(told), told["shown"]) == (["general:10", "general:11"], 2)
    joined = desk.search('"ok docker"', context=1, order="oldest", limit=3).object
    assert (hits(joined), joined["shown"]) == (["general:10", "general:11", "general:12"], 3)


def test_copies_stand_for_one_another(tmp_path: Path) -> None:
    long = "the build has failed again today"
    messages = [said(n, long, author=f"P{n}") for n in range(3)] + [said(5, "ok failed"), said(6, "ok failed")]
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, index=False))
    told = desk.search("failed", limit=1)
    assert [(m["id"], m.get("copies")) for m in told.object["messages"]] == [("general:6", 1)]
    assert told.object["copies"] == 1
    rest = desk.unseen("failed", session=told.object["session"])
    assert [(m["id"], m["copies"]) for m in rest.object["messages"]] == [("general:2", 2)]
    assert "(+2 copies)" in rest.text
    assert rest.object["left_out"] == {"messages": 0, "seen": 2}


def handle_of(desk: Desk) -> str:
    session = desk.search("docker", limit=1).object["session"]
    assert isinstance(session, str)
    return session


@pytest.mark.parametrize("tool", ["search", "unseen"])
def test_foreign_expired_and_invented_handles_are_one_same_error(desk: Desk, tool: str) -> None:
    session = handle_of(desk)
    cases = [
        (replace(desk, caller=Caller("bo")), session),
        (replace(desk, now=NOON + DAY + 1), session),
        (desk, "h4Jx0qk2TzW9bN7cVfY1Lg"),
        (desk, ""),
    ]
    errors = []
    for other, handle in cases:
        with pytest.raises(NotFound) as raised:
            getattr(other, tool)("docker", session=handle)
        errors.append(raised.value.to_object())
    assert (
        errors
        == [
            {
                "code": "unknown_session",
                "message": "this session is unknown or expired",
                "next": "call again without session; earlier messages count as unseen",
            }
        ]
        * 4
    )


def test_a_session_ends_a_day_after_its_newest_batch_and_after_thirty_in_any_case(desk: Desk) -> None:
    session = handle_of(desk)
    for days in range(1, 31):
        later = replace(desk, now=NOON + days * DAY)
        assert later.search("docker", limit=1, session=session).object["batch"] == days + 1
    with pytest.raises(NotFound):
        replace(desk, now=NOON + 30 * DAY + 1).search("docker", session=session)


def test_a_repeated_call_repeats_its_batch(desk: Desk) -> None:
    arguments: dict[str, Any] = {"limit": 2, "fields": ("text", "score", "copies")}
    session = handle_of(desk)
    first = desk.unseen("docker", session=session, after_batch=1, **arguments)
    again = desk.unseen("docker", session=session, after_batch=1, **arguments)
    assert "repeated" not in first.object
    assert again.object == first.object | {"repeated": True}
    assert again.text.split("\n")[2] == first.text.split("\n")[2] + " repeated"
    assert hits(desk.unseen("docker", session=session, **arguments).object) != hits(first.object)


@pytest.mark.parametrize("order", ["best", "newest"])
def test_each_batch_of_a_session_can_be_repeated_while_others_go_on(desk: Desk, order: str) -> None:
    arguments: dict[str, Any] = {"limit": 1, "context": 1, "order": order}
    session = handle_of(desk)
    batches = {}
    while (told := desk.unseen("docker", session=session, **arguments).object)["shown"]:
        batches[told["batch"]] = told
    assert len(batches) > 2
    for number, told in batches.items():
        again = desk.unseen("docker", session=session, after_batch=number - 1, **arguments).object
        assert again == told | {"repeated": True}


def test_a_batch_that_is_not_there_or_answered_other_arguments_cannot_be_repeated(desk: Desk) -> None:
    session = handle_of(desk)
    desk.unseen("docker", session=session, limit=1)
    with pytest.raises(BadInput) as missing:
        desk.unseen("docker", session=session, after_batch=3)
    assert missing.value.message == "after_batch 3 is not a batch of this session, whose newest is 2"
    for query, arguments in (("docker", {"limit": 2}), ("gamma", {"limit": 1})):
        with pytest.raises(BadInput) as other:
            desk.unseen(query, session=session, after_batch=1, **arguments)
        assert other.value.message == "batch 2 followed batch 1 with other arguments"
    with pytest.raises(BadInput) as tool:
        desk.unseen("docker", session=session, after_batch=0, limit=1)
    assert tool.value.message == "batch 1 followed batch 0 with other arguments"


def test_the_newest_batch_is_followed_by_a_new_one(desk: Desk) -> None:
    session = handle_of(desk)
    assert desk.unseen("docker", session=session, after_batch=1, limit=1).object["batch"] == 2
    assert desk.unseen("docker", session=session, after_batch=2, limit=1).object["batch"] == 3
    started = desk.unseen("docker", after_batch=0, limit=1).object
    assert (started["batch"], started["session"] != session) == (1, True)
    with pytest.raises(BadInput):
        desk.unseen("docker", after_batch=1)


def test_a_replay_leaves_out_what_has_gone_and_says_so(desk: Desk, tmp_path: Path) -> None:
    session = handle_of(desk)
    first = desk.unseen("docker", session=session, limit=3).object
    lost = hits(first)[1]
    kept = [
        replace(
            said(0, m.body, author=m.author, conversation=m.conversation, kind=m.kind),
            native_id=native,
            sent_at=m.sent_at,
        )
        for m in desk.view.corpus.messages(range(desk.view.corpus.rows))
        if m.message_id != lost and (native := m.message_id.partition(":")[2])
    ]
    fresh = replace(desk_of(tmp_path, corpus_of(tmp_path, kept, index=False)), seen=desk.seen)
    again = fresh.unseen("docker", session=session, limit=3, after_batch=1).object
    assert hits(again) == [hits(first)[0], hits(first)[2]]
    assert again["notes"] == ["1 message of this batch can no longer be shown"]
    assert accounted(again) == again["found"]["messages"]
    gone = replace(desk_of(tmp_path, corpus_of(tmp_path, [said(1, "docker")], index=False)), seen=desk.seen)
    nothing = gone.unseen("docker", session=session, limit=3, after_batch=1).object
    assert (nothing["shown"], nothing["notes"]) == (0, ["3 messages of this batch can no longer be shown"])


def test_eight_threads_are_shown_each_match_once(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, corpus_of(tmp_path, [said(n, f"docker {n}") for n in range(60)], index=False))
    first = desk.search("docker", limit=4).object

    def drain(_: int) -> list[str]:
        out: list[str] = []
        while (told := desk.unseen("docker", session=first["session"], limit=2).object)["shown"]:
            assert accounted(told) == 60
            out += hits(told)
        return out

    with ThreadPoolExecutor(8) as pool:
        shown = [m for each in pool.map(drain, range(8)) for m in each]
    assert sorted([*hits(first), *shown]) == sorted(f"general:{n}" for n in range(60))


def down(tmp_path: Path) -> SqliteSeen:
    """A store whose folder is a file."""
    (tmp_path / "file").touch()
    return SqliteSeen(tmp_path / "file" / "seen.sqlite")


def test_without_the_store_a_search_answers_unrecorded_and_unseen_fails(desk: Desk, tmp_path: Path) -> None:
    session = handle_of(desk)
    broken = replace(desk, seen=down(tmp_path))
    for told in (broken.search("docker", limit=1), broken.search("docker", limit=1, session=session)):
        assert (told.object["shown"], told.object["notes"], "batch" in told.object) == (1, [UNRECORDED], False)
        assert f"note: {UNRECORDED}" in told.text
    assert broken.search("docker", session=session).object["session"] == session
    for handle in (None, session):
        with pytest.raises(Unavailable) as raised:
            broken.unseen("docker", session=handle)
        assert raised.value.code == "store_unreachable"


class Rivals(SqliteSeen):
    """A store in which other calls of the session come first so many times."""

    times = 0

    def claim(self, session: str, batch: Batch, expires_at: int) -> bool:
        if self.times and batch.number > 1:
            self.times -= 1
            super().claim(session, replace(batch, shown=b"", around=b"", groups=b"", digest="rival"), expires_at)
        return super().claim(session, batch, expires_at)


def test_a_lost_race_is_run_again_until_it_is_hopeless(desk: Desk, tmp_path: Path) -> None:
    store = Rivals(tmp_path / "rivals.sqlite", clock=lambda: NOON)
    few = replace(desk.view.limits, claim_attempts=3)
    busy = replace(desk_of(tmp_path, desk.view.corpus, limits=few), seen=store)
    session = handle_of(busy)
    store.times = 2
    assert busy.unseen("docker", session=session, limit=1).object["batch"] == 4
    store.times = 2
    assert busy.search("docker", session=session, limit=1).object["batch"] == 7
    store.times = 3
    with pytest.raises(Unavailable) as raised:
        busy.unseen("docker", session=session)
    assert raised.value.code == "session_busy"
    store.times = 3
    assert busy.search("docker", session=session, limit=1).object["notes"] == [UNRECORDED]


def test_a_page_too_small_drops_messages_then_texts_then_all_but_one(tmp_path: Path) -> None:
    messages = [said(n, f"docker {n} " + "слово " * 700, author="ж" * 200, topic="тема " * 30) for n in range(5)]
    corpus = corpus_of(tmp_path, messages, index=False)

    def told(page_bytes: int, **arguments: Any) -> dict[str, Any]:
        page = PageBudget(page_bytes=page_bytes)
        answer = desk_of(tmp_path, corpus, limits=Limits(page=page)).search("docker", **arguments)
        assert fits(answer.text, answer.object, page, page.page)
        assert accounted(answer.object) == 5
        return answer.object

    assert told(16_384, text_limit=4_000)["left_out"] == {"messages": 4, "why": "size", "next": "unseen_messages"}
    cut = told(3_000, text_limit=4_000)
    assert (cut["shown"], cut["notes"]) == (1, ["texts cut to 500 characters to fit"])
    alone = told(2_000, text_limit=40, context=2)
    assert (alone["shown"], alone["notes"]) == (1, ["what stands around left out to fit"])
    bare = told(1_500, text_limit=40)
    assert bare["notes"] == ["texts cut to 40 characters and all other fields left out to fit"]
    assert bare["messages"][0].keys() == {"id", "text", "truncated"}


def test_the_words_a_term_is_found_inside_are_named(tmp_path: Path) -> None:
    desk = desk_of(
        tmp_path,
        corpus_of(tmp_path, [said(1, "dockerhub"), said(2, "docker dockerfile"), said(3, "dockerhub")], index=False),
    )
    assert "inside: dockerhub 2, docker 1, dockerfile 1" in desk.search("docker").text.split("\n")
    assert "inside" not in desk.search("=docker").text


def test_a_hit_that_its_text_does_not_bear_out_is_never_shown(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, [said(1, "docker")], index=False)
    desk = desk_of(tmp_path, corpus)
    [text] = list(tmp_path.rglob("text.parquet"))
    other = corpus_of(tmp_path, [said(1, "rocker")], index=False)
    assert other.rows == 1
    [fresh] = [path for path in tmp_path.rglob("text.parquet") if path != text]
    text.write_bytes(fresh.read_bytes())
    with pytest.raises(BrokenSnapshot) as raised:
        desk.search("docker")
    assert raised.value.message == "a hit is not borne out by its original text"


def test_handles_are_kept_as_digests_alone(desk: Desk, tmp_path: Path) -> None:
    session = handle_of(desk)
    with sqlite3.connect(tmp_path / "seen.sqlite") as connection:
        stored = connection.execute("SELECT * FROM batches").fetchall()
    connection.close()
    assert (len(stored), session in repr(stored)) == (1, False)


class Doubtful(SqliteSeen):
    """A store that is lost sight of in every claim but a session's first."""

    def claim(self, session: str, batch: Batch, expires_at: int) -> bool:
        super().claim(session, batch, expires_at)
        if batch.number > 1:
            raise Unavailable("store_unreachable", "no answer")
        return True


def test_a_claim_in_doubt_names_the_call_that_shows_what_it_hides(desk: Desk, tmp_path: Path) -> None:
    doubtful = replace(desk, seen=Doubtful(tmp_path / "doubt.sqlite", clock=lambda: NOON))
    session = handle_of(doubtful)
    with pytest.raises(Unavailable) as raised:
        doubtful.unseen("docker", session=session, limit=1)
    assert "after_batch=1" in raised.value.next_step
    again = doubtful.unseen("docker", session=session, limit=1, after_batch=1).object
    assert (again["repeated"], again["batch"], again["shown"]) == (True, 2, 1)
    with pytest.raises(Unavailable) as last:
        doubtful.unseen("docker", session=session, limit=1, after_batch=2)
    assert last.value.next_step == "call again with the same arguments"
