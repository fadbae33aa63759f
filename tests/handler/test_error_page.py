"""docs/errors.md names every code that can be raised, and no other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ERRORS = {"BadInput", "BrokenSnapshot", "EngineError", "NotFound", "Refused", "Unavailable"}


def raised() -> Iterator[str]:
    """The first argument of every error made in the packages."""
    for package in ("engine", "infra", "handler"):
        for file in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS:
                    code = node.args[0] if node.args else None
                    if isinstance(code, ast.Constant) and isinstance(code.value, str):
                        yield code.value


def test_the_page_of_errors_names_every_code_and_no_other() -> None:
    page = (ROOT / "docs" / "errors.md").read_text("utf-8")
    named = re.findall(r"^\| `([a-z_]+)` \|", page, re.MULTILINE)
    assert sorted(named) == sorted(set(raised()))
