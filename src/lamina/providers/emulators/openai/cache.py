"""OpenAI's prompt cache, worked out from the bodies of requests alone.

Laws: a prefix is one of the rendered prompt, token by token, of the same model, key and settings.
Before GPT-5.6 every prefix is kept and found in steps of tokens; from then on just those that end
at a breakpoint, and a request finds only what it marks again. Nothing below the minimum is kept.
Use keeps an entry alive.
"""

from collections import deque
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct

from lamina.providers.emulators.openai.rendered_prompt import (
    OpenAIPromptPart,
    RenderedPrompt,
    render_prompt,
)
from lamina.values.settings import CacheRules, Target

MAX_WRITES = 4
# Breakpoints that a request can be found by, and endings of earlier messages in implicit mode.
LOOKBACK_BREAKPOINTS = 80
LOOKBACK_ENDINGS = 20
# How much of a prompt decides, with its key, which machine gets it.
ROUTING_TOKENS = 256
_REMEMBERED = 64
# What is part of the prefix without being text, and what it is called when it has changed.
_SETTINGS = {
    "model": "model_changed",
    "prompt_cache_key": "prompt_cache_key_changed",
    "response_format": "text_format_changed",
    "reasoning_effort": "reasoning_effort_changed",
    "verbosity": "verbosity_changed",
    "parallel_tool_calls": "parallel_tool_calls_changed",
}


class OpenAICacheUse(Struct, frozen=True, kw_only=True):
    """What one request cost of input; `missed` says why it was not read from the cache."""

    tokens: int
    cached: int = 0
    written: int = 0
    missed: str = ""


class _Past(Struct, frozen=True, kw_only=True):
    """A request that was sent."""

    at: float
    settings: tuple[bytes, ...]
    places: tuple[OpenAIPromptPart, ...]


class OpenAICache:
    """Entries by the digest of the prefix, with the time of their last use. With `per_minute`, more
    requests of one prefix and key than that go to a machine that knows nothing of the others."""

    def __init__(self, *, per_minute: int | None = None) -> None:
        self._used: dict[bytes, float] = {}
        self._past: deque[_Past] = deque(maxlen=_REMEMBERED)
        self._per_minute = per_minute
        self._routed: dict[bytes, deque[float]] = {}

    def take(self, body: Mapping[str, Any], target: Target, now: float) -> OpenAICacheUse:
        """Accounts for a request, and keeps of it what is kept."""
        rendered = render_prompt(body, target.encoding)
        settings = tuple(
            blake2b(msgspec.json.encode(body.get(name)), digest_size=16).digest()
            for name in _SETTINGS
        )
        machine = self._route(rendered, settings, now)
        seed = b"".join((*settings, machine.to_bytes(2, "big")))
        find = self._at_breakpoints if target.cache.explicit else self._in_steps
        cached, written = find(body, rendered, target.cache, seed, now)
        past = _Past(at=now, settings=settings, places=rendered.places)
        missed = "overflow" if machine and not cached else ""
        account = OpenAICacheUse(
            tokens=len(rendered.ids),
            cached=cached,
            written=written,
            missed=missed or self._explain(past, cached, target.cache),
        )
        self._past.append(past)
        return account

    def _route(self, rendered: RenderedPrompt, settings: tuple[bytes, ...], now: float) -> int:
        if self._per_minute is None:
            return 0
        head = rendered.ids[:ROUTING_TOKENS].tobytes()
        recent = self._routed.setdefault(b"".join((*settings[:2], head)), deque())
        while recent and recent[0] <= now - 60:
            recent.popleft()
        recent.append(now)
        return (len(recent) - 1) // self._per_minute

    # -- what is found and kept --------------------------------------------------------------------

    def _in_steps(
        self,
        _: Mapping[str, Any],
        rendered: RenderedPrompt,
        rules: CacheRules,
        seed: bytes,
        now: float,
    ) -> tuple[int, int]:
        # The last token is always read: the model goes on from it.
        ends = list(range(rules.step, len(rendered.ids), rules.step))
        digests = rendered.digests(seed, ends)
        cached = 0
        for end, digest in zip(ends, digests, strict=True):
            if not self._is_alive(digest, rules, now):
                break
            cached = end
        if len(rendered.ids) >= rules.minimum:
            self._used.update(dict.fromkeys(digests, now))
        return (cached if cached >= rules.minimum else 0), 0

    def _at_breakpoints(
        self,
        body: Mapping[str, Any],
        rendered: RenderedPrompt,
        rules: CacheRules,
        seed: bytes,
        now: float,
    ) -> tuple[int, int]:
        marks, endings = rendered.marks, rendered.endings
        if is_explicit(body):
            readable, writable = marks[-LOOKBACK_BREAKPOINTS:], marks[-MAX_WRITES:]
        else:
            readable = (*marks[-LOOKBACK_BREAKPOINTS:], *endings[-LOOKBACK_ENDINGS - 1 :])
            writable = (*marks[-MAX_WRITES + 1 :], *endings[-1:])
        ends = sorted(end for end in {*readable, *writable} if end >= rules.minimum)
        entries = dict(zip(ends, rendered.digests(seed, ends), strict=True))
        alive = [
            end for end in ends if end in readable and self._is_alive(entries[end], rules, now)
        ]
        cached = max(alive, default=0)
        kept = {end for end in ends if end in writable} | {cached} - {0}
        self._used.update({entries[end]: now for end in kept})
        return cached, max(0, max(kept, default=0) - cached)

    def _is_alive(self, digest: bytes, rules: CacheRules, now: float) -> bool:
        used = self._used.get(digest)
        if used is None:
            return False
        if rules.lifetime_s is not None and now - used > rules.lifetime_s:
            del self._used[digest]
            return False
        return True

    # -- why not more ------------------------------------------------------------------------------

    def _explain(self, asked: _Past, cached: int, rules: CacheRules) -> str:
        """The reason in OpenAI's words, where it has one; nothing if all was found that an earlier
        request had in common with this one."""
        shared, before = max(
            ((_shared(past.places, asked.places), past) for past in self._past),
            key=lambda found: (found[0], found[1].at),
            default=(0, None),
        )
        if before is None:
            return "nothing_sent_before"
        for name, mine, other in zip(
            _SETTINGS.values(), asked.settings, before.settings, strict=True
        ):
            if mine != other:
                return name
        agreed = asked.places[shared - 1].end if shared else 0
        if shared < len(before.places) and shared < len(asked.places):
            name = asked.places[shared].name
            if "tools" in (name, before.places[shared].name):
                return "tools_changed"
            if cached or agreed < rules.minimum or rules.explicit:
                return f"input_changed: {name}"
        if agreed < rules.minimum:
            return "below_minimum"
        if cached:
            return ""
        if rules.lifetime_s is not None and asked.at - before.at > rules.lifetime_s:
            return "expired"
        return "no_breakpoint" if rules.explicit else "not_kept"


def count_tokens(body: Mapping[str, Any], target: Target) -> int:
    """How long a request is."""
    return len(render_prompt(body, target.encoding).ids)


def is_explicit(body: Mapping[str, Any]) -> bool:
    """Whether a request is cached at its own breakpoints only."""
    return (body.get("prompt_cache_options") or {}).get("mode") == "explicit"


def _shared(before: tuple[OpenAIPromptPart, ...], after: tuple[OpenAIPromptPart, ...]) -> int:
    count = 0
    for old, new in zip(before, after, strict=False):
        if old.digest != new.digest:
            break
        count += 1
    return count
