"""Emulates Gemini's cache accounting from the bodies on the wire alone.

Laws: implicit caching finds the longest live prefix of an earlier request, and nothing below the
model's minimum. An explicit cache is read whole by the requests that name it; nothing after it is
found, since no rule promises more. It is paid for as long as it exists.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import count as numbers
from itertools import takewhile

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lamina.core.values.prices import MILLION
from lamina.core.values.settings import Target
from lamina.emulators.gemini.bodies import CacheBody, GeminiPart, GenerateBody, invalid_argument

CountTokens = Callable[[str], int]
# An image up to 384 pixels, or each tile of a larger one.
IMAGE_TOKENS = 258
# How many prompts per key and model are remembered.
_REMEMBERED = 64
_HOUR = 3600.0


class GeminiPromptPart(Struct, frozen=True, kw_only=True):
    """A part of a prompt: its place and its content."""

    place: str
    text: str
    tokens: int


class GeminiCacheUse(Struct, frozen=True, kw_only=True):
    """A request's tokens, those read from a cache, and why there were no more. `explicit` counts
    those from an explicit cache."""

    owner: str
    target: Target
    parts: tuple[GeminiPromptPart, ...]
    input: int
    cached: int = 0
    explicit: int = 0
    missed: str = ""


class CachedContent(Struct, frozen=True, kw_only=True):
    """An explicit cache."""

    name: str
    owner: str
    target: Target
    parts: tuple[GeminiPromptPart, ...]
    tokens: int
    created: float
    updated: float
    expires: float
    display_name: str = ""


class _PastPrompt(Struct):
    parts: tuple[GeminiPromptPart, ...]
    at: float


class GeminiCache:
    """Stores the vendor's caches for all callers."""

    def __init__(self) -> None:
        self._past_prompts: dict[tuple[str, str], list[_PastPrompt]] = {}
        self._contents: dict[str, CachedContent] = {}
        self._numbers = numbers(1)

    # -- implicit --------------------------------------------------------------------------------

    def use(
        self, body: GenerateBody, target: Target, owner: str, count: CountTokens, now: float
    ) -> GeminiCacheUse:
        """Return what a request reads from the cache. A cache that it names must exist."""
        own = tuple(split_body(body, count))
        content = self._contents[body.cached_content] if body.cached_content else None
        if content is not None:
            explicit = content.tokens
            return GeminiCacheUse(
                owner=owner, target=target, parts=(*content.parts, *own),
                input=explicit + _total(own), cached=explicit, explicit=explicit,
            )  # fmt: skip
        use = GeminiCacheUse(owner=owner, target=target, parts=own, input=_total(own))
        tokens, past = self._longest(use, count, now)
        if past is None:
            return replace(use, missed="nothing sent before")
        if not _is_alive(past, target, now):
            return replace(use, missed="lifetime passed")
        if tokens < target.cache.minimum:
            change = _describe_change(past.parts, own) if tokens < _total(past.parts) else ""
            least = f"nothing under {target.cache.minimum:,} is kept"
            return replace(use, missed=change or f"{tokens:,} tokens agree; {least}")
        return replace(
            use,
            # The model has to read the last token to answer.
            cached=min(tokens, use.input - 1),
            missed=_describe_change(past.parts, own),
        )

    def remember(self, use: GeminiCacheUse, now: float) -> None:
        """Store a request that was answered; this extends the lifetime of the prefix it read."""
        if use.explicit:
            return
        prompts = self._past_prompts.setdefault((use.owner, use.target.model), [])
        for past in list(prompts):
            if past.parts == use.parts[: len(past.parts)]:
                prompts.remove(past)
            elif _is_alive(past, use.target, now) and use.cached and _shares(past.parts, use):
                past.at = now
        prompts.append(_PastPrompt(parts=use.parts, at=now))
        del prompts[:-_REMEMBERED]

    def _longest(
        self, use: GeminiCacheUse, count: CountTokens, now: float
    ) -> tuple[int, _PastPrompt | None]:
        """Return the prompt that shares most; a live one if any of them shares enough."""
        candidates = [
            (_is_alive(past, use.target, now), _count_shared(past.parts, use.parts, count), past)
            for past in self._past_prompts.get((use.owner, use.target.model), ())
        ]
        if not candidates:
            return 0, None
        minimum = use.target.cache.minimum
        _, tokens, past = max(candidates, key=lambda s: (s[0] and s[1] >= minimum, s[1], s[0]))
        return tokens, past

    # -- explicit --------------------------------------------------------------------------------

    def create(
        self, body: CacheBody | GenerateBody, target: Target, owner: str, count: CountTokens,
        now: float, expires: float,
    ) -> CachedContent:  # fmt: skip
        """Create an explicit cache.

        Raises:
            GeminiRefusal: it would be below the model's minimum.
        """
        parts = tuple(split_body(body, count))
        tokens = _total(parts)
        if tokens < target.cache.minimum:
            raise invalid_argument(
                f"Cached content is too small. total_token_count={tokens}, "
                f"min_total_token_count={target.cache.minimum}"
            )
        name = f"cachedContents/emulated{next(self._numbers):08d}"
        content = self._contents[name] = CachedContent(
            name=name,
            owner=owner,
            target=target,
            parts=parts,
            tokens=tokens,
            created=now,
            updated=now,
            expires=expires,
            display_name=(body.display_name or "") if isinstance(body, CacheBody) else "",
        )
        return content

    def find(self, name: str, owner: str, now: float) -> CachedContent | None:
        """Return the cache with that name, if it is alive and the caller's own."""
        content = self._contents.get(name)
        return content if content and content.owner == owner and now <= content.expires else None

    def list_contents(self, owner: str, now: float) -> list[CachedContent]:
        return [content for name, content in self._contents.items() if self.find(name, owner, now)]

    def renew(self, content: CachedContent, now: float, expires: float) -> CachedContent:
        new_content = self._contents[content.name] = replace(content, updated=now, expires=expires)
        return new_content

    def delete(self, content: CachedContent, now: float) -> CachedContent:
        """Delete a cache; return its final state."""
        del self._contents[content.name]
        return replace(content, expires=min(content.expires, now))

    def storage_fee(self, content: CachedContent, now: float) -> float | None:
        """Return the US dollars for storing a cache until now; None if the price is unknown."""
        prices = content.target.prices
        if prices is None:
            return None
        hours = max(0.0, min(now, content.expires) - content.created) / _HOUR
        return content.tokens * hours * prices.storage / MILLION


