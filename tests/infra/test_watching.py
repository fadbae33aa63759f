"""Alarms, dashboard and canary of the template, held against the metrics, the runbook and the code."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from engine.errors import EngineError
from handler.lambda_invoke import answer
from handler.signals import METRICS, NAMESPACE
from tests.handler.small_app import SmallApp
from tests.infra.template_reader import Template, load_template

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text("utf-8")
SERVICES = {"McpFunction": "hayfork-mcp", "InvokeFunction": "hayfork-invoke", "RefreshFunction": "hayfork-refresh"}
AWS_METRICS = {
    "AWS/Lambda": {"Errors", "Throttles"},
    "AWS/SQS": {"ApproximateNumberOfMessagesVisible"},
    "AWS/ApiGateway": {"5xx"},
}


@pytest.fixture
def template() -> Template:
    return load_template()


def test_every_alarm_has_its_entry_in_the_runbook_and_every_entry_its_alarm(template: Template) -> None:
    entries = re.findall(r"^\| `(\w+Alarm)` \| (.+?) \| (.+?) \|$", PAGE, re.MULTILINE)
    assert [name for name, _, _ in entries] == list(template.of_type("AWS::CloudWatch::Alarm"))
    assert all(len(meaning) > 20 and len(way_out) > 20 for _, meaning, way_out in entries)


def test_every_alarm_watches_a_metric_that_exists_of_something_that_is_there(template: Template) -> None:
    services = {template.environment(function)["HAYFORK_SIGNALS_SERVICE"] for function in SERVICES}
    assert services == set(SERVICES.values())
    for name, alarm in template.of_type("AWS::CloudWatch::Alarm").items():
        dimensions = {each["Name"]: each["Value"] for each in alarm["Dimensions"]}
        if alarm["Namespace"] == NAMESPACE:
            assert alarm["MetricName"] in METRICS, name
            assert set(dimensions) == {"service"}, name
            assert dimensions["service"] in services, name
        else:
            assert alarm["MetricName"] in AWS_METRICS[alarm["Namespace"]], name
            (value,) = dimensions.values()
            assert value.strip("<>").split(".")[0] in template.resources, name


def test_what_the_runbook_must_cover_is_watched(template: Template) -> None:
    alarms = template.of_type("AWS::CloudWatch::Alarm").values()
    names = {alarm["MetricName"] for alarm in alarms}
    assert names == {
        "Errors",
        "Throttles",
        "Faults",
        "Unavailable",
        "Latency",
        "SnapshotAge",
        "SnapshotFaults",
        "Unmetered",
        "BatchConflicts",
        "ApproximateNumberOfMessagesVisible",
        "CanaryFailures",
        "5xx",
    }


def test_alarms_tell_a_topic_when_there_is_one_and_silence_is_well_but_for_the_canary(template: Template) -> None:
    told = load_template(AlarmTopic="arn:aws:sns:us-east-1:0:pager").of_type("AWS::CloudWatch::Alarm")
    assert all(
        alarm["AlarmActions"] == alarm["OKActions"] == ["arn:aws:sns:us-east-1:0:pager"] for alarm in told.values()
    )
    untold = template.of_type("AWS::CloudWatch::Alarm")
    assert not any("AlarmActions" in alarm for alarm in untold.values())
    breaching = [name for name, alarm in untold.items() if alarm["TreatMissingData"] == "breaching"]
    assert breaching == ["CanaryAlarm"]
    behind_url = load_template(Endpoint="FunctionUrl").of_type("AWS::CloudWatch::Alarm")
    assert set(untold) - set(behind_url) == {"GatewayErrorsAlarm"}


def test_the_dashboard_shows_every_metric_but_the_least(template: Template) -> None:
    body = json.loads(template.resources["Dashboard"]["Properties"]["DashboardBody"])
    shown = {(metric[1], metric[3]) for widget in body["widgets"] for metric in widget["properties"]["metrics"]}
    assert {name for name, _ in shown} == set(METRICS) - {"Messages"}
    assert {service for _, service in shown} == set(SERVICES.values())
    places = {(widget["x"], widget["y"]) for widget in body["widgets"]}
    assert len(places) == len(body["widgets"])


def test_the_canary_asks_what_the_function_answers(template: Template) -> None:
    for query, found in (("", 4), ("docker", 2)):
        schedule = load_template(CanaryQuery=query).resources["CanarySchedule"]["Properties"]
        event = json.loads(schedule["Target"]["Input"])
        assert event == {"canary": query}
        assert answer(SmallApp(), event) == {"found": found}
    assert (schedule["ScheduleExpression"], schedule["State"]) == ("rate(5 minutes)", "ENABLED")
    assert schedule["Target"]["Arn"] == "<InvokeFunctionAliaslive>"
    (statement,) = template.statements("CanaryRole")
    assert statement["Action"] == ["lambda:InvokeFunction"]
    assert statement["Resource"] == ["<InvokeFunction.Arn>:live"]
    pattern = template.raw["Parameters"]["CanaryQuery"]["AllowedPattern"]
    assert not re.fullmatch(pattern, 'a"b')
    assert not re.fullmatch(pattern, "a\\b")


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({"canary": "nothing of the kind"}, "unknown_message"),
        ({"canary": 7}, "bad_event"),
        ({"canary": "docker", "caller": "ada"}, "bad_event"),
    ],
)
def test_a_canary_that_finds_nothing_or_is_off_is_an_error(event: dict[str, Any], code: str) -> None:
    with pytest.raises(EngineError) as caught:
        answer(SmallApp(), event)
    assert caught.value.code == code


def test_traces_are_off_and_where_they_are_on_each_function_may_write_them(template: Template) -> None:
    assert {template.resources[f]["Properties"]["Tracing"] for f in SERVICES} == {"PassThrough"}
    traced = load_template(Traces="true")
    for function, role in zip(SERVICES, ("McpRole", "InvokeRole", "RefreshRole"), strict=True):
        assert traced.resources[function]["Properties"]["Tracing"] == "Active"
        (statement,) = [each for each in traced.statements(role) if each["Sid"] == "Trace"]
        assert statement["Action"] == ["xray:PutTraceSegments", "xray:PutTelemetryRecords"]
        assert not [each for each in template.statements(role) if each.get("Sid") == "Trace"]
