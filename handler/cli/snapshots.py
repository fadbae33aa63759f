"""`hayfork snapshots`: which there are, which one answers, and which one is to answer whatever a refresh brings.

Decides words and options. A snapshot is pinned only when its files are there as its manifest says. Must never know
how anything is stored.
"""

from typing import Annotated, Any

import typer

from engine.errors import BrokenSnapshot, EngineError, NotFound
from engine.ports import SnapshotStore
from engine.snapshot.format import Manifest
from engine.times import iso
from handler.cli.shell import Shell, now, write_json, written
from handler.cli.show import show_facts

__all__ = ["add_snapshot_commands"]

_Json = Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")]


def add_snapshot_commands(cli: typer.Typer) -> None:
    """Give `cli` the commands `snapshots list`, `snapshots pin` and `snapshots unpin`."""
    group = typer.Typer(help="List snapshots, and roll back to one.", no_args_is_help=True)
    group.command("list")(_list)
    group.command("pin")(_pin)
    group.command("unpin")(_unpin)
    cli.add_typer(group, name="snapshots")


def _list(context: typer.Context, *, as_json: _Json = False) -> None:
    """All snapshots, oldest first, with what each holds; `*` marks the one that answers."""
    store = _store(context)
    current, pinned = store.current(), store.pinned()
    told = [_described(store, each, current, pinned=pinned) for each in store.snapshots()]
    if as_json:
        write_json(told)
        return
    console = written()
    for each in told:
        mark = "*" if each["current"] else " "
        held = f"{each['messages']:,} messages, {each['bytes']:,} bytes" if "messages" in each else each["state"]
        console.print(
            f"{mark} {each['snapshot']}  {each.get('made', '')}  {held}{'  pinned' if each['pinned'] else ''}"
        )
    if not told:
        console.print("none yet; run hayfork refresh")


def _pin(
    context: typer.Context,
    snapshot: Annotated[str, typer.Argument(help="Its id; without one the snapshot that answers now.")] = "",
    *,
    as_json: _Json = False,
) -> None:
    """Make a snapshot answer, and keep it there: a refresh then brings new ones in and no more."""
    store = _store(context)
    current = store.current()
    wanted = snapshot or current
    if wanted is None:
        raise NotFound("no_snapshot", "there is no snapshot yet", next_step="run hayfork refresh")
    _check_whole(store, wanted)
    store.point(wanted, current, pinned=True)
    _told({"snapshot": wanted, "pinned": True, "before": current}, as_json=as_json)


def _unpin(context: typer.Context, *, as_json: _Json = False) -> None:
    """Make the newest snapshot answer, and let a refresh replace it."""
    store = _store(context)
    current, held = store.current(), store.snapshots()
    if not held:
        raise NotFound("no_snapshot", "there is no snapshot yet", next_step="run hayfork refresh")
    _check_whole(store, held[-1])
    store.point(held[-1], current)
    _told({"snapshot": held[-1], "pinned": False, "before": current}, as_json=as_json)


def _store(context: typer.Context) -> SnapshotStore:
    from handler.wiring import build_snapshots  # noqa: PLC0415 - `--help` and errors should not wait for it

    shell: Shell = context.obj
    return build_snapshots(shell.settings(), now)


def _described(store: SnapshotStore, snapshot_id: str, current: str | None, *, pinned: bool) -> dict[str, Any]:
    own = snapshot_id == current
    told: dict[str, Any] = {"snapshot": snapshot_id, "current": own, "pinned": own and pinned}
    try:
        manifest = _check_whole(store, snapshot_id)
    except EngineError as error:
        return told | {"state": error.message}
    return told | {
        "made": iso(manifest.created_at),
        "messages": manifest.rows,
        "bytes": sum(entry.size for entry in manifest.files),
    }


def _check_whole(store: SnapshotStore, snapshot_id: str) -> Manifest:
    from engine.snapshot.open import whole_manifest  # noqa: PLC0415 - `--help` and errors should not wait for it

    try:
        return whole_manifest(store, snapshot_id)
    except BrokenSnapshot as error:
        raise BrokenSnapshot(error.code, error.message, next_step="choose another snapshot") from error


def _told(report: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        write_json(report)
    else:
        show_facts(written(), report)
