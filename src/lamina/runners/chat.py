"""A chat: one request for a question, one answer."""

from collections.abc import Iterable

from lamina.runners.answer import Answer
from lamina.runners.composer import with_composer
from lamina.runners.mode import RunContext
from lamina.runners.preview import Preview
from lamina.session.turn import Turn
from lamina.sources.attachments import Attachable


class ChatMode:
    def __init__(self, run: RunContext) -> None:
        self._run = run

    async def begin(self, text: str, attach: Iterable[Attachable], target: str | None) -> Turn:
        return await self._run.prepare(text, with_composer(text, attach), target)

    async def resume(self) -> Turn:
        return await self._run.open_turn()

    async def after(self, turn: Turn) -> Answer:
        return self._run.end("called" if turn.pending else "answered", turn)

    async def preview(self, text: str, attach: Iterable[Attachable], target: str | None) -> Preview:
        return self._run.preview(await self.begin(text, attach, target))
