"""One request in detail: its layers to scale, every segment with its label and the text sent,
and the whole in its vendor's own form.

Laws: only this request and the one it was compared with are rebuilt. If a provider did not report
its cache, cache use is unknown: a segment then either matches the previous request, or is new.
"""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from anyio.to_thread import run_sync
from msgspec import Struct
from msgspec.structs import asdict

from lamina.apps.views.answer_json import describe_options, leading_cached
from lamina.apps.views.sent_requests import LAYER_NAMES, encode_rebuilt
from lamina.apps.web.request_summary import RequestRows, RequestSummary, reported_usage
from lamina.core.audit.rebuilt_request import RebuiltRequest, SegmentChange, rebuild_request
from lamina.core.audit.requests import ListedRequest, RequestList, list_requests
from lamina.core.codec import canonical_bytes
from lamina.core.journal import Journal
from lamina.core.layers import measure_layers
from lamina.core.ports import JournalStore, TargetBook
from lamina.core.text import label_of
from lamina.core.values.damage import Damage
from lamina.core.values.item import ITEM_KINDS, ItemId, key_of, kind_of
from lamina.core.values.message import Image, Text, Thinking, ToolCall, ToolDefinition, ToolResult
from lamina.core.values.patch import HookDisplay
from lamina.core.values.prompt import (
    LAYERS,
    Layer,
    LayerSize,
    Prompt,
    Segment,
    ToolReferences,
    WireRole,
)
from lamina.core.values.request import ContextItem, RequestContext
from lamina.core.values.usage import Usage
from lamina.errors import NoSuchEntry

SegmentKind = Literal["text", "image", "tool_call", "tool_result", "thinking", "tool"]

_KINDS: tuple[tuple[type, SegmentKind], ...] = (
    (Text, "text"), (Image, "image"), (ToolCall, "tool_call"), (ToolResult, "tool_result"),
    (ToolReferences, "tool_result"),
    (Thinking, "thinking"), (ToolDefinition, "tool"),
)  # fmt: skip
_ROLES = {"user": "question", "assistant": "answer", "tool": "tool results"}
_PREFIXES = {"names": "names of relevant items", "frame": "frame of the question"}


def segment_kind(segment: Segment) -> SegmentKind:
    """Return the type of its content."""
    return next(kind for content, kind in _KINDS if isinstance(segment.content, content))


def segment_bytes(segment: Segment) -> bytes:
    """Return its own bytes, which its digest covers: the text, or canonical JSON of other content,
    without the vendor's frame around it."""
    if isinstance(segment.content, Text):
        return segment.content.text.encode("utf-8", "surrogatepass")
    return canonical_bytes(segment.content)


def item_of_segment(segment: Segment) -> tuple[str, str]:
    """Return the item of a segment, and the beginning of its version; empty without an item."""
    if segment.role == "tools":
        return "", ""
    item, at, version = segment.source.rpartition("@")
    return (item, version) if at and item.partition(":")[0] in ITEM_KINDS else ("", "")


def label_segment(segment: Segment) -> str:
    """Return the label of a segment for people."""
    return label_source(segment.source, segment.role)


def label_source(source: str, role: str = "") -> str:
    """Return the label of a source for people, for a segment of that role."""
    item, at, _ = source.rpartition("@")
    if at and role != "tools" and item.partition(":")[0] in ITEM_KINDS:
        return f"{kind_of(ItemId(item))} {label_of(ItemId(item))}"
    kind, _, key = source.partition(":")
    if kind == "system":
        return "library heading" if key == "library" else f"system part {key}"
    if kind == "tool" and key:
        return f"tool {key_of(ItemId(source))}"
    if kind == "message":
        return _ROLES.get(role, "message")
    if source == "tool_texts":
        return "results of planned tools"
    return _PREFIXES.get(kind, source)


# Read from the cache, according to the provider; the same bytes as before but not reported as
# read; new; unknown, because the request it was compared with is lost.
SegmentState = Literal["cached", "agrees", "new", "unknown"]


