"""A deployment's health from outside: what a client meets, checked with requests and nothing else.

Decides what is asked and what counts as well. Requests bear the key they are given, else those to AWS's own addresses
are signed with the credentials of this machine. Must never know how the deployment is made, nor tell the key.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from engine.errors import BadInput, quoted
from handler.cli.doctor import Finding

__all__ = ["examine_url"]

ERAS = ("2025-11-25", "2026-07-28")
"""The newest of each: with a handshake, and without."""

_TIMEOUT_SECONDS = 35.0
"""An HTTP API hangs up after 30."""
_SLOW_SECONDS = 10.0
_OLD_SECONDS = 2 * 86_400
_SKEW_SECONDS = 120
"""Signatures are refused after five minutes: two leave time to mend it."""
_KEY = re.compile(r"[!-~]{8,16384}")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    date: str
    body: bytes
    seconds: float

    @property
    def result(self) -> dict[str, Any]:
        """The result of the exchange; empty for anything else."""
        try:
            told = json.loads(self.body)
        except ValueError:
            return {}
        found = told.get("result") if isinstance(told, dict) else None
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the server is; `service` is what AWS calls it, empty where nothing is signed. `proof` are headers."""

    url: str
    service: str
    region: str
    proof: Mapping[str, str] = field(default_factory=dict, repr=False)

    def ask(self, method: str, params: Mapping[str, Any], era: str, *, signed: bool = True) -> _Reply:
        """One request of an era."""
        sent, headers = _request(method, params, era)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": sent}).encode()
        if signed and self.proof:
            headers |= self.proof
        elif signed and self.service:
            headers = _signed(self.url, headers, body, self.service, self.region)
        split = urlsplit(self.url)
        kind = HTTPSConnection if split.scheme == "https" else HTTPConnection
        connection = kind(split.netloc, timeout=_TIMEOUT_SECONDS)
        started = time.perf_counter()
        try:
            connection.request("POST", split.path or "/", body, headers)
            response = connection.getresponse()
            raw = response.read()
            return _Reply(response.status, response.getheader("Date", ""), raw, time.perf_counter() - started)
        finally:
            connection.close()


def examine_url(url: str, query: str = "", key: str = "") -> Iterator[Finding]:
    """Everything in the order in which it is mended best; ends where nothing further can be asked.

    `key` is an API key or an access token.

    Raises:
        BadInput: `bad_usage` for what is no http address or no key, and for a key that others could read on its way.
    """
    place = _place(url)
    if key:
        place = replace(place, proof=_proof(place.url, key))
    try:
        first = place.ask("server/discover", {}, ERAS[1])
    except (OSError, HTTPException) as error:
        yield Finding("reachability", False, f"no answer: {type(error).__name__}", "check the address and the network")
        return
    yield Finding("reachability", True, f"answers in {first.seconds * 1_000:.0f} ms")
    yield _clock(first)
    yield _auth(place)
    if first.status in {401, 403}:
        way = "give a key that counts" if key else "give --key, or this machine credentials that may call it"
        yield Finding("access", False, f"refused with {first.status}", way)
        return
    for era in ERAS:
        yield _era(place, era)
    yield _age(place)
    yield _known(place, query)


def _place(url: str) -> _Place:
    split = urlsplit(url)
    if split.scheme not in {"http", "https"} or not split.hostname:
        raise BadInput("bad_usage", f"{quoted(url)} is no http address", next_step="give the address of /mcp")
    path = split.path if split.path not in {"", "/"} else "/mcp"
    parts = split.hostname.split(".")
    whole = f"{split.scheme}://{split.netloc}{path}"
    for marker, service in (("execute-api", "execute-api"), ("lambda-url", "lambda")):
        if marker in parts[1:-1]:
            return _Place(whole, service, parts[parts.index(marker) + 1])
    return _Place(whole, "", "")


def _proof(url: str, key: str) -> dict[str, str]:
    """The header that bears a key."""
    if not _KEY.fullmatch(key):
        raise BadInput("bad_usage", "what --key gives is no key", next_step="give it as it was shown, without blanks")
    split = urlsplit(url)
    if split.scheme != "https" and split.hostname not in _LOOPBACK:
        raise BadInput("bad_usage", "a key is not sent without https", next_step="use the https address")
    return {"x-api-key": key} if key.startswith("hf_") else {"authorization": f"Bearer {key}"}


