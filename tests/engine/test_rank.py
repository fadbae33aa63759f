"""BM25 against its formula, term by term in plain Python."""

import math
import random

import numpy as np
import pytest

from engine.rank import K1, B, Scored, bm25


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
