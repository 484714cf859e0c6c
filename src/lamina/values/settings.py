"""Settings of a session, and what is known of the target it talks to."""

from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from lamina.errors import InvalidSetting
from lamina.values.field_types import settle_fields
from lamina.values.selection import SearchSettings, read_search
from lamina.values.tool import ApprovalPolicy
from lamina.values.web import WebAccess

Promotion = Literal["lazy", "eager"]
CacheTtl = Literal["5m", "1h"]
WireName = Literal["openai", "anthropic", "gemini", "llamacpp"]


class Settings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Every limit is in tokens. `None` means: no limit of its own."""

    promotion: Promotion = "lazy"
    prefix_check: Literal["raise", "warn"] = "raise"
    target: str = ""
    # The whole request. Without `window` the target's own is used.
    window: int | None = None
    output_reserve: int | None = None
    attachment_limit: int | None = None
    # L4: everything, or at most so many messages or tokens, or summary + last turns ("strip").
    history: Literal["full", "strip"] = "full"
    history_messages: int | None = None
    history_tokens: int | None = None
    strip_turns: int = 2
    strip_after_turns: int = 12
    summary_tokens: int = 250
    # History gives way to items up to this priority number, and after those above it.
    history_priority: int = 5
    # Pruning what was sent goes down to this share of the limit, so that it stays rare.
    prune_to: float = 0.5
    # Of that, the share for the latest exchanges; the rest is the head, whose bytes do not move.
    prune_recent: float = 0.2
    # At a boundary the prefix is dead anyway: prune there already above this share.
    prune_cold_above: float = 0.7
    # Compaction: above window - reserve, history gives way to a summary and its latest tokens.
    # Without values of their own: reserve min(16,384, window/4), keep min(20,000, window/3).
    compaction: Literal["auto", "off"] = "auto"
    compaction_reserve: int | None = None
    compaction_keep: int | None = None
    compaction_summary: int = 2_000
    # How long a summarizer may take before the summary is extracted instead.
    summary_timeout_s: float = 120.0
    # Overrides the target's cache lifetime; `0` means: no cache, every request is a boundary.
    cache_lifetime_s: float | None = None
    # How long entries are to be kept, where a provider has a choice; an hour costs more to write.
    cache_ttl: CacheTtl = "5m"
    # Whether a person is asked before a tool runs: always, never, or as each tool says.
    ask_before_tools: ApprovalPolicy = "tool"
    # How rules and references, and how tools, are chosen for a question. The name of a preset and
    # a mapping of parts are taken, too.
    guide_search: SearchSettings = SearchSettings()
    tool_search: SearchSettings = SearchSettings()
    # Tools that were chosen: they join the list and stay until a boundary; or the list is exactly
    # what was chosen; or all there are.
    tool_policy: Literal["sticky", "exact", "all"] = "sticky"
    # How often chosen tools may join a list that was sent, which moves the whole prefix; after that
    # they are described in the message that needs them. None: always.
    tool_joins: int | None = 4
    # Whether what tools gave in the last turn brings items that are like it.
    expand_results: bool = False
    # Whether an attachment that has to do with the question is pruned later, and one that has not
    # sooner.
    relevance_priority: bool = False
    # What may be fetched from the web: nothing, listed hosts, or any public host and listed ones.
    web: WebAccess = "off"
    allow_hosts: tuple[str, ...] = ()
    # Secrets of well-known kinds in what was read, or what a tool gave: replaced, told, or left.
    secrets: Literal["redact", "warn", "off"] = "redact"
    # How deep notes that are embedded in attached notes come along with them.
    embed_depth: int = 1
    # Gemini: keep tools, L1 and library in a cache of their own, at a storage fee, where it pays.
    # Only Lamina's own client can do that.
    explicit_cache: bool = False

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
