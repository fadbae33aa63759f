"""Random calls of many agents for a long time, and what they cost: latency, errors, memory."""

import math
import random
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import EngineError
from engine.requests import CountRequest, Criteria, Request, SearchRequest, ThreadRequest, UnseenRequest
from handler.deadline import TimedApp
from tests.faults.bench import CALLER, Scene, ids_of

__all__ = ["Durations", "Report", "soak"]

_QUERIES = ("docker", "failed", "code", "number 7", '"docker failed"', "=that", "docker NOT code", "nothing", "")


_STEPS = 50
"""Durations are counted by steps of two in a hundred: what is kept of them must not grow with the calls."""


@dataclass
class Durations:
    """How long calls of one tool took: how many in each step, and the longest, in seconds."""

    steps: Counter[int] = field(default_factory=Counter)
    most: float = 0.0

    @property
    def calls(self) -> int:
        """How many there were."""
        return self.steps.total()

    def add(self, seconds: float) -> None:
        """Count one."""
        self.steps[round(_STEPS * math.log(seconds))] += 1
        self.most = max(self.most, seconds)

    def percentile(self, percent: int) -> float:
        """So many in a hundred took no longer, in seconds."""
        left = self.calls * percent / 100
        for step in sorted(self.steps):
            left -= self.steps[step]
            if left <= 0:
                return math.exp(step / _STEPS)
        return self.most


@dataclass
class Report:
    """What the calls cost. Durations by tool; errors by code; resident megabytes every few seconds."""

    seconds: dict[str, Durations] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    memory: list[tuple[float, float]] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """Calls answered."""
        return sum(each.calls for each in self.seconds.values())

    def memory_at(self, second: float) -> float:
        """Resident megabytes at the sample nearest to a time since the start."""
        return min(self.memory, key=lambda sample: abs(sample[0] - second))[1]

    def lines(self) -> list[str]:
        """The report as people read it."""
        out = [f"calls {self.calls}, errors {dict(self.errors)}"]
        for tool, took in sorted(self.seconds.items()):
            points = ", ".join(f"p{p} {took.percentile(p) * 1e3:.1f} ms" for p in (50, 95, 99))
            out.append(f"{tool}: {took.calls} calls, {points}, most {took.most * 1e3:.0f} ms")
        end = self.memory[-1][0]
        told = (f"{self.memory_at(at):.0f} MB after {at:.0f} s" for at in (1, 60, end / 4, end / 2, end))
        out.append(f"memory: {', '.join(told)}")
        return out


def soak(scene: Scene, *, agents: int, seconds: float, sample_seconds: float = 1.0) -> Report:
    """Let `agents` call at once for `seconds`, each in sessions of its own."""
    report = Report({tool: Durations() for tool in ("count", "open", "search", "unseen")})
    app = TimedApp(scene.app)
    start = time.monotonic()
    with ThreadPoolExecutor(agents) as pool:
        running = [
            pool.submit(_agent, app, report, seed, lambda: time.monotonic() - start < seconds) for seed in range(agents)
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


def _agent(app: TimedApp, report: Report, seed: int, go_on: Callable[[], bool]) -> None:
    chance = random.Random(seed)
    session: str | None = None
    shown: list[str] = []
    while go_on():
        if chance.random() < 0.02:
            session, shown = None, []
        tool, request = _request(chance, session, shown)
        began = time.monotonic()
        try:
            answer = app.call(request, CALLER)
        except EngineError as error:
            report.errors[error.code] += 1
            continue
        report.seconds[tool].add(time.monotonic() - began)
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
