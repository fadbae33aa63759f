"""The adapters under test, each with what its contract suite needs beside the port itself."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from engine.ports import Export, ExportStore, SeenStore, SnapshotStore
from infra.localdir import LocalExports, LocalSnapshots
from infra.sqlite import SqliteSeen

__all__ = [
    "Clock",
    "ExportBench",
    "SeenBench",
    "SnapshotBench",
    "local_exports",
    "local_snapshots",
    "sqlite_seen",
]

NOON = 1_796_126_400_000_000
"""2026-12-01 12:00 UTC in microseconds."""


@dataclass
class Clock:
    """Time that moves when a test says so, in microseconds since 1970."""

    now: int = NOON

    def __call__(self) -> int:
        return self.now


@dataclass
class SeenBench:
    """`open` gives a store as another process would see it; `arguments` tell `claim_worker` which to open."""

    open: Callable[[], SeenStore]
    arguments: list[str]
    clock: Clock = field(default_factory=Clock)


@dataclass
class SnapshotBench:
    """`plant` writes a file below the root past the store; `names` lists every file there."""

    open: Callable[[], SnapshotStore]
    plant: Callable[[str, bytes], None]
    names: Callable[[], list[str]]
    arguments: list[str]


@dataclass
class ExportBench:
    """`fetch` gives what the holder of the link gets; `names` lists every file below the root."""

    open: Callable[[], ExportStore]
    fetch: Callable[[ExportStore, Export], bytes | None]
    names: Callable[[], list[str]]


def sqlite_seen(folder: Path) -> SeenBench:
    clock = Clock()
    path = folder / "state" / "seen.sqlite"
    return SeenBench(lambda: SqliteSeen(path, clock=clock), ["sqlite", str(path)], clock)


def local_snapshots(folder: Path) -> SnapshotBench:
    root = folder / "root"

    def plant(name: str, data: bytes) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)

    return SnapshotBench(lambda: LocalSnapshots(root), plant, lambda: _files(root), ["localdir", str(root)])


def local_exports(folder: Path) -> ExportBench:
    root = folder / "root"

    def fetch(store: ExportStore, export: Export) -> bytes | None:
        path = Path(store.link(export))
        return path.read_bytes() if path.exists() else None

    return ExportBench(lambda: LocalExports(root), fetch, lambda: _files(root))


def _files(root: Path) -> list[str]:
    return sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file() and p.name != "lock")
