"""Sends one request and reads its answer, piece by piece.

Laws: a partial answer is stored if it broke off or was stopped; a provider's error is recorded and
leaves the turn open. An overflow is handled once, by a compaction.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing, suppress
from typing import Any

import anyio
from msgspec import Struct
from msgspec.structs import replace

from lamina.core.codec import mend_text
from lamina.core.ledger import cost_of
from lamina.core.ports import CacheMaker, Providers
from lamina.core.values.entry import CACHE, PROBLEM
from lamina.core.values.event import (
    AnswerChanged,
    AnswerHeld,
    BlockDelta,
    BlockEnded,
    BlockKind,
    BlockStarted,
    Event,
    HookShown,
    PromptProgress,
    RequestRetried,
    RequestStarted,
    UsageReported,
    WarningIssued,
)
from lamina.core.values.message import Block, Text, Thinking, ToolCall
from lamina.core.values.settings import Target
from lamina.core.values.usage import Usage
from lamina.core.values.wire import (
    CallPiece,
    Piece,
    ProgressPiece,
    Reply,
    ResentPiece,
    TextPiece,
    ThinkingPiece,
)
from lamina.engine.logger import log_failure
from lamina.engine.session.session import Session, core_of
from lamina.engine.session.session_ports import Emit
from lamina.engine.session.session_spending import SessionCacheCharge
from lamina.engine.session.turn import Turn
from lamina.errors import LaminaError, ProviderError, ReplyError, RequestTooLong, SpendError

# Stores the reply to a request.
Finish = Callable[[Turn, Reply], Awaitable[Reply]]
STOPPED = "stopped"
BROKE_OFF = "broke_off"


class Sender:
    """Sends the requests of one session."""

    def __init__(self, session: Session, providers: Providers) -> None:
        self._session = session
        self._providers = providers
        self._spending = core_of(session).turns.spending
        # Explicit caches forbidden by a limit; each is reported once.
        self._refused_caches: set[str] = set()

    async def send(self, turn: Turn, emit: Emit, finish: Finish) -> Turn:
        """Send a prepared request and commit the answer, as `finish` leaves it; return the answered
        turn.

        Raises:
            ProviderError, ReplyError: there is no complete answer. What arrived is stored; if
                nothing did, the turn stays open and can be sent again.
            WindowExceeded: the request is too long, and compaction did not help.
            SpendLimit: the request, or sending it again, could pass a limit.
        """
        while True:
            await self._pass_gate(turn)
            context = turn.context
            event = RequestStarted(
                request=turn.id, target=context.target, context=context, layers=turn.layers
            )
            await emit(event)
            for shown in turn.displays:
                await emit(HookShown(hook=shown.hook, display=shown.display))
            for warning in turn.warnings:
                await emit(WarningIssued(text=warning))
            try:
                return await self._exchange(turn, emit, finish)
            except (ProviderError, ReplyError) as error:
                log_failure(self._session.id, turn.id, error)
                problem = {"where": "provider", "problem": mend_text(str(error))}
                await self._session.add_custom_entry(PROBLEM, problem)
                if not isinstance(error, RequestTooLong):
                    raise
                turn = await turn.retry_smaller()
                await emit(RequestRetried(reason=str(error)))

    async def _pass_gate(self, turn: Turn) -> None:
        if (gate := self._spending.gate) is None:
            return
        try:
            await gate(turn)
        except BaseException:
            # It is not sent now; if it is sent later, its price is reserved then.
            await turn.release()
            raise

    async def _exchange(self, turn: Turn, emit: Emit, finish: Finish) -> Turn:
        target = self._session.target(turn.context.target)
        try:
            provider = await self._providers.provider(target)
        except BaseException:
            await turn.release()
            raise
        if isinstance(provider, CacheMaker):
            provider.charge_caches(self._session.id, self._cache_payer(target, emit))
        await self._spending.begin_sending(turn.entry, turn.prompt)
        incoming, stream = _Incoming(), _AnswerStream(emit, self._session.hooks.answer_changers)
        began = anyio.current_time()
        first_s: float | None = None
        try:
            async with aclosing(provider.stream(turn.request())) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    if isinstance(piece, ResentPiece):
                        await self._spending.begin_sending(turn.entry, turn.prompt)
                    for event in incoming.take(piece):
                        if first_s is None and isinstance(event, BlockStarted):
                            first_s = anyio.current_time() - began
                        await stream.report(event)
            for event in incoming.end():
                await stream.report(event)
        except RequestTooLong as error:
            await self._spending.end_failed_request(turn.id, error)
            raise  # it is made again: what arrived is void
        except BaseException as error:
            is_stopped = isinstance(error, anyio.get_cancelled_exc_class())
            stop = STOPPED if is_stopped else BROKE_OFF
            with anyio.CancelScope(shield=True):
                is_kept = await self._keep_partial(turn, incoming, stop, stream)
                if is_kept and is_stopped:
                    await self._report_cost(turn, incoming, emit)
                if not is_kept:
                    await self._spending.end_failed_request(turn.id, error)
            raise
        reply = incoming.reply
        if reply is None:
            problem = "the answer broke off"
            if not await self._keep_partial(turn, incoming, BROKE_OFF, stream):
                raise ProviderError(f"{problem} before its first word; send it again")
            raise ProviderError(f"{problem}; what came of it is kept")
        try:
            # The part to store if it is stopped from now on.
            incoming.reply = await finish(turn, reply)
            answered = await turn.commit(incoming.reply)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._keep_partial(turn, incoming, STOPPED, stream)
            raise
        await stream.end(answered, reply)
        await emit(
            UsageReported(
                request=turn.id,
                usage=reply.usage,
                verdict=answered.verdict,
                cost=cost_of(reply.usage, target),
                first_s=first_s,
                total_s=anyio.current_time() - began,
            )
        )
        for shown in answered.displays[len(turn.displays) :]:
            await emit(HookShown(hook=shown.hook, display=shown.display))
        for warning in answered.warnings:
            if warning not in turn.warnings:
                await emit(WarningIssued(text=warning))
        return answered

    def _cache_payer(self, target: Target, emit: Emit) -> "_CachePayer":
        return _CachePayer(self._session, target, emit, self._refused_caches)

    async def _report_cost(self, turn: Turn, incoming: "_Incoming", emit: Emit) -> None:
        """Report the cost of a stopped answer, as far as it is known; there may be no listener."""
        usage = incoming.usage()
        cost = cost_of(usage, self._session.target(turn.context.target))
        with anyio.move_on_after(1):
            await emit(UsageReported(request=turn.id, usage=usage, cost=cost))

    async def _keep_partial(
        self, turn: Turn, incoming: "_Incoming", stop: str, stream: "_AnswerStream"
    ) -> bool:
        """Store the words of an answer that will not be complete. Return False if there are none:
        then the request stays open.
        """
        if not self._session.interrupted:
            return True
        reply = incoming.reply or incoming.partial_reply(stop)
        if reply is None:
            return False
        try:
            # Hooks and compaction at the end of a turn take time that is not available now.
            kept = await turn.commit(reply, end=False)
        except LaminaError as error:
            await self._session.add_custom_entry(
                PROBLEM, {"where": "partial answer", "problem": str(error)}
            )
            return False
        with anyio.move_on_after(1):
            await stream.end(kept, reply)
        return True


class _CachePayer:
    """Pays for a session's explicit caches: in its account, in its journal, and in an event to the
    turn's listener.
    """

    def __init__(self, session: Session, target: Target, emit: Emit, refused: set[str]) -> None:
        self._session = session
        self._target = target
        self._emit = emit
        self._refused = refused

    async def reserve_cache(
        self, tokens: int, seconds: float, *, creates: bool
    ) -> SessionCacheCharge | None:
        spending = core_of(self._session).turns.spending
        try:
            return await spending.reserve_cache(
                self._target, tokens, seconds, creates=creates, note=self._note
            )
        except SpendError as error:
            act = "created" if creates else "kept for longer"
            if act not in self._refused:
                self._refused.add(act)
                await self._emit(WarningIssued(text=f"the explicit cache was not {act}: {error}"))
            return None

    async def _note(self, kind: str, data: dict[str, Any]) -> None:
        # The session may be closed by now; the account has the cost in any case.
        with suppress(LaminaError):
            await self._session.add_custom_entry(kind, data)
        if kind == CACHE:
            usage = Usage(input=data["tokens"])
            await self._emit(UsageReported(request="cache", usage=usage, cost=data["cost"]))


class _AnswerStream:
    """The blocks of an answer on their way to the listener. They are held back for hooks that
    change answers, so that the listener gets what is stored.
    """

    def __init__(self, emit: Emit, holders: tuple[str, ...]) -> None:
        self._emit = emit
        self._holders = holders
        self._is_holding = False

    async def report(self, event: Event) -> None:
        if self._holders and isinstance(event, BlockStarted | BlockDelta | BlockEnded):
            if not self._is_holding:
                self._is_holding = True
                await self._emit(AnswerHeld(hooks=self._holders))
            return
        await self._emit(event)

    async def end(self, answered: Turn, reply: Reply) -> None:
        """Report hook changes to a reply, as far as it differs from what was reported."""
        if self._is_holding:
            for event in _block_events(answered.message.blocks if answered.message else ()):
                await self._emit(event)
        elif answered.changed_by:
            reported = "".join(block.text for block in reply.blocks if isinstance(block, Text))
            if answered.answer != reported:
                await self._emit(AnswerChanged(hooks=answered.changed_by, text=answered.answer))


def _block_events(blocks: Iterable[Block]) -> Iterator[Event]:
    """Return the events for complete blocks."""
    incoming = _Incoming()
    for number, block in enumerate(blocks):
        match block:
            case Text(text=text):
                yield from incoming.take(TextPiece(text))
            case Thinking(text=text):
                yield from incoming.take(ThinkingPiece(text))
            case ToolCall(name=name, arguments=arguments):
                yield from incoming.take(CallPiece(index=number, name=name, arguments=arguments))
            case _:
                pass
    yield from incoming.end()


class _Run(Struct):
    """A run of pieces of the same kind."""

    kind: BlockKind
    key: int
    texts: list[str]


class _Incoming:
    """An incoming answer, as blocks."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._is_ended = False
        self._progress: ProgressPiece | None = None
        self.reply: Reply | None = None

    def take(self, piece: Piece) -> list[Event]:
        match piece:
            case Reply():
                self.reply = _with_own_ids(piece)
                return []
            case ProgressPiece(done=done, total=total, cached=cached):
                self._progress = piece
                return [PromptProgress(done=done, total=total, cached=cached)]
            case ResentPiece():
                return []
            case TextPiece(text=text):
                return self._add("text", 0, text)
            case ThinkingPiece(text=text):
                return self._add("thinking", 0, text)
            case CallPiece(index=index, name=name, arguments=arguments):
                return self._add("action", index, arguments, name)

    def _add(self, kind: BlockKind, key: int, text: str, name: str = "") -> list[Event]:
        events: list[Event] = []
        last = self._runs[-1] if self._runs else None
        if last is None or (last.kind, last.key) != (kind, key):
            events += self.end()
            self._runs.append(_Run(kind, key, []))
            self._is_ended = False
            events.append(BlockStarted(index=len(self._runs) - 1, kind=kind, name=name))
        if text:
            self._runs[-1].texts.append(text)
            events.append(BlockDelta(index=len(self._runs) - 1, text=text))
        return events

    def end(self) -> list[Event]:
        if not self._runs or self._is_ended:
            return []
        self._is_ended = True
        return [BlockEnded(index=len(self._runs) - 1)]

    def usage(self) -> Usage:
        """Return the known cost of the answer, which may not be complete."""
        if self.reply is not None:
            return self.reply.usage
        if self._progress is None:
            return Usage(cache_reported=False)
        output = sum(len(run.texts) for run in self._runs)
        return Usage(input=self._progress.total, cached=self._progress.cached, output=output)

    def partial_reply(self, stop: str) -> Reply | None:
        """Return the part of an incomplete answer that can be stored: words. An incomplete call
        cannot be stored.
        """
        blocks: list[Block] = []
        for run in self._runs:
            text = mend_text("".join(run.texts))
            if run.kind == "text" and text.strip():
                blocks.append(Text(text))
            elif run.kind == "thinking" and text.strip():
                blocks.append(Thinking(text=text))
        if not any(isinstance(block, Text) for block in blocks):
            return None
        return Reply(blocks=tuple(blocks), usage=self.usage(), stop=stop, complete=False)


def _with_own_ids(reply: Reply) -> Reply:
    """Return the reply with a unique id for every call: some servers use one id for several calls,
    and a result refers to a call only by its id.
    """
    ids: set[str] = set()
    blocks: list[Block] = []
    for block in reply.blocks:
        if isinstance(block, ToolCall):
            own, number = block.id, 1
            while own in ids:
                number += 1
                own = f"{block.id}-{number}"
            ids.add(own)
            block = replace(block, id=own)
        blocks.append(block)
    return replace(reply, blocks=tuple(blocks))
