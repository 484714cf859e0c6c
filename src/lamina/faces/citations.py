"""Answers with citations, as events.

Law: a number that is shown means one source, which is shown, too. Numbers are known when an answer
is complete, so its words wait until then.
"""

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
                for event_of_text in (
                    BlockStarted(index=0, kind="text"),
                    BlockDelta(index=0, text=answer),
                    BlockEnded(index=0),
                ):
                    await _tell(event_of_text)
            case _:
                pass
        await _tell(event)

    async def _tell(event: Event) -> None:
        if (pending := listener(event)) is not None:
            await pending

    return hear
