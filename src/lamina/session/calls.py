"""Calls that wait: their results so far, decisions about them, and giving up on the rest.

Law: what a tool gave is written down at once, so that it is not run again.
"""

from msgspec.structs import replace

from lamina.audit.kept_results import find_result
from lamina.codec import mend_text
from lamina.errors import TurnStateError, UsageError
from lamina.journal import awaits_results
from lamina.ports import JournalStore
from lamina.record.record import Record
from lamina.sources.hook_runs import run_message_hooks
from lamina.sources.hooks import Hooks
from lamina.values.entry import (
    PROBLEM,
    CustomEntry,
    DecisionEntry,
    LeaveEntry,
    MessageEntry,
    ResultEntry,
)
from lamina.values.message import Message, ToolCall, ToolResult
from lamina.values.tool import Decision, OfferedTool


def waiting_calls(record: Record) -> tuple[ToolCall, ...]:
    """The calls of the last answer that have no result yet, not even one kept early."""
    state = record.state
    if not awaits_results(state):
        return ()
    return tuple(call for call in state.envelope.cached[-1].calls if call.id not in state.results)


async def keep_result(
    record: Record, store: JournalStore, result: ToolResult, whole: str = ""
) -> None:
    """Keeps what a tool gave while other calls of its turn wait, and beside it the `whole` of a
    text that was cut: on disk before the entry that names it.

    Raises:
        TurnStateError: no such call waits.
    """
    _require(record, result.call_id)
    result = replace(result, name=mend_text(result.name), text=mend_text(result.text))
    digest = await store.put_blob(mend_text(whole).encode()) if whole else ""
    await record.write(ResultEntry, result=result, whole=digest)


async def read_result(record: Record, store: JournalStore, what: str) -> str:
    """All of a result that is kept, by its call's id or a digest.

    Raises:
        UsageError: there is none.
        JournalError: what was cut off it is not there any more.
    """
    result = find_result(record.entries.values(), what)
    return (await store.get_blob(result.digest)).decode() if result.digest else result.text


async def keep_decision(
    record: Record, call_id: str, tool: OfferedTool, decision: Decision, *, planned: bool = False
) -> None:
    """Keeps what a person decided about a call that waits; a `planned` one waits in no answer.

    Raises:
        TurnStateError: no such call waits.
        UsageError: it is not a decision.
    """
    if decision not in ("allow_once", "allow_session", "deny"):
        raise UsageError(f"{decision!r} is not one of allow_once, allow_session, deny")
    if not planned:
        _require(record, call_id)
    await record.write(
        DecisionEntry, call_id=call_id, tool=tool.id, digest=tool.digest, decision=decision
    )


def _require(record: Record, call_id: str) -> None:
    waiting = [call.id for call in waiting_calls(record)]
    if call_id not in waiting:
        raise TurnStateError(f"no call {call_id!r} waits; those that do: {waiting!r}")


async def give_up(record: Record, hooks: Hooks, why: str) -> bool:
    """Ends a turn whose calls wait: what ran keeps its result, as hooks changed it; the rest gets
    `why` as its result. False if no call waits."""
    state = record.state
    if not awaits_results(state) or state.open_request is not None:
        return False
    blocks = tuple(
        state.results.get(call.id)
        or ToolResult(call_id=call.id, name=call.name, text=why, is_error=True)
        for call in state.envelope.cached[-1].calls
    )
    page = record.page()
    message = Message(role="tool", blocks=blocks, id=page.next_id())
    message, warnings = await run_message_hooks(hooks, record.id, message, state.envelope)
    page.write(MessageEntry, message=message, whole_results=dict(state.whole_results))
    for warning in warnings:
        page.write(CustomEntry, kind=PROBLEM, data={"where": "message hook", "problem": warning})
    page.write(LeaveEntry)
    await record.keep(page.written, page.state)
    return True
