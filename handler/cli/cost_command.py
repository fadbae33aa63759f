"""`hayfork cost`: the tables of what a deployment costs, and the measurements behind them.

Decides options and files. The arithmetic is `handler.cost`, the measuring `handler.measure`.
"""

import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from engine.errors import BadInput
from handler.cli.shell import Shell, now

__all__ = ["cost"]


def cost(
    context: typer.Context,
    *,
    folder: Annotated[Path, typer.Option(help="Where prices.toml, measured.toml and cost.md are.")] = Path("docs"),
    write: Annotated[bool, typer.Option("--write", help="Write the tables into cost.md.")] = False,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure the configured corpus first, and write measured.toml.")
    ] = False,
    query: Annotated[
        list[str] | None, typer.Option(help="With --measure: a query that finds something; again for more.")
    ] = None,
) -> None:
    """What a million calls, a refresh and a month cost, beside what is always on."""
    from handler.cost import cost_page, cost_tables, load_inputs  # noqa: PLC0415 - a person waits for every import

    if measure:
        _measure(context.obj, folder, query or [])
    prices, measured = load_inputs(folder)
    if not write:
        sys.stdout.write(cost_tables(prices, measured) + "\n")
        return
    page = folder / "cost.md"
    page.write_text(cost_page(page.read_text("utf-8"), prices, measured), "utf-8")


def _measure(shell: Shell, folder: Path, queries: list[str]) -> None:
    from handler.measure import as_toml, measure  # noqa: PLC0415 - see above
    from handler.wiring import build_counted_app, build_snapshots  # noqa: PLC0415 - see above

    if not queries:
        raise BadInput("bad_usage", "--measure needs queries", next_step="name one that finds something by --query")
    settings = shell.settings()
    found = measure(lambda observe: build_counted_app(settings, now, observe), build_snapshots(settings, now), queries)
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    stores = "S3 and DynamoDB" if settings.corpus.root.startswith("s3://") else "a folder"
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    (folder / "measured.toml").write_text(as_toml(found, today, f"{machine}, over {stores}"), "utf-8")
