"""The one place that chooses adapters: settings become an application.

Decides which technology stands behind each port. Nothing is built, read or connected at import; heavy modules are
imported where they are chosen, so that a cold start pays only for what it uses.
"""

import hashlib
import json
import logging
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import BadInput, quoted
from engine.limits import Limits, Retention
from engine.payments import PaymentStore
from engine.ports import ExportStore, KeyStore, SeenStore, SnapshotStore, Source
from engine.reader import SnapshotReader
from engine.sight import Caller
from engine.snapshot.database import DatabaseSettings
from engine.snapshot.statements import Statements
from engine.tally import add
from engine.usage import UsageStore
from handler.app import App
from handler.auth.policies import Policies
from handler.counted import CountedApp, Observer, room_for_explanations
from handler.deadline import TimedApp
from handler.local_app import LocalApp, Parts, Patience
from handler.settings import Settings
from handler.settings_table import SourceSettings

if TYPE_CHECKING:
    from handler.auth.gate import Gate, OAuthServer
    from handler.metering.metered import Rules
    from handler.metering.usage_route import ReportOf
    from handler.payment.desk import Desk
    from infra.aws import AwsSettings
    from infra.dynamodb_lock import DynamoDbLock
    from infra.s3 import BucketSettings

__all__ = [
    "build_app",
    "build_counted_app",
    "build_desk",
    "build_export_links",
    "build_exports",
    "build_gate",
    "build_keys",
    "build_policies",
    "build_refresh_lock",
    "build_snapshots",
    "build_usage",
    "build_usage_reports",
    "system_clock",
]

logger = logging.getLogger(__name__)

Clock = Callable[[], int]

_PATIENCE = Patience()
_HAND_OVER_SECONDS = 2.0
"""For connecting and for the answer of a hand-over, tried once: it comes after a call's wait, and must fit a call."""

_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_ROOT = re.compile(r"s3://(?P<bucket>[^/]+)(?:/(?P<prefix>.+?))?/?")


def system_clock() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1_000


def build_app(
    settings: Settings, clock: Clock, sources: Sequence[Source] = (), *, patience: Patience = _PATIENCE
) -> LocalApp:
    """The application over these settings. Opens and connects nothing yet. `sources` come before those of the settings.

    Raises:
        BadInput: `bad_setting` when settings contradict each other.
    """
    return LocalApp(_parts(settings, clock, sources, _stores(settings, clock), settings.engine_limits, patience))


def build_counted_app(
    settings: Settings, clock: Clock, observe: Observer | None = None, *, patience: Patience = _PATIENCE
) -> App:
    """The application as it is served: each call ends in time; what it costs is told to `observe`, or in its result,
    and charged to its caller where calls are metered.

    Raises:
        BadInput: as `build_app`.
    """
    explain = settings.signals.explain
    if observe is None and not explain and not settings.metered:
        return _timed(build_app(settings, clock, patience=patience), patience)
    from infra.counting import (  # noqa: PLC0415 - a laptop that counts nothing does not need them
        CountingExports,
        CountingSeen,
        CountingSnapshots,
        CountingStatements,
    )

    plain = _stores(settings, clock)
    snapshots = CountingSnapshots(plain.snapshots, "HTTP" if settings.corpus.root.startswith("s3://") else "FileSystem")
    stores = Stores(snapshots, CountingSeen(plain.seen), CountingExports(plain.exports), plain.later)
    limits = settings.engine_limits
    inside = room_for_explanations(limits) if explain else limits
    parts = _parts(settings, clock, (), stores, inside, patience, CountingStatements)
    if not settings.metered:
        return CountedApp(
            _timed(LocalApp(parts), patience), limits, observe=observe, explain=explain, collect=snapshots.collect
        )
    from handler.metering.metered import MeteredApp, admit_rows  # noqa: PLC0415 - only where calls are metered

    # Outside of what ends a call: that it ended must be recorded too.
    app = _timed(LocalApp(replace(parts, admit=admit_rows)), patience)
    metered = MeteredApp(app, build_usage(settings), _rules(settings), clock, collect=snapshots.collect)
    return CountedApp(metered, limits, observe=observe, explain=explain)


