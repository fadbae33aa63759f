"""The index files hold every word of every text once for each row, with the places it stands at."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from engine.index.shard import WORDS
from engine.plan import occurrences
from engine.query.tree import Term
from engine.snapshot.format import Manifest
from tests.engine.index.corpora import built, message, random_messages


def places_of(text: str) -> dict[str, list[int]]:
    """Positions of words in a text whose words stand between single blanks or ` - `."""
    out: dict[str, list[int]] = defaultdict(list)
    for position, part in enumerate(text.replace(" - ", "  ").split(" ")):
        if part:
            out[part].append(position)
    return out


def test_every_word_has_its_rows_frequencies_and_positions(tmp_path: Path) -> None:
    texts = ["b a a - b", "a", "c - c a"]
    corpus = built(tmp_path, [message(str(n), text, sent_at=n) for n, text in enumerate(texts)])
    assert corpus.index is not None
    (shard,) = corpus.index.shards
    region = shard.region(WORDS[0])
    assert [region.term(number) for number in range(len(region))] == ["a", "b", "c"]
    for number, word in enumerate("abc"):
        postings = shard.postings(WORDS[0], np.array([number])).all()
        owners, positions = shard.positions(postings)
        found: dict[int, list[int]] = defaultdict(list)
        for owner, position in zip(owners.tolist(), positions.tolist(), strict=True):
            found[int(postings.rows[owner])].append(position)
        assert found == {row: places_of(text)[word] for row, text in enumerate(texts) if word in text}
        assert postings.frequencies.tolist() == [text.count(word) for text in texts if word in text]


def test_a_message_of_more_words_than_two_bytes_count_is_found_by_its_last_phrase(tmp_path: Path) -> None:
    body = "x " * 70_000 + "last words"
    corpus = built(tmp_path, [message("1", "last x"), message("2", body, sent_at=1)])
    (found,) = occurrences(corpus, [Term("x last words")], brute=False)
    assert (found.rows.tolist(), found.path, found.tenths(found.rows)) == ([1], "fts", np.array([10]))


def test_a_snapshot_without_an_index_is_scanned(tmp_path: Path) -> None:
    corpus = built(tmp_path, random_messages(3), index=False)
    assert corpus.index is None
    (found,) = occurrences(corpus, [Term("a")], brute=False)
    (scanned,) = occurrences(corpus, [Term("a")], brute=True)
    assert (found.path, found.rows.tolist()) == ("substring", scanned.rows.tolist())


@pytest.mark.parametrize(("name", "value"), [("_KEY_BITS", 0), ("_SLICE_ROWS", 3), ("_PART", 1), ("_PART", 3)])
def test_an_index_is_the_same_however_its_occurrences_are_cut_and_sorted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: int
) -> None:
    files = []
    for folder in ("plain", "other"):
        (tmp_path / folder).mkdir()
        built(tmp_path / folder, random_messages(5), 20)
        files.append([path.read_bytes() for path in sorted((tmp_path / folder).rglob("*.parquet"))])
        monkeypatch.setattr(f"engine.snapshot.lexicon.{name}", value)
    assert files[0] == files[1]


def test_an_empty_corpus_has_an_index_without_words(tmp_path: Path) -> None:
    corpus = built(tmp_path, [])
    (found,) = occurrences(corpus, [Term("a b")], brute=False)
    assert (found.path, found.rows.tolist()) == ("fts", [])


@pytest.mark.parametrize("shard_rows", [7, 1_000])
def test_a_manifest_gives_back_what_is_said_of_the_index(tmp_path: Path, shard_rows: int) -> None:
    corpus = built(tmp_path, random_messages(4), shard_rows)
    assert Manifest.from_bytes(corpus.manifest.to_bytes()) == corpus.manifest
    assert len(corpus.manifest.lexicons) == len(corpus.manifest.shards)
