"""Corpora behind a real application: the Slack slice, the synthetic year, and tables made up by a test.

What is expensive is refreshed once for all workers of a test run, under a lock.
"""

import fcntl
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.synth import write_corpus
from handler.app import App
from handler.settings import Settings, load_settings
from handler.settings_table import CorpusSettings, LimitSettings, RoleSettings, ServerSettings, SourceSettings
from handler.wiring import build_app

__all__ = ["NOON", "app_over", "fabric_settings", "once", "shared_folder", "synthetic_settings", "table_settings"]

NOON = 1_796_040_000_000_000
"""2026-11-30 12:00 UTC in microseconds: every application's clock, which stands still."""

_FIXTURES = Path(__file__).parents[1] / "fixtures"


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this test run have in common."""
    base = factory.getbasetemp()
    folder = (base if base.name.startswith("pytest-") else base.parent) / "front"
    folder.mkdir(exist_ok=True)
    return folder


def once(folder: Path, name: str, build: Callable[[Path], object]) -> Path:
    """`folder/name`, filled by `build` in the first worker that asks; the others wait for it."""
    target = folder / name
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (target / "built").exists():
            target.mkdir()
            build(target)
            (target / "built").touch()
    return target


def app_over(settings: Settings, now: int = NOON) -> App:
    """The application as it is wired, its clock stopped."""
    return build_app(settings, lambda: now)


def fabric_settings(folder: Path) -> Settings:
    """The Slack slice with the roles that its cases are written for."""
    source = SourceSettings(
        format="slack",
        location=str(_FIXTURES / "slack-export-fabric.zip"),
        name="fabric",
        workspace_url="https://fabric.example",
        roles={
            "client": RoleSettings(email_domain=("partner.example",)),
            "teammate": RoleSettings(email_domain=("fabric.example",)),
        },
    )
    return Settings(corpus=CorpusSettings(root=str(folder / "corpus"), name="fabric"), sources=(source,))


def synthetic_settings(folder: Path) -> Settings:
    """The configuration that is written beside the synthetic corpus of 40,000 messages."""
    if not (folder / "synth").exists():
        write_corpus(folder / "synth", 40_000, 1)
    return load_settings(folder / "synth" / "hayfork.toml")


def table_settings(
    folder: Path,
    rows: Iterable[Mapping[str, Any]],
    *,
    structured: bool = False,
    limits: LimitSettings | None = None,
) -> Settings:
    """A table of messages whose columns are named as the fields they hold; written unless it is there."""
    table = folder / "messages.jsonl"
    if not table.exists():
        table.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return Settings(
        corpus=CorpusSettings(root=str(folder / "corpus"), name="made up"),
        sources=(SourceSettings(format="jsonl", location=str(table), name="table"),),
        server=ServerSettings(structured=structured),
        limits=limits or LimitSettings(),
    )
