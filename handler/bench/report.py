"""The object of a run as tables: for a terminal, and as Markdown for the documentation.

Decides the looks only. Must never measure anything.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["Grid", "grids", "markdown", "show"]

_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Grid:
    """One table: the first column is names, the others numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def grids(report: Mapping[str, Any]) -> Iterator[Grid]:
    """The tables of a run's object, of one with `s3` alone, or of one of the ranking."""
    if "ratios" in report:
        yield from _of_run(report)
    if "s3" in report:
        yield _of_s3(report["s3"])
    for name, key in report.get("ranking", {}).items():
        yield _of_ranking(name, key)


def _of_run(report: Mapping[str, Any]) -> Iterator[Grid]:
    for what, title in (("count", "Counts"), ("search", "Searches of eight excerpts")):
        yield _times(report, what, f"{title} over {report['messages']:,} messages, warm, ms: median (95th percentile)")
    rows = [
        (
            name,
            f"{built['seconds']:,.1f}",
            f"{built['messages_per_second']:,}",
            f"{built['peak_bytes'] / _MB:,.0f}",
            f"{built['index_bytes'] / _MB:,.1f}",
            f"{built['index_share']:.1%}",
            f"{(built['index_bytes'] - built['unspaced_bytes']) / built['text_bytes']:.1%}"
            if built["unspaced_bytes"]
            else "",
        )
        for name, built in report["systems"].items()
    ]
    columns = ("", "build, s", "messages/s", "peak of the build, MB", "index, MB", "index of text", "without bigrams")
    yield Grid("Building", columns, tuple(rows))
    few = report["ratios_without_two_letters"]
    ratios = tuple(
        (name, f"{value:.3f}", f"{few[name]:.3f}" if name in few else "") for name, value in report["ratios"].items()
    )
    yield Grid("Ours divided by the other's", ("", "ratio", "without two letters"), ratios)
    peak = f"{report['server_peak_bytes'] / _MB:,.0f}"
    yield Grid("A server that answered all of it", ("", "peak of memory, MB"), (("hayfork", peak),))


def _times(report: Mapping[str, Any], what: str, title: str) -> Grid:
    systems = tuple(report["geometric_means_ms"][what])
    rows = [
        (
            f"{row['name']}: {_asked(row['arguments'])}",
            f"{row['found']:,}",
            *(f"{row[f'{what}_ms'][name]['median']:,.2f} ({row[f'{what}_ms'][name]['p95']:,.2f})" for name in systems),
        )
        for row in report["queries"]
    ]
    for label, key in (("", "geometric_means_ms"), (" without two letters", "geometric_means_ms_without_two_letters")):
        means = report[key][what]
        rows.append((f"geometric mean{label}", "", *(f"{means[name]:,.2f}" for name in systems)))
    return Grid(title, ("query", "matches", *systems), tuple(rows))


def _asked(arguments: Mapping[str, Any]) -> str:
    said = [str(arguments["query"])]
    said += [f"{name} {_plain(value)}" for name, value in arguments.items() if name != "query"]
    return ", ".join(said)


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _of_s3(found: Mapping[str, Any]) -> Grid:
    rows = tuple(
        (step["name"], f"{step['requests']:,}", f"{step['bytes'] / _MB:,.2f}", f"{step['share']:.2%}")
        for step in found["steps"]
    )
    title = f"Over S3, {found['messages']:,} messages, a snapshot of {found['snapshot_bytes'] / _MB:,.1f} MB"
    return Grid(title, ("", "requests", "MB", "of the snapshot"), rows)


def _of_ranking(name: str, found: Mapping[str, Any]) -> Grid:
    rows = tuple(
        (ranking, f"{told['mean_reciprocal_rank']:.3f}", f"{told['hits_at_8']:.1%}", f"{told['found']:.1%}")
        for ranking, told in found["rankings"].items()
    )
    less = found["less_fts5"]
    rows += (("by score alone, less FTS5, 95 % interval", f"{less['mean']:+.3f} ± {less['margin']:.3f}", "", ""),)
    columns = ("", "mean reciprocal rank", "among the first 8", f"among the first {found['depth']}")
    return Grid(f"{name}: {found['queries']} queries", columns, rows)


def show(console: Console, report: Mapping[str, Any]) -> None:
    """Print the tables."""
    for grid in grids(report):
        table = Table(title=Text(grid.title, "bold"), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for place, column in enumerate(grid.columns):
            table.add_column(column, justify="right" if place else "left", overflow="fold")
        for row in grid.rows:
            table.add_row(*(Text(cell) for cell in row))
        console.print(table)


def markdown(grid: Grid) -> str:
    """The table in Markdown under its title."""
    ruler = "|".join(("---", *("---:" for _ in grid.columns[1:])))
    lines = [f"**{grid.title}**", "", _line(grid.columns), f"|{ruler}|", *map(_line, grid.rows)]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