def _request(method: str, params: Mapping[str, Any], era: str) -> tuple[dict[str, Any], dict[str, str]]:
    sent = dict(params)
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": era,
    }
    client = {"name": "hayfork-doctor", "version": "1"}
    if era == ERAS[1]:
        sent["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": era,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": client,
        }
        headers["mcp-method"] = method
        name = sent.get("name") or sent.get("uri")
        if name:
            headers["mcp-name"] = str(name)
    elif method == "initialize":
        sent |= {"protocolVersion": era, "capabilities": {}, "clientInfo": client}
    return sent, headers


def _signed(url: str, headers: dict[str, str], body: bytes, service: str, region: str) -> dict[str, str]:
    from botocore.auth import SigV4Auth  # noqa: PLC0415 - only an address of AWS needs it
    from botocore.awsrequest import AWSRequest  # noqa: PLC0415 - likewise
    from botocore.session import Session  # noqa: PLC0415 - likewise

    credentials = Session().get_credentials()
    if credentials is None:
        return headers
    request = AWSRequest("POST", url, headers=headers, data=body)
    SigV4Auth(credentials.get_frozen_credentials(), service, region).add_auth(request)
    return dict(request.headers.items())


def _clock(reply: _Reply) -> Finding:
    try:
        there = parsedate_to_datetime(reply.date)
    except ValueError:
        return Finding("clock", True, "the server names no time")
    apart = abs((datetime.now(UTC) - there).total_seconds())
    if apart > _SKEW_SECONDS:
        return Finding("clock", False, f"{apart:.0f} s apart from the server's", "set this machine's clock")
    return Finding("clock", True, f"within {max(2, apart):.0f} s of the server's")


def _auth(place: _Place) -> Finding:
    status = place.ask("tools/list", {}, ERAS[1], signed=False).status
    if status in {401, 403}:
        return Finding("auth", True, f"refuses who proves nothing ({status})")
    if urlsplit(place.url).hostname in _LOOPBACK:
        return Finding("auth", True, "none, on this machine only")
    return Finding("auth", False, f"answers anybody ({status})", "set Authorization, or put something in front")


def _era(place: _Place, era: str) -> Finding:
    what = f"protocol {era}"
    method = "initialize" if era == ERAS[0] else "server/discover"
    greeting, listing = place.ask(method, {}, era), place.ask("tools/list", {}, era)
    tools = listing.result.get("tools")
    if not greeting.result or not isinstance(tools, list) or not tools:
        return Finding(what, False, f"{method} {greeting.status}, tools/list {listing.status}", "look at the log")
    if not greeting.result.get("instructions"):
        return Finding(what, False, "no instructions: there is no snapshot to tell of", "run a refresh")
    return Finding(what, True, f"{len(tools)} tools")


def _age(place: _Place) -> Finding:
    reply = place.ask("resources/read", {"uri": "hayfork://corpus"}, ERAS[1])
    try:
        corpus = json.loads(reply.result["contents"][0]["text"])
        made = datetime.fromisoformat(corpus["searched"]["as_of"])
        messages = corpus["found"]["messages"]
    except (KeyError, IndexError, TypeError, ValueError):
        return Finding("snapshot", False, "none", "run a refresh, and look at its log")
    age = (datetime.now(UTC) - made).total_seconds()
    state = f"{messages:,} messages, {age / 3_600:.1f} hours old"
    if age > _OLD_SECONDS:
        return Finding("snapshot", False, state, "look at the refresh's log, and whether a snapshot is pinned")
    return Finding("snapshot", True, state)


def _known(place: _Place, query: str) -> Finding:
    call = {"name": "count_messages", "arguments": {"query": query} if query else {}}
    reply = place.ask("tools/call", call, ERAS[1])
    try:
        text = str(reply.result["content"][0]["text"])
        failed = reply.result.get("isError", False)
    except (KeyError, IndexError, TypeError):
        return Finding("known query", False, f"no result ({reply.status})", "look at the log")
    found = next((line for line in text.split("\n") if line.startswith("found: ")), "")
    if failed or not found or found.startswith("found: 0 "):
        return Finding("known query", False, "finds nothing" if found else text[:200], "check --query, or roll back")
    state = f"{found.partition(' by ')[0]} in {reply.seconds * 1_000:.0f} ms"
    if reply.seconds > _SLOW_SECONDS:
        return Finding("known query", False, state, "raise McpMemory")
    return Finding("known query", True, state)
