"""What is counted between a reader and an S3 server, over the real one."""

import sys
from http.client import HTTPConnection
from pathlib import Path

import pytest

from engine.errors import Unavailable
from handler.bench.measure import Effort
from handler.bench.run import Asked
from handler.bench.s3 import measure
from handler.bench.s3_server import Counted, counting_proxy, seaweedfs


@pytest.mark.slow
@pytest.mark.aws
@pytest.mark.deep
def test_a_cold_process_is_counted_step_by_step(tmp_path: Path) -> None:
    found = measure(Asked(1_000, folder=tmp_path, effort=Effort(3)), lambda _: None)
    steps = {step["name"]: step for step in found["steps"]}
    for name in ("rare", "middling", "common"):
        assert 3 < steps[f"{name}: first count"]["requests"] < 60
        assert steps[f"{name}: then eight excerpts"]["requests"] > 0
        again = steps[f"{name}: then the same count"]
        assert (again["requests"], again["bytes"]) == (0, 0)
    assert steps["middling: first count by scan"]["bytes"] > 0
    assert steps["fetching the SQLite file"]["requests"] == 1
    assert all(step["share"] == round(step["bytes"] / found["snapshot_bytes"], 5) for step in found["steps"])


@pytest.mark.aws
def test_the_proxy_counts_bodies_and_requests_only(tmp_path: Path) -> None:
    with seaweedfs(tmp_path) as endpoint, counting_proxy(endpoint) as proxy:
        connection = HTTPConnection(proxy.endpoint.removeprefix("http://"), timeout=10)
        connection.request("GET", "/nothing/here")
        body = connection.getresponse().read()
        connection.request("HEAD", "/nothing/here")
        connection.getresponse().read()
        connection.close()
        assert proxy.counted == Counted(2, len(body))
        assert proxy.counted - Counted(1, len(body)) == Counted(1, 0)


def test_without_seaweedfs_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="weed is not installed"), seaweedfs(tmp_path / "data"):
        pass
