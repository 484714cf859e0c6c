"""Answers with citations on a screen or in a file.

Law: a number that is shown means one source, which is shown, too. Numbers are known when an answer
is complete, so its words wait until then.
"""

from lamina.cli.terminal_text import visible
from lamina.runners.answer import Answer
from lamina.runners.citations import list_footnotes
from lamina.runners.runner import Listener
from lamina.values.event import BlockDelta, BlockEnded, BlockStarted, Event, TurnEnded


def hold_until_final(listener: Listener) -> Listener:
    """A listener that hears the words of an answer when they are final."""
    kind = ""

    async def hear(event: Event) -> None:
        nonlocal kind
        match event:
            case BlockStarted():
                kind = event.kind
                if kind == "text":
                    return
            case BlockDelta() | BlockEnded() if kind == "text":
                return
            case TurnEnded(answer=answer) if answer:
                for each in (
                    BlockStarted(index=0, kind="text"),
                    BlockDelta(index=0, text=answer),
                    BlockEnded(index=0),
                ):
                    await _tell(each)
            case _:
                pass
        await _tell(event)

    async def _tell(event: Event) -> None:
        if (told := listener(event)) is not None:
            await told

    return hear


def footnotes(answer: Answer) -> list[str]:
    """What the numbers of an answer mean, a line each; none if it says so itself."""
    return [visible(line) for line in list_footnotes(answer.text, answer.sources)]
