"""Gemini's caches, as the vendor accounts for them: from the bodies on the wire alone.

Laws: implicit caching finds the longest prefix of an earlier request that is still alive, and
nothing below the model's minimum. A cache made by hand is read whole by whoever names it; behind it
nothing else is found, as no rule promises more. It is paid for while it lives.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import count as numbers

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lamina.providers.emulators.gemini.bodies import CacheBody, GeminiPart, GenerateBody
from lamina.values.settings import Target

CountTokens = Callable[[str], int]
# An image up to 384 pixels; of a larger one, each tile.
IMAGE_TOKENS = 258
# As many prompts of one key and model are remembered.
_REMEMBERED = 64
_HOUR = 3600.0


class GeminiPromptPart(Struct, frozen=True, kw_only=True):
    """A part of a prompt: where it stands, and what is in it."""

    place: str
    text: str
    tokens: int


class GeminiCacheUse(Struct, frozen=True, kw_only=True):
    """What a request comes to: its tokens, those read from a cache, and why there were no more.
    `explicit` is what a cache made by hand gave."""

    owner: str
    target: Target
    pieces: tuple[GeminiPromptPart, ...]
    input: int
    cached: int = 0
    explicit: int = 0
    missed: str = ""


class CachedContent(Struct, frozen=True, kw_only=True):
    """A cache made by hand."""

    name: str
    owner: str
    target: Target
    pieces: tuple[GeminiPromptPart, ...]
    tokens: int
    created: float
    updated: float
    expires: float
    display_name: str = ""


class _Kept(Struct):
    pieces: tuple[GeminiPromptPart, ...]
    at: float


class CacheTooSmall(Exception):
    """A cache made by hand has a minimum, too."""

    def __init__(self, tokens: int, minimum: int) -> None:
        super().__init__(
            f"Cached content is too small. total_token_count={tokens}, "
            f"min_total_token_count={minimum}"
        )
        self.tokens = tokens
        self.minimum = minimum


class GeminiCache:
    """What a vendor keeps for all its callers."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], list[_Kept]] = {}
        self._held: dict[str, CachedContent] = {}
        self._numbers = numbers(1)

    # -- implicit --------------------------------------------------------------------------------

    def read(
        self, body: GenerateBody, target: Target, owner: str, count: CountTokens, now: float
    ) -> GeminiCacheUse:
        """What a request reads from the cache. A cache that it names must be there."""
        own = tuple(split_body(body, count))
        held = self._held[body.cached_content] if body.cached_content else None
        if held is not None:
            explicit = held.tokens
            return GeminiCacheUse(
                owner=owner, target=target, pieces=(*held.pieces, *own),
                input=explicit + _total(own), cached=explicit, explicit=explicit,
            )  # fmt: skip
        found = GeminiCacheUse(owner=owner, target=target, pieces=own, input=_total(own))
        tokens, kept = self._longest(found, count, now)
        if kept is None:
            return replace(found, missed="nothing sent before")
        if not _lives(kept, target, now):
            return replace(found, missed="lifetime passed")
        if tokens < target.cache.minimum:
            missed = _changed(kept.pieces, own) if tokens < _total(kept.pieces) else ""
            least = f"nothing under {target.cache.minimum:,} is kept"
            return replace(found, missed=missed or f"{tokens:,} tokens agree; {least}")
        return replace(
            found,
            # The last token has to be read for there to be an answer.
            cached=min(tokens, found.input - 1),
            missed=_changed(kept.pieces, own),
        )

    def keep(self, read: GeminiCacheUse, now: float) -> None:
        """Keeps a request that was answered; what it read lives on."""
        if read.explicit:
            return
        kept = self._kept.setdefault((read.owner, read.target.model), [])
        for each in list(kept):
            if each.pieces == read.pieces[: len(each.pieces)]:
                kept.remove(each)
            elif _lives(each, read.target, now) and read.cached and _shares(each.pieces, read):
                each.at = now
        kept.append(_Kept(pieces=read.pieces, at=now))
        del kept[:-_REMEMBERED]

    def _longest(
        self, read: GeminiCacheUse, count: CountTokens, now: float
    ) -> tuple[int, _Kept | None]:
        """The entry that shares most, a live one if there is any with enough."""
        shared = [
            (_lives(kept, read.target, now), _shared(kept.pieces, read.pieces, count), kept)
            for kept in self._kept.get((read.owner, read.target.model), ())
        ]
        if not shared:
            return 0, None
        minimum = read.target.cache.minimum
        _, tokens, kept = max(shared, key=lambda s: (s[0] and s[1] >= minimum, s[1], s[0]))
        return tokens, kept

    # -- made by hand ----------------------------------------------------------------------------

    def hold(
        self, body: CacheBody | GenerateBody, target: Target, owner: str, count: CountTokens,
        now: float, expires: float,
    ) -> CachedContent:  # fmt: skip
        """Makes a cache.

        Raises:
            TooSmall: it would be below the model's minimum.
        """
        pieces = tuple(split_body(body, count))
        tokens = _total(pieces)
        if tokens < target.cache.minimum:
            raise CacheTooSmall(tokens, target.cache.minimum)
        held = CachedContent(
            name=f"cachedContents/emulated{next(self._numbers):08d}",
            owner=owner,
            target=target,
            pieces=pieces,
            tokens=tokens,
            created=now,
            updated=now,
            expires=expires,
            display_name=(body.display_name or "") if isinstance(body, CacheBody) else "",
        )
        self._held[held.name] = held
        return held

    def find(self, name: str, owner: str, now: float) -> CachedContent | None:
        """The cache of that name, if it is the caller's and lives."""
        held = self._held.get(name)
        return held if held and held.owner == owner and now <= held.expires else None

    def listed(self, owner: str, now: float) -> list[CachedContent]:
        return [held for held in self._held.values() if self.find(held.name, owner, now)]

    def renew(self, held: CachedContent, now: float, expires: float) -> CachedContent:
        renewed = self._held[held.name] = replace(held, updated=now, expires=expires)
        return renewed

    def drop(self, held: CachedContent, now: float) -> CachedContent:
        """The cache as it ended."""
        del self._held[held.name]
        return replace(held, expires=min(held.expires, now))

    def storage_fee(self, held: CachedContent, now: float) -> float:
        """US dollars for having kept it until now."""
        hours = max(0.0, min(now, held.expires) - held.created) / _HOUR
        return held.tokens * hours * held.target.cache.storage_price / 1_000_000


