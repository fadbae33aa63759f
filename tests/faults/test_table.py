"""Each fault of the table against each tool: what the caller sees, and that nothing is wrong, lost or left behind."""

import re
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from engine.answer import Answer
from engine.errors import EngineError
from engine.record import UNRECORDED
from tests.contracts.benches import Clock
from tests.faults.arrange import damaged, proxy_fault
from tests.faults.bench import (
    CALLER,
    TOOLS,
    Corpus,
    Deployment,
    Scene,
    asking,
    folder_stores,
    ids_of,
    plain,
    plant_snapshots,
    reset,
)
from tests.faults.proxy import Proxy
from tests.faults.table import Row, as_markdown, rows

ROWS = list(rows())
SHOWING = ("search", "unseen", "open")
"""Tools whose answers a session remembers."""
CALL_SECONDS, WAIT_SECONDS = 29.0, 5.0
"""How long a caller waits, and an adapter for one request, in a deployment. Here an adapter waits a fifth of it."""


@dataclass
class Trial:
    """One cell being tried: a process over stores of its own, and the session that was shown a page before."""

    row: Row
    tool: str
    corpus: Corpus
    scene: Scene
    proxy: Proxy | None
    session: str
    first_page: list[str]
    current: str | None
    files: frozenset[str] = frozenset()
    """What lay below the root before the fault."""
    stays: bool = False
    """Whether the process goes on with the next row."""

    def files_of_exports(self) -> list[str]:
        """Only an export makes any."""
        return [] if self.tool != "export" else [n for n in self.scene.stores.names() if n.endswith(".jsonl")]

    def new_files(self) -> list[str]:
        """Files of exports that came since."""
        return [name for name in self.files_of_exports() if name not in self.files]

    @contextmanager
    def ending(self) -> Iterator[None]:
        """At the end connections are let go, and what a refresh did is taken back."""
        if self.stays:
            yield
        else:
            with self.scene.closing():
                yield
        if self.tool == "refresh" and self.proxy is not None:
            reset(self.scene.stores, self.corpus)

    def fault(self) -> AbstractContextManager[None]:
        """The row's fault, for a block."""
        if self.proxy is not None:
            return self.proxy.failing(proxy_fault(self.row.what, self.row.when))
        return damaged(self.scene, self.row.what, self.corpus.newer, self.corpus.older)


@pytest.mark.aws
@pytest.mark.parametrize("where", ["S3", "DynamoDB", "snapshot in S3"])
def test_each_fault_on_aws_shows_each_caller_what_the_table_says(
    where: str, corpus: Corpus, work: Path, deployments: dict[str, Deployment], well: dict[str, Scene]
) -> None:
    def opened(row: Row, tool: str) -> Trial:
        deployment, same = deployments[tool], well[tool]
        session, shown = same.start_session() if tool in SHOWING else ("", [])
        proxy = {"S3": deployment.s3, "DynamoDB": deployment.dynamodb}.get(where)
        if where == "DynamoDB" and tool != "refresh":
            # Nothing is read from there at a start: the process goes on from row to row.
            return Trial(row, tool, corpus, same, proxy, session, shown, corpus.newer, stays=True)
        stores = same.stores
        if where == "snapshot in S3":
            stores = deployment.stores(f"{secrets.token_hex(4)}/")
            plant_snapshots(stores, corpus)
        scene = Scene(stores, corpus.table, work, clock=Clock(same.clock.now))
        return Trial(row, tool, corpus, scene, proxy, session, shown, corpus.newer)

    check_rows(where, opened, at_once=len(TOOLS))


@pytest.mark.parametrize("where", ["snapshot in a folder", "folder and SQLite"])
def test_each_fault_on_one_machine_shows_each_caller_what_the_table_says(
    where: str, corpus: Corpus, work: Path
) -> None:
    roots = count()

    def opened(row: Row, tool: str) -> Trial:
        root = work / str(next(roots))
        plant_snapshots(folder_stores(root), corpus)
        session, shown = "", list[str]()
        if tool in SHOWING:
            with Scene(folder_stores(root), corpus.table, work).closing() as before:
                session, shown = before.start_session()
        return Trial(
            row, tool, corpus, Scene(folder_stores(root), corpus.table, work), None, session, shown, corpus.newer
        )

    check_rows(where, opened, at_once=1)


def check_rows(where: str, opened: Callable[[Row, str], Trial], at_once: int) -> None:
    """Every row of a place, all tools of a row at once where they may: much of a fault is waiting."""
    told = {}

    def trial(row: Row, tool: str) -> str:
        tried = begun(opened(row, tool))
        seen = seen_in_time(tried)
        if seen[0] == row.cells[tool]:
            check(tried, seen)
        return seen[0]

    with ThreadPoolExecutor(at_once) as pool:
        for row in (each for each in ROWS if each.where == where):
            told[row.name] = dict(zip(TOOLS, pool.map(partial(trial, row), TOOLS), strict=True))
    assert told == {row.name: row.cells for row in ROWS if row.where == where}


def test_documentation_shows_the_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "faults.md"
    assert page.read_text("utf-8").partition("<!-- table -->\n")[2] == as_markdown()


def begun(tried: Trial) -> Trial:
    """A process that has opened nothing, unless the row says that it was asked before."""
    if tried.row.when.endswith("asked before"):
        answer = ask(tried)
        if isinstance(answer, Answer) and "messages" in answer.object:
            tried.first_page += ids_of(answer)
        tried.scene.clock.now += 60_000_000
        tried.current = tried.scene.stores.snapshots.current()
    tried.files = frozenset(tried.files_of_exports())
    return tried


Seen = tuple[str, Answer | EngineError | None]


