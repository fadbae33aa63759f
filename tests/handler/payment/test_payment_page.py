"""docs/payment.md: its client pays and reads, and its settings sell."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from handler.app import App
from handler.settings import Settings
from handler.settings_table import CorpusSettings
from handler.wiring import build_desk, build_gate
from tests.handler.payment.facilitator import NETWORK, FacilitatorServer
from tests.handler.payment.shop import Payer, now

PAGE = (Path(__file__).parents[3] / "docs" / "payment.md").read_text("utf-8")


def block(language: str) -> str:
    found = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(found) == 1
    return str(found[0])


@pytest.mark.anyio
async def test_the_client_of_the_page_pays_and_reads(
    port: int, app: App, facilitator: FacilitatorServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.limits.page.page_bytes == 16_384
    payer = Payer(facilitator)
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(block("python"), "docs/payment.md", "exec"), names)  # noqa: S102 - our own page
    await names["main"](f"http://127.0.0.1:{port}/mcp", payer.key, NETWORK)
    said = capsys.readouterr().out
    assert "found: 80 messages" in said
    assert re.search(r"^paid 2000 by 0x[0-9a-f]{64}$", said, re.MULTILINE)
    assert payer.paid == [2_000]


def test_the_settings_of_the_page_sell(tmp_path: Path) -> None:
    settings = Settings(**tomllib.loads(block("toml")), corpus=CorpusSettings(root=str(tmp_path)))
    gate = build_gate(settings, now, "https://hayfork.example")
    assert build_desk(settings, now) is not None
    assert gate is not None
    assert gate.visitor is not None
    assert gate.visitor.sight.allow == ("announcements", "public-*")
