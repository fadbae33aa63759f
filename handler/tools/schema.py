"""JSON Schemas of the tools, made from the table.

Decides what of a parameter a model is told beside its words. Must never know a protocol library.
"""

from collections.abc import Mapping
from typing import Any

from handler.tools.output import OUTPUT_SCHEMAS
from handler.tools.parameters import Parameter, Type
from handler.tools.table import TOOLS, Tool

__all__ = ["definitions", "input_schema"]


def input_schema(tool: Tool, *, query_chars: int) -> dict[str, Any]:
    """The object a tool takes: every parameter with description, default, range and choices.

    Three things hold without the schema saying so, since saying them costs bytes in every conversation and
    changes no call a model makes: a bare string passes for a list, a filter takes at most 100 values, and
    what has no bound of its own has one of sanity.
    """
    out: dict[str, Any] = {
        "type": "object",
        "properties": {p.name: _property(p, query_chars) for p in tool.parameters},
    }
    required = [p.name for p in tool.parameters if p.required]
    if required:
        out["required"] = required
    out["additionalProperties"] = False
    return out


def _property(parameter: Parameter, query_chars: int) -> dict[str, Any]:
    single: dict[str, Any] = {"type": "integer" if parameter.type is Type.INTEGER else "string"}
    if parameter.choices:
        single["enum"] = list(parameter.choices)
    if parameter.is_query:
        single["maxLength"] = query_chars
    if parameter.minimum is not None:
        single["minimum"] = parameter.minimum
    if parameter.maximum is not None:
        single["maximum"] = parameter.maximum
    if parameter.type is Type.STRINGS:
        many: dict[str, Any] = {"type": "array", "items": single}
        if parameter.required:
            many["minItems"] = 1
        if parameter.max_values is not None:
            many["maxItems"] = parameter.max_values
        single = many
    if parameter.default is not None:
        single["default"] = parameter.default
    single["description"] = parameter.description
    return single


def definitions(*, query_chars: int, structured: bool = False) -> list[Mapping[str, Any]]:
    """The tools as `tools/list` gives them, in the order of the table; `outputSchema` when `structured`."""
    out: list[Mapping[str, Any]] = []
    for tool in TOOLS.values():
        entry: dict[str, Any] = {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": input_schema(tool, query_chars=query_chars),
        }
        if structured:
            entry["outputSchema"] = OUTPUT_SCHEMAS[tool.name]
        entry["annotations"] = {
            "readOnlyHint": tool.annotations.read_only,
            "destructiveHint": tool.annotations.destructive,
            "idempotentHint": tool.annotations.idempotent,
            "openWorldHint": tool.annotations.open_world,
        }
        out.append(entry)
    return out
