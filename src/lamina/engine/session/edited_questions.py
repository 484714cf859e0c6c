"""Creates edited questions and regenerated answers, as siblings of the originals.

Laws: nothing is deleted, and bytes in front of the repeated question do not move. Attachments are
attached again: files in their current version, parts of files and pages as they were. A regenerated
answer is based on the same items and the same results; no tool is run for it twice.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from msgspec import Struct
from msgspec.structs import replace

from lamina.core.assembly.request_report import read_attachments
from lamina.core.journal import State
from lamina.core.text import label_of
from lamina.core.values.entry import LeafEntry, MessageEntry, ReplyEntry, RequestEntry
from lamina.core.values.item import (
    MEDIUM,
    PART_KINDS,
    Attachment,
    AttachmentSpec,
    Item,
    ItemId,
    Shape,
    reference_to,
)
from lamina.engine.record.branch import page_at
from lamina.engine.record.record import Record
from lamina.engine.session.session_ports import Warn
from lamina.engine.session.tree import request_of
from lamina.engine.session.turn import Turn
from lamina.engine.session.turn_lifecycle import TurnLifecycle
from lamina.engine.sources.attachments import Attachable, AttachmentReader
from lamina.errors import TurnStateError, UsageError

_OUT_THEN = (
    "attachment_limit", "window", "still_out", "missing", "ambiguous", "unreadable", "refused",
)  # fmt: skip


@asynccontextmanager
async def in_front_of(
    turns: TurnLifecycle,
    record: Record,
    reader: AttachmentReader,
    question: str,
    attach: Iterable[Attachable] | None,
) -> AsyncIterator[tuple[Attachable, ...]]:
    """Move the session in front of a question, and yield the attachments of its replacement:
    `attach`, or else those of the original. If no question replaces it, the session continues at
    its previous position.

    Raises:
        NoSuchEntry: the entry does not exist.
        UsageError: the entry is not a question.
    """
    asked = find_question(record, question)
    async with turns.lock:
        left_at, left = record.state.leaf, record.state.requests.left
        request = request_for(record, asked)
        leaf = record.before(request) if request else asked.parent
        page = page_at(record, turns.layouts, leaf or "")
        if attach is None:
            attach = await take_over(record, reader, asked, turns.warn)
        await record.keep(page.written, page.state)
    turns.asks_here = True
    try:
        yield tuple(attach)
    except BaseException:
        with anyio.CancelScope(shield=True):
            async with turns.lock, record.writing(record.state_at(left_at)) as page:
                page.write(LeafEntry, left=left)
        raise
    finally:
        turns.asks_here = False


async def take_over(
    record: Record, reader: AttachmentReader, asked: MessageEntry, warn: Warn
) -> tuple[Attachable, ...]:
    """Return a person's attachments to a question, to be attached again. Anything that can no
    longer be read is attached as it was, with a warning.
    """
    request = request_for(record, asked)
    then = record.state_at(request.id if request else asked.id)
    taken: list[Attachable] = []
    for attached in _find_attached(asked, request, then, record.state):
        worth: Any = {
            "priority": attached.priority, "essential": attached.essential, "shape": attached.shape
        }  # fmt: skip
        if attached.reference:
            spec = AttachmentSpec(what=attached.reference, **worth)
            reading = await reader.read(spec, record.state, keep=False)
            if reading.attachments or attached.kept is None:
                taken.append(spec)
                continue
            warn(f"{label_of(attached.item)} cannot be read any more; it is sent as it was")
        if attached.kept is not None:
            taken.append(Attachment(item=attached.kept, **worth))
    return tuple(taken)


async def ask_again(
    turns: TurnLifecycle, record: Record, answer: str | None, target: str | None
) -> Turn:
    """Repeat the request of an answer as a sibling of it; by default, of the last answer.

    Raises:
        NoSuchEntry: the entry does not exist.
        TurnStateError: nothing has been asked yet.
        UsageError: the entry is neither a question nor an answer, or its request is unknown.
    """
    async with turns.lock:
        request = find_request(record, answer)
        asked = record.message_of(request)
        if asked is None:
            raise UsageError(f"the question of request {request.id} is lost; ask it again")
        then = record.state_at(request.id)
        page = page_at(record, turns.layouts, record.before(request))
        chosen = turns.layouts.choose(target, page.state.settings)
        attachments, texts = _attached_then(asked, request, then), then.envelope.tool_texts
        return await turns.ask_again(page, request, chosen, attachments, texts)


def find_question(record: Record, entry: str) -> MessageEntry:
    """Raises:
    NoSuchEntry: the entry does not exist.
    UsageError: the entry is not a question."""
    asked = record.find(entry)
    if not isinstance(asked, MessageEntry) or asked.message.role != "user":
        raise UsageError(f"{entry} is not a question; pass the entry of a question")
    return asked


def find_request(record: Record, entry: str | None) -> RequestEntry:
    """Return the request of an answer, or the last one made for a question; by default, the last
    one on the path.
    """
    if entry is None:
        requests = record.state.requests
        request = requests.open or requests.sent
        if request is None:
            raise TurnStateError("nothing to repeat: no question has been asked on this path")
        return request
    found = record.find(entry)
    if isinstance(found, ReplyEntry):
        found = record.entries[found.request]
    elif isinstance(found, MessageEntry):
        own = request_of(record, found) if found.message.role == "assistant" else None
        found = record.entries[own] if own else request_for(record, found) or found
    if isinstance(found, MessageEntry):
        raise UsageError(
            f"{entry} was imported, so its request is unknown; edit its question instead"
        )
    if not isinstance(found, RequestEntry):
        raise UsageError(f"{entry} is neither a question nor an answer; pass the entry of one")
    return found


def request_for(record: Record, message: MessageEntry) -> RequestEntry | None:
    """Return the first request that was made for a question, or that carried results."""
    for entry in record.entries.values():
        if isinstance(entry, RequestEntry):
            asked = record.message_of(entry)
            if asked is not None and asked.id == message.id:
                return entry
    return None


class _Attached(Struct, frozen=True, kw_only=True):
    """A person's attachment to a question; `kept` is its former version, if known."""

    item: ItemId
    kept: Item | None
    priority: int = MEDIUM
    essential: bool = False
    shape: Shape = "attached"

    @property
    def reference(self) -> str:
        """The reference by which it is read again; empty for an item that is attached as it was."""
        if self.kept is not None and self.kept.kind in PART_KINDS:
            return ""
        return reference_to(self.item)


