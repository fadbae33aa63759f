"""The refresh function: what it publishes, when it does nothing, and what it leaves when it fails."""

import json
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.aws.conftest import FABRIC, Deployment
from tests.aws.runtime_api import Function, FunctionError
from tests.aws.test_lambda_mcp import called, counts

pytestmark = [pytest.mark.aws, pytest.mark.slow]

Made = Callable[[], AbstractContextManager[Deployment]]


@pytest.fixture(scope="module")
def own(new_deployment: Made) -> Iterator[Deployment]:
    """A deployment of this module's own, since its sources change."""
    with new_deployment() as made:
        yield made


@pytest.fixture(scope="module")
def refresh(own: Deployment) -> Iterator[Function]:
    with own.run("RefreshFunction") as function:
        yield function


def with_one_more(folder: Path, text: str) -> Path:
    """The slice with one message more, as another upload of the same name."""
    changed = folder / FABRIC.name
    with zipfile.ZipFile(FABRIC) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
        days = [name for name in old.namelist() if name.startswith("chaincode/") and name.endswith(".json")]
        for name in old.namelist():
            raw = old.read(name)
            if name == days[-1]:
                messages = json.loads(raw)
                messages.append({"type": "message", "user": "U0", "ts": "1486400000.000001", "text": text})
                raw = json.dumps(messages).encode()
            new.writestr(name, raw)
    return changed


def objects(deployment: Deployment) -> dict[str, str]:
    listed = deployment.aws.s3().list_objects_v2(Bucket=deployment.corpus_bucket)
    return {entry["Key"]: entry["ETag"] for entry in listed.get("Contents", [])}


def locked(deployment: Deployment) -> list[dict[str, Any]]:
    table = deployment.environment("RefreshFunction")["HAYFORK_AWS_LOCK_TABLE"]
    items: list[dict[str, Any]] = deployment.aws.dynamodb().scan(TableName=table)["Items"]
    return items


def test_an_empty_source_is_an_error_and_publishes_nothing(own: Deployment, refresh: Function) -> None:
    with pytest.raises(FunctionError, match="source_unreadable: nothing lies at the location"):
        refresh.invoke({})
    assert (objects(own), locked(own)) == ({}, [])


def test_a_changed_source_is_seen_within_a_minute_and_without_a_restart(
    own: Deployment, refresh: Function, tmp_path: Path
) -> None:
    own.upload(FABRIC)
    first = refresh.invoke({})
    assert (first["published"], first["messages"]) == (True, 15_000)
    assert locked(own) == []
    with own.run("McpFunction") as mcp:
        before = called(mcp, "count_messages", {"query": "zzznotthere"})["content"][0]["text"]
        assert counts(before)[0] == 0
        kept = objects(own)
        assert refresh.invoke({}) == {"snapshot": first["snapshot"], "published": False, "why": "no source changed"}
        assert objects(own) == kept
        own.upload(with_one_more(tmp_path, "the zzznotthere is there"))
        second = refresh.invoke({})
        assert (second["published"], second["messages"]) == (True, 15_001)
        deadline = time.monotonic() + 60
        while counts(called(mcp, "count_messages", {"query": "zzznotthere"})["content"][0]["text"])[0] != 1:
            assert time.monotonic() < deadline
            threading.Event().wait(0.5)  # a container looks for a newer snapshot every 30 s of real time
    forced = refresh.invoke({"force": True})
    assert (forced["published"], forced["messages"]) == (True, 15_001)


def test_one_refresh_at_a_time(own: Deployment, refresh: Function) -> None:
    own.upload(FABRIC)
    table = own.environment("RefreshFunction")["HAYFORK_AWS_LOCK_TABLE"]
    item = {"name": {"S": "refresh"}, "owner": {"S": "another"}, "expires_at": {"N": "99999999999"}}
    own.aws.dynamodb().put_item(TableName=table, Item=item)
    refused = refresh.invoke({})
    assert refused == {
        "refreshed": False,
        "why": {
            "code": "refresh_running",
            "message": "another refresh is running",
            "next": "wait until it is done",
        },
    }
    # A killed refresh leaves its lock to its own next try, which Lambda makes under the same id.
    assert "published" in refresh.invoke({}, request_id="another")
    assert locked(own) == []
    own.aws.dynamodb().put_item(TableName=table, Item={**item, "expires_at": {"N": "1000"}})
    assert "published" in refresh.invoke({})
    assert locked(own) == []


def test_it_does_not_start_what_it_cannot_end(own: Deployment, refresh: Function) -> None:
    kept = objects(own)
    with pytest.raises(FunctionError, match="no_time: "):
        refresh.invoke({"force": True}, timeout_seconds=25)
    assert (objects(own), locked(own)) == (kept, [])


def test_its_log_holds_no_text_key_or_place(own: Deployment, refresh: Function, tmp_path: Path) -> None:
    own.upload(with_one_more(tmp_path, "the zzznotthere is there"))
    refresh.invoke({"force": True})
    output = refresh.output()
    assert "refresh: {'snapshot'" in output
    for secret in ("zzznotthere", own.aws.secret, own.source_bucket, "hayfork-lambda-"):
        assert secret not in output
