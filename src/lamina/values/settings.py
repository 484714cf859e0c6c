"""Settings of a session, and what is known of the target it talks to."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from lamina.errors import InvalidSetting
from lamina.values.field_types import settle_fields
from lamina.values.selection import Preset, SearchSettings, read_search
from lamina.values.tool import ApprovalPolicy
from lamina.values.web import WebAccess

Promotion = Literal["lazy", "eager"]
CacheTtl = Literal["5m", "1h"]
WireName = Literal["openai", "anthropic", "gemini", "llamacpp"]


if TYPE_CHECKING:

    class SearchSetting:
        """What type checkers know of a search: a preset's name and parts may be given for it, and
        what is there to be read is `SearchSettings`."""

        def __get__(self, settings: object, owner: object) -> SearchSettings: ...

        def __set__(
            self, settings: object, value: SearchSettings | Preset | Mapping[str, Any]
        ) -> None: ...

else:
    SearchSetting = SearchSettings


class Settings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a session decides what is sent. Every limit is in tokens; None means that there is none
    of its own."""

    promotion: Promotion = "lazy"
    """Where texts that were sent stand later: where they were sent first (`lazy`), or from the next
    turn on in the system prompt (`eager`)."""
    prefix_check: Literal["raise", "warn"] = "raise"
    """What happens if bytes that were sent would move without a reason: an error, or a warning."""
    target: str = ""
    """Who is asked, as `provider:model`; empty for the usual one (LAMINA_TARGET, or the embedded
    model)."""
    window: int | None = None
    """How large a whole request may be, with room for its answer; None for the target's own."""
    output_reserve: int | None = None
    """How much of the window is kept free for the answer; None for `Options.max_tokens`, or else
    the smallest of what the model can answer, 16,384 tokens and a quarter of the window."""
    attachment_limit: int | None = None
    """How large all attachments of a turn may be together."""
    history: Literal["full", "strip"] = "full"
    """What is sent of earlier turns: all of them, or a summary and the last ones (`strip`)."""
    history_messages: int | None = None
    """How many earlier messages are sent at most."""
    history_tokens: int | None = None
    """How large the earlier messages that are sent may be together."""
    strip_turns: int = 2
    """With `history="strip"`: how many of the last turns are sent as they are."""
    strip_after_turns: int = 12
    """With `history="strip"`: after how many turns it begins."""
    summary_tokens: int = 250
    """How long the summary may be that takes the place of turns which a strip or a prune left
    out."""
    history_priority: int = 5
    """History gives way to items up to this priority number, and after those above it."""
    prune_to: float = 0.5
    """Pruning what was sent goes down to this share of the limit, so that it stays rare."""
    prune_recent: float = 0.2
    """Of what a prune leaves, the share for the latest exchanges; the rest is the head of history,
    whose bytes do not move."""
    prune_cold_above: float = 0.7
    """Where the cached prefix is dead anyway, history is pruned above this share already."""
    compaction: Literal["auto", "off"] = "auto"
    """Whether older history gives way to a summary by itself once it nears the window."""
    compaction_reserve: int | None = None
    """Compaction begins when less than this is free; None for the smaller of 16,384 tokens and a
    quarter of the window."""
    compaction_keep: int | None = None
    """How much of the latest history a compaction leaves as it is; None for the smaller of 20,000
    tokens and a third of the window."""
    compaction_summary: int = 2_000
    """How long the summary of a compaction may be."""
    summary_timeout_s: float = 120.0
    """How many seconds a summarizer may take before the summary is extracted instead."""
    cache_lifetime_s: float | None = None
    """How many seconds a provider's cache lives, in place of what is known of the target; 0 for no
    cache, which makes every request a boundary."""
    cache_ttl: CacheTtl = "5m"
    """How long entries of a cache are to be kept, where a provider has a choice; an hour costs more
    to write."""
    ask_before_tools: ApprovalPolicy = "tool"
    """Whether a person is asked before a tool runs: always, never, or as each tool says."""
    guide_search: SearchSetting = cast(Any, SearchSettings())
    """How rules and references are chosen for a question; takes the name of a preset and a mapping
    of parts, too."""
    tool_search: SearchSetting = cast(Any, SearchSettings())
    """How tools are chosen for a question; takes the same forms as `guide_search`."""
    tool_policy: Literal["sticky", "exact", "all"] = "sticky"
    """What becomes of tools that were chosen: they join the list and stay until a boundary
    (`sticky`), the list is what was chosen and nothing else (`exact`), or it has all there are."""
    tool_joins: int | None = 4
    """How often chosen tools may join a list that was sent, which moves the whole prefix; after
    that they are described in the message that needs them. None for always."""
    expand_results: bool = False
    """Whether what tools gave in the last turn brings items that are like it."""
    relevance_priority: bool = False
    """Whether an attachment that has to do with the question is pruned later, and one that has not
    sooner."""
    web: WebAccess = "off"
    """What may be fetched from the web: nothing, listed hosts, or any public host and listed
    ones."""
    allow_hosts: tuple[str, ...] = ()
    """The hosts that pages may be fetched from; see `web`."""
    secrets: Literal["redact", "warn", "off"] = "redact"
    """What becomes of secrets of well-known kinds in what was read or what a tool gave: they are
    replaced, told of, or left."""
    embed_depth: int = 1
    """How deep notes that are embedded in attached notes come along with them."""
    explicit_cache: bool = False
    """With Gemini, whether tools, L1 and library are kept in a cache of their own where that pays,
    at a storage fee; only Lamina's own client can do that."""

    @property
    def limits_history(self) -> bool:
        """Whether history has a limit of its own."""
        limits = (self.history_messages, self.history_tokens)
        return self.history == "strip" or any(limit is not None for limit in limits)

    def __post_init__(self) -> None:
        for name in _SEARCHES:
            if not isinstance(search := getattr(self, name), SearchSettings):
                force_setattr(self, name, read_search(name, search))
        settle_fields(self)
        for name in _LIMITS:
            value = getattr(self, name)
            if value is not None and not _within(value, 0):
                raise InvalidSetting(name, value, "must be a number from 0 on")
        if not all(host.strip() for host in self.allow_hosts):
            raise InvalidSetting("allow_hosts", self.allow_hosts, "must be a list of hosts")
        for name in ("prune_to", "prune_recent", "prune_cold_above"):
            share = getattr(self, name)
            if not _within(share, 0, 1) or not share:
                raise InvalidSetting(name, share, "is a share: above 0 and at most 1")


