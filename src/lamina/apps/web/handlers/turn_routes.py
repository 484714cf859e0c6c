"""Turns: started, watched, stopped, steered, and their calls decided."""

from collections.abc import Awaitable, Callable, Iterable

from lamina.apps.views.session_opener import ensure_target
from lamina.apps.web.completions import attachments_of
from lamina.apps.web.http_answers import Refusal
from lamina.apps.web.http_bodies import EventStream
from lamina.apps.web.kept_opening import KeptNotices
from lamina.apps.web.open_session import LoggedTurn, OpenSession, TurnWork
from lamina.apps.web.routes import Call, Route
from lamina.apps.web.server_events import number_after
from lamina.apps.web.session_records import (
    Aborted,
    CompactionDone,
    DecisionBody,
    DecisionKept,
    EditedQuestion,
    MessageTaken,
    NewTurn,
    Ping,
    RepeatedAnswer,
    ResumedTurn,
    SentMessage,
    TurnBegun,
    TurnFailed,
    TurnKind,
)
from lamina.core.values.event import Event, TurnEnded
from lamina.engine.runners.runner import AgentRunner, Listener
from lamina.engine.session.session import core_of
from lamina.engine.sources.attachments import Attachable
from lamina.errors import TurnStateError, UsageError

SESSION = "/api/workspaces/{workspace}/sessions/{session}"
_KEY = "idempotency-key"
Begin = Callable[[OpenSession], Awaitable[TurnWork]]


async def ask(call: Call) -> TurnBegun:
    body: NewTurn = call.body
    _require_text(body.text)

    async def begin(opened: OpenSession) -> TurnWork:
        attach = await _attachments(call, opened, body.text, body.attach, body.essential)

        async def work(turn: LoggedTurn) -> object:
            return await opened.runner.run(
                body.text, attach=attach, target=body.target, on_event=_listener(opened, turn)
            )

        return work

    return await _begin(call, "prompt", body.target, begin)


async def edit(call: Call) -> TurnBegun:
    body: EditedQuestion = call.body
    _require_text(body.text)

    async def begin(opened: OpenSession) -> TurnWork:
        core = core_of(opened.session)
        # Refuse an unknown question now, not in the turn.
        await opened.session.attachments_of(core.record.find(body.question).id)
        attach: Iterable[Attachable] | None = None
        if body.attach is not None or body.essential is not None:
            attach = await _attachments(
                call, opened, body.text, body.attach or (), body.essential or ()
            )

        async def work(turn: LoggedTurn) -> object:
            return await opened.runner.edit(
                body.question, body.text, attach=attach, target=body.target,
                on_event=_listener(opened, turn),
            )  # fmt: skip

        return work

    return await _begin(call, "edit", body.target, begin)


async def regenerate(call: Call) -> TurnBegun:
    body: RepeatedAnswer = call.body

    async def begin(opened: OpenSession) -> TurnWork:
        core_of(opened.session).find_request(body.answer)

        async def work(turn: LoggedTurn) -> object:
            return await opened.runner.regenerate(
                body.answer, target=body.target, on_event=_listener(opened, turn)
            )

        return work

    return await _begin(call, "regenerate", body.target, begin)


async def resume(call: Call) -> TurnBegun:
    body: ResumedTurn = call.body

    async def begin(opened: OpenSession) -> TurnWork:
        if core_of(opened.session).record.is_settled:
            raise TurnStateError("the last turn is complete: there is nothing to continue")
        return _resume_work(opened, body.target)

    return await _begin(call, "resume", body.target, begin)


def _resume_work(opened: OpenSession, target: str | None = None) -> TurnWork:
    async def work(turn: LoggedTurn) -> object:
        return await opened.runner.resume(target=target, on_event=_listener(opened, turn))

    return work


async def compact(call: Call) -> TurnBegun:
    async def begin(opened: OpenSession) -> TurnWork:
        if opened.session.interrupted or opened.session.pending_calls:
            raise TurnStateError("a turn was interrupted: continue it first")

        async def work(turn: LoggedTurn) -> object:
            outcome = await opened.session.compact()
            names = ("changed", "reason", "summary", "by", "messages", "tokens_dropped", "problem")
            values = {name: getattr(outcome, name) for name in names}
            turn.log.add("compaction", CompactionDone(**values))
            turn.end = TurnEnded(ending="answered", answer="", requests=0)
            return outcome

        return work

    return await _begin(call, "compact", None, begin)


async def _begin(call: Call, kind: TurnKind, target: str | None, begin: Begin) -> TurnBegun:
    """Start a turn, or return the one that was started with the same key."""
    key = call.headers.get(_KEY, "")
    async with call.desk.session(call.workspace, call.session) as opened:
        if (known := opened.turns.known(key)) is not None:
            return TurnBegun(turn=known)
        opened.turns.require_idle()
        if kind != "compact":
            await ensure_target(opened.session.target(target), KeptNotices())
        turn = opened.turns.begin(kind, await begin(opened), key)
        return TurnBegun(turn=turn.id)


