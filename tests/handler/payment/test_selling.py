"""What a server that sells wants of its settings, who comes in how, and how large what it sells may be."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.answer import Answer
from engine.errors import BadInput
from engine.limits import Limits
from engine.pack import framed_bytes
from handler.auth.api_key import mint_key
from handler.auth.gate import caller_of, with_gate
from handler.auth.policies import VISITOR
from handler.http import HttpOptions, build_http
from handler.lambda_mcp import Container
from handler.metering.prices import prices_of, shown_prices
from handler.payment.results import PAYMENT, RECEIPT
from handler.settings import Settings
from handler.settings_money import PriceSettings
from handler.settings_table import AuthSettings, PolicySettings
from handler.wiring import build_desk, build_gate, build_keys
from tests.handler.auth.events import asked, event, tools_call
from tests.handler.payment.facilitator import FacilitatorServer
from tests.handler.payment.shop import PRICES, Payer, connected, now, priced, selling, selling_settings
from tests.handler.running import VERSIONS, exchange
from tests.handler.small_app import SmallApp, structured_limits

ADDRESS = "https://hayfork.example"
PUBLIC = PolicySettings(callers=("x402:*",), allow=("support",), tools=("count_messages", "search_messages"))


@pytest.fixture
def settings(facilitator: FacilitatorServer, tmp_path: Path) -> Settings:
    return selling_settings(tmp_path, facilitator)


def build(settings: Settings) -> None:
    build_gate(settings, now, ADDRESS)
    build_desk(settings, now)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"policies": ()}, "no policy says what callers who pay may see"),
        ({"policies": (PolicySettings(callers=("*",)),)}, "no policy says what callers who pay may see"),
        ({"auth": AuthSettings(modes=("api_key",))}, "auth.modes turns away who would pay"),
        ({"prices": PRICES.model_copy(update={"open_thread": 0})}, "prices.open_thread is 0"),
        ({"prices": PriceSettings()}, "prices.count_messages is 0"),
    ],
)
def test_a_server_does_not_start_to_sell_what_nobody_decided(
    settings: Settings, change: dict[str, Any], why: str
) -> None:
    with pytest.raises(BadInput, match=why):
        build(settings.model_copy(update=change))


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("network", "", "x402.network is empty"),
        ("asset", "", "x402.asset is empty"),
        ("pay_to", "", "x402.pay_to is empty"),
        ("facilitator", "", "x402.facilitator is empty"),
        ("facilitator", "http://facilitator.example", "x402.facilitator 'http://facilitator.example'"),
        ("call_seconds", 40.0, "leave nothing of call_seconds"),
    ],
)
def test_a_server_does_not_start_to_sell_without_terms(settings: Settings, name: str, value: Any, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        build(settings.model_copy(update={"x402": settings.x402.model_copy(update={name: value})}))


def test_a_payment_table_must_be_named_where_the_corpus_is_in_s3(settings: Settings) -> None:
    with pytest.raises(BadInput, match=r"aws\.payments_table is empty"):
        build_desk(
            settings.model_copy(update={"corpus": settings.corpus.model_copy(update={"root": "s3://bucket"})}), now
        )


def test_nothing_is_sold_unless_it_is_turned_on(settings: Settings) -> None:
    off = settings.model_copy(update={"x402": settings.x402.model_copy(update={"enabled": False})})
    assert (build_desk(off, now), build_gate(off, now, ADDRESS)) == (None, None)
    assert shown_prices(off).is_free
    assert shown_prices(settings) == prices_of(PRICES)


def test_beside_accounts_a_credential_counts_and_only_without_one_a_call_may_be_paid_for(
    settings: Settings,
) -> None:
    both = settings.model_copy(
        update={
            "auth": AuthSettings(modes=("api_key",)),
            "policies": (PUBLIC, PolicySettings(callers=("key:*",))),
            "x402": settings.x402.model_copy(update={"beside_auth": True}),
        }
    )
    key, credential = mint_key("billing", now(), None)
    assert build_keys(both).add(key)
    gate = build_gate(both, now, ADDRESS)
    assert gate is not None
    app = SmallApp()
    served = build_http(app, HttpOptions(allowed_hosts=("*",), desk=build_desk(both, now)), caller_of=caller_of)
    container = Container(lambda _: with_gate(served, gate))
    container.start(ADDRESS)
    try:
        status, _, paid = asked(container, event(tools_call("count_messages")))
        assert (status, paid["result"]["structuredContent"]["accepts"][0]["amount"]) == (200, "1000")
        status, _, known = asked(container, event(tools_call("count_messages"), {"x-api-key": credential}))
        assert (status, known["result"]["isError"]) == (200, False)
        for wrong in (credential[:-1] + ("A" if credential[-1] != "A" else "B"), "hf_nothing"):
            status, headers, _ = asked(container, event(tools_call("count_messages"), {"x-api-key": wrong}))
            assert (status, headers["www-authenticate"].startswith("Bearer ")) == (401, True)
        # What belongs to somebody is nobody's for money.
        assert asked(container, event(path="/usage", method="GET"))[0] == 401
        _, _, hidden = asked(container, event(tools_call("export_messages", {"query": "docker"})))
        assert hidden["error"]["message"].startswith("unknown_tool: no tool is called 'export_messages'")
        assert [caller.caller_id for _, caller in app.calls] == ["key:billing"]
    finally:
        container.stop()


def test_a_lambda_container_sells(settings: Settings, facilitator: FacilitatorServer) -> None:
    payer = Payer(facilitator)
    app = SmallApp()
    gate = build_gate(settings, now, ADDRESS)
    assert gate is not None
    made = Container(
        lambda _: with_gate(
            build_http(app, HttpOptions(allowed_hosts=("*",), desk=build_desk(settings, now)), caller_of=caller_of),
            gate,
        )
    )
    made.start(ADDRESS)
    try:
        for _ in range(2):
            call = tools_call("search_messages", {"query": "docker"})
            _, _, unpaid = asked(made, event(call))
            terms = unpaid["result"]["structuredContent"]["accepts"][0]
            call["params"]["_meta"] = {PAYMENT: payer.signed(terms_of(terms))}
            status, _, answered = asked(made, event(call))
            assert (status, answered["result"]["isError"]) == (200, False)
            assert answered["result"]["_meta"][RECEIPT]["payer"] == payer.address.lower()
            made.restart()
    finally:
        made.stop()
    assert payer.paid == [2_000, 2_000]
    assert [caller.caller_id for _, caller in app.calls] == [payer.name] * 2


def terms_of(told: dict[str, Any]) -> Any:
    from x402.schemas import PaymentRequirements  # noqa: PLC0415 - where it is read back

    return PaymentRequirements.model_validate(told)


@pytest.mark.parametrize("structured", [False, True])
def test_a_full_page_with_its_receipt_fits_as_sent(
    facilitator: FacilitatorServer, tmp_path: Path, *, structured: bool
) -> None:
    limits = structured_limits() if structured else Limits()
    room = limits.page.page - framed_bytes("", {} if structured else None)
    app = SmallApp(limits, lambda _request, _caller: Answer("ж" * (room // 2) + "x" * (room % 2), {}))
    # A facilitator may be wordy.
    transaction = "0x" + "f" * 126

    def wordy(question: str, truly: Any) -> tuple[int, bytes]:
        status, raw = truly()
        if question == "settle":
            told = json.loads(raw) | {"transaction": transaction, "extra": {"words": "x" * 9_000}}
            raw = json.dumps(told).encode()
        return status, raw

    facilitator.meddle = wordy
    payer = Payer(facilitator)
    try:
        with selling(app, selling_settings(tmp_path, facilitator)) as port:
            for version in VERSIONS:
                plain = {"name": "search_messages", "arguments": {"query": "docker"}}
                unpaid = exchange(port, "tools/call", plain, version=version)
                assert unpaid.result_bytes < 2_048 * 2
                terms = terms_of(unpaid.json["result"]["structuredContent"]["accepts"][0])
                reply = exchange(port, "tools/call", plain | {"_meta": {PAYMENT: payer.signed(terms)}}, version=version)
                result = reply.json["result"]
                assert result["_meta"][RECEIPT]["transaction"] == transaction
                assert limits.page.page < reply.result_bytes <= limits.page.page_bytes
    finally:
        facilitator.meddle = None


def test_no_schema_of_an_answer_is_declared_where_what_is_to_be_paid_may_stand_in_its_place(
    facilitator: FacilitatorServer, tmp_path: Path
) -> None:
    app = SmallApp(structured_limits())
    with selling(app, selling_settings(tmp_path, facilitator)) as port:
        tools = exchange(port, "tools/list").json["result"]["tools"]
        assert [tool.get("outputSchema") for tool in tools] == [None] * 5

        async def buy() -> Any:
            async with connected(port) as shop:
                payment = Payer(facilitator).signed(await priced(shop, "count_messages", {}))
                return await shop.call("count_messages", {}, payment)

        assert anyio.run(buy).structured_content == {
            "searched": {"not_searched": {"activity": 0}},
            "found": {"messages": 4},
        }


def test_the_first_policy_that_speaks_of_a_payer_counts_and_one_for_everybody_speaks_of_none(
    settings: Settings,
) -> None:
    policies = (
        PolicySettings(callers=("*",)),
        PolicySettings(callers=("x402:*",), scopes=("messages:all",)),
        PolicySettings(callers=("key:a", "x402:0xaa*"), tools=("count_messages",), allow=("general",)),
        PUBLIC,
    )
    gate = build_gate(settings.model_copy(update={"policies": policies}), now, ADDRESS)
    assert gate is not None
    assert gate.visitor is not None
    from handler.auth.identity import Identity  # noqa: PLC0415 - as a gate would make one

    def seen(payer: str) -> tuple[Any, Any]:
        caller = gate.policies.public(Identity((payer,)))
        return (None, None) if caller is None else (caller.sight.allow, sorted(caller.tools or ()))

    assert seen("x402:0xaa01") == (("general",), ["count_messages"])
    assert seen("x402:0xbb01") == (("support",), ["count_messages", "search_messages"])
    assert (gate.visitor.caller_id, gate.visitor.sight.allow) == (VISITOR, ("general",))


def test_settings_are_read_from_one_variable_or_several(monkeypatch: pytest.MonkeyPatch) -> None:
    from handler.settings import load_settings  # noqa: PLC0415 - reads the environment

    monkeypatch.setenv("HAYFORK_X402", '{"enabled":true,"network":"eip155:8453"}')
    monkeypatch.setenv("HAYFORK_X402_NETWORK", "eip155:84532")
    own = load_settings().x402
    assert (own.enabled, own.network) == (True, "eip155:84532")
