"""Fits additional texts into a request: search results and tool results.

Laws: they are counted like everything else, and get their room after attachments. If the request
still does not fit, they are shortened first.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from lamina.core.assembly.budget import assemble_standing
from lamina.core.assembly.shortened_results import NOTICE_TOKENS, find_level, shorten_text
from lamina.core.assembly.turn_items import stands
from lamina.core.layers import MESSAGE_TOKENS
from lamina.core.text import QUERY_FRAME, render_tool_texts
from lamina.core.values.message import ToolText
from lamina.core.values.note import Hit
from lamina.engine.runners.citations import SearchOutput, render_hits, render_searches
from lamina.engine.session.session import Session, core_of
from lamina.engine.session.turn import Turn
from lamina.engine.sources.attachments import Attachments
from lamina.errors import WindowExceeded

T = TypeVar("T")


class TextRoom:
    """Room for the texts of one question."""

    def __init__(
        self, session: Session, target: str | None, question: str, attachments: Attachments
    ) -> None:
        state, layouts = session.state, core_of(session).layouts
        model = layouts.choose(target, state.settings)
        assembler = layouts.assembler_for(model, state.settings.promotion)
        self._count = assembler.count_text
        new_tokens = sum(
            assembler.item_tokens(attachment.item)
            for attachment in attachments.attachments
            if not stands(state, attachment.item)
        )
        beside = self._count(question) + self._count(QUERY_FRAME) + MESSAGE_TOKENS + new_tokens
        room = layouts.room(model, state).beside(assemble_standing(state, assembler))
        self.tokens = room.texts(beside)

    def cost(self, texts: Sequence[ToolText]) -> int:
        """Return how many tokens texts take in a request."""
        return self._count(render_tool_texts(texts)) if texts else 0

    def take_hits(self, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        """Return the first hits, as many as there is room for."""
        while hits and self.cost([render_hits(hits)]) > self.tokens:
            hits = hits[:-1]
        return tuple(hits)

    def take_searches(
        self, outputs: Sequence[SearchOutput], max_tokens: int
    ) -> tuple[SearchOutput, ...]:
        """Return searches with as many of their hits as fit `max_tokens`; the search with the most
        hits gives up its last ones first. A search without remaining hits is dropped: it must not
        claim that nothing was found.
        """
        rest = list(outputs)
        while any(output.result.hits for output in rest):
            if self.cost(render_searches(rest)[0]) <= max_tokens:
                break
            longest = max(len(output.result.hits) for output in rest)
            at = max(at for at, output in enumerate(rest) if len(output.result.hits) == longest)
            result = replace(rest[at].result, hits=rest[at].result.hits[:-1])
            rest[at : at + 1] = [replace(rest[at], result=result)] if result.hits else []
        return tuple(rest)

    def shorten(
        self, texts: Sequence[ToolText], max_tokens: int
    ) -> tuple[tuple[ToolText, ...], tuple[str, ...]]:
        """Return the texts, with the middle of the largest cut out until they fit `max_tokens`, and
        which ones were cut. A text that would be empty is dropped.
        """
        sizes = [self._count(text.text) for text in texts]
        over = self.cost(texts) - max_tokens
        if over <= 0:
            return tuple(texts), ()
        level = find_level(sizes, sum(sizes) - over - NOTICE_TOKENS * len(texts))
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


async def prepare_smaller(
    prepare: Callable[[tuple[T, ...]], Awaitable[Turn]], parts: Sequence[T]
) -> tuple[Turn, int]:
    """Prepare with as many `parts` as the window allows, dropping the last ones first; return the
    turn, and their number. Additions by hooks are known only at that point.

    Raises:
        WindowExceeded: it does not fit even without any.
    """
    count = len(parts)
    while True:
        try:
            return await prepare(tuple(parts[:count])), count
        except WindowExceeded:
            if not count:
                raise
            count //= 2
