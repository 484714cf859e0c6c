"""Reasons for moving what was sent, and what each of them covers.

Law: a reason covers what its op moved, and nothing else. What an op moved is read off the
envelopes before and after it, by the sources that segments have in a prompt.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from lamina.values.collections import Chain
from lamina.values.envelope import LIBRARY, Envelope
from lamina.values.message import Message
from lamina.values.patch import PatchOp, op_name, op_reason

LIBRARY_SOURCE = f"system:{LIBRARY}"


class MovedParts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What moved: tools, system parts and the library by their source, and the messages from one
    on, by its place in history. Behind it everything is processed anew."""

    sources: tuple[str, ...] = ()
    messages_from: int | None = None

    def __bool__(self) -> bool:
        return bool(self.sources) or self.messages_from is not None

    def within(self, other: "MovedParts") -> "MovedParts":
        """What of this moved there as well."""
        first = self.messages_from if other.messages_from is not None else None
        shared = tuple(source for source in self.sources if source in other.sources)
        return MovedParts(sources=shared, messages_from=first)


class RecordedReason(Struct, frozen=True, kw_only=True):
    """A reason on the path since the last request that was sent, the op that it was given with,
    and what that op moved."""

    text: str
    op: str = ""
    moved: MovedParts = MovedParts()

    def covers_source(self, source: str) -> bool:
        return source in self.moved.sources

    def covers_message(self, place: int) -> bool:
        first = self.moved.messages_from
        return first is not None and first <= place


def reason_of(op: PatchOp, before: Envelope, after: Envelope) -> RecordedReason:
    """The reason of an op that made `after` of `before`."""
    return RecordedReason(text=op_reason(op), op=op_name(op), moved=find_moved_parts(before, after))


def find_moved_parts(before: Envelope, after: Envelope) -> MovedParts:
    """What of an envelope stands otherwise in a prompt, or at another place."""
    sources: set[str] = set()
    if before.tool_list is not after.tool_list:
        sources |= find_moved_names(_tools(before), _tools(after))
    if before.system is not after.system:
        sources |= find_moved_names(_parts(before), _parts(after))
    if _library(before) != _library(after):
        sources.add(LIBRARY_SOURCE)
    return MovedParts(
        sources=tuple(sorted(sources)),
        messages_from=_first_moved(before.cached, after.cached),
    )


def find_moved_names(
    before: Sequence[tuple[str, object]], after: Sequence[tuple[str, object]]
) -> set[str]:
    """The names that stand on one side only, or with another value there. Where what they have in
    common stands in another order, those that changed places."""
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


def _parts(envelope: Envelope) -> list[tuple[str, object]]:
    """The parts that have a text. The first of them stands without a separator."""
    texts = [(part.name, part.text.strip()) for part in envelope.system]
    texts = [(name, text) for name, text in texts if text]
    return [(f"system:{name}", (text, not place)) for place, (name, text) in enumerate(texts)]


def _library(envelope: Envelope) -> tuple[object, bool]:
    """Its header stands without a separator if there is no system part in front of it."""
    library = envelope.library
    return (library, bool(library) and any(part.text.strip() for part in envelope.system))


def _first_moved(before: Chain[Message], after: Chain[Message]) -> int | None:
    """The place of the first message that is not there any more, or not as it was; None if there
    only were appended some."""
    if before is after or before.shared_with(after) == len(before):
        return None
    for place, (old, new) in enumerate(zip(before, after, strict=False)):
        if old is not new and old != new:
            return place
    return len(after) if len(after) < len(before) else None


def texts_of(reasons: Iterable[RecordedReason]) -> str:
    """What reasons say, each once."""
    return "; ".join(dict.fromkeys(reason.text for reason in reasons if reason.text))
