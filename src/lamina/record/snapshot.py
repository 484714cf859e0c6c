"""A session's state as bytes, so that opening it again need not replay it.

Law: a snapshot is what a replay would give, or it is not used; everything in it can be had from
the journal. Messages and items are not in it but looked up in the journal when they are needed.
"""

from array import array
from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from lamina.codec import mint_id
from lamina.errors import JournalError
from lamina.journal import Journal, LastRequests, Library, State
from lamina.layers import Assembler, Layout
from lamina.values.collections import Chain, FrozenMap, LazyList
from lamina.values.entry import (
    FORMAT,
    RENDERER,
    Entry,
    ItemEntry,
    MessageEntry,
    OpeningEntry,
    RequestEntry,
    SessionEntry,
)
from lamina.values.envelope import Envelope, SystemPart
from lamina.values.item import Item, ItemId
from lamina.values.message import Context, Message, ToolText
from lamina.values.prompt import StrandRecord

# Raised whenever a fold means something else than before.
VERSION = f"{FORMAT}/{RENDERER}/10"

# How a message is had: as its entry has it, the same without its context, or from here.
_AS_ENTRY, _BARE, _INLINE = range(3)
# How many of the latest messages are looked at before a request is made, and the bytes of a number.
_LATEST, _WORD = 32, array("Q").itemsize


def _without(kind: type[Struct], *names: str, **types: Any) -> Any:
    """A struct with the fields of `kind` except `names`, which are looked up, or kept apart.
    `types` are those of fields that are written as another type."""
    hints = get_type_hints(kind) | types
    fields = [(name, hints[name]) for name in kind.__struct_fields__ if name not in names]
    return msgspec.defstruct(f"_{kind.__name__}", fields, kw_only=True)


_State = _without(State, "session", "envelope", "library", "requests")
_Envelope = _without(Envelope, "cached", system=tuple[SystemPart, ...])
_Library = _without(Library, "items", "item_entries")
_Requests = _without(LastRequests, "open", "sent")


class SentLayout(Struct, frozen=True, kw_only=True, array_like=True):
    """How to lay out the last request that was sent: today's envelope, less what came since."""

    request: str
    messages: int
    turn_start: int
    tool_texts: tuple[ToolText, ...] = ()
    uncached: tuple[Message, ...] = ()


class _Strand(Struct, frozen=True, kw_only=True, array_like=True):
    counter: str
    layout: Layout
    record: StrandRecord


class _Frozen(Struct, frozen=True, kw_only=True, array_like=True):
    version: str
    state: bytes
    envelope: bytes
    library: bytes
    requests: bytes
    kinds: bytes
    numbers: bytes
    inline: tuple[Message, ...]
    items: tuple[tuple[ItemId, str, str], ...]
    open_request: str
    last_sent: str
    strand: _Strand | None
    sent: SentLayout | None


class _Origin(Struct, frozen=True):
    """What the messages of a chain are loaded from."""

    kinds: bytes
    numbers: bytes
    inline: tuple[Message, ...]


class Snapshot(Struct, frozen=True, kw_only=True):
    """A state that was kept, with the totals of its history, and the entries that stand behind it
    on the way to where the session goes on."""

    state: State
    behind: tuple[Entry, ...] = ()
    sent: SentLayout | None = None
    strand: _Strand | None = None

    def origins(self) -> Iterator[str]:
        """The ids of all entries that the state looks up as it is sent: messages and items."""
        messages = self.state.envelope.cached.origin
        if messages is not None and isinstance(origin := messages.origin, _Origin):
            yield from _ids_of(origin.kinds, origin.numbers)
        yield from self.state.library.item_entries.values()

    def restore(self, assembler: Assembler, counter: str) -> None:
        """Gives an assembler the totals of history, if they are its own."""
        strand = self.strand
        if strand and (strand.counter, strand.layout) == (counter, assembler.layout):
            assembler.thaw(strand.record, self.state.envelope.cached, self.state.library.items)


def freeze(
    state: State,
    entries: Mapping[str, Entry],
    sent: SentLayout | None,
    assembler: Assembler | None = None,
    counter: str = "",
) -> bytes:
    """The snapshot of `state`."""
    cached = state.envelope.cached
    origin = _describe(cached, entries)
    strand = None
    if assembler and (record := assembler.freeze(cached)):
        strand = _Strand(counter=counter, layout=assembler.layout, record=record)
    return msgspec.msgpack.encode(
        _Frozen(
            version=VERSION,
            state=_encode(_State, state),
            envelope=_encode(_Envelope, state.envelope),
            library=_encode(_Library, state.library),
            requests=_encode(_Requests, state.requests),
            **asdict(origin),
            items=tuple((*key, entry) for key, entry in state.library.item_entries.items()),
            open_request=state.requests.open.id if state.requests.open else "",
            last_sent=state.requests.sent.id if state.requests.sent else "",
            strand=strand,
            sent=sent,
        )
    )


def _encode(kind: Any, value: Struct) -> bytes:
    fields = {name: getattr(value, name) for name in kind.__struct_fields__}
    return msgspec.msgpack.encode(kind(**fields))


