"""Every setting of a deployment as one table: name, default, help, and the reason of each limit.

Decides what may be set and to what. Must never know where values come from (`handler.settings`).
Adding a setting is one line in its section; variables, errors and `docs/settings.md` follow from the table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, tzinfo
from difflib import get_close_matches
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, available_timezones

from pydantic import AfterValidator
from pydantic.fields import FieldInfo

from engine.sources.roles import RoleRule
from handler.settings_access import AuthSettings, PolicySettings
from handler.settings_base import Names
from handler.settings_base import Section as _Section
from handler.settings_base import setting as _setting
from handler.settings_money import MeteringSettings, PriceSettings, QuotaSettings
from handler.settings_payment import X402Settings

__all__ = [
    "PREFIX",
    "AuthSettings",
    "AwsSettings",
    "CorpusSettings",
    "DuckDBSettings",
    "LimitSettings",
    "MeteringSettings",
    "PolicySettings",
    "PriceSettings",
    "QuotaSettings",
    "RetentionSettings",
    "RoleSettings",
    "ServerSettings",
    "SettingRow",
    "SignalSettings",
    "SourceSettings",
    "X402Settings",
    "setting_rows",
]

PREFIX = "HAYFORK_"
"""`server.port` is overridden by HAYFORK_SERVER_PORT; HAYFORK_CONFIG names the file itself."""


def _known_zone(name: str) -> str:
    if name != "UTC" and name not in available_timezones():
        close = get_close_matches(name, available_timezones(), 1, 0.6)
        hint = f"; use {close[0]}" if close else "; use a name like Europe/Vienna"
        raise ValueError(f"is no time zone{hint}")
    return name


class CorpusSettings(_Section):
    """What is searched, and where its snapshots are kept."""

    root: str = _setting(".hayfork", "Folder of the snapshots, sessions and exports.", min_length=1)
    name: str = _setting(
        "messages",
        "What the corpus is called in the instructions an agent reads.",
        "Instructions are read on every connection; a longer name says no more.",
        min_length=1,
        max_length=80,
    )
    timezone: Annotated[str, AfterValidator(_known_zone)] = _setting(
        "UTC", "Time zone of dates without one, in questions and in tables."
    )

    redact: bool = _setting(
        True,
        "Replace secrets by a mark such as `[redacted: aws key]` before anything is stored: tokens, keys, cards.",
        "On: what somebody posted by mistake should not be found by everybody.",
    )

    @property
    def zone(self) -> tzinfo:
        """The time zone; UTC needs no time zone database."""
        return UTC if self.timezone == "UTC" else ZoneInfo(self.timezone)


class RoleSettings(_Section):
    """Whose messages get this role; any one of the conditions suffices."""

    email_domain: Names = _setting((), "E-mail domains; subdomains are covered.")
    user: Names = _setting((), "User ids.")
    conversation: Names = _setting((), "Conversations in which every author has the role.")


class SourceSettings(_Section):
    """One `[[sources]]` block: a Slack export, or a table with a mapping of its columns."""

    format: Literal["slack", "jsonl", "csv", "parquet"] = _setting(..., "What the location holds.")
    location: str = _setting(..., "A zip or folder of a Slack export; a file, folder or glob of a table.", min_length=1)
    name: str = _setting("", "Short name in reports. Default: the last part of the location.", max_length=80)
    workspace_url: str = _setting(
        "",
        "Slack only: https address of the workspace, from which links to messages are built.",
        "An export holds no links.",
        pattern=r"^(https?://[^\s/]+/?)?$",
    )
    roles: dict[str, RoleSettings] = _setting({}, "Who has which role: `client = { email_domain = [...] }`.")
    columns: dict[str, str] = _setting(
        {}, 'Tables only: which column holds which field: `body = "text"`; an empty name leaves a field out.'
    )
    keep_unmapped: bool = _setting(
        False,
        "Tables only: keep the other columns as the message's attributes.",
        "Off: what nobody named may hold what nobody should read.",
    )

    @property
    def rules(self) -> dict[str, RoleRule]:
        """The role rules in the engine's own type, in the order of the configuration."""
        return {role: RoleRule(rule.email_domain, rule.user, rule.conversation) for role, rule in self.roles.items()}


