"""Results as tables for people: a head, then what was found.

Decides the looks only; the objects are those of the contract, and a part this module does not know is shown
as it is, never dropped. Must never know how anything was found. Texts are other people's: they are printed as
plain text, without markup and control characters.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["show_answer", "show_facts"]

_HEAD = ("searched", "found", "shown", "left_out", "copies", "repeated", "session", "batch", "notes", "hints")
_COUNT = ("over_time", "top", "rest", "terms", "table", "compare")
_TALK = ("view", "conversation", "thread", "thread_size", "messages", "talks")

_MARKED = re.compile(r"⟦(.*?)⟧", re.DOTALL)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_ROLE_STYLES = {"client": "green", "teammate": "cyan", "bot": "magenta"}
_BAR = 24


def show_answer(console: Console, answer: Mapping[str, Any]) -> None:
    """Print one tool's result object."""
    _show_head(console, answer)
    _show_count(console, answer)
    if "talks" in answer:
        for talk in answer["talks"]:
            _show_talk(console, talk)
    elif "messages" in answer:
        _show_talk(console, answer)
    known = {*_HEAD, *_COUNT, *_TALK}
    show_facts(console, {name: value for name, value in answer.items() if name not in known})


def show_facts(console: Console, facts: Mapping[str, Any]) -> None:
    """Print names and values, one a line."""
    if not facts:
        return
    table = _plain_table()
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(_plain(name.replace("_", " ")), _plain(_said(value)))
    console.print(table)


def _show_head(console: Console, answer: Mapping[str, Any]) -> None:
    if "searched" in answer:
        console.print(_scope(answer["searched"]))
    if "found" in answer:
        console.print(_found(answer["found"]))
    page = [
        f"{name.replace('_', ' ')} {_said(answer[name])}"
        for name in ("shown", "left_out", "copies", "repeated", "session", "batch")
        if name in answer
    ]
    if page:
        console.print(_plain("; ".join(page), "dim"))
    for note in answer.get("notes", ()):
        console.print(_plain(f"note: {note}", "yellow"))
    for name, value in answer.get("hints", {}).items():
        console.print(_plain(f"{name}: {_said(value)}", "yellow"))


def _scope(searched: Mapping[str, Any]) -> Text:
    line = _joined(Text("searched ", "dim"), _plain(searched.get("query") or "everything", "bold"))
    for name, value in searched.get("filters", {}).items():
        line += _plain(f"; {name} {_said(value)}")
    for name, value in searched.items():
        if name not in ("query", "filters"):
            line += _plain(f"; {name.replace('_', ' ')} {_said(value)}", "dim")
    return line


def _found(found: Mapping[str, Any]) -> Text:
    line = _joined(Text("found ", "dim"), Text(f"{found.get('messages', 0):,} messages", "bold green"))
    for name in ("threads", "conversations", "authors"):
        if name in found:
            line += Text(f", {found[name]:,} {name}")
    if "first" in found:
        line += _plain(f", {found['first']} to {found['last']}")
    return line


def _show_count(console: Console, answer: Mapping[str, Any]) -> None:
    if "compare" in answer:
        columns = list(dict.fromkeys(name for row in answer["compare"] for name in row))
        _show_rows(console, columns, [[row.get(name, "") for name in columns] for row in answer["compare"]])
    if "over_time" in answer:
        _show_over_time(console, answer["over_time"], [each["query"] for each in answer.get("compare", ())])
    rest = answer.get("rest", {})
    for name, values in answer.get("top", {}).items():
        table = _plain_table(name)
        table.add_column(style="bold", overflow="fold")
        table.add_column(justify="right")
        for value, number in values.items():
            table.add_row(_plain(value), f"{number:,}")
        if name in rest:
            table.add_row(f"{rest[name]['values']:,} more", f"{rest[name]['messages']:,}", style="dim")
        console.print(table)
    if "terms" in answer:
        show_facts(console, {f"term {term}": value for term, value in answer["terms"].items()})
    if "table" in answer:
        _show_rows(console, answer["table"]["columns"], answer["table"]["rows"])
        others = {k: v for k, v in answer["table"].items() if k not in ("columns", "rows")}
        show_facts(console, others)


