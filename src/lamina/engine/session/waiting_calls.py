"""Handles waiting calls: decisions about them, and abandoning the rest."""

from msgspec.structs import replace

from lamina.core.assembly.turn_items import lay_found
from lamina.core.journal import awaits_results
from lamina.core.values.entry import PROBLEM, CustomEntry, DecisionEntry, LeaveEntry, MessageEntry
from lamina.core.values.message import Message, ToolCall, ToolResult
from lamina.core.values.request import NOTHING
from lamina.core.values.tool import Decision, OfferedTool
from lamina.engine.record.record import Record
from lamina.engine.sources.found_tools import attach_finds, find_loads
from lamina.engine.sources.hook_runs import TurnHooks
from lamina.errors import TurnStateError, UsageError


def pending_calls(record: Record) -> tuple[ToolCall, ...]:
    """Return the calls of the last answer that have no result yet, not even one stored early."""
    state = record.state
    if not awaits_results(state):
        return ()
    return tuple(
        call for call in state.envelope.cached[-1].calls if call.id not in state.turn.results
    )


async def keep_decision(
    record: Record, call_id: str, tool: OfferedTool, decision: Decision, *, planned: bool = False
) -> None:
    """Store a person's decision about a waiting call; a `planned` call does not belong to an
    answer.

    Raises:
        TurnStateError: the call is not waiting.
        UsageError: the value is not a decision.
    """
    if decision not in ("allow_once", "allow_session", "deny"):
        raise UsageError(f"{decision!r} is not one of allow_once, allow_session, deny")
    if not planned:
        require_waiting(record, call_id)
    await record.write(
        DecisionEntry, call_id=call_id, tool=tool.id, digest=tool.digest, decision=decision
    )


def require_waiting(record: Record, call_id: str) -> None:
    """Raises:
    TurnStateError: the call is not waiting."""
    waiting = [call.id for call in pending_calls(record)]
    if call_id not in waiting:
        raise TurnStateError(f"call {call_id!r} is not waiting; waiting calls: {waiting!r}")


async def abandon_turn(record: Record, hooks: TurnHooks, why: str) -> bool:
    """End a turn whose calls wait: calls that ran keep their results, as hooks changed them; the
    others get `why` as their result. Return False if no call waits.
    """
    state = record.state
    if not awaits_results(state) or state.requests.open is not None:
        return False
    blocks = tuple(
        state.turn.results.get(call.id)
        or ToolResult(call_id=call.id, name=call.name, text=why, is_error=True)
        for call in state.envelope.cached[-1].calls
    )
    async with record.writing() as page:
        message = Message(role="tool", blocks=blocks, id=page.next_id())
        hooked = await hooks.on_reply(message, state, state.requests.sent)
        wholes = dict(state.turn.whole_results)
        message = replace(hooked.message, blocks=(*hooked.message.blocks, *find_loads(state)))
        page.write(MessageEntry, message=message, whole_results=wholes)
        lay_found(page, (), attach_finds(state, (), NOTHING).attachments)
        for warning in hooked.warnings:
            problem = {"where": "message hook", "problem": warning}
            page.write(CustomEntry, kind=PROBLEM, data=problem)
        page.write(LeaveEntry)
    return True
