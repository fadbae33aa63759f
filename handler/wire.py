"""JSON as it travels: compact UTF-8 out, whole characters in.

Decides the bytes of what is sent and mends what no protocol library reads the same way. Must never know a
tool.
"""

import json
import re
from typing import Any

__all__ = ["HALF_PAIR", "compact", "mend_surrogates", "recode", "whole_characters"]

HALF_PAIR = "\ufdd0"
"""Stands for half a surrogate pair in what came in: a code point Unicode keeps for a program's own use."""

_ESCAPES = re.compile(
    rb"(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    rb"|\\."
)
_HALVES = re.compile("[\ud800-\udfff]")


def compact(value: Any) -> bytes:
    """`value` as compact JSON in UTF-8, without escapes UTF-8 does not need; a lone surrogate becomes
    U+FFFD.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return whole_characters(text).encode("utf-8")


def whole_characters(text: str) -> str:
    """`text` with U+FFFD for each lone surrogate, which UTF-8 cannot say."""
    return text if text.isascii() else _HALVES.sub("\ufffd", text)


def recode(body: bytes) -> bytes:
    """A JSON body as compact UTF-8; unchanged when nothing is escaped in it, or when it is no JSON of
    ours.
    """
    if b"\\u" not in body:
        return body
    try:
        return compact(json.loads(body))
    except (ValueError, RecursionError):
        return body


def mend_surrogates(body: bytes) -> bytes:
    r"""A JSON body of the same length in which each lone `\ud800`..`\udfff` stands as HALF_PAIR.

    One protocol era's parser refuses the whole message for one, the other lets it through to where it
    cannot be written; so it is marked, and the argument that holds it is refused by name.
    """
    if b"\\ud" not in body and b"\\uD" not in body:
        return body
    return _ESCAPES.sub(lambda m: b"\\ufdd0" if m["half"] else m[0], body)
