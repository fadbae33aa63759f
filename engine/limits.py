"""Every limit of the engine, each with its reason. The settings of `handler` may change them; nothing else may.

"Stop searching" (ScanLimits) and "stop showing" (PageBudget) share no number.
"""

from dataclasses import dataclass, field

__all__ = ["Limits", "PageBudget", "QueryLimits", "Retention", "ScanLimits"]


@dataclass(frozen=True, slots=True)
class PageBudget:
    """Bytes of a result as it leaves, compact UTF-8 JSON."""

    page_bytes: int = 16_384
    """A result an agent can afford to read: about 4,000 tokens."""
    reserve_bytes: int = 512
    """What the protocol library and payment stamp on after packing."""
    count_bytes: int = 4_096
    """A plain count is asked often and read whole."""
    structured: bool = False
    """The object travels beside the text: both share the page, since some clients pass on both."""

    @property
    def page(self) -> int:
        """Bytes the packer may fill for a page of texts."""
        return self.page_bytes - self.reserve_bytes

    @property
    def count(self) -> int:
        """Bytes the packer may fill for a plain count."""
        return self.count_bytes - self.reserve_bytes


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """What a query may be. Beyond that it is a program, not a question."""

    chars: int = 4_096
    terms: int = 256
    levels: int = 64
    filter_values: int = 100
    echo_chars: int = 300
    """The canonical meaning is echoed up to here; a longer one says nothing more to the reader."""


@dataclass(frozen=True, slots=True)
class ScanLimits:
    """When to stop searching: an HTTP API hangs up after 30 s, so a clear error must come before."""

    seconds: float = 20.0


@dataclass(frozen=True, slots=True)
class Limits:
    """All limits of one deployment."""

    page: PageBudget = field(default_factory=PageBudget)
    query: QueryLimits = field(default_factory=QueryLimits)
    scan: ScanLimits = field(default_factory=ScanLimits)
    call_seconds: float = 25.0
    """A call's time in all, stores included: an HTTP API hangs up after 30 s, and some of them pass on the way."""
    slice_chars: int = 6_000
    """Longest part of one message that `open_thread` gives in one call."""
    seen_neighbour_chars: int = 90
    """A neighbour this session has read needs only to be recognised."""
    url_chars: int = 60
    """A longer URL is shown as host and tail: most of its bytes carry no meaning."""
    session_idle_seconds: int = 24 * 3_600
    session_max_seconds: int = 30 * 24 * 3_600
    export_seconds: int = 3_600
    """How long an export's link works: long enough to fetch, short enough to lose."""
    export_run_seconds: int = 1_800
    """A running export that is older was killed: a Lambda lives 900 s, and is tried again."""
    episode_gap_seconds: int = 1_800
    """A pause of half an hour ends a talk."""
    claim_attempts: int = 64
    """How often a call tries to claim the next batch while others of the session win."""
    word_floor: int = 20
    """Shorter messages rank as if they had so many words, or "no worries" outranks what was said."""
    close_below: int = 100
    """A term in as many messages of what is searched was spelled as its writers do: nobody asks what it missed."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Which snapshots stay: the newest `keep`, and all younger than `grace_seconds`; the current one always."""

    keep: int = 3
    grace_seconds: int = 3_600
