"""What was sent, request by request, from the journal: rows, layers, segments, wire form."""

from typing import Any

from lamina.adapters.providers.model_book import load_book
from lamina.apps.views.stored_sessions import StoredSession
from lamina.core.audit.rebuilt_request import (
    RebuiltRequest,
    SegmentChange,
    pictures_in,
    rebuild_request,
    wire_request,
)
from lamina.core.audit.requests import ListedRequest, RequestList, find_request, list_requests
from lamina.core.journal import Journal
from lamina.core.layers import measure_layers
from lamina.core.ports import JournalStore, TargetBook
from lamina.core.values.message import Text
from lamina.core.values.prompt import LAYERS, Layer, Segment
from lamina.engine.session.session import Session
from lamina.errors import LaminaError

VERDICT_MEANINGS = {
    "as_expected": "the cache served as much as expected",
    "more_than_expected": "the cache served more than expected",
    "below_minimum": "too short to be cached",
    "lifetime_passed": "the cache no longer held it",
    "prefix_moved": "the prefix moved, and the cache served what was left of it",
    "model_changed": "a different model, so nothing was cached",
    "routed_elsewhere": "a miss: the cache should have served it",
    "not_reported": "the provider did not report its cache use",
    "nothing_sent_before": "the first request",
}
LAYER_NAMES: dict[Layer, str] = {
    "tools": "tools", "L1": "L1 system", "L2": "L2 library", "L3": "L3 turn",
    "L4": "L4 history", "L5": "L5 message",
}  # fmt: skip
PLACEMENT_NAMES = {
    "library": "system library",
    "above": "above, where it was first sent",
    "message": "this message, in full",
    "left_out": "left out",
}


def describe_requests(journal: Journal) -> dict[str, Any]:
    """Return every request of a session."""
    requests = list_requests(journal)
    rows = [_describe_listed(request, requests) for request in requests.listed]
    return {"requests": rows, "lost": requests.lost, "damage": journal.damage}


async def rebuild_stored(stored: StoredSession, wanted: str) -> tuple[RebuiltRequest, RequestList]:
    """Return one request, rebuilt, and all requests of its session.

    Raises:
        NoSuchEntry: there is no such request.
    """
    journal = await stored.read()
    requests = list_requests(journal)
    listed = find_request(requests, wanted)
    return rebuild_request(journal, requests, listed, load_book()), requests


def journal_of(session: Session) -> Journal:
    """Return the journal of an open session."""
    entries = {entry.id: entry for entry in session.entries}
    return Journal(entries=entries, leaf=session.state.leaf)


def last_request(session: Session, book: TargetBook | None = None) -> RebuiltRequest | None:
    """Return the last request on the active path, rebuilt, even while it is running."""
    journal = journal_of(session)
    requests = list_requests(journal)
    last = next((request for request in reversed(requests.listed) if request.active), None)
    return rebuild_request(journal, requests, last, book or load_book()) if last else None


async def encode_wire(stored: StoredSession, wanted: str) -> tuple[Any, tuple[str, ...]]:
    """Return one request in the vendor's wire form, and why it may differ from what was sent.

    Raises:
        NoSuchEntry: there is no such request, or it cannot be rebuilt.
    """
    recorded, _ = await rebuild_stored(stored, wanted)
    return await encode_rebuilt(recorded, stored.store, load_book())


async def encode_rebuilt(
    recorded: RebuiltRequest, store: JournalStore, book: TargetBook
) -> tuple[Any, tuple[str, ...]]:
    """Return a rebuilt request in the vendor's wire form, with pictures from a store, and why it
    may differ from what was sent.

    Raises:
        UnknownSession: it cannot be rebuilt.
    """
    problems = list(recorded.problems)
    blobs: dict[str, bytes] = {}
    for digest in pictures_in(recorded.prompt) if recorded.prompt else ():
        try:
            blobs[digest] = await store.get_blob(digest)
        except LaminaError as error:
            problems.append(f"an image is missing and replaced by a sentence: {error}")
    request = wire_request(recorded, book, blobs)
    return book.wire(request.target).encode(request), tuple(problems)


def measure_changes(recorded: RebuiltRequest) -> list[dict[str, Any]]:
    """Return the size of each layer, and how much of it stays in place."""
    if recorded.prompt is None:
        return []
    stay = dict.fromkeys(LAYERS, 0)
    for change in recorded.changes:
        if change.stays:
            stay[change.segment.layer] += change.segment.tokens
    return [
        {
            "layer": size.layer,
            "segments": size.segments,
            "tokens": size.tokens,
            "stay": stay[size.layer],
            "new": size.tokens - stay[size.layer],
            "digest": size.digest,
        }
        for size in measure_layers(recorded.prompt)
    ]


def describe_request(recorded: RebuiltRequest, requests: RequestList) -> dict[str, Any]:
    """Return the request as plain data."""
    return {
        "session": recorded.session.session,
        "of": len(requests.listed),
        **_describe_listed(recorded.listed, requests),
        "proven": recorded.prompt is not None and not recorded.problems,
        "problems": recorded.problems,
        "layers": measure_changes(recorded),
        "segments": [_describe_change(change) for change in recorded.changes],
        "context": recorded.listed.request.context,
        "displays": recorded.displays,
        "damage": recorded.damage,
    }


def _describe_listed(listed: ListedRequest, requests: RequestList) -> dict[str, Any]:
    request, reply, answer = listed.request, listed.reply, listed.answer
    agreement = request.context.agreement
    base = requests.by_id(request.base)
    return {
        "number": listed.number,
        "id": request.id,
        "at": request.at,
        "target": request.target,
        "promotion": request.promotion,
        "active": listed.active,
        "open": listed.open,
        "answered": reply is not None,
        "interrupted": answer is not None and answer.interrupted,
        "retry": request.retry,
        "base": request.base,
        "base_number": base.number if base else None,
        "tokens": request.tokens,
        "agree": agreement.tokens,
        "new": agreement.reprocessed,
        "usage": reply.usage if reply else None,
        "verdict": reply.verdict if reply else None,
        "meaning": VERDICT_MEANINGS[reply.verdict.meaning] if reply and reply.verdict else "",
        "stop": reply.stop if reply else None,
        "answer": answer.message if answer else None,
    }


def describe_segment(segment: Segment) -> dict[str, Any]:
    """Return what a segment is and where it stands, without its content."""
    names = ("layer", "role", "message", "source", "tokens", "cached", "digest")
    return {name: getattr(segment, name) for name in names}


def _describe_change(change: SegmentChange) -> dict[str, Any]:
    segment = change.segment
    row = {
        "status": change.status,
        "stays": change.stays,
        "index": change.index,
        **describe_segment(segment),
        "text": segment.text,
    }
    if not isinstance(segment.content, Text):
        row["content"] = segment.content
    older = change.instead_of or change.supersedes
    if older is not None:
        key = "instead_of" if change.instead_of else "supersedes"
        row[key] = {"source": older.source, "digest": older.digest}
    return row


def list_marks(listed: ListedRequest) -> list[str]:
    """Return what is unusual about a request."""
    marks = []
    if listed.request.retry:
        marks.append("sent again, shorter: the provider rejected it as too long")
    if listed.answer and listed.answer.interrupted:
        marks.append("the answer broke off")
    if listed.open:
        marks.append("not answered yet")
    elif listed.reply is None:
        marks.append("its cost is lost" if listed.answer else "never answered")
    elif listed.answer is None:
        marks.append("the answer is lost")
    if not listed.active:
        marks.append("not on the active path")
    return marks
