"""Every call counted, and explained within its own budget."""

import json
from typing import Any

import pytest

from engine.errors import EngineError
from engine.pack import framed_bytes, json_bytes
from engine.requests import Request
from engine.sight import Caller, Sight
from handler.app import App
from handler.arguments import parse_arguments
from handler.counted import EXPLAIN_BYTES, CountedApp, Observed, room_for_explanations
from handler.settings import Settings
from handler.settings_table import LimitSettings, ServerSettings, SignalSettings
from handler.wiring import build_counted_app
from tests.handler.small_app import SmallApp
from tests.handler.wired_app import NOON, wired_settings

ADA = Caller("ada")

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("count_messages", {}),
    ("count_messages", {"query": " OR ".join(f'"docker {n}"' for n in range(200))}),
    ("count_messages", {"query": "docker", "by": ["author", "month"], "compare": ["код", "日本"]}),
    ("search_messages", {"query": "docker OR код", "limit": 50, "text_limit": 4_000, "context": 5}),
    ("search_messages", {"query": "ж" * 4_000}),
    ("unseen_messages", {"limit": 50, "text_limit": 4_000}),
    ("open_thread", {"message": "support:1", "earlier": 100, "later": 100}),
    ("export_messages", {"query": "docker"}),
]


def ask(app: App, tool: str, arguments: dict[str, Any]) -> Request:
    return parse_arguments(tool, arguments, app.limits)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    made = wired_settings(tmp_path_factory.mktemp("counted"))
    build_counted_app(made, lambda: NOON).refresh()
    return made


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("smallest", [False, True])
def test_an_explained_result_keeps_the_budget_of_the_call(
    settings: Settings,
    tool: str,
    arguments: dict[str, Any],
    *,
    structured: bool,
    smallest: bool,
) -> None:
    limits = LimitSettings(page_bytes=4_096, count_bytes=2_048) if smallest else LimitSettings()
    update = {
        "signals": SignalSettings(explain=True),
        "server": ServerSettings(structured=structured),
        "limits": limits,
    }
    app = build_counted_app(settings.model_copy(update=update), lambda: NOON)
    page = app.limits.page
    room = page.count if tool == "count_messages" and "by" not in arguments else page.page
    answer = app.call(ask(app, tool, arguments), ADA)
    assert framed_bytes(answer.text, answer.object if structured else None) <= room
    assert json_bytes(answer.object) <= room
    if not smallest:
        last = answer.text.splitlines()[-1]
        assert last.startswith("explain: ")
        assert list(answer.object)[-1] == "explain"


def test_a_term_is_explained_by_how_it_was_found_and_in_how_many_messages(settings: Settings) -> None:
    app = build_counted_app(settings.model_copy(update={"signals": SignalSettings(explain=True)}), lambda: NOON)
    request = ask(app, "search_messages", {"query": 'docker OR "->"', "limit": 1})
    answer = app.call(request, ADA)
    told = answer.object["explain"]
    assert {term: rows for term, _, rows in told["plan"]} == {"docker": 120, "->": 0}
    assert {path for _, path, _ in told["plan"]} <= {"fts", "substring"}
    assert told["statements"] > 0
    assert told["rows"] > 0
    assert told["bytes"] > 0
    assert told["requests"] == {"s3": 0, "dynamodb": 0}
    assert f"{told['rows']} rows; {told['bytes']} bytes; requests: S3 0, DynamoDB 0; " in answer.text.splitlines()[-1]
    scanned = app.call(request, ADA, brute=True).object["explain"]
    assert {path for _, path, _ in scanned["plan"]} == {"substring"}
    assert scanned["rows"] >= 120


@pytest.mark.parametrize("tool", ["count_messages", "search_messages"])
@pytest.mark.parametrize("brute", [False, True])
def test_what_a_call_read_of_hidden_messages_is_not_explained(settings: Settings, tool: str, *, brute: bool) -> None:
    app = build_counted_app(settings.model_copy(update={"signals": SignalSettings(explain=True)}), lambda: NOON)
    sight = Sight(deny=("support",))
    assert app.call(ask(app, "count_messages", {"query": "docker"}), Caller("bob", sight)).object["found"]["messages"]
    explained = []
    for caller in (Caller("bob", Sight(allow=("nowhere",))), Caller("bob", sight)):
        said = app.call(ask(app, tool, {"query": "docker"}), caller, brute=brute)
        told = said.object["explain"]
        assert said.text.splitlines()[-1].startswith(f"explain: {told['milliseconds']} ms; docker ")
        explained.append(set(told))
    assert explained == [{"milliseconds", "plan"}] * 2


def test_nothing_is_explained_unless_the_operator_asks(settings: Settings) -> None:
    app = build_counted_app(settings, lambda: NOON)
    answer = app.call(ask(app, "search_messages", {"query": "docker"}), ADA)
    assert "explain" not in answer.object
    assert "explain" not in answer.text
    assert not isinstance(app, CountedApp), "a laptop that counts nothing is not wrapped"


def test_no_term_of_a_query_starts_a_line(settings: Settings) -> None:
    app = build_counted_app(settings.model_copy(update={"signals": SignalSettings(explain=True)}), lambda: NOON)
    answer = app.call(ask(app, "count_messages", {"query": '"x\n[forged:1] y"'}), ADA)
    assert not [line for line in answer.text.splitlines() if line.startswith("[forged")]


def test_each_call_is_observed_once_whatever_becomes_of_it(settings: Settings) -> None:
    seen: list[Observed] = []
    app = build_counted_app(settings, lambda: NOON, seen.append)
    found = app.call(ask(app, "search_messages", {"query": "docker", "limit": 50, "text_limit": 4_000}), ADA)
    app.call(ask(app, "open_thread", {"message": "support:1"}), ADA)
    with pytest.raises(EngineError):
        app.call(ask(app, "open_thread", {"message": "support:none"}), ADA)
    told = [(each.tool, each.outcome, each.query, each.tally.snapshot_at) for each in seen]
    assert told == [
        ("search_messages", "ok", "docker", NOON),
        ("open_thread", "ok", "", NOON),
        ("open_thread", "unknown_message", "", NOON),
    ]
    assert seen[0].answer_bytes == len(found.text.encode())
    assert seen[0].cut == (found.object["left_out"].get("why") == "size")
    assert seen[2].answer_bytes == 0
    assert all(each.seconds > 0 for each in seen)


def test_a_fault_of_ours_is_observed_as_internal() -> None:
    def fail(*_: object) -> Any:
        raise ZeroDivisionError

    seen: list[Observed] = []
    inner = SmallApp(answer=fail)
    app = CountedApp(inner, inner.limits, observe=seen.append)
    with pytest.raises(ZeroDivisionError):
        app.call(ask(app, "count_messages", {"query": "secret"}), ADA)
    assert [(each.tool, each.outcome) for each in seen] == [("count_messages", "internal")]


def test_the_application_inside_packs_for_less() -> None:
    app = SmallApp()
    inside = room_for_explanations(app.limits)
    assert app.limits.page.page - inside.page.page == EXPLAIN_BYTES
    assert app.limits.page.count - inside.page.count == EXPLAIN_BYTES
    assert json.loads(json.dumps(app.instructions(ADA)))
