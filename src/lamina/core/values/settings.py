"""Settings of a session, and what is known about its target."""

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal, cast

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from lamina.core.values.envelope import Options
from lamina.core.values.prices import Prices
from lamina.core.values.selection import Preset, SearchSettings, read_search
from lamina.core.values.spend_limits import SpendLimits
from lamina.core.values.struct_fields import settle_fields
from lamina.core.values.tool import ApprovalPolicy
from lamina.core.values.web_access import WebAccess
from lamina.errors import InvalidSetting

Promotion = Literal["lazy", "eager"]
CacheTtl = Literal["5m", "1h"]
WireName = Literal["openai", "anthropic", "gemini", "llamacpp", "llamacpp_tools"]
# Those of the embedded model.
LOCAL_WIRES = ("llamacpp", "llamacpp_tools")


if TYPE_CHECKING:

    class SearchSetting:
        """What type checkers see of a search: it accepts a preset's name and parts, and reads as
        `SearchSettings`."""

        def __get__(self, settings: object, owner: object) -> SearchSettings: ...

        def __set__(
            self, settings: object, value: SearchSettings | Preset | bool | Mapping[str, Any]
        ) -> None: ...

else:
    SearchSetting = SearchSettings


class Settings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a session decides what is sent. Every limit is in tokens; None means no limit of its
    own."""

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
    """How long the summary may be that takes the place of turns which a strip or a prune left out,
    with what it carries of earlier summaries."""
    history_priority: int = 5
    """History gives way to items up to this priority number, and after those above it."""
    prune_to: float = 0.5
    """Pruning what was sent goes down to this share of the limit, so that it stays rare."""
    prune_recent: float = 0.2
    """Of what a prune leaves, the share for the latest exchanges; the rest is the head of history,
    whose bytes do not move."""
    prune_cold_above: float | None = None
    """Where the cached prefix is dead anyway, history is cut above this share of the room already,
    which is cheaper and loses what would still fit; None cuts nothing that fits."""
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
    compaction_ahead: int = 4
    """Where the cached prefix is dead anyway, a summarizer is asked already if the window would be
    full within so many turns like those before, but not while a quarter of it is free; 0 waits
    until it is full."""
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
    """How rules and references are chosen for a question; takes the name of a preset, a mapping
    of parts and `False` for no search, too."""
    tool_search: SearchSetting = cast(Any, SearchSettings())
    """How tools are chosen for a question; takes the same forms as `guide_search`."""
    tool_policy: Literal["sticky", "exact", "all"] = "sticky"
    """What becomes of tools that were chosen: they join the list and stay until a boundary
    (`sticky`), the list is what was chosen and nothing else (`exact`), or it has all there are."""
    tool_joins: int | None = 4
    """How often chosen tools may join a list that was sent, which moves the whole prefix; after
    that they are described in the message that needs them. None for always. Models that load tools
    late are spared all joins but those of None."""
    whole_pool_tokens: int = 3_000
    """With `sticky`: up to 24 tools that search may choose from are all offered, from the first
    request on, if they take no more than this and no more than a tenth of the window. 0 searches
    however few there are."""
    expand_results: bool = False
    """Whether what tools gave in the last turn brings items that are like it."""
    expanding_tools: str = ""
    """The tools whose results bring items that are like them into the turn under way: their names
    or `apps/web/name`, with commas between them; `*` stands for any letters, and an empty text for
    none."""
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
    temperature: float | None = None
    """How much chance there is in answers, from 0 to 2; None leaves it to the vendor. This and the
    next two hold where no option of that name is set; changing them takes such an option away."""
    top_p: float | None = None
    """The share of likely words that is drawn from, from 0 to 1."""
    max_tokens: int | None = None
    """How long an answer may be."""
    max_requests: int | None = None
    """How many requests an agent may make for one question before it stops; None for what its
    runner was opened with."""
    spend_turn: float | None = None
    """The most that one turn may cost, in US dollars: all requests from a question to its answer,
    with plans and summaries. Counted are what was spent and the upper price of what is sent."""
    spend_session: float | None = None
    """The most that this session may cost, in US dollars, all branches together."""
    spend_day: float | None = None
    """The most that a day may cost, in US dollars, whoever shares the account: all sessions and
    processes of a person. LAMINA_SPEND_DAY is a limit for all of them, and so on; the lower one
    counts."""
    spend_unknown: Literal["refuse", "allow"] = "refuse"
    """What happens under such a limit to a model whose price nobody knows: it is refused, or asked
    and counted in no sum."""
    ask_above_cost: float | None = 0.25
    """In `lamina chat` and `lamina ask`: a person is asked before a request that writes to a cache
    again what could have been read from it, if that costs more than this, in US dollars. None for
    never."""
    explicit_cache: bool = False
    """With Gemini, whether tools, L1 and library are kept in a cache of their own where that pays,
    at a storage fee; only Lamina's own client can do that."""

    @property
    def spend_limits(self) -> SpendLimits:
        """The spending limits."""
        return SpendLimits(turn=self.spend_turn, session=self.spend_session, day=self.spend_day)

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
        # Refuses values that an option would refuse.
        Options(temperature=self.temperature, top_p=self.top_p, max_tokens=self.max_tokens)
        if self.max_requests is not None and self.max_requests < 1:
            raise InvalidSetting("max_requests", self.max_requests, "must be at least 1")
        if not all(host.strip() for host in self.allow_hosts):
            raise InvalidSetting("allow_hosts", self.allow_hosts, "must be a list of hosts")
        for name in ("prune_to", "prune_recent", "prune_cold_above"):
            share = getattr(self, name)
            if share is not None and (not _within(share, 0, 1) or not share):
                raise InvalidSetting(name, share, "is a share: above 0 and at most 1")


