"""`hayfork keys` and `hayfork exports`: credentials and links that go out, and how they end.

Decides what is printed of a key: its secret once, when it is made, and never again. Must never know how a key is
recognised.
"""

import re
import sys
from typing import Annotated, Any

import typer

from engine.errors import BadInput, NotFound, Unavailable, quoted
from engine.ports import ExportStore, Key, KeyStore
from engine.times import iso
from handler.cli.shell import Shell, now, write_json, written

__all__ = ["add_key_commands"]

_Json = Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")]
_Days = Annotated[
    str, typer.Option("--expires", help="When it ends: 90d, 12h, or never.", show_default=True, metavar="TIME")
]

_SPAN = re.compile(r"(\d{1,5})([dh])")
_UNITS = {"d": 86_400_000_000, "h": 3_600_000_000}
_ID_TRIES = 3
_FOREVER = 2**62
"""By then every export has expired, so all are listed."""


def add_key_commands(cli: typer.Typer) -> None:
    """Add both groups."""
    keys = typer.Typer(help="API keys: make, list, revoke, replace.", no_args_is_help=True)
    keys.command("create")(_create)
    keys.command("list")(_list)
    keys.command("revoke")(_revoke)
    keys.command("rotate")(_rotate)
    cli.add_typer(keys, name="keys")
    exports = typer.Typer(help="Links of exports.", no_args_is_help=True)
    exports.command("revoke")(_revoke_export)
    cli.add_typer(exports, name="exports")


def _create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Whom the key speaks for; a policy calls it key:NAME.")],
    *,
    expires: _Days = "90d",
    as_json: _Json = False,
) -> None:
    """Make a key and print it: this is the only time it is shown."""
    from handler.auth.api_key import KEY_NAME  # noqa: PLC0415 - a person waits for every import

    if not KEY_NAME.fullmatch(name):
        raise BadInput("bad_usage", f"{quoted(name)} is no name of a key", next_step="use letters, digits and _ . @ -")
    at = now()
    _made(_store(context), name, at, _end(expires, at), as_json=as_json)


def _list(context: typer.Context, *, as_json: _Json = False) -> None:
    """Every key: its id, whom it speaks for, its state and when it was last used."""
    at = now()
    rows = [_row(key, at) for key in _store(context).all_keys()]
    if as_json:
        write_json(rows)
        return
    console = written()
    for row in rows:
        used = f", last used {row['used']}" if "used" in row else ", never used"
        ends = f", expires {row['expires']}" if "expires" in row else ""
        console.print(f"{row['id']}  {row['name']}: {row['state']}, made {row['created']}{ends}{used}", markup=False)
    if not rows:
        console.print("there are no keys; hayfork keys create NAME makes one")


def _revoke(
    context: typer.Context,
    key_id: Annotated[str, typer.Argument(metavar="ID", help="As hayfork keys list shows it.")],
    *,
    as_json: _Json = False,
) -> None:
    """End a key. Every server notices within a minute."""
    key_id = _bare(key_id)
    if not _store(context).revoke(key_id, now()):
        raise _unknown(key_id)
    _say({"revoked": key_id}, f"revoked {key_id}; every server notices within a minute", as_json=as_json)


def _rotate(
    context: typer.Context,
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The key to replace.")],
    *,
    overlap: Annotated[str, typer.Option(help="How long the old one still works: 7d, 12h, 0h.")] = "1d",
    expires: _Days = "90d",
    as_json: _Json = False,
) -> None:
    """Make a new key for the same name and end the old one. Sessions and exports go on: they belong to the name."""
    key_id, store, at = _bare(key_id), _store(context), now()
    old = store.get(key_id)
    if old is None:
        raise _unknown(key_id)
    if not old.opens(at):
        raise BadInput("bad_usage", f"key {quoted(key_id)} has ended", next_step="make one with keys create")
    ends, expiry = at + _span("overlap", overlap), _end(expires, at)
    # The new one first: whoever is interrupted in between has one that works.
    _made(store, old.name, at, expiry, as_json=as_json)
    store.revoke(key_id, ends)


def _revoke_export(
    context: typer.Context,
    link: Annotated[str, typer.Argument(metavar="LINK", help="Its link, or the id at the end of that.")],
    *,
    as_json: _Json = False,
) -> None:
    """Make an export's link dead at once and remove the file."""
    from handler.wiring import build_exports  # noqa: PLC0415 - a person waits for every import

    shell: Shell = context.obj
    exports = build_exports(shell.settings(), now)
    exports.revoke(_export_of(exports, link))
    _say({"revoked": True}, "revoked; the link is dead and the file is gone", as_json=as_json)


def _export_of(exports: ExportStore, link: str) -> str:
    """The id of an export by its link; on a laptop a link is a path, which holds a digest of the id."""
    found = link.rpartition("/")[2]
    if exports.get(found) is not None:
        return found
    for each in exports.expired(_FOREVER) if "/" in link else ():
        export = exports.get(each)
        if export is not None and exports.link(export) == link:
            return each
    raise NotFound("unknown_export", "this export is unknown or expired", next_step="give its whole link")


def _store(context: typer.Context) -> KeyStore:
    from handler.wiring import build_keys  # noqa: PLC0415 - a person waits for every import

    shell: Shell = context.obj
    return build_keys(shell.settings())


def _made(store: KeyStore, name: str, at: int, expires_at: int | None, *, as_json: bool) -> None:
    from handler.auth.api_key import mint_key  # noqa: PLC0415 - a person waits for every import

    for _ in range(_ID_TRIES):
        key, credential = mint_key(name, at, expires_at)
        if store.add(key):
            told = {**_row(key, at), "key": credential}
            _say(told, f"{credential}\nkeep it now: it is not shown again", as_json=as_json)
            return
    raise Unavailable("store_unreachable", "no id was free", next_step="call again")


def _row(key: Key, at: int) -> dict[str, Any]:
    revoked = key.revoked_at is not None and key.revoked_at <= at
    expired = key.expires_at is not None and key.expires_at <= at
    row = {
        "id": key.key_id,
        "name": key.name,
        "state": "revoked" if revoked else "expired" if expired else "works",
        "created": iso(key.created_at),
    }
    instants = {"expires": key.expires_at, "revoked": key.revoked_at, "used": key.used_at}
    return {**row, **{name: iso(instant) for name, instant in instants.items() if instant is not None}}


def _say(told: dict[str, Any], words: str, *, as_json: bool) -> None:
    if as_json:
        write_json(told)
    else:
        sys.stdout.write(words + "\n")


def _end(expires: str, at: int) -> int | None:
    return None if expires == "never" else at + _span("expires", expires)


def _span(option: str, given: str) -> int:
    found = _SPAN.fullmatch(given)
    if found is None:
        raise BadInput("bad_usage", f"--{option} {quoted(given)}", next_step="give a number of days or hours: 90d, 12h")
    return int(found[1]) * _UNITS[found[2]]


def _bare(given: str) -> str:
    """An id; of a whole key that someone pasted, its public part."""
    return given.removeprefix("hf_").partition("_")[0]


def _unknown(key_id: str) -> NotFound:
    return NotFound("unknown_key", f"no key has the id {quoted(key_id)}", next_step="see hayfork keys list")
