"""The threat model claims nothing that no test or file shows."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "SECURITY.md").read_text("utf-8")
NAMED = re.findall(r"`((?:tests|engine|handler|infra)/[\w/.]+\.py)(?:::(\w+))?`", PAGE)
LINES = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| attempt |")]


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_what_shows_a_claim_exists(file: str, test: str) -> None:
    module = ast.parse((ROOT / file).read_text("utf-8"))
    names = {node.name for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert not test or test in names


def test_every_claim_names_what_shows_it() -> None:
    assert len(LINES) > 20
    assert [line for line in LINES if not re.search(r"\| `[\w/.]+\.py(::\w+)?`(, `[\w/.]+(::\w+)?`)* \|$", line)] == []


def test_the_page_is_linked_and_says_how_to_report() -> None:
    assert "(SECURITY.md)" in (ROOT / "README.md").read_text("utf-8")
    assert "## How to report" in PAGE
    assert "## What is not stopped" in PAGE
