"""Handles approvals: which calls need a person's decision, how to ask for it, and how long it
applies.

Laws: a decision applies to the tool as it was shown; it expires when the tool's description
changes. `Session.keep_decision` stores it.
"""

from collections.abc import Mapping

from msgspec import Struct

from lamina.core.ports import Approver
from lamina.core.values.entry import DecisionEntry
from lamina.core.values.event import ApprovalDecided, ApprovalWanted
from lamina.core.values.item import ItemId
from lamina.core.values.message import ToolCall
from lamina.core.values.tool import ApprovalPolicy, Decision, OfferedTool
from lamina.engine.session.session import Session
from lamina.engine.session.session_ports import Emit


class WaitingCall(Struct, frozen=True, kw_only=True):
    """A call that waits for a decision, and its tool."""

    call: ToolCall
    tool: OfferedTool


def needs_decision(
    tool: OfferedTool, policy: ApprovalPolicy, allowances: Mapping[ItemId, str]
) -> bool:
    """Return whether a person must be asked; a call allowed for the session is not asked about
    again while the tool's description stays the same.
    """
    if policy == "never" or allowances.get(tool.id) == tool.digest:
        return False
    return policy == "always" or tool.permission == "required"


def holds(entry: DecisionEntry, tool: OfferedTool) -> bool:
    """Return whether a decision still applies to this tool: the allowed tool is the one that was
    shown.
    """
    return entry.decision == "deny" or (entry.tool, entry.digest) == (tool.id, tool.digest)


async def ask_person(
    session: Session,
    approver: Approver | None,
    waiting: WaitingCall,
    emit: Emit,
    *,
    planned: bool = False,
) -> Decision | None:
    """Return a person's decision about a call, and store it; None if there is no person to ask."""
    call, tool = waiting.call, waiting.tool
    # Just allowed for the session, for another call of the same answer.
    if session.state.allowed.get(tool.id) == tool.digest:
        return "allow_session"
    await emit(ApprovalWanted(call=call, tool=tool))
    if approver is None:
        return None
    decision = await approver.decide(call, tool)
    await session.keep_decision(call.id, tool, decision, planned=planned)
    await emit(ApprovalDecided(call_id=call.id, decision=decision))
    return decision
