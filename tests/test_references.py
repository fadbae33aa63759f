"""What a module tells its reader to look up is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = re.compile(r"(?<![\w/-])(?:[\w-]+/)*[\w-]+\.md\b")
FOLDERS = (ROOT, ROOT / "docs", ROOT / "docs" / "decisions")


def test_some_modules_referred_to_pages_that_nobody_has() -> None:
    named = {
        (file.relative_to(ROOT).as_posix(), page)
        for package in ("engine", "infra", "handler")
        for file in (ROOT / package).rglob("*.py")
        for page in PAGE.findall(file.read_text("utf-8"))
    }
    assert len(named) > 10
    assert {pair for pair in named if not any((folder / pair[1]).is_file() for folder in FOLDERS)} == set()
