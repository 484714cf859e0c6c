"""Sessions over fakes, and short ways to talk to them and to look at what they send."""

from collections.abc import Coroutine, Iterable, Sequence
from typing import Any

import anyio
from tests.fakes.book import SMALL, FakeBook
from tests.fakes.clock import FakeClock
from tests.fakes.replies import openai_reply
from tests.fakes.store import FakeStore
from tests.fakes.workspace import FakeWorkspace

import lamina
from lamina.core.values.item import Attachment, AttachmentSpec, Item, ItemId, note_id
from lamina.core.values.settings import Settings
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn

Attachable = str | Item | AttachmentSpec | Attachment


class World:
    """One of each fake, and sessions that share them."""

    def __init__(self, notes: dict[str, str] | None = None) -> None:
        self.clock = FakeClock()
        self.book = FakeBook()
        self.store = FakeStore()
        self.workspace = FakeWorkspace(notes)

    async def open(self, session: str | None = None, **given: Any) -> Session:
        """A session; keywords that are fields of Settings go there."""
        limits = {name: given.pop(name) for name in Settings.__struct_fields__ if name in given}
        settings: Settings | None = Settings(**({"target": SMALL.name} | limits))
        if session and await self.store.has(session):
            # Opened again: what is not said stays as it was.
            settings = Settings(**limits) if limits else None
        return await lamina.open_session(
            session,
            settings=settings,
            workspace=self.workspace,
            store=self.store,
            book=self.book,
            clock=self.clock,
            **given,
        )


def run(test: Coroutine[Any, Any, None]) -> None:
    """Runs the body of a test."""

    async def body() -> None:
        await test

    anyio.run(body)


def note(path: str, content: str) -> Item:
    return Item(id=note_id(path), content=content)


def rule(name: str, content: str) -> Item:
    return Item(id=ItemId(f"rule:{name}"), content=content)


def words(count: int, word: str = "word") -> str:
    return " ".join([word] * count)


async def talk(
    session: Session, text: str = "Q", *attach: Attachable, answer: str = "A", **given: Any
) -> Turn:
    """One whole turn: prepared, answered, committed."""
    turn = await session.prepare(text, attach=attach, **given)
    return await turn.commit(openai_reply(answer))


def messages_of(turn: Turn) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = turn.request()["messages"]
    return messages


def system_of(turn: Turn) -> str:
    """The system message; empty if there is none."""
    first = messages_of(turn)[0]
    return str(first["content"]) if first["role"] == "system" else ""


def user_of(turn: Turn) -> str:
    """The last user message."""
    return str([m for m in messages_of(turn) if m["role"] == "user"][-1]["content"])


def all_text(turn: Turn) -> str:
    return "\n".join(segment.text for segment in turn.prompt)


def reported(turn: Turn) -> list[tuple[str, str]]:
    """What the request left out, with reasons."""
    return [(omission.what, omission.reason) for omission in turn.context.left_out]


def placed(turn: Turn) -> dict[str, str]:
    """Where the items of a request stand, by label."""
    return {item.label: item.placement for item in turn.context.items}


def boundaries(turn: Turn) -> list[str]:
    return [boundary.kind for boundary in turn.context.boundaries]


def layer(turn: Turn, name: str) -> list[str]:
    """The sources of one layer's segments."""
    return [segment.source for segment in turn.prompt if segment.layer == name]


def labels(ids: Iterable[str]) -> list[str]:
    return [each.partition(":")[2] for each in ids]


def library_of(session: Session) -> list[str]:
    return labels(laid.item for laid in session.envelope.library)


def digests(turn: Turn) -> Sequence[str]:
    return [segment.digest for segment in turn.prompt]
