"""Emulates OpenAI's prompt cache from request bodies alone, as the tokens that a model reads.

Laws: a prefix belongs to the rendered prompt, token by token, with the same model, key and
settings; two bodies have the same tokens as far as their rendered prompts agree. Markers, the
choice of callable tools and sampling settings are not rendered. Before GPT-5.6 every prefix is
stored and found in steps of tokens; from then on only those that end at a breakpoint are, and a
request finds only the prefixes that it marks again. Nothing below the minimum is stored. Use keeps
an entry alive.
"""

from array import array
from base64 import b64decode
from binascii import Error as NotBase64
from collections import deque
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from itertools import takewhile
from json import dumps
from math import ceil
from typing import Any

import msgspec
from msgspec import Struct

from lamina.adapters.providers.tokens import token_ids
from lamina.core.values.settings import CacheRules, Target

# Beyond any vocabulary: tokens that frame messages, and that represent bytes that are not text.
_START, _SEP, _END, _TOOL, _CALL = range(1 << 24, (1 << 24) + 5)
_OPAQUE = 1 << 25
_INSTRUCTIONS = ("system", "developer")
_KNOWN_TEXTS = 2_000

# A picture's cost: a base price, and more for every tile.
_PICTURE, _TILE, _TILE_SIDE = 85, 170, 512
_UNKNOWN_PICTURE = _PICTURE + 4 * _TILE


class OpenAIPromptPart(Struct, frozen=True):
    """The tools or a message: its end position, and a digest of its own tokens."""

    name: str
    end: int
    digest: bytes


class RenderedPrompt(Struct, frozen=True, kw_only=True):
    """A prompt as tokens. `marks` are the ends of content with a breakpoint, `endings` those of
    messages that may get an implicit one: the user's, the last of a run of tool results, the
    opening instructions."""

    ids: "array[int]"
    parts: tuple[OpenAIPromptPart, ...]
    marks: tuple[int, ...]
    endings: tuple[int, ...]

    def digests(self, seed: bytes, ends: list[int]) -> list[bytes]:
        """Return the digests of everything up to each of `ends`, which are in order."""
        running = blake2b(seed, digest_size=16)
        digests, start = [], 0
        for end in ends:
            running.update(self.ids[start:end].tobytes())
            digests.append(running.copy().digest())
            start = end
        return digests


def render_prompt(body: Mapping[str, Any], encoding: str) -> RenderedPrompt:
    """Render a body's prompt as a model at OpenAI or a compatible server reads it."""
    ids: array[int] = array("Q")
    parts: list[OpenAIPromptPart] = []
    marks: list[int] = []
    endings: list[int] = []

    def close(name: str, start: int) -> None:
        digest = blake2b(ids[start:].tobytes(), digest_size=16).digest()
        parts.append(OpenAIPromptPart(name, len(ids), digest))

    if tools := body.get("tools"):
        for tool in tools:
            ids.append(_TOOL)
            ids.extend(_text(encoding, dumps(tool.get("function", tool), ensure_ascii=False)))
        close("tools", 0)
    messages = body["messages"]
    opening = True
    for index, message in enumerate(messages):
        start, role = len(ids), str(message["role"])
        opening = opening and role in _INSTRUCTIONS
        ids.extend((_START, *_text(encoding, role), _SEP))
        if call := message.get("tool_call_id"):
            ids.append(_opaque(call))
        for part, is_marked in _parts(message.get("content")):
            ids.extend(_content(encoding, part))
            if is_marked:
                marks.append(len(ids))
        for call in message.get("tool_calls") or ():
            ids.append(_CALL)
            ids.append(_opaque(call["id"]))
            ids.extend(_text(encoding, call["function"]["name"]))
            ids.append(_SEP)
            ids.extend(_text(encoding, call["function"]["arguments"]))
        following = messages[index + 1]["role"] if index + 1 < len(messages) else ""
        if _may_end(role, following, is_opening=opening):
            endings.append(len(ids))
        ids.append(_END)
        close(f"message {index}, {role}", start)
    # The model continues from here.
    ids.extend((_START, *_text(encoding, "assistant"), _SEP))
    return RenderedPrompt(ids=ids, parts=tuple(parts), marks=tuple(marks), endings=tuple(endings))


def _may_end(role: str, following: str, *, is_opening: bool) -> bool:
    match role:
        case "user":
            return True
        case "tool":
            return following != "tool"
        case _:
            return is_opening and following not in _INSTRUCTIONS


