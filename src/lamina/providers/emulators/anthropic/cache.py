"""Anthropic's prefix cache, by its published rules and from wire bodies alone.

Laws: what is read was written before by a request whose response had begun, byte for byte the same,
and not longer ago than it lives. Nothing is known here of how the bodies came to be.
"""

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Literal

import msgspec
from msgspec import Struct

from lamina.providers.tokens import counter_for
from lamina.values.settings import Target
from lamina.values.usage import Usage

JSON = Mapping[str, Any]
PrefixLayer = Literal["tools", "system", "messages"]
# A marker finds entries at so many blocks, the one it stands on being the first.
LOOKBACK_BLOCKS = 20
LIFETIMES = {"5m": 300.0, "1h": 3_600.0}
# What the wire's roles come to.
MESSAGE_TOKENS = 3
# A picture whose size cannot be told.
_PICTURE_TOKENS = 1_600
_PIXELS_PER_TOKEN = 750


class PrefixBlock(Struct, frozen=True, kw_only=True):
    """One block of a request. `running` and `until` are the digest and the tokens of everything up
    to its end, `position` counts runs of calls and of results once."""

    layer: PrefixLayer
    running: str
    until: int
    position: int
    ttl: str | None = None


class CachedPrefix(Struct, kw_only=True):
    """A prefix that is kept. Not readable before the response to its request begins."""

    tokens: int
    ttl: str
    expires: float
    readable: bool = False


class RequestFingerprint(Struct, frozen=True, kw_only=True):
    """What is kept of a request to tell what changed since."""

    model: str
    tools: str
    system: str
    messages: tuple[str, ...]
    # Other parameters that the messages depend on.
    asked: str
    cached: int


class AnthropicCacheUse(Struct, frozen=True, kw_only=True):
    """What a request comes to. `reachable` is what could have been read, had there been markers at
    every block; `missed` says why it was not."""

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
    diagnosed: bool = False

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
    """What one organisation has in the cache."""

    def __init__(self) -> None:
        self._entries: dict[str, CachedPrefix] = {}
        # When each prefix last stood in a request, with a marker or without.
        self._seen: dict[str, tuple[int, float]] = {}
        self._fingerprints: dict[str, RequestFingerprint] = {}
        self._last: RequestFingerprint | None = None

    def look_up(self, body: JSON, target: Target, now: float) -> AnthropicCacheUse:
        """What is read and written for a request that comes in now; reading refreshes."""
        blocks = tuple(read_blocks(body, target))
        minimum = target.cache.minimum
        marked = [(index, block) for index, block in enumerate(blocks) if block.ttl]
        read = 0
        for index, _ in marked:
            found = self._find(blocks, index, now)
            if found is not None:
                found.expires = now + LIFETIMES[found.ttl]
                read = max(read, found.tokens)
        kept = [block for _, block in marked if block.until >= minimum]
        end = max((block.until for block in kept), default=0)
        long_end = max((block.until for block in kept if block.ttl == "1h"), default=0)
        fingerprint = take_fingerprint(body, end)
        diagnostics = body.get("diagnostics")
        account = AnthropicCacheUse(
            input=blocks[-1].until if blocks else 0,
            read=read,
            written=max(0, end - read),
            written_long=max(0, long_end - read),
            reachable=self._reachable(blocks, minimum, now),
            missed=self._explain(blocks, read, minimum, now, fingerprint),
            at=now,
            blocks=blocks,
            written_at=tuple((block, block.ttl or "5m") for block in kept),
            fingerprint=fingerprint,
            previous=(diagnostics or {}).get("previous_message_id"),
            diagnosed=diagnostics is not None,
        )
        for block, ttl in account.written_at:
            # One that died is written anew; one that lives keeps the longer of its lifetimes.
            old = self._entries.get(block.running)
            if old is None or now > old.expires:
                self._entries[block.running] = CachedPrefix(
                    tokens=block.until, ttl=ttl, expires=now + LIFETIMES[ttl]
                )
            elif ttl == "1h":
                old.ttl, old.expires = ttl, now + LIFETIMES[ttl]
        self._last = fingerprint
        return account

    def begin(self, account: AnthropicCacheUse) -> None:
        """The response begins: what its request wrote can be read from now on."""
        for block, _ in account.written_at:
            self._entries[block.running].readable = True
        for block in account.blocks:
            self._seen[block.running] = (block.until, account.at)

    def _find(
        self, blocks: tuple[PrefixBlock, ...], marked: int, now: float
    ) -> CachedPrefix | None:
        last = blocks[marked].position
        for block in reversed(blocks[: marked + 1]):
            if last - block.position >= LOOKBACK_BLOCKS:
                return None
            entry = self._entries.get(block.running)
            if entry is not None and entry.readable and now <= entry.expires:
                return entry
        return None

    def _reachable(self, blocks: tuple[PrefixBlock, ...], minimum: int, now: float) -> int:
        for block in reversed(blocks):
            until, at = self._seen.get(block.running, (0, 0.0))
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
        read: int,
        minimum: int,
        now: float,
        asked: RequestFingerprint,
    ) -> str:
        """Why no more was read than was, by what stands in the cache and by the last request."""
        marked = [block for block in blocks if block.ttl]
        if not marked:
            return "no marker"
        if marked[-1].until < minimum:
            return f"below the minimum of {minimum:,} tokens"
        for block in reversed(blocks):
            entry = self._entries.get(block.running)
            if block.until <= read:
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
        changed = find_first_change(self._last, asked)
        if changed is None or self._last.cached <= read:
            return ""
        return {"unavailable": "messages changed"}.get(changed, changed.replace("_", " "))

    # -- diagnoses -------------------------------------------------------------------------------

    def keep_fingerprint(self, message: str, account: AnthropicCacheUse) -> None:
        """Keeps what `message` answered, if its request asked for that."""
        if account.diagnosed:
            self._fingerprints[message] = account.fingerprint

    def diagnose(self, account: AnthropicCacheUse) -> dict[str, Any] | None:
        """What the response says of the cache; None if nothing diverged or nobody asked."""
        if not account.diagnosed or account.previous is None:
            return None
        before = self._fingerprints.get(account.previous)
        if before is None:
            return {"cache_miss_reason": {"type": "previous_message_not_found"}}
        changed = find_first_change(before, account.fingerprint)
        if changed is None:
            return None
        reason: dict[str, Any] = {"type": changed}
        if changed != "unavailable":
            reason["cache_missed_input_tokens"] = max(0, before.cached - account.read)
        return {"cache_miss_reason": reason}