def _describe(cached: Chain[Message], entries: Mapping[str, Entry]) -> _Origin:
    """How each message is to be had again."""
    kinds, numbers, inline = bytearray(), array("Q"), []
    known = 0
    if (messages := cached.origin) and isinstance(origin := messages.origin, _Origin):
        known = min(messages.base, len(cached))
        kinds += origin.kinds[:known]
        numbers.frombytes(origin.numbers[: known * numbers.itemsize])
        inline = list(origin.inline)
    for message in cached.since(known):
        entry = entries.get(message.id)
        kind = _INLINE
        if isinstance(entry, MessageEntry):
            if entry.message is message or entry.message == message:
                kind = _AS_ENTRY
            elif _bare(entry.message) == message:
                kind = _BARE
        kinds.append(kind)
        if kind == _INLINE:
            numbers.append(len(inline))
            inline.append(message)
        else:
            numbers.append(int(message.id, 16))
    return _Origin(bytes(kinds), numbers.tobytes(), tuple(inline))


def _bare(message: Message) -> Message:
    blocks = tuple(block for block in message.blocks if not isinstance(block, Context))
    return replace(message, blocks=blocks)


def first_origins(journal: Journal) -> Iterator[str]:
    """The ids of the entries that taking up a session looks up at once: its last requests, its
    items and the latest messages."""
    try:
        frozen = msgspec.msgpack.decode(journal.snapshot, type=_Frozen)
    except msgspec.MsgspecError:
        return
    yield from filter(None, (frozen.open_request, frozen.last_sent))
    yield from (entry for _, _, entry in frozen.items)
    yield from _ids_of(frozen.kinds[-_LATEST:], frozen.numbers[-_LATEST * _WORD :])


def _ids_of(kinds: bytes, words: bytes) -> Iterator[str]:
    numbers = array("Q")
    numbers.frombytes(words)
    for kind, number in zip(kinds, numbers, strict=True):
        if kind != _INLINE:
            yield mint_id(number)


def thaw(journal: Journal) -> Snapshot | None:
    """The snapshot that was kept of the journal; None if there is none, or it cannot be used."""
    if not journal.snapshot:
        return None
    try:
        frozen = msgspec.msgpack.decode(journal.snapshot, type=_Frozen)
        if frozen.version != VERSION:
            return None
        plain = msgspec.msgpack.decode(frozen.state, type=_State)
        envelope = msgspec.msgpack.decode(frozen.envelope, type=_Envelope)
        library = msgspec.msgpack.decode(frozen.library, type=_Library)
        requests = msgspec.msgpack.decode(frozen.requests, type=_Requests)
    except msgspec.MsgspecError:
        return None
    behind = _path_behind(plain.leaf, journal)
    if behind is None:
        return None
    entries = journal.entries
    state = State(
        session=journal.header,
        envelope=Envelope(cached=_cached(frozen, entries), **asdict(envelope)),
        library=Library(
            items=_items(frozen, entries),
            item_entries=FrozenMap({(item, version): at for item, version, at in frozen.items}),
            **asdict(library),
        ),
        requests=LastRequests(
            open=_request(frozen.open_request, entries),
            sent=_request(frozen.last_sent, entries),
            **asdict(requests),
        ),
        **asdict(plain),
    )
    return Snapshot(state=state, behind=behind, sent=frozen.sent, strand=frozen.strand)


def _path_behind(leaf: str, journal: Journal) -> tuple[Entry, ...] | None:
    """What stands behind `leaf` on the way to where the session goes on; None if the way does not
    lead past it."""
    since = {entry.id: entry for entry in journal.since}
    path: list[Entry] = []
    at = journal.leaf
    while at != leaf:
        if at not in since:
            return None
        path.append(since[at])
        at = since[at].parent or ""
    return tuple(reversed(path))


def _cached(frozen: _Frozen, entries: Mapping[str, Entry]) -> Chain[Message]:
    origin = _Origin(frozen.kinds, frozen.numbers, frozen.inline)
    numbers = array("Q")
    numbers.frombytes(frozen.numbers)

    def load(index: int) -> Message:
        kind = frozen.kinds[index]
        if kind == _INLINE:
            return frozen.inline[numbers[index]]
        entry = entries[f"{numbers[index]:06x}"]
        assert isinstance(entry, MessageEntry)
        return entry.message if kind == _AS_ENTRY else _bare(entry.message)

    return Chain.lazy(LazyList(len(frozen.kinds), load, origin))


def _items(frozen: _Frozen, entries: Mapping[str, Entry]) -> FrozenMap[tuple[ItemId, str], Item]:
    def load(index: int) -> Item:
        item, version, at = frozen.items[index]
        match entry := entries[at]:
            case ItemEntry():
                return entry.item
            case SessionEntry(included=several) | OpeningEntry(included=tuple(several)):
                return next(i for i in several if (i.id, i.version) == (item, version))
            case _:
                raise JournalError(f"entry {entry.id!r} holds no item")

    keys = [(item, version) for item, version, _ in frozen.items]
    return FrozenMap.lazy(keys, load)


def _request(entry_id: str, entries: Mapping[str, Entry]) -> RequestEntry | None:
    entry = entries[entry_id] if entry_id else None
    assert entry is None or isinstance(entry, RequestEntry)
    return entry
