"""`count_messages`: how many, when, where and from whom, without any text.

Decides which breakdowns stand in a count and how they shrink to fit. Every number is exact and computed from visible
rows. Must never know texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.answer import Answer
from engine.call import Call
from engine.errors import Refused
from engine.facets import dimension, of_time, period
from engine.facts import facts_line, facts_object
from engine.hints import close_notes, close_of, hints_of, is_word, term_name, words_of
from engine.hits import Hits, find
from engine.pack import fits
from engine.query.bind import WHOLE_ECHO, Echo, bind
from engine.query.tree import positive_terms
from engine.render import (
    bounded_notes,
    counted,
    distinct,
    found_line,
    found_object,
    hint_lines,
    inline,
    searched_line,
    searched_object,
    shortened,
)
from engine.requests import CountRequest
from engine.tables import Table, tabulate
from engine.tally import add
from engine.text import fold, one_line
from engine.times import SECOND, bucketing, to_date

__all__ = ["count"]

Rows = NDArray[np.int64]

_FACETS = (("conversation", 10), ("author", 8), ("from_role", 8), ("kind", 8))
"""The default breakdown, and how many values of each."""

_BUCKETS = 24


@dataclass(frozen=True, slots=True)
class _Rung:
    """One step of the ladder a count shrinks along: shares of the default sizes, and what is dropped."""

    share: float
    name_chars: int
    words: int
    terms: int
    buckets: bool = True
    rows: int = 40
    facets: bool = True
    echo: Echo = WHOLE_ECHO
    compared_chars: int = 300
    notes_bytes: int = 1_200


_LADDER = (
    _Rung(1.0, 80, 8, 8),
    _Rung(1.0, 40, 6, 6, rows=40),
    _Rung(0.6, 32, 4, 4, rows=30),
    _Rung(0.4, 24, 3, 3, rows=20),
    _Rung(0.2, 16, 2, 2, rows=12),
    _Rung(0.1, 12, 0, 0, rows=6, echo=Echo(120, 20, 2), compared_chars=60, notes_bytes=600),
    _Rung(0.1, 12, 0, 0, buckets=False, rows=3, echo=Echo(60, 12, 1), compared_chars=30, notes_bytes=300),
    _Rung(0.0, 8, 0, 0, buckets=False, rows=1, facets=False, echo=Echo(24, 8, 0), compared_chars=12, notes_bytes=0),
)
"""Tried in order until one fits; the last one does in every page that settings allow."""


@dataclass(frozen=True, slots=True)
class _Facet:
    """One breakdown: the largest values with their counts, and how many values and messages there are in all."""

    name: str
    top: tuple[tuple[str, int], ...]
    values: int
    messages: int


@dataclass(frozen=True, slots=True)
class _Term:
    name: str
    messages: int
    words: dict[str, int]
    close: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Count:
    """All that was counted, before it is known how much of it fits."""

    hits: Hits
    compared: tuple[Hits, ...]
    over_time: Table | None
    facets: tuple[_Facet, ...]
    terms: tuple[_Term, ...]
    table: Table | None
    hints: dict[str, Any]
    notes: tuple[str, ...]
    facts: dict[str, Any]
    facts_line: str


def count(request: CountRequest, call: Call) -> Answer:
    """Count what matches.

    Raises:
        Refused: `page_too_small` where a deployment leaves no room for even the last rung.
        EngineError: what `bind` and `find` raise.
    """
    view = call.view
    query = bind(request.criteria, view, call.zone)
    hits = find(view, query, brute=call.brute)
    compared = tuple(
        find(view, bind(replace(request.criteria, query=text), view, call.zone), brute=call.brute)
        for text in request.compare
    )
    by = [dimension(name, view, query, call.zone) for name in request.by]
    plain = request.criteria.is_empty and not request.by
    made = _Count(
        hits=hits,
        compared=compared,
        over_time=None if by else _over_time(hits, compared, call),
        facets=_facets(hits, call) if hits.found.messages and not by else (),
        terms=_terms(hits) if hits.found.messages else (),
        table=tabulate(by, hits, compared) if by else None,
        hints=hints_of(hits) if not hits.found.messages else {},
        notes=(
            *query.notes,
            *(note for each in compared for note in each.query.notes),
            *_dominance(hits),
            *close_notes(hits),
        ),
        facts=facts_object(view) if plain else {},
        facts_line=facts_line(view) if plain else "",
    )
    budget = view.limits.page
    room = budget.page if by else budget.count
    for rung in _LADDER:
        text, structured = _text(made, rung), _object(made, rung)
        if fits(text, structured, budget, room):
            return Answer(text, structured)
        add("budget_cuts")
    raise Refused("page_too_small", "not even the counts alone fit", next_step="raise limits.count_bytes")


def _over_time(hits: Hits, compared: Sequence[Hits], call: Call) -> Table | None:
    span = period(hits.view, hits.query)
    if span is None:
        return None
    return tabulate([of_time(hits.view, bucketing(*span, call.zone, most=_BUCKETS))], hits, compared, people=False)


def _facets(hits: Hits, call: Call) -> tuple[_Facet, ...]:
    facets = []
    for name, most in _FACETS:
        if name in hits.query.fixed:
            continue
        of = dimension(name, hits.view, hits.query, call.zone)
        counts = of.counts(hits.rows)
        values = int(np.count_nonzero(counts))
        order = np.argsort(-counts, kind="stable")[: min(most, values)]
        names = zip(of.labels(order.tolist()), counts[order].tolist(), strict=True)
        top = tuple((label, number) for label, number in names if label is not None)
        facets.append(_Facet(name, top, values, int(counts.sum())))
    return tuple(facets)


def _terms(hits: Hits) -> tuple[_Term, ...]:
    if hits.query.tree is None:
        return ()
    positive = {(fold(term.text), term.whole, term.part) for term in positive_terms(hits.query.tree)}
    out = []
    for each in hits.occurrences[: _LADDER[0].terms]:
        term = each.term
        if (fold(term.text), term.whole, term.part) not in positive:
            continue
        rows = each.rows[hits.scope[each.rows]]
        words = each.words(hits.view.corpus, rows) if is_word(term) and len(rows) else {}
        alone = set(words) <= {fold(term.text)}
        # Without hits the hints speak of what is close.
        close = close_of(hits, each) if hits.found.messages else {}
        out.append(_Term(term_name(term), len(rows), {} if alone else words_of(words), close))
    return tuple(out)


def _dominance(hits: Hits) -> tuple[str, ...]:
    """A note when one author wrote nearly all matches: a bot's season is not a trend."""
    view, found = hits.view, hits.found
    if found.messages < 10 or found.authors < 2 or "author" in hits.query.fixed:
        return ()
    people = view.persons[hits.rows]
    counts = np.bincount(people)
    person = int(counts.argmax())
    if counts[person] < 0.9 * found.messages:
        return ()
    own = view.narrow.second[view.said & (view.persons == person)]
    first, last = int(own.min()), int(own.max())
    row = int(hits.rows[people == person][0])
    name = view.corpus.manifest.authors[view.narrow.author[row]][1]
    note = f"{counts[person]} of {found.messages} are by {inline(name)}"
    span = period(view, hits.query)
    if span is not None and 2 * (last - first) < span[1] // SECOND - span[0] // SECOND:
        note += f", which wrote only from {to_date(first * SECOND)} to {to_date(last * SECOND)}"
    return (note,)