def _parts(content: Any) -> Iterator[tuple[Any, bool]]:
    if isinstance(content, list):
        for part in content:
            yield part, "prompt_cache_breakpoint" in part
    elif content is not None:
        yield {"type": "text", "text": content}, False


def _content(encoding: str, part: Mapping[str, Any]) -> list[int]:
    match part["type"]:
        case "text":
            return _text(encoding, part["text"])
        case "image_url":
            url = part["image_url"]["url"]
            return [_opaque(url)] * picture_tokens(url)
        case _:
            return [_opaque(dumps(part))]


@lru_cache(maxsize=_KNOWN_TEXTS)
def _cached_text(encoding: str, text: str) -> tuple[int, ...]:
    return tuple(token_ids(encoding, text))


def _text(encoding: str, text: str) -> list[int]:
    # Every request in a conversation contains the same messages.
    return list(_cached_text(encoding, text))


def _opaque(data: str) -> int:
    return _OPAQUE + int.from_bytes(blake2b(data.encode(), digest_size=6).digest(), "big")


def picture_tokens(url: str) -> int:
    """Return a picture's tokens, by its size if its header shows that."""
    head, _, data = url.partition(";base64,")
    try:
        start = b64decode(data[:48] if head == "data:image/png" else "")
    except (NotBase64, ValueError):
        start = b""
    if len(start) < 24:
        return _UNKNOWN_PICTURE
    sides = (int.from_bytes(start[at : at + 4], "big") for at in (16, 20))
    tiles = 1
    for side in sides:
        tiles *= max(1, ceil(min(side, 2_048) / _TILE_SIDE))
    return _PICTURE + _TILE * tiles


JSON = Mapping[str, Any]
MAX_WRITES = 4
# Breakpoints at which a request can be found, and endings of earlier messages in implicit mode.
LOOKBACK_BREAKPOINTS = 80
LOOKBACK_ENDINGS = 20
# How much of a prompt, together with its key, determines the machine that serves it.
ROUTING_TOKENS = 256
_REMEMBERED = 64
# Fields other than text that belong to the prefix, and the names for changes to them.
_SETTINGS = {
    "model": "model_changed",
    "prompt_cache_key": "prompt_cache_key_changed",
    "response_format": "text_format_changed",
    "reasoning_effort": "reasoning_effort_changed",
    "verbosity": "verbosity_changed",
    "parallel_tool_calls": "parallel_tool_calls_changed",
}


class OpenAICacheUse(Struct, frozen=True, kw_only=True):
    """A request's input; `missed` says why it was not read from the cache."""

    tokens: int
    cached: int = 0
    written: int = 0
    missed: str = ""


class _PastRequest(Struct, frozen=True, kw_only=True):
    """A request that was sent."""

    at: float
    settings: tuple[bytes, ...]
    parts: tuple[OpenAIPromptPart, ...]


