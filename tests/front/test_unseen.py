"""Reading on to the end: everything once, by one caller or eight, and a lost answer given again."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from engine.sight import Caller
from handler.mcp_server import Context
from tests.front.corpora import NOON, app_over, table_settings
from tests.front.told import ERAS, Told, ask
from tests.handler.running import running


def counts(told: Told) -> dict[str, int]:
    """What the head of an answer says, by which it must add up."""
    line = told.lines[2]
    return {
        "found": told.number("found: "),
        "shown": told.number("\nshown "),
        "left out": int(line.partition("left out ")[2].split(" ")[0].rstrip(",")),
        "seen before": told.number("seen before "),
        "copies": int(line.partition("copies ")[2].split(" ")[0]),
    }


def assert_adds_up(told: Told) -> None:
    n = counts(told)
    assert n["found"] == n["shown"] + n["copies"] + n["left out"] + n["seen before"], told.lines[2]


def read_to_the_end(port: int, first: Told, **asked: Any) -> list[Told]:
    """Every further answer, until nothing is left."""
    answers: list[Told] = []
    left = counts(first)["left out"]
    while left:
        answers.append(ask(port, "unseen_messages", **asked, session=first.session))
        assert counts(answers[-1])["left out"] < left, "each answer brings the end nearer"
        left = counts(answers[-1])["left out"]
    return answers


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(
    "asked",
    [
        {"query": "OpenAI", "from_role": "client", "limit": 17},
        {"query": "deployment", "limit": 50, "text_limit": 40},
        {"query": "OpenAI", "order": "newest", "limit": 20},
        {"query": "OpenAI", "limit": 25, "context": 2, "text_limit": 60},
    ],
    ids=["clients", "broad", "newest", "with context"],
)
def test_reading_to_the_end_shows_each_match_once(synthetic_port: int, version: str, asked: dict[str, Any]) -> None:
    asked = {**asked, "version": version}
    if asked["query"] == "deployment":
        asked |= {"after": "2025-03-01", "before": "2025-04-01"}
    first = ask(synthetic_port, "search_messages", **asked)
    answers = [first, *read_to_the_end(synthetic_port, first, **asked)]
    for told in answers:
        assert_adds_up(told)
    lines = [line for told in answers for line in told.lines[3:] if line.startswith("[")]
    shown = [line[1:].partition("]")[0] for line in lines]
    copies = sum(counts(told)["copies"] for told in answers)
    if "context" not in asked:
        assert len(shown) == len(set(shown))
    assert sum(counts(told)["shown"] for told in answers) + copies == counts(first)["found"]
    again = ask(synthetic_port, "unseen_messages", **asked, session=first.session)
    assert again.lines[2].startswith(f"shown 0, left out 0, seen before {counts(first)['found']}, copies 0")
    assert again.shown == []


def test_eight_threads_at_once_share_a_session_without_a_message_twice(synthetic_port: int) -> None:
    asked: dict[str, Any] = {"query": "OpenAI", "limit": 9, "text_limit": 60}
    first = ask(synthetic_port, "search_messages", **asked)
    together = Barrier(8)

    def reader(_: int) -> list[Told]:
        together.wait()
        return read_to_the_end(synthetic_port, first, **asked)

    with ThreadPoolExecutor(8) as pool:
        answers = [first, *(told for own in pool.map(reader, range(8)) for told in own)]
    shown = [message_id for told in answers for message_id in told.shown]
    assert len(shown) == len(set(shown))
    assert len(shown) + sum(counts(told)["copies"] for told in answers) == counts(first)["found"]
    batches = sorted(told.number(" batch ") for told in answers if told.shown)
    assert batches == list(range(1, len(batches) + 1))
    for told in answers:
        assert_adds_up(told)


DAY = 86_400_000_000


def rows() -> list[dict[str, Any]]:
    return [
        {
            "conversation": f"room{n % 3}",
            "native_id": str(n),
            "sent_at": f"2016-09-{1 + n % 28:02}T10:{n % 60:02}:00Z",
            "author_id": f"U{n % 5}",
            "body": f"alpha number {n}" if n % 4 else "the same alpha notice word for word",
        }
        for n in range(60)
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("unseen")
    app_over(table_settings(made, rows())).refresh()
    return made


@pytest.fixture(scope="module")
def port(folder: Path) -> Iterator[int]:
    with running(app_over(table_settings(folder, rows()))) as number:
        yield number


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("more", [{}, {"order": "oldest"}, {"context": 1}, {"fields": ["score", "text"]}])
def test_a_repeated_after_batch_repeats_its_batch(port: int, version: str, more: dict[str, Any]) -> None:
    asked = {"query": "alpha", "limit": 4, "version": version, **more}
    first = ask(port, "search_messages", **asked)
    lost = ask(port, "unseen_messages", **asked, session=first.session, after_batch=1)
    later = ask(port, "unseen_messages", **asked, session=first.session)
    again = ask(port, "unseen_messages", **asked, session=first.session, after_batch=1)
    assert again.lines[2] == f"{lost.lines[2]} repeated"
    assert again.lines[3:] == lost.lines[3:]
    assert (lost.number(" batch "), later.number(" batch "), again.number(" batch ")) == (2, 3, 2)
    assert set(later.shown).isdisjoint(lost.shown) or "context" in more


def test_after_batch_with_other_arguments_is_refused(port: int) -> None:
    first = ask(port, "search_messages", query="alpha", limit=4)
    ask(port, "unseen_messages", query="alpha", limit=4, session=first.session, after_batch=1)
    other = ask(port, "unseen_messages", query="alpha", limit=5, session=first.session, after_batch=1)
    assert other.text == (
        "bad_batch: batch 2 followed batch 1 with other arguments;"
        " repeat the very arguments of the lost call, or leave after_batch out to go on"
    )
    early = ask(port, "unseen_messages", query="alpha", session=first.session, after_batch=9)
    assert early.text.startswith("bad_batch: after_batch 9 is not a batch of this session, whose newest is 2;")


UNKNOWN = (
    "unknown_session: this session is unknown or expired; call again without session; earlier messages count as unseen"
)


def asked_with(port: int, session: str) -> list[str]:
    """What every tool that takes a session answers to this one."""
    return [
        ask(port, "search_messages", query="alpha", session=session).text,
        ask(port, "unseen_messages", query="alpha", session=session).text,
        ask(port, "unseen_messages", query="alpha", session=session, after_batch=0).text,
        ask(port, "open_thread", message="room1:1", session=session).text,
    ]


@pytest.mark.parametrize("handle", ["x" * 22, "x", "' OR 1=1 --", "../seen", "%00", "ж" * 30])
def test_an_invented_handle_is_refused(port: int, handle: str) -> None:
    assert asked_with(port, handle) == [UNKNOWN] * 4


def test_a_foreign_handle_is_refused(folder: Path, port: int) -> None:
    mine = ask(port, "search_messages", query="alpha", limit=1).session

    def somebody_else(_: Context) -> Caller:
        return Caller("somebody else")

    with running(app_over(table_settings(folder, rows())), caller_of=somebody_else) as other:
        assert asked_with(other, mine) == [UNKNOWN] * 4
    assert not ask(port, "unseen_messages", query="alpha", session=mine).is_error


def test_an_expired_handle_is_refused(folder: Path, port: int) -> None:
    session = ask(port, "search_messages", query="alpha", limit=1).session
    with running(app_over(table_settings(folder, rows()), NOON + DAY)) as at_the_end:
        assert not ask(at_the_end, "search_messages", query="alpha", limit=1, session=session).is_error
    with running(app_over(table_settings(folder, rows()), NOON + 2 * DAY + 1)) as too_late:
        assert asked_with(too_late, session) == [UNKNOWN] * 4


def test_what_any_tool_showed_is_not_unseen(port: int) -> None:
    first = ask(port, "search_messages", query='"alpha number 1"', limit=50, fields=["headers"])
    opened = ask(port, "open_thread", message="room2:2", session=first.session, earlier=0, later=0)
    assert opened.session == first.session
    rest = ask(port, "unseen_messages", query="alpha", limit=50, session=first.session)
    assert "room2:2" not in rest.shown
    assert set(first.shown).isdisjoint(rest.shown)
    assert counts(rest)["seen before"] == len(first.shown) + 1
