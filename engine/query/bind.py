"""A request's criteria bound to what the caller sees: names become ordinals, dates instants, words a tree.

Decides which values exist, and says the nearest where one does not. Must never know how matches are found.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from difflib import SequenceMatcher, get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import BadInput, NotFound, give_list, quoted, values_in
from engine.model import ACTIVITY, BROADCAST, UNKNOWN_ROLE
from engine.query.parse import parse
from engine.query.tree import Tree, canonical
from engine.requests import Criteria
from engine.text import fold
from engine.times import iso, iso_minute, parse_instant
from engine.view import View

__all__ = ["WHOLE_ECHO", "BoundQuery", "Condition", "Echo", "bind"]

_STANDARD = {
    "from_role": ("client", "teammate", "bot", UNKNOWN_ROLE),
    "to_role": ("client", "teammate", "bot", UNKNOWN_ROLE),
    "kind": ("message", "bot", "file", ACTIVITY),
    "status": (),
}
"""Values the tools' descriptions name: they are valid, and match nothing, where the corpus has none."""

_NEAREST = 8
"""How many valid values an error offers."""

_NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five"}

_SINGLE = ("min_words", "after", "before")
"""Filters of one value, a number or an instant: repeated whole, or it would be another."""


@dataclass(frozen=True, slots=True)
class Echo:
    """How much of what was asked a result repeats: characters of the query and of a value, values of a filter."""

    query_chars: int = 300
    value_chars: int = 40
    values: int = 3


WHOLE_ECHO = Echo()
"""What a result repeats where there is room."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One filter: `mask` over all rows of the corpus. `values` are what it echoes, in the data's own spelling."""

    name: str
    values: tuple[str, ...]
    mask: NDArray[np.bool_]

    def echo(self, echo: Echo = WHOLE_ECHO) -> str:
        """`from_role client, bot and 2 more`."""
        if self.name in _SINGLE:
            return f"{self.name} {self.values[0]}"
        kept, rest = self._cut(echo)
        return " ".join(part for part in (self.name, ", ".join(kept), rest) if part)

    def listed(self, echo: Echo = WHOLE_ECHO) -> list[str]:
        """The same as a list: `["client", "bot", "and 2 more"]`."""
        kept, rest = self._cut(echo)
        return [*kept, rest] if rest else kept

    def _cut(self, echo: Echo) -> tuple[list[str], str]:
        """The values repeated, and words that count the rest."""
        rest = len(self.values) - echo.values
        told = "" if rest <= 0 else f"and {rest} more" if echo.values else f"{rest} values"
        return [_bounded(value, echo.value_chars) for value in self.values[: echo.values]], told


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """What is searched, exactly. `canonical` is the query spelled back, cut; `after` and `before` are instants."""

    tree: Tree | None
    canonical: str
    conditions: tuple[Condition, ...]
    notes: tuple[str, ...]
    after: int | None
    before: int | None
    asks_kind: bool
    fixed: frozenset[str]
    """Filters given one value: there is no use in a facet over them."""
    asked: Criteria
    """The filters as they were asked for, without the words: equal ones in one view leave equal rows."""

    def scope(self, view: View, *, without: str | None = None) -> NDArray[np.bool_]:
        """Rows that all conditions but the one named allow, of those that are searched by default."""
        asked = self.asks_kind and without != "kind"
        return self._under(view.said if asked else view.searchable, without)

    def hidden(self, view: View) -> NDArray[np.bool_] | None:
        """Rows of activity that all conditions allow and that are not searched; `None` when `kind` was asked for."""
        if self.asks_kind:
            return None
        return self._under(view.hidden, None)

    def _under(self, base: NDArray[np.bool_], without: str | None) -> NDArray[np.bool_]:
        mask = base
        for condition in self.conditions:
            if condition.name != without:
                mask = mask & condition.mask
        return mask

    def filters(self, echo: Echo = WHOLE_ECHO) -> dict[str, Any]:
        """The filters as the object form echoes them."""
        return {condition.name: self._plain(condition, echo) for condition in self.conditions}

    def _plain(self, condition: Condition, echo: Echo) -> Any:
        if condition.name not in _SINGLE:
            return condition.listed(echo)
        if condition.name == "min_words":
            return int(condition.values[0])
        instant = (self.after if condition.name == "after" else self.before) or 0
        return iso(instant) if instant % 1_000_000 == 0 else iso_minute(instant)


