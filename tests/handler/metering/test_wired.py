"""The application as it is wired, metered: real searches over a real snapshot, and what their records say of them."""

from pathlib import Path

import pytest

from engine.errors import BadInput, NotFound, Refused
from engine.sight import Caller
from engine.usage import Grant
from handler.app import App
from handler.arguments import parse_arguments
from handler.settings import Settings
from handler.settings_money import MeteringSettings, PriceSettings, QuotaSettings
from handler.settings_table import AuthSettings, AwsSettings, CorpusSettings, SignalSettings
from handler.wiring import build_app, build_counted_app, build_usage, build_usage_reports
from tests.handler.wired_app import NOON, wired_settings

ADA = Caller("key:ada")
PRICES = PriceSettings(count_messages=1, search_messages=2, unseen_messages=3, export_messages=10, export_row=5)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    plain = wired_settings(tmp_path)
    build_app(plain, lambda: NOON).refresh()
    update = {
        "metering": MeteringSettings(mode="on"),
        "prices": PRICES,
        "quotas": (QuotaSettings(prepaid=True),),
    }
    return plain.model_copy(update=update)


def ask(app: App, tool: str, **arguments: object) -> dict[str, object]:
    return app.call(parse_arguments(tool, arguments, app.limits), ADA).object


def test_a_session_with_an_export_is_metered_from_end_to_end(settings: Settings) -> None:
    update = {"signals": SignalSettings(explain=True)}
    app = build_counted_app(settings.model_copy(update=update), lambda: NOON)
    store = build_usage(settings)
    store.grant(Grant("key:ada", "first", 20 + 120 * 5, NOON))
    assert ask(app, "count_messages", query="nothing of the kind")["found"]
    session = ask(app, "search_messages", query="docker", limit=2)["session"]
    page = ask(app, "unseen_messages", query="docker", limit=2, session=session, after_batch=1)
    again = ask(app, "unseen_messages", query="docker", limit=2, session=session, after_batch=1)
    assert (again["messages"], again["repeated"]) == (page["messages"], True)
    with pytest.raises(NotFound):
        ask(app, "count_messages", author="nobody at all")
    assert ask(app, "export_messages", query="docker")["rows"] == 120
    with pytest.raises(Refused) as refused:
        ask(app, "export_messages", query="docker")
    assert refused.value.code == "credit_exhausted"
    records = store.records("key:ada", "2016-11")
    assert sorted((each.tool, each.outcome, each.charge) for each in records) == [
        ("count_messages", "ok", 1),
        ("count_messages", "unknown_value", 0),
        ("export_messages", "ok", 610),
        ("search_messages", "ok", 2),
        ("unseen_messages", "ok", 3),
        ("unseen_messages", "repeat", 0),
    ]
    assert {each.snapshot_at for each in records} == {NOON}
    (exported,) = [each for each in records if each.charge == 610]
    assert exported.rows_scanned >= 120
    assert exported.bytes_scanned > 0
    assert exported.bytes_returned > 0
    report_of = build_usage_reports(settings, lambda: NOON)
    assert report_of is not None
    told = report_of("key:ada", "")
    assert (told["calls"], told["free"], told["errors"], told["spend_micros"]) == (4, 1, 1, 616)
    assert told["credit"] == {"balance_micros": 4, "held_micros": 0}


def test_questions_that_a_session_had_nothing_new_for_were_answered_for_nothing(settings: Settings) -> None:
    app, store = build_counted_app(settings, lambda: NOON), build_usage(settings)
    store.grant(Grant("key:ada", "first", 2 + 3 + 3 * 1 + 2, NOON))
    session = ask(app, "search_messages", query="docker", limit=1)["session"]
    assert ask(app, "unseen_messages", query="docker", limit=1, session=session)["shown"] == 1
    for _ in range(3):
        assert ask(app, "unseen_messages", query="nothing of the kind", session=session)["shown"] == 0
    with pytest.raises(Refused, match="the credit is"):
        ask(app, "unseen_messages", query="nothing of the kind", session=session)
    charged = sorted((each.tool, each.outcome, each.charge) for each in store.records("key:ada", "2016-11"))
    assert charged == [("search_messages", "ok", 2), *[("unseen_messages", "ok", 1)] * 3, ("unseen_messages", "ok", 3)]


def test_an_export_beyond_credit_leaves_no_file(settings: Settings) -> None:
    app, store = build_counted_app(settings, lambda: NOON), build_usage(settings)
    store.grant(Grant("key:ada", "first", 609, NOON))
    with pytest.raises(Refused, match=r"costs \$0.00061, and the credit is"):
        ask(app, "export_messages", query="docker")
    assert [path for path in (Path(settings.corpus.root) / "exports").rglob("*") if path.is_file()] == []
    (record,) = store.records("key:ada", "2016-11")
    assert (record.outcome, record.charge) == ("credit_exhausted", 0)
    assert store.account("key:ada", now=NOON).balance == 609


def test_a_laptop_that_asks_for_no_proof_meters_nothing(tmp_path: Path) -> None:
    settings = wired_settings(tmp_path)
    build_app(settings, lambda: NOON).refresh()
    ask(build_counted_app(settings, lambda: NOON), "count_messages", query="docker")
    assert build_usage_reports(settings, lambda: NOON) is None
    assert not (tmp_path / "corpus" / "usage.sqlite").exists()


def test_metering_over_s3_wants_its_table() -> None:
    settings = Settings(
        corpus=CorpusSettings(root="s3://bucket"),
        auth=AuthSettings(modes=("api_key",)),
        aws=AwsSettings(seen_table="seen", region="us-east-1"),
    )
    with pytest.raises(BadInput) as caught:
        build_usage(settings)
    assert caught.value.to_text() == (
        "bad_setting: aws.usage_table is empty, and calls are metered; "
        "name the DynamoDB table of usage, or set metering.mode to off"
    )
