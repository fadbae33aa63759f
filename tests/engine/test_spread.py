"""In which order hits are shown, against the rule said in plain Python."""

import random

import numpy as np
import pytest

from engine.spread import best_places, by_time, spread

Hit = tuple[float, int, int, int, int, int]
"""Score, instant, key, copy group, conversation, talk."""


def naive(hits: list[Hit]) -> list[tuple[int, int]]:
    """(place, copies): best of each group; a hit waits until each other conversation, then talk, had its turn."""
    ranked = sorted(range(len(hits)), key=lambda i: (-hits[i][0], -hits[i][1], hits[i][2]))
    kept: list[int] = []
    copies: dict[int, int] = {}
    for i in ranked:
        if hits[i][3] in copies:
            copies[hits[i][3]] += 1
        else:
            copies[hits[i][3]] = 0
            kept.append(i)
    turns: dict[int, int] = {}
    talk_turn: dict[int, int] = {}
    for i in kept:
        talk_turn[i] = turns.get(hits[i][5], 0)
        turns[hits[i][5]] = talk_turn[i] + 1
    within: dict[int, int] = {}
    turn: dict[int, int] = {}
    for i in sorted(kept, key=lambda i: talk_turn[i]):
        turn[i] = within.get(hits[i][4], 0)
        within[hits[i][4]] = turn[i] + 1
    return [(i, copies[hits[i][3]]) for i in sorted(kept, key=lambda i: turn[i])]


@pytest.mark.parametrize("seed", range(60))
def test_conversations_take_turns_then_talks_within_them(seed: int) -> None:
    chance = random.Random(seed)
    hits: list[Hit] = []
    for key in range(chance.choice((0, 1, 5, 40))):
        talk = chance.randrange(9)
        hits.append((chance.randrange(4) / 2, chance.randrange(5), key, chance.randrange(25), talk % 3, talk))
    columns = [np.array([hit[i] for hit in hits], dtype=np.float64 if i == 0 else np.int64) for i in range(6)]
    order = spread(*columns)  # type: ignore[arg-type]  # six arrays in the order of the fields
    assert list(zip(order.places.tolist(), order.copies.tolist(), strict=True)) == naive(hits)


def test_the_first_hits_are_of_different_conversations_and_ties_go_to_the_newest() -> None:
    scores = np.array([9.0, 8.0, 7.0, 1.0, 1.0])
    sent = np.array([1, 2, 3, 4, 5], dtype=np.int64)
    keys = np.arange(5)
    places = np.array([0, 0, 0, 1, 2], dtype=np.int64)
    assert spread(scores, sent, keys, keys, places, places).places.tolist() == [0, 4, 3, 1, 2]


@pytest.mark.parametrize(("newest", "places"), [(True, [2, 1, 0, 3]), (False, [3, 0, 1, 2])])
def test_a_timeline_is_in_order_of_time_and_merges_nothing(newest: bool, places: list[int]) -> None:  # noqa: FBT001 - a table
    order = by_time(np.array([5, 5, 9, 1], dtype=np.int64), np.arange(4), newest=newest)
    assert (order.places.tolist(), order.copies.tolist()) == (places, [0, 0, 0, 0])


@pytest.mark.parametrize("seed", range(30))
def test_the_best_places_hold_all_that_could_come_first(seed: int) -> None:
    chance = random.Random(seed)
    pairs = [(chance.randrange(4) / 2, chance.randrange(5)) for _ in range(chance.choice((0, 3, 40)))]
    scores, sent = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs], dtype=np.int64)
    for most in (1, 5, 39, 40):
        found = set(best_places(scores, sent.take, most).tolist())
        border = sorted(pairs, reverse=True)[:most][-1:]
        assert found == {place for place, pair in enumerate(pairs) if [pair] >= border}
