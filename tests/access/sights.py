"""Applications over small corpora, random policies, and random calls of everything a caller can ask."""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path
from typing import Any

from engine.answer import Answer
from engine.errors import EngineError
from engine.limits import Limits, Retention
from engine.model import ACTIVITY, TOMBSTONE, SourceMessage
from engine.ports import SeenStore
from engine.reader import SnapshotReader
from engine.requests import (
    CountRequest,
    Criteria,
    ExportRequest,
    Request,
    SearchRequest,
    ThreadRequest,
    UnseenRequest,
)
from engine.sight import EVERYTHING, Caller, Sight
from engine.snapshot.open import Corpus
from engine.view import View
from handler.local_app import LocalApp, Parts
from infra.localdir import LocalExports, LocalSnapshots
from tests.engine.corpora import MINUTE, NOON, SETTINGS, random_messages, random_query, said

__all__ = ["Told", "app_over", "hard_messages", "plan_of", "random_sights", "spelled", "told"]


class _Opened(SnapshotReader):
    """The one corpus of a test, in place of the current snapshot of a store."""

    def __init__(self, corpus: Corpus, folder: Path) -> None:
        super().__init__(LocalSnapshots(folder), SETTINGS, Limits(), lambda _: None)
        self._view = View(corpus, EVERYTHING, Limits())

    def view(self, sight: Sight, now: int) -> View:
        del now
        if sight != self._view.sight:
            self._view = View(self._view.corpus, sight, Limits())
        return self._view


def app_over(corpus: Corpus, folder: Path, seen: SeenStore) -> LocalApp:
    """The application over a corpus, its clock stopped."""
    return LocalApp(
        Parts(
            name="sights",
            zone=UTC,
            limits=Limits(),
            clock=lambda: NOON,
            snapshots=LocalSnapshots(folder),
            reader=_Opened(corpus, folder),
            seen=seen,
            exports=LocalExports(folder),
            sources=tuple,
            rules="",
            database=SETTINGS,
            retention=Retention(1, 0),
            version="0",
        )
    )


def hard_messages(chance: random.Random) -> list[SourceMessage]:
    """Random messages, and what is known to be hard: namesakes, a hidden root, copies, a bot that is most of a word."""
    plain = random_messages(chance, 36)
    at = 900_000
    hard = [
        said(at, "namesake of one room", author="Kim", author_id="k1", conversation="open", from_role="client"),
        said(at + 1, "namesake of another", author="Kim", author_id="k2", conversation="closed", from_role="vendor"),
        said(at + 2, "root of a talk", author="Eve", conversation="open", from_role="teammate"),
        said(at + 3, "reply one to the root", author="Kim", author_id="k1", conversation="open", from_role="client"),
        said(at + 4, "reply two to the root", author="Eve", conversation="open", kind="bot", from_role="bot"),
        *(
            said(
                at + 10 + n,
                "the very same text of five words",
                author=f"a{n % 3}",
                conversation=("open", "closed")[n % 2],
            )
            for n in range(6)
        ),
        *(
            said(
                at + 20 + n,
                f"nightly build failed {n}",
                author="ci",
                conversation="closed",
                kind="bot",
                from_role="bot",
            )
            for n in range(11)
        ),
        said(at + 40, "nightlybuild and buildings and rebuild", author="Ann", conversation="open"),
        said(
            at + 41, "secretword only here", author="Mallory", conversation="closed", status="sealed", to_role="board"
        ),
        said(at + 42, "joined", author="Mallory", conversation="closed", kind=ACTIVITY),
        said(at + 43, "joined", author="Eve", conversation="open", kind=ACTIVITY),
        said(1, "very old words", author="Old", conversation="open"),
        # Longer than the floor of ranking, each by another length, so that an average of lengths says something.
        *(
            said(
                at + 50 + n,
                "the long reply of words " * (5 + 3 * n),
                author="Eve",
                conversation=("closed", "open")[n % 2],
            )
            for n in range(8)
        ),
    ]
    for n in (3, 4):
        hard[n] = replace(hard[n], thread_native_id=str(at + 2))
    known = {m.native_id for m in plain}
    return plain + [m for m in hard if m.native_id not in known]


_ROOMS = ("c1", "c2", "c3", "open", "closed")
_NAMES = {"c1": "general", "c2": "общий", "c3": "general"}


def random_sights(chance: random.Random, most: int) -> list[Sight]:
    """Policies of as many kinds, each of which others may spell otherwise."""
    out = []
    for _ in range(most):
        rooms = chance.sample(_ROOMS, chance.choice((1, 2, 3, 4, 5, 5)))
        out.append(
            Sight(
                allow=tuple(rooms) if len(rooms) < 5 or chance.random() < 0.3 else (),
                deny=chance.choice(((), (), (), ("closed",), ("c3", "open"))),
                roles=chance.choice(((), (), (), ("client", "vendor", "bot"), ("teammate", "unknown", "nobody"))),
                kinds=chance.choice(((), (), (), ("message", TOMBSTONE), ("message", ACTIVITY, "bot"))),
                oldest=chance.choice((None, None, None, NOON + 2 * MINUTE, NOON + 50_000 * 7_777_777)),
            )
        )
    return out