def seen_in_time(tried: Trial) -> Seen:
    """What the caller sees under the fault, in the words of the table; with the answer or error itself."""
    before = len(tried.proxy.log) if tried.proxy is not None else 0
    with tried.fault():
        seen = seen_by(tried)
    if tried.proxy is not None:
        # What hangs is all that takes long.
        waits = sum(kind == "hang" for _, kind in tried.proxy.log[before:])
        assert waits * WAIT_SECONDS < CALL_SECONDS
    tried.scene.clock.now += 60_000_000
    return seen


def check(tried: Trial, seen: Seen) -> None:
    """After the fault the same process is well, and the caller has missed nothing."""
    with tried.ending():
        if tried.tool == "refresh":
            check_refreshed(tried, seen[0])
        elif tried.row.where.startswith("snapshot"):
            check_healed(tried)
        else:
            check_recovered(tried, *seen)


def ask(tried: Trial, tool: str = "", **changes: Any) -> Answer | dict[str, Any]:
    tool = tool or tried.tool
    if tool == "refresh":
        return tried.scene.app.refresh(force=True)
    return tried.scene.app.call(asking(tool, tried.session, **changes), CALLER)


def seen_by(tried: Trial, **changes: Any) -> Seen:
    scene = tried.scene
    alarms = len(scene.alarms)
    try:
        answer = ask(tried, **changes)
    except EngineError as error:
        return error.code, error
    if not isinstance(answer, Answer):
        return ("published" if answer["published"] else "not published"), None
    words = [which(tried.corpus, tried.tool, answer)]
    words += ["alarm"] if len(scene.alarms) > alarms else []
    words += ["not recorded"] if UNRECORDED in answer.object.get("notes", ()) else []
    return ", ".join(words), answer


def which(corpus: Corpus, tool: str, answer: Answer) -> str:
    """Of which snapshot this is the right answer, to the last count."""
    for word, snapshot_id in (("answer", corpus.newer), ("older", corpus.older)):
        right, given = dict(corpus.right[snapshot_id][tool]), plain(answer)
        if tool == "unseen":
            for each in (right, given):
                del each["messages"]
                del each["left_out"]
        if right == given:
            return word
    return f"wrong: {plain(answer)}"


def check_recovered(tried: Trial, saw: str, given: Answer | EngineError | None) -> None:
    """The same process answers, and every match is shown once: by what was recorded, or by what comes next."""
    tool, shown, noted = tried.tool, set(tried.first_page), set[str]()
    if isinstance(given, EngineError):
        assert tried.new_files() == []
        saw, given = seen_by(tried, **way_out(given))
        assert saw == "answer"
    assert isinstance(given, Answer)
    if tool in SHOWING:
        new = ids_of(given)
        assert len(set(new)) == len(new)
        assert tool != "unseen" or not set(new) & shown
        if "not recorded" in saw:
            noted |= set(new)
        else:
            shown |= set(new)
        check_drained(tried, shown, noted)
    if tool == "export":
        check_export(tried, given)


def way_out(error: EngineError) -> dict[str, Any]:
    """The change of arguments an error names, if any."""
    named = re.search(r"after_batch=(\d+)", error.next_step)
    return {"after_batch": int(named[1])} if named else {}


def check_drained(tried: Trial, shown: set[str], noted: set[str]) -> None:
    """What is still unseen comes, once, and nothing is missing then."""
    while page := ids_of(tried.scene.app.call(asking("unseen", tried.session, limit=50), CALLER)):
        assert len(set(page)) == len(page)
        assert not set(page) & shown
        shown |= set(page)
    assert shown | noted == tried.corpus.matching


def check_export(tried: Trial, answer: Answer) -> None:
    """One file, and it is what the answer says."""
    (name,) = tried.new_files()
    data = tried.scene.stores.fetch(name)
    assert sha256(data).hexdigest() == answer.object["sha256"]
    assert data.count(b"\n") == answer.object["rows"] == len(tried.corpus.matching)
    # An export looks at the records of all others.
    for each in [each for each in tried.scene.stores.names() if each.startswith("exports/")]:
        tried.scene.stores.plant(each, None)


def check_refreshed(tried: Trial, saw: str) -> None:
    """A refresh that failed changed nothing a reader sees; the next one is clean."""
    store = tried.scene.stores.snapshots
    if saw != "published":
        assert store.current() == tried.current
        assert set(store.snapshots()) == {tried.corpus.older, tried.corpus.newer, tried.current}
        assert tried.scene.app.refresh(force=True)["published"]
    check_whole(tried)
    assert answer_now(tried, "count") == undated(tried.corpus.right[tried.corpus.newer]["count"])


def check_healed(tried: Trial) -> None:
    """A plain refresh replaces what is broken, and the process goes on with it; one tool stands for all."""
    if tried.tool != "count":
        return
    assert tried.scene.app.refresh()["published"]
    tried.scene.clock.now += 60_000_000
    check_whole(tried)
    assert answer_now(tried, tried.tool) == undated(tried.corpus.right[tried.corpus.newer][tried.tool])


def check_whole(tried: Trial) -> None:
    """The current snapshot is not one of those planted, and every file of it is as its manifest says."""
    assert tried.scene.stores.snapshots.current() not in {tried.corpus.older, tried.corpus.newer}
    assert tried.scene.app.verify()["rows"] == len(tried.corpus.matching)


def answer_now(tried: Trial, tool: str) -> dict[str, Any]:
    answer = ask(tried, tool)
    assert isinstance(answer, Answer)
    return undated(plain(answer))


def undated(plain_answer: dict[str, Any]) -> dict[str, Any]:
    """An answer's object without the time of its snapshot."""
    searched = {name: value for name, value in plain_answer.get("searched", {}).items() if name != "as_of"}
    return {**plain_answer, "searched": searched}
