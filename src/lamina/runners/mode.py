"""What the loop of a runner leaves to its mode, and what the two share.

Laws: a mode says what is asked and what follows an answer; the loop sends, stops and ends. Modes
know one another only by what is public.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol

from lamina.errors import TurnStateError
from lamina.ports import Providers
from lamina.runners.answer import Answer, Tally
from lamina.runners.caller import WaitingCall
from lamina.runners.preview import PlanPreview, Preview
from lamina.runners.sender import Sender
from lamina.session.session import Session
from lamina.session.turn import Turn
from lamina.sources.attachments import Attachable, Attachments
from lamina.values.event import Ending, Event, WarningIssued
from lamina.values.message import ToolText
from lamina.values.note import NoteSearchResult
from lamina.values.tool import Toolset

SUPERSEDED = "The call was not run: the person said something else instead."
Listener = Callable[[Event], Awaitable[None] | None]


async def notify(listener: Listener | None, event: Event) -> None:
    if listener is not None and (pending := listener(event)) is not None:
        await pending


class RunMode(Protocol):
    """How a runner answers."""

    async def begin(self, text: str, attach: Iterable[Attachable], target: str | None) -> Turn:
        """The first request for a question."""

    async def resume(self) -> Turn:
        """The turn that was left in the middle."""

    async def after(self, turn: Turn) -> Turn | Answer:
        """What follows an answered request: the next request, or the answer."""

    async def preview(
        self, text: str, attach: Iterable[Attachable], target: str | None
    ) -> Preview | PlanPreview:
        """What would be sent first for a question."""


class RunContext:
    """What the loop and its mode share: a session, the way to its models, and the tally of a run.
    `notes` is what the journal is told about a request, by kind of entry."""

    def __init__(self, session: Session, providers: Providers) -> None:
        self.session = session
        self.providers = providers
        self._sender = Sender(session, providers)
        self.start()

    def start(self, listener: Listener | None = None) -> None:
        """Begins a run."""
        self.listener = listener
        self.tally = Tally()
        self.notes: dict[str, dict[str, Any]] = {}

    async def emit(self, event: Event) -> None:
        self.tally.note(event)
        await notify(self.listener, event)

    async def warn(self, text: str) -> None:
        await self.emit(WarningIssued(text=text))

    async def prepare(
        self,
        text: str,
        attach: Iterable[Attachable],
        target: str | None,
        *,
        toolset: Toolset | None = None,
        tool_texts: tuple[ToolText, ...] = (),
        attachments: Attachments | None = None,
    ) -> Turn:
        """A request for a question, which supersedes calls that still wait."""
        await self.session.give_up(SUPERSEDED)
        return await self.session.turns.prepare(
            text,
            attach,
            target,
            tool_texts,
            starting=True,
            toolset=toolset,
            attachments=attachments,
        )  # fmt: skip

    async def open_turn(self) -> Turn:
        """The turn that was left in the middle.

        Raises:
            TurnState: there is none.
        """
        turn = await self.session.current_turn()
        if turn is None:
            raise TurnStateError("the last turn is complete: there is nothing to go on with")
        return turn

    async def send(self, turn: Turn) -> Turn:
        """Sends a request; the answered turn."""
        self.tally.requests += 1
        self.tally.turn = turn
        self.tally.turn = answered = await self._sender.send(turn, self.emit)
        if answered.id != turn.id:
            # It was too long and was made anew; what it rests on is the same.
            await self.note_request(answered.id)
        return answered

    async def note_request(self, request: str) -> None:
        """Writes the notes about a request down."""
        for kind, record in self.notes.items():
            await self.session.note(kind, record | {"request": request})

    def preview(self, turn: Turn, found: NoteSearchResult | None = None) -> Preview:
        return Preview(turn=turn, found=found, warnings=tuple(self.tally.warnings))

    def end(self, ending: Ending, turn: Turn | None, waiting: Sequence[WaitingCall] = ()) -> Answer:
        """The answer that a run ends with."""
        tally = self.tally
        text = turn.answer if turn else ""
        if ending == "aborted" and turn:
            text = self._partial_text()
        return Answer(
            ending=ending,
            text=text,
            turn=turn,
            requests=tally.requests,
            usage=tally.usage,
            cost=tally.cost,
            waiting=tuple(waiting),
            warnings=tuple(tally.warnings),
        )

    def _partial_text(self) -> str:
        """What was kept of an answer that was stopped."""
        cached = self.session.envelope.cached
        if self.session.interrupted or not len(cached) or cached[-1].role != "assistant":
            return ""
        return cached[-1].text
