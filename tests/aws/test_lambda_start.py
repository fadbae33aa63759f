"""How a container starts: nothing before a snapshot that must not be in it, and no slower than its imports."""

import json
import os
import subprocess
import sys
import time
from statistics import median

import pytest

from tests.aws.conftest import Deployment
from tests.aws.gateway import event_of
from tests.aws.runtime_api import RUNTIME, RestoreGate, runtime_python
from tests.aws.test_lambda_mcp import called, counts

pytestmark = [pytest.mark.aws, pytest.mark.slow]

WATCH = """
import sys
def watch(event, args):
    if event == "socket.connect":
        sys.stderr.write("connected {}:{}\\n".format(*args[1][:2]))
sys.addaudithook(watch)
"""


def test_nothing_of_a_snapshot_holds_a_connection_and_the_restored_container_answers(deployment: Deployment) -> None:
    gate = RestoreGate()
    with deployment.run("McpFunction", gate=gate, preload=WATCH) as function:
        assert gate.reached.wait(60)
        connected = [line for line in function.output().splitlines() if line.startswith("connected")]
        assert set(connected) == {f"connected {function.address}"}, "the Runtime API alone"
        gate.open.set()
        text = called(function, "count_messages", {"query": "docker"})["content"][0]["text"]
        assert counts(text) == (275, 6)


def test_a_snapshot_is_taken_without_credentials(deployment: Deployment) -> None:
    keys = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    environment = {k: v for k, v in deployment.environment("McpFunction").items() if k not in keys}
    gate = RestoreGate()
    with deployment.run("McpFunction", environment=environment, gate=gate):
        assert gate.reached.wait(60)


@pytest.mark.deep
def test_a_cold_start_is_told_beside_its_imports(deployment: Deployment, capsys: pytest.CaptureFixture[str]) -> None:
    def cold() -> float:
        started = time.perf_counter()
        with deployment.run("McpFunction") as function:
            called(function, "count_messages", {"query": "docker"})
            return time.perf_counter() - started

    def imports() -> float:
        started = time.perf_counter()
        environment = {"PATH": os.defpath, "PYTHONPATH": f"{deployment.artifact}{os.pathsep}{RUNTIME}"}
        command = [runtime_python(), "-S", "-P", "-c", "import mcp, duckdb, boto3"]
        subprocess.run(command, env=environment, cwd=deployment.artifact, check=True)
        return time.perf_counter() - started

    cold(), imports()  # the page cache is warm for both from here on
    pairs = [(cold(), imports()) for _ in range(8)]
    # Machines are noisy: each start beside the imports of the same moment, and of these ratios the middle one.
    ratio = median(c / i for c, i in pairs)
    with capsys.disabled():
        sys.stdout.write(f"\ncold start to the first count, over imports alone: {ratio:.2f} (wanted: at most 1.5)\n")


def test_the_way_through_gateway_event_and_protocol_is_told_in_milliseconds(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    listing = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    with deployment.run("McpFunction") as function:
        times = []
        for sent in [body, listing] * 50:
            event = event_of("http-api", body=sent)
            started = time.perf_counter()
            assert function.invoke(event)["statusCode"] == 200
            times.append(time.perf_counter() - started)
    middle = sorted(times)[len(times) // 2] * 1_000
    with capsys.disabled():
        sys.stdout.write(f"\na warm call's way through event, protocol and JSON: {middle:.1f} ms (wanted: under 5)\n")
