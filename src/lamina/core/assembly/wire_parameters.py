"""Builds the request parameters that are sent in addition to the prompt.

Law: they are the same when a request is sent and when it is rebuilt, since both use this module.
"""

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import asdict

from lamina.core.codec import digest_value
from lamina.core.journal import State, options_for_request
from lamina.core.values.entry import Entry, RequestEntry
from lamina.core.values.envelope import Options
from lamina.core.values.prompt import Prompt
from lamina.core.values.settings import CacheTtl, Target, WireName
from lamina.core.values.wire import WireRequest

# The length of a target's digest: enough to distinguish two versions of a book.
TARGET_DIGITS = 16

# Options that a wire cannot express.
_UNKNOWN: Mapping[WireName, tuple[str, ...]] = {
    "llamacpp": ("reasoning", "schema"), "llamacpp_tools": ("reasoning",),
}  # fmt: skip
_SAMPLING = ("temperature", "top_p")
# Wires with models that accept no sampling; for the others the book never says so.
_SAMPLED_WIRES = ("openai", "anthropic")


class WireParameters(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The parameters recorded in the journal; the fields are those of `WireRequest`. Their digest
    is in journals: a new field needs a default that equals the value sent before it existed."""

    options: Options = Options()
    cache_key: str = ""
    cache_ttl: CacheTtl = "5m"
    previous: str = ""
    held: int = 0
    explicit_cache: bool = False
    allowed_tools: tuple[str, ...] | None = None
    citations: tuple[int, ...] = ()
    routing_key: str = ""

    def digest_for(self, target: Target, cached_run: int) -> str:
        """Return the digest of everything that an encoder receives, including the target and the
        length of the cached run, which determines the places of markers."""
        return digest_value((target.name, target.wire, cached_run, self))

    def wire_request(
        self, prompt: Prompt, target: Target, blobs: Mapping[str, bytes]
    ) -> WireRequest:
        return WireRequest(prompt=prompt, target=target, blobs=blobs, **asdict(self))


def wire_parameters(
    state: State,
    target: Target,
    *,
    cache_key: str,
    routing_key: str,
    agreeing: int,
    base: Entry | None,
    allowed_tools: tuple[str, ...] | None,
) -> WireParameters:
    """Return the parameters of a request in `state`, whose first `agreeing` segments are those of
    the request `base`, the last one sent."""
    return WireParameters(
        options=options_for_request(state),
        cache_key=cache_key,
        routing_key=routing_key,
        cache_ttl=state.settings.cache_ttl,
        previous=previous_reply(state, target),
        held=left_in_cache(agreeing, base),
        explicit_cache=state.settings.explicit_cache,
        allowed_tools=allowed_tools,
        citations=find_citations(state),
    )


def find_citations(state: State) -> tuple[int, ...]:
    """Return the source numbers that the answer to the request of `state` must cite: none if it may
    rest on a text without a number."""
    texts = state.envelope.tool_texts
    if not all(text.citations for text in texts):
        return ()
    return tuple(sorted({number for text in texts for number in text.citations}))


def untaken_options(request: WireRequest) -> tuple[str, ...]:
    """Return the options that a request does not use, as described to a person."""
    options, target, offers_tools = request.options, request.target, request.prompt.offers_tools
    warnings = [
        f"{target.name} knows no {name}: it is not sent"
        for name, is_given in _given_options(options).items()
        if is_given and name in _unknown_options(target)
    ]
    effort = options.effort
    if "reasoning" not in _unknown_options(target) and target.taken_effort(effort) != effort:
        words = f"; it takes {', '.join(target.efforts)}" if target.efforts else ""
        warnings.append(f"{target.name} knows no reasoning {effort!r}: it is not sent{words}")
    if target.wire == "llamacpp_tools" and offers_tools and options.schema is not None:
        warnings.append(f"{target.name} takes tools or a schema: the schema is not sent")
    if target.takes_citations and request.citations and not request.enforced_citations:
        other_form = "tools" if offers_tools else "a schema"
        warnings.append(f"{target.name} is not held to citing: the request has {other_form}")
    is_sampled = target.wire == "anthropic" and target.takes_sampling
    if is_sampled and None not in (options.temperature, options.top_p):
        warnings.append(f"{target.name} takes temperature or top_p: top_p is not sent")
    return tuple(warnings)


def _unknown_options(target: Target) -> tuple[str, ...]:
    names = _UNKNOWN.get(target.wire, ())
    is_free = target.takes_sampling or target.wire not in _SAMPLED_WIRES
    return names if is_free else (*names, *_SAMPLING)


def _given_options(options: Options) -> dict[str, bool]:
    given = {name: value is not None for name, value in asdict(options).items()}
    return given | {"reasoning": options.effort is not None}


def recorded_parameters(
    request: RequestEntry, state: State, target: Target, base: Entry | None
) -> WireParameters:
    """Return the parameters of a recorded request; `state` is the one after its entry."""
    return wire_parameters(
        state,
        target,
        cache_key=request.cache_key or former_key(request, state),
        routing_key=request.routing_key,
        agreeing=request.context.agreement.segments,
        base=base,
        allowed_tools=request.context.allowed_tools,
    )


def former_key(request: RequestEntry, state: State) -> str:
    """Return the key of a request that does not record it: a fork starts with requests sent under
    the name of its origin."""
    header = state.session
    older = bool(header.forked_from) and request.at < header.at
    return header.forked_from if older else header.session


@lru_cache(maxsize=64)
def digest_target(
    target: Target, explicit_cache: bool, has_citations: bool = False, effort: str | None = None
) -> str:
    """Return the digest of the model book's facts about a target that encoders use; `effort` is the
    session's thinking effort."""
    rules = target.cache
    facts: tuple[object, ...] = (
        target.max_output, target.restricts_tools, rules.minimum, rules.explicit,
    )  # fmt: skip
    if not target.takes_sampling:
        facts += ("takes_sampling", False)
    if target.binds_thinking:
        facts += ("binds_thinking", True)
    if target.taken_effort(effort) != effort:
        facts += ("takes_effort", effort, False)
    if explicit_cache:
        facts += _digested_prices(target)
    if has_citations:
        facts += (target.takes_citations,)
    return digest_value(facts)[:TARGET_DIGITS]


def _digested_prices(target: Target) -> tuple[object, ...]:
    """Return the values that decide whether an explicit cache pays, in the format that digests have
    always used: the price of input, the factor on it for cached tokens, and the price of
    storage."""
    if target.prices is None:
        return (None,)
    tiers = [
        (tier.input, round(tier.read / tier.input, 9) if tier.input else 0.0)
        for tier in target.prices.tiers
    ]
    longer = [
        (tier.above, *figures) for tier, figures in zip(target.prices.tiers, tiers, strict=True)
    ]
    return (*tiers[0], target.prices.storage, *longer[1:])


def previous_reply(state: State, target: Target) -> str:
    """Return the provider's id of its last answer on this path."""
    last = state.requests.sent
    if last is None or last.target.partition(":")[0] != target.provider:
        return ""
    return state.requests.sent_reply


def left_in_cache(agreeing: int, base: Entry | None) -> int:
    """Return how many of the shared leading segments of two requests the first one left in the
    cache."""
    return min(agreeing, base.cached_run) if isinstance(base, RequestEntry) else 0