def _object(made: _Count, rung: _Rung) -> dict[str, Any]:
    out: dict[str, Any] = {
        "searched": searched_object(made.hits.searched, rung.echo),
        "found": found_object(made.hits.found),
    }
    if made.facts:
        out["corpus"] = _facts(made, rung)
    if made.compared:
        out["compare"] = [_compared(each, rung) for each in made.compared]
    if made.over_time is not None and rung.buckets:
        out["over_time"] = made.over_time.over_time()
    if made.facets and rung.facets:
        out["top"] = {facet.name: dict(_cut(facet, rung)) for facet in made.facets}
        rest = {facet.name: left for facet in made.facets if (left := _rest(facet, rung))}
        if rest:
            out["rest"] = rest
    if made.terms[: rung.terms]:
        out["terms"] = {
            term.name: {"messages": term.messages}
            | ({"words": dict(list(term.words.items())[: rung.words])} if term.words and rung.words else {})
            | ({"close": dict(list(term.close.items())[: rung.words])} if term.close and rung.words else {})
            for term in made.terms[: rung.terms]
        }
    if made.table is not None:
        out["table"] = made.table.cut(rung.rows, rung.name_chars).to_object()
    hints = _hints(made, rung)
    if hints:
        out["hints"] = hints
    notes = bounded_notes(made.notes, rung.notes_bytes)
    if notes:
        out["notes"] = notes
    return out


