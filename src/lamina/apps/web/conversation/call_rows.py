"""Calls of tools, and what became of them."""

from collections.abc import Iterable, Mapping

from lamina.apps.views.plain_text import shorten
from lamina.apps.web.shapes.messages import CallRow, CallState
from lamina.core.text import label_of
from lamina.core.values.entry import DecisionEntry, Entry, MessageEntry, RequestEntry, ResultEntry
from lamina.core.values.message import ToolCall, ToolResult
from lamina.core.values.tool import DENIED

# How much of a result stands in a row; the rest is read when it is asked for.
SHOWN = 2_000


class CallOutcomes:
    """The results and decisions in some entries, by call."""

    def __init__(
        self, entries: Iterable[Entry], seconds: Mapping[str, float], is_running: bool
    ) -> None:
        self.results: dict[str, ToolResult] = {}
        self.whole: set[str] = set()
        self.decisions: dict[str, str] = {}
        self.seconds = seconds
        self.is_running = is_running
        for entry in entries:
            match entry:
                case ResultEntry(result=result, whole=whole):
                    self.results[result.call_id] = result
                    if whole:
                        self.whole.add(result.call_id)
                case MessageEntry(message=message, whole_results=wholes):
                    self.whole.update(wholes)
                    for block in message.blocks:
                        if isinstance(block, ToolResult):
                            self.results[block.call_id] = block
                case DecisionEntry(call_id=call, decision=decision):
                    self.decisions[call] = decision
                case _:
                    pass

    def state_of(self, call: str) -> CallState:
        result = self.results.get(call)
        if result is None:
            is_under_way = self.is_running or self.decisions.get(call, "deny") != "deny"
            return "running" if is_under_way else "waiting"
        if self.decisions.get(call) == "deny" or (result.is_error and result.text == DENIED):
            return "denied"
        return "error" if result.is_error else "done"


def describe_call(call: ToolCall, outcomes: CallOutcomes, request: RequestEntry | None) -> CallRow:
    """A call as a row shows it."""
    result = outcomes.results.get(call.id)
    text = result.text if result else ""
    shown = shorten(text, SHOWN)
    return CallRow(
        id=call.id,
        name=call.name,
        label=label_call(call.name, request),
        arguments=call.arguments,
        state=outcomes.state_of(call.id),
        result=shown,
        is_cut=shown != text or call.id in outcomes.whole,
        decision=outcomes.decisions.get(call.id),
        seconds=outcomes.seconds.get(call.id),
    )


def label_call(name: str, request: RequestEntry | None) -> str:
    """What people know a tool by: its server and its own name, where a request says it."""
    for tool in request.context.tools if request else ():
        if tool.name == name:
            return label_of(tool.item)
    return name