def _find_attached(
    asked: MessageEntry, request: RequestEntry | None, then: State, now: State
) -> list[_Attached]:
    """Return a person's attachments to a question. Items that were always included, pinned, added
    to the session, found by search or brought along return without this.
    """
    items, shapes = then.library.items, _shapes_of(asked)
    if request is None:
        uses = asked.message.context.uses if asked.message.context else ()
        return [
            _Attached(item=use.item, kept=items.get((use.item, use.version)), shape=use.shape)
            for use in uses
        ]
    attached = [
        _Attached(
            item=item.item,
            kept=items.get((item.item, item.version)),
            priority=item.priority if item.priority_before is None else item.priority_before,
            essential=item.essential,
            shape=shapes.get(item.item, "attached"),
        )
        for item in request.context.items
        if item.include == "manual"
        and not (item.origin or item.pinned or item.item in now.library.members)
    ]
    # Items that did not fit, or could not be read at the time, get another try.
    attached += [
        _Attached(item=ItemId(omission.what), kept=None)
        for omission in request.context.left_out
        if omission.reason in _OUT_THEN and not omission.source
    ]
    return attached


def _shapes_of(asked: MessageEntry) -> dict[ItemId, Shape]:
    context = asked.message.context
    return {use.item: use.shape for use in context.uses} if context else {}


def _attached_then(
    asked: MessageEntry, request: RequestEntry, then: State
) -> tuple[Attachment, ...]:
    """Return all items that a request contained, as they were."""
    shapes = _shapes_of(asked)
    return tuple(
        replace(attachment, shape=shapes.get(attachment.item.id, attachment.shape))
        for attachment in read_attachments(request.context, then.library.items)
    )