def build_usage(settings: Settings) -> UsageStore:
    """Usage, months and credit.

    Raises:
        BadInput: `bad_setting` without `aws.usage_table` where the corpus is in S3.
    """
    if not settings.corpus.root.startswith("s3://"):
        from infra.sqlite_usage import SqliteUsage  # noqa: PLC0415 - the other half of the choice

        return SqliteUsage(Path(settings.corpus.root) / "usage.sqlite")
    from infra.dynamodb_usage import DynamoUsage  # noqa: PLC0415 - a laptop does not need boto3

    if not settings.aws.usage_table:
        raise BadInput(
            "bad_setting",
            "aws.usage_table is empty, and calls are metered",
            next_step="name the DynamoDB table of usage, or set metering.mode to off",
        )
    return DynamoUsage(settings.aws.usage_table, _aws(settings, settings.aws.dynamodb_endpoint))


def build_usage_reports(settings: Settings, clock: Clock) -> "ReportOf | None":
    """What tells a caller their usage; `None` where calls are not metered.

    Raises:
        BadInput: as `build_usage`.
    """
    if not settings.metered:
        return None
    from handler.metering.quotas import Quotas  # noqa: PLC0415 - see above
    from handler.metering.report import named_month, usage_report  # noqa: PLC0415 - see above

    store, quotas = build_usage(settings), Quotas(settings.quotas)

    def report_of(caller_id: str, month: str) -> dict[str, Any]:
        now = clock()
        return usage_report(store, quotas, caller_id, named_month(month, now), now)

    return report_of


def _rules(settings: Settings) -> "Rules":
    from handler.metering.metered import Rules  # noqa: PLC0415 - see above
    from handler.metering.prices import prices_of  # noqa: PLC0415 - see above
    from handler.metering.quotas import Quotas  # noqa: PLC0415 - see above

    limits, metering = settings.engine_limits, settings.metering
    return Rules(
        prices=prices_of(settings.prices),
        quotas=Quotas(settings.quotas),
        serve_when_down=metering.when_down == "serve",
        keep_seconds=metering.keep_days * 86_400,
        session_seconds=limits.session_max_seconds,
        hold_seconds=metering.hold_seconds,
        export_seconds=limits.export_run_seconds,
    )


def _timed(app: App, patience: Patience) -> App:
    return TimedApp(app, export_seconds=patience.seconds) if app.limits.call_seconds else app


def build_snapshots(settings: Settings, clock: Clock) -> SnapshotStore:
    """The snapshots alone, to list and to roll back; raises likewise."""
    if not settings.corpus.root.startswith("s3://"):
        return _stores(settings, clock).snapshots
    from infra.s3_snapshots import S3Snapshots  # noqa: PLC0415 - a laptop does not need boto3

    return S3Snapshots(_bucket(settings))


def _parts(
    settings: Settings,
    clock: Clock,
    sources: Sequence[Source],
    stores: "Stores",
    limits: Limits,
    patience: Patience,
    metered: Callable[[Statements], Statements] = lambda statements: statements,
) -> Parts:
    database = _database(settings)
    return Parts(
        name=settings.corpus.name,
        zone=settings.corpus.zone,
        limits=limits,
        clock=clock,
        snapshots=stores.snapshots,
        reader=SnapshotReader(stores.snapshots, database, limits, _warn, metered=metered),
        seen=stores.seen,
        exports=stores.exports,
        sources=lambda: [*sources, *(_source(settings, source) for source in settings.sources)],
        rules=_rules_digest(settings),
        redact=settings.corpus.redact,
        database=database,
        retention=Retention(settings.retention.keep_snapshots, settings.retention.grace_seconds),
        version=_version(),
        later=stores.later,
        export_wait_seconds=settings.limits.export_wait_seconds or None,
        patience=patience,
    )


def _warn(words: str) -> None:
    logger.warning(words)
    add("snapshot_fallbacks")