def find_first_change(before: RequestFingerprint, after: RequestFingerprint) -> str | None:
    """What changed first, in the order of the prefix; None if messages were only added."""
    for name in ("model", "tools", "system"):
        if getattr(before, name) != getattr(after, name):
            return f"{name}_changed"
    if before.asked != after.asked:
        return "unavailable"
    if after.messages[: len(before.messages)] != before.messages:
        return "messages_changed"
    return None


# -- reading a body ------------------------------------------------------------------------------


def read_blocks(body: JSON, target: Target) -> Iterator[PrefixBlock]:
    """The blocks of a request in the order of the prefix: tools, system, messages."""
    count = counter_for(target).count
    running = str(body.get("model", ""))
    until = position = 0
    layer_before, kind_before, role_before = "", "", ""
    automatic = _automatic(body)
    for index, (layer, role, block) in enumerate(_walk(body)):
        if layer == "messages" != layer_before:
            running = _digest(running, _asked(body))
        kind = str(block.get("type", ""))
        in_run = kind in ("tool_use", "tool_result") and (kind, role) == (kind_before, role_before)
        position += not in_run
        running = _digest(running, f"{layer}\x1f{role}\x1f{_bare(block)}")
        until += _tokens(block, count) + (MESSAGE_TOKENS if role and role != role_before else 0)
        ttl = _ttl(block)
        if automatic is not None and automatic[0] == index:
            ttl = ttl or automatic[1]
        yield PrefixBlock(layer=layer, running=running, until=until, position=position, ttl=ttl)
        layer_before, kind_before, role_before = layer, kind, role


def _walk(body: JSON) -> Iterator[tuple[PrefixLayer, str, JSON]]:
    for tool in body.get("tools") or ():
        yield "tools", "", tool
    for block in as_blocks(body.get("system") or ()):
        yield "system", "", block
    for message in body.get("messages") or ():
        for block in as_blocks(message.get("content") or ()):
            yield "messages", str(message.get("role", "")), block


def as_blocks(content: Any) -> Iterator[JSON]:
    """Content as blocks; a string is short for one of text."""
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    else:
        yield from content


def _automatic(body: JSON) -> tuple[int, str] | None:
    """Where the marker stands that was asked for at the top, and its lifetime: on the last block
    that can carry one."""
    control = body.get("cache_control")
    if not control:
        return None
    able = [
        index
        for index, (_, _, block) in enumerate(_walk(body))
        if block.get("type") not in ("thinking", "redacted_thinking")
    ]
    return (able[-1], str(control.get("ttl", "5m"))) if able else None


def _ttl(block: JSON) -> str | None:
    control = block.get("cache_control")
    return str(control.get("ttl", "5m")) if control else None


def _bare(block: JSON) -> str:
    kept = {key: value for key, value in block.items() if key != "cache_control"}
    return msgspec.json.encode(kept).decode()


def _digest(*texts: str) -> str:
    return sha256("\x1e".join(texts).encode("utf-8", "surrogatepass")).hexdigest()


def _asked(body: JSON) -> str:
    """What the cache of messages depends on besides them."""
    pictured = any(block.get("type") == "image" for _, _, block in _walk(body))
    asked = [body.get("tool_choice"), body.get("thinking"), pictured]
    return msgspec.json.encode(asked).decode()


def take_fingerprint(body: JSON, cached: int) -> RequestFingerprint:
    layers: dict[str, list[str]] = {"tools": [], "system": [], "messages": []}
    for layer, role, block in _walk(body):
        layers[layer].append(f"{role}\x1f{_bare(block)}")
    return RequestFingerprint(
        model=str(body.get("model", "")),
        tools=_digest(*layers["tools"]),
        system=_digest(*layers["system"]),
        messages=tuple(_digest(layer) for layer in layers["messages"]),
        asked=_asked(body),
        cached=cached,
    )


def _tokens(block: JSON, count: Any) -> int:
    match block.get("type"):
        case "text":
            return int(count(str(block.get("text", ""))))
        case "thinking":
            return int(count(str(block.get("thinking", ""))))
        case "image":
            return _picture_tokens(block.get("source") or {})
        case "tool_use":
            given = msgspec.json.encode(block.get("input")).decode()
            return int(count(str(block.get("name", ""))) + count(given))
        case "tool_result":
            inside = as_blocks(block.get("content") or ())
            return sum(_tokens(mapping, count) for mapping in inside)
        case _:
            return int(count(_bare(block)))


def _picture_tokens(source: JSON) -> int:
    try:
        head = b64decode(str(source.get("data", ""))[:64])
    except NotBase64:
        return _PICTURE_TOKENS
    if head[:8] != b"\x89PNG\r\n\x1a\n":
        return _PICTURE_TOKENS
    width, height = int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    return max(1, min(_PICTURE_TOKENS, width * height // _PIXELS_PER_TOKEN))
