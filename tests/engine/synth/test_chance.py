import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.synth.chance import ident, pick, random_for, shares, zipf


def test_the_same_names_give_the_same_chance_and_others_another() -> None:
    one, same, other = random_for(1, "a"), random_for(1, "a"), random_for(1, "b")
    drawn = [one.random() for _ in range(3)]
    assert drawn == [same.random() for _ in range(3)]
    assert drawn != [other.random() for _ in range(3)]


def test_ids_look_like_slacks() -> None:
    assert ident("C", "general") == "C407F3FE2"


def test_picking_reaches_every_value_and_no_other() -> None:
    rng = random_for("pick")
    assert {pick(rng, "abc") for _ in range(200)} == {"a", "b", "c"}


def test_the_second_word_is_half_as_common_as_the_first() -> None:
    table = zipf(["one", "two", "three"], 1_100)
    assert [table.count(word) for word in ("one", "two", "three")] == [600, 300, 199]


def test_even_the_rarest_word_has_a_place() -> None:
    words = [str(n) for n in range(500)]
    assert set(zipf(words, 100)) == set(words)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(0, 10_000_000), st.lists(st.integers(1, 10_000), min_size=1, max_size=60))
def test_shares_are_whole_and_add_up(total: int, weights: list[int]) -> None:
    parts = shares(total, weights)
    assert sum(parts) == total
    assert all(abs(part - total * weight / sum(weights)) <= 1 for part, weight in zip(parts, weights, strict=True))


def test_shares_follow_weights() -> None:
    assert shares(10, [1, 1, 3]) == [2, 2, 6]
    with pytest.raises(ZeroDivisionError):
        shares(10, [0])
