"""JSON Schemas of the tools' results as objects, for the setting that sends `structuredContent`.

Decides what of a result a client may rely on: the parts it branches on, with their types, and which every
success has. docs/tools.md names the rest. Objects stay open, so that a new part breaks no
client that validates; five schemas share the room that the tools' own words leave in a list of 16 KiB. Must
never know a protocol library.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

__all__ = ["OUTPUT_SCHEMAS"]


def _object(required: tuple[str, ...] = (), **types: str) -> dict[str, Any]:
    out: dict[str, Any] = {"type": "object", "properties": {n: {"type": t} for n, t in types.items()}}
    if required:
        out["required"] = list(required)
    return out


_SCOPE = ("searched", "found")
_PAGE = _object(
    (*_SCOPE, "shown", "left_out", "messages"),
    searched="object",
    found="object",
    shown="integer",
    left_out="object",
    copies="integer",
    session="string",
    repeated="boolean",
    hints="object",
    messages="array",
)

OUTPUT_SCHEMAS: Mapping[str, dict[str, Any]] = MappingProxyType(
    {
        "count_messages": _object(
            _SCOPE,
            searched="object",
            found="object",
            corpus="object",
            compare="array",
            over_time="object",
            top="object",
            rest="object",
            terms="object",
            table="object",
            hints="object",
        ),
        "search_messages": _PAGE,
        "unseen_messages": _PAGE,
        "open_thread": _object(view="string", left_out="object", session="string", messages="array", talks="array"),
        "export_messages": _object(
            running="boolean",
            export="string",
            link="string",
            rows="integer",
            sha256="string",
        ),
    }
)
"""By tool name."""
