"""The figures in the documentation: each table stands between two marks and is written by the command above it.

Decides where a table goes. Must never measure anything.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.errors import Unavailable
from handler.bench.report import grids, markdown

__all__ = ["BENCHMARK", "RANKING", "replaced", "section_of", "update"]

BENCHMARK = Path("docs") / "benchmark.md"
RANKING = Path("docs") / "ranking.md"


def section_of(report: Mapping[str, Any]) -> str:
    """What a report's tables say, in Markdown, with the machine they were made on."""
    machine = report["machine"]
    versions = ", ".join(f"{name} {value}" for name, value in machine.items() if name not in ("processors", "system"))
    head = f"{machine['processors']} processors, {machine['system']}, {versions}."
    return "\n\n".join([head, *(markdown(grid) for grid in grids(report))])


def replaced(page: str, name: str, text: str) -> str:
    """The page with `text` between its marks `<!-- bench NAME -->` and `<!-- end NAME -->`.

    Raises:
        Unavailable: `bench_failed` when the page has no such marks.
    """
    begin, end = f"<!-- bench {name} -->", f"<!-- end {name} -->"
    pattern = re.compile(f"({re.escape(begin)}\n).*?({re.escape(end)})", re.DOTALL)
    if not pattern.search(page):
        raise Unavailable("bench_failed", f"the page has no marks for '{name}'", next_step=f"write {begin} and {end}")
    return pattern.sub(lambda found: f"{found[1]}\n{text}\n\n{found[2]}", page, count=1)


def update(file: Path, name: str, report: Mapping[str, Any]) -> None:
    """Write a report's tables between the marks of that name; raises as `replaced`."""
    if not file.is_file():
        raise Unavailable(
            "bench_failed", f"there is no {file.as_posix()} here", next_step="run it where the sources are"
        )
    file.write_text(replaced(file.read_text("utf-8"), name, section_of(report)), "utf-8")
