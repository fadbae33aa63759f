"""What the tests of the protocol edges share."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The event loop everything runs on."""
    return "asyncio"
