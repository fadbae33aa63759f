"""The application as it is wired, over a small corpus in a folder."""

import json
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from handler.app import App
from handler.settings import Settings
from handler.settings_table import CorpusSettings, ServerSettings, SourceSettings
from handler.wiring import build_app

__all__ = ["NOON", "wired_app", "wired_settings"]

NOON = 1_480_507_200_000_000
"""2016-11-30 12:00 UTC in microseconds."""


def wired_app(folder: Path, *, structured: bool = False) -> App:
    """An application with 120 messages of three authors in two conversations, refreshed once."""
    settings = wired_settings(folder, structured=structured)
    shutil.copytree(Path(_built().name) / "corpus", settings.corpus.root)
    return build_app(settings, lambda: NOON)


@cache
def _built() -> TemporaryDirectory[str]:
    """Where a process keeps the snapshot that each of them starts from: to build it costs more than most tests."""
    folder = TemporaryDirectory(prefix="hayfork-wired-")
    app = build_app(wired_settings(Path(folder.name)), lambda: NOON)
    app.refresh()
    app.close()
    return folder


def wired_settings(folder: Path, *, structured: bool = False) -> Settings:
    """Its settings, with the table they name written."""
    rows = [
        {
            "conversation": "support" if n % 3 else "общий",
            "message_id": str(n),
            "sent_at": f"2016-{1 + n % 11:02}-07T10:{n % 60:02}:00Z",
            "author_id": f"U{n % 3}",
            "author": ("Zara", "Юрий", "花子")[n % 3],
            "text": f'message {n}: docker "failed" with код {n * 7919}\nand a second line 日本語 🎉',
        }
        for n in range(120)
    ]
    table = folder / "messages.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    columns = {
        "conversation_id": "conversation",
        "conversation": "conversation",
        "native_id": "message_id",
        "sent_at": "sent_at",
        "author_id": "author_id",
        "author": "author",
        "body": "text",
    }
    return Settings(
        corpus=CorpusSettings(root=str(folder / "corpus")),
        sources=(SourceSettings(format="jsonl", location=str(table), name="messages", columns=columns),),
        server=ServerSettings(structured=structured),
    )
