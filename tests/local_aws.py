"""Local servers that stand in for AWS: SeaweedFS for S3, MiniStack for DynamoDB.

Both listen on loopback only, on ports that were free, keep their data in a temporary folder, check keys, and
are ended by their process id. SeaweedFS comes with the development packages, MiniStack by `make aws-tools`.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tests.loopback.sitecustomize import TOLD_IN

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client

__all__ = ["LocalAws", "free_ports", "ministack", "ministack_program", "seaweedfs", "start_local_aws"]

_ROOT = Path(__file__).resolve().parents[1]
_KEY, _SECRET, _REGION = "AKIDLOCALTESTS", "a-secret-for-local-tests", "us-east-1"
_CONFIG = Config(
    signature_version="s3v4",
    connect_timeout=2,
    read_timeout=10,
    retries={"total_max_attempts": 2, "mode": "standard"},
)


@dataclass(frozen=True, slots=True)
class LocalAws:
    """Where the two servers listen and the one pair of keys they take."""

    s3_endpoint: str
    dynamodb_endpoint: str
    key: str = _KEY
    secret: str = _SECRET
    region: str = _REGION

    @property
    def environment(self) -> dict[str, str]:
        """What boto3's chain finds in a process of these tests: the keys, and nothing of the machine."""
        return {
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def s3(self) -> "S3Client":
        """A client of the tests' own, to make buckets and look past the adapters."""
        client: S3Client = _client("s3", self.s3_endpoint, self.key, self.secret)
        return client

    def dynamodb(self) -> "DynamoDBClient":
        """Likewise for DynamoDB."""
        client: DynamoDBClient = _client("dynamodb", self.dynamodb_endpoint, self.key, self.secret)
        return client


@cache
def _client(service: Literal["s3", "dynamodb"], endpoint: str, key: str, secret: str) -> Any:
    # One for all tests: making one takes longer than most of them.
    return boto3.client(
        service,
        endpoint_url=endpoint,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        region_name=_REGION,
        config=_CONFIG,
    )


@contextmanager
def start_local_aws() -> Iterator[LocalAws]:
    """Both servers, until the block ends."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="hayfork-")))
        s3_endpoint = stack.enter_context(seaweedfs(folder))
        dynamodb_endpoint = stack.enter_context(ministack(folder))
        yield LocalAws(s3_endpoint, dynamodb_endpoint)


@contextmanager
def seaweedfs(folder: Path) -> Iterator[str]:
    """SeaweedFS with its data in `folder`; gives its S3 endpoint."""
    parts = ("s3", "master", "volume", "filer", "admin")
    ports = free_ports(2 * len(parts))
    data = folder / "seaweedfs"
    data.mkdir()
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": _KEY, "secretKey": _SECRET}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    config = folder / "seaweedfs.json"
    config.write_text(json.dumps({"identities": [identity]}))
    command = [
        str(Path(sys.executable).with_name("weed")),
        "mini",
        f"-dir={data}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        f"-s3.config={config}",
        f"-s3.localSocket={folder / 's3.sock'}",
        f"-filer.localSocket={folder / 'filer.sock'}",
        "-master.telemetry=false",
        # Each bucket takes a volume of its own, and there are as many as fit on the disk: small ones, for all tests'.
        "-master.volumeSizeLimitMB=16",
        "-webdav=false",
        "-admin.ui=false",
        "-s3.iam=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
    ]
    for part, port, grpc_port in zip(parts, ports[::2], ports[1::2], strict=True):
        command += [f"-{part}.port={port}", f"-{part}.port.grpc={grpc_port}"]
    endpoint = f"http://127.0.0.1:{ports[0]}"
    client = LocalAws(endpoint, "").s3()

    def write_and_list() -> object:
        # It answers requests before it can store anything.
        client.create_bucket(Bucket="ready")
        client.put_object(Bucket="ready", Key="ready", Body=b"ready")
        client.delete_object(Bucket="ready", Key="ready")
        return client.delete_bucket(Bucket="ready")

    with _running(command, folder, {}, write_and_list):
        yield endpoint


@contextmanager
def ministack(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """MiniStack with its files in `folder`; gives its endpoint. `settings` are its own, such as AUTH."""
    (port,) = free_ports(1)
    environment = {
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "IOT_MTLS_ENABLED": "0",
        "MINISTACK_REGION": _REGION,
        **(settings or {}),
    }
    endpoint = f"http://127.0.0.1:{port}"
    # Its own root keys: with AUTH it knows no others at first, without it takes any.
    client = LocalAws("", endpoint, "test", "test").dynamodb()
    with _running([str(ministack_program())], folder, environment, client.list_tables):
        yield endpoint


def ministack_program() -> Path:
    """The program `make aws-tools` installs.

    Raises:
        FileNotFoundError: it was not run yet.
    """
    program = _ROOT / "build" / "ministack" / "bin" / "ministack"
    if not program.exists():
        raise FileNotFoundError("MiniStack is not installed: run make aws-tools")
    return program


def free_ports(count: int) -> list[int]:
    """Ports nothing listens on at the moment, each another one."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def _running(
    command: list[str], folder: Path, environment: Mapping[str, str], ready: Callable[[], object]
) -> Iterator[None]:
    log = folder / f"{Path(command[0]).name}.log"
    # With the guard of tests/conftest.py, so that MiniStack too stays on this machine.
    guard = {name: os.environ[name] for name in (TOLD_IN,) if name in os.environ}
    guard["PYTHONPATH"] = str(_ROOT / "tests" / "loopback")
    own = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder), **guard, **environment}
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=folder, env=own)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                ready()
                break
            except (BotoCoreError, ClientError) as error:
                if process.poll() is not None or time.monotonic() > deadline:
                    tail = log.read_text(errors="replace")[-2_000:]
                    raise RuntimeError(f"{command[0]} did not start: {tail}") from error
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()
