"""The five tools as commands, made from the table of the tools: same names, same options, same meaning.

Decides only how an option is spelled: `from_role` is `--from-role`, given again for a second value; the query
and the message ids stand without a name. Values are read by `handler.arguments`, like those of any caller.
"""

import re
from collections.abc import Callable, Mapping
from inspect import Parameter as PythonParameter
from inspect import Signature
from typing import Annotated, Any

import typer
from rich.markup import escape

from handler.arguments import parse_arguments
from handler.cli.shell import LOCAL, Shell, write_json, written
from handler.cli.show import show_answer
from handler.tools.parameters import Parameter, Type
from handler.tools.table import TOOLS, Tool

__all__ = ["COMMANDS", "add_tool_commands", "option_of"]

COMMANDS: Mapping[str, str] = {
    "count": "count_messages",
    "search": "search_messages",
    "unseen": "unseen_messages",
    "thread": "open_thread",
    "export": "export_messages",
}
"""The tool of each command."""

_POSITIONAL = ("query", "message")
_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)


def add_tool_commands(cli: typer.Typer) -> None:
    """Give `cli` a command for each tool."""
    for command, name in COMMANDS.items():
        tool = TOOLS[name]
        # The words are data: `[id]` in them is no markup.
        told = escape(f"{tool.title}.\n\n{tool.description}")
        cli.command(command, short_help=tool.title, help=told)(_command(tool))


def option_of(name: str) -> str:
    """How a parameter is spelled on the command line."""
    return "--" + name.replace("_", "-")


def _command(tool: Tool) -> Callable[..., None]:
    def run(invocation: typer.Context, *, as_json: bool, brute: bool, **given: Any) -> None:
        shell: Shell = invocation.obj
        app = shell.app()
        request = parse_arguments(tool.name, _raw(tool, given), app.limits)
        answer = app.call(request, LOCAL, brute=brute)
        if as_json:
            write_json(answer.object)
        else:
            show_answer(written(), answer.object)

    annotations: dict[str, Any] = {
        "invocation": typer.Context,
        **{p.name: _annotation(p) for p in tool.parameters},
        "as_json": Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")],
        "brute": Annotated[bool, typer.Option("--brute", help="Scan, even where the index could answer.")],
    }
    defaults: dict[str, Any] = {"as_json": False, "brute": False, **{p.name: None for p in tool.parameters}}
    parameters = [
        PythonParameter(
            name,
            PythonParameter.KEYWORD_ONLY if name != "invocation" else PythonParameter.POSITIONAL_OR_KEYWORD,
            annotation=annotation,
            default=defaults.get(name, PythonParameter.empty),
        )
        for name, annotation in annotations.items()
    ]
    # Typer reads a command's options off its signature; this one is made of the table.
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined] # functions have it, typeshed does not
    run.__annotations__ = annotations
    return run


def _annotation(parameter: Parameter) -> Any:
    kind: Any = list[str] | None if parameter.type is Type.STRINGS else str | None
    if parameter.name in _POSITIONAL:
        return Annotated[kind, typer.Argument(help=escape(parameter.description), show_default=False)]
    return Annotated[
        kind,
        typer.Option(option_of(parameter.name), help=_help(parameter), metavar=_metavar(parameter), show_default=False),
    ]


def _metavar(parameter: Parameter) -> str:
    if parameter.choices:
        return "|".join(parameter.choices)
    return "INTEGER" if parameter.type is Type.INTEGER else "TEXT"


def _help(parameter: Parameter) -> str:
    """The parameter's own words, with what a schema says beside them."""
    said = [parameter.description]
    if parameter.default not in (None, ""):
        said.append(f"Default {parameter.default}.")
    if parameter.maximum is not None:
        said.append(f"{parameter.minimum or 0} to {parameter.maximum}.")
    return escape(" ".join(said))


def _raw(tool: Tool, given: Mapping[str, Any]) -> dict[str, object]:
    """What was given, as a caller of the tool would send it."""
    raw: dict[str, object] = {}
    for parameter in tool.parameters:
        value = given.get(parameter.name)
        if value in (None, []):
            continue
        if parameter.type is Type.INTEGER and _INTEGER.fullmatch(value.strip()):
            value = int(value)
        raw[parameter.name] = value
    return raw
