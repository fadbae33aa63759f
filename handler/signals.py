"""What a function on Lambda says of itself: JSON logs, metrics in the embedded format, and traces on demand.

Decides names and units of metrics, and that nothing but names, numbers and codes is told: no text, link, key, handle
or id of an export, and a query's words only by a setting. Exceptions are logged by type and place. Imported by the
Lambda entries alone: a laptop does not pay for it. Must never know a tool's arguments.

Metrics have one dimension, the service: each further one multiplies what they cost. The tool stands beside them as a
property, for Logs Insights.
"""

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from engine.tally import Tally
from handler.counted import Observed
from handler.faults import outline
from handler.settings_table import SignalSettings

__all__ = ["METRICS", "NAMESPACE", "Signals"]

NAMESPACE = "Hayfork"

METRICS: Mapping[str, tuple[MetricUnit, str]] = {
    "Calls": (MetricUnit.Count, "Tool calls answered, errors included."),
    "Faults": (MetricUnit.Count, "Calls that ended in an internal error."),
    "Unavailable": (MetricUnit.Count, "Calls that a store, a time limit or a memory limit failed."),
    "Latency": (MetricUnit.Milliseconds, "From arguments to answer, in the function."),
    "BytesReturned": (MetricUnit.Bytes, "The text of an answer."),
    "BytesScanned": (MetricUnit.Bytes, "What DuckDB read from the store."),
    "RowsScanned": (MetricUnit.Count, "Rows of statements, and rows a scan looked at."),
    "S3Requests": (MetricUnit.Count, "Requests to S3, tries included."),
    "DynamoDbRequests": (MetricUnit.Count, "Requests to DynamoDB, tries included."),
    "ColdStarts": (MetricUnit.Count, "First calls of a container."),
    "SnapshotAge": (MetricUnit.Seconds, "Age of the snapshot a call read."),
    "BatchConflicts": (MetricUnit.Count, "Batches another call of the session claimed first."),
    "BudgetCuts": (MetricUnit.Count, "Answers that the budget of bytes ended."),
    "SnapshotFaults": (MetricUnit.Count, "Snapshots found broken, or passed over for the one before."),
    "Refused": (MetricUnit.Count, "Calls refused by a quota or for want of credit."),
    "Unmetered": (MetricUnit.Count, "Calls answered and not counted, while the store of usage was down."),
    "CanaryFailures": (MetricUnit.Count, "Canary calls that failed or found nothing; 0 for each that went well."),
    "Refreshes": (MetricUnit.Count, "Refreshes that ended well, published or with nothing to do."),
    "RefreshFailures": (MetricUnit.Count, "Refreshes that failed, before they are tried again."),
    "RefreshTime": (MetricUnit.Milliseconds, "How long a refresh took."),
    "Messages": (MetricUnit.Count, "Messages in the snapshot a refresh published."),
}
"""Every metric, with its unit and what it counts."""

_UNAVAILABLE = frozenset(
    {"too_slow", "out_of_memory", "store_unreachable", "session_busy", "export_failed", "no_time", "metering_down"}
)
_REFUSED = frozenset({"quota_exceeded", "credit_exhausted"})
_BROKEN = frozenset({"snapshot_broken", "snapshot_newer", "snapshot_older"})

Tracer = Any


@dataclass(slots=True)
class _Started:
    """Whether this container has answered yet."""

    cold: bool = True


