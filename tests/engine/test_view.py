"""What a corpus is to one caller, recomputed message by message."""

import random
from pathlib import Path

import pytest

from engine.limits import Limits
from engine.model import ACTIVITY, TOMBSTONE, SourceMessage
from engine.sight import Sight
from engine.times import SECOND
from tests.engine.corpora import corpus_of, random_messages, said, sees, view_of


def by_time(messages: list[SourceMessage]) -> list[SourceMessage]:
    return sorted(messages, key=lambda m: m.sent_at)


def neighbours(seen: list[SourceMessage], m: SourceMessage) -> list[SourceMessage]:
    """What stands around a message: its thread, or outside threads its conversation."""
    if m.kind == ACTIVITY:
        return [m]
    talked = by_time([o for o in seen if o.kind != ACTIVITY])
    thread = [o for o in talked if o.thread_id == m.thread_id]
    if sum(o.kind != TOMBSTONE for o in thread) > 1:
        return thread
    return [o for o in talked if o.conversation_id == m.conversation_id]


@pytest.mark.parametrize("seed", range(10))
def test_sizes_talks_and_neighbours_are_those_of_a_naive_recount(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    messages = random_messages(chance, 80)
    sight = chance.choice((Sight(), Sight(roles=("client", "vendor")), Sight(deny=("c2",)), Sight(kinds=("message",))))
    gap = 5 * 60
    view = view_of(corpus_of(tmp_path, messages, shard_rows=9, index=False), sight, Limits(episode_gap_seconds=gap))
    seen = [m for m in messages if sees(sight, m)]
    stored = view.corpus.messages(range(view.corpus.rows))
    assert sorted(m.message_id for m in stored) == sorted(m.message_id for m in messages)
    row_of = {m.message_id: m.row for m in stored}
    instants = [m.sent_at for m in seen if m.kind != TOMBSTONE]
    assert view.size == len(instants)
    seconds = [instant // SECOND * SECOND for instant in instants]
    assert view.said_span == ((min(seconds), max(seconds) + SECOND - 1) if instants else None)
    talks: dict[object, set[int]] = {}
    before: dict[str, tuple[int, int]] = {}
    for m in by_time([m for m in seen if m.kind != ACTIVITY]):
        last, episode = before.get(m.conversation_id, (-(1 << 60), 0))
        episode += m.sent_at - last > gap * 1_000_000
        before[m.conversation_id] = (m.sent_at, episode)
        size = sum(o.thread_id == m.thread_id and o.kind not in (ACTIVITY, TOMBSTONE) for o in seen)
        assert view.thread_sizes[view.narrow.thread[row_of[m.message_id]]] == size
        talk: object = m.thread_id if size > 1 else (m.conversation_id, episode)
        talks.setdefault(talk, set()).add(int(view.talks[row_of[m.message_id]]))
    numbers = [number for found in talks.values() for number in found]
    assert len(numbers) == len(set(numbers)) == len(talks)
    for m in messages:
        row = row_of[m.message_id]
        assert view.row_of(m.message_id) == (row if m in seen else None)
        if m in seen:
            expected = [o.message_id for o in neighbours(seen, m)]
            assert [stored[r].message_id for r in view.neighbours(row).tolist()] == expected
        else:
            assert view.talks[row] == -1


def test_one_person_is_one_whatever_the_names(tmp_path: Path) -> None:
    messages = [said(1, "x", author="Zoe", author_id="U1"), said(2, "y", author="Zoë", author_id="U1"), said(3, "z")]
    people = view_of(corpus_of(tmp_path, messages, index=False)).people.tolist()
    assert sorted(people) == [0, 1, 1]


def test_a_view_of_nothing_has_no_span(tmp_path: Path) -> None:
    view = view_of(corpus_of(tmp_path, [], index=False))
    assert (view.size, view.average_length, view.said_span, view.searchable_span) == (0, 1.0, None, None)
    assert (view.talks.tolist(), view.thread_sizes.tolist(), view.row_of("general:1")) == ([], [], None)