class LayerShare(LayerSize, frozen=True, kw_only=True):
    """A layer of a request. `cached` is None if the provider did not report it."""

    name: str
    cached: int | None
    agree: int
    new: int


class EarlierText(Struct, frozen=True, kw_only=True):
    """The text that a segment replaced, or an older version that still stands above it."""

    source: str
    digest: str
    text: str
    is_gone: bool
    request: int | None


class SegmentBrief(Struct, frozen=True, kw_only=True):
    """A segment without its text. `index` is its position in its own request."""

    index: int
    layer: Layer
    source: str
    label: str
    tokens: int
    digest: str


class SegmentRow(SegmentBrief, frozen=True, kw_only=True):
    """A segment as it was sent. `start` is its offset in tokens of the whole request; `kind` is the
    type of its content; `content` contains non-text content such as a tool's definition.
    `first_number` is the first request with these bytes, `since_number` the request since which
    they stood at this place. `stays` says that nothing before it changed."""

    role: WireRole
    message: str
    item: str
    version: str
    kind: SegmentKind
    start: int
    bytes: int
    text: str
    content: Any
    state: SegmentState
    cached_tokens: int | None
    stays: bool
    is_lasting: bool
    why: str
    first_request: str
    first_number: int | None
    since_request: str
    since_number: int | None
    replaced: EarlierText | None


class GoneSegment(SegmentBrief, frozen=True, kw_only=True):
    """A segment of the previous request that is not in this one."""

    role: WireRole
    text: str


class RequestAnatomy(Struct, frozen=True, kw_only=True):
    """A request with everything it consists of. `proven` says that every byte matches the record;
    `problems` why not. `previous` and `next` are its neighbours on the active path."""

    session: str
    of: int
    request: RequestSummary
    previous: str
    next: str
    wire: str
    promotion: str
    window: int
    reserve: int
    free: int
    tokens: int
    cached: int | None
    agree: int
    layers: tuple[LayerShare, ...]
    segments: tuple[SegmentRow, ...]
    gone: tuple[GoneSegment, ...]
    context: RequestContext
    options: dict[str, Any]
    citations: tuple[int, ...]
    warnings: tuple[str, ...]
    displays: tuple[HookDisplay, ...]
    proven: bool
    problems: tuple[str, ...]
    damage: tuple[Damage, ...]


class Neighbours(Struct, frozen=True, kw_only=True):
    """The requests before and after one, on the active path or, for others, among all."""

    previous: str
    next: str


def find_neighbours(requests: RequestList, listed: ListedRequest) -> Neighbours:
    shown = [other for other in requests.listed if other.active or not listed.active]
    at = shown.index(listed)
    return Neighbours(
        previous=shown[at - 1].request.id if at else "",
        next=shown[at + 1].request.id if at + 1 < len(shown) else "",
    )


def find_by_id(requests: RequestList, request: str) -> ListedRequest:
    """Return the request with that entry id, or the `last` one.

    Raises:
        NoSuchEntry: there is no such request.
    """
    listed = requests.listed
    if request == "last" and listed:
        return next((other for other in reversed(listed) if other.active), listed[-1])
    if (found := requests.by_id(request)) is None:
        raise NoSuchEntry(f"no request {request!r} in this session")
    return found


def dissect_request(journal: Journal, request: str, book: TargetBook) -> RequestAnatomy:
    """Return a request in detail, even one that is still running.

    Raises:
        NoSuchEntry: there is no such request.
    """
    requests = list_requests(journal)
    listed = find_by_id(requests, request)
    recorded = rebuild_request(journal, requests, listed, book)
    prompt = recorded.prompt or Prompt()
    usage = reported_usage(listed.reply)
    agreement = listed.request.context.agreement
    cached = reported_tokens(prompt.tokens, recorded, usage)
    fit = listed.request.context.fit
    around = find_neighbours(requests, listed)
    return RequestAnatomy(
        session=recorded.session.session,
        of=len(requests.listed),
        request=RequestRows(journal, requests, book).row(listed),
        previous=around.previous,
        next=around.next,
        wire=listed.request.wire,
        promotion=listed.request.promotion,
        window=fit.window,
        reserve=fit.reserve,
        free=max(0, fit.available - fit.tokens),
        tokens=prompt.tokens,
        cached=cached,
        agree=agreement.tokens,
        layers=tuple(_share_layers(prompt, cached, agreement.tokens)),
        segments=tuple(_Dissection(recorded, requests, cached).rows()),
        gone=tuple(_gone(change) for change in recorded.changes if change.status == "removed"),
        context=listed.request.context,
        options=describe_options(recorded.options),
        citations=recorded.citations,
        warnings=recorded.warnings,
        displays=recorded.displays,
        proven=recorded.prompt is not None and not recorded.problems,
        problems=recorded.problems,
        damage=recorded.damage,
    )


