"""Each promise of the product is listed with the tests that prove it: none without a test, no test gone.

And the other way round: every test through the front door proves a promise that is listed.
"""

import ast
import json
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent
PROMISES: list[dict[str, Any]] = [
    json.loads(line) for line in (TESTS / "promises.jsonl").read_text("utf-8").splitlines()
]


def names_in(file: Path) -> list[str]:
    """The tests of a file, as `tests/package/test_module.py::test_name`."""
    module = ast.parse(file.read_text("utf-8"))
    place = file.relative_to(TESTS.parent).as_posix()
    return [
        f"{place}::{node.name}"
        for node in module.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]


def test_every_promise_names_tests_that_exist() -> None:
    existing = {name for file in TESTS.rglob("test_*.py") for name in names_in(file)}
    assert [promise["promise"] for promise in PROMISES if not promise["tests"]] == []
    assert sorted({name for promise in PROMISES for name in promise["tests"]} - existing) == []


def test_every_test_through_the_front_door_proves_a_promise() -> None:
    named = {name for promise in PROMISES for name in promise["tests"]}
    front = {name for file in (TESTS / "front").glob("test_*.py") for name in names_in(file)}
    assert sorted(front - named) == []


def test_no_promise_is_made_twice() -> None:
    said = [promise["promise"] for promise in PROMISES]
    assert len(said) == len(set(said))