def build_export_links(settings: Settings, clock: Clock) -> Callable[[str, str], str | None]:
    """From an export's id and a method to a URL that takes it for a short time; `None` when nothing can be fetched."""
    from infra.s3_exports import S3Exports  # noqa: PLC0415 - only a deployment to AWS has them

    store = S3Exports(_bucket(settings), settings.aws.public_url)

    def presigned_of(export_id: str, method: str) -> str | None:
        export = store.get(export_id)
        if export is None or export.state != "done" or export.expires_at <= clock():
            return None
        return store.presigned(export, method)

    return presigned_of


def build_exports(settings: Settings, clock: Clock) -> ExportStore:
    """The exports alone, to revoke one; raises as `build_app`."""
    return _stores(settings, clock).exports


def build_keys(settings: Settings) -> KeyStore:
    """The API keys.

    Raises:
        BadInput: `bad_setting` without `aws.keys_table` where the corpus is in S3.
    """
    if not settings.corpus.root.startswith("s3://"):
        from infra.sqlite_keys import SqliteKeys  # noqa: PLC0415 - the other half of the choice

        return SqliteKeys(Path(settings.corpus.root) / "keys.sqlite")
    from infra.dynamodb_keys import DynamoKeys  # noqa: PLC0415 - a laptop does not need boto3

    if not settings.aws.keys_table:
        raise BadInput("bad_setting", "aws.keys_table is empty", next_step="name the DynamoDB table of API keys")
    return DynamoKeys(settings.aws.keys_table, _aws(settings, settings.aws.dynamodb_endpoint))


def build_policies(settings: Settings) -> Policies:
    """What exists for whom.

    Raises:
        BadInput: `bad_setting`.
    """
    return Policies(settings.policies, settings.corpus.zone, settings.auth.oauth_tool_scopes)


def build_gate(settings: Settings, clock: Clock, address: str) -> "Gate | None":
    """What decides who may ask the server at `address`; `None` by the setting that everybody may.

    Raises:
        BadInput: `bad_setting`.
    """
    auth = settings.auth
    if "none" in auth.modes and not settings.x402.enabled:
        return None
    from handler.auth.api_key import ApiKeys  # noqa: PLC0415 - only who takes proof needs it
    from handler.auth.gate import Gate  # noqa: PLC0415 - likewise
    from handler.bodies import body_limits  # noqa: PLC0415 - likewise

    return Gate(
        policies=build_policies(settings),
        keys=ApiKeys(build_keys(settings), clock) if "api_key" in auth.modes else None,
        oauth=_oauth(settings, clock, auth.oauth_audience or f"{address}/mcp") if "oauth" in auth.modes else None,
        iam="iam" in auth.modes,
        body=body_limits(settings.server),
        visitor=_visitor(settings),
    )


def _visitor(settings: Settings) -> Caller | None:
    """Who may pay instead of proving who they are.

    Raises:
        BadInput: `bad_setting` where nothing says what they may see.
    """
    if not settings.x402.enabled:
        return None
    if "none" not in settings.auth.modes and not settings.x402.beside_auth:
        raise BadInput(
            "bad_setting",
            "x402.enabled is true, and auth.modes turns away who would pay",
            next_step="set x402.beside_auth, or auth.modes to none",
        )
    visitor = build_policies(settings).visitor()
    if visitor is None:
        raise BadInput(
            "bad_setting",
            "x402.enabled is true, and no policy says what callers who pay may see",
            next_step='add [[policies]] with callers = ["x402:*"]',
        )
    return visitor


def build_desk(settings: Settings, clock: Clock) -> "Desk | None":
    """Where callers without an account pay, `None` unless it is on. Opens and connects nothing yet.

    Raises:
        BadInput: `bad_setting`.
    """
    if not settings.x402.enabled:
        return None
    if find_spec("x402") is None or find_spec("httpx2") is None:
        raise BadInput(
            "bad_setting",
            "x402.enabled is true, and its packages are missing",
            next_step="install hayfork[x402]; for Lambda, make deploy EXTRAS=x402",
        )
    from handler.payment.build import desk_of  # noqa: PLC0415 - who sells nothing does not carry its packages

    return desk_of(settings, build_policies(settings), _payments(settings, clock), clock)


