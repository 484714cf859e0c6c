"""Defines the mode-dependent part of a runner, and the state that loop and mode share.

Laws: a mode decides what is asked and what follows an answer; the loop sends, stops and ends. Modes
use only one another's public names.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import anyio
from msgspec.structs import replace

from lamina.core.layers.layout import wording_in
from lamina.core.ports import Providers, ToolHost
from lamina.core.values.entry import CustomEntry
from lamina.core.values.event import Ending, Event, WarningIssued
from lamina.core.values.message import Text, ToolCall, ToolText
from lamina.core.values.note import Hit, NoteSearchResult, Scope
from lamina.core.values.tool import Toolset
from lamina.core.values.wire import Reply
from lamina.engine.logger import log_event
from lamina.engine.runners.answer import Answer, CitedSource, PlanPreview, Preview, Tally
from lamina.engine.runners.approvals import WaitingCall
from lamina.engine.runners.citations import (
    CITED,
    LOCAL_SEARCH,
    SEARCHED,
    SearchOutput,
    cite,
    list_sources,
    record_called_search,
    record_citations,
    record_search,
    render_searches,
)
from lamina.engine.runners.composer import with_composer
from lamina.engine.runners.mid_turn_messages import Inbox
from lamina.engine.runners.sender import Sender
from lamina.engine.session.session import Session, core_of
from lamina.engine.session.session_ports import RunnerPorts
from lamina.engine.session.turn import Turn
from lamina.engine.sources.attachments import Attachable, Attachments
from lamina.engine.sources.note_search import EVERYWHERE, merge_results
from lamina.errors import TurnStateError

Listener = Callable[[Event], Awaitable[None] | None]


async def notify(listener: Listener | None, event: Event) -> None:
    if listener is not None and (pending := listener(event)) is not None:
        await pending


class RunContext:
    """The state that the loop and its mode share: a session, access to its models, the target of a
    run, its tally, and the basis of a question. `search_result` is what was found for it, `sources`
    those that its answer may cite (None if nothing was searched), and `notes` the journal entries
    about its request, by kind.
    """

    def __init__(
        self, session: Session, providers: Providers, tools: ToolHost | None = None
    ) -> None:
        """`tools` are those that the runner runs, if any."""
        self.session = session
        self.core = core_of(session)
        self.providers = providers
        self.inbox = Inbox(session)
        self._sender = Sender(session, providers)
        list_tools = tools.toolset if tools is not None else None
        self.core.connect(RunnerPorts(emit=self.emit, list_tools=list_tools))
        self.start()

    def start(self, listener: Listener | None = None) -> None:
        """Begin a run."""
        self.listener = listener
        # None: the session's target.
        self.target: str | None = None
        self.tally = Tally()
        self.inbox.takes_kept = False
        self.start_question()

    def start_question(self) -> None:
        """Begin a question: nothing has been searched for it yet."""
        self.search_result: NoteSearchResult | None = None
        self.sources: tuple[CitedSource, ...] | None = None
        self.notes: dict[str, dict[str, Any]] = {}
        # The last request whose answer cites sources, and the meaning of its numbers.
        self._cited: tuple[str, tuple[CitedSource, ...]] = ("", ())

    async def emit(self, event: Event) -> None:
        self.tally.note(event)
        log_event(self.session.id, event)
        await notify(self.listener, event)

    async def warn(self, *texts: str) -> None:
        for text in texts:
            await self.emit(WarningIssued(text=text))

    async def reach(self, target: str | None) -> None:
        """Check that the target can be asked before anything is written; messages sent during the
        turn use it, too.

        Raises:
            ProviderError: it cannot be asked: no key, no SDK, no model.
        """
        self.target = target
        await self.providers.provider(self.session.target(target))

    async def prepare(
        self,
        text: str,
        attach: Iterable[Attachable],
        target: str | None,
        *,
        toolset: Toolset | None = None,
        tool_texts: tuple[ToolText, ...] = (),
        attachments: Attachments | None = None,
        answer_only: bool = False,
    ) -> Turn:
        """Return a request for a question, which supersedes calls that still wait; with
        `answer_only`, the calls of its answer are not run.
        """
        await self.supersede_calls()
        return await self.core.turns.prepare(
            text,
            attach,
            target,
            tool_texts,
            starting=True,
            toolset=toolset,
            attachments=attachments,
            answer_only=answer_only,
            taken=self.inbox.taken,
            follows=self.inbox.is_asking,
        )

    async def supersede_calls(self) -> None:
        """End a turn whose calls wait, because another question is asked. The next request warns
        about calls that will not run.
        """
        turns = self.core.turns
        await turns.go_back()
        calls = self.session.pending_calls
        why = wording_in(self.session.state).call_superseded
        if await self.session.abandon_turn(why) and calls:
            names = ", ".join(call.name for call in calls)
            turns.warn(f"these calls were waiting, and a new question dropped them: {names}")

    async def open_turn(self) -> Turn:
        """Return the unfinished turn, for the target of the run.

        Raises:
            TurnStateError: the last turn is complete.
        """
        left = await self.core.turns.current()
        turn = await self.session.current_turn(target=self.target)
        if turn is None or left is None:
            raise TurnStateError("the last turn is complete: there is nothing to continue")
        if turn.id != left.id:
            # It was made again for another target.
            await self._copy_notes(left.id, turn.id)
        self.target = turn.target
        return turn

    async def ask_again(self, answer: str | None) -> None:
        """Make a sibling of an answer's request and leave it open, for the target of the run."""
        left = self.core.find_request(answer)
        turn = await self.session.regenerate(left, target=self.target)
        await self._copy_notes(left, turn.id)

    async def _copy_notes(self, left: str, request: str) -> None:
        """Let a request that was made again keep the basis of the previous one, except for searches
        that its answer called for, and its citations.
        """
        customs = [entry for entry in self.session.entries if isinstance(entry, CustomEntry)]
        for entry in customs:
            is_own = is_note_about(entry, left) and "query" not in entry.data
            if is_own and entry.kind != CITED:
                await self.session.add_custom_entry(entry.kind, {**entry.data, "request": request})

    async def send(self, turn: Turn) -> Turn:
        """Send a request; return the answered turn."""
        self.tally.requests += 1
        self.tally.turn = turn
        sent = await self._sender.send(turn, self.emit, self._number_citations)
        self.tally.turn = answered_turn = sent
        if answered_turn.id != turn.id:
            # It was too long and was made again; it is based on the same results.
            await self.note_request(answered_turn.id)
        return answered_turn

    async def rest_on(self, result: NoteSearchResult, hits: tuple[Hit, ...], scope: Scope) -> None:
        """Base the question on these hits, the first of those found for it in `scope`."""
        await self._rest_on(result, hits, scope, list_sources(hits))

    async def rest_on_searches(
        self, searches: Sequence[SearchOutput], shown: Sequence[SearchOutput], scope: Scope
    ) -> None:
        """Base the question on search results: on as much of them as is `shown`."""
        found, seen = (
            merge_results([o.result for o in outputs if o.name == LOCAL_SEARCH])
            for outputs in (searches, shown)
        )
        pages = tuple(hit for o in shown if o.name != LOCAL_SEARCH for hit in o.result.hits)
        await self._rest_on(found, seen.hits, scope, render_searches(shown)[1], pages)

    async def _rest_on(
        self,
        result: NoteSearchResult,
        hits: tuple[Hit, ...],
        scope: Scope,
        sources: tuple[CitedSource, ...],
        pages: tuple[Hit, ...] = (),
    ) -> None:
        total, count = len(result.hits), len(hits)
        if count < total:
            room = f"room for {count}" if count else "no room for any"
            await self.warn(f"there is {room} of the {total} passages that were found")
        self.search_result = replace(result, hits=(*hits, *pages), without_room=total - count)
        self.sources = sources
        self.notes[SEARCHED] = record_search(scope, result, hits, sources, pages)

    async def add_search(self, output: SearchOutput, request: str) -> str:
        """Also base the question on a search in the middle of its turn; return its results as the
        model reads them.
        """
        known, result = self.sources or (), output.result
        self.sources = sources = list_sources(result.hits, known)
        earlier = [self.search_result] if self.search_result else []
        self.search_result = merge_results([*earlier, result])
        record = record_called_search(request, output.query, result, sources, known)
        await self.session.add_custom_entry(SEARCHED, record)
        await self.warn(*result.warnings)
        return output.render(known)

    async def _number_citations(self, turn: Turn, reply: Reply) -> Reply:
        """Return an answer with its citations in order of first mention, as shown to the person:
        the journal keeps these numbers and their meaning, so that they are understood when the
        person mentions one later.
        """
        texts = [block for block in reply.blocks if isinstance(block, Text)]
        calls = any(isinstance(block, ToolCall) for block in reply.blocks)
        if not self.sources or calls or not texts:
            return reply
        citation = cite("".join(block.text for block in texts), self.sources)
        if citation.is_silent:
            return reply
        blocks = (
            Text(citation.text) if block is texts[0] else block
            for block in reply.blocks
            if block is texts[0] or not isinstance(block, Text)
        )
        with anyio.CancelScope(shield=True):
            record = record_citations(turn.id, citation.sources)
            await self.session.add_custom_entry(CITED, record)
        self._cited = (turn.id, citation.sources)
        return replace(reply, blocks=tuple(blocks))

    async def keep_sources(
        self,
        sources: tuple[CitedSource, ...] | None,
        result: NoteSearchResult | None,
        request: str,
    ) -> None:
        """Let a message that replaced a question use that question's search results, unless it has
        sources of its own.
        """
        if sources and self.sources is None:
            self.sources, self.search_result = sources, result
            record = record_search(EVERYWHERE, result or NoteSearchResult(), (), sources)
            await self.session.add_custom_entry(SEARCHED, record | {"request": request})

    async def note_request(self, request: str) -> None:
        """Write the notes about a request to the journal."""
        for kind, record in self.notes.items():
            await self.session.add_custom_entry(kind, record | {"request": request})

    def end(self, ending: Ending, turn: Turn | None, waiting: Sequence[WaitingCall] = ()) -> Answer:
        """Return the answer that ends a run."""
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
            cost=tally.cost.known,
            unpriced=tally.cost.unpriced,
            waiting_calls=tuple(waiting),
            warnings=tuple(tally.warnings),
        )

    async def answer(self, turn: Turn) -> Answer:
        """Return the answer of a turn, with its citations if notes were searched."""
        if turn.pending_calls or self.sources is None:
            answer = self.end("called" if turn.pending_calls else "answered", turn)
            return replace(answer, search_result=self.search_result)
        request, cited = self._cited
        citation = cite(turn.answer, cited if request == turn.id else self.sources)
        if citation.unknown:
            numbers = ", ".join(f"[^{number}]" for number in citation.unknown)
            await self.warn(f"the answer cites {numbers}, and no source has that number")
        answer = self.end("answered", turn)
        return replace(
            answer, text=citation.text, sources=citation.sources, search_result=self.search_result
        )

    def _partial_text(self) -> str:
        """Return the stored part of an answer that was stopped."""
        messages = self.session.envelope.cached
        if self.session.interrupted or not len(messages) or messages[-1].role != "assistant":
            return ""
        return messages[-1].text


