"""Runs the calls of one answer: checks which may run and with which arguments, and stores their
results.

Laws: arguments are checked against the definition that was sent, not against today's. An error in a
call becomes its result, for the model to read. Free calls run at once; the others wait for a
person. A result is stored as soon as it exists.
"""

from collections.abc import Collection, Mapping, Sequence

import anyio
import msgspec
from msgspec import Struct

from lamina.core.assembly.engine_tools import FIND_TOOLS, USE_TOOL, intended_call
from lamina.core.assembly.inclusion import is_removed
from lamina.core.assembly.tool_offer import describe_tool, is_described
from lamina.core.layers.layout import wording_in
from lamina.core.ports import Approver, ToolHost
from lamina.core.schemas import check_arguments
from lamina.core.text.wording import Wording
from lamina.core.values.event import ToolFinished, ToolStarted
from lamina.core.values.message import ToolCall, ToolDefinition, ToolResult
from lamina.core.values.tool import DENIED, Decision, OfferedTool, ToolOutput
from lamina.engine.runners.approvals import WaitingCall, ask_person, holds, needs_decision
from lamina.engine.session.engine_calls import EngineCalls
from lamina.engine.session.session import Session, core_of
from lamina.engine.session.session_ports import Emit
from lamina.engine.session.turn import Turn
from lamina.engine.task_groups import patient_group

REMOVED = "The tool was removed from this session; the call was not run."


class CheckedCall(Struct, frozen=True, kw_only=True):
    """A call that can be run, with its arguments parsed. `intended` is the call as shown to a
    person: a call made through another tool is shown as itself.
    """

    call: ToolCall
    intended: ToolCall
    tool: OfferedTool
    arguments: Mapping[str, object]

    @property
    def waiting(self) -> WaitingCall:
        """The call in the format in which it waits for a decision."""
        return WaitingCall(call=self.intended, tool=self.tool)


def check_call(
    call: ToolCall,
    definitions: Mapping[str, ToolDefinition],
    tools: Mapping[str, OfferedTool],
    removed: Collection[str] = (),
    described: Collection[str] = (),
    *,
    words: Wording,
) -> CheckedCall | str:
    """Return a call checked against the definitions that were sent, the available tools and the
    names of removed ones; or what is wrong with it, in more detail for tools that were only
    `described`.
    """
    intended = intended_call(call, tools)
    if call.name in removed or intended.name in removed:
        return REMOVED
    definition = definitions.get(intended.name)
    if definition is None and intended.name in tools and FIND_TOOLS.name in definitions:
        return f"The tool {intended.name!r} is not described yet: search for it with find_tools."
    if definition is None:
        names = ", ".join(sorted(definitions)) or "none"
        return f"There is no tool {intended.name!r}. Tools: {names}."
    tool = tools.get(intended.name)
    if tool is None and intended.name == USE_TOOL.name:
        return words.use_tool_wrong
    if tool is None:
        return f"The tool {intended.name!r} is not available at present."
    try:
        arguments = msgspec.json.decode(intended.arguments or "{}")
    except msgspec.DecodeError as error:
        return f"The arguments are not valid JSON: {error}"
    if not isinstance(arguments, dict):
        return "The arguments have to be a JSON object."
    if problem := check_arguments(definition.parameters, arguments):
        problem_text = f"The arguments do not fit the tool: {problem}"
        # The model may have seen only a brief description.
        is_known = intended is call and call.name not in described
        return problem_text if is_known else f"{problem_text}\n\n{describe_tool(tool).content}"
    return CheckedCall(call=call, intended=intended, tool=tool, arguments=arguments)


class Caller:
    """Runs the calls of a session's answers."""

    def __init__(
        self, session: Session, host: ToolHost, approver: Approver | None, emit: Emit
    ) -> None:
        self._session = session
        self._host = host
        self._approver = approver
        self._emit = emit

    async def run(self, turn: Turn, tools: Mapping[str, OfferedTool]) -> Sequence[WaitingCall]:
        """Run every call that may run and store the results; return the calls that wait for a
        decision and that no approver here can decide.
        """
        state, policy = self._session.state, self._session.settings.ask_before_tools
        described = {n: t.definition for n, t in tools.items() if is_described(t, state)}
        listed = sent_definitions(turn)
        definitions = listed | described
        free: list[CheckedCall] = []
        open_calls: list[CheckedCall] = []
        own_calls: list[ToolCall] = []
        engine = core_of(self._session).turns.engine_calls
        for call in self._session.pending_calls:
            if engine.answers(call, definitions):
                own_calls.append(call)
                continue
            checked = check_call(
                call,
                definitions,
                tools,
                state.withdrawn,
                described.keys() - listed,
                words=wording_in(state),
            )
            if isinstance(checked, str):
                await self._keep(call, ToolOutput(text=checked, is_error=True))
            elif (entry := state.turn.decisions.get(call.id)) and holds(entry, checked.tool):
                if await self._permits(checked, entry.decision):
                    free.append(checked)
            elif needs_decision(checked.tool, policy, state.allowed):
                open_calls.append(checked)
            else:
                free.append(checked)
        async with patient_group() as group:
            for checked in free:
                group.start_soon(self._call, checked)
            for call in own_calls:
                # Sequentially: results of one search are not repeated by the next.
                await self._answer(engine, call, turn)
            for checked in open_calls:
                decision = await ask_person(
                    self._session, self._approver, checked.waiting, self._emit
                )
                if decision and await self._permits(checked, decision):
                    group.start_soon(self._call, checked)
        return [] if self._approver else [checked.waiting for checked in open_calls]

    async def _answer(self, engine: EngineCalls, call: ToolCall, turn: Turn) -> None:
        """Answer a call of the engine's own tools, which needs no permission."""
        await self._emit(ToolStarted(call=call, label=call.name))
        began = anyio.current_time()
        result = await engine.answer(call, turn.target)
        await self._emit(ToolFinished(result=result, seconds=anyio.current_time() - began))

    async def _permits(self, checked: CheckedCall, decision: Decision) -> bool:
        """Return whether an earlier decision allows a call; a denial becomes its result."""
        if decision == "deny":
            await self._keep(checked.call, ToolOutput(text=DENIED, is_error=True))
        return decision != "deny"

    async def _call(self, checked: CheckedCall) -> None:
        await self._emit(ToolStarted(call=checked.intended, label=checked.tool.label))
        began = anyio.current_time()
        output = ToolOutput(text=wording_in(self._session.state).call_cut_short, is_error=True)
        try:
            if is_removed(self._session.state, checked.tool):
                # For example while a person was being asked.
                output = ToolOutput(text=REMOVED, is_error=True)
            else:
                output = await self._host.call(checked.intended.name, checked.arguments)
        finally:
            await self._keep(checked.call, output, anyio.current_time() - began)

    async def _keep(self, call: ToolCall, output: ToolOutput, seconds: float = 0.0) -> None:
        result = ToolResult(
            call_id=call.id, name=call.name, text=output.text, is_error=output.is_error
        )
        # The call has run, so its result is stored whatever else happens.
        with anyio.CancelScope(shield=True):
            result = await self._session.keep_result(result, whole=output.whole)
        await self._emit(ToolFinished(result=result, seconds=seconds))


def sent_definitions(turn: Turn) -> dict[str, ToolDefinition]:
    """Return the tools that this turn's request offered, as the model saw them."""
    contents = [link.segment.content for link in turn.prompt.front]
    tools = [content for content in contents if isinstance(content, ToolDefinition)]
    return {tool.name: tool for tool in tools if turn.context.allows(tool.name)}
