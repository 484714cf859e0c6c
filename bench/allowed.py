"""What a vendor's rules allow to be read from its cache.

Law: of a request, at most what it has in common, from its first token on, with one earlier request
that is not older than entries live; in whole steps, nothing below the minimum, and never the last
token, from which the model goes on. That is a limit for any client that sends these bytes: one
with as many markers as it likes, each in the best place, whose requests never meet another machine.
It is worked out from the bodies on the wire, as each vendor's emulator reads them, and knows
nothing of what was found or predicted.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from lamina.adapters.providers.model_book import load_book
from lamina.core.values.settings import CacheRules, Target
from lamina.emulators.anthropic.blocks import PrefixBlock, read_blocks
from lamina.emulators.anthropic.emulator import AnthropicEmulator
from lamina.emulators.emulator import Emulator
from lamina.emulators.gemini.bodies import GenerateBody, read_body
from lamina.emulators.gemini.cache import GeminiPromptPart, split_body
from lamina.emulators.gemini.emulator import GeminiEmulator
from lamina.emulators.openai.cache import render_prompt
from lamina.emulators.openai.emulator import OpenAIEmulator

_ASKING = ("/chat/completions", "/v1/messages", ":generateContent", ":streamGenerateContent")
_MARKERS = ("cache_control", "prompt_cache_breakpoint")


class Sent(Struct, frozen=True, kw_only=True):
    """A request as it came in."""

    at: float
    body: dict[str, Any]


# -- listening ------------------------------------------------------------------------------------


class _Tap:
    """Keeps the bodies of requests for answers, whoever sends them."""

    def __init__(self, app: Any, kept: list[Sent], now: Callable[[], float]) -> None:
        self._app = app
        self._kept = kept
        self._now = now

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http" or not scope["path"].endswith(_ASKING):
            await self._app(scope, receive, send)
            return
        came: list[bytes] = []

        async def tapped() -> Any:
            message = await receive()
            if message["type"] == "http.request":
                came.append(message.get("body", b""))
                if not message.get("more_body"):
                    body = msgspec.json.decode(b"".join(came))
                    self._kept.append(Sent(at=self._now(), body=body))
            return message

        await self._app(scope, tapped, send)


def recording(vendor: str, **given: Any) -> tuple[Emulator, list[Sent]]:
    """An emulator, and the requests that it gets."""
    kinds: dict[str, type[Emulator]] = {
        "openai": OpenAIEmulator,
        "anthropic": AnthropicEmulator,
        "gemini": GeminiEmulator,
    }
    sent: list[Sent] = []

    class Recording(kinds[vendor]):  # type: ignore[misc, valid-type]
        def app(self) -> Any:
            app = super().app()
            app.add_middleware(_Tap, kept=sent, now=self.clock.now)
            return app

    return Recording(**given), sent


def count_markers(value: Any) -> int:
    """How many markers a request has, the one at its top included."""
    if isinstance(value, list):
        return sum(map(count_markers, value))
    if not isinstance(value, dict):
        return 0
    return sum(
        1 if key in _MARKERS and inner else count_markers(inner) for key, inner in value.items()
    )


# -- the limit ------------------------------------------------------------------------------------
# A request as each vendor reads it: `tokens`, and `shared`, those that it begins with as an earlier
# one does.


class _OpenAI:
    def __init__(self, body: Mapping[str, Any], target: Target) -> None:
        ids = render_prompt(body, target.encoding).ids
        self.tokens = len(ids)
        self._size = ids.itemsize
        self._bytes = ids.tobytes()

    def shared(self, earlier: "_OpenAI") -> int:
        return _common(self._bytes, earlier._bytes) // self._size


class _Anthropic:
    def __init__(self, body: Mapping[str, Any], target: Target) -> None:
        self._blocks: tuple[PrefixBlock, ...] = tuple(read_blocks(body, target))
        self.tokens = self._blocks[-1].until

    def shared(self, earlier: "_Anthropic") -> int:
        agreed = 0
        for mine, other in zip(self._blocks, earlier._blocks, strict=False):
            if mine.running != other.running:
                break
            agreed = mine.until
        return agreed


class _Gemini:
    def __init__(self, body: Mapping[str, Any], target: Target) -> None:
        self._count = load_book().counter(target).count
        self._pieces: tuple[GeminiPromptPart, ...] = tuple(
            split_body(read_body(body, GenerateBody), self._count)
        )
        self.tokens = sum(piece.tokens for piece in self._pieces)

    def shared(self, earlier: "_Gemini") -> int:
        agreed = 0
        for mine, other in zip(self._pieces, earlier._pieces, strict=False):
            if mine != other:
                if mine.place == other.place:
                    agreed += self._count(mine.text[: _common(mine.text, other.text)])
                break
            agreed += mine.tokens
        return agreed


_READERS: dict[str, Callable[[Mapping[str, Any], Target], Any]] = {
    "openai": _OpenAI,
    "anthropic": _Anthropic,
    "gemini": _Gemini,
}


def allowed(sent: Sequence[Sent], target: Target, rules: CacheRules) -> list[int]:
    """For each request, the most that could be read."""
    counts: list[int] = []
    reads: list[tuple[float, Any]] = []
    for sent_request in sent:
        request = _READERS[target.wire](sent_request.body, target)
        alive = [
            earlier
            for at, earlier in reads
            if rules.lifetime_s is None or sent_request.at - at <= rules.lifetime_s
        ]
        most = max((request.shared(earlier) for earlier in alive), default=0)
        most = min(most, request.tokens - 1)
        counts.append(most // rules.step * rules.step if most >= rules.minimum else 0)
        reads.append((sent_request.at, request))
    return counts


def _common(mine: bytes | str, other: bytes | str) -> int:
    """How far two agree."""
    low, high = 0, min(len(mine), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if mine[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
