"""Words some edits away, against a plain table of distances."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.index.lexicon import Region
from engine.index.near import Shapes, distances
from tests.depth import depth

LETTERS = "abcdeхыйжж日本ーกا\u064b_0é😀"
WORDS = st.text(LETTERS, min_size=1, max_size=12)


def plain_distance(one: str, other: str) -> int:
    """Optimal string alignment: the textbook's table, a swap of neighbours counts one."""
    rows = [[i + j if not i * j else 0 for j in range(len(other) + 1)] for i in range(len(one) + 1)]
    for i in range(1, len(one) + 1):
        for j in range(1, len(other) + 1):
            rows[i][j] = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (one[i - 1] != other[j - 1]))
            if i > 1 and j > 1 and one[i - 1] == other[j - 2] and one[i - 2] == other[j - 1]:
                rows[i][j] = min(rows[i][j], rows[i - 2][j - 2] + 1)
    return rows[-1][-1]


def region_of(words: list[str]) -> Region:
    return Region(("".join(f"\n{word}" for word in words) + "\n").encode())


@settings(max_examples=depth(2_000, 120), deadline=None, derandomize=True)
@given(WORDS, st.lists(WORDS, max_size=12))
def test_distances_are_those_of_a_plain_table(word: str, others: list[str]) -> None:
    assert distances(word, others).tolist() == [plain_distance(word, other) for other in others]


def edited(chance: random.Random, word: str) -> str:
    """A word after one random edit."""
    at, letter = chance.randrange(len(word)), chance.choice(LETTERS)
    ways = (
        word[:at] + letter + word[at:],
        word[:at] + word[at + 1 :],
        word[:at] + letter + word[at + 1 :],
        word[:at] + word[at : at + 2][::-1] + word[at + 2 :],
    )
    return chance.choice(ways) or letter


def test_no_word_within_reach_is_ruled_out_and_none_beyond_is_found() -> None:
    chance = random.Random(1)
    for _ in range(depth(400, 40)):
        words = {"".join(chance.choices(LETTERS, k=chance.randint(1, 14))) for _ in range(60)}
        word = chance.choice(sorted(words))
        for _ in range(30):
            words.add(edited(chance, chance.choice((word, edited(chance, word)))))
        lexicon = sorted(words)
        region, most = region_of(lexicon), chance.choice((1, 2))
        expected = [at for at, other in enumerate(lexicon) if 0 < plain_distance(word, other) <= most]
        assert Shapes(region).near(word, most).tolist() == expected


def test_places_are_those_of_the_words_that_exist() -> None:
    chance = random.Random(2)
    lexicon = ["".join(chance.choices("abcй", k=chance.randint(1, 6))) for _ in range(500)]
    lexicon = list(dict.fromkeys(lexicon))
    asked = {"".join(chance.choices("abcй", k=chance.randint(0, 6))) for _ in range(500)}
    found = Shapes(region_of(lexicon)).places(asked)
    assert found == {word: at for at, word in enumerate(lexicon) if word in asked}


def test_a_region_without_words_has_none_near() -> None:
    shapes = Shapes(Region(b"\n"))
    assert (shapes.near("word", 2).tolist(), shapes.places({"word"}), shapes.places({""})) == ([], {}, {})


def test_a_word_of_many_bytes_is_as_near_as_one_of_few() -> None:
    words = ["суббота", "субботу", "субботы", "работа", "субота", "субтоба"]
    assert [words[at] for at in Shapes(region_of(words)).near("суббота", 1)] == ["субботу", "субботы", "субота"]
    assert distances("teh", ["the", "eth", "tehs", "teh"]).tolist() == [1, 1, 1, 0]
