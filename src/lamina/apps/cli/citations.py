"""Answers with citations, as events.

Law: a number that is shown means one source, which is shown, too. Numbers are known when an answer
is complete, so its words wait until then.
"""

from collections.abc import Callable

from lamina.core.values.event import (
    AnswerChanged,
    BlockDelta,
    BlockEnded,
    BlockStarted,
    Event,
    RequestRetried,
    RequestStarted,
    ToolStarted,
    TurnEnded,
)
from lamina.engine.runners.runner import Listener, Runner


def hold_until_final(listener: Listener, runner: Runner) -> Listener:
    """A listener that hears the words of an answer which rests on sources when they are final.
    Words that turn out to stand in front of a call are no answer, and are heard then."""
    return _HeldWords(listener, lambda: runner.cites).hear


class _HeldWords:
    def __init__(self, listener: Listener, cites: Callable[[], bool]) -> None:
        self._listener = listener
        self._cites = cites
        self._is_holding = False
        self._held: list[Event] = []

    async def hear(self, event: Event) -> None:
        match event:
            case BlockStarted(kind=kind):
                self._is_holding = kind == "text" and self._cites()
                if kind == "action":
                    await self._let_go()
            case ToolStarted() | RequestStarted():
                await self._let_go()
            case RequestRetried():
                self._held.clear()
            case AnswerChanged() if self._held:
                return  # nobody heard what it was before
            case TurnEnded(answer=answer) if answer and self._held:
                self._held = [
                    BlockStarted(index=0, kind="text"),
                    BlockDelta(index=0, text=answer),
                    BlockEnded(index=0),
                ]
                await self._let_go()
            case _:
                pass
        if self._is_holding and isinstance(event, BlockStarted | BlockDelta | BlockEnded):
            self._held.append(event)
        else:
            await self._tell(event)

    async def _let_go(self) -> None:
        held, self._held = self._held, []
        for event in held:
            await self._tell(event)

    async def _tell(self, event: Event) -> None:
        if (pending := self._listener(event)) is not None:
            await pending