def _show_over_time(console: Console, over_time: Mapping[str, Any], compared: Sequence[str]) -> None:
    table = _plain_table(header=True)
    for name, side in ((over_time["unit"], "left"), ("matches", "right"), ("all", "right")):
        table.add_column(name, justify=side)  # type: ignore[arg-type] # both are words Rich takes
    for query in compared:
        table.add_column(_plain(query), justify="right")
    table.add_column("")
    most = max((row[1] for row in over_time["rows"]), default=0)
    for bucket, matches, *others in over_time["rows"]:
        bar = "█" * (matches * _BAR // most) if most else ""
        bar = bar or ("▏" if matches else "")
        table.add_row(_plain(bucket), f"{matches:,}", *(f"{number:,}" for number in others), Text(bar, "green"))
    console.print(table)
    show_facts(console, {name: value for name, value in over_time.items() if name not in ("unit", "rows")})


def _show_rows(console: Console, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    table = _plain_table(header=True)
    for name in columns:
        table.add_column(_plain(name), overflow="fold")
    for row in rows:
        table.add_row(*(_plain(_said(value)) for value in row))
    console.print(table)


def _show_talk(console: Console, talk: Mapping[str, Any]) -> None:
    title = [f"{n.replace('_', ' ')} {_said(talk[n])}" for n in _TALK[:4] if n in talk]
    if title:
        console.print(_plain("; ".join(title), "bold"))
    table = Table(box=box.SIMPLE_HEAD, show_lines=False, pad_edge=False)
    table.add_column("when and where", no_wrap=True)
    table.add_column("who", overflow="fold", max_width=30)
    table.add_column("what", overflow="fold", ratio=1)
    for message in talk["messages"]:
        table.add_row(_place(message), _author(message), _text(message), style="dim" if "context" in message else "")
    console.print(table)


def _place(message: Mapping[str, Any]) -> Text:
    when = str(message.get("sent_at", "")).replace("T", " ").removesuffix("Z")
    lines = [when, f"#{message['conversation']}" if "conversation" in message else "", message["id"]]
    return _plain("\n".join(line for line in lines if line))


def _author(message: Mapping[str, Any]) -> Text:
    role = message.get("from_role", "")
    name = _plain(message.get("author", ""), "bold")
    return _joined(name, _plain(f"\n{role}", _ROLE_STYLES.get(role, ""))) if role else name


def _text(message: Mapping[str, Any]) -> Text:
    parts = [_highlighted(message[name]) for name in ("topic", "text") if name in message]
    shown = {"id", "sent_at", "conversation", "author", "from_role", "topic", "text", "context"}
    aside = "; ".join(f"{name.replace('_', ' ')} {_said(v)}" for name, v in message.items() if name not in shown)
    return Text("\n").join([*parts, _plain(aside, "dim")] if aside else parts)


def _highlighted(text: str) -> Text:
    """The text with its marks turned into colour."""
    line = Text()
    end = 0
    for match in _MARKED.finditer(text):
        line += _plain(text[end : match.start()])
        line += _plain(match[1], "bold black on yellow")
        end = match.end()
    return line + _plain(text[end:])


def _said(value: Any) -> str:
    if value is None:
        return "(none)"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        nested = any(isinstance(part, Mapping | list) for part in value.values())
        return ("; " if nested else ", ").join(f"{name} {_said(part)}" for name, part in value.items()) or "none"
    if isinstance(value, list | tuple):
        nested = any(isinstance(part, Mapping | list) for part in value)
        return ("\n" if nested else ", ").join(_said(part) for part in value) or "none"
    return str(value)


def _joined(*parts: Text) -> Text:
    """The parts in a row, each in its own style: added to one another they would take on the first one's."""
    return Text().join(parts)


def _plain(text: str, style: str = "") -> Text:
    """Text that is neither markup nor able to move the cursor."""
    return Text(_CONTROLS.sub("\ufffd", text), style)


def _plain_table(title: str | None = None, *, header: bool = False) -> Table:
    return Table(
        title=_plain(title.replace("_", " "), "bold") if title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_header=header,
        pad_edge=False,
    )