def bind(criteria: Criteria, view: View, zone: tzinfo) -> BoundQuery:
    """Bind what was asked to what is visible.

    Raises:
        BadInput: `bad_query`, `query_too_long`, `query_too_deep`, `bad_time`.
        NotFound: `unknown_value`, with the nearest visible values and how many messages each has.
    """
    parsed = parse(criteria.query, view.limits.query)
    notes = list(parsed.notes)
    conditions: list[Condition] = []
    for name in ("from_role", "to_role", "author", "conversation", "thread", "kind", "status"):
        values: tuple[str, ...] = getattr(criteria, name)
        if values:
            conditions.append(_bound(name, values, view, notes))
    if criteria.min_words:
        longer = view.narrow.words >= criteria.min_words
        conditions.append(Condition("min_words", (str(criteria.min_words),), longer))
    after = parse_instant("after", criteria.after, zone) if criteria.after is not None else None
    before = parse_instant("before", criteria.before, zone) if criteria.before is not None else None
    if after is not None:
        conditions.append(Condition("after", (iso_minute(after),), view.narrow.since(after)))
    if before is not None:
        conditions.append(Condition("before", (iso_minute(before),), ~view.narrow.since(before)))
    if after is not None and before is not None and after >= before:
        raise BadInput(
            "bad_time",
            f"after {quoted(criteria.after)} is not earlier than before {quoted(criteria.before)}",
            next_step="swap them: after is inclusive, before exclusive",
        )
    spelled = "" if parsed.tree is None else canonical(parsed.tree)
    return BoundQuery(
        tree=parsed.tree,
        canonical=_bounded(spelled, view.limits.query.echo_chars),
        conditions=tuple(conditions),
        notes=tuple(notes),
        after=after,
        before=before,
        asks_kind=bool(criteria.kind),
        fixed=frozenset(c.name for c in conditions if len(c.values) == 1),
        asked=replace(criteria, query=""),
    )


def _bounded(value: str, most: int = WHOLE_ECHO.value_chars) -> str:
    return value if len(value) <= most else value[: most - 1] + "…"


def _bind_value(name: str, values: Sequence[str], view: View) -> Condition:
    """Roles, kinds and statuses: values of the source, few of them."""
    manifest = view.corpus.manifest
    known = {
        "from_role": manifest.roles,
        "to_role": manifest.to_roles,
        "kind": manifest.kinds,
        "status": manifest.statuses,
    }
    column: NDArray[np.int16] = getattr(view.narrow, name)
    counts = view.remembered.get(
        ("messages of values", name),
        lambda: np.bincount(column[view.said] + 1, minlength=len(known[name]) + 1)[1:],
    ).tolist()
    present = [value for (value, _), count in zip(known[name], counts, strict=True) if count]
    ordinals = {value: ordinal for ordinal, (value, _) in enumerate(known[name])}
    folded = {fold(value).strip(): value for value in present}
    wanted = np.zeros(len(ordinals) + 1, dtype=bool)
    shown: list[str] = []
    for given in values:
        value = folded.get(fold(given).strip())
        if value is None and fold(given).strip() in _STANDARD[name]:
            shown.append(fold(given).strip())
            continue
        if value is None:
            # Who names a kind searches all of them; else activity is not searched.
            base = view.said if name == "kind" else view.searchable
            found = np.bincount(column[base] + 1, minlength=len(known[name]) + 1)[1:].tolist()
            raise _unknown(name, given, {value: found[ordinals[value]] for value in present})
        wanted[ordinals[value]] = True
        shown.append(value)
    if name == "to_role" and BROADCAST in ordinals:
        wanted[ordinals[BROADCAST]] = True
    return Condition(name, tuple(dict.fromkeys(shown)), wanted[column])


@dataclass(frozen=True, slots=True)
class _Directory:
    """Conversations or authors in sight: ordinals by folded name and by id; messages of each name that are searched."""

    by_name: Mapping[str, Sequence[int]]
    by_id: Mapping[str, Sequence[int]]
    messages: Mapping[str, int]


def _conversations(view: View) -> _Directory:
    return _directory(view, view.corpus.manifest.conversations, view.narrow.conversation, "#")


def _authors(view: View) -> _Directory:
    return _directory(view, view.corpus.manifest.authors, view.narrow.author, "@")


def _directory(
    view: View, table: Sequence[tuple[str, str, int]], column: NDArray[np.integer], sigil: str
) -> _Directory:
    counts = np.bincount(column[view.said], minlength=len(table)).tolist()
    searched = np.bincount(column[view.searchable], minlength=len(table)).tolist()
    visible = [(ordinal, row) for ordinal, row in enumerate(table) if counts[ordinal]]
    messages: Counter[str] = Counter()
    for ordinal, row in visible:
        messages[row[1]] += searched[ordinal]
    return _Directory(
        _ordinals((_bare_name(row[1], sigil), ordinal) for ordinal, row in visible),
        _ordinals((row[0].casefold(), ordinal) for ordinal, row in visible),
        messages,
    )


