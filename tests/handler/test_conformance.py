"""The official conformance suite against a running server, for every version that is served."""

import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.handler.running import VERSIONS, running
from tests.handler.wired_app import wired_app

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
SUITE = ROOT / "build" / "conformance" / "node_modules" / ".bin" / "conformance"
LISTED = json.loads((Path(__file__).parent / "conformance" / "scenarios.json").read_text("utf-8"))
APPLIES: Mapping[str, Mapping[str, str]] = LISTED["applies"]
NOT_APPLICABLE: Mapping[str, str] = LISTED["not_applicable"]

Outcome = Mapping[str, frozenset[str]]
"""By scenario, the ids of the checks that failed or warned."""


@pytest.fixture(scope="module")
def node() -> list[str]:
    """The command line of the suite, which the Makefile installs."""
    make = ["make", "--silent", "conformance", f"VENV={BIN.parent}"]
    subprocess.run(make, cwd=ROOT, check=True, capture_output=True, timeout=300)
    return [str(BIN / "node"), str(SUITE)]


@pytest.fixture(scope="module")
def outcomes(node: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Outcome]]:
    """What the suite found, by version."""
    with running(wired_app(tmp_path_factory.mktemp("corpus"))) as port:
        yield {version: outcome(node, port, version, tmp_path_factory.mktemp(version)) for version in VERSIONS}


def outcome(node: list[str], port: int, version: str, folder: Path) -> Outcome:
    url = f"http://127.0.0.1:{port}/mcp"
    command = [*node, "server", "--url", url, "--suite", "all", "--spec-version", version, "-o", str(folder)]
    ran = subprocess.run(
        command, cwd=folder, env=dict(os.environ), capture_output=True, text=True, timeout=240, check=False
    )
    failed: dict[str, frozenset[str]] = {}
    for scenario in scenarios(node, version):
        results = [p for p in folder.glob(f"server-{scenario}-2*/checks.json") if p.is_file()]
        assert results, f"{scenario} did not run: {ran.stdout[-500:]} {ran.stderr[-500:]}"
        checks: list[dict[str, Any]] = json.loads(results[0].read_text("utf-8"))
        failed[scenario] = frozenset(c["id"] for c in checks if c["status"] not in {"SUCCESS", "INFO", "SKIPPED"})
    return failed


def scenarios(node: list[str], version: str) -> list[str]:
    listing = subprocess.run(
        [*node, "list", "--server", "--spec-version", version],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    lines = [line.strip() for line in listing.stdout.splitlines()]
    return [line.removeprefix("- ").partition(" ")[0] for line in lines if line.startswith("- ")]


def test_every_scenario_is_listed_once_and_every_listed_one_exists(outcomes: Mapping[str, Outcome]) -> None:
    run = {scenario for outcome in outcomes.values() for scenario in outcome}
    assert run == set(APPLIES) | set(NOT_APPLICABLE)
    assert not set(APPLIES) & set(NOT_APPLICABLE)
    assert all(NOT_APPLICABLE.values())


@pytest.mark.parametrize("version", VERSIONS)
def test_every_scenario_that_applies_passes(outcomes: Mapping[str, Outcome], version: str) -> None:
    failed = {
        scenario: sorted(checks - set(APPLIES[scenario]))
        for scenario, checks in outcomes[version].items()
        if scenario in APPLIES
    }
    assert len(failed) >= 6
    assert {scenario: checks for scenario, checks in failed.items() if checks} == {}


def test_nothing_is_excused_that_passes(outcomes: Mapping[str, Outcome]) -> None:
    failed: dict[str, set[str]] = defaultdict(set)
    for found in outcomes.values():
        for scenario, checks in found.items():
            failed[scenario] |= checks
    assert [name for name in NOT_APPLICABLE if not failed[name]] == []
    idle = {name: set(excused) - failed[name] for name, excused in APPLIES.items()}
    assert {name: checks for name, checks in idle.items() if checks} == {}


def test_the_suite_is_the_pinned_one(node: list[str]) -> None:
    version = subprocess.run([*node, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    wanted = json.loads((Path(__file__).parent / "conformance" / "package.json").read_text("utf-8"))
    # The suite's own version flag lags behind its package.
    assert version.strip()
    installed = json.loads((SUITE.parents[1] / "@modelcontextprotocol/conformance/package.json").read_text("utf-8"))
    assert wanted["dependencies"] == {"@modelcontextprotocol/conformance": installed["version"]}
    assert shutil.which(node[0])
