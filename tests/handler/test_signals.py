"""What a function says of itself, and what it never says."""

import json
import logging
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.errors import EngineError
from engine.sight import Caller
from engine.tally import Tally, counting
from handler.app import App
from handler.arguments import parse_arguments
from handler.counted import CountedApp, Observed
from handler.faults import tell
from handler.settings import Settings
from handler.settings_table import CorpusSettings, SignalSettings, SourceSettings
from handler.signals import METRICS, Signals, without_words
from handler.wiring import build_counted_app
from tests.handler.small_app import SmallApp

NOON = 1_480_507_200_000_000
ADA = Caller("caller-mark")
CONTEXT = SimpleNamespace(aws_request_id="7f3a-request")
MARKS = ("text-mark", "topic-mark", "link-mark", "author-mark", "room-mark", "id-mark", "query-mark", "caller-mark")


def marked_settings(folder: Path, signals: SignalSettings) -> Settings:
    """A corpus in which every text, link, name and id bears a mark."""
    rows = [
        {
            "conversation": f"room-mark-{n % 2}",
            "native_id": f"id-mark-{n}",
            "sent_at": f"2016-01-{1 + n % 28:02}T10:00:00Z",
            "author": f"author-mark-{n % 3}",
            "topic": f"topic-mark {n}",
            "body": f"docker text-mark {n} " * 40,
            "link": f"https://link-mark.example/{n}",
        }
        for n in range(60)
    ]
    table = folder / "messages.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return Settings(
        corpus=CorpusSettings(root=str(folder / "corpus")),
        sources=(SourceSettings(format="jsonl", location=str(table), name="messages"),),
        signals=signals,
    )


def objects(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def every_call(app: App) -> list[str]:
    """All tools, well and badly asked; gives the secrets that came to be: handles, links, ids."""
    secrets: list[str] = []

    def ask(tool: str, **arguments: Any) -> dict[str, Any]:
        answer = app.call(parse_arguments(tool, arguments, app.limits), ADA)
        return answer.object

    ask("count_messages", query="docker OR query-mark", by=["author"])
    ask("count_messages", query='"->"', compare=["query-mark"])
    found = ask("search_messages", query="docker OR query-mark", fields=["link", "text"], limit=50, text_limit=4_000)
    secrets.append(found["session"])
    ask("unseen_messages", query="docker OR query-mark", session=found["session"])
    ask("open_thread", message=[found["messages"][0]["id"]], session=found["session"])
    exported = ask("export_messages", query="docker OR query-mark")
    secrets.append(exported["link"])
    bad: list[tuple[str, dict[str, Any]]] = [
        ("search_messages", {"query": "(query-mark OR"}),
        ("search_messages", {"author": ["author-mark"]}),
        ("unseen_messages", {"session": "session-mark-0123456789"}),
        ("open_thread", {"message": ["room-mark-0:id-mark-none"]}),
        ("export_messages", {"export": "export-mark-0123456789"}),
    ]
    for tool, arguments in bad:
        with pytest.raises(EngineError) as caught:
            ask(tool, **arguments)
        tell(caught.value)
    return [*secrets, "session-mark", "export-mark"]


def test_no_text_link_key_handle_export_or_query_is_ever_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "key-mark")
    # The root logger writes to standard output, as the runtime makes it.
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.StreamHandler(sys.stdout)])
    settings = marked_settings(tmp_path, SignalSettings(service="stack-mcp-told"))
    signals = Signals(settings.signals, lambda: NOON)
    signals.install()
    app = build_counted_app(settings, lambda: NOON, signals.called)
    with signals.invocation(CONTEXT):
        with counting() as tally:
            signals.refreshed(app.refresh(), 1.5, tally)
        secrets = every_call(app)
        try:
            int("text-mark 7 https://link-mark.example")
        except ValueError as error:
            logging.getLogger("somebody.else").exception("failed at %s", "query-mark")
            tell(error)
    output = capsys.readouterr().out
    lines = objects(output)
    assert sum("_aws" in line for line in lines) == 12
    assert sum(line.get("message") == "call" for line in lines) == 11
    assert all(line.get("request_id") == "7f3a-request" for line in lines if line.get("message") == "call")
    for secret in (*MARKS, "key-mark", *secrets):
        assert secret not in output
    fault = next(line for line in lines if str(line.get("message", "")).startswith("fault: "))
    assert "builtins.ValueError at " in fault["message"]