def is_note_about(entry: CustomEntry, request: str) -> bool:
    """Return whether an entry is a runner's note about a request."""
    return isinstance(entry.data, dict) and entry.data.get("request") == request


class RunMode:
    """The way in which a runner answers. This class is a chat: one request for a question, one
    answer; other modes override the parts that differ.
    """

    def __init__(self, run: RunContext) -> None:
        self._run = run

    async def begin(self, text: str, attach: Iterable[Attachable], target: str | None) -> Turn:
        """Return the first request for a question."""
        return await self._run.prepare(text, with_composer(text, attach), target)

    async def resume(self) -> Turn:
        """Return the unfinished turn."""
        return await self._run.open_turn()

    async def ask_again(self, answer: str | None) -> Turn:
        """Return a new request for the same answer."""
        await self._run.ask_again(answer)
        return await self.resume()

    async def after(self, turn: Turn) -> Turn | Answer:
        """Return what follows an answered request: the next request, or the answer. Messages sent
        in the meantime come after the answer, and wait while calls are waiting.
        """
        following = None if turn.pending_calls else await self._run.inbox.take(self._ask_next)
        return following or await self._run.answer(turn)

    async def _ask_next(self, text: str) -> Turn:
        """Return the request for a message that was sent in the meantime."""
        self._run.start_question()
        return await self.begin(text, (), self._run.target)

    async def end(self) -> None:
        """Store messages that waited for the turn, because nothing is running any more."""
        await self._run.inbox.settle()

    async def preview(
        self, text: str, attach: Iterable[Attachable], target: str | None
    ) -> Preview | PlanPreview:
        """Return a preview of the first request for a question."""
        turn = await self.begin(text, attach, target)
        warnings = tuple(self._run.tally.warnings)
        return Preview(turn=turn, search_result=self._run.search_result, warnings=warnings)
