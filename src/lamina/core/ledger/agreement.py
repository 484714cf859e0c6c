"""Compares the request about to be sent with the last one sent.

Laws: a later request extends the cached segments of the earlier one, up to its first uncached one,
unless reasons were recorded for the parts that moved, each for its own part. The earlier request is
the one recorded in the journal, not the one that would be built today. The check is the last step
before encoding.

Private: see `lamina` for what is public.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, islice

from msgspec import Struct
from msgspec.structs import asdict, replace

from lamina.core.codec import segment_digest
from lamina.core.journal import LIBRARY_SOURCE, RecordedReason, find_moved_names, texts_of
from lamina.core.layers import Layout
from lamina.core.values.collections import Chain
from lamina.core.values.message import Message, Thinking
from lamina.core.values.prompt import Prompt, Segment, SegmentLink
from lamina.core.values.request import Agreement, Boundary, Break, MovedPlace
from lamina.errors import PrefixMoved

NO_MESSAGES: Chain[Message] = Chain()
# The parts that a reason must cover so that thinking may be added or removed.
THINKING_SOURCE = "thinking"


class SentPrompt(Struct, frozen=True, kw_only=True):
    """The last request known to be sent: its prompt, as built today. If that differs from the
    record, `digests` are the recorded ones, and `cause` is the reason, if known."""

    prompt: Prompt
    layout: Layout = Layout()
    digests: tuple[str, ...] | None = None
    cause: Boundary | None = None
    # The number of segments that were to be sent again, and how many of them are built identically.
    cached_run: int = 0
    same: int = 0
    # Whether all of its bytes differ now, though the segments may be the same.
    replaced: bool = False


def shared_links(before: Chain[SegmentLink], after: Chain[SegmentLink]) -> int:
    """Return how many leading segments agree: directly as far as the buffer is shared, beyond that
    by bisection on the running digests."""
    low, high = before.shared_with(after), min(len(before), len(after))
    while low < high:
        middle = (low + high + 1) // 2
        if before[middle - 1].running == after[middle - 1].running:
            low = middle
        else:
            high = middle - 1
    return low


def shared_prefix(before: Prompt, after: Prompt) -> int:
    """Return how many leading segments of two prompts have the same bytes on the wire."""
    shared = shared_links(before.front, after.front)
    if shared < before.ends[0] or shared < after.ends[0]:
        # One front is longer: the shorter one is followed by messages, whose roles differ from it.
        return shared
    return shared + shared_messages(before, after)


def shared_messages(before: Prompt, after: Prompt) -> int:
    """Return how many leading segments of their messages are the same, whatever precedes the
    messages."""
    old_front, new_front = before.ends[0], after.ends[0]
    old_turn, new_turn = before.ends[1] - old_front, after.ends[1] - new_front
    shared = shared_links(before.history, after.history)
    if shared < old_turn and shared < new_turn:
        return shared
    if old_turn == new_turn and _digests(before) == _digests(after):
        # The same turn continues: its steps are a chain of their own.
        shared += len(before.asked) + shared_links(before.steps, after.steps)
    pairs = zip(before.since(old_front + shared), after.since(new_front + shared), strict=False)
    for old, new in pairs:
        if old.digest != new.digest:
            break
        shared += 1
    return shared


def _digests(prompt: Prompt) -> list[str]:
    return [segment.digest for segment in prompt.asked]


def shared_digests(digests: Sequence[str], after: Prompt) -> int:
    """Return how many leading segments of a prompt have these digests."""
    shared = 0
    for digest, segment in zip(digests, after, strict=False):
        if digest != segment.digest:
            break
        shared += 1
    return shared


def compare(
    sent: SentPrompt | None,
    after: Prompt,
    reasons: Sequence[RecordedReason] = (),
    messages: Chain[Message] = NO_MESSAGES,
) -> Agreement:
    """Return how far `after` extends the sent prompt, what broke it first, and whether the reasons
    cover everything that moved. `messages` are those that `after` was made from."""
    if sent is None:
        return Agreement(first=True, reprocessed=after.tokens)
    before = sent.prompt
    if sent.replaced:
        shared, run = 0, 1
    elif sent.digests is not None:
        shared, run = shared_digests(sent.digests, after), sent.cached_run
    else:
        shared, run = shared_prefix(before, after), before.cached_run()
    tokens = after.tokens_until(shared)
    agreement = Agreement(segments=shared, tokens=tokens, reprocessed=after.tokens - tokens)
    if shared >= run:
        return agreement
    place = _place(before, after, shared, shared)
    reason, unexplained = _explain(sent, after, shared, reasons, messages)
    broke = Break(**asdict(place), reason=reason)
    return replace(agreement, broke=broke, unexplained=unexplained)


def _place(before: Prompt, after: Prompt, old_index: int, new_index: int) -> MovedPlace:
    old, new = next(before.since(old_index), None), next(after.since(new_index), None)
    # If the cause was recorded and cannot be rebuilt, only its place is known.
    segment = new or old or after.segments[-1]
    return MovedPlace(
        layer=segment.layer,
        segment=new_index,
        source=segment.source,
        before=old.source if old else "",
    )


def _explain(
    sent: SentPrompt,
    after: Prompt,
    shared: int,
    reasons: Sequence[RecordedReason],
    messages: Chain[Message],
) -> tuple[str, tuple[MovedPlace, ...]]:
    """Return the recorded reasons for the moved parts, and the parts that no reason covers."""
    if sent.cause and (sent.replaced or shared >= sent.same):
        return sent.cause.reason, ()
    before = sent.prompt
    if sent.digests is None:
        moves = _find_moves(before, after, reasons, messages)
    else:
        # A part that is not rebuilt identically has moved as well, whatever moved before it.
        moves = iter([_find_move(before, after, shared, shared, messages)])
        if sent.same < sent.cached_run and not sent.cause:
            again = _find_move(before, before, sent.same, sent.same, messages)
            moves = chain(moves, [again])
    covering: set[str] = set()
    unexplained: list[MovedPlace] = []
    for move in moves:
        texts = {reason.text for reason in reasons if move.is_covered(reason)}
        covering |= texts
        if not move.follows and not any(text.strip() for text in texts):
            unexplained.append(move.place)
    text = texts_of(reason for reason in reasons if reason.text in covering)
    return text, tuple(dict.fromkeys(unexplained))


class _Move(Struct, frozen=True, kw_only=True):
    """A difference from the sent prompt: identified by its source if it is in the front, else by
    the message at which the differences start."""

    place: MovedPlace
    source: str = ""
    message: int | None = None
    # Whether it is thinking that was added or removed.
    is_thinking: bool = False
    # Whether it only changed places with a part that a reason covers.
    follows: bool = False

    def is_covered(self, reason: RecordedReason) -> bool:
        if self.is_thinking and reason.covers_source(THINKING_SOURCE):
            return True
        if self.message is not None:
            return reason.covers_message(self.message)
        return reason.covers_source(self.source)


def _find_moves(
    before: Prompt, after: Prompt, reasons: Sequence[RecordedReason], messages: Chain[Message]
) -> Iterator[_Move]:
    """Return everything in the front that moved, and the first message that did."""
    if shared_links(before.front, after.front) < max(before.ends[0], after.ends[0]):
        yield from _find_front_moves(before, after, reasons)
    shared = shared_messages(before, after)
    if shared < before.cached_run() - before.ends[0]:
        yield _find_move(before, after, before.ends[0] + shared, after.ends[0] + shared, messages)


def _find_front_moves(
    before: Prompt, after: Prompt, reasons: Sequence[RecordedReason]
) -> list[_Move]:
    covered = {s for reason in reasons if reason.text.strip() for s in reason.moved.sources}
    old, new = ([_sourced(link.segment) for link in prompt.front] for prompt in (before, after))
    places = [{name: at for at, (name, _) in reversed([*enumerate(part)])} for part in (old, new)]
    rest = ([pair for pair in part if pair[0] not in covered] for part in (old, new))
    alone = find_moved_names(*rest)
    moves = []
    for source in find_moved_names(old, new):
        was, now = (part.get(source) for part in places)
        if was is None or now is None:
            at = now if was is None else was
            assert at is not None
            place = _place(before, after, at, at)
        else:
            place = _place(before, after, was, now)
        moves.append(_Move(place=place, source=source, follows=source not in alone))
    # Removed parts come before those that are only displaced by the removal.
    order = [(move.place.segment, move.place.before == move.place.source) for move in moves]
    return [moves[at] for at in sorted(range(len(moves)), key=order.__getitem__)]


def _sourced(segment: Segment) -> tuple[str, str]:
    """Return a front segment under the name by which a reason covers it; the library counts as one
    part."""
    return LIBRARY_SOURCE if segment.layer == "L2" else segment.source, segment.digest


def _find_move(
    before: Prompt, after: Prompt, old_index: int, new_index: int, messages: Chain[Message]
) -> _Move:
    """Return the move at one place, which was at another place before."""
    place = _place(before, after, old_index, new_index)
    old, new = next(before.since(old_index), None), next(after.since(new_index), None)
    segments = [segment for segment in (old, new) if segment is not None]
    fronts = [segment for segment in segments if segment.role in ("tools", "system")]
    if fronts:
        return _Move(place=place, source=_sourced(fronts[-1])[0])
    last = _last_shared(after, new_index, messages)
    # A removed message stood after everything that was left untouched.
    places = [
        _find_message(messages, last + 1, segment.message) if _opens(segment) else last
        for segment in segments
    ]
    is_thinking = any(isinstance(segment.content, Thinking) for segment in segments)
    return _Move(place=place, message=min(places, default=len(messages)), is_thinking=is_thinking)


def _last_shared(prompt: Prompt, index: int, messages: Chain[Message]) -> int:
    """Return the place of the message that contains the segment before `index`; -1 if there is
    none. Several summaries have one id, and a message may have no segments: only the order counts.
    """
    at, message = -1, None
    for segment in islice(prompt.since(prompt.ends[0]), index - prompt.ends[0]):
        if segment.message != message or _opens(segment):
            at, message = _find_message(messages, at + 1, segment.message), segment.message
    return at


def _find_message(messages: Chain[Message], start: int, message: str) -> int:
    places = (at for at in range(start, len(messages)) if messages[at].id == message)
    return next(places, len(messages))


def _opens(segment: Segment) -> bool:
    """Return whether a segment is the first one of its message, according to its digest."""
    return segment.digest == segment_digest(segment.role, segment.content, opens=True)


def require_reason(agreement: Agreement) -> None:
    """Refuse a request that moves bytes not covered by a reason.

    Raises:
        PrefixMoved: naming layer, segment and source.
    """
    for place in agreement.unexplained:
        same = place.before == place.source
        change = "its content changed" if same else f"was {place.before}"
        raise PrefixMoved(place.layer, place.segment, place.source, change)
