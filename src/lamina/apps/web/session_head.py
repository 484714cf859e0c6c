"""How a session stands, from its journal and from what this server does with it."""

from msgspec.structs import replace

from lamina.apps.web.conversation.call_rows import CallOutcomes, label_call
from lamina.apps.web.conversation.outline import Outline
from lamina.apps.web.desk import Desk
from lamina.apps.web.kept_opening import read_opening
from lamina.apps.web.open_session import OpenSession
from lamina.apps.web.shapes.sessions import CallView, SessionHead, SessionState
from lamina.core.audit.requests import waiting_request
from lamina.core.journal import Journal, walk_back
from lamina.core.text import label_of
from lamina.core.text.excerpt import brief
from lamina.core.values.entry import (
    Entry,
    LeaveEntry,
    MessageEntry,
    ModelEntry,
    RequestEntry,
    SettingsEntry,
)
from lamina.core.values.item import key_of
from lamina.core.values.message import ToolCall
from lamina.core.values.settings import Settings
from lamina.core.values.tool import OfferedTool
from lamina.errors import UnknownTarget

_TITLE = 80


async def describe_head(desk: Desk, workspace: str, session: str) -> SessionHead:
    """
    Raises:
        UnknownSession: there is no such session.
    """
    opened = desk.find_open(workspace, session)
    journal, outline = await desk.read_outline(workspace, session)
    header = journal.header
    opening = read_opening(journal)
    tail = _tail(journal, outline)
    busy = await desk.is_busy_elsewhere(workspace, session)
    if opened is not None:
        waiting = await _waiting_now(opened)
        settings = opened.session.settings
        interrupted = opened.session.interrupted
        state = opened.state
        if state == "waiting" and not waiting:
            # Calls that nobody has to decide about: the turn was cut off while they ran.
            state, interrupted = "interrupted", True
    else:
        waiting = _waiting_then(tail)
        settings = _settings(journal, outline)
        interrupted = bool(waiting_request(tail)) or (_awaits_results(tail) and not waiting)
        state = _state(interrupted, bool(waiting), busy)
    last = opened.turns.last if opened else None
    title = outline.name
    if not title and outline.first_question:
        question = journal.entries[outline.first_question]
        title = brief(question.message.text, _TITLE) if isinstance(question, MessageEntry) else ""
    return SessionHead(
        session=session,
        workspace=workspace,
        name=outline.name,
        title=title,
        target=settings.target,
        mode=opening.mode,
        files=opening.files,
        web=opening.web,
        agent=header.with_agent,
        project=opening.project,
        window=_window(desk, settings),
        state=state,
        interrupted=interrupted,
        busy_elsewhere=busy,
        waiting=tuple(waiting),
        turn=last.view if last else None,
        leaf=journal.leaf,
        rows=len(outline.rows),
        other_rows=outline.other_rows,
        began=header.at,
        forked_from=header.forked_from,
        source=header.source,
        damage=journal.damage,
    )


def _state(interrupted: bool, waits: bool, busy: bool) -> SessionState:
    if busy:
        return "working"
    if waits:
        return "waiting"
    return "interrupted" if interrupted else "idle"


def _tail(journal: Journal, outline: Outline) -> tuple[Entry, ...]:
    """The last turn of the path."""
    rows = outline.rows
    start = outline.question_of(len(rows) - 1) if rows else 0
    until = rows[start - 1] if start > 0 else ""
    return walk_back(journal.entries, journal.leaf, until)


async def _waiting_now(opened: OpenSession) -> list[CallView]:
    decisions = opened.session.state.turn.decisions
    calls = [*await opened.waiting_calls(), *opened.planned_calls.values()]
    views = [_view(call, tool) for call, tool in calls]
    # Those that were decided while others of their turn wait are shown with them.
    if views:
        for call in opened.session.pending_calls:
            if (entry := decisions.get(call.id)) is not None:
                tool = await opened.find_tool(call)
                views.append(_view(call, tool, entry.decision))
    return views


def _view(call: ToolCall, tool: OfferedTool | None, decision: str | None = None) -> CallView:
    return CallView(
        id=call.id,
        name=call.name,
        label=tool.label or label_of(tool.id) if tool else call.name,
        server=key_of(tool.id).rpartition("/")[0] if tool else "",
        about=tool.definition.description if tool else "",
        arguments=call.arguments,
        decision=decision,
    )


def _waiting_then(tail: tuple[Entry, ...]) -> list[CallView]:
    """Calls that were left waiting, as the journal tells it: those without a result. If all of
    them were decided, the turn was cut off, and nothing waits for a person."""
    if not _awaits_results(tail):
        return []
    outcomes = CallOutcomes(tail, {}, False)
    answer = next(e for e in reversed(tail) if isinstance(e, MessageEntry))
    requests = [entry for entry in tail if isinstance(entry, RequestEntry)]
    request = requests[-1] if requests else None
    calls = [call for call in answer.message.calls if call.id not in outcomes.results]
    if all(call.id in outcomes.decisions for call in calls):
        return []
    return [
        CallView(
            id=call.id, name=call.name, label=label_call(call.name, request), server="", about="",
            arguments=call.arguments, decision=outcomes.decisions.get(call.id),
        )
        for call in calls
    ]  # fmt: skip


def _awaits_results(tail: tuple[Entry, ...]) -> bool:
    for entry in reversed(tail):
        if isinstance(entry, LeaveEntry):
            return False
        if isinstance(entry, MessageEntry):
            return entry.message.role == "assistant" and bool(entry.message.calls)
    return False


def _settings(journal: Journal, outline: Outline) -> Settings:
    """The settings in force at the leaf."""
    settings = journal.header.settings
    for name in outline.settings_of(journal.leaf):
        entry = journal.entries[name]
        if isinstance(entry, SettingsEntry):
            settings = entry.settings
        elif isinstance(entry, ModelEntry):
            settings = replace(settings, target=entry.target)
    return settings


def _window(desk: Desk, settings: Settings) -> int:
    if settings.window is not None:
        return settings.window
    try:
        return desk.book.find(settings.target).window
    except UnknownTarget:
        return 0
