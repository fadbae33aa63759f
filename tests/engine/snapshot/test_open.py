"""A snapshot opened: rows become messages, and what is not as written is refused."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.errors import BadInput, BrokenSnapshot
from engine.model import message_key_of
from engine.snapshot.database import Database, connect
from engine.snapshot.open import Corpus, open_corpus
from engine.times import SECOND
from tests.engine.corpora import SETTINGS, SNAPSHOT, Folder, corpus_of, desk_of, random_messages, said


def folder_of(root: Path) -> Path:
    return next(path for path in root.iterdir() if path.name.startswith("snapshot-"))


def test_rows_come_in_the_order_asked_for_however_many(tmp_path: Path) -> None:
    chance = random.Random(0)
    messages = [said(n, f"text {n}", topic=f"Topic {n}") for n in range(450)]
    corpus = corpus_of(tmp_path, messages, shard_rows=300, index=False)
    for many in (1, 7, 450):
        rows = chance.sample(range(450), many)
        assert [m.body for m in corpus.messages(rows)] == [f"text {row}" for row in rows]
        assert corpus.folded(rows) == [(f"topic {row}", f"text {row}") for row in rows]
        assert [m.row for m in corpus.stream(np.array(rows))] == rows


@pytest.mark.parametrize("seed", range(3))
def test_ids_and_threads_are_found_whether_the_root_is_stored_or_not(tmp_path: Path, seed: int) -> None:
    messages = random_messages(random.Random(seed), 40)
    corpus = corpus_of(tmp_path, messages, shard_rows=5, index=False)
    stored = corpus.messages(range(corpus.rows))
    for m in stored:
        assert corpus.row_of(m.message_id) == m.row
        assert corpus.thread_of(m.thread_id) == corpus.narrow.thread[m.row]
    assert (corpus.row_of("c1:none"), corpus.thread_of("c1:none")) == (None, None)
    assert corpus.message_keys.tolist() == [message_key_of(m.message_id) for m in stored]
    assert len(corpus.copy_keys) == corpus.rows


@pytest.mark.parametrize("seed", range(8))
def test_keys_made_of_what_is_shown_are_those_that_were_stored(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    unstorable = [
        said(900 + n, body, author_id=f"u\0{n % 2}") for n, body in enumerate(("", "a\0b", "\ud800", "", "É"))
    ]
    corpus = corpus_of(tmp_path, [*random_messages(chance, 60), *unstorable], shard_rows=7, index=False)
    rows = chance.sample(range(corpus.rows), min(corpus.rows, 20))
    made = corpus.message_keys_of(rows), corpus.copy_keys_of(rows)
    assert not corpus.narrow.has("message_key")
    assert not corpus.narrow.has("copy_key")
    assert made == (corpus.message_keys[rows].tolist(), corpus.copy_keys[rows].tolist())
    assert made == (corpus.message_keys_of(rows), corpus.copy_keys_of(rows))


def test_keys_of_texts_that_another_unicode_folded_are_those_that_were_stored(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, [said(1, "docker"), said(2, "a text that is longer than that")], index=False)
    corpus.manifest = replace(corpus.manifest, unicode="1.1.0")
    made = corpus.copy_keys_of([1, 0])
    assert corpus.narrow.has("copy_key")
    assert made == corpus.copy_keys[[1, 0]].tolist()


def test_a_count_and_a_first_page_read_no_key(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, [said(n, f"needle {n}") for n in range(30)])
    desk = desk_of(tmp_path, corpus)
    desk.count("needle")
    assert [name for name in ("copy", "micro", "scripts", "message_key") if corpus.narrow.has(name)] == []
    session = desk.search("needle", limit=3).object["session"]
    assert [name for name in ("copy", "micro", "scripts", "message_key") if corpus.narrow.has(name)] == [
        "copy",
        "micro",
    ]
    desk.unseen("needle", session=session)
    assert corpus.narrow.has("message_key")


def test_first_calls_at_once_each_kept_an_index_of_their_own(tmp_path: Path) -> None:
    corpus, at_once = corpus_of(tmp_path, [said(1, "docker")]), threading.Barrier(4)

    def first_call(_: int) -> tuple[object, object]:
        at_once.wait(30)
        return corpus.index, corpus.close_words

    with ThreadPoolExecutor(4) as callers:
        assert len(set(callers.map(first_call, range(4)))) == 1
    assert corpus.close_words is not None
    assert corpus.close_words._index is corpus.index


@pytest.mark.parametrize("harm", ["missing", "longer", "shorter"])
def test_a_file_of_another_size_is_named(tmp_path: Path, harm: str) -> None:
    corpus_of(tmp_path, [said(1, "x")], index=False)
    folder = folder_of(tmp_path)
    path = folder / "0000" / "text.parquet"
    raw = path.read_bytes()
    path.unlink()
    if harm != "missing":
        path.write_bytes(raw + b"x" if harm == "longer" else raw[:-1])
    database = Database(connect(SETTINGS, [f"{folder}/"]), 20)
    with pytest.raises(BrokenSnapshot) as raised:
        open_corpus(Folder(folder), SNAPSHOT, database)
    assert raised.value.message == (
        "1 of 3 files of the snapshot are missing or not what its manifest says: 0000/text.parquet"
    )
    with pytest.raises(BadInput):
        open_corpus(Folder(folder), "../x", database)
    database.close()


def test_a_manifest_that_counts_otherwise_is_refused(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, [said(1, "x")], index=False)
    prefix = f"{folder_of(tmp_path)}/"
    with pytest.raises(BrokenSnapshot) as raised:
        Corpus(replace(corpus.manifest, rows=2), prefix, corpus.database)
    assert raised.value.message == "the snapshot has not as many rows as its manifest says"
    with pytest.raises(BrokenSnapshot) as fewer:
        corpus.messages([0, 1])
    assert fewer.value.message == "the snapshot has fewer rows than its manifest says"


def test_a_flipped_bit_in_a_page_is_a_broken_snapshot_when_read(tmp_path: Path) -> None:
    corpus_of(tmp_path, [said(n, f"text {n * 7919}") for n in range(500)], index=False)
    folder = folder_of(tmp_path)
    path = folder / "0000" / "text.parquet"
    raw = bytearray(path.read_bytes())
    raw[8:400] = bytes(byte ^ 0x55 for byte in raw[8:400])
    path.write_bytes(raw)
    corpus = open_corpus(Folder(folder), SNAPSHOT, Database(connect(SETTINGS, [f"{folder}/"]), 20))
    with pytest.raises(BrokenSnapshot) as raised:
        corpus.messages(range(500))
    assert raised.value.code == "snapshot_broken"


def test_no_more_messages_are_remembered_than_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.snapshot.open._KEPT_MESSAGES", 2)
    corpus = corpus_of(tmp_path, [said(n, f"text {n}") for n in range(5)], index=False)
    assert [m.body for m in corpus.messages([3, 0, 4])] == ["text 3", "text 0", "text 4"]
    assert list(corpus._messages) == [0, 4]


@pytest.mark.parametrize("seed", range(4))
def test_instants_are_told_to_the_microsecond_and_so_are_their_borders(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    # Long ago, the day the epoch began, and further on than 32 bits tell seconds.
    around = chance.choice((-3_000_000_000, -1, 0, 1_700_000_000, 9_000_000_000))
    instants = [around * SECOND + chance.randrange(-3 * SECOND, 3 * SECOND) for _ in range(40)]
    instants += [around * SECOND - 1, around * SECOND, around * SECOND + 1]
    corpus = corpus_of(tmp_path, [said(n, "x", sent_at=at) for n, at in enumerate(instants)], shard_rows=7, index=False)
    rows = list(range(corpus.rows))
    stored = corpus.narrow.sent_at(rows).tolist()
    assert sorted(stored) == sorted(instants)
    assert [m.sent_at for m in corpus.messages(rows)] == stored
    for border in [*instants, *(at + 1 for at in instants), -(1 << 60), 1 << 60]:
        assert corpus.narrow.since(border).tolist() == [at >= border for at in stored]


def test_a_column_is_kept_no_wider_than_it_must_be(tmp_path: Path) -> None:
    messages = [said(n, "word " * n, author_id=f"u{n}", sent_at=n * SECOND) for n in range(130)]
    wide = [said(200, "word " * 70_000), said(201, "x", sent_at=(1 << 31) * SECOND)]
    plain = corpus_of(tmp_path, messages, shard_rows=50, index=False).narrow
    assert {plain.author.dtype, plain.words.dtype, plain.conversation.dtype} == {np.dtype(np.uint16)}
    assert (plain.kind.dtype, plain.second.dtype) == (np.dtype(np.int8), np.dtype(np.int32))
    narrow = corpus_of(tmp_path, [*messages, *wide], shard_rows=50, index=False).narrow
    assert (narrow.words.max(), narrow.second.max()) == (70_000, 1 << 31)
    many = [said(n, "x", kind=f"kind {n:03d}") for n in range(130)]
    kinds = corpus_of(tmp_path, many, index=False).narrow.kind
    assert (kinds.dtype, sorted(kinds.tolist())) == (np.dtype(np.int16), list(range(130)))


@pytest.mark.parametrize(("name", "query"), [("postings", "word3"), ("positions", '"word3 another3"')])
def test_a_file_of_the_index_that_ends_early_is_a_broken_snapshot(tmp_path: Path, name: str, query: str) -> None:
    messages = [said(n, f"word{n} another{n}") for n in range(40)]
    roots = tmp_path / "whole", tmp_path / "short"
    for root in roots:
        root.mkdir()
    corpus, _ = (corpus_of(root, messages[:most]) for root, most in zip(roots, (40, 3), strict=True))
    whole, short = (folder_of(root) / "0000" / f"{name}.parquet" for root in roots)
    whole.write_bytes(short.read_bytes())
    with pytest.raises(BrokenSnapshot) as raised:
        desk_of(tmp_path, corpus).count(query)
    assert raised.value.message == "a file of the index has not as many rows as its terms say"


def test_a_file_of_the_index_that_names_rows_there_are_not_is_a_broken_snapshot(tmp_path: Path) -> None:
    roots = tmp_path / "few", tmp_path / "many"
    for root in roots:
        root.mkdir()
    few = corpus_of(roots[0], [said(n, f"word{n} other{n}") for n in range(10)])
    corpus_of(roots[1], [said(n, f"word{n}") for n in range(20)])
    first, second = (folder_of(root) / "0000" / "postings.parquet" for root in roots)
    first.write_bytes(second.read_bytes())
    with pytest.raises(BrokenSnapshot) as raised:
        desk_of(tmp_path, few).count("word3")
    assert raised.value.message == "a file of the index names rows that the snapshot has not"