def reported_tokens(tokens: int, recorded: RebuiltRequest, usage: Usage | None) -> int | None:
    """Return how many leading tokens, by our count, the provider read from its cache; None if
    unreported."""
    if usage is None or not usage.cache_reported or not usage.input:
        return None
    return leading_cached(tokens, recorded.listed.request.context.agreement, usage)


def _share_layers(prompt: Prompt, cached: int | None, agree: int) -> Iterator[LayerShare]:
    read, same = dict.fromkeys(LAYERS, 0), dict.fromkeys(LAYERS, 0)
    at = 0
    for segment in prompt:
        read[segment.layer] += max(0, min((cached or 0) - at, segment.tokens))
        same[segment.layer] += max(0, min(agree - at, segment.tokens))
        at += segment.tokens
    for size in measure_layers(prompt):
        yield LayerShare(
            name=LAYER_NAMES[size.layer],
            cached=None if cached is None else read[size.layer],
            agree=same[size.layer],
            new=size.tokens - same[size.layer],
            **asdict(size),
        )


def brief_segment(change: SegmentChange) -> dict[str, Any]:
    """Return the fields of a `SegmentBrief`."""
    segment = change.segment
    return {
        "index": change.index,
        "layer": segment.layer,
        "source": segment.source,
        "label": label_segment(segment),
        "tokens": segment.tokens,
        "digest": segment.digest,
    }


def _gone(change: SegmentChange) -> GoneSegment:
    return GoneSegment(
        role=change.segment.role,
        text=segment_bytes(change.segment).decode("utf-8", "replace"),
        **brief_segment(change),
    )


def _chain_of(requests: RequestList, listed: ListedRequest) -> list[ListedRequest]:
    """Return the chain of requests that this one was compared with, oldest first."""
    chain = [listed]
    known = {listed.request.id}
    while (base := requests.by_id(chain[-1].request.base)) and base.request.id not in known:
        known.add(base.request.id)
        chain.append(base)
    return chain[::-1]


