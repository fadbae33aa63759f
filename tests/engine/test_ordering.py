"""The best hits of very many are found without spreading all, and are those that spreading all would show first."""

import random
from datetime import UTC

import pytest

from engine.hits import Hits, find
from engine.ordering import rank
from engine.query.bind import bind
from engine.requests import Criteria
from tests.engine.corpora import corpus_of, said, view_of


@pytest.fixture(scope="module")
def hits(tmp_path_factory: pytest.TempPathFactory) -> Hits:
    chance = random.Random(1)
    bodies = [
        "needle",
        "needle needle",
        "a needle in hay of many words",
        "five words make a needle copy",
        "pin",
        "a pin too",
    ]
    messages = [
        said(n, chance.choice(bodies), author=f"A{n % 3}", conversation=f"c{chance.randrange(25)}") for n in range(400)
    ]
    view = view_of(corpus_of(tmp_path_factory.mktemp("many"), messages))
    return find(view, bind(Criteria("needle OR pin"), view, UTC))


@pytest.mark.parametrize("most", [1, 8, 25, 60])
@pytest.mark.parametrize("spread", [4, 30, 120])
def test_what_comes_first_does_not_depend_on_how_many_are_spread(
    hits: Hits, monkeypatch: pytest.MonkeyPatch, most: int, spread: int
) -> None:
    whole = rank(hits, hits.rows, "best", most).first(most)
    monkeypatch.setattr("engine.ordering._SPREAD", spread)
    some = rank(hits, hits.rows, "best", most).first(most)
    assert some.rows.tolist() == whole.rows.tolist()
    assert some.copies.tolist() == whole.copies.tolist()
    assert some.scores.tolist() == whole.scores.tolist()