def _text(made: _Count, rung: _Rung) -> str:
    table = made.table or (made.over_time if rung.buckets else None)
    zone = table.zone if table is not None else ""
    lines = [searched_line(made.hits.searched, rung.echo, zone), found_line(made.hits.found)]
    lines += [made.facts_line] if made.facts_line and rung.facets else []
    lines += [
        f"compare: {inline(each.query.canonical, rung.compared_chars)}: {counted(each.found.messages, 'message')}"
        f" by {counted(each.found.authors, 'author')}"
        for each in made.compared
    ]
    if made.over_time is not None and rung.buckets:
        lines.append(made.over_time.line())
    for facet in made.facets if rung.facets else ():
        parts = [f"{one_line(value)} {number}" for value, number in _cut(facet, rung)]
        left = _rest(facet, rung)
        parts += [f"{left['values']} more with {left['messages']}"] if left else []
        lines.append(f"{facet.name}: {', '.join(parts)}")
    for term in made.terms[: rung.terms]:
        words = ", ".join(f"{inline(word)} {number}" for word, number in list(term.words.items())[: rung.words])
        close = ", ".join(f"{inline(word)} {number}" for word, number in list(term.close.items())[: rung.words])
        lines.append(
            f"term {inline(term.name)}: "
            + (f"inside {words}" if words else counted(term.messages, "message"))
            + (f"; close: {close}" if close else "")
        )
    if made.table is not None:
        lines += made.table.cut(rung.rows, rung.name_chars).lines()
    lines += hint_lines(_hints(made, rung))
    lines += [f"note: {note}" for note in bounded_notes(made.notes, rung.notes_bytes)]
    return "\n".join(lines)


def _facts(made: _Count, rung: _Rung) -> dict[str, Any]:
    """The corpus in numbers; on the last rung without its values."""
    if rung.facets:
        return made.facts
    return {name: value for name, value in made.facts.items() if not isinstance(value, dict)}


def _compared(hits: Hits, rung: _Rung) -> dict[str, Any]:
    """One further query: its meaning and counts; on the last rung how many messages alone."""
    query = shortened(hits.query.canonical, rung.compared_chars)
    found = found_object(hits.found)
    return {"query": query, **(found if rung.facets else {"messages": found["messages"]})}


def _hints(made: _Count, rung: _Rung) -> dict[str, Any]:
    """The hints; without terms on the rungs that name none."""
    return {name: value for name, value in made.hints.items() if name != "terms" or rung.terms}


def _cut(facet: _Facet, rung: _Rung) -> Sequence[tuple[str, int]]:
    """The largest values, their names shortened and each another."""
    top = facet.top[: max(1, int(dict(_FACETS)[facet.name] * rung.share))]
    names = distinct((value for value, _ in top), rung.name_chars)
    return list(zip(names, (number for _, number in top), strict=True))


def _rest(facet: _Facet, rung: _Rung) -> dict[str, int]:
    shown = _cut(facet, rung)
    if facet.values <= len(shown):
        return {}
    return {
        "values": facet.values - len(shown),
        "messages": facet.messages - sum(number for _, number in shown),
    }
