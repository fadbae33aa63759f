"""The table of faults by tools: read from `table.txt`, and written for `docs/faults.md`."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from tests.faults.bench import TOOLS

__all__ = ["Row", "as_markdown", "rows"]

_FILE = Path(__file__).with_name("table.txt")


@dataclass(frozen=True, slots=True)
class Row:
    """One fault: where, what and when, and by tool what the caller sees."""

    where: str
    what: str
    when: str
    cells: dict[str, str]

    @property
    def name(self) -> str:
        """For test reports."""
        return f"{self.where}, {self.what}, {self.when}"

    @property
    def is_local(self) -> bool:
        """Whether it needs nothing but this machine."""
        return self.where.endswith(("folder", "SQLite"))


def rows() -> Iterator[Row]:
    """The rows of the file in their order."""
    for line in _FILE.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            where, what, when, *cells = (part.strip() for part in line.split("|"))
            yield Row(where, what, when, dict(zip(TOOLS, cells, strict=True)))


def as_markdown() -> str:
    """The tables of the documentation, one for each place of a fault."""
    parts = []
    for where, group in groupby(rows(), key=lambda row: row.where):
        lines = [f"## {where[0].upper()}{where[1:]}", "", f"| what | when | {' | '.join(TOOLS)} |", "|---" * 8 + "|"]
        lines += [f"| {row.what} | {row.when} | {' | '.join(row.cells.values())} |" for row in group]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"
