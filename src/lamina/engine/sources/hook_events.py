"""What hooks get: frozen values, and a signal that says when nobody waits for them any more."""

import threading
from collections.abc import Callable, Iterable
from typing import Literal

from msgspec import Struct, field

from lamina.core.values.envelope import Envelope
from lamina.core.values.item import Attachment, Include, Item, ItemId, ItemKind
from lamina.core.values.message import Message

HookReason = Literal["before_agent_start", "before_request", "ephemeral", "turn_end"]


class TurnItem(Struct, frozen=True, kw_only=True):
    """An item that applies to a turn, as hooks see it. `text` is its content as the model and the
    journal get it, without the wrapper around it; `tokens` is what it takes with that. `include`
    says how it came to be there (attached by a person is `manual`), `score`, `origin` and `source`
    how it was found and from what."""

    id: ItemId
    kind: ItemKind
    version: str
    text: str
    tokens: int
    title: str = ""
    include: Include = "manual"
    score: float | None = None
    origin: str = ""
    source: str = ""
    priority: int
    essential: bool = False


def turn_items(
    attachments: Iterable[Attachment], count: Callable[[Item], int]
) -> tuple[TurnItem, ...]:
    """What applies to a turn, for hooks."""
    return tuple(
        TurnItem(
            id=attachment.item.id,
            kind=attachment.item.kind,
            version=attachment.item.version,
            text=attachment.item.content,
            tokens=count(attachment.item),
            title=attachment.item.title,
            include=attachment.provenance.include,
            score=attachment.provenance.score,
            origin=attachment.provenance.origin,
            source=attachment.provenance.source,
            priority=attachment.priority,
            essential=attachment.is_essential,
        )
        for attachment in attachments
    )


class CancelSignal:
    """Tells a hook that nobody waits for it any more: its time limit has passed, or the turn was
    stopped. Async hooks are cancelled by themselves; a plain function has to ask, and can wait for
    it instead of sleeping."""

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def cancelled(self) -> bool:
        """Whether the hook should give up; what it returns is not used any more."""
        return self._event.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until the hook should give up, at most so many seconds; whether it should."""
        return self._event.wait(seconds)

    def cancel(self) -> None:
        """Called by the session."""
        self._event.set()


class ContextEvent(Struct, frozen=True, kw_only=True):
    """What a context hook gets. `message` is the message about to be sent (a question or tool
    results), or the answer that ended the turn; it is not in the envelope's messages before it is
    sent. `items` is what applies to the turn, with its text: what is attached, pinned and always
    included, and from `before_request` on what was chosen for the question."""

    reason: HookReason
    session: str
    target: str
    envelope: Envelope
    message: Message | None = None
    items: tuple[TurnItem, ...] = ()
    signal: CancelSignal = field(default_factory=CancelSignal)


class MessageEvent(Struct, frozen=True, kw_only=True):
    """What a message hook gets: a message that is complete and not yet written. `items` is what
    applies to its turn, with its text; of a question that is what is attached, pinned and always
    included, as the rest is chosen by what it says."""

    session: str
    message: Message
    envelope: Envelope
    items: tuple[TurnItem, ...] = ()
    signal: CancelSignal = field(default_factory=CancelSignal)
