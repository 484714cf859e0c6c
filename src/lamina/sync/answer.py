"""What a runner gives, with turns that need no `await`."""

from msgspec import Struct

from lamina.core.values.event import Ending
from lamina.core.values.note import NoteSearchResult
from lamina.core.values.usage import Usage
from lamina.engine.runners import answer as async_answer
from lamina.engine.runners import preview as async_preview
from lamina.engine.runners.answer import CitedSource
from lamina.engine.runners.caller import WaitingCall
from lamina.sync.portal import Portal
from lamina.sync.turn import Turn


class Answer(Struct, frozen=True, kw_only=True):
    """The answer to a question; `lamina.Answer` with a turn that needs no `await`."""

    ending: Ending
    text: str
    turn: Turn | None = None
    requests: int = 0
    usage: Usage = Usage()
    # In US dollars, without the `unpriced` requests, whose price nobody knows; None if that is all.
    cost: float | None = 0.0
    unpriced: int = 0
    waiting_calls: tuple[WaitingCall, ...] = ()
    warnings: tuple[str, ...] = ()
    sources: tuple[CitedSource, ...] = ()
    search_result: NoteSearchResult | None = None


class Preview(Struct, frozen=True, kw_only=True):
    """A turn that was prepared and not sent; `search_result` is what a search brought to it."""

    turn: Turn
    search_result: NoteSearchResult | None = None
    warnings: tuple[str, ...] = ()


def wrap_answer(portal: Portal, answer: async_answer.Answer) -> Answer:
    """The answer for a caller who does not await."""
    fields = {name: getattr(answer, name) for name in answer.__struct_fields__}
    turn = answer.turn and Turn(portal, answer.turn)
    return Answer(**fields | {"turn": turn})


def wrap_preview(portal: Portal, preview: async_preview.Preview) -> Preview:
    """The preview for a caller who does not await."""
    fields = {name: getattr(preview, name) for name in preview.__struct_fields__}
    return Preview(**fields | {"turn": Turn(portal, preview.turn)})
