"""One facilitator and one server over a small corpus for all tests of payment."""

from collections.abc import Iterator

import pytest

from handler.app import App
from tests.handler.payment.facilitator import FacilitatorServer, facilitating
from tests.handler.payment.shop import selling, selling_settings
from tests.handler.wired_app import wired_app


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def facilitator() -> Iterator[FacilitatorServer]:
    with facilitating() as made:
        yield made


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> App:
    return wired_app(tmp_path_factory.mktemp("sold"))


@pytest.fixture(scope="module")
def port(app: App, facilitator: FacilitatorServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with selling(app, selling_settings(tmp_path_factory.mktemp("shop"), facilitator)) as number:
        yield number
