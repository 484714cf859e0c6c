"""Emulates Anthropic's prefix cache, by its published rules and from the bodies on the wire alone.

Laws: only content written by an earlier request can be read, byte for byte the same, once that
request's response has begun and until its lifetime has passed. Nothing here depends on how the
bodies were made.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from lamina.core.values.settings import Target
from lamina.core.values.usage import Usage
from lamina.emulators.anthropic.blocks import (
    PrefixBlock,
    chain_digest,
    encode_bare,
    encode_parameters,
    read_blocks,
    walk_body,
)

JSON = Mapping[str, Any]
# A marker finds entries at this many blocks, counting back from its own.
LOOKBACK_BLOCKS = 20
LIFETIMES = {"5m": 300.0, "1h": 3_600.0}


class CachedPrefix(Struct, kw_only=True):
    """A prefix in the cache. It becomes readable when the response to its request begins."""

    tokens: int
    ttl: str
    expires: float
    readable: bool = False


class RequestFingerprint(Struct, frozen=True, kw_only=True):
    """The parts of a request kept to show later changes."""

    model: str
    tools: str
    system: str
    messages: tuple[str, ...]
    # Other parameters that the messages depend on.
    parameters: str
    cached: int


class AnthropicCacheUse(Struct, frozen=True, kw_only=True):
    """The tokens that a request reads and writes. `reachable` is what markers at every block would
    have read; `missed` says why it was not."""

    input: int
    read: int
    written: int
    written_long: int
    reachable: int
    missed: str
    at: float
    blocks: tuple[PrefixBlock, ...]
    written_at: tuple[tuple[PrefixBlock, str], ...]
    fingerprint: RequestFingerprint
    previous: str | None = None
    wants_diagnosis: bool = False

    @property
    def fresh(self) -> int:
        return self.input - self.read - self.written

    def usage(self, output: int) -> Usage:
        return Usage(
            input=self.input,
            cached=self.read,
            written=self.written,
            written_long=self.written_long,
            output=output,
        )


class AnthropicCache:
    """The cache of one organisation."""

    def __init__(self) -> None:
        self._entries: dict[str, CachedPrefix] = {}
        # When each prefix was last part of a request, with or without a marker.
        self._last_requests: dict[str, tuple[int, float]] = {}
        self._fingerprints: dict[str, RequestFingerprint] = {}
        self._last: RequestFingerprint | None = None

    def look_up(self, body: JSON, target: Target, now: float) -> AnthropicCacheUse:
        """Return what a request reads and writes now; reading extends the lifetime."""
        blocks = tuple(read_blocks(body, target))
        minimum = target.cache.minimum
        markers = [(index, block) for index, block in enumerate(blocks) if block.ttl]
        read_tokens = 0
        for index, _ in markers:
            prefix = self._find(blocks, index, now)
            if prefix is not None:
                prefix.expires = now + LIFETIMES[prefix.ttl]
                read_tokens = max(read_tokens, prefix.tokens)
        kept_blocks = [block for _, block in markers if block.until >= minimum]
        end = max((block.until for block in kept_blocks), default=0)
        long_end = max((block.until for block in kept_blocks if block.ttl == "1h"), default=0)
        fingerprint = take_fingerprint(body, end)
        diagnostics = body.get("diagnostics")
        cache_use = AnthropicCacheUse(
            input=blocks[-1].until if blocks else 0,
            read=read_tokens,
            written=max(0, end - read_tokens),
            written_long=max(0, long_end - read_tokens),
            reachable=self._reachable(blocks, minimum, now),
            missed=self._explain(blocks, read_tokens, minimum, now, fingerprint),
            at=now,
            blocks=blocks,
            written_at=tuple((block, block.ttl or "5m") for block in kept_blocks),
            fingerprint=fingerprint,
            previous=(diagnostics or {}).get("previous_message_id"),
            wants_diagnosis=diagnostics is not None,
        )
        for block, ttl in cache_use.written_at:
            # An expired entry is written again; a live one keeps the longer of its lifetimes.
            old = self._entries.get(block.running)
            if old is None or now > old.expires:
                self._entries[block.running] = CachedPrefix(
                    tokens=block.until, ttl=ttl, expires=now + LIFETIMES[ttl]
                )
            elif ttl == "1h":
                old.ttl, old.expires = ttl, now + LIFETIMES[ttl]
        self._last = fingerprint
        return cache_use

    def begin(self, cache_use: AnthropicCacheUse) -> None:
        """Begin the response: from now on the entries written by its request can be read."""
        for block, _ in cache_use.written_at:
            self._entries[block.running].readable = True
        for block in cache_use.blocks:
            self._last_requests[block.running] = (block.until, cache_use.at)

    def _find(
        self, blocks: tuple[PrefixBlock, ...], marker: int, now: float
    ) -> CachedPrefix | None:
        last = blocks[marker].position
        for block in reversed(blocks[: marker + 1]):
            if last - block.position >= LOOKBACK_BLOCKS:
                return None
            entry = self._entries.get(block.running)
            if entry is not None and entry.readable and now <= entry.expires:
                return entry
        return None

    def _reachable(self, blocks: tuple[PrefixBlock, ...], minimum: int, now: float) -> int:
        for block in reversed(blocks):
            until, at = self._last_requests.get(block.running, (0, 0.0))
            lifetime = LIFETIMES["5m"]
            if (entry := self._entries.get(block.running)) is not None:
                lifetime = LIFETIMES[entry.ttl]
                at = max(at, entry.expires - lifetime)
            if until >= minimum and now - at <= lifetime:
                return until
        return 0

    def _explain(
        self,
        blocks: tuple[PrefixBlock, ...],
        read_tokens: int,
        minimum: int,
        now: float,
        fingerprint: RequestFingerprint,
    ) -> str:
        """Explain why no more was read, judging by the cache and the last request."""
        markers = [block for block in blocks if block.ttl]
        if not markers:
            return "no marker"
        if markers[-1].until < minimum:
            return f"below the minimum of {minimum:,} tokens"
        for block in reversed(blocks):
            entry = self._entries.get(block.running)
            if block.until <= read_tokens:
                break
            if entry is None:
                continue
            if now > entry.expires:
                return f"expired {now - entry.expires:.0f} s ago"
            if not entry.readable:
                return "still being written"
            return f"more than {LOOKBACK_BLOCKS} blocks before a marker"
        if self._last is None:
            return "nothing was sent before"
        change = find_first_change(self._last, fingerprint)
        if change is None or self._last.cached <= read_tokens:
            return ""
        return {"unavailable": "messages changed"}.get(change, change.replace("_", " "))

    # -- diagnoses -------------------------------------------------------------------------------

    def keep_fingerprint(self, message: str, cache_use: AnthropicCacheUse) -> None:
        """Keep the fingerprint of the request that `message` answers, if it asked for one."""
        if cache_use.wants_diagnosis:
            self._fingerprints[message] = cache_use.fingerprint

    def diagnose(self, cache_use: AnthropicCacheUse) -> dict[str, Any] | None:
        """Return the response's cache diagnosis; None if nothing diverged or none was requested."""
        if not cache_use.wants_diagnosis or cache_use.previous is None:
            return None
        before = self._fingerprints.get(cache_use.previous)
        if before is None:
            return {"cache_miss_reason": {"type": "previous_message_not_found"}}
        change = find_first_change(before, cache_use.fingerprint)
        if change is None:
            return None
        reason: dict[str, Any] = {"type": change}
        if change != "unavailable":
            reason["cache_missed_input_tokens"] = max(0, before.cached - cache_use.read)
        return {"cache_miss_reason": reason}


def find_first_change(before: RequestFingerprint, after: RequestFingerprint) -> str | None:
    """Return the first change, in prefix order; None if messages were only added."""
    for name in ("model", "tools", "system"):
        if getattr(before, name) != getattr(after, name):
            return f"{name}_changed"
    if before.parameters != after.parameters:
        return "unavailable"
    if after.messages[: len(before.messages)] != before.messages:
        return "messages_changed"
    return None


def take_fingerprint(body: JSON, cached: int) -> RequestFingerprint:
    layers: dict[str, list[str]] = {"tools": [], "system": [], "messages": []}
    for layer, role, block in walk_body(body):
        layers[layer].append(f"{role}\x1f{encode_bare(block)}")
    return RequestFingerprint(
        model=str(body.get("model", "")),
        tools=chain_digest(*layers["tools"]),
        system=chain_digest(*layers["system"]),
        messages=tuple(chain_digest(layer) for layer in layers["messages"]),
        parameters=encode_parameters(body),
        cached=cached,
    )
