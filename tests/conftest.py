"""Fixtures that several packages of tests share, and the guard that keeps every test's traffic on this machine."""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local_aws import LocalAws, start_local_aws
from tests.loopback.sitecustomize import ATTEMPTS, TOLD_IN, guard

GUARD = Path(__file__).parent / "loopback"

RECURSION_LIMIT = sys.getrecursionlimit()
"""What the product meets: a library of a chain's cryptography, which tests of payment import, raises it for all."""


def pytest_configure() -> None:
    """Refuse traffic beyond loopback, here and in every Python process that inherits this one's environment."""
    handle, told_in = tempfile.mkstemp(prefix="hayfork-traffic-")
    os.close(handle)
    os.environ[TOLD_IN] = told_in
    path = os.environ.get("PYTHONPATH", "")
    if str(GUARD) not in path.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join([str(GUARD), *([path] if path else [])])
    guard()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The test that waits longest begins first: all else runs beside it, and nobody waits for it at the end."""
    items.sort(key=lambda item: item.path.name != "test_deploy.py")


def pytest_runtest_setup() -> None:
    """Deep JSON must meet the interpreter's own limit, not the end of its stack."""
    sys.setrecursionlimit(RECURSION_LIMIT)


def pytest_unconfigure() -> None:
    """Take the file of attempts away."""
    Path(os.environ.pop(TOLD_IN)).unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def no_traffic_beyond_loopback() -> Iterator[None]:
    """Fails the test in whose time something reached beyond this machine."""
    yield
    told_in = Path(os.environ[TOLD_IN])
    told = told_in.read_text("utf-8") if told_in.exists() else ""
    if ATTEMPTS or told:
        hosts = [*ATTEMPTS, told]
        ATTEMPTS.clear()
        told_in.write_text("", "utf-8")
        pytest.fail(f"reached beyond this machine: {hosts}")


@pytest.fixture(scope="session")
def local_aws() -> Iterator[LocalAws]:
    """The local S3 and DynamoDB servers, and an environment in which boto3's chain finds their keys alone."""
    with start_local_aws() as aws, pytest.MonkeyPatch.context() as patch:
        for name, value in aws.environment.items():
            patch.setenv(name, value)
        patch.delenv("AWS_SESSION_TOKEN", raising=False)
        patch.delenv("AWS_PROFILE", raising=False)
        yield aws