def _bind_named(name: str, values: Sequence[str], view: View, notes: list[str]) -> Condition:
    """Conversations and authors: an id, or a name that several ids may share."""
    manifest = view.corpus.manifest
    table = manifest.conversations if name == "conversation" else manifest.authors
    column: NDArray[np.uint32] = getattr(view.narrow, name)
    sigil, several = ("#", "conversations") if name == "conversation" else ("@", "people")
    directory = view.once(_conversations if name == "conversation" else _authors)
    wanted = np.zeros(len(table), dtype=bool)
    shown: list[str] = []
    for given in values:
        bare = given.strip().removeprefix(sigil)
        found = directory.by_id.get(bare.casefold()) or directory.by_name.get(_bare_name(given, sigil))
        if not found:
            raise _unknown(name, given, directory.messages)
        ids = list(dict.fromkeys(table[ordinal][0] for ordinal in found))
        if len(ids) > 1:
            number = _NUMBERS.get(len(ids), str(len(ids)))
            notes.append(f"{name} {quoted(bare)} is {number} {several}: {_listed(ids)}; filter by id for one")
        wanted[list(found)] = True
        shown += [table[ordinal][1] for ordinal in found]
    return Condition(name, tuple(dict.fromkeys(shown)), wanted[column])


def _bind_thread(name: str, values: Sequence[str], view: View) -> Condition:
    wanted: list[int] = []
    for given in values:
        thread = view.corpus.thread_of(given.strip(), view.visible)
        if thread is None:
            raise NotFound(
                "unknown_value",
                f"no thread is called {quoted(given)}",
                next_step="copy the thread of a message from a result",
            )
        wanted.append(thread)
    return Condition(name, tuple(dict.fromkeys(value.strip() for value in values)), np.isin(view.narrow.thread, wanted))


def _bound(name: str, values: Sequence[str], view: View, notes: list[str]) -> Condition:
    if name in {"author", "conversation"}:
        return _bind_named(name, values, view, notes)
    return _bind_thread(name, values, view) if name == "thread" else _bind_value(name, values, view)


def _bare_name(name: str, sigil: str) -> str:
    return fold(name).strip().removeprefix(sigil)


def _ordinals(pairs: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    out: dict[str, list[int]] = {}
    for key, ordinal in pairs:
        out.setdefault(key, []).append(ordinal)
    return out


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(_bounded(value) for value in ids[:6]) + (f" and {len(ids) - 6} more" if len(ids) > 6 else "")


def _unknown(name: str, given: str, present: Mapping[str, int]) -> NotFound:
    """An error that offers valid values with their messages: those that hold the one given, most messages first, then
    those most like it; of neither the largest.
    """
    folded: dict[str, str] = {}
    messages: Counter[str] = Counter()
    for value in sorted(present, key=lambda v: (-present[v], v)):
        key = fold(value).strip().lstrip("#@")
        folded.setdefault(key, value)
        messages[key] += present[value]
    bare = fold(given).strip().lstrip("#@")
    ordered = sorted(folded, key=lambda key: (-messages[key], key))
    inside = [key for key in ordered if bare and bare in key]
    like = get_close_matches(bare, ordered, n=_NEAREST, cutoff=0.5)
    like.sort(key=lambda key: (-SequenceMatcher(None, key, bare).ratio(), -messages[key], key))
    keys = list(dict.fromkeys([*inside, *like]))[:_NEAREST] or ordered[:_NEAREST]
    return NotFound(
        "unknown_value",
        f"no {name} is called {quoted(given)}",
        next_step=_way_out(name, given, folded, offered=bool(keys)),
        nearest={_bounded(folded[key]): messages[key] for key in keys},
    )


def _way_out(name: str, given: str, folded: Mapping[str, str], *, offered: bool) -> str:
    """What to do about an unknown value: several values in one text are a list, if they are known."""
    parts = [folded.get(fold(part).strip().lstrip("#@")) for part in values_in(given)]
    known = [part for part in parts if part is not None]
    if len(known) == len(parts) > 1:
        return give_list([_bounded(part) for part in known[:_NEAREST]])
    return "use one of nearest" if offered else f"no message has a {name}: leave it out"
