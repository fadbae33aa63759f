"""Damage that sizes do not show, limits that are reached, credentials that end: what is told, and that it passes."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from engine.errors import BrokenSnapshot, EngineError, Unavailable
from engine.snapshot.database import Database, DatabaseSettings, connect
from engine.snapshot.format import COUNTED
from handler.counted import Observed
from handler.settings import Settings
from handler.wiring import build_counted_app
from tests.faults.arrange import flipped, plant_flipped
from tests.faults.bench import CALLER, Corpus, Deployment, Scene, asking, folder_stores, plain, plant_snapshots
from tests.faults.proxy import Fault

_SPILLING = """
    SELECT max(n), min(b) FROM (
        SELECT b, row_number() OVER (ORDER BY b) AS n FROM (SELECT md5(range::VARCHAR) AS b FROM range(1_000_000)))
"""


@pytest.fixture
def scene(corpus: Corpus, work: Path) -> Iterator[Scene]:
    stores = folder_stores(work / "root")
    plant_snapshots(stores, corpus)
    with Scene(stores, corpus.table, work).closing() as each:
        yield each


def parquet_files(scene: Scene, corpus: Corpus) -> list[str]:
    return [
        name
        for name in scene.stores.names()
        if name.startswith(f"snapshots/{corpus.newer}/") and name.endswith(".parquet")
    ]


def test_one_flipped_bit_in_any_file_is_found_by_verify(scene: Scene, corpus: Corpus) -> None:
    for seed, name in enumerate(parquet_files(scene, corpus)):
        whole = scene.stores.fetch(name)
        scene.stores.plant(name, flipped(whole, seed))
        with pytest.raises(BrokenSnapshot, match=name.rpartition("/")[2]):
            scene.app.verify()
        scene.stores.plant(name, whole)
    assert scene.app.verify()["rows"] == len(corpus.matching)


def test_a_flipped_bit_never_becomes_an_internal_error(scene: Scene, corpus: Corpus) -> None:
    told: Counter[str] = Counter()
    for seed in range(12):
        for name in parquet_files(scene, corpus):
            if name.endswith(("text.parquet", "folded.parquet")):
                whole = scene.stores.fetch(name)
                scene.stores.plant(name, flipped(whole, seed))
                try:
                    scene.fresh().call(asking("search", None), CALLER)
                except EngineError as error:
                    told[error.code] += 1
                scene.app.close()
                scene.stores.plant(name, whole)
    assert set(told) == {"snapshot_broken"}


@pytest.mark.parametrize("name", COUNTED)
def test_a_flipped_bit_in_what_counts_are_made_of_is_refused_at_opening_and_the_snapshot_before_is_served(
    scene: Scene, corpus: Corpus, name: str
) -> None:
    plant_flipped(scene, f"snapshots/{corpus.newer}/0000/{name}")
    assert plain(scene.app.call(asking("count", None), CALLER)) == corpus.right[corpus.older]["count"]
    assert scene.alarms == ["the current snapshot cannot be opened (snapshot_broken); the one before is served"]


def test_a_broken_snapshot_that_was_passed_over_is_counted_for_the_alarm(scene: Scene, corpus: Corpus) -> None:
    plant_flipped(scene, f"snapshots/{corpus.newer}/0000/terms.parquet")
    settings = Settings.model_validate({"corpus": {"root": str(scene.stores.root)}})
    seen: list[Observed] = []
    build_counted_app(settings, scene.clock, seen.append).call(asking("count", None), CALLER)
    assert [(each.outcome, each.tally.counts["snapshot_fallbacks"]) for each in seen] == [("ok", 1)]


@pytest.mark.parametrize("settings", [("40MB", "1MB"), ("40MB", "0KB")], ids=["full", "none"])
def test_a_memory_limit_reached_is_told_by_duckdb_and_not_by_the_kernel(settings: tuple[str, str], work: Path) -> None:
    memory, temp_size = settings
    database = Database(connect(DatabaseSettings(memory, 1, work, temp_size), []), 60)
    with pytest.raises(Unavailable) as caught:
        database.rows("SELECT len(list(md5(range::VARCHAR))) FROM range(2_000_000)")
    assert caught.value.code == "out_of_memory"
    assert database.rows("SELECT 1") == [(1,)]
    database.close()


def test_two_databases_that_spill_at_once_do_not_share_a_folder(work: Path) -> None:
    settings = DatabaseSettings("40MB", 1, work, "1GB")
    first, second = connect(settings, []), connect(settings, [])
    running = [connection.execute(_SPILLING) for connection in (first, second)]
    assert len({answer.fetchall()[0] for answer in running}) == 1
    folders = {
        connection.execute("SELECT current_setting('temp_directory')").fetchall()[0] for connection in (first, second)
    }
    assert len(folders) == 2
    first.close()
    second.close()


def test_a_refresh_that_runs_out_of_memory_says_so_and_publishes_nothing(corpus: Corpus, work: Path) -> None:
    stores = folder_stores(work / "root")
    plant_snapshots(stores, corpus)
    settings = DatabaseSettings("2MB", 1, work, "0KB")
    with Scene(stores, corpus.table, work, database=settings).closing() as scene:
        with pytest.raises(Unavailable) as caught:
            scene.app.refresh(force=True)
        assert caught.value.code == "out_of_memory"
        assert stores.snapshots.current() == corpus.newer


@pytest.mark.aws
def test_limits_of_reads_from_s3_hold_for_the_cursors_statements_run_on(
    deployments: dict[str, Deployment], work: Path
) -> None:
    snapshots = deployments["count"].stores("limits/").snapshots
    connection = connect(DatabaseSettings("64MB", 1, work), [snapshots.location], snapshots.prepare)
    found = dict(
        connection.cursor()
        .execute(
            "SELECT name, value FROM duckdb_settings() WHERE name IN"
            " ('http_timeout', 'http_retries', 's3_url_compatibility_mode', 'enable_global_s3_configuration')"
        )
        .fetchall()
    )
    connection.close()
    assert found == {
        "http_timeout": "1",
        "http_retries": "1",
        "s3_url_compatibility_mode": "true",
        "enable_global_s3_configuration": "false",
    }


@pytest.mark.aws
def test_a_credential_that_ends_in_mid_query_is_told_and_the_next_one_is_taken(
    deployments: dict[str, Deployment], corpus: Corpus, work: Path
) -> None:
    deployment = deployments["count"]
    plant_snapshots(deployment.stores("credentials/"), corpus)
    with Scene(deployment.stores("credentials/"), corpus.table, work).closing() as scene:
        ended = Fault(
            "answer",
            lambda seen: seen.target.partition("?")[0].endswith("narrow.parquet"),
            skip=1,
            status=403,
            body=b"<Error><Code>ExpiredToken</Code></Error>",
        )
        with deployment.s3.failing(ended), pytest.raises(Unavailable) as caught:
            scene.app.call(asking("count", None), CALLER)
        assert caught.value.code == "store_unreachable"
        assert plain(scene.app.call(asking("count", None), CALLER)) == corpus.right[corpus.newer]["count"]


def test_a_damaged_file_is_no_error_of_the_store(work: Path) -> None:
    path = work / "broken.parquet"
    with duckdb.connect() as connection:
        connection.sql("SELECT range FROM range(10)").write_parquet(str(path))
    path.write_bytes(path.read_bytes()[:-20])
    database = Database(connect(DatabaseSettings("64MB", 1, work), [f"{work}/"]), 10)
    with pytest.raises(BrokenSnapshot):
        database.rows("SELECT * FROM read_parquet(?)", [str(path)])
    database.close()