def test_metrics_are_in_the_embedded_format_with_one_dimension(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = marked_settings(tmp_path, SignalSettings(service="stack-mcp"))
    signals = Signals(settings.signals, lambda: NOON + 90_000_000)
    app = build_counted_app(settings, lambda: NOON, signals.called)
    app.refresh()
    capsys.readouterr()
    request = parse_arguments("search_messages", {"query": "docker", "limit": 50, "text_limit": 4_000}, app.limits)
    answer = app.call(request, ADA)
    told, line = objects(capsys.readouterr().out)
    (directive,) = told["_aws"]["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Dimensions"]) == ("Hayfork", [["service"]])
    assert {m["Name"]: m["Unit"] for m in directive["Metrics"]} == {
        name: METRICS[name][0].value for name in METRICS if name in told
    }
    values = {name: told[name][0] for name in METRICS if name in told}
    assert values | {"Latency": 0, "BytesScanned": 0, "RowsScanned": 0} == {
        "Calls": 1,
        "Faults": 0,
        "Unavailable": 0,
        "Latency": 0,
        "BytesReturned": len(answer.text.encode()),
        "BytesScanned": 0,
        "RowsScanned": 0,
        "S3Requests": 0,
        "DynamoDbRequests": 0,
        "ColdStarts": 1,
        "SnapshotAge": 90,
        "BatchConflicts": 0,
        "BudgetCuts": 1,
        "SnapshotFaults": 0,
        "Refused": 0,
        "Unmetered": 0,
    }
    assert values["BytesScanned"] > 0
    assert values["RowsScanned"] > 0
    assert (told["service"], told["tool"], told["outcome"]) == ("stack-mcp", "search_messages", "ok")
    assert (line["tool"], line["ColdStarts"], "query" in line) == ("search_messages", True, False)
    app.call(request, ADA)
    again = objects(capsys.readouterr().out)[0]
    signals.restored()
    app.call(request, ADA)
    restored = objects(capsys.readouterr().out)[0]
    assert (again["ColdStarts"], restored["ColdStarts"]) == ([0], [1])


def observed(outcome: str, **counts: int) -> Observed:
    tally = Tally()
    tally.counts.update(counts)
    return Observed("count_messages", outcome, 0.01, 0, cut=False, query="query-mark", tally=tally)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (observed("internal"), ["Faults"]),
        (observed("store_unreachable"), ["Unavailable"]),
        (observed("snapshot_broken"), ["SnapshotFaults"]),
        (observed("ok", snapshot_fallbacks=1), ["SnapshotFaults"]),
        (observed("session_busy", batch_conflicts=2), ["Unavailable", "BatchConflicts"]),
        (observed("bad_query"), []),
    ],
)
def test_each_kind_of_failure_has_its_metric(
    capsys: pytest.CaptureFixture[str], seen: Observed, expected: list[str]
) -> None:
    Signals(SignalSettings(service="each-kind"), lambda: NOON).called(seen)
    told = objects(capsys.readouterr().out)[0]
    failures = ("Faults", "Unavailable", "SnapshotFaults", "BatchConflicts")
    assert [name for name in failures if told[name][0]] == expected


def test_a_query_is_logged_where_the_setting_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    Signals(SignalSettings(service="logs-queries", log_queries=True), lambda: NOON).called(observed("ok"))
    metrics, line = objects(capsys.readouterr().out)
    assert line["query"] == "query-mark"
    assert "query-mark" not in json.dumps(metrics)


def test_a_refresh_and_a_canary_tell_success_and_failure(capsys: pytest.CaptureFixture[str]) -> None:
    signals = Signals(SignalSettings(), lambda: NOON)
    signals.refreshed({"published": True, "messages": 7}, 2, Tally())
    signals.refreshed(None, 1, Tally())
    signals.canary(failed=True)
    signals.canary(failed=False)
    done, failed, bad, well = objects(capsys.readouterr().out)
    assert (done["Refreshes"], done["RefreshFailures"], done["Messages"]) == ([1], [0], [7])
    assert (failed["Refreshes"], failed["RefreshFailures"], "Messages" in failed) == ([0], [1], False)
    assert (bad["CanaryFailures"], well["CanaryFailures"]) == ([1], [0])


def test_a_fault_inside_a_call_is_counted_and_its_words_are_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(*_: object) -> Any:
        raise KeyError("text-mark")

    signals = Signals(SignalSettings(service="fault-inside"), lambda: NOON)
    inner = SmallApp(answer=fail)
    app = CountedApp(inner, inner.limits, observe=signals.called)
    with pytest.raises(KeyError):
        app.call(parse_arguments("count_messages", {"query": "query-mark"}, app.limits), ADA)
    output = capsys.readouterr().out
    assert objects(output)[0]["Faults"] == [1]
    assert "mark" not in output


def test_a_record_without_an_exception_passes_as_it_is() -> None:
    record = logging.LogRecord("n", logging.INFO, "p", 1, "said %s", ("so",), None)
    assert without_words(record)
    assert record.getMessage() == "said so"


def test_a_laptop_imports_nothing_of_it() -> None:
    code = (
        "import sys\n"
        "import handler.cli.commands, handler.http, handler.stdio, handler.wiring\n"
        "print([m for m in sys.modules if m.startswith(('aws_lambda_powertools', 'aws_xray_sdk', 'boto3'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_metric_stands_on_the_page_of_operations() -> None:
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text("utf-8")
    for name, (unit, what) in METRICS.items():
        assert f"| `{name}` | {unit.value} | {what} |" in page
