"""Long URLs cut to what tells: where they lead, how they end, and what in them matched.

Decides on original texts, before anything is cut or marked. Must never know how much room there is.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

__all__ = ["shorten_urls"]

Span = tuple[int, int]

# Only ASCII: where words stand without spaces the sentence goes on right behind a URL, and must not be lost.
_URL = re.compile(
    r"(?:https?|ftp|wss?)://(?:[!$-.0-;=A-~]*@)?(?P<host>[!$-.0-;=A-~]+)[!#-;=?-~]*",
    re.IGNORECASE,
)
_GAP_CHARS = 4
"""A shorter part left out would save nothing that is worth the reader's doubt."""


def shorten_urls(text: str, spans: Sequence[Span], max_chars: int) -> tuple[str, list[Span]]:
    """`text` with each URL over `max_chars` characters as host, `…` and tail, and `spans` where they are now.

    Scheme and user information are dropped; a tail has a third of `max_chars`, a host at most half, its end.
    What `spans` (in order, apart) cover of a URL stays, between host and tail: every match remains visible.
    """
    moved: list[Span] = []
    pieces: list[str] = []
    at = shift = nth = 0
    for start, end, instead in _cuts(text, spans, max_chars):
        while nth < len(spans) and spans[nth][0] < start:
            moved.append((spans[nth][0] + shift, spans[nth][1] + shift))
            nth += 1
        pieces += (text[at:start], instead)
        shift += len(instead) - (end - start)
        at = end
    moved += [(start + shift, end + shift) for start, end in spans[nth:]]
    return "".join((*pieces, text[at:])), moved


def _cuts(text: str, spans: Sequence[Span], max_chars: int) -> Iterator[tuple[int, int, str]]:
    """What to leave out of `text`, in order: start, end, and what stands there instead; never of a span."""
    if "://" not in text:
        return
    span_ends = [end for _, end in spans]
    for found in _URL.finditer(text):
        begin, end = found.span()
        if end - begin <= max_chars:
            continue
        host_begin, host_end = found.span("host")
        kept = [(max(host_begin, host_end - max_chars // 2), host_end), (end - max_chars // 3, end)]
        for nth in range(bisect_right(span_ends, begin), len(spans)):
            if spans[nth][0] >= end:
                break
            kept.append(spans[nth])
        at = begin
        for start, stop in sorted(kept):
            if start - at >= _GAP_CHARS:
                yield at, start, "" if at == begin and start == host_begin else "…"
            at = max(at, stop)
