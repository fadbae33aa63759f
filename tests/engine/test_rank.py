"""BM25 against its formula, term by term in plain Python."""

import math
import random

import numpy as np
import pytest

from engine.rank import K1, TIER, B, Scored, bm25, held, tiers


@pytest.mark.parametrize("seed", range(10))
def test_a_score_is_what_the_formula_says(seed: int) -> None:
    chance = random.Random(seed)
    size, hits = 1_000, 20
    terms = [([chance.randrange(9) / 2 for _ in range(hits)], chance.randint(0, size)) for _ in range(3)]
    lengths = [float(chance.randint(20, 200)) for _ in range(hits)]
    scored = [Scored(np.array(frequencies), df) for frequencies, df in terms]
    for place, score in enumerate(bm25(scored, np.array(lengths), 40.0, size).tolist()):
        expected = 0.0
        for frequencies, df in terms:
            f = frequencies[place]
            idf = math.log(1 + (size - df + 0.5) / (df + 0.5))
            expected += idf * f * (K1 + 1) / (f + K1 * (1 - B + B * lengths[place] / 40.0))
        assert score == pytest.approx(expected)
        assert score >= 0


def test_without_terms_all_are_equal() -> None:
    assert bm25([], np.array([20.0, 30.0]), 20.0, 2).tolist() == [0.0, 0.0]


def test_a_common_term_never_counts_against_a_hit() -> None:
    assert bm25([Scored(np.array([1.0]), 10)], np.array([20.0]), 20.0, 10)[0] > 0


def test_hits_of_a_query_without_alternatives_are_of_one_tier() -> None:
    terms = [Scored(np.array([1.0, 0.1, 9.0]), 3), Scored(np.array([0.5, 2.0, 0.1]), 900)]
    assert tiers(held(terms, 3, 1_000)).tolist() == [0, 0, 0]


def test_a_hit_that_holds_less_than_its_share_waits() -> None:
    rare, common, nothing = [1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 5.0, 0.0], 0
    weights = [math.log1p((1_000 - df + 0.5) / (df + 0.5)) for df in (2, 300)]
    terms = [Scored(np.array(rare), 2), Scored(np.array(common), 300)]
    below = [math.log(sum(weights) / held) / -math.log(TIER) for held in (weights[0], weights[1])]
    assert tiers(held(terms, 4, 1_000)).tolist() == [0, int(below[0]), int(below[1]), 16]
    assert (int(below[0]), int(below[1])) == (0, 6)
    assert tiers(held([], 2, 1_000)).tolist() == [nothing, nothing]
