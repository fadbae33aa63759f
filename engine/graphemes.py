"""Where one character as a reader sees it ends: an emoji with its joiners, a letter with its marks.

Works outward from the place asked about, so that a place in a megabyte costs what its neighbourhood costs.
"""

from collections.abc import Iterable, Iterator

import regex

__all__ = ["border_after", "border_before", "graphemes", "graphemes_before", "rounded_out"]

# At each flag `\X` looks back over all flags before it: a text of nothing else would take hours.
_CLUSTER = regex.compile(r"\p{GCB=RI}{2}[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]*+|\X")
_PLAIN = r"[\p{GCB=Other}\p{GCB=Control}\p{GCB=LV}\p{GCB=LVT}]"
_SURE = rf"(?<={_PLAIN})(?={_PLAIN})"
_SURE_HERE = regex.compile(_SURE)
_SURE_BEFORE = regex.compile("(?r)" + _SURE)
"""Between two such characters there is always a border, whatever comes before them. Searched backwards."""

_STRIDE = 256
"""How far back `graphemes_before` reads at least at once."""


def graphemes(text: str, start: int = 0) -> Iterator[str]:
    """The grapheme clusters of `text` from the border `start` on."""
    for found in _CLUSTER.finditer(text, start):
        yield found[0]


def graphemes_before(text: str, end: int) -> Iterator[str]:
    """The grapheme clusters of `text` before the border `end`, last first."""
    while end > 0:
        start = _sure_border(text, max(0, end - _STRIDE), 0)
        yield from reversed(_CLUSTER.findall(text, start, end))
        end = start


def border_before(text: str, place: int, known: int = 0) -> int:
    """The last grapheme border at or before `place`. Nothing before the border `known` is read."""
    return _around(text, place, known)[0]


def border_after(text: str, place: int, known: int = 0) -> int:
    """The first grapheme border at or after `place`. Nothing before the border `known` is read."""
    return _around(text, place, known)[1]


def rounded_out(text: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, each widened to grapheme borders; those that then overlap or touch become one."""
    out: list[tuple[int, int]] = []
    known = 0
    for start, end in spans:
        first = border_before(text, start, known) if start > known else known
        last = border_after(text, end, first) if end > known else known
        if out and first <= out[-1][1]:
            out[-1] = (out[-1][0], max(last, out[-1][1]))
        else:
            out.append((first, last))
        known = out[-1][1]
    return out


def _sure_border(text: str, place: int, known: int) -> int:
    """A border at or before `place`, not always the last."""
    sure = _SURE_BEFORE.search(text, known, place + 1)
    return sure.start() if sure else known


def _around(text: str, place: int, known: int) -> tuple[int, int]:
    if place <= known or place >= len(text):
        return place, place
    if text[place - 1 : place + 1].isascii() and text[place] != "\n":
        return place, place
    if _SURE_HERE.match(text, place):
        return place, place
    start = _sure_border(text, place, known)
    while start < place:
        cluster = _CLUSTER.match(text, start)
        end = cluster.end() if cluster else place
        if end > place:
            return start, end
        start = end
    return place, place
