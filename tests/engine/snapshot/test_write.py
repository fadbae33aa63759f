"""How rows are ordered, numbered and cut, and that the cut changes no answer."""

import random
from pathlib import Path
from typing import Any

import pytest

from engine.errors import BrokenSnapshot
from engine.snapshot.database import connect
from engine.snapshot.stage import STAGED, stage
from engine.snapshot.write import Stamp, write
from tests.engine.corpora import (
    NOON,
    SETTINGS,
    SNAPSHOT,
    corpus_of,
    desk_of,
    quiet,
    random_messages,
    random_query,
    said,
)


@pytest.mark.parametrize("seed", range(4))
def test_shards_of_a_few_rows_give_the_answers_of_one(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    messages = random_messages(chance, 60)
    whole = corpus_of(tmp_path, messages, index=seed % 2 == 0)
    cut = corpus_of(tmp_path, messages, index=seed % 2 == 0, shard_rows=chance.choice((9, 20)))
    assert len(cut.manifest.shards) > 1 or len(messages) < 21
    assert [m.message_id for m in cut.messages(range(cut.rows))] == [
        m.message_id for m in whole.messages(range(cut.rows))
    ]
    for query in ("", *(random_query(chance) for _ in range(2))):
        answers = [
            [plain(desk.count(query).object), plain(desk.search(query, limit=50, context=1).object)]
            for desk in (desk_of(tmp_path, whole), desk_of(tmp_path, cut))
        ]
        assert answers[0] == answers[1]
    m = chance.choice(messages)
    threads = [plain(desk_of(tmp_path, corpus).thread(m.message_id).object) for corpus in (whole, cut)]
    assert threads[0] == threads[1]


def plain(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name != "session"}


def test_a_thread_is_never_cut_and_rows_run_on(tmp_path: Path) -> None:
    messages = [said(n, "x", thread_native_id=str(n - n % 5)) for n in range(23)]
    corpus = corpus_of(tmp_path, messages, shard_rows=7)
    shards = corpus.manifest.shards
    assert [(shard.first_row, shard.rows) for shard in shards] == [(0, 5), (5, 5), (10, 5), (15, 5), (20, 3)]
    assert [shard.folder for shard in shards] == ["0000", "0001", "0002", "0003", "0004"]
    longer = corpus_of(tmp_path, messages, shard_rows=2).manifest.shards
    assert [shard.rows for shard in longer] == [5, 5, 5, 5, 3]


def test_rows_are_in_order_of_conversation_thread_start_and_time(tmp_path: Path) -> None:
    messages = [
        said(9, "late root", conversation="b"),
        said(5, "root", conversation="b"),
        said(7, "reply", conversation="b", thread_native_id="5"),
        said(6, "between", conversation="b"),
        said(8, "other", conversation="a"),
    ]
    corpus = corpus_of(tmp_path, messages)
    assert [m.body for m in corpus.messages(range(5))] == ["other", "root", "reply", "between", "late root"]


def test_a_manifest_describes_what_is_there(tmp_path: Path) -> None:
    messages = [
        said(1, "ж", author_id="U1", author="Ann", conversation_id="C1", conversation="old name", status="open"),
        said(2, "x y", author_id="U1", author="Anna", conversation_id="C1", conversation="new name", kind="bot"),
    ]
    manifest = corpus_of(tmp_path, messages).manifest
    assert (manifest.rows, manifest.threads, manifest.copy_groups, manifest.text_bytes) == (2, 2, 2, 5)
    assert (manifest.first, manifest.last) == (messages[0].sent_at, messages[1].sent_at)
    assert manifest.conversations == (("C1", "new name", 2),)
    assert manifest.authors == (("U1", "Ann", 1), ("U1", "Anna", 1))
    assert (manifest.roles, manifest.to_roles, manifest.statuses) == ((("unknown", 2),), (), (("open", 1),))
    assert manifest.kinds == (("bot", 1), ("message", 1))
    assert {entry.rows for entry in manifest.files if entry.name.endswith(("narrow.parquet", "text.parquet"))} == {2}


def test_two_ids_with_one_key_are_refused(tmp_path: Path) -> None:
    connection = connect(SETTINGS, [f"{tmp_path}/"])
    for _ in stage(connection, [said(1, "x"), said(2, "y")]):
        pass
    connection.execute(f"UPDATE {STAGED} SET message_key = 7")
    with pytest.raises(BrokenSnapshot) as raised:
        write(connection, tmp_path, Stamp(SNAPSHOT, NOON, "0"), quiet)
    assert raised.value.code == "key_collision"
    connection.close()
