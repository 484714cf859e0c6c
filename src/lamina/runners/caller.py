"""Running the calls of one answer: which may run, with which arguments, and their results.

Laws: arguments are checked against the definition that was sent, not against today's. Whatever is
wrong with a call is its result, for the model to read. Free calls run at once; the others wait for
a person. A result is written down when it is there.
"""

from collections.abc import Mapping, Sequence

import anyio
import msgspec
from msgspec import Struct

from lamina.assembly.tools import USE_TOOL, intended_call, is_described
from lamina.ports import Approver, ToolHost
from lamina.runners.error_groups import single_errors
from lamina.runners.sender import Emit
from lamina.schemas import check_arguments
from lamina.session.session import Session
from lamina.session.turn import Turn
from lamina.values.entry import DecisionEntry
from lamina.values.event import ApprovalDecided, ApprovalWanted, ToolFinished, ToolStarted
from lamina.values.item import ItemId
from lamina.values.message import ToolCall, ToolDefinition, ToolResult
from lamina.values.tool import DENIED, ApprovalPolicy, Decision, OfferedTool, ToolOutput

CUT_SHORT = "The call was stopped while it ran; what it did until then may stand."


class WaitingCall(Struct, frozen=True, kw_only=True):
    """A call that waits for a decision, and the tool it is for."""

    call: ToolCall
    tool: OfferedTool


class CheckedCall(Struct, frozen=True, kw_only=True):
    """A call that can be run, with its arguments read; or the problem with it. `intended` is the
    call as a person is shown it: what was called through another tool stands for itself."""

    call: ToolCall
    intended: ToolCall
    tool: OfferedTool | None = None
    arguments: Mapping[str, object] = {}
    problem: str = ""


def check_call(
    call: ToolCall, sent: Mapping[str, ToolDefinition], offered: Mapping[str, OfferedTool]
) -> CheckedCall:
    """A call checked against the definitions that were sent and the tools that are there now."""
    intended = intended_call(call, offered)
    definition = sent.get(intended.name)
    if definition is None:
        names = ", ".join(sorted(sent)) or "none"
        return _wrong(call, f"There is no tool {intended.name!r}. Tools: {names}.")
    tool = offered.get(intended.name)
    if tool is None and intended.name == USE_TOOL.name:
        return _wrong(call, "use_tool needs 'name', a text, and 'arguments', an object.")
    if tool is None:
        return _wrong(call, f"The tool {intended.name!r} is not available at present.")
    try:
        arguments = msgspec.json.decode(intended.arguments or "{}")
    except msgspec.DecodeError as error:
        return _wrong(call, f"The arguments are not valid JSON: {error}")
    if not isinstance(arguments, dict):
        return _wrong(call, "The arguments have to be a JSON object.")
    if problem := check_arguments(definition.parameters, arguments):
        return _wrong(call, f"The arguments do not fit the tool: {problem}")
    return CheckedCall(call=call, intended=intended, tool=tool, arguments=arguments)


def _wrong(call: ToolCall, problem: str) -> CheckedCall:
    return CheckedCall(call=call, intended=call, problem=problem)


def needs_decision(
    tool: OfferedTool, policy: ApprovalPolicy, allowed: Mapping[ItemId, str]
) -> bool:
    """Whether a person has to be asked; what was allowed for the session is not asked again as
    long as the tool says the same of itself."""
    if policy == "never" or allowed.get(tool.id) == tool.digest:
        return False
    return policy == "always" or tool.permission == "required"


def holds(entry: DecisionEntry, tool: OfferedTool) -> bool:
    """Whether a decision is still about this tool: what was allowed is what was shown."""
    return entry.decision == "deny" or (entry.tool, entry.digest) == (tool.id, tool.digest)


class Caller:
    """Runs the calls of a session's answers."""

    def __init__(
        self, session: Session, host: ToolHost, approver: Approver | None, emit: Emit
    ) -> None:
        self._session = session
        self._host = host
        self._approver = approver
        self._emit = emit

    async def run(self, turn: Turn, offered: Mapping[str, OfferedTool]) -> Sequence[WaitingCall]:
        """Runs what may run and keeps the results; gives back the calls that wait for a decision
        which nobody here can make."""
        state = self._session.state
        sent = sent_definitions(turn) | {
            name: tool.definition for name, tool in offered.items() if is_described(tool, state)
        }
        free: list[CheckedCall] = []
        undecided: list[CheckedCall] = []
        for call in self._session.waiting:
            checked = check_call(call, sent, offered)
            if checked.tool is None:
                await self._keep(call, ToolOutput(text=checked.problem, is_error=True), 0.0)
            elif (entry := state.decisions.get(call.id)) and holds(entry, checked.tool):
                await self._settle(checked, entry.decision, free)
            elif needs_decision(
                checked.tool, self._session.settings.ask_before_tools, state.allowed
            ):
                undecided.append(checked)
            else:
                free.append(checked)
        failure: Exception | None = None
        with single_errors():
            async with anyio.create_task_group() as group:
                for checked in free:
                    group.start_soon(self._call, checked)
                try:
                    for checked in undecided:
                        await self._ask(checked, group)
                except Exception as error:  # noqa: BLE001 - raised when the tools are done
                    failure = error
        if failure is not None:
            raise failure
        waiting = [] if self._approver else undecided
        return [WaitingCall(call=call.intended, tool=call.tool) for call in waiting if call.tool]

    async def _ask(self, checked: CheckedCall, group: anyio.abc.TaskGroup) -> None:
        assert checked.tool is not None
        state = self._session.state
        # Allowed for the session a moment ago, for another call of this answer.
        if state.allowed.get(checked.tool.id) == checked.tool.digest:
            group.start_soon(self._call, checked)
            return
        await self._emit(ApprovalWanted(call=checked.intended, tool=checked.tool))
        if self._approver is None:
            return
        decision = await self._approver.decide(checked.intended, checked.tool)
        await self._session.keep_decision(checked.call.id, checked.tool, decision)
        await self._emit(ApprovalDecided(call_id=checked.call.id, decision=decision))
        free: list[CheckedCall] = []
        await self._settle(checked, decision, free)
        for call in free:
            group.start_soon(self._call, call)

    async def _settle(
        self, checked: CheckedCall, decision: Decision, free: list[CheckedCall]
    ) -> None:
        if decision == "deny":
            await self._keep(checked.call, ToolOutput(text=DENIED, is_error=True), 0.0)
        else:
            free.append(checked)

    async def _call(self, checked: CheckedCall) -> None:
        assert checked.tool is not None
        await self._emit(ToolStarted(call=checked.intended, label=checked.tool.label))
        began = anyio.current_time()
        output = ToolOutput(text=CUT_SHORT, is_error=True)
        try:
            output = await self._host.call(checked.intended.name, checked.arguments)
        finally:
            await self._keep(checked.call, output, anyio.current_time() - began)

    async def _keep(self, call: ToolCall, output: ToolOutput, seconds: float) -> None:
        result = ToolResult(
            call_id=call.id, name=call.name, text=output.text, is_error=output.is_error
        )
        # It ran: that is written down, whatever happens meanwhile.
        with anyio.CancelScope(shield=True):
            await self._session.keep_result(result)
        await self._emit(ToolFinished(result=result, seconds=seconds))


def sent_definitions(turn: Turn) -> dict[str, ToolDefinition]:
    """The tools as the model was told of them in this turn's request."""
    contents = (link.segment.content for link in turn.prompt.front)
    return {content.name: content for content in contents if isinstance(content, ToolDefinition)}
