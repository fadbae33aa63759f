"""The medians of a run as a picture: a group of bars for each query, on a logarithmic scale.

Decides the looks only. matplotlib is a development package and is imported only here, when a picture is asked for.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.errors import Unavailable

__all__ = ["draw"]

_COLOURS = {"hayfork": "#1b7837", "scan": "#a6dba0", "sqlite_fts5": "#2166ac", "tantivy": "#b2182b"}


def draw(report: Mapping[str, Any], file: Path) -> None:
    """Write a PNG of a run's counts and searches.

    Raises:
        Unavailable: `bench_failed` when matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - see above
    except ImportError:
        raise Unavailable(
            "bench_failed",
            "a picture needs matplotlib, a development package",
            next_step="run make setup, or leave --plot out",
        ) from None
    figure = Figure(figsize=(11, 8), layout="constrained")
    for axes, what in zip(figure.subplots(2, 1), ("count", "search"), strict=True):
        names = [row["name"] for row in report["queries"]] + ["geometric mean"]
        systems = list(report["geometric_means_ms"][what])
        for place, system in enumerate(systems):
            values = [row[f"{what}_ms"][system]["median"] for row in report["queries"]]
            values.append(report["geometric_means_ms"][what][system])
            at = [n + (place - (len(systems) - 1) / 2) * 0.2 for n in range(len(names))]
            axes.bar(at, values, 0.2, label=system, color=_COLOURS.get(system))
        axes.set_yscale("log")
        axes.set_ylabel("milliseconds")
        axes.set_xticks(range(len(names)), names, rotation=25, ha="right")
        axes.set_title(f"{'a count' if what == 'count' else 'a search'}, {report['messages']:,} messages, warm, median")
        axes.grid(axis="y", alpha=0.3)
    figure.axes[0].legend(ncols=len(_COLOURS))
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)
