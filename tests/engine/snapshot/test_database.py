"""A DuckDB that reads where it may, keeps its settings, and stops in time."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import duckdb
import numpy as np
import pytest

from engine.errors import BrokenSnapshot, Unavailable
from engine.snapshot.database import Database, DatabaseSettings, connect, failures_told

_LONG = "SELECT count(*) FROM range(10_000_000_000) a WHERE a.range % 7 = 3"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(connect(DatabaseSettings("200MB", 1), [f"{tmp_path}/in/"]), 20)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{outside}/secret')",
        "SELECT * FROM read_csv('{outside}/secret')",
        "COPY (SELECT 1) TO '{outside}/new.parquet'",
        "ATTACH '{outside}/new.duckdb'",
        "SELECT * FROM read_text('{outside}/in/../secret')",
        "INSTALL httpfs",
        "LOAD '{outside}/x.duckdb_extension'",
        "SET enable_external_access = true",
        "SET allowed_directories = ['/']",
        "SET memory_limit = '9GB'",
    ],
)
def test_nothing_outside_is_read_or_written_and_no_setting_changed(
    database: Database, tmp_path: Path, sql: str
) -> None:
    (tmp_path / "secret").write_text("secret")
    before = sorted(tmp_path.iterdir())
    with pytest.raises((BrokenSnapshot, duckdb.Error)):
        database.rows(sql.format(outside=tmp_path))
    assert sorted(tmp_path.iterdir()) == before


def test_what_is_below_the_folder_is_read_with_values_as_parameters(database: Database, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "it's.csv").write_text("a\n1\n2\n")
    location = f"{tmp_path}/in/it's.csv"
    assert database.rows("SELECT sum(a) FROM read_csv(?) WHERE a < ?", [location, 2]) == [(1,)]
    assert database.arrays("SELECT a FROM read_csv(?)", [location])["a"].tolist() == [1, 2]


def test_arrays_may_stand_for_tables(database: Database) -> None:
    wanted = {"row": np.arange(5), "place": 4 - np.arange(5)}
    assert database.rows("SELECT row FROM wanted ORDER BY place LIMIT 2", wanted=wanted) == [(4,), (3,)]
    assert list(database.stream("SELECT row FROM wanted ORDER BY row", size=2, wanted=wanted)) == [
        [(0,), (1,)],
        [(2,), (3,)],
        [(4,)],
    ]


def test_a_statement_is_stopped_in_time_and_the_next_one_runs() -> None:
    database = Database(connect(DatabaseSettings("200MB", 1), []), 0.1)
    with pytest.raises(Unavailable) as raised:
        database.rows(_LONG)
    assert (raised.value.code, raised.value.message) == ("too_slow", "the search was stopped after 0.1 seconds")
    assert database.rows("SELECT 1") == [(1,)]
    database.close()


def test_a_statement_that_needs_more_memory_than_it_may_use_says_so(tmp_path: Path) -> None:
    tight = DatabaseSettings("20MB", 1, tmp_path, "0B")
    database = Database(connect(tight, []), 600)
    with pytest.raises(Unavailable) as raised:
        # One list of 160 MB: refused before it is filled, so that no load of the machine makes it too slow first.
        database.rows("SELECT list(range) FROM range(20_000_000)")
    assert (raised.value.code, raised.value.next_step) == ("out_of_memory", "narrow it by a filter")
    database.close()


def test_a_damaged_file_is_a_broken_snapshot(database: Database, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.parquet").write_bytes(b"PAR1 not a table PAR1")
    with pytest.raises(BrokenSnapshot) as raised:
        database.rows("SELECT * FROM read_parquet(?)", [f"{tmp_path}/in/x.parquet"])
    assert raised.value.code == "snapshot_broken"


def test_a_closed_connection_is_out_of_reach(database: Database) -> None:
    database.close()
    with pytest.raises((Unavailable, duckdb.Error)):
        database.rows("SELECT 1")


def test_what_prepares_a_connection_runs_before_the_lock(tmp_path: Path) -> None:
    prepared: list[duckdb.DuckDBPyConnection] = []

    def prepare(connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute("SET threads = 2")
        prepared.append(connection)

    connection = connect(DatabaseSettings(threads=1, temp_folder=tmp_path), [], prepare)
    assert prepared == [connection]
    assert connection.execute("SELECT current_setting('threads')").fetchall() == [(2,)]
    connection.close()


def shows_progress(memory: str) -> bool:
    """Whether a cursor of a connection of ours would; runs in a process of its own."""
    found = connect(DatabaseSettings(memory, 1), []).cursor().execute("SELECT current_setting('enable_progress_bar')")
    return bool(found.fetchall()[0][0])


def test_a_spawned_process_draws_no_bar_of_progress_among_its_answers() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(shows_progress, "200MB").result() is False


def test_a_fault_of_the_statement_is_ours_and_a_full_disk_the_machines() -> None:
    with pytest.raises(duckdb.ParserException), failures_told("x"):
        duckdb.sql("SELEC")
    with pytest.raises(Unavailable) as raised, failures_told("way out"):
        raise OSError(28, "No space left on device")
    assert (raised.value.code, raised.value.next_step) == ("out_of_memory", "way out")
    with pytest.raises(FileNotFoundError), failures_told("x"):
        raise FileNotFoundError(2, "x")
    with pytest.raises(duckdb.InterruptException), failures_told("x"):
        raise duckdb.InterruptException("x")
    for error in (duckdb.HTTPException("x"), duckdb.IOException("Read error for HTTP GET")):
        with pytest.raises(Unavailable) as away, failures_told("x"):
            raise error
        assert away.value.code == "store_unreachable"
    with pytest.raises(Unavailable) as full, failures_told("x"):
        raise duckdb.IOException("Could not write: No space left on device")
    assert full.value.code == "out_of_memory"
