"""This engine as a client meets it: a request's JSON in, the result's JSON out, by index or by scan.

Decides what of a call is measured: everything but the network and the event loop. Must never know the peers.
"""

import json
import time
from pathlib import Path
from typing import Any

import mcp_types as types

from engine.ports import Source
from engine.snapshot.format import CURRENT, FOLDED, MANIFEST, NARROW, TEXT, Manifest
from handler.arguments import parse_arguments
from handler.bench.answers import Answered, of_tool
from handler.bench.corpora import Built, Synth
from handler.bench.processes import peak_bytes
from handler.bench.queries import StandardQuery
from handler.bench.shares import unspaced_bytes
from handler.local_app import LocalApp
from handler.mcp_server import LOCAL_CALLER
from handler.settings import Settings
from handler.settings_table import AwsSettings, CorpusSettings, DuckDBSettings
from handler.wire import compact, recode, whole_characters
from handler.wiring import build_app, system_clock

__all__ = ["EXCERPTS", "Hayfork", "app_over", "build", "count_event", "manifest_of", "search_event", "server_peak"]

EXCERPTS = 8
"""Messages a search shows."""

_BUILD_MEMORY = "2GB"

Rpc = bytes


def app_over(root: str, *sources: Source, aws: AwsSettings | None = None, memory: str = "1GB") -> LocalApp:
    """The application as it is wired, over a corpus at `root`, read from `sources` when it is refreshed."""
    settings = Settings(
        corpus=CorpusSettings(root=root, name="bench"),
        duckdb=DuckDBSettings(memory_limit=memory),
        aws=aws or AwsSettings(),
    )
    return build_app(settings, system_clock, sources)


def build(folder: Path, messages: int, seed: int) -> Built:
    """Refresh a corpus of that many made-up messages into `folder`; for a process of its own."""
    source = Synth(messages, seed)
    app = app_over(str(folder), source, memory=_BUILD_MEMORY)
    start = time.perf_counter()
    app.refresh()
    seconds = time.perf_counter() - start - source.drawing_seconds
    app.close()
    manifest = manifest_of(folder)
    plain = {NARROW, TEXT, FOLDED}
    return Built(
        seconds=seconds,
        peak_bytes=peak_bytes(),
        rows=manifest.rows,
        text_bytes=manifest.text_bytes,
        index_bytes=sum(file.size for file in manifest.files if file.name.rpartition("/")[2] not in plain),
        all_bytes=sum(file.size for file in manifest.files),
        unspaced_bytes=unspaced_bytes(folder / "snapshots" / manifest.snapshot_id, manifest),
    )


def manifest_of(root: Path) -> Manifest:
    """The manifest of the current snapshot in a folder."""
    snapshot_id = json.loads((root / CURRENT).read_bytes())["snapshot"]
    return Manifest.from_bytes((root / "snapshots" / snapshot_id / MANIFEST).read_bytes())


def count_event(query: StandardQuery) -> Rpc:
    """The request a client sends to count."""
    return _event("count_messages", query.arguments)


def search_event(query: StandardQuery) -> Rpc:
    """The request a client sends to read eight excerpts."""
    return _event("search_messages", {**query.arguments, "limit": EXCERPTS})


def _event(tool: str, arguments: dict[str, Any]) -> Rpc:
    params = {"name": tool, "arguments": arguments}
    return compact({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


class Hayfork:
    """One system of the benchmark. With `brute` every term is scanned for."""

    def __init__(self, app: LocalApp, *, brute: bool = False) -> None:
        self._app = app
        self._brute = brute
        self.name = "scan" if brute else "hayfork"

    def count(self, query: StandardQuery) -> bytes:
        """The result of `count_messages`."""
        return self.call(count_event(query))

    def search(self, query: StandardQuery) -> bytes:
        """The result of `search_messages`, eight excerpts of the best."""
        return self.call(search_event(query))

    def call(self, event: Rpc) -> bytes:
        """From a request's bytes to the result's, as the server frames them."""
        request = json.loads(event)
        params = request["params"]
        asked = parse_arguments(params["name"], params["arguments"], self._app.limits)
        answer = self._app.call(asked, LOCAL_CALLER, brute=self._brute)
        result = types.CallToolResult(content=[types.TextContent(text=whole_characters(answer.text))])
        plain = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        return recode(compact({"jsonrpc": "2.0", "id": request["id"], "result": plain}))

    def object(self, event: Rpc) -> dict[str, Any]:
        """The same answer as an object."""
        params = json.loads(event)["params"]
        asked = parse_arguments(params["name"], params["arguments"], self._app.limits)
        return self._app.call(asked, LOCAL_CALLER, brute=self._brute).object

    def counted(self, query: StandardQuery) -> Answered:
        """What `count` says, in the form to compare."""
        return of_tool(self.object(count_event(query)))

    def found(self, query: StandardQuery) -> Answered:
        """What `search` says, in the form to compare."""
        return of_tool(self.object(search_event(query)))

    def close(self) -> None:
        """Let go of the corpus."""
        self._app.close()


def server_peak(root: str, events: list[Rpc], rounds: int) -> int:
    """Peak memory in bytes of a server that answers these requests; for a process of its own."""
    import handler.http  # noqa: F401, PLC0415 - what a server has loaded beside the engine

    system = Hayfork(app_over(root))
    for _ in range(rounds):
        for event in events:
            system.call(event)
    system.close()
    return peak_bytes()