class _Dissection:
    """The segments of one request, each with where it was first sent and why it is there."""

    def __init__(self, recorded: RebuiltRequest, requests: RequestList, cached: int | None) -> None:
        self._recorded = recorded
        self._cached = cached
        context = recorded.listed.request.context
        self._agree = context.agreement.tokens
        self._is_lost = bool(recorded.listed.request.base) and recorded.base is None
        self._items: dict[tuple[str, str], ContextItem] = {
            (item.item, item.version[:8]): item for item in context.items
        }
        self._listed = {tool.name: tool for tool in context.tools}
        steps = recorded.prompt.steps if recorded.prompt else ()
        self._steps = {link.segment.message for link in steps}
        # Requests record only the digests that are new, so this is fast.
        self._first: dict[str, ListedRequest] = {}
        self._since: list[ListedRequest] = []
        for earlier in _chain_of(requests, recorded.listed):
            entry = earlier.request
            del self._since[entry.kept :]
            self._since += [earlier] * len(entry.digests)
            for digest in entry.digests:
                self._first.setdefault(digest, earlier)

    def rows(self) -> Iterator[SegmentRow]:
        start = 0
        for change in self._recorded.changes:
            if change.status != "removed":
                yield self._row(change, start)
                start += change.segment.tokens

    def _row(self, change: SegmentChange, start: int) -> SegmentRow:
        segment = change.segment
        item, version = item_of_segment(segment)
        first = self._first.get(segment.digest)
        since = self._since[change.index] if change.index < len(self._since) else None
        cached = self._cached
        data = segment_bytes(segment)
        is_text = isinstance(segment.content, Text)
        return SegmentRow(
            role=segment.role,
            message=segment.message,
            item=item,
            version=version,
            kind=segment_kind(segment),
            start=start,
            bytes=len(data),
            text=segment.text if is_text or segment.text else data.decode("utf-8", "replace"),
            content=None if is_text else msgspec.to_builtins(segment.content),
            state=self._state(segment, start),
            cached_tokens=None if cached is None else max(0, min(cached - start, segment.tokens)),
            stays=change.stays,
            is_lasting=segment.cached,
            why=self._why(segment, item, version),
            first_request=first.request.id if first else "",
            first_number=first.number if first else None,
            since_request=since.request.id if since else "",
            since_number=since.number if since else None,
            replaced=self._replaced(change),
            **brief_segment(change),
        )

    def _state(self, segment: Segment, start: int) -> SegmentState:
        # A cache serves a prefix: a segment counts as read if more than half of it was.
        middle = start + segment.tokens / 2
        if self._cached is not None and middle < self._cached:
            return "cached"
        if start + segment.tokens <= self._agree:
            return "agrees"
        return "unknown" if self._is_lost else "new"

    def _replaced(self, change: SegmentChange) -> EarlierText | None:
        older = change.instead_of or change.supersedes
        if older is None:
            return None
        first, base = self._first.get(older.digest), self._recorded.base
        number = first.number if first else base.number if base else None
        return EarlierText(
            source=older.source,
            digest=older.digest,
            text=segment_bytes(older).decode("utf-8", "replace"),
            is_gone=change.instead_of is not None,
            request=number,
        )

    def _why(self, segment: Segment, item: str, version: str) -> str:
        if item:
            return _describe_item(self._items.get((item, version)))
        kind, _, key = segment.source.partition(":")
        if segment.role == "tools":
            tool = self._listed.get(key)
            if tool is not None and tool.kept:
                return "added for an earlier question, and kept"
            if tool is not None and tool.include == "agent":
                score = "" if tool.score is None else f" ({tool.score:.2f})"
                return f"chosen for the question{score}"
            is_by_hand = tool is not None and tool.include == "manual"
            return "added by hand" if is_by_hand else "part of every request"
        if kind == "message" and segment.layer == "L4":
            is_step = segment.message in self._steps
            return "a step of this turn" if is_step else "earlier in the conversation"
        return _WHY.get(kind, "")


_WHY = {
    "system": "part of every request",
    "names": "names the items relevant to the question",
    "frame": "separates the question from its attachments",
    "message": "the question as typed",
    "tool_texts": "results of planned tools, for this request only",
}


def _describe_item(described: ContextItem | None) -> str:
    """Return why an item is in the request."""
    if described is None:
        return "sent earlier and still present; this question does not name it"
    score = "" if described.score is None else f" ({described.score:.2f})"
    return f"{described.reason}{score}"


class WireBody(Struct, frozen=True, kw_only=True):
    """A request in its vendor's form, and why it may differ from what was sent."""

    request: str
    target: str
    wire: str
    body: Any
    problems: tuple[str, ...]


async def show_body(
    journal: Journal, request: str, store: JournalStore, book: TargetBook
) -> WireBody:
    """Return a request in its vendor's form.

    Raises:
        NoSuchEntry: there is no such request, or it cannot be rebuilt.
    """
    requests = list_requests(journal)
    listed = find_by_id(requests, request)
    recorded = await run_sync(rebuild_request, journal, requests, listed, book)
    body, problems = await encode_rebuilt(recorded, store, book)
    return WireBody(
        request=listed.request.id,
        target=listed.request.target,
        wire=listed.request.wire,
        body=body,
        problems=problems,
    )