# The highest value that any vendor accepts.
MAX_TEMPERATURE = 2.0
# The settings that serve as options where nothing else sets these.
OPTION_SETTINGS = ("temperature", "top_p", "max_tokens")
_SEARCHES = ("guide_search", "tool_search")
_LIMITS = (
    "window", "output_reserve", "attachment_limit", "history_messages", "history_tokens",
    "strip_turns", "strip_after_turns", "summary_tokens", "cache_lifetime_s",
    "compaction_reserve", "compaction_keep", "compaction_summary", "compaction_ahead",
    "summary_timeout_s", "tool_joins", "whole_pool_tokens", "embed_depth", "spend_turn",
    "spend_session", "spend_day", "ask_above_cost",
)  # fmt: skip


def _within(value: float, low: float, high: float = float("inf")) -> bool:
    return low <= value <= high and value != float("inf")


def require_usable(values: Settings | Options, names: Collection[str] | None = None) -> None:
    """Refuses values that no model accepts and no search works with, in the fields `names` or in
    all. Applied to new values; a journal with such a value can still be read.

    Raises:
        InvalidSetting: one of them is out of range.
    """
    checks: list[tuple[str, object, bool, str]] = [
        ("temperature", values.temperature, _within(values.temperature or 0, 0, MAX_TEMPERATURE),
         f"must be a number from 0 to {MAX_TEMPERATURE:g}"),
        ("max_tokens", values.max_tokens, values.max_tokens != 0, "must be at least 1"),
    ]  # fmt: skip
    if isinstance(values, Settings):
        for name in _SEARCHES:
            top_k = getattr(values, name).top_k
            problem = "must be at least 1 (`search: false` searches for nothing)"
            checks.append((f"{name}.top_k", top_k, top_k > 0, problem))
    for name, value, is_fine, problem in checks:
        if not is_fine and (names is None or name.partition(".")[0] in names):
            raise InvalidSetting(name, value, problem)


class CacheRules(Struct, frozen=True, kw_only=True):
    """How a target caches prefixes. `lifetime_s` None: as long as the server's process runs."""

    minimum: int = 0
    step: int = 1
    lifetime_s: float | None = 300.0
    explicit: bool = False
    # Whether the server's answers are in its cache, too, as in a llama.cpp slot.
    keeps_answers: bool = False
    # How long entries can be kept instead, for a price.
    long_lifetime_s: float | None = None


class Target(Struct, frozen=True, kw_only=True):
    """A provider and model, with the facts the planner needs."""

    provider: str
    model: str
    wire: WireName
    window: int
    max_output: int
    cache: CacheRules
    # The longest prompt, if it is shorter than the window.
    max_input: int | None = None
    # The source of these limits; empty if they are the provider's defaults for any model.
    limits_source: str = ""
    encoding: str = "o200k_base"
    exact_tokens: bool = False
    token_factor: float = 1.0
    # None if unknown; free models have prices of zero.
    prices: Prices | None = None
    # Whether a request can name the tools that may be called without moving its prefix.
    restricts_tools: bool = False
    # Whether it can be required to cite sources; without that it would cite none.
    enforces_citations: bool = False
    # Whether it accepts a temperature and a `top_p`; reasoning models refuse requests with them.
    takes_sampling: bool = True
    # Whether it accepts its thinking back only after the same prefix as when it was written.
    binds_thinking: bool = False
    # Other models whose thinking it reads, as shell patterns.
    reads_thinking: tuple[str, ...] = ()
    # The reasoning efforts it accepts; None if unknown.
    efforts: tuple[str, ...] | None = None
    # Whether it accepts pictures; if not, they are replaced by words.
    sees_pictures: bool = True
    # Whether a result can load tools whose definitions are not in the prefix.
    loads_tools: bool = False
    # The maximum number of tools in a request; 0 if no limit is known.
    max_tools: int = 0
    # Its address, if not where its SDK looks, and the environment variable with its key.
    base_url: str = ""
    key_env: str = ""

    @property
    def name(self) -> str:
        """The target as `provider:model`."""
        return f"{self.provider}:{self.model}"

    @property
    def routes_by_key(self) -> bool:
        """Whether requests are routed to machines by a key sent with them."""
        return self.wire == "openai" and self.provider == "openai"

    def taken_effort(self, effort: str | None) -> str | None:
        """Return the reasoning effort sent to it: None if it does not know the word."""
        return effort if self.efforts is None or effort in self.efforts else None

    def reads_thinking_of(self, model: str) -> bool:
        """Return whether it reads the thinking of a model of its provider: its own, or that of a
        model it is known to read. All other thinking is dropped before it sees it."""
        return model == self.model or any(
            fnmatchcase(model, pattern) for pattern in self.reads_thinking
        )

    @property
    def bars_tools(self) -> bool:
        """Whether its wire can express `restricts_tools`."""
        return self.restricts_tools and self.wire in ("openai", "llamacpp")

    @property
    def loads_late(self) -> bool:
        """Whether its wire can express `loads_tools`."""
        return self.loads_tools and self.wire == "anthropic"

    @property
    def takes_citations(self) -> bool:
        """Whether its wire can express `enforces_citations`."""
        return self.enforces_citations and self.wire in LOCAL_WIRES


def cache_rules(settings: Settings, target: Target) -> CacheRules:
    """Return how a target caches for a session: entries live as long as its settings say."""
    rules = target.cache
    if settings.cache_lifetime_s is not None:
        return replace(rules, lifetime_s=settings.cache_lifetime_s)
    if settings.cache_ttl == "1h" and rules.long_lifetime_s is not None:
        return replace(rules, lifetime_s=rules.long_lifetime_s)
    return rules
