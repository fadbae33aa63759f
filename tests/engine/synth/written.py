"""A written corpus as plain JSON, read without any code of the product."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.synth import AnswerKey

__all__ = ["Written"]


@dataclass(frozen=True, slots=True)
class Written:
    folder: Path
    key: AnswerKey

    def listed(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((self.folder / "export" / name).read_bytes())
        return found

    def days(self) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
        for path in sorted((self.folder / "export").glob("*/*.json")):
            yield path.parent.name, path.stem, json.loads(path.read_bytes())

    def records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every record with its conversation's id."""
        ids: dict[str, str] = {}
        for name in ("channels.json", "groups.json", "mpims.json", "dms.json"):
            ids |= {entry.get("name", entry["id"]): entry["id"] for entry in self.listed(name)}
        for folder, _, records in self.days():
            for record in records:
                yield ids[folder], record
