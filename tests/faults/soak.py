"""Random calls of many agents for a long time, and what they cost: latency, errors, memory."""

import random
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import EngineError
from engine.requests import CountRequest, Criteria, Request, SearchRequest, ThreadRequest, UnseenRequest
from tests.faults.bench import CALLER, Scene, ids_of

__all__ = ["Report", "soak"]

_QUERIES = ("docker", "failed", "code", "number 7", '"docker failed"', "=that", "docker NOT code", "nothing", "")


@dataclass
class Report:
    """What the calls cost. Seconds by tool; errors by code; resident megabytes every few seconds."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    memory: list[tuple[float, float]] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """Calls answered."""
        return sum(map(len, self.seconds.values()))

    def memory_at(self, second: float) -> float:
        """Resident megabytes at the sample nearest to a time since the start."""
        return min(self.memory, key=lambda sample: abs(sample[0] - second))[1]

    def lines(self) -> list[str]:
        """The report as people read it."""
        out = [f"calls {self.calls}, errors {dict(self.errors)}"]
        for tool, unsorted in sorted(self.seconds.items()):
            took = sorted(unsorted)
            points = ", ".join(f"p{p} {took[len(took) * p // 100] * 1e3:.1f} ms" for p in (50, 95, 99))
            out.append(f"{tool}: {len(took)} calls, {points}, most {took[-1] * 1e3:.0f} ms")
        first, last = self.memory[0], self.memory[-1]
        out.append(f"memory: {first[1]:.0f} MB after {first[0]:.0f} s, {last[1]:.0f} MB after {last[0]:.0f} s")
        return out


def soak(scene: Scene, *, agents: int, seconds: float, sample_seconds: float = 1.0) -> Report:
    """Let `agents` call at once for `seconds`, each in sessions of its own."""
    report = Report()
    start = time.monotonic()
    with ThreadPoolExecutor(agents) as pool:
        running = [
            pool.submit(_agent, scene, report, seed, lambda: time.monotonic() - start < seconds)
            for seed in range(agents)
        ]
        while time.monotonic() - start < seconds:
            time.sleep(min(sample_seconds, seconds / 20))
            report.memory.append((time.monotonic() - start, resident_mb()))
        for each in running:
            each.result()
    return report


def resident_mb() -> float:
    """Resident memory of this process, in megabytes."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1_024


def _agent(scene: Scene, report: Report, seed: int, go_on: Callable[[], bool]) -> None:
    chance = random.Random(seed)
    session: str | None = None
    shown: list[str] = []
    while go_on():
        if chance.random() < 0.02:
            session, shown = None, []
        tool, request = _request(chance, session, shown)
        began = time.monotonic()
        try:
            answer = scene.app.call(request, CALLER)
        except EngineError as error:
            report.errors[error.code] += 1
            continue
        report.seconds.setdefault(tool, []).append(time.monotonic() - began)
        session = answer.object.get("session", session)
        if "messages" in answer.object:
            shown = ids_of(answer) or shown


def _request(chance: random.Random, session: str | None, shown: list[str]) -> tuple[str, Request]:
    criteria = Criteria(query=chance.choice(_QUERIES), author=chance.choice(((), ("Ada",), ("Bo", "Chen"))))
    search = SearchRequest(criteria, limit=chance.randint(1, 20), context=chance.choice((0, 0, 2)), session=session)
    tool = chance.choice(("count", "search", "unseen", "open"))
    if tool == "count":
        return tool, CountRequest(criteria, by=chance.choice(((), ("author",), ("month", "conversation"))))
    if tool == "unseen":
        return tool, UnseenRequest(search)
    if tool == "open" and shown:
        return tool, ThreadRequest((chance.choice(shown),), session=session)
    return "search", search
