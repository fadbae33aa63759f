"""What the pages of operations and cost say to type can be typed, and does what they say."""

import json
import re
import shlex
from pathlib import Path

import pytest
import typer

from handler.cli import main
from handler.cli.commands import command_line
from handler.settings import load_settings
from handler.wiring import build_app, system_clock
from tests.handler.running import running
from tests.handler.wired_app import wired_settings
from tests.infra.template_reader import load_template

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "operations.md").read_text("utf-8")
COST = (DOCS / "cost.md").read_text("utf-8")
METERING = (DOCS / "metering.md").read_text("utf-8")


def typed(page: str) -> list[list[str]]:
    """Every `hayfork …` line of a block, and every one between backticks."""
    blocks = "\n".join(re.findall(r"```\n(.*?)```", page, re.DOTALL))
    lines = re.findall(r"^hayfork (.+)$", blocks, re.MULTILINE)
    return [shlex.split(line) for line in [*lines, *re.findall(r"`hayfork ([a-z][^`|]*)`", page)]]


def options_of(words: list[str]) -> set[str]:
    group = typer.main.get_command(command_line())
    command = group.commands[words[0]]  # type: ignore[attr-defined] # a group
    if hasattr(command, "commands"):
        command = command.commands[words[1]]
    return {spelling for parameter in command.params for spelling in parameter.opts}


@pytest.mark.parametrize("words", [*typed(PAGE), *typed(COST), *typed(METERING)], ids=" ".join)
def test_every_command_named_exists_with_its_options(words: list[str]) -> None:
    assert {word for word in words if word.startswith("--")} <= options_of(words)


def test_the_settings_of_metering_as_they_are_written_down(tmp_path: Path) -> None:
    file = tmp_path / "hayfork.toml"
    file.write_text(METERING.partition("```toml\n")[2].partition("```")[0], "utf-8")
    settings = load_settings(file)
    assert (settings.metered, settings.prices.export_row) == (True, 20)
    assert [quota.prepaid for quota in settings.quotas] == [True, False]


def test_every_output_and_parameter_named_is_the_templates() -> None:
    template = load_template()
    assert set(re.findall(r"<([A-Z]\w+)>", PAGE)) <= set(template.raw["Outputs"])
    named = set(re.findall(r"`((?:Mcp|Refresh|Alarm|Max|Canary|Log|Throttle)\w+)`", PAGE))
    known = {*template.raw["Parameters"], *template.raw["Outputs"], *template.resources}
    metrics = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert named - known - metrics == set()


def test_rolling_back_as_it_is_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = wired_settings(tmp_path)
    snapshot = build_app(settings, system_clock).refresh()["snapshot"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAYFORK_CORPUS_ROOT", settings.corpus.root)
    block = PAGE.partition("### Roll back")[2].partition("```\n")[2].partition("```")[0]
    example = re.findall(r"\d{8}T\d{6}\.\d{6}Z-[0-9a-f]{8}", block)
    assert len(example) == 1
    for line in block.splitlines():
        words = shlex.split(line.replace(example[0], snapshot))
        assert words[0] == "hayfork"
        assert main(words[1:]) == 0, capsys.readouterr().err
    assert snapshot in capsys.readouterr().out


def test_the_doctor_as_it_is_written_down(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = build_app(wired_settings(tmp_path), system_clock)
    app.refresh()
    (line,) = re.findall(r"^hayfork (doctor .+)$", PAGE, re.MULTILINE)
    with running(app) as port:
        words = shlex.split(line.replace("<McpEndpoint>", f"http://127.0.0.1:{port}/mcp"))
        assert main([*words, "--json"]) == 0
    assert all(each["ok"] for each in json.loads(capsys.readouterr().out))


def test_every_link_leads_to_a_file() -> None:
    for page in (PAGE, COST, METERING):
        for link in re.findall(r"\]\(([^)#:]+)\)", page):
            assert (DOCS / link).exists(), link
