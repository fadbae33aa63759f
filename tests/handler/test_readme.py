"""What the README says is so: its configurations load, its commands parse, its links lead somewhere."""

import re
import tomllib
from pathlib import Path

import pytest
import typer

from engine.sources.tables import FIELDS
from handler.cli.commands import command_line
from handler.cli.tool_commands import COMMANDS
from handler.settings import load_settings
from handler.tools.table import TOOLS

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/settings.md", "docs/tables.md")


def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_a_file(page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", text_of(page))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not ((ROOT / page).parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_configuration_loads(page: str, tmp_path: Path) -> None:
    for number, block in enumerate(re.findall(r"```toml\n(.*?)```", text_of(page), re.DOTALL)):
        config = tmp_path / f"{number}.toml"
        config.write_text(block, "utf-8")
        assert tomllib.loads(block)
        for source in load_settings(config).sources:
            assert set(source.columns) <= set(FIELDS)


def test_every_tool_stands_beside_its_command() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `hayfork (\w+)` \|", text_of("README.md"), re.MULTILINE)
    assert rows == [(tool, command) for command, tool in COMMANDS.items()]
    assert [tool for tool, _ in rows] == list(TOOLS)


def test_every_command_shown_exists_with_its_options() -> None:
    made = typer.main.get_command(command_line()).commands  # type: ignore[attr-defined] # a group
    shown = re.findall(r"^hayfork (\w+)(.*)$", text_of("README.md"), re.MULTILINE)
    assert len(shown) > 3
    for command, rest in shown:
        known = {spelling for parameter in made[command].params for spelling in parameter.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= known


def test_every_make_target_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
    named = {t for page in PAGES for t in re.findall(r"\bmake ([a-z-]+)\b(?=[`\n ]{1})", text_of(page))}
    assert {"demo", "test", "serve", "check", "setup"} <= named
    assert named - targets == set()
