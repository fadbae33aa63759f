"""`hayfork bench`: the benchmark and the report on ranking.

Decides the options and what is printed; the work is done by `handler.bench`, which is imported only here and only
when the command runs, since its peers are development packages.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handler.cli.shell import write_json, written

if TYPE_CHECKING:
    from handler.bench.run import Asked

__all__ = ["bench"]

_DOCUMENTED = (40_000, 1_000_000)
"""The sizes whose figures stand in the documentation."""


def bench(
    *,
    messages: Annotated[int, typer.Option(help="Size of the made-up corpus: 40000, 1000000, 10000000.")] = 40_000,
    rounds: Annotated[int, typer.Option(min=1, help="How often each query is measured.")] = 15,
    s3: Annotated[bool, typer.Option("--s3", help="Requests and bytes of a cold process over a local S3.")] = False,
    ranking: Annotated[bool, typer.Option("--ranking", help="How well known messages are found, instead.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the times as a PNG.", show_default=False)] = None,
    update_docs: Annotated[
        bool, typer.Option("--update-docs", help="Measure all that docs/ tells, and write it there.")
    ] = False,
    folder: Annotated[Path, typer.Option(help="Where corpora and indexes are kept between runs.")] = Path(
        "build/bench"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")] = False,
) -> None:
    """Measure this engine beside SQLite FTS5, tantivy and its own scan, over made-up messages."""
    from handler.bench.measure import Effort  # noqa: PLC0415 - see above
    from handler.bench.run import Asked  # noqa: PLC0415 - likewise

    asked = Asked(messages, folder=folder, effort=Effort(rounds))
    if update_docs:
        _update_docs(asked)
        return
    report = _ranking(asked) if ranking else _run(asked, s3=s3)
    if plot is not None and not ranking:
        from handler.bench.plot import draw  # noqa: PLC0415 - likewise

        draw(report, plot)
    if as_json:
        write_json(report)
    else:
        from handler.bench.report import show  # noqa: PLC0415 - likewise

        show(written(), report)


def _run(asked: "Asked", *, s3: bool) -> dict[str, Any]:
    from handler.bench.run import run  # noqa: PLC0415 - see above

    report = run(asked, _told)
    if s3:
        from handler.bench.s3 import measure  # noqa: PLC0415 - likewise

        report["s3"] = measure(asked, _told)
    return report


def _ranking(asked: "Asked") -> dict[str, Any]:
    from handler.bench.ranking import report  # noqa: PLC0415 - see above

    return report(asked.folder, _told)


def _update_docs(asked: "Asked") -> None:
    from dataclasses import replace  # noqa: PLC0415 - see above

    from handler.bench.documents import BENCHMARK, RANKING, update  # noqa: PLC0415 - likewise
    from handler.bench.plot import draw  # noqa: PLC0415 - likewise

    for messages in _DOCUMENTED:
        report = _run(replace(asked, messages=messages), s3=messages == max(_DOCUMENTED))
        update(BENCHMARK, str(messages), report)
    draw(report, BENCHMARK.with_suffix(".png"))
    update(RANKING, "ranking", _ranking(asked))
    _told(f"{BENCHMARK} and {RANKING} hold the new figures")


def _told(what: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"{what}\n")
