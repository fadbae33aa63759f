"""Prices: from settings to figures and words, told only where they are charged."""

from typing import Any, Literal

import pytest
from mcp import Client

from handler.http import HttpOptions
from handler.mcp_server import build_server
from handler.metering.prices import FREE, Prices, dollars, prices_of, shown_prices
from handler.settings import Settings
from handler.settings_money import MeteringSettings, PriceSettings
from handler.settings_table import AuthSettings
from handler.tools.table import TOOLS
from tests.handler.running import VERSIONS, exchange, running
from tests.handler.small_app import SmallApp, structured_limits

PRICES = Prices({"count_messages": 1_000, "search_messages": 2_500, "export_messages": 10_000}, per_row=20)


def test_a_price_is_looked_up_by_tool_and_what_is_not_named_is_free() -> None:
    assert [PRICES.price_of(tool) for tool in TOOLS] == [1_000, 2_500, 0, 0, 10_000]
    assert PRICES.export_price(0) == 10_000
    assert PRICES.export_price(194) == 13_880
    assert (FREE.is_free, PRICES.is_free, Prices(per_row=1).is_free) == (True, False, False)


def test_prices_come_from_the_settings_of_each_tool() -> None:
    settings = PriceSettings(count_messages=1_000, search_messages=2_500, export_messages=10_000, export_row=20)
    made = prices_of(settings)
    assert ({tool: made.price_of(tool) for tool in TOOLS}, made.per_row) == (
        {tool: PRICES.price_of(tool) for tool in TOOLS},
        20,
    )
    assert set(PriceSettings.model_fields) == {*TOOLS, "export_row"}


@pytest.mark.parametrize(
    ("mode", "auth", "told"),
    [
        ("auto", ("none",), 0),
        ("auto", ("api_key",), 7),
        ("on", ("none",), 7),
        ("off", ("api_key",), 0),
    ],
)
def test_prices_are_told_where_calls_are_metered(
    mode: Literal["auto", "on", "off"], auth: tuple[str, ...], told: int
) -> None:
    settings = Settings(
        metering=MeteringSettings(mode=mode), auth=AuthSettings(modes=auth), prices=PriceSettings(count_messages=7)
    )
    assert shown_prices(settings).price_of("count_messages") == told


@pytest.mark.parametrize(
    ("micros", "words"),
    [
        (0, "$0.00"),
        (1, "$0.000001"),
        (2_500, "$0.0025"),
        (1_500_000, "$1.50"),
        (-20, "-$0.00002"),
        (10**12, "$1,000,000.00"),
    ],
)
def test_money_is_written_exactly(micros: int, words: str) -> None:
    assert dollars(micros) == words


async def told(prices: Prices) -> tuple[list[Any], str | None]:
    async with Client(build_server(SmallApp(), prices=prices)) as client:
        return [tool.meta for tool in (await client.list_tools()).tools], client.instructions


@pytest.mark.anyio
async def test_tools_and_instructions_tell_what_a_call_costs() -> None:
    metas, instructions = await told(PRICES)
    assert metas == [
        {"hayfork/price": {"usd_micros": 1_000}},
        {"hayfork/price": {"usd_micros": 2_500}},
        {"hayfork/price": {"usd_micros": 0}},
        {"hayfork/price": {"usd_micros": 0}},
        {"hayfork/price": {"usd_micros": 10_000, "usd_micros_per_row": 20}},
    ]
    assert (instructions or "").splitlines()[-1] == (
        "- A call costs: count_messages $0.001, search_messages $0.0025, export_messages $0.01, "
        "each exported row $0.00002. Errors are free, and so is repeating a batch that was paid for."
    )


@pytest.mark.anyio
async def test_nothing_is_told_where_nothing_costs_anything() -> None:
    metas, instructions = await told(FREE)
    assert metas == [None] * 5
    assert "cost" not in (instructions or "")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_list_of_tools_fits_16_kib_with_the_longest_prices(version: str) -> None:
    dearest = Prices(dict.fromkeys(TOOLS, 10**9), per_row=10**9)
    with running(SmallApp(structured_limits()), HttpOptions(prices=dearest)) as port:
        assert exchange(port, "tools/list", version=version).result_bytes <= 16_384
