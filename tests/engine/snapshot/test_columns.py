"""Columns cross into the database and back as they are: every type, what is null, and bytes that outlive the result."""

import duckdb
import numpy as np
import pytest

from engine.snapshot.columns import Columns, numbers, texts, texts_found
from engine.snapshot.letters import PAD, raw_of

TEXTS = ["", "plain", "жук", "", "東京 \U0001f389", "x" * 40, "\n"]


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [("i4", "INTEGER"), ("i8", "BIGINT"), ("u2", "USMALLINT"), ("u4", "UINTEGER"), ("u8", "UBIGINT")],
)
def test_numbers_keep_their_type_and_both_ends_of_it(
    connection: duckdb.DuckDBPyConnection, dtype: str, kind: str
) -> None:
    ends = [int(np.iinfo(dtype).min), 7, int(np.iinfo(dtype).max)]
    valid = np.array([True, False, True])
    connection.register(
        "given",
        Columns({"all": numbers(np.array(ends, dtype=dtype)), "some": numbers(np.array(ends, dtype=dtype), valid)}),
    )
    rows = connection.execute('SELECT "all", "some", typeof("all") FROM given').fetchall()
    assert rows == [(ends[0], ends[0], kind), (7, None, kind), (ends[2], ends[2], kind)]


def test_texts_keep_every_byte_and_an_empty_one_is_not_null(connection: duckdb.DuckDBPyConnection) -> None:
    valid = np.array([text != "plain" for text in TEXTS])
    raw = raw_of(TEXTS)
    connection.register("given", Columns({"all": texts(raw, len(TEXTS)), "some": texts(raw, len(TEXTS), valid)}))
    rows = connection.execute('SELECT "all", "some" FROM given').fetchall()
    assert rows == [(text, None if text == "plain" else text) for text in TEXTS]


def test_columns_without_rows_are_an_empty_table(connection: duckdb.DuckDBPyConnection) -> None:
    connection.register("given", Columns({"n": numbers(np.zeros(0, dtype="i8")), "t": texts(raw_of([]), 0)}))
    assert connection.execute("SELECT * FROM given").fetchall() == []


def test_columns_can_be_read_again(connection: duckdb.DuckDBPyConnection) -> None:
    connection.register("given", Columns({"n": numbers(np.arange(3))}))
    assert [connection.execute("SELECT sum(n) FROM given").fetchall() for _ in range(2)] == [[(3,)], [(3,)]]


def test_texts_found_are_those_of_the_result_when_that_is_gone(connection: duckdb.DuckDBPyConnection) -> None:
    many = [f"{n} жук " * (n % 9) for n in range(5_000)]
    connection.register(
        "given", Columns({"row": numbers(np.arange(len(many))), "text": texts(raw_of(many), len(many))})
    )
    found = texts_found(connection.sql("SELECT text || chr(0) AS text FROM given ORDER BY row"))
    # Memory that was given back would be written over.
    _ = [np.full(len(found), 7, dtype=np.uint8) for _ in range(20)]
    assert found.tobytes() == raw_of(many).tobytes()


def test_no_texts_are_found_where_there_are_none(connection: duckdb.DuckDBPyConnection) -> None:
    found = texts_found(connection.sql("SELECT ''::VARCHAR AS text WHERE false"))
    assert found.tobytes() == b"\0" * PAD
