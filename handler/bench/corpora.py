"""The made-up corpora and what each system makes of them, kept in a folder between runs.

Decides where things are kept and when they are made anew: a name holds the parameters and a digest of the code that
made it. Must never know how a system stores anything.
"""

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from engine.model import SourceMessage, SourceReport
from engine.snapshot.format import FORMAT_VERSION
from engine.synth import generate
from handler.bench.processes import in_own_process

__all__ = ["Built", "Synth", "code_digest", "kept", "kept_file"]

_PACKAGES = Path(__file__).resolve().parents[2]

_CHUNK = 10_000

_ENGINE_PARTS = (
    "engine/snapshot",
    "engine/index",
    "engine/synth",
    "engine/text.py",
    "engine/model.py",
    "engine/refresh.py",
)
"""What decides the bytes of a snapshot of made-up messages."""


@dataclass(frozen=True, slots=True)
class Built:
    """What building a system's files took. `seconds` leave out the time the messages took to be made up.

    `index_bytes` are what is there only to be searched, `unspaced_bytes` those of them that serve scripts without
    spaces, where that can be told; `all_bytes` everything.
    """

    seconds: float
    peak_bytes: int
    rows: int
    text_bytes: int
    index_bytes: int
    all_bytes: int
    unspaced_bytes: int = 0


class Synth:
    """A `Source` that makes its messages up, and knows how long that took."""

    def __init__(self, messages: int, seed: int) -> None:
        self._messages = messages
        self._seed = seed
        self.drawing_seconds = 0.0

    @property
    def name(self) -> str:
        """What it is called in a report."""
        return "synth"

    def digest(self) -> str:
        """Of the two parameters: they decide every byte."""
        return hashlib.sha256(f"synth {self._messages} {self._seed}".encode()).hexdigest()

    def messages(self, report: SourceReport) -> Iterator[SourceMessage]:
        """All messages."""
        for message in self:
            report.read += 1
            report.yielded += 1
            yield message

    def __iter__(self) -> Iterator[SourceMessage]:
        drawn = generate(self._messages, self._seed)
        while True:
            start = time.perf_counter()
            chunk = list(islice(drawn, _CHUNK))
            self.drawing_seconds += time.perf_counter() - start
            if not chunk:
                return
            yield from chunk


@cache
def code_digest(parts: Sequence[str]) -> str:
    """Of the bytes of some modules and packages, named from the folder that holds the packages."""
    digest = hashlib.sha256(str(FORMAT_VERSION).encode())
    for part in parts:
        place = _PACKAGES / part
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            if file.is_file():
                digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def kept(
    folder: Path,
    system: str,
    messages: int,
    seed: int,
    build: Callable[[Path, int, int], Built],
    own_parts: Sequence[str] = (),
) -> tuple[Path, Built]:
    """The files of a system over that corpus and what building them took; built in a process of its own if missing.

    What older code made of the same corpus is removed.
    """
    prefix = f"{system}-{messages}-{seed}-"
    place = folder / f"{prefix}{code_digest((*_ENGINE_PARTS, *own_parts))}"
    done = place / "built.json"
    if not done.is_file():
        for old in folder.glob(f"{prefix}*"):
            shutil.rmtree(old)
        place.mkdir(parents=True)
        built = in_own_process(build, place / "data", messages, seed)
        done.write_text(json.dumps(asdict(built)), "utf-8")
    return place / "data", Built(**json.loads(done.read_text("utf-8")))


def kept_file(folder: Path, name: str, parts: Sequence[str], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """An object kept as JSON under a name, made anew when the code of `parts` or of the corpora has changed."""
    place = folder / f"{name}-{code_digest((*_ENGINE_PARTS, *parts))}.json"
    if not place.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        made = make()
        for old in folder.glob(f"{name}-*.json"):
            old.unlink()
        place.write_text(json.dumps(made), "utf-8")
    read: dict[str, Any] = json.loads(place.read_text("utf-8"))
    return read
