"""Talking to a house: with and without tools, what was told meanwhile, and what must hold
afterwards."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from tests.contracts.houses import KEY, House
from tests.fakes.tools import CLOSED, ToolHostFake, tool

import lamina
from lamina.adapters.providers.model_book import load_book
from lamina.apps.wiring.runners import open_agent, open_chat
from lamina.core.audit.verification import verify
from lamina.core.journal import journal_of
from lamina.core.values.entry import MessageEntry, ReplyEntry, RequestEntry
from lamina.core.values.envelope import Options
from lamina.core.values.event import BlockDelta, Event
from lamina.core.values.message import Message
from lamina.emulators.answers import EmulatedAnswer, EmulatedCall
from lamina.engine.runners.runner import AgentRunner, ChatRunner
from lamina.engine.session.session import Session

E = TypeVar("E", bound=Event)
LONG = "Berth " + ", ".join(f"{number} is free" for number in range(60)) + "."


class Watch:
    """What was told while turns ran."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def said(self) -> str:
        return "".join(event.text for event in self.of(BlockDelta))


def calling(*names: str, text: str = "Let me look.", thinking: str = "") -> EmulatedAnswer:
    """An answer that calls tools, each with its place among them as its path."""
    calls = tuple(
        EmulatedCall(name=name, arguments={"path": f"pier {at}"}) for at, name in enumerate(names)
    )
    return EmulatedAnswer(text=text, thinking=thinking, calls=calls)


def messages(session: Session) -> list[Message]:
    return list(session.envelope.cached.since(0))


def asked_in(session: Session) -> list[str]:
    """All that was ever asked, also where something else was asked in its place."""
    written = [entry.message for entry in session.entries if isinstance(entry, MessageEntry)]
    return [message.text for message in written if message.role == "user"]


def requests(session: Session) -> list[RequestEntry]:
    return [entry for entry in session.entries if isinstance(entry, RequestEntry)]


def replies(session: Session) -> list[ReplyEntry]:
    return [entry for entry in session.entries if isinstance(entry, ReplyEntry)]


def require_sound(session: Session) -> None:
    """Every request can be rebuilt byte for byte; none moved its prefix without a reason; whatever
    was read from a cache was part of what was sent; and nobody wrote down a key."""
    verdict = verify(journal_of(session.entries), load_book())
    assert verdict.sound, verdict
    assert KEY not in repr(session.entries)
    asked = {request.id: request for request in requests(session)}
    for reply in replies(session):
        assert reply.usage.cached <= reply.usage.input
        if reply.verdict and reply.verdict.meaning == "prefix_moved":
            broke = asked[reply.request].context.agreement.broke
            assert broke, reply.verdict
            assert broke.reason, reply.verdict


def strings(value: Any) -> Iterator[str]:
    """All texts of a request, wherever they stand in it."""
    match value:
        case str():
            yield value
        case Mapping():
            for each in value.values():
                yield from strings(each)
        case list() | tuple():
            for each in value:
                yield from strings(each)
        case _:
            pass


def text_of(body: Mapping[str, Any]) -> str:
    return "\n".join(strings(body))


async def chat_with(house: House, **given: Any) -> ChatRunner:
    given.setdefault("system", "You are terse.")
    given.setdefault("store", lamina.MemoryStore())
    if not house.scripted:
        given["options"] = Options(max_tokens=12)
    return await open_chat(providers=house, target=house.target, **given)


async def agent_with(house: House, host: ToolHostFake, **given: Any) -> AgentRunner:
    return await open_agent(
        providers=house, target=house.target, tools=host, max_requests=4,
        store=lamina.MemoryStore(), **given,
    )  # fmt: skip


CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def offered() -> ToolHostFake:
    return ToolHostFake(
        tool("depth", description="Tells how deep the water is.", parameters=CLOSED),
        tool("berths", description="Lists the berths.", parameters=CLOSED),
    )
