"""How much of a text is shown: all of it, the best window around its matches, or one slice after another.

Decides where a text is cut and marked; what of it may be shown at all is `engine.text.display`. Must never
know what was searched, or how many bytes a page has.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.graphemes import border_after, border_before, graphemes, graphemes_before
from engine.limits import Limits
from engine.text import MARK_END, MARK_START, display, is_word_char
from engine.urls import shorten_urls

__all__ = ["Snippet", "slice_text", "snippet"]

Span = tuple[int, int]

_URL_CHARS = Limits().url_chars

_WORD_SLACK_CHARS = 20
"""How much room a cut gives up, at most, to fall between two words. Longer words are cut."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """Displayed text with its matches marked `⟦like this⟧`; `…` where it was cut.

    `full_length` is that of the whole original in characters, `None` when nothing was cut.
    """

    text: str
    full_length: int | None = None


def snippet(text: str, spans: Sequence[Span], limit: int, url_chars: int | None = _URL_CHARS) -> Snippet:
    """`text` displayed with `spans` marked: whole within `limit` characters, else its best window.

    `spans` are [start, end) in characters of `text`, in order, apart, at grapheme borders, as `Matcher.spans`
    gives them. `limit` counts displayed characters, without marks and `…`, and is at least 1. The best window
    holds the most different matches, then the most matches, then comes first. It is cut between words where
    that costs little, and never within a grapheme cluster, save one that alone is longer than `limit`. URLs
    over `url_chars` are shortened first, which alone sets no `full_length`; `None` leaves them whole.
    """
    shown, marks = (text, spans) if url_chars is None else shorten_urls(text, spans, url_chars)
    if _fits(shown, limit):
        return Snippet(_marked(shown, marks, 0, len(shown)))
    start, end = _window(shown, marks, limit)
    before, after = "…" if start > 0 else "", "…" if end < len(shown) else ""
    return Snippet(before + _marked(shown, marks, start, end) + after, len(text))


def slice_text(text: str, offset: int, max_chars: int) -> tuple[str, int | None]:
    """The original text from `offset` on, at most `max_chars` characters, and where the next slice starts.

    The next offset is `None` at the end. Slices end at grapheme borders, save within a cluster longer than
    `max_chars`; followed from 0 they give every character once. `offset` is at least 0, `max_chars` 1.
    """
    end = offset + max_chars
    if end >= len(text):
        return text[offset:], None
    border = border_before(text, end)
    end = border if border > offset else end
    return text[offset:end], end


def _fits(text: str, limit: int) -> bool:
    """True when the displayed text has at most `limit` characters; reads no further than it must."""
    at = length = 0
    while at < len(text) and length <= limit:
        end = border_after(text, at + 2 * limit, at)
        length += len(display(text[at:end]))
        at = end
    return length <= limit


def _marked(text: str, spans: Iterable[Span], start: int, end: int) -> str:
    pieces = []
    at = start
    for first, last in spans:
        if last <= at:
            continue
        if first >= end:
            break
        begin, stop = max(first, at), min(last, end)
        pieces.append(display(text[at:begin]))
        if inner := display(text[begin:stop]):
            pieces += (MARK_START, inner, MARK_END)
        at = stop
    pieces.append(display(text[at:end]))
    return "".join(pieces)


def _window(text: str, spans: Sequence[Span], limit: int) -> Span:
    """The part of a text too long to show that is shown."""
    start, stop = _core(text, spans, limit)
    reach = _reach(graphemes(text, start), limit, most_chars=stop - start)
    end = start + reach[-1][1]
    room = limit - reach[-1][0]
    if end < stop:
        # The matches alone are longer than the limit: from their beginning on.
        return (start, end) if end > start else (start, start + _hard_cut(text[start : start + limit], limit))
    left = _reach(graphemes_before(text, start), room)
    right = _reach(graphemes(text, end), room)
    # Half the room to each side; what one side cannot use goes to the other.
    before = _within(left, max(room // 2, room - right[-1][0]))
    after = _within(right, room - before[0])
    first, last = start - before[1], end + after[1]
    if first == last:
        return first, first + _hard_cut(text[first : first + limit], limit)
    slack = min(_WORD_SLACK_CHARS, limit // 5)
    starts = [start - chars for _, chars in reversed(left) if first <= start - chars <= first + slack]
    ends = [end + chars for _, chars in reversed(right) if last >= end + chars >= last - slack]
    return _word_start(text, starts), _word_end(text, ends)


def _core(text: str, spans: Sequence[Span], limit: int) -> Span:
    """From the first to the last match of the best group within `limit`; (0, 0) without matches."""
    words = [text[start:end].casefold() for start, end in spans]
    inside: Counter[str] = Counter()
    best, core = (0, 0), (0, 0)
    left = 0
    for right, (_, end) in enumerate(spans):
        inside[words[right]] += 1
        while left < right and end - spans[left][0] > limit:
            inside[words[left]] -= 1
            if not inside[words[left]]:
                del inside[words[left]]
            left += 1
        worth = (len(inside), right - left + 1)
        if worth > best:
            best, core = worth, (spans[left][0], end)
    return core


def _reach(clusters: Iterable[str], room: int, most_chars: int | None = None) -> list[Span]:
    """How far one gets through `clusters` with `room`: displayed and original characters after each step."""
    # Nobody reads on through a desert of invisible characters.
    most = 64 + 8 * room if most_chars is None else most_chars
    out = [(0, 0)]
    width = chars = 0
    for cluster in clusters:
        plain = len(cluster) == 1 and cluster.isalnum()
        width += 1 if plain else len(display(cluster))
        chars += len(cluster)
        if width > room or chars > most:
            break
        out.append((width, chars))
    return out


def _within(reach: list[Span], room: int) -> Span:
    """The furthest step of `reach` that `room` allows."""
    return next(step for step in reversed(reach) if step[0] <= room)


def _hard_cut(cluster: str, limit: int) -> int:
    """How many characters of a cluster longer than `limit` are shown."""
    return next(chars for chars in range(len(cluster), -1, -1) if len(display(cluster[:chars])) <= limit)


def _word_start(text: str, places: Sequence[int]) -> int:
    """The first of `places`, in order, that stands at the start or behind a blank; or else splits no word."""
    if places[0] == 0:
        return 0
    behind_blank = (at for at in places if text[at - 1].isspace() and not text[at].isspace())
    return next(behind_blank, next((at for at in places if not _splits_word(text, at)), places[0]))


def _word_end(text: str, places: Sequence[int]) -> int:
    """The first of `places`, falling, that stands at the end or before a blank; or else splits no word."""
    if places[0] == len(text):
        return places[0]
    before_blank = (at for at in places if text[at].isspace() and not text[at - 1].isspace())
    return next(before_blank, next((at for at in places if not _splits_word(text, at)), places[0]))


def _splits_word(text: str, place: int) -> bool:
    return is_word_char(text[place - 1]) and is_word_char(text[place])
