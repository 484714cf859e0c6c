"""What goes on the wire of a request besides its prompt.

Law: it is the same when a request is sent and when it is rebuilt, since both have it from here.
"""

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import asdict

from lamina.codec import digest_value
from lamina.journal import State
from lamina.values.entry import Entry, RequestEntry
from lamina.values.envelope import Options
from lamina.values.prompt import Prompt
from lamina.values.settings import CacheTtl, Target
from lamina.values.wire import WireRequest

# Of the digest of a target: enough to tell two versions of a book apart.
TARGET_DIGITS = 16


class WireParameters(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the journal decides of it; the fields are those of `WireRequest`. Their digest stands in
    journals: a field that is added has a default, which is what was sent before there was one."""

    options: Options = Options()
    cache_key: str = ""
    cache_ttl: CacheTtl = "5m"
    previous: str = ""
    held: int = 0
    explicit_cache: bool = False
    allowed_tools: tuple[str, ...] | None = None

    def digest_for(self, target: Target, cached_run: int) -> str:
        """Of all that an encoder is told: also whom it is for, and how much of the prompt is to be
        sent again, on which the places of markers depend."""
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
    agreeing: int,
    base: Entry | None,
    allowed_tools: tuple[str, ...] | None,
) -> WireParameters:
    """Those of a request in `state`, whose first `agreeing` segments are those of the request
    `base`, the last one that was sent."""
    return WireParameters(
        options=state.envelope.options,
        cache_key=cache_key,
        cache_ttl=state.settings.cache_ttl,
        previous=previous_reply(state, target),
        held=left_in_cache(agreeing, base),
        explicit_cache=state.settings.explicit_cache,
        allowed_tools=allowed_tools,
    )


def recorded_parameters(
    request: RequestEntry, state: State, target: Target, base: Entry | None
) -> WireParameters:
    """Those of a request that was recorded; `state` is that behind its entry."""
    return wire_parameters(
        state,
        target,
        cache_key=request.cache_key or _former_key(request, state),
        agreeing=request.context.agreement.segments,
        base=base,
        allowed_tools=request.context.allowed_tools,
    )


def _former_key(request: RequestEntry, state: State) -> str:
    """The key of a request that does not say it: a fork begins with requests that were sent under
    the name of what it was forked from."""
    header = state.session
    older = bool(header.forked_from) and request.at < header.at
    return header.forked_from if older else header.session


@lru_cache(maxsize=64)
def digest_target(target: Target, explicit_cache: bool) -> str:
    """Of what the model book says of a target, as far as encoders look at it."""
    rules = target.cache
    facts: tuple[object, ...] = (
        target.max_output, target.restricts_tools, rules.minimum, rules.explicit,
    )  # fmt: skip
    if explicit_cache:
        # Whether one pays.
        facts += (target.input_price, rules.read_price, rules.storage_price)
    return digest_value(facts)[:TARGET_DIGITS]


def previous_reply(state: State, target: Target) -> str:
    """What the target's provider calls its last answer on this path."""
    last = state.requests.sent
    if last is None or last.target.partition(":")[0] != target.provider:
        return ""
    return state.requests.sent_reply


def left_in_cache(agreeing: int, base: Entry | None) -> int:
    """How many of the leading segments that two requests share the first one left in the cache."""
    return min(agreeing, base.cached_run) if isinstance(base, RequestEntry) else 0
