"""The commands beside the tools: bringing a corpus in, serving it, trying it out, and looking after it.

Decides their options and what they print. The work is done elsewhere: `App`, `engine.synth`, `handler.http`,
`handler.stdio`, `handler.demo`, `handler.cli.doctor`; each is imported by the command that needs it, since a
person waits for every import.
"""

import sys
from dataclasses import replace
from importlib.metadata import version
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.errors import BadInput, quoted
from handler.cli.bench_command import bench
from handler.cli.cost_command import cost
from handler.cli.key_commands import add_key_commands
from handler.cli.shell import LOCAL, Shell, now, progress_shown, write_json, written
from handler.cli.show import show_facts
from handler.cli.snapshots import add_snapshot_commands
from handler.cli.tool_commands import add_tool_commands
from handler.cli.usage_commands import add_usage_commands
from handler.settings import DOCTOR_KEY, Settings

if TYPE_CHECKING:
    from handler.auth.gate import Gate

__all__ = ["command_line"]

_Json = Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")]


def command_line() -> typer.Typer:
    """The whole command line. Its context object is a `Shell`."""
    cli = typer.Typer(
        help="Search a very large table of messages and see only what matters.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    cli.callback()(_common)
    cli.command("refresh")(_refresh)
    cli.command("verify")(_verify)
    add_tool_commands(cli)
    add_key_commands(cli)
    add_usage_commands(cli)
    cli.command("serve")(_serve)
    cli.command("synth")(_synth)
    cli.command("demo")(_demo)
    cli.command("doctor")(_doctor)
    add_snapshot_commands(cli)
    cli.command("cost")(cost)
    cli.command("bench")(bench)
    return cli


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - the signature of a callback
    if wanted:
        sys.stdout.write(f"hayfork {version('hayfork')}\n")
        raise typer.Exit


def _common(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Option(help="The configuration; hayfork.toml in this folder without it.")
    ] = None,
    *,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    if config is not None:
        context.obj = replace(context.obj, config=config)


def _refresh(
    context: typer.Context,
    *,
    force: Annotated[bool, typer.Option("--force", help="Even when no source has changed.")] = False,
    as_json: _Json = False,
) -> None:
    """Read the sources and publish a snapshot of them.

    The report says how many messages were read and stored, and how many were skipped and why.
    """
    shell: Shell = context.obj
    with progress_shown() as progress:
        report = shell.app().refresh(progress, force=force)
    _print(report, as_json=as_json)


def _verify(context: typer.Context, *, as_json: _Json = False) -> None:
    """Rehash every file of the current snapshot and compare it with its manifest."""
    shell: Shell = context.obj
    with progress_shown() as progress:
        report = shell.app().verify(progress)
    _print(report, as_json=as_json)


def _serve(
    context: typer.Context,
    *,
    stdio: Annotated[bool, typer.Option("--stdio", help="Standard streams instead of HTTP.")] = False,
    host: Annotated[str | None, typer.Option(help="Instead of server.host.", show_default=False)] = None,
    port: Annotated[
        int | None, typer.Option(help="Instead of server.port; 0 takes a free one.", show_default=False)
    ] = None,
) -> None:
    """Serve the corpus to MCP clients, until interrupted."""
    shell: Shell = context.obj
    settings = shell.settings()
    app = shell.build(settings)
    from handler.metering.prices import shown_prices  # noqa: PLC0415 - see above

    prices = shown_prices(settings)
    if stdio:
        from handler.stdio import serve_stdio  # noqa: PLC0415 - see above

        serve_stdio(app, threads=settings.server.threads, prices=prices)
        return
    from handler.bodies import body_limits  # noqa: PLC0415 - see above
    from handler.http import HttpOptions, at_host, serve_http  # noqa: PLC0415 - see above
    from handler.metering.usage_route import with_usage  # noqa: PLC0415 - see above
    from handler.wiring import build_desk, build_usage_reports  # noqa: PLC0415 - see above

    options = HttpOptions(
        allowed_hosts=settings.server.allowed_hosts,
        allowed_origins=settings.server.allowed_origins,
        body=body_limits(settings.server),
        cors=settings.server.cors,
        threads=settings.server.threads,
        prices=prices,
        desk=build_desk(settings, now),
    )
    address = host if host is not None else settings.server.host
    listen = port if port is not None else settings.server.port
    guard = _guard(settings, address, listen)

    def ready(listening: int) -> None:
        named = f"[{address}]" if ":" in address else address
        sys.stderr.write(f"serving http://{named}:{listening}{options.path}\n")
        sys.stderr.flush()

    report_of, place = build_usage_reports(settings, now), at_host(options, address)
    if guard is None:
        serve_http(
            app,
            address,
            listen,
            options=options,
            guard=lambda inner: with_usage(inner, report_of, lambda _: LOCAL, place) if report_of else inner,
            ready=ready,
        )
        return
    from handler.auth.gate import caller_in, caller_of, with_gate  # noqa: PLC0415 - see above

    gate = guard
    serve_http(
        app,
        address,
        listen,
        options=options,
        caller_of=caller_of,
        guard=lambda inner: with_gate(with_usage(inner, report_of, caller_in, place) if report_of else inner, gate),
        ready=ready,
    )


def _guard(settings: Settings, host: str, port: int) -> "Gate | None":
    """What decides who may ask, `None` where everybody may: on loopback, and only there.

    Raises:
        BadInput: `bad_setting`.
    """
    from handler.wiring import build_gate  # noqa: PLC0415 - see above

    if settings.auth.modes == ("iam",):
        raise BadInput(
            "bad_setting", "auth.modes is iam, which a gateway of AWS proves", next_step="use api_key or oauth here"
        )
    named = f"[{host}]" if ":" in host else host
    gate = build_gate(settings, now, f"http://{named}:{port}")
    if gate is None and not _is_loopback(host):
        raise BadInput(
            "bad_setting",
            f"auth.modes is none, and {quoted(host)} is not this machine alone",
            next_step="listen on 127.0.0.1, or set auth.modes to api_key or oauth",
        )
    return gate


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _synth(
    folder: Annotated[Path, typer.Argument(help="A new folder, for the export, its answers and a hayfork.toml.")],
    *,
    messages: Annotated[int, typer.Option(help="How many.")] = 40_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 1,
    as_json: _Json = False,
) -> None:
    """Write a made-up Slack export with planted stories, and the answers to them."""
    from engine.synth import write_corpus  # noqa: PLC0415 - see above

    with progress_shown() as progress:
        key = write_corpus(folder, messages, seed, progress)
    report = {
        "folder": str(folder),
        "messages": key.messages,
        "conversations": key.conversations,
        "text_bytes": key.body_bytes,
        "stories": len(key.stories),
    }
    _print(report, as_json=as_json)
    if not as_json:
        sys.stdout.write(f"next: hayfork --config {folder / 'hayfork.toml'} refresh\n")


def _demo(
    context: typer.Context,
    *,
    messages: Annotated[int, typer.Option(help="How many.")] = 40_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same corpus.")] = 1,
    folder: Annotated[
        Path | None, typer.Option(help="Where to keep it; below ./corpus without it.", show_default=False)
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the server running at the end.")] = False,
) -> None:
    """Watch an MCP client find answers in 40,000 messages without being shown them."""
    from handler.demo import prepare, run_demo  # noqa: PLC0415 - see above

    shell: Shell = context.obj
    place = folder or Path("corpus") / f"demo-{messages}-{seed}"
    console = written()
    console.print(f"Making {messages:,} messages and a snapshot of them in {place}, unless they are there …")
    with progress_shown() as progress:
        prepared = prepare(place, messages, seed, shell.build, progress)
    run_demo(console, prepared, keep=keep)


def _doctor(
    context: typer.Context,
    url: Annotated[str, typer.Argument(help="A deployment to check from outside, instead of this machine.")] = "",
    *,
    query: Annotated[str, typer.Option(help="With an address: a query that finds something.")] = "",
    key: Annotated[
        str,
        typer.Option(
            envvar=DOCTOR_KEY,
            help="With an address: an API key or access token. In the variable no list of processes shows it.",
            show_default=False,
        ),
    ] = "",
    quick: Annotated[bool, typer.Option("--quick", help="Do not rehash the snapshot.")] = False,
    as_json: _Json = False,
) -> None:
    """Check what a working corpus needs, and say what to do about what is missing."""
    from handler.cli.doctor import examine, show_findings  # noqa: PLC0415 - see above

    shell: Shell = context.obj
    if url:
        from handler.cli.doctor_remote import examine_url  # noqa: PLC0415 - see above

        findings = list(examine_url(url, query, key))
    else:
        findings = list(examine(shell, quick=quick))
    if as_json:
        write_json([finding.to_object() for finding in findings])
    else:
        show_findings(written(), findings)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def _print(report: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        write_json(report)
    else:
        show_facts(written(), report)
