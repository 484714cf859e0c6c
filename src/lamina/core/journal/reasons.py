"""Records reasons for moving what was sent, and what each of them covers.

Law: a reason covers what its operation moved, and nothing else. What it moved is determined from
the envelopes before and after it, by the sources of segments in a prompt.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from msgspec import Struct

from lamina.core.values.collections import Chain
from lamina.core.values.envelope import (
    LIBRARY,
    Envelope,
    Options,
    SystemOrder,
    SystemPart,
    order_parts,
)
from lamina.core.values.message import Message
from lamina.core.values.patch import PatchOp, op_name, op_reason

LIBRARY_SOURCE = f"system:{LIBRARY}"


class MovedParts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The moved parts of a prompt: tools, system parts, the library and options by their source,
    and messages by the index in history of the first one that moved. Everything after it is
    processed again."""

    sources: tuple[str, ...] = ()
    messages_from: int | None = None

    def __bool__(self) -> bool:
        return bool(self.sources) or self.messages_from is not None

    def within(self, other: "MovedParts") -> "MovedParts":
        """Return the parts that moved in both."""
        first = self.messages_from if other.messages_from is not None else None
        shared = tuple(source for source in self.sources if source in other.sources)
        return MovedParts(sources=shared, messages_from=first)


class RecordedReason(Struct, frozen=True, kw_only=True):
    """A reason on the path since the last request that was sent, its operation, and the parts that
    this moved. `is_return` means that it only moves back what was different in one request: earlier
    cached content may still be cached."""

    text: str
    op: str = ""
    moved: MovedParts = MovedParts()
    is_return: bool = False

    def covers_source(self, source: str) -> bool:
        return source in self.moved.sources

    def covers_message(self, place: int) -> bool:
        first = self.moved.messages_from
        return first is not None and first <= place


def reason_of(op: PatchOp, before: Envelope, after: Envelope) -> RecordedReason:
    """Return the reason of an operation that made `after` from `before`."""
    return RecordedReason(text=op_reason(op), op=op_name(op), moved=find_moved_parts(before, after))


def find_moved_parts(before: Envelope, after: Envelope) -> MovedParts:
    """Return the parts of a prompt that differ or are at another position."""
    sources: set[str] = set()
    if before.tool_list is not after.tool_list:
        sources |= find_moved_names(_tools(before), _tools(after))
    for order in _ORDERS:
        # In any layout: this determines which part comes first, without a separator.
        if before.system is not after.system or bool(before.library) != bool(after.library):
            sources |= find_moved_names(_parts(before, order), _parts(after, order))
        if _library(before, order) != _library(after, order):
            sources.add(LIBRARY_SOURCE)
    sources |= {f"option:{name}" for name in find_changed_options(before.options, after.options)}
    return MovedParts(
        sources=tuple(sorted(sources)),
        messages_from=_first_moved(before.cached, after.cached),
    )


def find_changed_options(before: Options, after: Options) -> list[str]:
    """Return the names of options that differ. They are in no segment; their effect on a provider's
    cache depends on the provider."""
    if before is after:
        return []
    names = Options.__struct_fields__
    return [name for name in names if getattr(before, name) != getattr(after, name)]


def find_return(copy: Envelope, own: Envelope) -> MovedParts:
    """Return the parts that change back when a request made from `copy` is followed by one made
    from its `own` envelope. Includes parts that only stood after such a change or return: other
    things now come after it."""
    there, back = find_moved_parts(own, copy), find_moved_parts(copy, own)
    places = [there.messages_from, back.messages_from]
    if len(copy.cached) != len(own.cached):
        places.append(min(len(copy.cached), len(own.cached)))
    first = min((place for place in places if place is not None), default=None)
    return MovedParts(sources=back.sources, messages_from=first)


def find_moved_names(
    before: Sequence[tuple[str, object]], after: Sequence[tuple[str, object]]
) -> set[str]:
    """Return the names that are on one side only, or have different values. If the common names are
    in another order, includes those that changed places."""
    if before == after:
        return set()
    old, new = _by_name(before), _by_name(after)
    moved = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    stays = ([name for name, _ in pairs if name not in moved] for pairs in (before, after))
    pairs = zip(*stays, strict=True)
    return moved | {name for pair in pairs if pair[0] != pair[1] for name in pair}


def _by_name(pairs: Sequence[tuple[str, object]]) -> dict[str, list[object]]:
    values: dict[str, list[object]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return values


def _tools(envelope: Envelope) -> list[tuple[str, object]]:
    return [(f"tool:{tool.name}", tool) for tool in envelope.tool_list]


def _parts(envelope: Envelope, order: "_Order") -> list[tuple[str, object]]:
    """Return the parts that have text. The first of them has no separator, unless the library comes
    before it."""
    parts = order(envelope.system)
    texts = [(part.name, part.text.strip(), False) for part in parts.before]
    texts += [(part.name, part.text.strip(), bool(envelope.library)) for part in parts.behind]
    texts = [(name, text, follows) for name, text, follows in texts if text]
    return [
        (f"system:{name}", (text, not place and not follows))
        for place, (name, text, follows) in enumerate(texts)
    ]


def _library(envelope: Envelope, order: "_Order") -> tuple[object, bool]:
    """Return the library as compared. Its header has no separator if no system part comes before
    it."""
    library = envelope.library
    if not library:
        return (library, False)
    return (library, any(part.text.strip() for part in order(envelope.system).before))


_Order = Callable[[Iterable[SystemPart]], SystemOrder]
_ORDERS: tuple[_Order, ...] = (
    partial(order_parts, shared_first=False, library_first=False),
    partial(order_parts, shared_first=True, library_first=False),
    partial(order_parts, shared_first=True, library_first=True),
)


def _first_moved(before: Chain[Message], after: Chain[Message]) -> int | None:
    """Return the index of the first message that is gone or has changed; None if messages were only
    appended."""
    if before is after or before.shared_with(after) == len(before):
        return None
    for place, (old, new) in enumerate(zip(before, after, strict=False)):
        if old is not new and old != new:
            return place
    return len(after) if len(after) < len(before) else None


def texts_of(reasons: Iterable[RecordedReason]) -> str:
    """Return the texts of reasons, without duplicates."""
    return "; ".join(dict.fromkeys(reason.text for reason in reasons if reason.text))
