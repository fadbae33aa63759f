"""Words, bigrams and their positions are those that regular expressions over one text at a time would find."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence

import duckdb
import numpy as np
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import text
from engine.index.pieces import _is_later
from engine.snapshot.database import asking
from engine.snapshot.format import SCRIPTS
from engine.snapshot.interned import Interned
from engine.snapshot.letters import Letters, code_points, raw_of
from engine.snapshot.tokens import Tokens, tokens_of, word_counts
from tests.depth import depth

UNSPACED = regex.compile(f"[{text.UNSPACED}]")


def known(char: str) -> bool:
    """Not NUL, nor a letter newer than the tables the database splits words by."""
    return char != "\0" and not _is_later(char)


ALPHABET = "ab_9 \n-.éжйё\u0301容器かカกำ가🎉\u200d"
texts = st.lists(
    st.one_of(
        st.text(st.sampled_from(ALPHABET), max_size=30),
        st.text(st.characters(exclude_categories=("Cs", "Cn"), max_codepoint=0x2FFF).filter(known), max_size=12),
        st.sampled_from(["x" * n for n in (7, 8, 9, 16, 17, 63, 64, 65, 200)]),
    ),
    min_size=1,
    max_size=8,
)

Found = Counter[tuple[str, int, int]]


@pytest.fixture(scope="module")
def letters() -> Iterator[Letters]:
    connection = duckdb.connect()
    yield Letters(asking(connection))
    connection.close()


def naive(rows: Sequence[str], first_row: int) -> tuple[Found, Found]:
    """(term, row, position) of words and of bigrams, found as the layout of the index defines them."""
    words: Found = Counter()
    grams: Found = Counter()
    for row, said in enumerate(rows, first_row):
        position = 0
        after_word = False
        for part in regex.finditer(r"[\p{L}\p{M}\p{N}_]+|[^\p{L}\p{M}\p{N}_]+", said):
            run = part[0]
            if not regex.match(r"[\p{L}\p{M}\p{N}_]", run):
                # What a word has taken already is the step to the one that follows at once.
                position += (1 if run == " " else 2) - after_word
                after_word = False
            elif UNSPACED.search(run):
                framed = f" {run} "
                for place in range(len(run) + 1):
                    grams[framed[place : place + 2], row, position + max(place - 1, 0)] += 1
                position += len(run) + 1
                after_word = True
            else:
                words[run, row, position] += 1
                position += 1
                after_word = True
    return words, grams


def told(tokens: Tokens, interned: Interned) -> Found:
    spelt = interned.spelt(tokens.number.astype(np.int64))
    rows = [tokens.first_row + text for text in tokens.text.tolist()]
    return Counter(zip(spelt, rows, tokens.position.tolist(), strict=True))


@settings(max_examples=depth(1_000, 50), deadline=None, derandomize=True)
@given(texts)
def test_tokens_of_many_texts_are_those_of_each(letters: Letters, rows: list[str]) -> None:
    interned = Interned()
    words, grams = tokens_of(raw_of(rows), len(rows), 5, letters, interned)
    assert (told(words, interned), told(grams, interned)) == naive(rows, 5)


@settings(max_examples=depth(1_000, 30), deadline=None, derandomize=True)
@given(texts)
def test_words_are_counted_as_in_each_text(letters: Letters, rows: list[str]) -> None:
    assert word_counts(raw_of(rows), len(rows), letters).tolist() == [text.word_count(row) for row in rows]


def test_scripts_are_those_of_each_text(letters: Letters) -> None:
    rows = ["", "plain", "東京", "かな カナ", "жук", "ж東", "ไทย", "한국", "ω", "héllo", "नमस्ते", "שלום عرب"]
    bits = [sum(1 << bit for bit, (_, pattern) in enumerate(SCRIPTS) if regex.search(pattern, text)) for text in rows]
    assert letters.scripts(raw_of(rows), len(rows)).tolist() == bits


def test_every_character_is_read_back_from_its_bytes() -> None:
    points = [code for code in range(1, 0x110000, 37) if not 0xD800 <= code <= 0xDFFF]
    raw = raw_of(["".join(map(chr, points))])
    leads = np.flatnonzero((raw & 0xC0) != 0x80)[: len(points)]
    assert code_points(raw, leads).tolist() == points


def test_equal_words_have_equal_numbers_and_different_words_different_ones() -> None:
    chance = random.Random(1)
    words = [
        "".join(chance.choices("abж", k=chance.choice((1, 2, 7, 8, 9, 15, 16, 17, 40, 64, 65, 90))))
        for _ in range(9_000)
    ]
    words += [word[:at] for word in words[:300] for at in range(1, len(word))]
    interned = Interned()
    numbers: list[int] = []
    for start in range(0, len(words), 1_000):
        part = words[start : start + 1_000]
        raw = raw_of(part)
        ends = np.flatnonzero(raw == 0)[: len(part)]
        starts = np.concatenate((np.zeros(1, dtype=np.int64), ends[:-1] + 1))
        numbers += interned.words(raw, starts, ends - starts).tolist()
    assert interned.spelt(np.array(numbers)) == words
    assert len(set(numbers)) == len(set(words))
