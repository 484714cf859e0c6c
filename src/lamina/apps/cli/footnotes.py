"""Answers from notes, on a terminal: the passages found, the footnotes below an answer, and its
words, held back until their numbers are known.

Law: each number shown means one source, which is shown too. Numbers are known only when an answer
is complete, so its words wait until then.
"""

from collections.abc import Callable

from lamina.apps.cli.terminal_text import one_line, visible_name
from lamina.core.audit.break_causes import count_of
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
from lamina.core.values.note import Hit, NoteSearchResult
from lamina.engine.runners.answer import Answer
from lamina.engine.runners.citations import list_footnotes
from lamina.engine.runners.runner import Listener, Runner


def list_hits(result: NoteSearchResult, width: int) -> str:
    """A line per passage with its place and score, and below it the beginning of its text."""
    if not result.hits:
        return f"no match in {count_of(result.searched, 'note')}"
    return "\n".join(_lines(hit, width) for hit in result.hits)


def render_footnotes(answer: Answer) -> list[str]:
    """A line for each number of an answer; none if the answer lists its sources itself."""
    return [visible_name(line) for line in list_footnotes(answer.text, answer.sources)]


def _lines(hit: Hit, width: int) -> str:
    score = f"{hit.score:.2f}" if hit.score is not None else "words"
    under = f"  ·  {one_line(hit.heading)}" if hit.heading else ""
    head = f"{score:>5}  {visible_name(hit.place)}{under}"
    return f"{head}\n       {one_line(hit.text, width - 7)}"


def hold_until_final(listener: Listener, runner: Runner) -> Listener:
    """Wrap a listener so that it gets the words of an answer with sources once they are final.
    Words that turn out to precede a call are not an answer, and are passed on at that point."""
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
                return  # the earlier version was never passed on
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
