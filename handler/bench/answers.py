"""What a system answered, in one form for all, and where answers differ.

Decides what systems must agree on. A benchmark whose systems disagree is void. Must never know how anything was found.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

__all__ = ["Answered", "disagreement", "of_tool"]


@dataclass(frozen=True, slots=True)
class Answered:
    """Exact counts; `None` where a system does not compute one.

    `first` and `last` are instants in seconds as the tools write them. `months` maps a month to its matches, without
    zeros. `facets` hold, for each dimension, the counts of its values, largest first.
    """

    messages: int
    threads: int | None = None
    conversations: int | None = None
    authors: int | None = None
    first: str | None = None
    last: str | None = None
    months: Mapping[str, int] | None = None
    facets: Mapping[str, Sequence[int]] = field(default_factory=dict)


def of_tool(answer: Mapping[str, Any]) -> Answered:
    """The counts of an object of `count_messages` or `search_messages`."""
    found = answer["found"]
    over_time = answer.get("over_time")
    months = None
    if over_time is not None and over_time["unit"] == "month":
        months = {label: matches for label, matches, _ in over_time["rows"] if matches}
    facets = {}
    for name, values in answer.get("top", {}).items():
        rest = answer.get("rest", {}).get(name)
        # The tail is told as a sum; a negative number marks how many values it stands for.
        facets[name] = [*values.values(), *([-rest["values"], rest["messages"]] if rest else [])]
    return Answered(
        found["messages"],
        found["threads"],
        found["conversations"],
        found["authors"],
        found.get("first"),
        found.get("last"),
        months,
        facets,
    )


def disagreement(answers: Mapping[str, Answered]) -> str | None:
    """The first thing two systems differ in, `None` when all agree on all that both compute."""
    (first_name, first), *others = answers.items()
    for name, other in others:
        for part in fields(Answered):
            ours, theirs = getattr(first, part.name), getattr(other, part.name)
            if part.name == "facets":
                shared = [dimension for dimension in ours if dimension in theirs]
                if any(not _same_facet(ours[d], theirs[d]) for d in shared):
                    return f"{first_name} and {name} differ in facets"
            elif ours is not None and theirs is not None and ours != theirs:
                return f"{first_name} and {name} differ in {part.name}: {ours} and {theirs}"
    return None


def _same_facet(ours: Sequence[int], theirs: Sequence[int]) -> bool:
    """Whether two lists of counts tell the same, a tail told as a sum included."""
    if len(theirs) >= 2 and theirs[-2] < 0:
        ours, theirs = theirs, ours
    if len(ours) < 2 or ours[-2] >= 0 or (len(theirs) >= 2 and theirs[-2] < 0):
        return list(ours) == list(theirs)
    shown = len(ours) - 2
    rest = theirs[shown:]
    return list(ours[:shown]) == list(theirs[:shown]) and (len(rest), sum(rest)) == (-ours[-2], ours[-1])
