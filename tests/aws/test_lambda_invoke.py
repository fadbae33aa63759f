"""Direct invocation: one tool call with a named caller, and the rest of an export."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.aws.conftest import Deployment
from tests.aws.gateway import EVENTS
from tests.aws.runtime_api import Function

pytestmark = [pytest.mark.aws, pytest.mark.slow]


@pytest.fixture(scope="module")
def invoke(deployment: Deployment) -> Iterator[Function]:
    with deployment.run("InvokeFunction") as function:
        yield function


def test_the_example_event_is_answered_with_the_object(invoke: Function) -> None:
    answer = invoke.invoke(json.loads((EVENTS / "invoke.json").read_text("utf-8")))
    assert answer["found"] == {
        "messages": 275,
        "threads": 275,
        "conversations": 6,
        "authors": 80,
        "first": "2016-05-02T18:08:04Z",
        "last": "2017-02-07T01:06:17Z",
    }


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ([], "the event is no JSON object"),
        ({}, "tool is missing"),
        ({"tool": "count_messages"}, "caller is missing"),
        ({"tool": "count_messages", "caller": ""}, "caller is missing"),
        ({"tool": "count_messages", "caller": "a", "arguments": []}, "arguments is no JSON object"),
        ({"tool": "count_messages", "caller": "a", "args": {}}, "an event has no field 'args'"),
        ({"export": "x", "caller": "a"}, "export stands alone and is an id"),
    ],
)
def test_an_event_of_no_known_shape_says_what_is_wrong(invoke: Function, event: Any, message: str) -> None:
    error = invoke.invoke(event)["error"]
    assert (error["code"], error["message"]) == ("bad_event", message)


def test_what_the_engine_refuses_comes_back_as_an_object(invoke: Function) -> None:
    event = {"tool": "count_messages", "arguments": {"role": "client"}, "caller": "a"}
    assert invoke.invoke(event)["error"] == {
        "code": "unknown_parameter",
        "message": "count_messages has no parameter 'role'",
        "next": "use from_role",
    }


def test_sessions_are_kept_apart_by_caller(invoke: Function) -> None:
    search = {"tool": "search_messages", "arguments": {"query": "docker", "limit": 1}}
    session = invoke.invoke({**search, "caller": "ada"})["session"]
    again = {"tool": "unseen_messages", "arguments": {"query": "docker", "limit": 1, "session": session}}
    assert invoke.invoke({**again, "caller": "ada"})["batch"] == 2
    assert invoke.invoke({**again, "caller": "bob"})["error"]["code"] == "unknown_session"


def test_the_rest_of_an_export_is_written_by_its_id(deployment: Deployment, invoke: Function) -> None:
    made = invoke.invoke({"tool": "export_messages", "arguments": {"query": "couchdb"}, "caller": "ada"})
    export_id = made["link"].rsplit("/", 1)[1]
    s3, bucket = deployment.aws.s3(), deployment.corpus_bucket
    key, record = next(
        (entry["Key"], found)
        for entry in s3.list_objects_v2(Bucket=bucket, Prefix="exports/records/")["Contents"]
        if (found := json.loads(s3.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read()))["export_id"]
        == export_id
    )
    s3.put_object(Bucket=bucket, Key=key, Body=json.dumps({**record, "state": "running", "rows": 0}).encode())
    assert invoke.invoke({"export": export_id}) == {"export": export_id, "state": "done", "rows": made["rows"]}
    assert invoke.invoke({"export": export_id}) == {"export": export_id, "state": "done", "rows": made["rows"]}
    assert invoke.invoke({"export": "a" * 43})["error"]["code"] == "unknown_export"