class OpenAICache:
    """Entries by prefix digest, with the time of their last use. Requests with one prefix
    and key beyond `per_minute` go to a machine without those entries."""

    def __init__(self, *, per_minute: int | None = None) -> None:
        self._last_uses: dict[bytes, float] = {}
        self._past: deque[_PastRequest] = deque(maxlen=_REMEMBERED)
        self._per_minute = per_minute
        self._recent_requests: dict[bytes, deque[float]] = {}

    def use(self, body: JSON, target: Target, now: float) -> OpenAICacheUse:
        """Account for a request, and store its cacheable prefixes."""
        prompt = render_prompt(body, target.encoding)
        settings = tuple(
            blake2b(msgspec.json.encode(body.get(name)), digest_size=16).digest()
            for name in _SETTINGS
        )
        machine = self._route(prompt, settings, now)
        seed = b"".join((*settings, machine.to_bytes(2, "big")))
        find = self._at_breakpoints if target.cache.explicit else self._in_steps
        cached_tokens, written_tokens = find(body, prompt, target.cache, seed, now)
        past = _PastRequest(at=now, settings=settings, parts=prompt.parts)
        miss_reason = "overflow" if machine and not cached_tokens else ""
        cache_use = OpenAICacheUse(
            tokens=len(prompt.ids),
            cached=cached_tokens,
            written=written_tokens,
            missed=miss_reason or self._explain(past, cached_tokens, target.cache),
        )
        self._past.append(past)
        return cache_use

    def _route(self, prompt: RenderedPrompt, settings: tuple[bytes, ...], now: float) -> int:
        if self._per_minute is None:
            return 0
        head = prompt.ids[:ROUTING_TOKENS].tobytes()
        recent = self._recent_requests.setdefault(b"".join((*settings[:2], head)), deque())
        while recent and recent[0] <= now - 60:
            recent.popleft()
        recent.append(now)
        return (len(recent) - 1) // self._per_minute

    # -- lookup and storage ------------------------------------------------------------------------

    def _in_steps(
        self, _: JSON, prompt: RenderedPrompt, rules: CacheRules, seed: bytes, now: float
    ) -> tuple[int, int]:
        # The last token is always read: the model continues from it.
        ends = list(range(rules.step, len(prompt.ids), rules.step))
        digests = prompt.digests(seed, ends)
        cached_end = 0
        for end, digest in zip(ends, digests, strict=True):
            if not self._is_alive(digest, rules, now):
                break
            cached_end = end
        if len(prompt.ids) >= rules.minimum:
            self._last_uses.update(dict.fromkeys(digests, now))
        return (cached_end if cached_end >= rules.minimum else 0), 0

    def _at_breakpoints(
        self, body: JSON, prompt: RenderedPrompt, rules: CacheRules, seed: bytes, now: float
    ) -> tuple[int, int]:
        marks, endings = prompt.marks, prompt.endings
        if is_explicit(body):
            readable, writable = marks[-LOOKBACK_BREAKPOINTS:], marks[-MAX_WRITES:]
        else:
            readable = (*marks[-LOOKBACK_BREAKPOINTS:], *endings[-LOOKBACK_ENDINGS - 1 :])
            writable = (*marks[-MAX_WRITES + 1 :], *endings[-1:])
        ends = sorted(end for end in {*readable, *writable} if end >= rules.minimum)
        entries = dict(zip(ends, prompt.digests(seed, ends), strict=True))
        alive = [
            end for end in ends if end in readable and self._is_alive(entries[end], rules, now)
        ]
        cached_end = max(alive, default=0)
        kept_ends = {end for end in ends if end in writable} | {cached_end} - {0}
        self._last_uses.update({entries[end]: now for end in kept_ends})
        return cached_end, max(0, max(kept_ends, default=0) - cached_end)

    def _is_alive(self, digest: bytes, rules: CacheRules, now: float) -> bool:
        last_use = self._last_uses.get(digest)
        if last_use is None:
            return False
        if rules.lifetime_s is not None and now - last_use > rules.lifetime_s:
            del self._last_uses[digest]
            return False
        return True

    # -- reasons for misses ------------------------------------------------------------------------

    def _explain(self, request: _PastRequest, cached_tokens: int, rules: CacheRules) -> str:
        """Return the reason in OpenAI's words, if it has one; empty if everything was found that an
        earlier request had in common with this one."""
        shared_count, before = max(
            ((_count_shared(past.parts, request.parts), past) for past in self._past),
            key=lambda match: (match[0], match[1].at),
            default=(0, None),
        )
        if before is None:
            return "nothing_sent_before"
        for name, mine, other in zip(
            _SETTINGS.values(), request.settings, before.settings, strict=True
        ):
            if mine != other:
                return name
        agreed_end = request.parts[shared_count - 1].end if shared_count else 0
        if shared_count < len(before.parts) and shared_count < len(request.parts):
            name = request.parts[shared_count].name
            if "tools" in (name, before.parts[shared_count].name):
                return "tools_changed"
            if cached_tokens or agreed_end < rules.minimum or rules.explicit:
                return f"input_changed: {name}"
        if agreed_end < rules.minimum:
            return "below_minimum"
        if cached_tokens:
            return ""
        if rules.lifetime_s is not None and request.at - before.at > rules.lifetime_s:
            return "expired"
        return "no_breakpoint" if rules.explicit else "not_kept"


def count_tokens(body: JSON, target: Target) -> int:
    """Return a request's length in tokens."""
    return len(render_prompt(body, target.encoding).ids)


def is_explicit(body: JSON) -> bool:
    """Return whether a request is cached only at its own breakpoints."""
    return (body.get("prompt_cache_options") or {}).get("mode") == "explicit"


def _count_shared(before: tuple[OpenAIPromptPart, ...], after: tuple[OpenAIPromptPart, ...]) -> int:
    pairs = zip(before, after, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0].digest == pair[1].digest, pairs))