# -- the parts of prompts ------------------------------------------------------------------------


def split_body(body: GenerateBody | CacheBody, count: CountTokens) -> Iterator[GeminiPromptPart]:
    """Yield a body's parts in caching order: tools, system instruction, contents."""
    for tool in body.tools:
        texts = [_plain(declaration) for declaration in tool.function_declarations]
        others = replace(tool, function_declarations=[])
        texts += [_plain(others)] * (others != type(tool)())
        for text in texts:
            yield GeminiPromptPart(place="tools", text=text, tokens=count(text))
    if body.system_instruction is not None:
        for part in body.system_instruction.parts:
            yield _prompt_part("systemInstruction", part, count)
    for index, content in enumerate(body.contents):
        for part in content.parts:
            yield _prompt_part(f"contents[{index}]", part, count)


def _prompt_part(place: str, part: GeminiPart, count: CountTokens) -> GeminiPromptPart:
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
    # Marked with a prefix that no text has.
    return GeminiPromptPart(place=place, text=f"\0{text}", tokens=tokens)


def _plain(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _total(parts: Sequence[GeminiPromptPart]) -> int:
    return sum(part.tokens for part in parts)


def _is_alive(past: _PastPrompt, target: Target, now: float) -> bool:
    lifetime = target.cache.lifetime_s
    return lifetime is None or now - past.at <= lifetime


def _agree(before: Sequence[GeminiPromptPart], after: Sequence[GeminiPromptPart]) -> int:
    """Return how many leading parts are the same."""
    pairs = zip(before, after, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _count_shared(
    before: Sequence[GeminiPromptPart], after: Sequence[GeminiPromptPart], count: CountTokens
) -> int:
    """Return the tokens of the common prefix, which may end inside a string."""
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


def _shares(before: Sequence[GeminiPromptPart], use: GeminiCacheUse) -> bool:
    return _total(use.parts[: _agree(before, use.parts)]) >= use.target.cache.minimum


def _describe_change(before: Sequence[GeminiPromptPart], after: Sequence[GeminiPromptPart]) -> str:
    """Describe where a request departs from an earlier one; empty if it continues it."""
    agree = _agree(before, after)
    if agree == len(before):
        return ""
    return f"changed at {(after[agree] if agree < len(after) else before[agree]).place}"