class ServerSettings(_Section):
    """The HTTP server."""

    host: str = _setting("127.0.0.1", "Address to listen on.", "Loopback: nothing else should reach a laptop.")
    port: int = _setting(8765, "Port to listen on; 0 takes a free one.", ge=0, le=65_535)
    allowed_hosts: Names = _setting(
        (), "Values of the Host header to accept beside loopback.", "Others are refused: DNS rebinding."
    )
    allowed_origins: Names = _setting(
        (), "Values of the Origin header to accept beside loopback.", "Others are refused: DNS rebinding."
    )
    cors: bool = _setting(
        False,
        "Let pages of allowed_origins read answers in a browser (CORS).",
        "Off: no page of the web has any business here.",
    )
    threads: int = _setting(8, "Calls answered at once.", "More only wait for the same processor.", ge=1, le=64)
    max_body_bytes: int = _setting(
        1_048_576,
        "Largest request.",
        "Six queries, escaped, stay under 300 KB.",
        ge=16_384,
        le=4_194_304,
    )
    body_seconds: float = _setting(
        10.0, "Time to send a request's body.", "Who sends a byte a minute holds a connection for ever.", gt=0, le=60
    )
    json_levels: int = _setting(
        32, "How deep arrays and objects of a request may nest.", "A call has six; parsers recurse.", ge=8, le=200
    )
    structured: bool = _setting(
        False,
        "Send the object (structuredContent) beside the text.",
        "Off: some clients pass both on to the model, and one page must hold both.",
    )


class SignalSettings(_Section):
    """What is told of calls: to whoever runs the server, and of their cost to whoever calls."""

    service: str = _setting(
        "hayfork",
        "Name of this function in its logs and metrics.",
        "Each name is a set of metrics of its own, which are paid for.",
        pattern=r"^[A-Za-z0-9_.-]{1,80}$",
    )
    log_queries: bool = _setting(
        False, "Log the text of each query.", "Off: what people look for may be as private as what was said."
    )
    traces: bool = _setting(
        False, "Record a subsegment of each call with X-Ray.", "Off: its library adds half a second to a cold start."
    )
    explain: bool = _setting(
        False,
        "Say in each result how each term was found and, to callers who see everything, what the call read.",
        "Off: half a kilobyte of each page that answers no question of an agent's.",
    )


class RetentionSettings(_Section):
    """Which old snapshots stay after a refresh."""

    keep_snapshots: int = _setting(
        3, "Snapshots kept, the current one included.", "One to roll back to, one in doubt.", ge=1, le=1_000
    )
    grace_seconds: int = _setting(
        3_600, "A snapshot younger than this stays.", "Readers finish what they began on an old one.", ge=0
    )


class DuckDBSettings(_Section):
    """The database engine that reads and builds snapshots."""

    memory_limit: str = _setting(
        "1GB",
        "Memory it may use.",
        "A laptop does other things too.",
        pattern=r"^\d+(\.\d+)? ?[KMG]i?B$",
    )
    threads: int = _setting(0, "Threads it may use; 0 for one per processor.", ge=0, le=256)
    temp_folder: str = _setting("", "Where it spills what memory cannot hold. Default: the system's own.")


class AwsSettings(_Section):
    """What a deployment to AWS adds, with a `corpus.root` of `s3://bucket` or `s3://bucket/prefix`."""

    seen_table: str = _setting("", "DynamoDB table of what sessions were shown. Default: none is kept.")
    lock_table: str = _setting("", "DynamoDB table of the lock that lets one refresh run at a time.")
    keys_table: str = _setting("", "DynamoDB table of API keys; needed for `auth.modes` with api_key.")
    payments_table: str = _setting("", "DynamoDB table of payments; needed with `x402.enabled`.")
    usage_table: str = _setting("", "DynamoDB table of usage and credit; needed where calls are metered.")
    invoke_function: str = _setting(
        "", "Lambda function or alias that finishes long exports.", "A call over HTTP has 30 s, it has 900."
    )
    public_url: str = _setting(
        "",
        "Address that links of exports begin with. Default: the one a request came by.",
        pattern=r"^(https?://[^\s/]+(/[^\s/]+)*)?$",
    )
    encryption: Literal["AES256", "aws:kms"] = _setting("AES256", "How objects are encrypted in S3.")
    kms_key: str = _setting("", "With `aws:kms`: id of the key. Default: the account's own for S3.")
    region: str = _setting("", "Region. Default: that of the function or of the AWS configuration.")
    s3_endpoint: str = _setting("", "Another S3 server. Default: AWS.")
    dynamodb_endpoint: str = _setting("", "Another DynamoDB server. Default: AWS.")
    lambda_endpoint: str = _setting("", "Another Lambda server. Default: AWS.")


