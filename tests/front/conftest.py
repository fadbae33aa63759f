"""Servers over real applications: the Slack slice and the synthetic year, each refreshed once in a test run."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from handler.app import App
from tests.front.corpora import app_over, fabric_settings, once, shared_folder, synthetic_settings
from tests.front.told import Stories
from tests.handler.running import running


@pytest.fixture
def anyio_backend() -> str:
    """The event loop everything runs on."""
    return "asyncio"


@pytest.fixture(scope="session")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> App:
    """The application over the Slack slice."""
    folder = once(shared_folder(tmp_path_factory), "fabric", lambda at: app_over(fabric_settings(at)).refresh())
    return app_over(fabric_settings(folder))


@pytest.fixture(scope="session")
def fabric_port(fabric: App) -> Iterator[int]:
    """A server over the Slack slice."""
    with running(fabric) as port:
        yield port


@pytest.fixture(scope="session")
def synthetic_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The synthetic corpus of 40,000 messages, its answer key, its configuration, and a snapshot of it."""
    return once(shared_folder(tmp_path_factory), "synthetic", lambda at: app_over(synthetic_settings(at)).refresh())


@pytest.fixture(scope="session")
def synthetic(synthetic_folder: Path) -> App:
    """The application over the 40,000."""
    return app_over(synthetic_settings(synthetic_folder))


@pytest.fixture(scope="session")
def synthetic_port(synthetic: App) -> Iterator[int]:
    """A server over the 40,000."""
    with running(synthetic) as port:
        yield port


@pytest.fixture(scope="session")
def stories(synthetic_folder: Path) -> Stories:
    """The answer key by story."""
    key = json.loads((synthetic_folder / "synth" / "answers.json").read_text("utf-8"))
    return {story["name"]: story for story in key["stories"]}
