"""What the built artifact writes, as Lambda would collect it."""

import json
import os
import socket
import subprocess
import time
from typing import Any

import pytest

from tests.aws.conftest import Deployment
from tests.aws.runtime_api import RUNTIME, Function, FunctionError, runtime_python
from tests.aws.test_lambda_mcp import called

pytestmark = [pytest.mark.aws, pytest.mark.slow]


def told(function: Function) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Metrics and log lines, of which every one is JSON."""
    lines = [json.loads(line) for line in function.output().splitlines() if line.strip()]
    return [each for each in lines if "_aws" in each], [each for each in lines if "_aws" not in each]


def test_a_call_over_mcp_tells_its_requests_and_nothing_of_what_was_asked(deployment: Deployment) -> None:
    with deployment.run("McpFunction") as function:
        for _ in range(2):
            found = called(function, "search_messages", {"query": "docker.sock", "limit": 2})["content"][0]["text"]
        metrics, lines = told(function)
        output = function.output()
    first, second = metrics
    assert first["service"] == "hayfork-mcp"
    assert (first["ColdStarts"], second["ColdStarts"]) == ([1], [0])
    assert first["S3Requests"][0] > second["S3Requests"][0]
    assert first["BytesScanned"][0] > 0
    assert second["DynamoDbRequests"] == [2], "one claim and one usage record"
    assert second["BytesReturned"] == [len(found.encode())]
    calls = [line for line in lines if line.get("message") == "call"]
    assert len({line["request_id"] for line in calls}) == 2
    session = found.partition("session ")[2].partition(" ")[0]
    for secret in ("docker.sock", session, deployment.aws.secret, "⟦"):
        assert secret not in output


def test_a_canary_that_finds_something_tells_so_and_one_that_does_not_fails(deployment: Deployment) -> None:
    with deployment.run("InvokeFunction") as function:
        assert function.invoke({"canary": "docker"}) == {"found": 275}
        with pytest.raises(FunctionError, match="unknown_message"):
            function.invoke({"canary": "nothing of the kind"})
        metrics, _ = told(function)
    assert [each["CanaryFailures"] for each in metrics if "CanaryFailures" in each] == [[0], [1]]
    ages = [each["SnapshotAge"][0] for each in metrics if "SnapshotAge" in each]
    assert len(ages) == 2
    assert all(0 <= age < 3_600 for age in ages)


def test_a_refresh_tells_how_long_it_took(deployment: Deployment) -> None:
    with deployment.run("RefreshFunction") as function:
        function.invoke({})
        metrics, lines = told(function)
    (one,) = metrics
    assert (one["Refreshes"], one["RefreshFailures"], one["service"]) == ([1], [0], "hayfork-refresh")
    assert one["S3Requests"][0] > 0
    assert any(str(line.get("message", "")).startswith("refresh: ") for line in lines)


def test_with_traces_each_invocation_is_a_subsegment_of_lambdas_own(deployment: Deployment) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as daemon:
        daemon.bind(("127.0.0.1", 0))
        daemon.settimeout(10)
        environment = {
            **deployment.environment("McpFunction"),
            "HAYFORK_SIGNALS_TRACES": "true",
            "AWS_XRAY_DAEMON_ADDRESS": f"127.0.0.1:{daemon.getsockname()[1]}",
        }
        with deployment.run("McpFunction", environment=environment) as function:
            called(function, "count_messages", {"query": "docker.sock"})
            sent = daemon.recv(65_536).decode()
    head, _, body = sent.partition("\n")
    assert json.loads(head) == {"format": "json", "version": 1}
    segment = json.loads(body)
    assert (segment["name"], segment["type"], segment["trace_id"]) == (
        "hayfork-mcp",
        "subsegment",
        "1-00000000-000000000000000000000000",
    )
    assert "docker.sock" not in sent


@pytest.mark.deep
def test_logs_and_metrics_cost_a_container_little_to_import(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    def seconds(statement: str) -> float:
        started = time.perf_counter()
        environment = {"PATH": os.defpath, "PYTHONPATH": f"{deployment.artifact}{os.pathsep}{RUNTIME}"}
        command = [runtime_python(), "-S", "-P", "-c", statement]
        subprocess.run(command, env=environment, cwd=deployment.artifact, check=True)
        return time.perf_counter() - started

    base = "import mcp, duckdb, boto3"
    more = (
        f"{base}; from aws_lambda_powertools import Logger; from aws_lambda_powertools.metrics import EphemeralMetrics"
    )
    seconds(more)  # the page cache is warm from here on
    pairs = [(seconds(base), seconds(more)) for _ in range(5)]
    plain, watched = min(each for each, _ in pairs), min(each for _, each in pairs)
    with capsys.disabled():
        os.write(1, f" [logs and metrics: {1_000 * (watched - plain):.0f} ms of {1_000 * watched:.0f} ms] ".encode())
    assert watched <= plain * 2  # a ratio of whole processes on a busy machine; the figure is told above
