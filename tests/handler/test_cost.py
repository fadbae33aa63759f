"""The cost tables follow from prices and measurements, and the page from both."""

import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import BadInput
from handler.cli import main
from handler.cost import BEGIN, END, call_lines, cost_page, cost_tables, load_inputs, refresh_lines, replaced
from handler.measure import SHARES, as_toml, measure
from handler.signals import METRICS
from handler.wiring import build_counted_app, build_snapshots
from tests.handler.wired_app import NOON, wired_settings
from tests.infra.template_reader import load_template

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_holds_what_its_command_makes() -> None:
    page = (DOCS / "cost.md").read_text("utf-8")
    assert page == cost_page(page, *load_inputs(DOCS))


def test_the_command_writes_the_page_and_prints_the_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("prices.toml", "measured.toml"):
        shutil.copy(DOCS / name, tmp_path / name)
    (tmp_path / "cost.md").write_text(f"# Head\n{BEGIN}\nold\n{END}\ntail\n", "utf-8")
    assert main(["cost", "--folder", str(tmp_path)]) == 0
    tables = capsys.readouterr().out
    assert main(["cost", "--folder", str(tmp_path), "--write"]) == 0
    assert (tmp_path / "cost.md").read_text("utf-8") == f"# Head\n{BEGIN}\n{tables}{END}\ntail\n"


def test_a_million_calls_add_up_by_hand() -> None:
    prices, measured = load_inputs(DOCS)
    prices["assumed"] |= {"cold_share": 0.0, "overhead_ms": 0, "mcp_memory_mb": 1_024, "log_bytes": 1_000}
    for each in measured["calls"].values():
        each |= {
            "milliseconds": 100,
            "s3_requests": 2,
            "dynamodb_reads": 1,
            "dynamodb_writes": 1,
            "answer_bytes": 5_000,
        }
    costs = {line.what: round(line.cost, 6) for line in call_lines(prices, measured)}
    assert costs == {
        "Lambda, time": 1.33334,
        "Lambda, requests": 0.2,
        "Lambda, restores (SnapStart)": 0.0,
        "HTTP API": 1.0,
        "S3, reads": 0.8,
        "DynamoDB, reads": 0.125,
        "DynamoDB, writes": 0.625,
        "DynamoDB, metering": 2.625,
        "Logs and metrics written": 0.5,
        "Answers sent": 0.45,
    }
    measured["refresh"] |= {"seconds": 100, "s3_requests": 10}
    prices["assumed"] |= {"refresh_memory_mb": 2_048, "refresh_storage_mb": 512}
    assert round(sum(line.cost for line in refresh_lines(prices, measured)), 6) == 0.002718


def test_what_is_assumed_agrees_with_the_template() -> None:
    prices, _ = load_inputs(DOCS)
    template, assumed = load_template(), prices["assumed"]
    parameters = template.parameters
    assert assumed["mcp_memory_mb"] == int(parameters["McpMemory"])
    assert assumed["refresh_memory_mb"] == int(parameters["RefreshMemory"])
    assert assumed["refresh_storage_mb"] == int(parameters["RefreshStorage"])
    assert assumed["alarms"] == len(template.of_type("AWS::CloudWatch::Alarm"))
    of_calls = set(METRICS) - {"CanaryFailures", "Refreshes", "RefreshFailures", "RefreshTime", "Messages"}
    of_refreshes = {"Refreshes", "RefreshFailures", "RefreshTime", "S3Requests", "Messages"}
    assert assumed["metrics"] == 2 * len(of_calls) + len({"CanaryFailures"}) + len(of_refreshes)
    assert {"OpenSearch", "PostgreSQL", "Pinecone"} <= {
        word for each in prices["alternatives"] for word in each["name"].replace(",", "").split()
    }


def test_alternatives_that_never_cost_more_are_told_as_such() -> None:
    prices, measured = load_inputs(DOCS)
    prices["alternatives"] = [{"name": "free", "parts": [{"count": 1, "hourly": 0.0}]}]
    assert "| free | 0.00 | 0.00 | 0.00 | 0.00 | never dearer |" in cost_tables(prices, measured).splitlines()


def test_every_price_says_where_it_stands() -> None:
    prices, _ = load_inputs(DOCS)
    named = [name for each in prices["sources"] for name in each["prices"]]
    assert sorted(named) == sorted([*prices["aws"], *(each["name"] for each in prices["alternatives"])])
    assert all(bool(each["checked"]) == bool(each["dated"]) for each in prices["sources"])
    assert all(each["page"].startswith("https://") for each in prices["sources"])


@pytest.mark.parametrize(
    ("break_it", "code"),
    [
        (lambda folder: (folder / "prices.toml").unlink(), "no_config"),
        (lambda folder: (folder / "measured.toml").write_text("= 1"), "bad_config"),
    ],
)
def test_missing_and_broken_inputs_are_named(tmp_path: Path, break_it: Callable[[Path], object], code: str) -> None:
    for name in ("prices.toml", "measured.toml"):
        shutil.copy(DOCS / name, tmp_path / name)
    break_it(tmp_path)
    with pytest.raises(BadInput) as caught:
        load_inputs(tmp_path)
    assert caught.value.code == code


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(BadInput) as caught:
        replaced("# nothing", "text")
    assert caught.value.code == "bad_config"


def test_measuring_gives_every_number_the_tables_need(tmp_path: Path) -> None:
    settings = wired_settings(tmp_path)
    found = measure(
        lambda observe: build_counted_app(settings, lambda: NOON, observe),
        build_snapshots(settings, lambda: NOON),
        ["docker", "код"],
        rounds=1,
    )
    measured = tomllib.loads(as_toml(found, "2026-12-01", "a machine"))
    prices, written = load_inputs(DOCS)
    assert {name: sorted(part) for name, part in measured["calls"].items()} == {
        name: sorted(part) for name, part in written["calls"].items()
    }
    assert set(measured["calls"]) == set(SHARES)
    assert round(sum(SHARES.values()), 9) == 1
    assert measured["refresh"]["messages"] == 120
    assert measured["calls"]["unseen_messages"]["dynamodb_writes"] <= 1
    assert "a machine" in cost_tables(prices, measured)


def test_measuring_without_a_query_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "--measure"]) == 2
    assert capsys.readouterr().err.startswith("bad_usage: --measure needs queries")
