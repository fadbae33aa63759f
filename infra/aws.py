"""How clients of AWS are made, and what a failed call means.

Decides that nothing of boto3 is imported before an adapter is made, and that no credential is read and no
socket opened before an adapter's first call: an image of a process taken in between holds neither.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.deadline import check_deadline
from engine.errors import Unavailable

if TYPE_CHECKING:
    from botocore.credentials import ReadOnlyCredentials
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client

__all__ = ["Aws", "AwsSettings", "error_code", "unreachable"]


_PASSING = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "ReplicatedWriteConflictException",
        "RequestLimitExceeded",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TransactionInProgressException",
    }
)
"""Codes of refusals that pass by themselves, though their status blames the caller."""

_FAULT = 500
"""From this status on the service is at fault."""


@dataclass(frozen=True, slots=True)
class AwsSettings:
    """Where to call and how long to wait. `None` leaves region and endpoint to boto3's own chain.

    `timeout_seconds` is for connecting and for each read; `attempts` counts the first one. `sent` is told the service
    of each request as it goes out, tries included.
    """

    region: str | None = None
    endpoint_url: str | None = None
    timeout_seconds: float = 5.0
    attempts: int = 3
    sent: Callable[[str], None] | None = None


class Aws:
    """Clients and credentials by boto3's chain; `failures` are what its calls raise."""

    def __init__(self, settings: AwsSettings) -> None:
        import boto3  # noqa: PLC0415  # a third of a second that only what runs on AWS should pay
        from botocore.config import Config  # noqa: PLC0415  # likewise
        from botocore.exceptions import (  # noqa: PLC0415  # likewise
            BotoCoreError,
            ClientError,
            HTTPClientError,
            IncompleteReadError,
        )
        from botocore.exceptions import ConnectionError as NotConnected  # noqa: PLC0415  # likewise

        self.settings = settings
        self.failures: tuple[type[Exception], ...] = (BotoCoreError, ClientError)
        self._incomplete = IncompleteReadError
        self._unanswered: tuple[type[Exception], ...] = (
            HTTPClientError,
            IncompleteReadError,
            NotConnected,
        )
        self._new_session: Any = boto3.Session
        self._new_config: Any = Config
        self._session: Any = None

    def s3(self) -> "S3Client":
        """A new S3 client, which signs as S3 wants it today."""
        # A link signed for the global host of a new bucket elsewhere is redirected, and its signature then fails.
        style = "path" if self.settings.endpoint_url else "virtual"
        client: S3Client = self._client(
            "s3", self.settings.attempts, signature_version="s3v4", s3={"addressing_style": style}
        )
        return client

    def dynamodb(self) -> "DynamoDBClient":
        """A new DynamoDB client that tries once: its adapter knows which calls may be made again."""
        client: DynamoDBClient = self._client("dynamodb", 1)
        return client

    def functions(self) -> Any:
        """A new Lambda client."""
        return self._client("lambda", self.settings.attempts)

    def credentials(self) -> "ReadOnlyCredentials":
        """The credentials of the moment; those of a role are fetched anew some minutes before they expire.

        Raises:
            Unavailable: there are none.
        """
        with self.reachable():
            found = self._shared_session().get_credentials()
            if found is None:
                raise Unavailable("store_unreachable", "there are no credentials for the store")
            frozen: ReadOnlyCredentials = found.get_frozen_credentials()
            return frozen

    def certificates(self) -> str:
        """The file of authorities that boto3 trusts, for others that speak TLS to the same services."""
        from botocore.httpsession import get_cert_path  # noqa: PLC0415  # already loaded by the client

        return str(get_cert_path(verify=True))

    def passing(self, error: Exception) -> bool:
        """Whether the same call may succeed if it is made again: no answer came, or one that tells of a bad moment.

        What a request itself is refused for (its form, its rights, a table that is not there) is refused again.
        """
        if isinstance(error, self._unanswered):
            return True
        return error_code(error) in _PASSING or _status(error) >= _FAULT

    @contextmanager
    def reachable(self) -> Iterator[None]:
        """Turns what boto3 raises into `Unavailable`, whose detail holds codes only."""
        try:
            yield
        except self.failures as error:
            raise unreachable(error) from error

    def _client(self, service: str, attempts: int, **options: Any) -> Any:
        config = self._new_config(
            connect_timeout=self.settings.timeout_seconds,
            read_timeout=self.settings.timeout_seconds,
            retries={"mode": "standard", "total_max_attempts": attempts},
            max_pool_connections=16,
            **options,
        )
        with self.reachable():
            # One session must not make clients in two threads at once: each client gets its own.
            client = self._new_session().client(
                service,
                region_name=self.settings.region,
                endpoint_url=self.settings.endpoint_url,
                config=config,
            )
        # Of a call whose time is over no request is sent, nor sent again.
        client.meta.events.register_first(f"before-send.{service}", lambda **_: check_deadline())
        sent = self.settings.sent
        if sent is not None:
            # What a handler of this event returns would stand for the response.
            client.meta.events.register(f"before-send.{service}", lambda **_: sent(service))
        client.meta.events.register(f"before-parse.{client.meta.service_model.service_id.hyphenize()}", self._whole)
        return client

    def _whole(self, operation_model: Any, response_dict: Any, **_: Any) -> None:
        """Refuse an answer whose connection ended early: boto3 takes what came, and half a JSON text for no item."""
        body = response_dict["body"]
        if isinstance(body, bytes) and operation_model.http.get("method") != "HEAD":
            promised = int(response_dict["headers"].get("content-length") or 0)
            if len(body) < promised:
                raise self._incomplete(actual_bytes=len(body), expected_bytes=promised)

    def _shared_session(self) -> Any:
        if self._session is None:
            self._session = self._new_session()
        return self._session


def unreachable(error: Exception) -> Unavailable:
    """The error for a call that failed for good."""
    return Unavailable(
        "store_unreachable",
        "the store did not answer as it should",
        next_step="call again",
        detail=error_code(error) or type(error).__name__,
    )


def error_code(error: Exception) -> str:
    """The service's code for an error, `404` and the like when it gave none; empty when it never answered."""
    response = getattr(error, "response", None)
    if not isinstance(response, dict):
        return ""
    return str(response.get("Error", {}).get("Code", ""))


def _status(error: Exception) -> int:
    response = getattr(error, "response", None)
    if not isinstance(response, dict):
        return 0
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
