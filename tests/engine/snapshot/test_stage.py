"""What becomes of ids and texts before they are stored."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from weakref import WeakSet

import duckdb
import pytest

from engine.model import Message, SourceMessage, message_key_of
from engine.snapshot.columns import Column, Columns
from engine.snapshot.database import connect
from engine.snapshot.stage import STAGED, stage
from tests.engine.corpora import SETTINGS, corpus_of, desk_of, said


def stored(folder: Path, *messages: SourceMessage) -> list[Message]:
    corpus = corpus_of(folder, messages, index=False)
    return corpus.messages(range(corpus.rows))


def test_a_message_comes_back_as_it_was_said(tmp_path: Path) -> None:
    everything = said(
        1,
        "body 東京 \U0001f389",
        author_id="U1",
        author="Ann",
        topic="topic",
        from_role="client",
        to_role="vendor",
        kind="bot",
        status="open",
        link="https://example.org/1",
        edited_at=7,
        attributes='{"a":1}',
        thread_native_id="0",
    )
    (told,) = stored(tmp_path, everything)
    names = [name for name in Message.__slots__ if name not in {"row", "message_id", "thread_id"}]
    assert {name: getattr(told, name) for name in names} == {name: getattr(everything, name) for name in names}
    assert (told.row, told.message_id, told.thread_id) == (0, "general:1", "general:0")


def test_what_is_empty_is_null(tmp_path: Path) -> None:
    (told,) = stored(tmp_path, said(1, "x", to_role="", status="", link="", attributes="", edited_at=-1))
    assert (told.to_role, told.status, told.link, told.attributes, told.edited_at) == (None, None, None, None, -1)


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("a\0b", "a\ufffdb"),
        ("a\ud800b", "a\ufffdb"),
        ("\udcff\0ж", "\ufffd\ufffdж"),
        ("\u202e⟦⏎⟧\n\t", "\u202e⟦⏎⟧\n\t"),
    ],
)
def test_only_what_cannot_be_stored_is_replaced(tmp_path: Path, body: str, kept: str) -> None:
    (told,) = stored(tmp_path, said(1, body, topic=body, author=body, author_id="U"))
    assert (told.body, told.topic, told.author) == (kept, kept, kept)


@pytest.mark.parametrize(
    "native",
    ["1", "1474355137.000681", "a-b_c/d+e=", "юникод", "花子", "x" * 120],
)
def test_a_plain_id_stays(tmp_path: Path, native: str) -> None:
    (told,) = stored(tmp_path, said(1, "x", native_id=native))
    assert told.message_id == f"general:{native}"


@pytest.mark.parametrize("native", ["a b", "a\nb", "[x]", "⟦x⟧", "a\u200bb", "\ud800", "x" * 121, "x" * 5_000])
def test_an_id_that_could_not_be_copied_is_made_so_and_finds_its_message(tmp_path: Path, native: str) -> None:
    messages = [said(1, "root", native_id=native), said(2, "reply", thread_native_id=native)]
    corpus = corpus_of(tmp_path, messages, index=False)
    root, reply = corpus.messages([0, 1])
    assert root.message_id.isprintable()
    assert not set("[]⟦⟧⏎ ") & set(root.message_id)
    assert len(root.message_id) <= 250
    assert (reply.thread_id, root.body) == (root.message_id, "root")
    told = desk_of(tmp_path, corpus).thread(root.message_id).object
    assert (told["view"], told["messages"][0]["id"]) == ("thread", root.message_id)


def test_ids_that_were_made_printable_stay_apart(tmp_path: Path) -> None:
    told = stored(
        tmp_path, *(said(n, "x", native_id=native) for n, native in enumerate(("a b", "a\tb", "a_b", "a\u00a0b")))
    )
    assert len({m.message_id for m in told}) == 4


def test_names_that_are_stored_alike_are_one(tmp_path: Path) -> None:
    messages = [said(n, "x", author=name, author_id="U", kind=name) for n, name in enumerate(("a\0", "a\ufffd"))]
    manifest = corpus_of(tmp_path, messages, index=False).manifest
    assert (manifest.authors, manifest.kinds) == ((("U", "a\ufffd", 2),), (("a\ufffd", 2),))


def test_progress_is_told_after_each_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.snapshot.stage._BATCH_ROWS", 3)
    monkeypatch.setattr("engine.snapshot.stage._PART_ROWS", 2)
    connection = connect(SETTINGS, [f"{tmp_path}/"])
    assert list(stage(connection, (said(n, "x") for n in range(7)))) == [3, 6, 7]
    rows = connection.execute(f"SELECT sequence, message_id, message_key FROM {STAGED} ORDER BY sequence").fetchall()
    assert rows == [(n, f"general:{n}", message_key_of(f"general:{n}")) for n in range(7)]
    connection.close()


def test_no_part_is_held_once_it_is_inserted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = WeakSet[Columns]()

    class Remembered(Columns):
        def __init__(self, columns: Mapping[str, Column]) -> None:
            super().__init__(columns)
            made.add(self)

    monkeypatch.setattr("engine.snapshot.stage.Columns", Remembered)
    monkeypatch.setattr("engine.snapshot.stage._BATCH_ROWS", 4)
    monkeypatch.setattr("engine.snapshot.stage._PART_ROWS", 2)
    with closing(connect(SETTINGS, [f"{tmp_path}/"])) as connection:
        held = [len(made) for _ in stage(connection, (said(n, "x") for n in range(40)))]
    # The last part may still be on its way.
    assert (len(held), max(held) <= 2) == (10, True)


def test_a_part_that_cannot_be_stored_ends_the_staging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.snapshot.stage._PART_ROWS", 2)
    connection = connect(SETTINGS, [f"{tmp_path}/"])

    def messages() -> Iterator[SourceMessage]:
        yield from (said(n, "x") for n in range(7))
        connection.execute(f"DROP TABLE {STAGED}")

    with pytest.raises(duckdb.CatalogException):
        list(stage(connection, messages()))
    connection.close()
