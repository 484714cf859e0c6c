"""Answers calls to the engine's own tools within the session.

Laws: such a call needs no approval, because it runs nothing. Its findings are written down with its
result, so that a resumed turn continues with the same ones.
"""

from collections.abc import Container

import anyio
import msgspec

from lamina.core.assembly.budget import CHOSEN_SHARE, assemble_standing
from lamina.core.assembly.engine_tools import FIND_TOOLS, USE_TOOL, intended_call, is_search
from lamina.core.assembly.shortened_results import READ_RESULT, can_read_results
from lamina.core.assembly.turn_items import keep_item
from lamina.core.schemas import check_arguments
from lamina.core.values.entry import ResultEntry
from lamina.core.values.item import Attachment
from lamina.core.values.message import LoadedTools, ToolCall, ToolResult
from lamina.core.values.tool import OfferedTool, Toolset
from lamina.engine.record.layouts import Layouts
from lamina.engine.record.record import Record
from lamina.engine.session.tool_results import ResultReader, ToolResults
from lamina.engine.session.waiting_calls import require_waiting
from lamina.engine.sources.found_tools import (
    ToolFinds,
    find_tools,
    found_items,
    loaded_now,
    note_query,
)
from lamina.engine.sources.selector import Selector


class SessionTools:
    """A session's tools: `selector` chooses among them, and `toolset` contains those that its
    runner can call; None without a runner, or if its runner has no tools.
    """

    def __init__(self, selector: Selector) -> None:
        self.selector = selector
        self.toolset: Toolset | None = None

    def take(self, toolset: Toolset) -> None:
        """Replace the tools that can be called from now on."""
        self.toolset = toolset

    @property
    def offered(self) -> tuple[OfferedTool, ...]:
        return self.toolset.tools if self.toolset else ()


class EngineCalls:
    """Answers the calls of one session."""

    def __init__(
        self, record: Record, layouts: Layouts, tools: SessionTools, results: ToolResults,
        reader: ResultReader, lock: anyio.Lock,
    ) -> None:  # fmt: skip
        self._record = record
        self._layouts = layouts
        self._tools = tools
        self._results = results
        self._reader = reader
        self._lock = lock

    def answers(self, call: ToolCall, sent: Container[str] | None = None) -> bool:
        """Return whether the engine answers a call: its tool was offered (it is in `sent`, if that
        is passed), and no other tool has that name.
        """
        name = self._intended(call).name
        if (sent is not None and name not in sent) or name in self._others():
            return False
        state = self._record.state
        if name == READ_RESULT.name:
            return can_read_results(state)
        searches = name == FIND_TOOLS.name and self._tools.toolset is not None
        return searches and any(map(is_search, state.envelope.tools))

    async def answer(self, call: ToolCall, target: str) -> ToolResult:
        """Return the result of a waiting call, stored with its findings.

        Raises:
            TurnStateError: the call is not waiting.
        """
        if kept := self._record.state.turn.results.get(call.id):
            return kept
        intended = self._intended(call)
        if intended.name == FIND_TOOLS.name:
            return await self._search(call, intended, target)
        output = await self._reader.answer(intended.arguments)
        return await self._results.keep(
            ToolResult(call_id=call.id, name=call.name, text=output.text, is_error=output.is_error)
        )

    def _others(self) -> dict[str, OfferedTool]:
        toolset = self._tools.toolset
        return {} if toolset is None else {tool.definition.name: tool for tool in toolset.tools}

    def _intended(self, call: ToolCall) -> ToolCall:
        """Return the call itself, or the one made through `use_tool`."""
        return intended_call(call, self._others()) if call.name == USE_TOOL.name else call

    async def _search(self, call: ToolCall, intended: ToolCall, target: str) -> ToolResult:
        async with self._lock:
            require_waiting(self._record, call.id)
            query = _read_query(intended)
            if isinstance(query, ToolFinds):
                finds, text = query, ""
            else:
                finds, text = await self._find(query, target), note_query(query)
            result = ToolResult(
                call_id=call.id, name=call.name, text=finds.text, is_error=finds.is_error
            )
            loads = None
            if finds.loaded:
                model = self._layouts.book.find(target).model
                loads = LoadedTools(call_id=call.id, model=model, tools=finds.loaded)
            async with self._record.writing() as page:
                for item in finds.items:
                    keep_item(page, Attachment(item=item))
                page.write(ResultEntry, result=result, query=text, found=finds.found, loads=loads)
            return result

    async def _find(self, query: str, target: str) -> ToolFinds:
        state, layouts = self._record.state, self._layouts
        toolset = self._tools.toolset
        assert toolset is not None
        model = layouts.book.find(target)
        assembler = layouts.assembler_for(model, state.settings.promotion)
        room = layouts.room(model, state).beside(assemble_standing(state, assembler)).left
        room -= sum(assembler.item_tokens(item) for _, _, item in found_items(state))
        room -= sum(assembler.definition_tokens(tool.definition) for tool in loaded_now(state))
        room -= sum(assembler.count_text(r.text) for r in state.turn.results.values())
        return await find_tools(
            self._tools.selector, state, toolset.tools, query, assembler, int(room * CHOSEN_SHARE),
            loads_late=model.loads_late,
        )  # fmt: skip


def _read_query(call: ToolCall) -> str | ToolFinds:
    """Return the query, or what is wrong with the call."""
    try:
        arguments = msgspec.json.decode(call.arguments or "{}")
    except msgspec.DecodeError:
        arguments = None
    if not isinstance(arguments, dict) or check_arguments(FIND_TOOLS.parameters, arguments):
        return ToolFinds(text="find_tools requires 'query' (a string).", is_error=True)
    query: str = arguments["query"]
    return query
