"""Moves a session within its tree, and copies parts of the tree.

Law: nothing is deleted. Moving elsewhere is an entry like any other, so the chosen position
survives a restart; the path left behind stays as a branch.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.journal import awaits_results
from lamina.core.ports import JournalStore
from lamina.core.values.entry import (
    BranchSummaryEntry,
    Entry,
    LabelEntry,
    LeafEntry,
    MessageEntry,
    ReplyEntry,
    RequestEntry,
    SessionEntry,
)
from lamina.engine.record.branch import last_use
from lamina.engine.record.record import Record
from lamina.errors import UsageError


class TreePosition(Struct, frozen=True, kw_only=True):
    """The position to which a session moved. `text` is the question that was there, to be asked
    again.
    """

    entry: str
    text: str = ""


async def navigate(record: Record, target: str, summary: str) -> TreePosition:
    """Continue at `target`, or in front of it if it is a question, which can then be asked again.

    Raises:
        NoSuchEntry: the entry does not exist.
    """
    entry = end_of(record, record.find(target))
    text = ""
    if isinstance(entry, MessageEntry) and entry.message.role == "user":
        text = entry.message.text
        entry = record.entries[entry.parent or ""]
    async with record.writing(record.state_at(entry.id)) as page:
        if not summary.strip():
            page.write(LeafEntry, warm_at=last_use(record, page.state))
        elif awaits_results(page.state):
            raise UsageError(
                f"calls wait for their results at {entry.id!r}, and nothing can stand between "
                f"them; go there without a summary, or to another entry"
            )
        else:
            page.write(BranchSummaryEntry, branch=record.state.leaf, summary=summary.strip())
    return TreePosition(entry=entry.id, text=text)


def end_of(record: Record, entry: Entry) -> Entry:
    """Return the last entry of a request's answer: naming a request or its answer refers to the
    whole exchange.
    """
    match entry:
        case RequestEntry():
            request = entry.id
        case MessageEntry() if entry.message.role == "assistant":
            request = request_of(record, entry)
        case _:
            return entry
    replies = [
        entry
        for entry in record.entries.values()
        if isinstance(entry, ReplyEntry) and entry.request == request
    ]
    return replies[-1] if replies else entry


def request_of(record: Record, answer: MessageEntry) -> str:
    """Return the request of an answer. Entries written while it was awaited may lie between the
    two.
    """
    parent = answer.parent
    while parent is not None:
        entry = record.entries[parent]
        if isinstance(entry, RequestEntry):
            return entry.id
        if isinstance(entry, MessageEntry | ReplyEntry):
            break
        parent = entry.parent
    return ""


def path_until(record: Record, entry: str | None) -> tuple[Entry, ...]:
    """Return the entries from the header to `entry`, including the answer if it is a request; by
    default, all.
    """
    leaf = end_of(record, record.find(entry)).id if entry is not None else record.state.leaf
    return record.path(leaf)


async def label(record: Record, target: str, text: str) -> None:
    await record.write(LabelEntry, target=record.find(target).id, label=text.strip())


def labels_of(entries: Sequence[Entry]) -> Mapping[str, str]:
    """Return every label in force, by the entry that has it."""
    labels = {entry.target: entry.label for entry in entries if isinstance(entry, LabelEntry)}
    return {target: text for target, text in labels.items() if text}


async def free_id(store: JournalStore, session: str) -> str:
    """Return an unused id for a copy of a session."""
    number = 2
    while await store.has(f"{session}-{number}"):
        number += 1
    return f"{session}-{number}"


async def copy_entries(
    entries: Sequence[Entry], store: JournalStore, session: str | None, at: float,
    *, damaged: bool = False,
) -> str:  # fmt: skip
    """Write `entries` as a new session, and return its id. They keep their ids, so that references
    to them stay valid. A copy of a `damaged` session is marked as such, because its own lines are
    all sound.

    Raises:
        UsageError: a session with that id exists already.
    """
    header, *rest = entries
    assert isinstance(header, SessionEntry)
    session = session or await free_id(store, header.session)
    if await store.has(session):
        raise UsageError(f"session {session!r} exists already; choose another id")
    repaired_until = entries[-1].id if damaged else header.repaired_until
    header = replace(
        header, session=session, forked_from=header.session, at=at, repaired_until=repaired_until
    )
    journal = await store.create(header)
    try:
        if rest:
            await journal.append(rest)
    finally:
        await journal.close()
    return session
