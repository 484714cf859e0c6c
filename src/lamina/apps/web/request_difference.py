"""Two requests of a session compared: how far they match, the first byte that moved, who moved it,
why, what that cost and how to fix it.

Laws: bytes are those of the texts in wire order, without the vendor's frame around them: what a
segment's digest covers. Who moved something comes only from the journal: hooks and application
patches are recorded the same way, by the name they gave themselves. Unrecorded causes are called
unrecorded.
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from lamina.apps.views.plain_text import format_json
from lamina.apps.views.sent_requests import LAYER_NAMES
from lamina.apps.web.cache_timeline import find_breaks
from lamina.apps.web.request_anatomy import (
    SegmentBrief,
    brief_segment,
    find_by_id,
    label_segment,
    segment_bytes,
)
from lamina.apps.web.request_summary import RequestRows, RequestSummary
from lamina.core.audit.break_causes import (
    CAUSES,
    Blame,
    BreakKind,
    CauseName,
    blame_of,
    fix_for,
    name_moved,
)
from lamina.core.audit.rebuilt_request import (
    RebuiltRequest,
    SegmentChange,
    list_changes,
    rebuild_request,
)
from lamina.core.audit.requests import list_requests
from lamina.core.journal import LIBRARY_SOURCE, Journal, State, fold_repaired, path_to
from lamina.core.journal.reasons import MovedParts, find_moved_parts
from lamina.core.ledger.agreement import shared_prefix
from lamina.core.ports import TargetBook
from lamina.core.values.damage import Damage
from lamina.core.values.entry import EphemeralEntry, ModelEntry, TransformEntry
from lamina.core.values.message import Text, ToolDefinition
from lamina.core.values.patch import PatchOp, op_name, op_reason
from lamina.core.values.prompt import Layer, Prompt, Segment
from lamina.core.values.request import Agreement, Break
from lamina.core.values.usage import Usage
from lamina.doctor.findings import price_loss

_OWN = "lamina."


class Mover(Struct, frozen=True, kw_only=True):
    """Who moved something: a hook (or an application's patch), the engine itself, or a person, with
    the entry that records it."""

    kind: Literal["hook", "engine", "person"]
    name: str
    op: str
    entry: str
    reason: str


def find_movers(
    journal: Journal, before: RebuiltRequest, after: RebuiltRequest, *sources: str
) -> Iterator[Mover]:
    """Return who moved one of these sources between two requests, as far as the path shows it."""
    start, wanted = before.listed.request.id, {_source(source) for source in sources if source}
    is_message = any(source.partition(":")[0] in _IN_MESSAGES for source in sources)
    damage: list[Damage] = []
    state: State | None = None
    is_between = False
    path = path_to(after.listed.request.id, journal.entries)
    if all(entry.id != start for entry in path):
        # The other request is on another branch: compare from where the two parted.
        shared = {entry.id for entry in path_to(start, journal.entries)}
        start = next((entry.id for entry in reversed(path) if entry.id in shared), "")
    for entry in path:
        earlier, state = state, fold_repaired(state, entry, damage)
        if is_between:
            match entry:
                case TransformEntry(transformer=name, patch=patch) if earlier is not None:
                    moved = find_moved_parts(earlier.envelope, state.envelope)
                    if _touches(moved, wanted, is_message):
                        yield _mover(name, patch.ops, entry.id)
                case EphemeralEntry(patches=patches):
                    for once in patches:
                        yield _mover(once.transformer, once.ops, entry.id)
                case ModelEntry(target=target):
                    reason = f"the session uses {target} from here on"
                    yield Mover(kind="person", name="", op="model", entry=entry.id, reason=reason)
                case _:
                    pass
        is_between = is_between or entry.id == start


_IN_MESSAGES = ("message", "names", "frame", "tool_texts")


def _source(source: str) -> str:
    """Return a source as reasons name it: everything in the library is one source."""
    is_item = "@" in source and source.partition(":")[0] not in ("system", "tool")
    return LIBRARY_SOURCE if is_item else source


def _touches(moved: MovedParts, wanted: set[str], is_message: bool) -> bool:
    return bool(wanted & set(moved.sources)) or (is_message and moved.messages_from is not None)


def _mover(name: str, ops: tuple[PatchOp, ...], entry: str) -> Mover:
    names = dict.fromkeys(op_name(op) for op in ops)
    reasons = dict.fromkeys(filter(None, (op_reason(op) for op in ops)))
    return Mover(
        kind="engine" if name.startswith(_OWN) else "hook",
        name=name,
        op=", ".join(names),
        entry=entry,
        reason="; ".join(reasons),
    )


BYTES_COUNTED = (
    "bytes of the texts of all segments in wire order (tools and pictures as canonical JSON), "
    "without the vendor's frame around them"
)
# Lines shown around a change, and in total.
AROUND, MAX_LINES = 3, 600


class ComparedSegment(SegmentBrief, frozen=True, kw_only=True):
    """A segment of either request. `agrees`: nothing before it moved."""

    status: Literal["kept", "added", "removed"]
    agrees: bool


class DifferenceLine(Struct, frozen=True, kw_only=True):
    """A line of the texts before and after, with its number in either; a `gap` stands for lines
    that both have."""

    mark: Literal["same", "removed", "added", "gap"]
    text: str
    before: int | None
    after: int | None


class MovedByte(Struct, frozen=True, kw_only=True):
    """The first place where two requests differ. `byte` counts from 0 in the texts of all segments
    in wire order, `in_segment` in those of this one; `expected` says that it lies beyond the part
    that was to be sent again, so nothing is lost."""

    byte: int
    in_segment: int
    segment: int
    layer: Layer
    layer_name: str
    source: str
    label: str
    source_before: str
    label_before: str
    expected: bool
    bytes_counted: str


class RequestDifference(Struct, frozen=True, kw_only=True):
    """What changed between two requests. `again` counts tokens that both have and that are
    processed again, `price` is their extra cost over reading them from the cache, None if
    unknown."""

    before: RequestSummary
    after: RequestSummary
    is_base: bool
    same_target: bool
    agree: int
    of: int
    again: int
    price: float | None
    moved: MovedByte | None
    movers: tuple[Mover, ...]
    reason: str
    cause: CauseName | None
    kind: BreakKind | None
    blame: Blame | None
    words: str
    fix: str
    lines: tuple[DifferenceLine, ...]
    is_cut: bool
    segments: tuple[ComparedSegment, ...]
    boundaries: tuple[str, ...]
    problems: tuple[str, ...]


def compare_requests(
    journal: Journal, before: str, after: str, book: TargetBook
) -> RequestDifference:
    """Compare any two requests of a session.

    Raises:
        NoSuchEntry: there is no such request, or one of them cannot be rebuilt.
    """
    requests = list_requests(journal)
    old_listed, new_listed = find_by_id(requests, before), find_by_id(requests, after)
    old = rebuild_request(journal, requests, old_listed, book)
    new = rebuild_request(journal, requests, new_listed, book)
    table = RequestRows(journal, requests, book)
    is_base = new_listed.request.base == old_listed.request.id
    old_prompt, new_prompt = old.prompt or Prompt(), new.prompt or Prompt()
    shared = shared_prefix(old_prompt, new_prompt)
    agree = new_prompt.tokens_until(shared)
    changes = tuple(list_changes(old_prompt, new_prompt))
    moved = _find_moved(old_prompt, new_prompt, shared)
    movers = (
        tuple(find_movers(journal, old, new, moved.source, moved.source_before)) if moved else ()
    )
    loss = _judge_loss(journal, old, new, agree, moved, movers, book)
    lines = _list_lines(changes)
    return RequestDifference(
        before=table.row(old_listed),
        after=table.row(new_listed),
        is_base=is_base,
        same_target=old_listed.request.target == new_listed.request.target,
        agree=agree,
        of=new_prompt.tokens,
        moved=moved,
        movers=movers,
        **asdict(loss),
        lines=tuple(lines[:MAX_LINES]),
        is_cut=len(lines) > MAX_LINES,
        segments=tuple(map(_compared, changes)),
        boundaries=tuple(boundary.reason for boundary in new_listed.request.context.boundaries),
        problems=(*old.problems, *new.problems),
    )


def _compared(change: SegmentChange) -> ComparedSegment:
    return ComparedSegment(status=change.status, agrees=change.stays, **brief_segment(change))


def _find_moved(before: Prompt, after: Prompt, shared: int) -> MovedByte | None:
    """Return the first byte that differs; None if one request is the beginning of the other."""
    old, new = next(before.since(shared), None), next(after.since(shared), None)
    if old is None:
        return None
    segment = new or old
    texts = [segment_bytes(part) if part else b"" for part in (old, new)]
    inside = _shared_length(*texts)
    in_front = sum(len(segment_bytes(part)) for part in before.segments[:shared])
    return MovedByte(
        byte=in_front + inside,
        in_segment=inside,
        segment=shared,
        layer=segment.layer,
        layer_name=LAYER_NAMES[segment.layer],
        source=segment.source,
        label=label_segment(segment),
        source_before=old.source,
        label_before=label_segment(old),
        expected=shared >= before.cached_run(),
        bytes_counted=BYTES_COUNTED,
    )


def _shared_length(one: bytes, other: bytes) -> int:
    """Return how many leading bytes two texts share."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class _Loss(Struct, frozen=True, kw_only=True):
    """The cost and cause of a difference."""

    again: int = 0
    price: float | None = 0.0
    reason: str = ""
    cause: CauseName | None = None
    kind: BreakKind | None = None
    blame: Blame | None = None
    words: str = ""
    fix: str = ""


def _judge_loss(
    journal: Journal,
    old: RebuiltRequest,
    new: RebuiltRequest,
    agree: int,
    moved: MovedByte | None,
    movers: Sequence[Mover],
    book: TargetBook,
) -> _Loss:
    after = new.listed
    context = after.request.context
    is_base = after.request.base == old.listed.request.id
    reason = "; ".join(dict.fromkeys(mover.reason for mover in movers if mover.reason))
    if is_base and context.agreement.broke is not None:
        reason = context.agreement.broke.reason or reason
    if is_base:
        # As in the timeline: by the provider's count.
        breaks = find_breaks(journal, list_requests(journal), new.session.session, book)
        if (broke := breaks.get(after.request.id)) is not None:
            return _Loss(
                again=broke.tokens, price=broke.price, reason=reason, cause=broke.cause,
                kind=broke.kind, blame=broke.blame, words=broke.words,
                fix=_fix(broke.cause, after.request.target, moved, movers),
            )  # fmt: skip
    if moved is None or moved.expected:
        return _Loss(reason=reason)
    standing = min(old.listed.request.cached_tokens, after.request.tokens)
    again = max(0, standing - agree)
    cause: CauseName = "model"
    if old.listed.request.target == after.request.target:
        place = Break(layer=moved.layer, segment=moved.segment, source=moved.source, reason=reason)
        cause = name_moved(Agreement(broke=place))
    return _Loss(
        again=again,
        price=_price(new, again, book),
        reason=reason,
        cause=cause,
        kind=CAUSES[cause].kind,
        blame=blame_of(cause, is_own=True),
        words=f"{CAUSES[cause].sentence}{f': {reason}' if reason else ''}",
        fix=_fix(cause, after.request.target, moved, movers),
    )


def _price(new: RebuiltRequest, again: int, book: TargetBook) -> float | None:
    """Return the extra cost of processing tokens again over reading them."""
    target = book.find(new.listed.request.target)
    tokens = new.listed.request.tokens
    written = tokens if target.cache.explicit else 0
    paid, would = price_loss(Usage(input=tokens, written=written), again, target)
    return None if paid is None or would is None else paid - would


def _fix(cause: CauseName, target: str, moved: MovedByte | None, movers: Sequence[Mover]) -> str:
    hooks = [mover.name for mover in movers if mover.kind == "hook"]
    if moved is not None and hooks and moved.layer in ("L1", "L2", "tools"):
        return (
            f"Let {hooks[0]} send changing content for one request only (in an ephemeral hook, or "
            f"as an uncached message): it then stands after everything that is cached."
        )
    return fix_for(cause, target.partition(":")[0], is_own=True)


# -- lines ---------------------------------------------------------------------------------------


def _list_lines(changes: Sequence[SegmentChange]) -> list[DifferenceLine]:
    """Return the first change line by line: a replaced text, or what was removed and added
    there."""
    run: list[SegmentChange] = []
    for change in changes:
        if change.stays:
            continue
        if change.status == "kept" and run:
            break
        if change.status != "kept":
            run.append(change)
    first = next((change for change in run if change.instead_of is not None), None)
    if first is not None and first.instead_of is not None:
        return list(_diff(_readable(first.instead_of), _readable(first.segment)))
    before = [_readable(change.segment) for change in run if change.status == "removed"]
    after = [_readable(change.segment) for change in run if change.status == "added"]
    return list(_diff("\n".join(before[:1]), "\n".join(after[:1])))


def _readable(segment: Segment) -> str:
    match segment.content:
        case Text(text=text):
            return text
        case ToolDefinition():
            return format_json(msgspec.to_builtins(segment.content))
        case _:
            return segment.text or segment_bytes(segment).decode("utf-8", "replace")


def _diff(before: str, after: str) -> Iterator[DifferenceLine]:
    old, new = before.splitlines(), after.splitlines()
    matcher = SequenceMatcher(None, old, new, autojunk=len(old) + len(new) > MAX_LINES)
    for at, group in enumerate(matcher.get_grouped_opcodes(AROUND)):
        if at or group[0][1] > 0:
            yield DifferenceLine(mark="gap", text="", before=None, after=None)
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                for place in range(i2 - i1):
                    yield DifferenceLine(
                        mark="same", text=old[i1 + place], before=i1 + place + 1,
                        after=j1 + place + 1,
                    )  # fmt: skip
                continue
            for place in range(i1, i2):
                yield DifferenceLine(mark="removed", text=old[place], before=place + 1, after=None)
            for place in range(j1, j2):
                yield DifferenceLine(mark="added", text=new[place], before=None, after=place + 1)
