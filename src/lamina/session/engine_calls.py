"""Calls of the engine's own tools, which no host runs: the session answers them.

Laws: such a call needs nobody's approval, for it runs nothing. What it brought is written down with
its result, so that a turn that is taken up again goes on with the same.
"""

from typing import Protocol

import anyio
import msgspec

from lamina.assembly.budget import CHOSEN_SHARE, assemble_standing
from lamina.assembly.engine_tools import FIND_TOOLS
from lamina.assembly.items import keep_item
from lamina.record.layouts import Layouts
from lamina.record.record import Record
from lamina.schemas import check_arguments
from lamina.session.calls import require_waiting
from lamina.sources.found_tools import ToolFinds, find_tools, found_items
from lamina.sources.selector import Selector
from lamina.values.entry import ResultEntry
from lamina.values.item import Attachment
from lamina.values.message import ToolCall, ToolResult
from lamina.values.tool import Toolset


class CallableTools(Protocol):
    """What a session knows of tools."""

    selector: Selector
    toolset: Toolset | None


class EngineCalls:
    """Answers the calls of one session."""

    def __init__(
        self, record: Record, layouts: Layouts, tools: CallableTools, lock: anyio.Lock
    ) -> None:
        self._record = record
        self._layouts = layouts
        self._tools = tools
        self._lock = lock

    def answers(self, call: ToolCall) -> bool:
        """Whether a call is for the engine: its tool was offered, and nobody else has that name."""
        toolset = self._tools.toolset
        if toolset is None or call.name != FIND_TOOLS.name:
            return False
        offered = FIND_TOOLS in self._record.state.envelope.tools
        return offered and all(tool.definition.name != call.name for tool in toolset.tools)

    async def answer(self, call: ToolCall, target: str) -> ToolResult:
        """The result of a call that waits, kept with what it brought.

        Raises:
            TurnStateError: no such call waits.
        """
        async with self._lock:
            state = self._record.state
            if kept := state.turn.results.get(call.id):
                return kept
            require_waiting(self._record, call.id)
            query = _read_query(call)
            if isinstance(query, ToolFinds):
                finds, text = query, ""
            else:
                finds, text = await self._find(query, target), query
            result = ToolResult(
                call_id=call.id, name=call.name, text=finds.text, is_error=finds.is_error
            )
            async with self._record.writing() as page:
                for item in finds.items:
                    keep_item(page, Attachment(item=item))
                page.write(ResultEntry, result=result, query=text, found=finds.found)
            return result

    async def _find(self, query: str, target: str) -> ToolFinds:
        state, layouts = self._record.state, self._layouts
        toolset = self._tools.toolset
        assert toolset is not None
        model = layouts.book.find(target)
        assembler = layouts.assembler_for(model, state.settings.promotion)
        room = layouts.room(model, state).beside(assemble_standing(state, assembler)).left
        room -= sum(assembler.item_tokens(item) for _, _, item in found_items(state))
        room -= sum(assembler.count_text(r.text) for r in state.turn.results.values())
        return await find_tools(
            self._tools.selector, state, toolset.tools, query, assembler, int(room * CHOSEN_SHARE)
        )


def _read_query(call: ToolCall) -> str | ToolFinds:
    """What is searched for, or what is wrong with the call."""
    try:
        arguments = msgspec.json.decode(call.arguments or "{}")
    except msgspec.DecodeError:
        arguments = None
    if not isinstance(arguments, dict) or check_arguments(FIND_TOOLS.parameters, arguments):
        return ToolFinds(text="find_tools needs 'query', a text.", is_error=True)
    query: str = arguments["query"]
    return query
