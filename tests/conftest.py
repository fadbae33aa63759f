"""Fixtures that several packages of tests share."""

from collections.abc import Iterator

import pytest

from tests.local_aws import LocalAws, start_local_aws


@pytest.fixture(scope="session")
def local_aws() -> Iterator[LocalAws]:
    """The local S3 and DynamoDB servers, and an environment in which boto3's chain finds their keys alone."""
    with start_local_aws() as aws, pytest.MonkeyPatch.context() as patch:
        for name, value in aws.environment.items():
            patch.setenv(name, value)
        patch.delenv("AWS_SESSION_TOKEN", raising=False)
        patch.delenv("AWS_PROFILE", raising=False)
        yield aws
