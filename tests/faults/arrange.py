"""How each fault of the table is brought about, by its words: rules for a proxy, or damage below a root."""

import json
import random
import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.snapshot.format import CURRENT, FORMAT_VERSION, MANIFEST
from tests.faults.bench import Scene
from tests.faults.proxy import Fault, Seen

__all__ = ["damaged", "flipped", "plant_flipped", "proxy_fault"]

_LATE_SECONDS = 0.05
_SESSIONS = ("seen.sqlite", "seen.sqlite-wal", "seen.sqlite-shm")
_JSON = "application/x-amz-json-1.0"


def _error_xml(code: str) -> bytes:
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>made up</Message></Error>".encode()


def _error_json(code: str) -> bytes:
    return json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "made up"}).encode()


def _dynamodb(status: int, code: str) -> Fault:
    return Fault("answer", status=status, body=_error_json(code), content_type=_JSON)


_KINDS: dict[str, Callable[[], Fault]] = {
    "503 SlowDown": lambda: Fault("answer", status=503, body=_error_xml("SlowDown")),
    "500 InternalError": lambda: Fault("answer", status=500, body=_error_xml("InternalError")),
    "403 ExpiredToken": lambda: Fault("answer", status=403, body=_error_xml("ExpiredToken")),
    "403 RequestTimeTooSkewed": lambda: Fault("answer", status=403, body=_error_xml("RequestTimeTooSkewed")),
    "throttled": lambda: _dynamodb(400, "ProvisionedThroughputExceededException"),
    "500 InternalServerError": lambda: _dynamodb(500, "InternalServerError"),
    "400 ExpiredTokenException": lambda: _dynamodb(400, "ExpiredTokenException"),
    "connection cut": lambda: Fault("cut"),
    "no answer": lambda: Fault("hang"),
    "late first byte": lambda: Fault("late", seconds=_LATE_SECONDS),
    "body cut short": lambda: Fault("truncate"),
    "answer lost": lambda: Fault("cut after"),
}


def _is_write(seen: Seen) -> bool:
    return seen.target in {"PutItem", "UpdateItem"} or (seen.method == "PUT")


def _is_parquet(seen: Seen) -> bool:
    return seen.method in {"GET", "HEAD"} and seen.target.partition("?")[0].endswith(".parquet")


_SUBJECTS: dict[str, Callable[[Seen], bool]] = {
    "request": lambda _: True,
    "read of Parquet": _is_parquet,
    "write": _is_write,
}


def proxy_fault(what: str, when: str) -> Fault:
    """The rule for `what`, on every or the first request `when` names."""
    fault = _KINDS[what]()
    number, _, subject = when.partition(",")[0].partition(" ")
    fault.matches = _SUBJECTS[subject]
    fault.times = {"every": None, "first": 1}[number]
    return fault


@contextmanager
def damaged(scene: Scene, what: str, newer: str, older: str) -> Iterator[None]:
    """Damage below the root of a scene for the block; what passes by itself is lifted at its end."""
    stores = scene.stores
    root = stores.root
    files = [name for name in stores.names() if name.startswith(f"snapshots/{newer}/")]
    text = next(name for name in files if name.endswith("text.parquet"))

    def cut(name: str) -> None:
        stores.plant(name, stores.fetch(name)[:-100])

    match what:
        case "file cut short":
            cut(text)
        case "bit flipped":
            plant_flipped(scene, f"snapshots/{newer}/0000/postings.parquet")
        case "object replaced":
            # By another of the same size, in a place that DuckDB reads without an error.
            plant_flipped(scene, text)
        case "file missing":
            stores.plant(text, None)
        case "manifest cut short":
            cut(f"snapshots/{newer}/{MANIFEST}")
        case "newer format":
            manifest = json.loads(stores.fetch(f"snapshots/{newer}/{MANIFEST}")) | {"version": FORMAT_VERSION + 1}
            stores.plant(f"snapshots/{newer}/{MANIFEST}", json.dumps(manifest).encode())
        case "CURRENT deleted":
            stores.plant(CURRENT, None)
        case "all files cut short":
            for snapshot_id in (newer, older):
                cut(text.replace(newer, snapshot_id))
        case "clock an hour back":
            scene.clock.now -= 3_600_000_000
        case "clock a day ahead":
            scene.clock.now += 86_000_000_000
        case "sessions no database":
            held = {name: (root / name).read_bytes() for name in _SESSIONS if (root / name).exists()}
            for name in held:
                stores.plant(name, b"no database" * 1_000)
            yield
            for name, data in held.items():
                stores.plant(name, data)
            return
        case "sessions locked":
            with _locked(root / "seen.sqlite"):
                yield
            return
        case "disk full":
            with _nothing_fits():
                yield
            return
        case _:
            raise ValueError(what)
    yield


def plant_flipped(scene: Scene, name: str) -> None:
    """The file with one bit the other way round."""
    scene.stores.plant(name, flipped(scene.stores.fetch(name), seed=1))


def flipped(data: bytes, seed: int) -> bytes:
    """The data with one bit the other way round."""
    chance = random.Random(seed)
    out = bytearray(data)
    out[chance.randrange(4, len(out) - 8)] ^= 1 << chance.randrange(8)
    return bytes(out)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Another process is in the middle of a long transaction."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("BEGIN EXCLUSIVE")
        yield
    finally:
        connection.close()


@contextmanager
def _nothing_fits() -> Iterator[None]:
    """No file of this process may grow: what a full disk does, without one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