async def _attachments(
    call: Call, opened: OpenSession, text: str, attach: tuple[str, ...], essential: tuple[str, ...]
) -> list[Attachable]:
    folder = call.desk.workspace(call.workspace)
    return await attachments_of(opened.session, folder, text, attach, essential)


def _listener(opened: OpenSession, turn: LoggedTurn) -> Listener:
    async def hear(event: Event) -> None:
        opened.heed(event)
        await turn.hear(event)

    return hear


def _require_text(text: str) -> None:
    if not text.strip():
        raise Refusal(422, "invalid", "the text is blank", ("text",))


# -- while a turn runs -----------------------------------------------------------------------------


async def watch_turn(call: Call) -> EventStream:
    await call.desk.require_session(call.workspace, call.session)
    turn = _find_open(call).turns.find(call.path["turn"])
    return EventStream(turn.log.follow(number_after(call.headers)))


async def abort_turn(call: Call) -> Aborted:
    await call.desk.require_session(call.workspace, call.session)
    turns = _find_open(call).turns
    return Aborted(aborted=turns.abort(turns.find(call.path["turn"]).id))


def _find_open(call: Call) -> OpenSession:
    opened = call.desk.find_open(call.workspace, call.session)
    if opened is None:
        # It runs no turn and keeps none of its last ones.
        raise Refusal(404, "unknown_turn", f"turn {call.path['turn']!r} is no longer kept")
    return opened


async def send_message(call: Call) -> MessageTaken:
    body: SentMessage = call.body
    _require_text(body.text)
    async with call.desk.session(call.workspace, call.session) as opened:
        running = opened.runner.running
        await opened.runner.send_message(body.text, deliver=body.deliver)
        return MessageTaken(running=running)


async def decide(call: Call) -> DecisionKept:
    body: DecisionBody = call.body
    call_id = call.path["call"]
    async with call.desk.session(call.workspace, call.session) as opened:
        if opened.approvals is not None and call_id in opened.planned_calls:
            opened.approvals.give(call_id, body.decision)
            waiting = tuple(other for other in opened.planned_calls if other != call_id)
            return _kept(call_id, body, waiting, None)
        session = opened.session
        if call_id not in [pending.id for pending in session.pending_calls]:
            raise Refusal(404, "unknown_call", f"no call {call_id!r} waits for a decision")
        opened.turns.require_idle()
        if call_id in session.state.turn.decisions:
            raise TurnStateError(f"call {call_id!r} has already been decided")
        if not isinstance(opened.runner, AgentRunner):
            raise UsageError("this session answers from notes: it runs no tools")
        await opened.runner.decide(call_id, body.decision)
        waiting = tuple([pending.id for pending, _ in await opened.waiting_calls()])
        turn: str | None = None
        if not waiting:
            turn = opened.turns.begin("resume", _resume_work(opened)).id
        else:
            call.desk.bulletin.publish(call.workspace, opened.news)
        return _kept(call_id, body, waiting, turn)


def _kept(
    call_id: str, body: DecisionBody, waiting: tuple[str, ...], turn: str | None
) -> DecisionKept:
    return DecisionKept(call_id=call_id, decision=body.decision, waiting=waiting, turn=turn)


ROUTES = (
    Route(
        method="POST", path=f"{SESSION}/turns", handler=ask, body=NewTurn, result=TurnBegun,
        right="chat", status=202, summary="Asks a question.",
    ),
    Route(
        method="POST", path=f"{SESSION}/edit", handler=edit, body=EditedQuestion,
        result=TurnBegun, right="chat", status=202,
        summary="Edits an earlier question on a new branch.",
    ),
    Route(
        method="POST", path=f"{SESSION}/regenerate", handler=regenerate, body=RepeatedAnswer,
        result=TurnBegun, right="chat", status=202,
        summary="Generates an answer again on a new branch.",
    ),
    Route(
        method="POST", path=f"{SESSION}/resume", handler=resume, body=ResumedTurn,
        result=TurnBegun, right="chat", status=202,
        summary="Continues an interrupted turn.",
    ),
    Route(
        method="POST", path=f"{SESSION}/compact", handler=compact, result=TurnBegun,
        right="chat", status=202, summary="Replaces older history with a summary.",
    ),
    Route(
        method="GET", path=f"{SESSION}/turns/{{turn}}/events", handler=watch_turn,
        result=Event | CompactionDone | TurnFailed | Ping, form="events",
        summary="Streams a turn's numbered events, from Last-Event-ID on. Ends with `end` or "
        "`failed`.",
    ),
    Route(
        method="DELETE", path=f"{SESSION}/turns/{{turn}}", handler=abort_turn, result=Aborted,
        right="chat", summary="Stops a turn; its partial answer is kept.",
    ),
    Route(
        method="POST", path=f"{SESSION}/messages", handler=send_message, body=SentMessage,
        result=MessageTaken, right="chat",
        summary="Sends a message while a turn runs.",
    ),
    Route(
        method="POST", path=f"{SESSION}/calls/{{call}}/decision", handler=decide,
        body=DecisionBody, result=DecisionKept, right="chat",
        summary="Decides a waiting call; after the last one, the turn continues.",
    ),
)  # fmt: skip
