"""The words of Slack's blocks, in the order they are read.

Decides what of a layout is text. Must never raise over a block it has not met: it looks for text where blocks
keep it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from engine.sources.slack_text import Naming, as_list, as_mapping, as_text, linked, plain, unescaped

__all__ = ["block_text"]

_MAX_DEPTH = 32
"""Slack nests lists in quotes in sections; nothing it makes goes deeper than ten."""

_PLACES = (
    "title",
    "text",
    "raw_text",
    "label",
    "description",
    "alt_text",
    "value",
    "fields",
    "elements",
    "rows",
    "blocks",
)
"""Where blocks keep what they say, in reading order."""

_RICH_LINES = frozenset({"rich_text_section", "rich_text_quote", "rich_text_preformatted"})


def block_text(blocks: Any, naming: Naming) -> str:
    """The text of a list of blocks, a line for each part; empty when there is none."""
    return "\n".join(part for part in _parts(blocks, naming, 0) if part.strip())


def _parts(node: Any, naming: Naming, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(node, list):
        for item in node:
            yield from _parts(item, naming, depth + 1)
    elif isinstance(node, dict):
        yield from _block_parts(node, naming, depth)
    elif isinstance(node, str):
        yield plain(as_text(node), naming)


def _block_parts(block: Mapping[str, Any], naming: Naming, depth: int) -> Iterator[str]:
    kind = as_text(block.get("type"))
    if kind in _RICH_LINES:
        yield "".join(_inline(as_mapping(element), naming) for element in as_list(block.get("elements")))
    elif kind == "rich_text_list":
        for number, item in enumerate(as_list(block.get("elements")), 1):
            mark = f"{number}. " if block.get("style") == "ordered" else "• "
            lines = [part for part in _parts(item, naming, depth + 1) if part.strip()]
            yield mark + "\n".join(lines) if lines else ""
    elif kind == "plain_text":
        yield unescaped(as_text(block.get("text")))
    elif kind in _INLINE:
        yield _inline(block, naming)
    else:
        yield from _placed(block, naming, depth)


def _placed(block: Mapping[str, Any], naming: Naming, depth: int) -> Iterator[str]:
    said = False
    for place in _PLACES:
        if place in ("alt_text", "value") and said:
            # A picture's title says it already; a value stands for a label no one sees.
            continue
        for part in _parts(block.get(place), naming, depth + 1):
            said = True
            yield part


def _inline(element: Mapping[str, Any], naming: Naming) -> str:
    key = _INLINE.get(as_text(element.get("type")), "text")
    value = as_text(element.get(key))
    match element.get("type"):
        case "user":
            return "@" + naming.user(value, "")
        case "channel":
            return "#" + naming.channel(value)
        case "usergroup" | "broadcast":
            return "@" + value
        case "emoji":
            return f":{value}:"
        case "link":
            return linked(value, as_text(element.get("text")))
        case _:
            return value


_INLINE = {
    "user": "user_id",
    "channel": "channel_id",
    "usergroup": "usergroup_id",
    "broadcast": "range",
    "emoji": "name",
    "link": "url",
    "date": "fallback",
    "color": "value",
    "text": "text",
}
"""Where each element of a line keeps what it stands for."""
