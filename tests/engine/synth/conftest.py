"""A corpus of 2,000 messages, written once and read by all tests here."""

import pytest

from engine.synth import write_corpus
from tests.engine.synth.written import Written


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("synth") / "corpus"
    return Written(folder, write_corpus(folder, 2_000, 1))