def spelled(sight: Sight, chance: random.Random) -> Sight:
    """The same sight in other words: order, case, signs, patterns, and what changes nothing."""

    def other(name: str) -> str:
        forms = (name, name.upper(), f"#{name}", f"[{name[0]}]{name[1:]}")
        return chance.choice(forms)

    def mixed(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(other(name) for name in chance.sample(list(names), len(names)))

    return Sight(
        mixed(sight.allow) + (("nowhere*",) if sight.allow and chance.random() < 0.5 else ()),
        mixed(sight.deny) + (("nobody's",) if chance.random() < 0.5 else ()),
        tuple(chance.sample(sight.roles, len(sight.roles))),
        tuple(chance.sample(sight.kinds, len(sight.kinds))),
        sight.oldest,
    )


_QUERIES = (
    "the",
    "text OR reply OR words",
    "namesake",
    "build",
    "nightly",
    "secretword",
    "secretwort",
    "secret-word",
    "nightlybuilds",
    "namesakes",
    "failing replies",
    '"same text"',
    "root OR reply",
    "NOT the",
    "build NOT nightly",
    "zzz",
    "old",
)
_VALUES: dict[str, tuple[Any, ...]] = {
    "author": ("Kim", "Mallory", "Malory", "k2", "zoe", "ci", "Юри", "Eve"),
    "conversation": ("closed", "close", "general", "общий", "c3", "open", "nowhere"),
    "from_role": ("client", "vendor", "bot", "vendr"),
    "to_role": ("client", "board", "bord"),
    "kind": ("activity", "message", "file", "bots"),
    "status": ("open", "sealed", "seald"),
}
_FIELDS = ("score", "text", "thread_size", "copies", "attributes", "link")
_BY = ("conversation", "author", "from_role", "to_role", "kind", "status", "thread", "day", "month", "quarter", "year")


def _criteria(chance: random.Random, ids: Sequence[str]) -> Criteria:
    query = chance.choice((*_QUERIES, "", random_query(chance), random_query(chance)))
    filters: dict[str, Any] = {}
    for name in chance.sample([*_VALUES, "thread", "after", "before", "min_words"], chance.choice((0, 0, 1, 1, 2))):
        if name == "thread":
            filters[name] = (chance.choice(ids),)
        elif name in {"after", "before"}:
            filters[name] = chance.choice(("2016-12", "2017-01-15", "2017-06", "2018"))
        elif name == "min_words":
            filters[name] = chance.choice((2, 5))
        else:
            filters[name] = tuple(chance.sample(_VALUES[name], chance.choice((1, 1, 2))))
    return Criteria(query=query, **filters)


@dataclass(frozen=True, slots=True)
class _Plan:
    """Requests in turn; those that take a session get that of the first that gave one."""

    requests: tuple[Request, ...]


def plan_of(chance: random.Random, messages: Sequence[SourceMessage]) -> _Plan:
    """A call of each tool, most with arguments of their own, over messages some of which are hidden."""
    ids = [m.message_id for m in messages]
    criteria = _criteria(chance, ids)
    search = SearchRequest(
        criteria,
        limit=chance.choice((2, 5, 50)),
        context=chance.choice((0, 0, 2)),
        order=chance.choice(("best", "best", "newest", "oldest")),
        fields=chance.choice((None, _FIELDS, _FIELDS)),
    )
    return _Plan(
        (
            CountRequest(_criteria(chance, ids), compare=tuple(chance.sample(_QUERIES, chance.choice((0, 2))))),
            CountRequest(criteria, by=tuple(chance.sample(_BY, chance.choice((1, 2))))),
            search,
            # What scores is as sensitive as anything to what is counted where it should not be.
            SearchRequest(Criteria(query=chance.choice(_QUERIES[:4])), limit=4, fields=_FIELDS),
            UnseenRequest(replace(search, limit=3)),
            ThreadRequest(
                tuple(chance.sample(ids, chance.choice((1, 1, 2)))),
                view=chance.choice(("auto", "thread", "conversation", "author")),
                earlier=chance.choice((0, 4)),
            ),
            ExportRequest(replace(criteria, query=criteria.query or "NOT zzz")),
        )
    )


Told = tuple[object, ...]


def told(app: LocalApp, caller: Caller, plan: _Plan) -> Told:
    """Everything that the caller is told: each answer's text and object, each error, instructions and the corpus."""
    out: list[object] = [app.instructions(caller), app.corpus(caller)]
    session: str | None = None
    for request in plan.requests:
        try:
            answer = app.call(_with_session(request, session), caller)
        except EngineError as error:
            out.append((error.to_text(), error.to_object()))
            continue
        if session is None:
            session = answer.object.get("session")
        out.append(_plain(answer))
    return tuple(out)


def _with_session(request: Request, session: str | None) -> Request:
    match request:
        case SearchRequest() | ThreadRequest():
            return replace(request, session=session)
        case UnseenRequest():
            return replace(request, search=replace(request.search, session=session))
        case _:
            return request


_HANDLE = re.compile(r"session [\w-]{22}")
_LINK = re.compile(r"^link: .*$", re.MULTILINE)


def _plain(answer: Answer) -> tuple[str, dict[str, Any], bytes]:
    """Text and object without handle and link, and the file behind the link."""
    file = Path(answer.link).read_bytes() if answer.link is not None else b""
    text = _LINK.sub("link", _HANDLE.sub("session", answer.text))
    return text, dict(_bare(answer.object)), file


def _bare(found: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in found.items():
        if name not in {"session", "link"}:
            yield name, value
