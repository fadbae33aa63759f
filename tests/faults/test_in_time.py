"""A server that keeps silent: a call ends with its time, and asks no more."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from engine.answer import Answer
from engine.errors import Unavailable
from engine.limits import Limits
from handler.deadline import TimedApp
from tests.faults.bench import CALLER, Corpus, Deployment, Scene, asking, ids_of, plain
from tests.faults.proxy import Fault

pytestmark = pytest.mark.aws

SHORT = replace(Limits(), call_seconds=0.9)
"""Less than what an adapter waits for one try here, so the call's time is over before a second one; and long enough for
the first request to go out on a machine that is busy."""


def answered(scene: Scene, tool: str) -> Answer:
    """What a call gets once the store is well: on a busy machine one may take longer than is allowed here."""
    for _ in range(20):
        with suppress(Unavailable):
            return scene.app.call(asking(tool, None), CALLER)
    return scene.app.call(asking(tool, None), CALLER)


def test_a_silent_store_of_snapshots_is_asked_once_and_the_next_call_is_answered(
    deployments: dict[str, Deployment], well: dict[str, Scene], corpus: Corpus, work: Path
) -> None:
    deployment = deployments["count"]
    with Scene(well["count"].stores, corpus.table, work, limits=SHORT).closing() as scene:
        app = TimedApp(scene.app, grace_seconds=20)
        silent = Fault("hang")
        with deployment.s3.failing(silent), pytest.raises(Unavailable) as caught:
            app.call(asking("count", None), CALLER)
        assert (caught.value.code, silent.hit) == ("too_slow", 1)
        assert plain(answered(scene, "count")) == corpus.right[corpus.newer]["count"]


def test_a_silent_store_of_sessions_is_asked_once_and_what_was_shown_comes_once(
    deployments: dict[str, Deployment], well: dict[str, Scene], corpus: Corpus, work: Path
) -> None:
    deployment = deployments["unseen"]
    with Scene(well["unseen"].stores, corpus.table, work, limits=SHORT).closing() as scene:
        session, shown = scene.start_session()
        silent = Fault("hang", lambda seen: seen.target == "Query")
        with deployment.dynamodb.failing(silent), pytest.raises(Unavailable) as caught:
            TimedApp(scene.app, grace_seconds=20).call(asking("unseen", session), CALLER)
        assert (caught.value.code, silent.hit) == ("store_unreachable", 1)
        rest: list[str] = []
        while page := ids_of(scene.app.call(asking("unseen", session, limit=50), CALLER)):
            rest += page
        assert sorted([*shown, *rest]) == sorted(corpus.matching)


def test_a_store_that_never_stops_answering_keeps_nobody_waiting(
    deployments: dict[str, Deployment], well: dict[str, Scene], corpus: Corpus, work: Path
) -> None:
    deployment = deployments["search"]
    with Scene(well["search"].stores, corpus.table, work, limits=SHORT).closing() as scene:
        # No read times out, so nothing but the end of the call ends it.
        endless = Fault("trickle", lambda seen: seen.target.endswith("manifest.json"), seconds=0.2)
        with deployment.s3.failing(endless), pytest.raises(Unavailable) as caught:
            TimedApp(scene.app, grace_seconds=0.1).call(asking("search", None), CALLER)
        assert (caught.value.code, endless.hit) == ("too_slow", 1)
        assert len(ids_of(answered(scene, "search"))) == 5