class Signals:
    """The signals of one function. `clock` gives microseconds since 1970, UTC."""

    def __init__(self, settings: SignalSettings, clock: Callable[[], int]) -> None:
        self._settings = settings
        self._clock = clock
        self._started = _Started()
        self._logger = Logger(service=settings.service, level="INFO", use_rfc3339=True)
        self._tracer = _tracer(settings.service) if settings.traces else None

    def install(self) -> None:
        """Have every other logger of the process write the same JSON, without the words of exceptions."""
        for handler in logging.getLogger().handlers:
            formatter = LambdaPowertoolsFormatter(use_rfc3339=True)
            formatter.append_keys(service=self._settings.service)
            handler.setFormatter(formatter)
            handler.addFilter(without_words)

    def restored(self) -> None:
        """This container is a copy of another: its first call is a cold start too."""
        self._started.cold = True

    @contextmanager
    def invocation(self, context: object) -> Iterator[None]:
        """One event: its request id stands in every line until the block ends."""
        self._logger.append_keys(request_id=str(getattr(context, "aws_request_id", "")))
        if self._tracer is None:
            yield
            return
        with self._tracer.provider.in_subsegment(name=self._settings.service):
            yield

    def called(self, observed: Observed) -> None:
        """Metrics and one line of a call that ended."""
        counts = observed.tally.counts
        made_at = observed.tally.snapshot_at
        broken = counts["snapshot_fallbacks"] + (observed.outcome in _BROKEN)
        told: dict[str, float] = {
            "Calls": 1,
            "Faults": observed.outcome == "internal",
            "Unavailable": observed.outcome in _UNAVAILABLE,
            "Latency": observed.seconds * 1_000,
            "BytesReturned": observed.answer_bytes,
            "BytesScanned": counts["bytes_scanned"],
            "RowsScanned": counts["rows_scanned"],
            "S3Requests": counts["s3_requests"],
            "DynamoDbRequests": counts["dynamodb_requests"],
            "ColdStarts": self._started.cold,
            "BatchConflicts": counts["batch_conflicts"],
            "BudgetCuts": observed.cut,
            "SnapshotFaults": broken,
            "Refused": observed.outcome in _REFUSED,
            "Unmetered": counts["unmetered"],
        }
        if made_at is not None:
            told["SnapshotAge"] = max(0, self._clock() - made_at) / 1_000_000
        self._started.cold = False
        self._tell(told, tool=observed.tool, outcome=observed.outcome)
        line = {name: round(value, 3) for name, value in told.items() if value and name != "Calls"}
        query = {"query": observed.query} if self._settings.log_queries and observed.query else {}
        self._logger.info("call", extra={"tool": observed.tool, "outcome": observed.outcome, **line, **query})

    def canary(self, *, failed: bool) -> None:
        """A canary call ended."""
        self._tell({"CanaryFailures": failed})

    def refreshed(self, report: Mapping[str, Any] | None, seconds: float, tally: Tally) -> None:
        """A refresh ended: its report, `None` when it failed."""
        told: dict[str, float] = {
            "Refreshes": report is not None,
            "RefreshFailures": report is None,
            "RefreshTime": seconds * 1_000,
            "S3Requests": tally.counts["s3_requests"],
        }
        if report is not None and "messages" in report:
            told["Messages"] = report["messages"]
        self._tell(told)

    def _tell(self, told: Mapping[str, float], **properties: str) -> None:
        # Of its own for each call: calls end in several threads, and the library's common one is shared by all.
        metrics = EphemeralMetrics(namespace=NAMESPACE, service=self._settings.service)
        for name, value in told.items():
            metrics.add_metric(name=name, unit=METRICS[name][0], value=round(float(value), 3))
        for name, text in properties.items():
            metrics.add_metadata(key=name, value=text)
        metrics.flush_metrics()
        sys.stdout.flush()


def without_words(record: logging.LogRecord) -> bool:
    """A filter that lets every record pass, its exception as types and places: a message may quote a text."""
    if record.exc_info and record.exc_info[1] is not None:
        record.msg, record.args = f"fault: {outline(record.exc_info[1])}", ()
    record.exc_info = record.exc_text = None
    return True


def _tracer(service: str) -> Tracer:
    from aws_lambda_powertools import Tracer as Made  # noqa: PLC0415 - half a second that only a setting asks for

    return Made(service=service, auto_patch=False)
