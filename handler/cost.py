"""What a deployment costs: measured durations, requests and bytes at published prices, beside what is always on.

Decides the arithmetic and how its tables read. Prices are docs/prices.toml, measurements docs/measured.toml; every
figure of the tables follows from these two. Must never know how anything was measured.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import BadInput

__all__ = ["BEGIN", "END", "Line", "call_lines", "cost_page", "cost_tables", "load_inputs", "refresh_lines", "replaced"]

BEGIN, END = "<!-- made by hayfork cost -->", "<!-- end -->"

HOURS = 730
"""Hours of a month, as price lists count them."""

_MILLION = 1_000_000
_SCALES = (10_000, 100_000, 1_000_000, 10_000_000)

Table = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """One part of a bill: so many units at so much each, in US dollars."""

    what: str
    units: float
    unit: str
    price: float

    @property
    def cost(self) -> float:
        """Dollars."""
        return self.units * self.price


def load_inputs(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """`prices.toml` and `measured.toml` of a folder.

    Raises:
        BadInput: `no_config` when one is missing, `bad_config` when one is not TOML.
    """
    return _read(folder / "prices.toml"), _read(folder / "measured.toml")


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise BadInput("no_config", f"cannot read {file.name}", next_step="name its folder by --folder") from error
    except tomllib.TOMLDecodeError as error:
        raise BadInput("bad_config", f"{file.name} is not TOML: {error}", next_step="mend that line") from None


def call_lines(prices: Table, measured: Table) -> list[Line]:
    """A million calls in the measured mix: each tool with its share, cold starts with theirs."""
    unit, assumed = prices["aws"], prices["assumed"]
    calls = measured["calls"]
    weights = {name: each["share"] for name, each in calls.items()}
    total = sum(weights.values())

    def mean(field: str) -> float:
        return float(sum(calls[name][field] * weight for name, weight in weights.items()) / total)

    cold = assumed["cold_share"]
    cold_ms = measured["cold"]["milliseconds"]
    gigabytes = assumed["mcp_memory_mb"] / 1_024
    seconds = (mean("milliseconds") * (1 - cold) + cold_ms * cold + assumed["overhead_ms"]) / 1_000
    requests = mean("s3_requests") * (1 - cold) + measured["cold"]["s3_requests"] * cold
    return [
        Line("Lambda, time", seconds * gigabytes * _MILLION, "GB-s", unit["lambda_gb_second"]),
        Line("Lambda, requests", _MILLION, "requests", unit["lambda_request"]),
        Line("Lambda, restores (SnapStart)", cold * gigabytes * _MILLION, "GB", unit["snapstart_restore_gb"]),
        Line("HTTP API", _MILLION, "requests", unit["http_api_request"]),
        Line("S3, reads", requests * _MILLION, "requests", unit["s3_get"]),
        Line("DynamoDB, reads", mean("dynamodb_reads") * _MILLION, "read units", unit["dynamodb_read_unit"]),
        Line("DynamoDB, writes", mean("dynamodb_writes") * _MILLION, "write units", unit["dynamodb_write_unit"]),
        Line("DynamoDB, metering", assumed["metering_writes"] * _MILLION, "write units", unit["dynamodb_write_unit"]),
        Line("Logs and metrics written", assumed["log_bytes"] * _MILLION / 1e9, "GB", unit["logs_gb"]),
        Line("Answers sent", mean("answer_bytes") * _MILLION / 1e9, "GB", unit["transfer_gb"]),
    ]


def refresh_lines(prices: Table, measured: Table) -> list[Line]:
    """One refresh of the measured corpus that found something new."""
    unit, assumed, refresh = prices["aws"], prices["assumed"], measured["refresh"]
    gigabytes = assumed["refresh_memory_mb"] / 1_024
    storage = (assumed["refresh_storage_mb"] - 512) / 1_024 * refresh["seconds"]
    return [
        Line("Lambda, time", refresh["seconds"] * gigabytes, "GB-s", unit["lambda_gb_second"]),
        Line("Lambda, temporary storage", storage, "GB-s", unit["lambda_storage_gb_second"]),
        Line("Lambda, requests", 1, "requests", unit["lambda_request"]),
        Line("S3, writes and listings", refresh["s3_requests"], "requests", unit["s3_put"]),
        Line("DynamoDB, the lock", 2, "write units", unit["dynamodb_write_unit"]),
    ]


def month_lines(prices: Table, measured: Table) -> list[Line]:
    """A month of one GB of message text, whether anybody asks or not."""
    unit, assumed = prices["aws"], prices["assumed"]
    ratio = measured["refresh"]["snapshot_bytes"] / measured["refresh"]["text_bytes"]
    return [
        Line("Snapshots kept", ratio * assumed["snapshots_kept"], "GB-months", unit["s3_gb_month"]),
        Line("The sources", assumed["source_ratio"], "GB-months", unit["s3_gb_month"]),
    ]


def standing_lines(prices: Table) -> list[Line]:
    """A month of what stands whatever the size: what watches, and what SnapStart keeps."""
    unit, assumed = prices["aws"], prices["assumed"]
    kept = assumed["mcp_memory_mb"] / 1_024 * HOURS * 3_600
    return [
        Line("Alarms", assumed["alarms"], "alarms", unit["alarm_month"]),
        Line("Metrics", assumed["metrics"], "metrics", unit["metric_month"]),
        Line("Dashboard", 1, "dashboards", unit["dashboard_month"]),
        Line("SnapStart, kept", kept, "GB-s", unit["snapstart_cache_gb_second"]),
        Line("Schedules and canary", assumed["canary_calls"], "calls", unit["schedule_call"]),
    ]


def alternatives(prices: Table) -> list[tuple[str, float]]:
    """What is always on, a month of each at its smallest size fit for production."""
    found = []
    for each in prices["alternatives"]:
        hourly = sum(part["count"] * part["hourly"] for part in each.get("parts", ()))
        storage = each.get("storage_gb", 0) * each.get("storage_gb_month", 0.0)
        found.append((each["name"], hourly * HOURS + storage + each.get("monthly", 0.0)))
    return found


def cost_tables(prices: Table, measured: Table) -> str:
    """All tables as Markdown."""
    assumed, refresh = prices["assumed"], measured["refresh"]
    calls, one_refresh = call_lines(prices, measured), refresh_lines(prices, measured)
    month, standing = month_lines(prices, measured), standing_lines(prices)
    text_gb = refresh["text_bytes"] / 1e9
    fixed = _sum(standing) + _sum(month) * text_gb + _sum(one_refresh) * assumed["refreshes"]
    parts = [
        _origin(prices, measured),
        "### A million calls",
        _table(calls),
        f"### One refresh of {refresh['messages']:,} messages, {refresh['seconds']:.0f} s",
        _table(one_refresh),
        "### A month of one GB of text",
        _table(month),
        "### A month of what stands",
        _table(standing),
        f"### A month in all, beside what is always on ({assumed['refreshes']} refreshes)",
        _comparison(fixed, _sum(calls) / _MILLION, alternatives(prices)),
        "### Where the prices are from",
        _sources(prices["sources"]),
    ]
    return "\n\n".join(parts)


def _origin(prices: Table, measured: Table) -> str:
    refresh = measured["refresh"]
    return (
        f"Prices of {prices['as_of']}, {prices['region']}, US dollars, no free tier. Measured {measured['as_of']} on "
        f"{refresh['messages']:,} messages ({refresh['text_bytes'] / 1e6:,.0f} MB of text): {measured['machine']}."
    )


def cost_page(page: str, prices: Table, measured: Table) -> str:
    """The page with its tables made anew between the marks.

    Raises:
        BadInput: `bad_config` when the marks are missing.
    """
    return replaced(page, cost_tables(prices, measured))


def replaced(page: str, text: str) -> str:
    """`page` with `text` between the marks; raises as `cost_page`."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise BadInput("bad_config", "the page has no marks to write between", next_step=f"add {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def _sum(lines: Sequence[Line]) -> float:
    return sum(line.cost for line in lines)


def _table(lines: Sequence[Line]) -> str:
    rows = [
        f"| {line.what} | {_amount(line.units)} {line.unit} | {_price(line.price)} | {line.cost:,.4f} |"
        for line in lines
    ]
    total = f"| **Sum** | | | **{_sum(lines):,.4f}** |"
    return "\n".join(["| part | units | $ each | $ |", "|---|---:|---:|---:|", *rows, total])


def _sources(sources: Sequence[Table]) -> str:
    """The maker's own list, and who else wrote the figures down when."""
    rows = [
        f"| {', '.join(each['prices'])} | {each['page']} | {each['checked'] or 'not compared'} | {each['dated']} |"
        for each in sources
    ]
    return "\n".join(["| prices | list | compared with | dated |", "|---|---|---|---|", *rows])


def _amount(units: float) -> str:
    return f"{units:,.0f}" if units >= 100 or units == int(units) else f"{units:,.2f}"


def _price(price: float) -> str:
    return f"{price:.10f}".rstrip("0").rstrip(".")


def _comparison(fixed: float, per_call: float, others: Sequence[tuple[str, float]]) -> str:
    heads = [f"{scale:,} calls" for scale in _SCALES]
    own = [f"{fixed + per_call * scale:,.2f}" for scale in _SCALES]
    rows = [f"| Hayfork | {' | '.join(own)} | |"]
    for name, monthly in others:
        even = (monthly - fixed) / per_call
        told = f"{even / _MILLION:,.1f} million" if even > 0 else "never dearer"
        rows.append(f"| {name} | {' | '.join([f'{monthly:,.2f}'] * len(_SCALES))} | {told} |")
    return "\n".join(
        [f"| a month | {' | '.join(heads)} | Hayfork costs as much at |", "|---|" + "---:|" * (len(_SCALES) + 1), *rows]
    )