def _payments(settings: Settings, clock: Clock) -> PaymentStore:
    if not settings.corpus.root.startswith("s3://"):
        from infra.sqlite_payments import SqlitePayments  # noqa: PLC0415 - the other half of the choice

        return SqlitePayments(Path(settings.corpus.root) / "payments.sqlite", clock=clock)
    from infra.dynamodb_payments import DynamoPayments  # noqa: PLC0415 - a laptop does not need boto3

    if not settings.aws.payments_table:
        raise BadInput("bad_setting", "aws.payments_table is empty", next_step="name the DynamoDB table of payments")
    return DynamoPayments(settings.aws.payments_table, _aws(settings, settings.aws.dynamodb_endpoint), clock=clock)


def _oauth(settings: Settings, clock: Clock, resource: str) -> "OAuthServer":
    from handler.auth.gate import OAuthServer  # noqa: PLC0415 - see above
    from handler.auth.jwks import KeySet, check_address, discover, fetch_json  # noqa: PLC0415 - see above
    from handler.auth.oauth import JwtVerifier, OAuthRules  # noqa: PLC0415 - see above

    auth = settings.auth
    if not auth.oauth_issuer:
        raise BadInput("bad_setting", "auth.oauth_issuer is empty", next_step="name who issues tokens")
    check_address("auth.oauth_issuer", auth.oauth_issuer)
    check_address("auth.oauth_audience", resource)
    for scope in (*auth.oauth_scopes, *auth.oauth_tool_scopes.values()):
        if not _SCOPE.fullmatch(scope):
            raise BadInput("bad_setting", f"{quoted(scope)} is no scope", next_step="leave out blanks and quotes")
    if auth.oauth_jwks_url:
        check_address("auth.oauth_jwks_url", auth.oauth_jwks_url)
    keys = KeySet(lambda: fetch_json(auth.oauth_jwks_url or discover(auth.oauth_issuer, fetch_json)), clock)
    rules = OAuthRules(auth.oauth_issuer, resource, auth.oauth_algorithms)
    verifier = JwtVerifier(rules, keys, clock)
    return OAuthServer(verifier, auth.oauth_issuer, resource, auth.oauth_scopes, auth.oauth_tool_scopes)


def build_refresh_lock(settings: Settings) -> "DynamoDbLock":
    """The lock that lets one refresh run at a time.

    Raises:
        BadInput: `bad_setting` without `aws.lock_table`.
    """
    from infra.dynamodb_lock import DynamoDbLock  # noqa: PLC0415 - only a deployment to AWS has one

    if not settings.aws.lock_table:
        raise BadInput("bad_setting", "aws.lock_table is empty", next_step="name the DynamoDB table of the lock")
    return DynamoDbLock(settings.aws.lock_table, "refresh", _aws(settings, settings.aws.dynamodb_endpoint))


@dataclass(frozen=True, slots=True)
class Stores:
    """The adapters of one deployment."""

    snapshots: SnapshotStore
    seen: SeenStore
    exports: ExportStore
    later: Callable[[str], None] | None


def _stores(settings: Settings, clock: Clock) -> Stores:
    if settings.corpus.root.startswith("s3://"):
        return _aws_stores(settings)
    from infra.localdir import LocalExports, LocalSnapshots  # noqa: PLC0415 - the other half of the choice
    from infra.sqlite import SqliteSeen  # noqa: PLC0415 - likewise

    root = Path(settings.corpus.root)
    return Stores(LocalSnapshots(root), SqliteSeen(root / "seen.sqlite", clock=clock), LocalExports(root), None)


