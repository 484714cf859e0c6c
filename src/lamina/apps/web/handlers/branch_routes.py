"""Navigating a session's tree: forks, other branches, labels."""

import time

from lamina.apps.web.http_answers import not_found
from lamina.apps.web.routes import Call, Route
from lamina.apps.web.session_records import (
    ForkBody,
    Forked,
    LabelBody,
    Labelled,
    NavigateBody,
    Position,
)
from lamina.core.journal import Journal, path_to
from lamina.core.values.entry import Entry, InfoEntry, MessageEntry, ReplyEntry, RequestEntry
from lamina.engine.session.tree import copy_entries

SESSION = "/api/workspaces/{workspace}/sessions/{session}"


async def fork(call: Call) -> Forked:
    """Copy a path without opening the session, so that it works for one open elsewhere."""
    body: ForkBody = call.body
    journal = await call.desk.read_journal(call.workspace, call.session)
    if body.at is not None and body.at not in journal.entries:
        raise not_found("entry", body.at)
    leaf = _end_of(body.at, journal) if body.at is not None else journal.leaf
    path = list(path_to(leaf, journal.entries))
    if body.name.strip():
        # No other entry of the copy has its id.
        path.append(_named(journal, leaf, body.name.strip()))
    store = call.desk.stored(call.workspace, call.session).store
    forked = await copy_entries(path, store, None, time.time(), damaged=bool(journal.damage))
    return Forked(session=forked)


def _named(journal: Journal, leaf: str, name: str) -> Entry:
    from lamina.core.codec import entry_number, mint_id

    last = max(entry_number(entry) or 0 for entry in journal.entries)
    return InfoEntry(id=mint_id(last + 1), parent=leaf, at=time.time(), name=name)


def _end_of(at: str, journal: Journal) -> str:
    """Return the end of a request or answer: where the answer was closed, if it was."""
    entry = journal.entries[at]
    request = ""
    if isinstance(entry, RequestEntry):
        request = entry.id
    elif isinstance(entry, MessageEntry) and entry.message.role == "assistant":
        parent: Entry | None = entry
        while parent is not None and not isinstance(parent, RequestEntry):
            parent = journal.entries.get(parent.parent or "")
            if isinstance(parent, MessageEntry | ReplyEntry):
                break
        request = parent.id if isinstance(parent, RequestEntry) else ""
    replies = [
        reply.id
        for reply in journal.entries.values()
        if isinstance(reply, ReplyEntry) and request and reply.request == request
    ]
    return replies[-1] if replies else at


async def navigate(call: Call) -> Position:
    body: NavigateBody = call.body
    desk = call.desk
    async with desk.session(call.workspace, call.session) as opened:
        opened.turns.require_idle()
        entry = body.entry
        if entry not in opened.journal.entries:
            raise not_found("entry", entry)
        if body.end:
            journal, outline = await desk.read_outline(call.workspace, call.session)
            entry = outline.end_of_branch(entry, journal)
        position = await opened.session.navigate(entry, summary=body.summary)
        desk.bulletin.publish(call.workspace, opened.news)
        return Position(entry=position.entry, text=position.text, leaf=opened.session.state.leaf)


async def label(call: Call) -> Labelled:
    body: LabelBody = call.body
    async with call.desk.session(call.workspace, call.session) as opened:
        entry = call.path["entry"]
        if entry not in opened.journal.entries:
            raise not_found("entry", entry)
        await opened.session.label(entry, body.text)
        return Labelled(entry=entry, text=body.text.strip())


ROUTES = (
    Route(
        method="POST", path=f"{SESSION}/fork", handler=fork, body=ForkBody, result=Forked,
        right="chat", status=201,
        summary="Creates a new session that starts with this one's path.",
    ),
    Route(
        method="POST", path=f"{SESSION}/navigate", handler=navigate, body=NavigateBody,
        result=Position, right="chat", summary="Continues at another entry.",
    ),
    Route(
        method="PUT", path=f"{SESSION}/labels/{{entry}}", handler=label, body=LabelBody,
        result=Labelled, right="chat", summary="Labels an entry.",
    ),
)  # fmt: skip
