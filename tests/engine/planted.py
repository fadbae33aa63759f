"""Secrets to plant and what only looks like one: the fixtures, put together.

No token stands whole in a file of ours: a scanner of repositories would take it for a live one. `¦` marks the cuts.
"""

import json
from dataclasses import dataclass
from pathlib import Path

__all__ = ["LOOKALIKES", "PLANTED", "Planted"]

_FIXTURES = Path(__file__).parents[1] / "fixtures"
_CUT = "¦"


@dataclass(frozen=True, slots=True)
class Planted:
    """A text with one secret of a kind, and the text as it is to be stored."""

    kind: str
    text: str
    clean: str

    @property
    def secret(self) -> str:
        """What must be nowhere."""
        before, after = self.clean.split(f"[redacted: {self.kind}]")
        return self.text.removeprefix(before).removesuffix(after)


def _planted(line: str) -> Planted:
    told = json.loads(line)
    return Planted(told["kind"], told["text"].replace(_CUT, ""), told["clean"])


PLANTED = [_planted(line) for line in (_FIXTURES / "planted-secrets.jsonl").read_text("utf-8").splitlines()]
LOOKALIKES = (_FIXTURES / "no-secrets.txt").read_text("utf-8").splitlines()