def _aws_stores(settings: Settings) -> Stores:
    from infra.aws_lambda import LambdaInvoker  # noqa: PLC0415 - a laptop does not need boto3
    from infra.counting import count_request  # noqa: PLC0415 - likewise
    from infra.dynamodb import DynamoSeen  # noqa: PLC0415 - likewise
    from infra.s3_exports import S3Exports  # noqa: PLC0415 - likewise
    from infra.s3_snapshots import S3Snapshots  # noqa: PLC0415 - likewise

    aws = settings.aws
    if not aws.seen_table:
        raise BadInput("bad_setting", "aws.seen_table is empty", next_step="name the DynamoDB table of sessions")
    bucket = _bucket(settings)
    later = (
        LambdaInvoker(
            aws.invoke_function,
            replace(_aws(settings, aws.lambda_endpoint), timeout_seconds=_HAND_OVER_SECONDS, attempts=1),
        ).finish_export
        if aws.invoke_function
        else None
    )
    seen = DynamoSeen(
        aws.seen_table, region=aws.region or None, endpoint_url=aws.dynamodb_endpoint or None, sent=count_request
    )
    return Stores(S3Snapshots(bucket), seen, S3Exports(bucket, aws.public_url), later)


def _aws(settings: Settings, endpoint: str) -> "AwsSettings":
    from infra.aws import AwsSettings  # noqa: PLC0415 - a laptop does not need it
    from infra.counting import count_request  # noqa: PLC0415 - likewise

    return AwsSettings(settings.aws.region or None, endpoint or None, sent=count_request)


def _bucket(settings: Settings) -> "BucketSettings":
    from infra.s3 import BucketSettings  # noqa: PLC0415 - a laptop does not need it

    found = _ROOT.fullmatch(settings.corpus.root)
    if found is None:
        raise BadInput(
            "bad_setting", f"corpus.root {quoted(settings.corpus.root)}", next_step="write s3://bucket/prefix"
        )
    prefix = f"{found['prefix']}/" if found["prefix"] else ""
    aws = settings.aws
    return BucketSettings(found["bucket"], prefix, aws.encryption, aws.kms_key, aws=_aws(settings, aws.s3_endpoint))


def _database(settings: Settings) -> DatabaseSettings:
    folder = Path(settings.duckdb.temp_folder or tempfile.gettempdir()) / "hayfork-duckdb"
    return DatabaseSettings(settings.duckdb.memory_limit, settings.duckdb.threads, folder)


def _source(settings: Settings, source: SourceSettings) -> Source:
    if source.location.startswith("s3://"):
        from infra.s3_source import S3Source, s3_place  # noqa: PLC0415 - a laptop does not need boto3

        return S3Source(
            s3_place(source.location),
            lambda local: _local_source(settings, source.model_copy(update={"location": local})),
            name=source.name,
            identity=source.model_dump_json(exclude={"location", "name"}),
            temp_folder=Path(settings.duckdb.temp_folder) if settings.duckdb.temp_folder else None,
            aws=_aws(settings, settings.aws.s3_endpoint),
        )
    return _local_source(settings, source)


def _local_source(settings: Settings, source: SourceSettings) -> Source:
    if source.format == "slack":
        from engine.sources.roles import RoleRules  # noqa: PLC0415 - who only answers reads no source
        from engine.sources.slack import SlackExport  # noqa: PLC0415 - likewise

        return SlackExport(
            Path(source.location),
            RoleRules(source.rules),
            workspace_url=source.workspace_url or None,
            name=source.name,
        )
    from engine.sources.tables import TableSource  # noqa: PLC0415 - who only answers reads no source

    return TableSource(
        name=source.name,
        format=source.format,
        location=source.location,
        columns=source.columns,
        roles=source.rules,
        zone=settings.corpus.zone,
        keep_unmapped=source.keep_unmapped,
        memory_limit=settings.duckdb.memory_limit,
        threads=settings.duckdb.threads,
    )


def _rules_digest(settings: Settings) -> str:
    """Of all that changes what a source's files become, beside the files: roles, mappings, zone, our own version."""
    plain = [source.model_dump(mode="json", exclude={"location"}) for source in settings.sources]
    text = json.dumps([plain, settings.corpus.timezone, _version()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _version() -> str:
    try:
        return version("hayfork")
    except PackageNotFoundError:  # a Lambda carries the packages without their metadata
        return "0"
