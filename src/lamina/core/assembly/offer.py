"""The tools of one request in the end: those that stand on the wire, and of them those that may be
called.

Laws: nothing is offered that was removed, or that nobody here can run. It leaves at once: barred,
where a request can say so and its list would otherwise stay; else by a break with that reason. What
is offered is what is recorded.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.assembly.boundary import find_boundary
from lamina.core.assembly.engine_tools import ENGINE_TOOLS
from lamina.core.assembly.inclusion import is_removed, sort_tools
from lamina.core.assembly.page import Page
from lamina.core.assembly.read_result import READ_RESULT
from lamina.core.assembly.tools import list_names
from lamina.core.journal import TOOLS, State
from lamina.core.values.envelope import Envelope
from lamina.core.values.item import ItemId, tool_id
from lamina.core.values.message import ToolDefinition
from lamina.core.values.patch import Display, Patch, ToolsReplace
from lamina.core.values.request import NOTHING, Attachments, ContextTool, LeftOut
from lamina.core.values.settings import Target
from lamina.core.values.tool import OfferedTool, Toolset

# A tool that came as a definition belongs to no server.
NO_SERVER = ""


class Implementations(Struct, frozen=True, kw_only=True):
    """Who runs calls: a runner with these tools; one that has none (`without_tools`), so that only
    what an application brought as a definition can be run, by the application; or, with neither,
    whoever sends the request, and all of them."""

    toolset: Toolset | None = None
    without_tools: bool = False


def settle_tools(page: Page, target: Target, implementations: Implementations) -> Attachments:
    """Leaves nothing in the list that was removed or cannot be run, and says what went."""
    envelope = page.state.envelope
    if not (envelope.tools or envelope.listed or page.state.requests.sent_tools):
        return NOTHING  # as in every session without tools, twice a turn
    return _Settlement(page, target, implementations).settle()


class _Settlement:
    def __init__(self, page: Page, target: Target, implementations: Implementations) -> None:
        self.page = page
        self.state = state = page.state
        self.target = target
        toolset = implementations.toolset
        last = state.requests.sent
        self.ids = {tool.name: tool.item for tool in last.context.tools} if last else {}
        self.ids |= {t.definition.name: t.id for t in toolset.tools} if toolset else {}
        self.removed = {*state.withdrawn} | {
            name for name, item in self.ids.items() if state.library.members.get(item) == "removed"
        }
        self.unhosted = state.hosted if implementations.without_tools else frozenset[str]()
        self.runnable = None
        if toolset is not None:
            self.runnable = {tool.definition.name for tool in toolset.tools}
            inclusion = sort_tools(state, toolset.tools)
            if inclusion.agent:
                # There is somebody to speak for.
                self.runnable |= ENGINE_TOOLS.keys()
            elif inclusion.present:
                # There are results to read.
                self.runnable.add(READ_RESULT.name)

    def settle(self) -> Attachments:
        envelope = self.state.envelope
        before = envelope.tool_list
        tools = tuple(filter(self._fits, before))
        barred: tuple[str, ...] = ()
        if self._can_bar(tools):
            tools = self.state.requests.sent_tools
            barred = tuple(tool.name for tool in tools if not self._fits(tool))
        if (tools, barred) != (before, barred_names(envelope)):
            reason = self._reason(tools, barred)
            op = ToolsReplace(tools=tools, barred=barred, reason=reason)
            self.page.transform(TOOLS, Patch(ops=(op,), display=Display(title=reason)))
        return self._report(envelope)

    def _fits(self, tool: ToolDefinition) -> bool:
        name = tool.name
        if name in self.removed or name in self.unhosted:
            return False
        return self.runnable is None or name in self.runnable

    def _can_bar(self, fit: tuple[ToolDefinition, ...]) -> bool:
        """Whether the list can stay as it was sent, with what does not fit barred: if it differs
        by that alone, and there is no other reason to move it."""
        state = self.state
        if not self.target.bars_tools or state.settings.tool_policy == "exact":
            return False
        sent = state.requests.sent_tools
        if state.requests.sent is None or tuple(filter(self._fits, sent)) != fit:
            return False
        as_sent = replace(state, envelope=replace(state.envelope, tools=sent, listed=()))
        return find_boundary(as_sent, self.target, self.page.at) is None

    def _reason(self, tools: Sequence[ToolDefinition], barred: Sequence[str]) -> str:
        envelope = self.state.envelope
        listed = {tool.name for tool in envelope.tool_list}
        before = [tool.name for tool in envelope.tools]
        offered = [tool.name for tool in tools if tool.name not in barred]
        leavers = [name for name in before if name not in offered]
        leavers += [name for name in barred if name not in listed]
        # The engine's own tools go with those they are for.
        leavers = [name for name in leavers if name not in ENGINE_TOOLS] or leavers
        news = {
            "removed": [name for name in leavers if name in self.removed],
            "gone": [name for name in leavers if name not in self.removed],
            "back": [name for name in offered if name not in before and name not in ENGINE_TOOLS],
        }
        parts = [f"{word}: {list_names(names)}" for word, names in news.items() if names]
        if not parts:
            idle = [name for name in barred_names(envelope) if name not in barred]
            parts = [f"barred until now: {list_names(idle)}"]
        stay = " (the list stays, and they are not to be called)" if barred and leavers else ""
        return f"tools {'; '.join(parts)}{stay}"

    def _report(self, before: Envelope) -> Attachments:
        """What was offered, in the last request or until now, and is no longer."""
        state, last = self.state, self.state.requests.sent
        offered = {tool.name for tool in self.page.state.envelope.tools}
        sent = [tool.name for tool in state.requests.sent_tools]
        earlier = [name for name in sent if last and last.context.allows(name)]
        leavers = [n for n in (*earlier, *(tool.name for tool in before.tools)) if n not in offered]
        left_out = []
        for name in dict.fromkeys(leavers):
            item = self.ids.get(name) or tool_id(NO_SERVER, name)
            if name in self.removed:
                why = state.withdrawn.get(name)
                detail = f"the tool {name!r} was removed{f': {why}' if why else ''}"
            elif self._is_gone(name):
                detail = f"nothing here can run the tool {name!r}"
            else:
                continue
            left_out.append(LeftOut(what=item, reason="removed", detail=detail))
        gone = [tool.name for tool in before.tools if self._is_gone(tool.name)]
        gone = [name for name in gone if name not in self.removed and name not in offered]
        warning = f"not offered, because nothing here can run it: {list_names(gone)}"
        return Attachments(left_out=tuple(left_out), warnings=(warning,) if gone else ())

    def _is_gone(self, name: str) -> bool:
        if name in ENGINE_TOOLS:
            return False
        return name in self.unhosted or (self.runnable is not None and name not in self.runnable)


def barred_names(envelope: Envelope) -> tuple[str, ...]:
    """What stands in the list and is not to be called."""
    if not envelope.listed:
        return ()
    offered = {tool.name for tool in envelope.tools}
    return tuple(tool.name for tool in envelope.listed if tool.name not in offered)


def allowed_tools(envelope: Envelope, *, answer_only: bool) -> tuple[str, ...] | None:
    """What may be called, if that is not all that stands in the list."""
    if answer_only and envelope.tool_list:
        return ()
    return tuple(tool.name for tool in envelope.tools) if envelope.listed else None


def describe_offer(
    state: State, known: Sequence[ContextTool], toolset: Toolset | None
) -> tuple[ContextTool, ...]:
    """The tools that stand on the wire, in their order, with why each is there: as that is `known`,
    or was in the last request."""
    names = [tool.name for tool in state.envelope.tool_list]
    if not names:
        return ()
    last = state.requests.sent.context.tools if state.requests.sent else ()
    rows = {tool.name: tool for tool in last} | {tool.name: tool for tool in known}
    offered = {tool.definition.name: tool for tool in toolset.tools} if toolset else {}
    return tuple([rows.get(name) or _plain_row(name, offered.get(name)) for name in names])


def _plain_row(name: str, tool: OfferedTool | None) -> ContextTool:
    if tool is None:
        return ContextTool(item=tool_id(NO_SERVER, name), name=name)
    return ContextTool(item=tool.id, name=name, include=tool.include)


def removed_items(state: State, toolset: Toolset | None) -> frozenset[ItemId]:
    """The tools that are there and were taken out of the session."""
    tools = toolset.tools if toolset else ()
    return frozenset(tool.id for tool in tools if is_removed(state, tool))
