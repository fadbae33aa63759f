"""One run of `hayfork`: from arguments to an exit code.

Decides what a failure prints and returns: 2 for input that can be mended, 1 for anything else, as
`code: message; next` or, with `--json`, as an object, on standard error. Must never know a command.
"""

import json
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

import typer
from typer.exceptions import TyperException

from engine.errors import BadInput, EngineError, NotFound
from handler.cli.commands import command_line
from handler.cli.shell import Shell
from handler.cli.tool_commands import COMMANDS, option_of
from handler.faults import tell
from handler.tools.table import TOOLS
from handler.wire import whole_characters

__all__ = ["main"]

INPUT_EXIT = 2
FAULT_EXIT = 1
INTERRUPTED_EXIT = 130


def main(arguments: Sequence[str] | None = None, shell: Shell | None = None) -> int:
    """Run one command and return the exit code. `shell` replaces how the application is made."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        code = command_line()(args=given, prog_name="hayfork", standalone_mode=False, obj=shell or Shell())
        sys.stdout.flush()
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED_EXIT
    except typer.Exit as stop:
        return stop.exit_code
    except BrokenPipeError:
        # Whoever read has read enough. What is still buffered must not fail once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except TyperException as misuse:
        if not misuse.format_message():  # without arguments: the help is printed already
            return INPUT_EXIT
        return _fail(_of_usage(misuse, given), given)
    except Exception as error:  # noqa: BLE001 - the catch-all of the command line
        return _fail(error, given)
    return code if isinstance(code, int) else 0


def _fail(error: Exception, given: Sequence[str]) -> int:
    text = tell(error)
    if "--json" in given:
        told = error.to_object() if isinstance(error, EngineError) else {"code": "internal", "message": text}
        text = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    sys.stderr.write(whole_characters(text) + "\n")
    lacking = isinstance(error, NotFound) and error.code == "no_snapshot"
    return INPUT_EXIT if isinstance(error, BadInput | NotFound) and not lacking else FAULT_EXIT


def _of_usage(misuse: TyperException, given: Sequence[str]) -> BadInput:
    """What the parser of options found wrong, in our words where the table of the tools knows better."""
    option = getattr(misuse, "option_name", None)
    command = next((word for word in given if word in COMMANDS), None)
    message = " ".join(misuse.format_message().split()).removesuffix(".")
    message = message[:1].lower() + message[1:]
    if option == "--config":
        return BadInput("bad_usage", "--config stands before the command", next_step="move it to the front")
    if not isinstance(option, str) or command is None:
        quotes = command in COMMANDS and command != "thread" and "extra argument" in message
        return BadInput("bad_usage", message, next_step="put the query in quotes" if quotes else "see hayfork --help")
    name = option.lstrip("-").replace("-", "_")
    if name in ("query", "message") and TOOLS[COMMANDS[command]].parameter(name):
        return BadInput("bad_usage", f"{name} takes no name", next_step=f"leave {option} out")
    return _unknown_option(command, option, name) or BadInput(
        "bad_usage", message, next_step=f"see hayfork {command} --help"
    )


def _unknown_option(command: str, option: str, name: str) -> BadInput | None:
    """The error a caller of the tool would get for a parameter of that name, with options for names."""
    from engine.limits import Limits  # noqa: PLC0415 - only a mistake needs them
    from handler.arguments import parse_arguments  # noqa: PLC0415 - likewise

    if TOOLS[COMMANDS[command]].parameter(name):
        known = option_of(name)
        if option == known:
            return None
        return BadInput("unknown_parameter", f"{command} has no option '{option}'", next_step=f"use {known}")
    try:
        parse_arguments(COMMANDS[command], {name: ""}, Limits())
    except BadInput as error:
        known = error.next_step.removeprefix("use ")
        if known != error.next_step:
            return BadInput(
                "unknown_parameter",
                f"{command} has no option '{option}'",
                next_step=f"use {option_of(known)}",
            )
    return None
