"""`hayfork usage` and `hayfork credit`: what callers have used, and the credit they pay from.

Decides options and what is printed; money is given and shown in dollars, exact to a micro-dollar, and in JSON and CSV
in micro-dollars. Must never know how usage is kept.
"""

import csv
import re
import secrets
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from engine.errors import BadInput, NotFound, quoted
from engine.usage import Account, Grant, UsageStore
from handler.cli.shell import Shell, now, write_json, written
from handler.metering.prices import dollars
from handler.metering.report import month_row, named_month, record_row

__all__ = ["add_usage_commands"]

_Json = Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")]
_Caller = Annotated[str, typer.Argument(metavar="CALLER", help="As hayfork usage shows it: key:NAME and the like.")]

_AMOUNT = re.compile(r"(\d{1,9})(?:\.(\d{1,6}))?", re.ASCII)
_REFERENCE = re.compile(r"[!-~]{1,200}", re.ASCII)
_MICRO = 1_000_000
_DAY = 86_400 * _MICRO


def add_usage_commands(cli: typer.Typer) -> None:
    """Give `cli` the commands `usage`, `credit show`, `credit grant` and `credit refund`."""
    cli.command("usage")(_usage)
    group = typer.Typer(help="Prepaid credit of callers.", no_args_is_help=True)
    group.command("show")(_show)
    group.command("grant")(_grant)
    group.command("refund")(_refund)
    cli.add_typer(group, name="credit")


def _usage(
    context: typer.Context,
    *,
    month: Annotated[str, typer.Option(help="For example 2026-12. Default: this one, UTC.", show_default=False)] = "",
    caller: Annotated[str, typer.Option(help="Only this caller.", show_default=False)] = "",
    calls: Annotated[bool, typer.Option("--calls", help="Each call of --caller in place of sums.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print a table of comma-separated values.")] = False,
    as_json: _Json = False,
) -> None:
    """What each caller has used in a month: calls, bytes, requests and money."""
    if calls and not caller:
        raise BadInput("bad_usage", "--calls lists the calls of one caller", next_step="name it by --caller")
    if as_csv and as_json:
        raise BadInput("bad_usage", "--csv and --json are two forms", next_step="give one of them")
    wanted, store = named_month(month, now()), _store(context)
    if calls:
        rows = [record_row(usage) for usage in store.records(caller, wanted)]
    elif caller:
        rows = [month_row(store.month(caller, wanted))]
    else:
        rows = [month_row(each) for each in store.months(wanted)]
    if as_json:
        write_json(rows)
    elif as_csv:
        _write_csv(rows)
    else:
        _print_rows(rows, wanted)


def _show(context: typer.Context, caller: _Caller, *, as_json: _Json = False) -> None:
    """A caller's credit: what may be spent, and what calls under way have reserved."""
    _tell(_store(context).account(caller, now=now()), as_json=as_json)


def _grant(
    context: typer.Context,
    caller: _Caller,
    amount: Annotated[str, typer.Argument(metavar="DOLLARS", help="How much, for example 25 or 0.50.")],
    *,
    reference: Annotated[
        str,
        typer.Option(
            help="What it is for, an invoice's number for example: what is repeated with it is given once.",
            show_default=False,
        ),
    ] = "",
    as_json: _Json = False,
) -> None:
    """Give a caller credit to pay calls from."""
    micros, at, store = _micros(amount), now(), _store(context)
    named = reference or f"unnamed-{at}-{secrets.token_hex(4)}"
    if not _REFERENCE.fullmatch(named):
        raise BadInput("bad_usage", f"--reference {quoted(named)}", next_step="use 1 to 200 letters, digits and signs")
    if not store.grant(Grant(caller, named, micros, at)):
        raise BadInput(
            "bad_usage",
            f"--reference {quoted(named)} was used for another amount",
            next_step="give another reference",
        )
    _tell(store.account(caller, now=at), as_json=as_json)


def _refund(
    context: typer.Context,
    caller: _Caller,
    call_id: Annotated[str, typer.Argument(metavar="CALL", help="Its call_id in hayfork usage --calls.")],
    *,
    as_json: _Json = False,
) -> None:
    """Give the charge of one call back, once; to credit if it was paid from that."""
    shell: Shell = context.obj
    at, store = now(), _store(context)
    keep_until = at + shell.settings().metering.keep_days * _DAY
    refund = store.refund(caller, call_id, at=at, keep_until=keep_until)
    if refund is None:
        raise NotFound(
            "unknown_call",
            f"no call {quoted(call_id)} of this caller was charged",
            next_step="see hayfork usage --calls",
        )
    if as_json:
        write_json(record_row(refund))
    else:
        sys.stdout.write(f"given back: {dollars(-refund.charge)}\n")


def _store(context: typer.Context) -> UsageStore:
    from handler.wiring import build_usage  # noqa: PLC0415 - a person waits for every import

    shell: Shell = context.obj
    return build_usage(shell.settings())


def _micros(amount: str) -> int:
    found = _AMOUNT.fullmatch(amount)
    micros = int(found[1]) * _MICRO + int((found[2] or "").ljust(6, "0")) if found else 0
    if not micros:
        raise BadInput("bad_usage", f"amount {quoted(amount)}", next_step="give dollars, for example 25 or 0.50")
    return micros


def _tell(account: Account, *, as_json: bool) -> None:
    if as_json:
        write_json({"caller": account.caller_id, "balance_micros": account.balance, "held_micros": account.held})
    else:
        held = f", {dollars(account.held)} held by calls under way" if account.held else ""
        sys.stdout.write(f"{account.caller_id}: {dollars(account.balance)}{held}\n")


def _write_csv(rows: Sequence[dict[str, Any]]) -> None:
    """A head and the rows; without rows nothing, since the columns follow from them."""
    if rows:
        writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _print_rows(rows: Sequence[dict[str, Any]], month: str) -> None:
    console = written()
    for row in rows:
        if "call_id" in row:
            console.print(
                f"{row['began_at']}  {row['tool']}: {row['outcome']}, {dollars(row['charge_micros'])},"
                f" {row['milliseconds']} ms, {row['bytes_returned']:,} bytes  {row['call_id']}",
                markup=False,
            )
        else:
            console.print(
                f"{row['caller_id']}: {row['calls']:,} calls, {row['free']:,} free, {row['errors']:,} errors,"
                f" {row['refunds']:,} refunds, {row['bytes_returned']:,} bytes, {dollars(row['spend_micros'])}",
                markup=False,
            )
    if not rows:
        console.print(f"nothing was used in {month}")