# -- prompts in pieces ---------------------------------------------------------------------------


def split_body(body: GenerateBody | CacheBody, count: CountTokens) -> Iterator[GeminiPromptPart]:
    """A body in the order in which it is cached: tools, system instruction, contents."""
    for tool in body.tools:
        declared = [_plain(declaration) for declaration in tool.function_declarations]
        others = replace(tool, function_declarations=[])
        declared += [_plain(others)] * (others != type(tool)())
        for text in declared:
            yield GeminiPromptPart(place="tools", text=text, tokens=count(text))
    if body.system_instruction is not None:
        for part in body.system_instruction.parts:
            yield _piece("systemInstruction", part, count)
    for index, content in enumerate(body.contents):
        for part in content.parts:
            yield _piece(f"contents[{index}]", part, count)


def _piece(place: str, part: GeminiPart, count: CountTokens) -> GeminiPromptPart:
    if part.text is not None and part.thought_signature is None and not part.thought:
        return GeminiPromptPart(place=place, text=part.text, tokens=count(part.text))
    text = _plain(part)
    if (blob := part.inline_data) is not None:
        tokens = IMAGE_TOKENS if blob.mime_type.startswith("image/") else len(blob.data) // 4
    elif (call := part.function_call) is not None:
        tokens = count(_plain({"name": call.name, "args": call.args or {}}))
    elif (response := part.function_response) is not None:
        tokens = count(_plain({"name": response.name, "response": response.response}))
    else:
        tokens = count(part.text or "")
    # Marked, so that it begins like no text.
    return GeminiPromptPart(place=place, text=f"\0{text}", tokens=tokens)


def _plain(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _total(pieces: Sequence[GeminiPromptPart]) -> int:
    return sum(piece.tokens for piece in pieces)


def _lives(kept: _Kept, target: Target, now: float) -> bool:
    lifetime = target.cache.lifetime_s
    return lifetime is None or now - kept.at <= lifetime


def _agree(before: Sequence[GeminiPromptPart], after: Sequence[GeminiPromptPart]) -> int:
    """How many leading pieces are the same."""
    agree = 0
    for old, new in zip(before, after, strict=False):
        if old != new:
            break
        agree += 1
    return agree


def _shared(
    before: Sequence[GeminiPromptPart], after: Sequence[GeminiPromptPart], count: CountTokens
) -> int:
    """Tokens of the common prefix; it may end inside a text."""
    agree = _agree(before, after)
    tokens = _total(after[:agree])
    if agree < min(len(before), len(after)):
        old, new = before[agree], after[agree]
        if old.place == new.place and not old.text.startswith("\0") and old.place != "tools":
            tokens += count(_common(old.text, new.text))
    return tokens


def _common(before: str, after: str) -> str:
    low, high = 0, min(len(before), len(after))
    while low < high:
        middle = (low + high + 1) // 2
        if before[:middle] == after[:middle]:
            low = middle
        else:
            high = middle - 1
    return before[:low]


def _shares(before: Sequence[GeminiPromptPart], read: GeminiCacheUse) -> bool:
    return _total(read.pieces[: _agree(before, read.pieces)]) >= read.target.cache.minimum


def _changed(before: Sequence[GeminiPromptPart], after: Sequence[GeminiPromptPart]) -> str:
    """Where a request differs from one before it, if it does not go on from it."""
    agree = _agree(before, after)
    if agree == len(before):
        return ""
    return f"changed at {(after[agree] if agree < len(after) else before[agree]).place}"