class LimitSettings(_Section):
    """Limits of one deployment. The contract's own values are the highest allowed."""

    page_bytes: int = _setting(
        16_384, "Largest result; at least 8,192 with `server.structured`.", "About 4,000 tokens.", ge=4_096, le=16_384
    )
    count_bytes: int = _setting(4_096, "Largest plain count.", "It is asked often and read whole.", ge=2_048, le=4_096)
    query_chars: int = _setting(4_096, "Longest query, in characters.", "Beyond that it is a program.", ge=16, le=4_096)
    query_terms: int = _setting(256, "Most terms of a query.", "Each is looked up.", ge=1, le=256)
    query_levels: int = _setting(64, "Deepest nesting of a query.", "Parsing recurses.", ge=1, le=64)
    filter_values: int = _setting(100, "Most values of one filter.", "The head echoes them.", ge=1, le=100)
    scan_seconds: float = _setting(
        20.0,
        "A call's time to search.",
        "HTTP APIs hang up after 30 s; a clear error comes first.",
        gt=0,
        le=25,
    )
    call_seconds: float = _setting(
        25.0,
        "A call's time in all, stores included; 0: as long as it takes. Its caller hears so two seconds later at most.",
        "HTTP APIs hang up after 30 s, of which a cold start and the way take some.",
        ge=0,
        le=27,
    )
    slice_chars: int = _setting(
        6_000,
        "Longest part of one message in one call.",
        "It must fit a page in any script.",
        ge=500,
        le=6_000,
    )
    session_idle_seconds: int = _setting(
        86_400, "A session ends after so long without a call.", "A day's work is one reading.", ge=60
    )
    session_max_seconds: int = _setting(
        2_592_000, "A session ends after so long in any case.", "Stored sessions must go some day.", ge=60
    )
    export_seconds: int = _setting(
        3_600, "How long an export's link works.", "Long enough to fetch, short enough to lose.", ge=60
    )
    export_wait_seconds: int = _setting(15, "A call's wait for an export; 0: for all of it.", "Half of 30 s.", ge=0)
    episode_gap_seconds: int = _setting(1_800, "A pause that ends a talk.", "Half an hour.", ge=1)
    word_floor: int = _setting(
        20, "Shorter messages rank as if they had so many words.", 'Or "no worries" wins.', ge=0, le=1_000
    )
    close_below: int = _setting(100, "Terms in fewer messages get close words.", "Often is right.", ge=0, le=10_000)


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One row of the table: `section.name`, its variable (none inside lists) and what the page says."""

    name: str
    variable: str
    default: str
    limits: str
    help: str
    reason: str


def setting_rows() -> Iterator[SettingRow]:
    """Every setting in the order of the file, for the documentation and for nearest names."""
    yield from _rows_of("corpus", CorpusSettings)
    yield from _rows_of("sources", SourceSettings, variables=False)
    yield from _rows_of("sources.roles.ROLE", RoleSettings, variables=False)
    yield from _rows_of("server", ServerSettings)
    yield from _rows_of("auth", AuthSettings)
    yield from _rows_of("policies", PolicySettings, variables=False)
    yield from _rows_of("metering", MeteringSettings)
    yield from _rows_of("prices", PriceSettings)
    yield from _rows_of("quotas", QuotaSettings, variables=False)
    yield from _rows_of("x402", X402Settings)
    yield from _rows_of("signals", SignalSettings)
    yield from _rows_of("retention", RetentionSettings)
    yield from _rows_of("duckdb", DuckDBSettings)
    yield from _rows_of("aws", AwsSettings)
    yield from _rows_of("limits", LimitSettings)


def _rows_of(section: str, model: type[_Section], *, variables: bool = True) -> Iterator[SettingRow]:
    for name, field in model.model_fields.items():
        extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
        yield SettingRow(
            name=f"{section}.{name}",
            variable=f"{PREFIX}{section}_{name}".upper() if variables else "",
            default=_shown_default(field),
            limits=_shown_limits(field),
            help=field.description or "",
            reason=str(extra.get("reason", "")),
        )


def _shown_default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return "[" + ", ".join(f'"{part}"' for part in value) + "]"
    return str(value)


def _shown_limits(field: FieldInfo) -> str:
    """`1 to 64`, `at least 60`, or nothing."""
    bounds = {
        side: getattr(m, side)
        for m in field.metadata
        for side in ("ge", "gt", "le")
        if getattr(m, side, None) is not None
    }
    low, high = bounds.get("ge", bounds.get("gt")), bounds.get("le")
    word = "over" if "gt" in bounds else "at least"
    if low is not None and high is not None:
        return f"{low:,} to {high:,}" if "ge" in bounds else f"over {low:,}, at most {high:,}"
    return f"{word} {low:,}" if low is not None else ""