class SettingsUpdate(TypedDict, total=False):
    """The settings that `Session.update_settings` changes, for type checkers; `Settings` tells what
    each of them means."""

    promotion: Promotion
    prefix_check: Literal["raise", "warn"]
    target: str
    window: int | None
    output_reserve: int | None
    attachment_limit: int | None
    history: Literal["full", "strip"]
    history_messages: int | None
    history_tokens: int | None
    strip_turns: int
    strip_after_turns: int
    summary_tokens: int
    history_priority: int
    prune_to: float
    prune_recent: float
    prune_cold_above: float
    compaction: Literal["auto", "off"]
    compaction_reserve: int | None
    compaction_keep: int | None
    compaction_summary: int
    summary_timeout_s: float
    cache_lifetime_s: float | None
    cache_ttl: CacheTtl
    ask_before_tools: ApprovalPolicy
    guide_search: SearchSettings | Preset | Mapping[str, Any]
    tool_search: SearchSettings | Preset | Mapping[str, Any]
    tool_policy: Literal["sticky", "exact", "all"]
    tool_joins: int | None
    expand_results: bool
    relevance_priority: bool
    web: WebAccess
    allow_hosts: tuple[str, ...]
    secrets: Literal["redact", "warn", "off"]
    embed_depth: int
    explicit_cache: bool


_SEARCHES = ("guide_search", "tool_search")
_LIMITS = (
    "window", "output_reserve", "attachment_limit", "history_messages", "history_tokens",
    "strip_turns", "strip_after_turns", "summary_tokens", "cache_lifetime_s",
    "compaction_reserve", "compaction_keep", "compaction_summary",
    "summary_timeout_s", "tool_joins", "embed_depth",
)  # fmt: skip


def _within(value: float, low: float, high: float = float("inf")) -> bool:
    return low <= value <= high and value != float("inf")


class CacheRules(Struct, frozen=True, kw_only=True):
    """How a target caches prefixes. `lifetime_s` None: as long as the server's process lives."""

    minimum: int = 0
    step: int = 1
    lifetime_s: float | None = 300.0
    explicit: bool = False
    # Whether what a server answered is in its cache, too, as in a slot of llama.cpp.
    keeps_answers: bool = False
    read_price: float = 0.1
    write_price: float = 1.0
    # Where entries can be kept for longer, at a price: how long, and what writing them costs.
    long_lifetime_s: float | None = None
    long_write_price: float = 1.0
    # US dollars per million tokens and hour in a cache that was made by hand.
    storage_price: float = 0.0


class Target(Struct, frozen=True, kw_only=True):
    """A provider and model with what the planner has to know of them."""

    provider: str
    model: str
    wire: WireName
    window: int
    max_output: int
    cache: CacheRules
    encoding: str = "o200k_base"
    exact_tokens: bool = False
    token_factor: float = 1.0
    # US dollars per million tokens of fresh input and of output.
    input_price: float = 0.0
    output_price: float = 0.0
    # Whether a request can name those of its tools that may be called, without moving its prefix.
    restricts_tools: bool = False
    # How many tools a request takes; 0 if nothing is known of a limit.
    max_tools: int = 0
    # Where it is reached, if not where its SDK looks, and the environment variable with its key.
    base_url: str = ""
    key_env: str = ""

    @property
    def name(self) -> str:
        """The target as `provider:model`."""
        return f"{self.provider}:{self.model}"

    @property
    def bars_tools(self) -> bool:
        """Whether `restricts_tools` can be said on its wire."""
        return self.restricts_tools and self.wire in ("openai", "llamacpp")


def cache_rules(settings: Settings, target: Target) -> CacheRules:
    """How a target caches for a session: entries live as long as its settings say."""
    rules = target.cache
    if settings.cache_lifetime_s is not None:
        return replace(rules, lifetime_s=settings.cache_lifetime_s)
    if settings.cache_ttl == "1h" and rules.long_lifetime_s is not None:
        return replace(rules, lifetime_s=rules.long_lifetime_s)
    return rules
