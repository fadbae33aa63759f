"""A whole run over a tiny corpus: the systems agree, and the object has the shape that is documented."""

import json
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from engine.errors import Unavailable
from engine.synth import generate
from handler.bench import run as runs
from handler.bench.answers import Answered
from handler.bench.documents import replaced, section_of
from handler.bench.measure import Effort
from handler.bench.plot import draw
from handler.bench.queries import NAMES, Choice, StandardQuery, choose
from handler.bench.report import grids
from handler.bench.run import RATIOS, Asked, compared, run
from handler.cli import main

pytestmark = pytest.mark.deep

MESSAGES = 1_000
SYSTEMS = ["hayfork", "scan", "sqlite_fts5", "tantivy"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bench")


@pytest.fixture(scope="module")
def report(folder: Path) -> dict[str, Any]:
    return run(Asked(MESSAGES, folder=folder, effort=Effort(1, warm=0)), lambda _: None)


def test_all_systems_answer_every_standard_query_and_agree(report: dict[str, Any]) -> None:
    assert tuple(row["name"] for row in report["queries"]) == NAMES
    for row in report["queries"]:
        for what in ("count_ms", "search_ms"):
            assert list(row[what]) == SYSTEMS
            assert all(told["rounds"] == 1 and 0 < told["median"] <= told["p95"] for told in row[what].values())
    empty = [row["name"] for row in report["queries"] if not row["found"]]
    assert empty == ["two letters, no hit", "no hit"]


def test_the_ratios_are_ours_divided_by_the_others(report: dict[str, Any]) -> None:
    assert tuple(report["ratios"]) == RATIOS
    means = report["geometric_means_ms"]
    for what in ("count", "search"):
        ours = means[what]["hayfork"]
        assert report["ratios"][f"{what}_vs_fts5"] == round(ours / means[what]["sqlite_fts5"], 4)
        assert report["ratios"][f"{what}_vs_scan"] == round(ours / means[what]["scan"], 4)
    built = report["systems"]["hayfork"]
    spaced = built["index_bytes"] - built["unspaced_bytes"]
    assert report["ratios"]["index_share"] == round(spaced / built["text_bytes"], 4)
    assert built["index_share"] == round(built["index_bytes"] / built["text_bytes"], 4)
    assert 0.8 * built["index_bytes"] < spaced < built["index_bytes"]
    assert built["rows"] == MESSAGES
    assert all(each["peak_bytes"] > 10_000_000 for each in report["systems"].values())
    assert report["server_peak_bytes"] > 10_000_000


def test_the_command_prints_one_object_and_builds_nothing_twice(
    report: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*")}
    picture = tmp_path / "times.png"
    arguments = ["bench", "--messages", str(MESSAGES), "--rounds", "1", "--folder", str(folder), "--json"]
    assert main([*arguments, "--plot", str(picture)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert list(printed) == list(report)
    assert list(printed["ratios"]) == list(RATIOS)
    assert printed["systems"] == report["systems"]
    assert {path: path.stat().st_mtime_ns for path in folder.glob("*")} == before
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_tables_name_every_query_and_every_ratio(report: dict[str, Any], tmp_path: Path) -> None:
    tables = {grid.title.split(",")[0]: grid for grid in grids(report)}
    names = [row[0].partition(":")[0] for row in tables[f"Counts over {MESSAGES // 1000}"].rows]
    assert names == [*NAMES, "geometric mean", "geometric mean without two letters"]
    assert [row[0] for row in tables["Ours divided by the other's"].rows] == list(RATIOS)
    page = "# Figures\n<!-- bench 1 -->\nold\n<!-- end 1 -->\nmore\n"
    section = section_of(report)
    assert replaced(page, "1", section) == f"# Figures\n<!-- bench 1 -->\n\n{section}\n\n<!-- end 1 -->\nmore\n"
    with pytest.raises(Unavailable, match="no marks for '2'"):
        replaced(page, "2", section)
    draw(report, tmp_path / "deep" / "times.png")
    assert (tmp_path / "deep" / "times.png").stat().st_size > 10_000


def test_systems_that_disagree_are_not_compared() -> None:
    class Fixed:
        def __init__(self, name: str, messages: int) -> None:
            self.name = name
            self._answered = Answered(messages)

        def count(self, query: StandardQuery) -> bytes:
            raise AssertionError(query)

        def search(self, query: StandardQuery) -> bytes:
            raise AssertionError(query)

        def counted(self, query: StandardQuery) -> Answered:
            assert query.name == "rare"
            return self._answered

        def found(self, query: StandardQuery) -> Answered:
            return self.counted(query)

        def close(self) -> None: ...

    with pytest.raises(Unavailable, match="one and other differ in messages: 3 and 4, asked 'rare'"):
        compared(StandardQuery("rare", ("word",)), [Fixed("one", 3), Fixed("other", 4)], Effort(3))


def test_the_queries_follow_from_the_corpus_alone_and_survive_json() -> None:
    choice = choose(generate(MESSAGES, 1))
    assert choose(generate(MESSAGES, 1)) == choice
    assert Choice.from_object(json.loads(json.dumps(choice.to_object()))) == choice
    assert [query.name for query in choice.queries] == list(NAMES)
    assert len({query.text for query in choice.queries}) >= len(NAMES) - 1
    by_name = {query.name: query for query in choice.queries}
    assert [len(by_name[name].text) for name in ("two letters, common", "two letters, no hit")] == [2, 2]
    assert by_name["role"].arguments["from_role"] == ["client"]
    assert by_name["time"].arguments == {"query": by_name["time"].text, "after": "2025-04", "before": "2025-07"}


def test_without_a_peer_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(runs, "version", missing)
    with pytest.raises(Unavailable, match="needs tantivy"):
        run(replace(Asked(MESSAGES), folder=folder), lambda _: None)
