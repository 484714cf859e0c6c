"""How much of a request may be texts that are for it alone: what a search found, what tools gave.

Laws: they are counted as everything is, and have their room behind what a person attached. If the
request still does not fit, they are what gives way.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from lamina.assembly.items import stands
from lamina.assembly.truncation import NOTICE_TOKENS, shorten_text
from lamina.errors import WindowExceeded
from lamina.layers import MESSAGE_TOKENS
from lamina.runners.citations import render_hits
from lamina.session.session import Session, core_of
from lamina.session.turn import Turn
from lamina.sources.attachments import Attachments
from lamina.text import QUERY_FRAME, render_tool_texts
from lamina.values.message import ToolText
from lamina.values.note import Hit

# Of the room that is left, what such texts may take; and what they may take in any case of the room
# beside tools and L1, for which history gives way.
SHARE = 0.5
LEAST_SHARE = 0.25

T = TypeVar("T")


class TextRoom:
    """Room for the texts of one question."""

    def __init__(
        self, session: Session, target: str | None, question: str, attachments: Attachments
    ) -> None:
        state, layouts = session.state, core_of(session).layouts
        model = layouts.choose(target, state.settings)
        assembler = layouts.assembler_for(model, state.settings.promotion)
        limit = layouts.room(model, state).limit
        self._count = assembler.count_text
        standing = assembler.assemble(
            state.envelope, state.library.items, len(state.envelope.cached)
        )
        segments = (link.segment for link in standing.front)
        front = sum(segment.tokens for segment in segments if segment.layer in ("tools", "L1"))
        new_tokens = sum(
            assembler.item_tokens(attachment.item)
            for attachment in attachments.attachments
            if not stands(state, attachment.item)
        )
        beside = self._count(question) + self._count(QUERY_FRAME) + MESSAGE_TOKENS + new_tokens
        half = SHARE * (limit - standing.tokens - beside)
        least = LEAST_SHARE * (limit - front - beside)
        self.tokens = max(0, int(half), int(least))

    def cost(self, texts: Sequence[ToolText]) -> int:
        """How many tokens texts take of a request."""
        return self._count(render_tool_texts(texts)) if texts else 0

    def take_hits(self, hits: Sequence[Hit], most: int | None = None) -> tuple[Hit, ...]:
        """The first of the hits, as many as there is room for, or `most` tokens."""
        limit = self.tokens if most is None else most
        while hits and self.cost([render_hits(hits)]) > limit:
            hits = hits[:-1]
        return tuple(hits)

    def shorten(
        self, texts: Sequence[ToolText], most: int
    ) -> tuple[tuple[ToolText, ...], tuple[str, ...]]:
        """The texts with the middle of the largest taken out until they fit `most` tokens; and
        which those are. Where nothing of one could be left, it goes whole."""
        sizes = [self._count(text.text) for text in texts]
        over = self.cost(texts) - most
        if over <= 0:
            return tuple(texts), ()
        level = _level(sizes, sum(sizes) - over - NOTICE_TOKENS * len(texts))
        pieces: list[ToolText] = []
        warnings: list[str] = []
        for text, size in zip(texts, sizes, strict=True):
            if size <= level:
                pieces.append(text)
                continue
            warnings.append(f"{text.name} gave {size:,} tokens, and there is room for {level:,}")
            if level > 0:
                pieces.append(replace(text, text=shorten_text(text.text, level, self._count)))
        return tuple(pieces), tuple(warnings)


def _level(sizes: Sequence[int], goal: int) -> int:
    """What the large ones come down to, so that all of them are within `goal`."""
    rest = sorted(sizes)
    while rest and rest[0] * len(rest) <= goal:
        goal -= rest.pop(0)
    return max(0, goal // len(rest)) if rest else max(sizes, default=0)


async def prepare_smaller(
    prepare: Callable[[tuple[T, ...]], Awaitable[Turn]], parts: Sequence[T]
) -> tuple[Turn, int]:
    """Prepares with as many `parts` as the window takes, the last ones going first; the turn, and
    how many those were. What hooks add is known only then.

    Raises:
        WindowExceeded: it does not fit without any, either.
    """
    count = len(parts)
    while True:
        try:
            return await prepare(tuple(parts[:count])), count
        except WindowExceeded:
            if not count:
                raise
            count //= 2
