"""From a tool call's raw arguments to a request: names, types, ranges and choices, by the table of the
tools.

Decides what is said to a caller whose arguments are off. Must never know the corpus: whether a value
exists, or a query parses, is the engine's to say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields as fields_of
from difflib import get_close_matches
from typing import Any

from engine.errors import BadInput, give_list, quoted, values_in
from engine.limits import Limits
from engine.requests import (
    CountRequest,
    Criteria,
    ExportRequest,
    Request,
    SearchRequest,
    ThreadRequest,
    UnseenRequest,
)
from engine.times import TIME_FORMS
from handler.tools.parameters import MAX_VALUE_CHARS, OPEN_MAXIMUM, Parameter, Type
from handler.tools.table import TOOLS, Tool
from handler.wire import HALF_PAIR

__all__ = ["check_text", "parse_arguments"]

_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "role": ("from_role",),
    "roles": ("from_role",),
    "sender_role": ("from_role",),
    "recipient_role": ("to_role",),
    "recipient": ("to_role",),
    "to": ("to_role",),
    "from": ("author",),
    "sender": ("author",),
    "user": ("author",),
    "username": ("author",),
    "authors": ("author",),
    "channel": ("conversation",),
    "channels": ("conversation",),
    "room": ("conversation",),
    "mailbox": ("conversation",),
    "thread_id": ("thread", "message"),
    "thread_ts": ("thread", "message"),
    "type": ("kind",),
    "since": ("after",),
    "start": ("after",),
    "start_date": ("after",),
    "from_date": ("after",),
    "date_from": ("after",),
    "until": ("before",),
    "end": ("before",),
    "end_date": ("before",),
    "to_date": ("before",),
    "date_to": ("before",),
    "q": ("query",),
    "text": ("query",),
    "search": ("query",),
    "keyword": ("query",),
    "keywords": ("query",),
    "terms": ("query",),
    "group_by": ("by",),
    "groupby": ("by",),
    "facet": ("by",),
    "facets": ("by",),
    "queries": ("compare",),
    "max": ("limit", "later"),
    "max_results": ("limit",),
    "count": ("limit",),
    "top": ("limit",),
    "size": ("limit",),
    "page_size": ("limit",),
    "max_chars": ("text_limit",),
    "max_length": ("text_limit",),
    "snippet": ("text_limit",),
    "surrounding": ("context",),
    "neighbours": ("context", "earlier"),
    "sort": ("order",),
    "sort_by": ("order",),
    "order_by": ("order",),
    "columns": ("fields",),
    "session_id": ("session",),
    "batch": ("after_batch",),
    "id": ("message", "thread"),
    "ids": ("message",),
    "message_id": ("message", "thread"),
    "messages": ("message",),
    "context": ("earlier", "later"),
    "offset": ("text_offset",),
    "next_offset": ("text_offset",),
    "mode": ("view",),
    "export_id": ("export",),
    "file_format": ("format",),
}
"""What models call parameters, and what they are called here; the first that the tool has is named."""

_NOT_SO_LONG: Mapping[str, str] = {
    "session": "copy it from a result, or leave it out to start another",
    "after": f"give {TIME_FORMS}",
    "before": f"give {TIME_FORMS}",
    "export": "copy it from the result that says running",
}
"""The way out for a value that is too long to be one; of any other parameter it is a name or an id."""

_JSON_NAMES: Mapping[type, str] = {
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


def parse_arguments(tool: str, raw: Mapping[str, object], limits: Limits) -> Request:
    """The request that `raw` asks of `tool`. `None` and an empty string count as left out.

    Raises:
        BadInput: `unknown_tool`, `unknown_parameter`, `missing_parameter`, `bad_type`, `bad_value`,
            `too_many_values` or `query_too_long`, each naming the parameter.
    """
    spec = TOOLS.get(tool)
    if spec is None:
        raise BadInput("unknown_tool", f"no tool is called {quoted(tool)}", next_step=f"use {_listed(list(TOOLS))}")
    given: dict[str, Any] = {}
    for name, value in raw.items():
        parameter = spec.parameter(name)
        if parameter is None:
            raise _unknown_parameter(spec, name)
        if value is not None and value != "":
            given[name] = _read(parameter, value, limits)
    for parameter in spec.parameters:
        if parameter.required and not given.get(parameter.name):
            raise BadInput(
                "missing_parameter",
                f"{tool} needs {parameter.name}",
                next_step=f"give it: {parameter.description}".removesuffix("."),
            )
    return _request(tool, given)


def _request(tool: str, given: dict[str, Any]) -> Request:
    """`given` holds read values of the tool's own parameters only, so the parts fit the request's fields."""
    if tool == "open_thread":
        return ThreadRequest(**given)
    names = {f.name for f in fields_of(Criteria)}
    criteria = Criteria(**{name: value for name, value in given.items() if name in names})
    own = {name: value for name, value in given.items() if name not in names}
    if tool == "count_messages":
        return CountRequest(criteria, **own)
    if tool == "search_messages":
        return SearchRequest(criteria, **own)
    if tool == "unseen_messages":
        after_batch = own.pop("after_batch", None)
        return UnseenRequest(SearchRequest(criteria, **own), after_batch)
    beside = [name for name in given if name != "export"]
    if "export" in given and beside:
        raise BadInput(
            "bad_value",
            f"export stands alone, here it stands beside {_listed(beside)}",
            next_step="give only export to ask after it, or leave export out to start another",
        )
    return ExportRequest(criteria, **own)


def _unknown_parameter(tool: Tool, name: str) -> BadInput:
    names = [p.name for p in tool.parameters]
    plain = name.casefold().replace("-", "_")
    known = [n for n in (plain, *_SYNONYMS.get(plain, ())) if n in names]
    close = known or get_close_matches(plain[:64], names, n=1, cutoff=0.6)
    return BadInput(
        "unknown_parameter",
        f"{tool.name} has no parameter {quoted(name)}",
        next_step=f"use {close[0]}" if close else f"it has {_listed(names)}",
    )


def _read(parameter: Parameter, value: object, limits: Limits) -> str | int | tuple[str, ...]:
    if parameter.type is Type.INTEGER:
        return _integer(parameter, value)
    if parameter.type is Type.STRING:
        return _string(parameter, parameter.name, value, limits)
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list | tuple):
        raise _bad_type(parameter.name, value, "a list of strings or one string")
    most = parameter.max_values or limits.query.filter_values
    if len(values) > most:
        raise BadInput(
            "too_many_values",
            f"{parameter.name} has {len(values)} values, {most} at most",
            next_step="leave some out, or split into several calls",
        )
    read = tuple(_item(parameter, index, item, limits) for index, item in enumerate(values))
    twice = next((item for item in read if parameter.choices and read.count(item) > 1), None)
    if twice is not None:
        raise BadInput("bad_value", f"{parameter.name} names {quoted(twice)} twice", next_step="name it once")
    return read


def _item(parameter: Parameter, index: int, value: object, limits: Limits) -> str:
    label = f"{parameter.name}[{index}]"
    text = _string(parameter, label, value, limits)
    if not text.strip():
        raise BadInput("bad_value", f"{label} is empty", next_step="leave it out")
    return text


def _string(parameter: Parameter, label: str, value: object, limits: Limits) -> str:
    if not isinstance(value, str):
        raise _bad_type(label, value, "a string")
    check_text(label, value)
    most = limits.query.chars if parameter.is_query else MAX_VALUE_CHARS
    if len(value) > most:
        if parameter.is_query:
            raise BadInput(
                "query_too_long",
                f"{label} has {len(value)} characters, {most} at most",
                next_step="use stems, or split into two calls",
            )
        raise BadInput(
            "bad_value",
            f"{label} has {len(value)} characters, {most} at most",
            next_step=_NOT_SO_LONG.get(parameter.name, "copy a name or an id from a result"),
        )
    taken = parameter.choices or parameter.names
    if taken and value not in taken:
        raise BadInput(
            "bad_value",
            f"{label} {quoted(value)} is none of {_listed(taken)}",
            next_step=_among(value, taken, parameter.type),
        )
    return value


def _among(value: str, taken: Sequence[str], kind: Type) -> str:
    """The way out for a value that is none of those taken: a list that was given as one text, or the nearest."""
    parts = values_in(value)
    if kind is Type.STRINGS and len(parts) > 1 and set(parts) <= set(taken):
        return give_list(parts)
    # Half of the letters in common make no suggestion: `hour` is no `author`.
    close = get_close_matches(value.casefold(), taken, n=1, cutoff=0.7)
    return f"use {close[0]}" if close else "use one of these"


def _integer(parameter: Parameter, value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _bad_type(parameter.name, value, "an integer")
    low = parameter.minimum or 0
    high = parameter.maximum if parameter.maximum is not None else OPEN_MAXIMUM
    if not low <= value <= high:
        bound = f"from {low} to {high}" if parameter.maximum is not None else f"{low} or more"
        if value > OPEN_MAXIMUM:
            bound = f"from {low} to {high}"
        raise BadInput(
            "bad_value",
            f"{parameter.name} {_number(value)} is out of range",
            next_step=f"give an integer {bound}",
        )
    return value


def _number(value: int) -> str:
    """The number as the caller wrote it, or how long it is: Python refuses to print the longest."""
    return str(value) if value.bit_length() <= 128 else f"of {value.bit_length()} bits"


def _bad_type(label: str, value: object, needed: str) -> BadInput:
    name = next((n for t, n in _JSON_NAMES.items() if isinstance(value, t)), "null")
    shown = ""
    if isinstance(value, str):
        shown = f" {quoted(value)}"
    elif isinstance(value, bool):
        shown = f" {'true' if value else 'false'}"
    elif isinstance(value, int):
        shown = f" {_number(value)}"
    elif isinstance(value, float):
        shown = f" {value}"
    return BadInput("bad_type", f"{label}{shown} is {name}", next_step=f"give {needed}")


def check_text(label: str, text: str) -> None:
    """Refuse what no message can hold and no store takes: NUL, and halves of surrogate pairs.

    Raises:
        BadInput: `bad_value`, with the position counted from 1.
    """
    for position, char in enumerate(text, 1):
        if char == "\0":
            raise BadInput(
                "bad_value", f"{label} holds a NUL character at position {position}", next_step="leave it out"
            )
        if char == HALF_PAIR or "\ud800" <= char <= "\udfff":
            raise BadInput(
                "bad_value",
                f"{label} holds half of a surrogate pair at position {position}",
                next_step="send whole characters",
            )


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(names)
