"""Session settings, and the known facts about its target."""

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
# The wires of the embedded model.
LOCAL_WIRES = ("llamacpp", "llamacpp_tools")


if TYPE_CHECKING:

    class SearchSetting:
        """The type of a search setting for type checkers: accepts a preset name and parts, and
        reads as `SearchSettings`."""

        def __get__(self, settings: object, owner: object) -> SearchSettings: ...

        def __set__(
            self, settings: object, value: SearchSettings | Preset | bool | Mapping[str, Any]
        ) -> None: ...

else:
    SearchSetting = SearchSettings


class Settings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The settings that decide what a session sends. Every limit is in tokens; None means no limit
    of its own."""

    promotion: Promotion = "lazy"
    """The position of content after it was sent: its original place (`lazy`), or the system prompt
    from the next turn on (`eager`)."""
    prefix_check: Literal["raise", "warn"] = "raise"
    """The response to sent bytes that would move without a reason: an error or a warning."""
    target: str = ""
    """The target, as `provider:model`; empty for the default (LAMINA_TARGET, or the embedded
    model)."""
    window: int | None = None
    """The maximum size of a whole request, including room for its answer; None for the target's
    own."""
    output_reserve: int | None = None
    """The part of the window kept free for the answer; None for `Options.max_tokens`, or else the
    smallest of the model's output limit, 16,384 tokens and a quarter of the window."""
    attachment_limit: int | None = None
    """The maximum total size of a turn's attachments."""
    history: Literal["full", "strip"] = "full"
    """The earlier turns to send: all of them in full, or a summary and the latest turns
    (`strip`)."""
    history_messages: int | None = None
    """The maximum number of earlier messages to send."""
    history_tokens: int | None = None
    """The maximum total size of the earlier messages that are sent."""
    strip_turns: int = 2
    """With `history="strip"`: the number of latest turns sent unchanged."""
    strip_after_turns: int = 12
    """With `history="strip"`: the number of turns after which stripping begins."""
    summary_tokens: int = 250
    """The maximum length of the summary that replaces turns left out by a strip or a prune,
    including what it carries over from earlier summaries."""
    history_priority: int = 5
    """The priority of history: pruned before items with priority numbers up to this one, and after
    items with higher numbers."""
    prune_to: float = 0.5
    """The share of the limit to which sent content is pruned, so that pruning stays rare."""
    prune_recent: float = 0.2
    """The share of pruned history reserved for the latest exchanges; the rest is the head of
    history, whose bytes do not move."""
    prune_cold_above: float | None = None
    """The share of the room above which history is cut when the cached prefix is dead anyway:
    cheaper, but loses messages that would still fit. None cuts nothing that fits."""
    compaction: Literal["auto", "off"] = "auto"
    """Whether older history is automatically replaced by a summary when it nears the window."""
    compaction_reserve: int | None = None
    """The free space below which compaction begins; None for the smaller of 16,384 tokens and a
    quarter of the window."""
    compaction_keep: int | None = None
    """The amount of latest history that a compaction leaves unchanged; None for the smaller of
    20,000 tokens and a third of the window."""
    compaction_summary: int = 2_000
    """The maximum length of a compaction's summary."""
    compaction_ahead: int = 4
    """The number of turns to look ahead when the cached prefix is dead anyway: history is
    summarized early if that many similar turns would fill the window, but not while a quarter of it
    is free. 0 waits until the window is full."""
    summary_timeout_s: float = 120.0
    """The seconds a summarizer may take before a summary is extracted instead."""
    cache_lifetime_s: float | None = None
    """The lifetime of a provider's cache in seconds, overriding the target's known one; 0 for no
    cache, which makes every request a boundary."""
    cache_ttl: CacheTtl = "5m"
    """The requested lifetime of cache entries, if a provider offers a choice; an hour costs more to
    write."""
    ask_before_tools: ApprovalPolicy = "tool"
    """Whether a person is asked before a tool runs: always, never, or as each tool specifies."""
    guide_search: SearchSetting = cast(Any, SearchSettings())
    """The search settings for rules and references; also accepts a preset name, a mapping of parts,
    or `False` for no search."""
    tool_search: SearchSetting = cast(Any, SearchSettings())
    """The search settings for tools; accepts the same values as `guide_search`."""
    tool_policy: Literal["sticky", "exact", "all"] = "sticky"
    """The use of chosen tools: they join the list and stay until a boundary (`sticky`), or make up
    the whole list (`exact`). With `all`, every tool is listed."""
    tool_joins: int | None = 4
    """The number of times chosen tools may join a list already sent, which moves the whole prefix;
    after that they are described in the message that needs them. None for no limit. For models that
    load tools late, tools never join unless this is None."""
    whole_pool_tokens: int = 3_000
    """With `sticky`: the size up to which a search pool of at most 24 tools is offered whole from
    the first request on; it must also fit in a tenth of the window. 0 always searches."""
    expand_results: bool = False
    """Whether tool results of the last turn bring in similar items."""
    expanding_tools: str = ""
    """The tools whose results bring similar items into the current turn: comma-separated names or
    `apps/web/name`; `*` matches any characters, and an empty string no tool."""
    relevance_priority: bool = False
    """Whether attachments relevant to the question are pruned later, and irrelevant ones sooner."""
    web: WebAccess = "off"
    """The web resources that may be fetched: none, those of listed hosts, or those of listed and
    all public hosts."""
    allow_hosts: tuple[str, ...] = ()
    """The hosts from which pages may be fetched; see `web`."""
    secrets: Literal["redact", "warn", "off"] = "redact"
    """The treatment of secrets of well-known kinds in sources and tool results: replace them, warn
    about them, or leave them."""
    embed_depth: int = 1
    """The number of levels of embedded notes that come along with an attached note."""
    temperature: float | None = None
    """The randomness of answers, from 0 to 2; None leaves it to the vendor. This setting and the
    next two apply unless an option of that name is set; changing one removes that option."""
    top_p: float | None = None
    """The share of likely words to sample from, from 0 to 1."""
    max_tokens: int | None = None
    """The maximum length of an answer."""
    max_requests: int | None = None
    """The maximum number of requests an agent may make for one question; None for the number its
    runner was opened with."""
    spend_turn: float | None = None
    """The maximum cost of a turn, in US dollars: all requests from a question to its answer,
    including plans and summaries. Counts what was spent and the upper price of what is sent."""
    spend_session: float | None = None
    """The maximum cost of this session, in US dollars, for all branches together."""
    spend_day: float | None = None
    """The maximum cost per day, in US dollars, for everyone who shares the account: all of a
    person's sessions and processes. LAMINA_SPEND_DAY and the like set limits for all of them; the
    lower one applies."""
    spend_unknown: Literal["refuse", "allow"] = "refuse"
    """The treatment of a model of unknown price under such a limit: refuse it, or use it without
    counting its cost."""
    ask_above_cost: float | None = 0.25
    """For `lamina chat` and `lamina ask`: the cost in US dollars above which a person is asked
    before a request writes to a cache again what could have been read from it. None for never."""
    explicit_cache: bool = False
    """With Gemini, whether tools, L1 and library are kept in an explicit cache when that pays, at a
    storage fee; requires Lamina's own client."""

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
        # Refuses values that are invalid as options.
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
# The settings that serve as options unless options set them.
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
    """Refuses out-of-range values in the fields `names`, or in all fields. Applied to new values; a
    journal with such a value can still be read.

    Raises:
        InvalidSetting: a value is out of range.
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
    """The rules by which a target caches prefixes. `lifetime_s` None: while the server process
    runs."""

    minimum: int = 0
    step: int = 1
    lifetime_s: float | None = 300.0
    explicit: bool = False
    # Whether the server also caches its own answers, as in a llama.cpp slot.
    keeps_answers: bool = False
    # The longer lifetime available at a higher price.
    long_lifetime_s: float | None = None


class Target(Struct, frozen=True, kw_only=True):
    """A provider and model, with the facts that the planner needs."""

    provider: str
    model: str
    wire: WireName
    window: int
    max_output: int
    cache: CacheRules
    # The longest prompt, if shorter than the window.
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
    # Whether it can be required to cite sources; otherwise it would not cite any.
    enforces_citations: bool = False
    # Whether it accepts `temperature` and `top_p`; reasoning models refuse requests with them.
    takes_sampling: bool = True
    # Whether it accepts its earlier thinking only after the prefix it was written for.
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
    # Its address, unless its SDK's default applies, and the environment variable with its key.
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
        """Return the reasoning effort to send; None if the target does not support it."""
        return effort if self.efforts is None or effort in self.efforts else None

    def reads_thinking_of(self, model: str) -> bool:
        """Return whether it can read the thinking of `model`, from the same provider: its own, or
        that of a model listed as readable. All other thinking is dropped before it sees it."""
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
    """Return the cache rules of a target for a session, with the lifetime from its settings."""
    rules = target.cache
    if settings.cache_lifetime_s is not None:
        return replace(rules, lifetime_s=settings.cache_lifetime_s)
    if settings.cache_ttl == "1h" and rules.long_lifetime_s is not None:
        return replace(rules, lifetime_s=rules.long_lifetime_s)
    return rules
