"""Stores a session's state as bytes, so that reopening it needs no replay.

Law: a snapshot that differs from the replayed state is not used; everything in it can be rebuilt
from the journal. Messages and items are not part of it: they are looked up in the journal when
needed.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain
from operator import sub
from typing import Any, get_type_hints

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from lamina.core.codec import mint_id
from lamina.core.journal import Journal, LastRequests, Library, State
from lamina.core.layers import Assembler, Layout
from lamina.core.values.collections import Chain, FrozenMap, LazyList
from lamina.core.values.entry import (
    FORMAT,
    RENDERER,
    Entry,
    ItemEntry,
    MessageEntry,
    OpeningEntry,
    RequestEntry,
    SessionEntry,
)
from lamina.core.values.envelope import Envelope, SystemPart
from lamina.core.values.item import Item, ItemId
from lamina.core.values.message import Context, Message, ToolText
from lamina.core.values.prompt import Standing, StrandRecord
from lamina.errors import JournalError

# Increased whenever a fold changes its meaning.
VERSION = f"{FORMAT}/{RENDERER}/13"

# The source of a message: its entry, its entry without context, or this snapshot.
_AS_ENTRY, _BARE, _INLINE = range(3)
# How many of the latest messages are looked up before a request is made.
_LATEST = 32


def _without(kind: type[Struct], *names: str, **types: Any) -> Any:
    """Return a struct type with the fields of `kind` except `names`, which are looked up or stored
    separately. `types` are the types of fields that are written as another type.
    """
    hints = get_type_hints(kind) | types
    fields = [(name, hints[name]) for name in kind.__struct_fields__ if name not in names]
    return msgspec.defstruct(f"_{kind.__name__}", fields, kw_only=True)


_State = _without(State, "session", "envelope", "library", "requests")
_Envelope = _without(Envelope, "cached", system=tuple[SystemPart, ...])
_Library = _without(Library, "items", "item_entries")
_Requests = _without(LastRequests, "open", "sent")


class SentLayout(Struct, frozen=True, kw_only=True, array_like=True):
    """A description of how to lay out the last request that was sent: today's envelope, without
    later additions.
    """

    request: str
    messages: int
    turn_start: int
    tool_texts: tuple[ToolText, ...] = ()
    uncached: tuple[Message, ...] = ()


class _Head(Struct, frozen=True, kw_only=True, array_like=True):
    """The small parts, which change on every turn. The history totals, if any, were counted with
    `counter` for `layout`.
    """

    version: str
    open_request: str
    last_sent: str
    sent: SentLayout | None
    counter: str = ""
    layout: Layout | None = None
    last_running: bytes = b""
    standing: Standing | None = None
    inline_count: int = 0
    item_count: int = 0


class _Frozen(Struct, frozen=True, kw_only=True, array_like=True):
    """The parts of a snapshot as byte strings, so that a store can keep only the new bytes of each.
    The later ones grow at the end as a session continues: concatenated records, words, digests.
    """

    head: bytes
    state: bytes
    envelope: bytes
    library: bytes
    requests: bytes
    inline: bytes
    items: bytes
    kinds: bytes
    numbers: bytes
    segments: bytes = b""
    tokens: bytes = b""
    running: bytes = b""


class _Origin(Struct, frozen=True):
    """The sources from which a chain's messages are loaded: how each is stored, and its entry's
    number or its position in `inline`.
    """

    kinds: bytes
    numbers: "array[int]"
    inline: tuple[Message, ...]


class _Totals(Struct, frozen=True, kw_only=True):
    """The history totals, and what they were counted for."""

    counter: str
    layout: Layout
    record: StrandRecord


class Snapshot(Struct, frozen=True, kw_only=True):
    """A stored state, with its history totals, and the entries behind it on the path to the
    session's current position.
    """

    state: State
    behind: tuple[Entry, ...] = ()
    sent: SentLayout | None = None
    totals: _Totals | None = None

    def origins(self) -> Iterator[str]:
        """Return the ids of all entries that the state looks up when it is sent: messages and
        items.
        """
        messages = self.state.envelope.cached.origin
        if messages is not None and isinstance(origin := messages.origin, _Origin):
            yield from _ids_of(origin.kinds, origin.numbers)
        yield from self.state.library.item_entries.values()

    def restore(self, assembler: Assembler, counter: str) -> None:
        """Set an assembler's history totals, if they were counted for it."""
        totals = self.totals
        if totals and (totals.counter, totals.layout) == (counter, assembler.layout):
            assembler.thaw(totals.record, self.state.envelope.cached, self.state.library.items)


def freeze(
    state: State,
    entries: Mapping[str, Entry],
    sent: SentLayout | None,
    assembler: Assembler | None = None,
    counter: str = "",
) -> bytes:
    """Return the snapshot of `state`."""
    cached = state.envelope.cached
    origin = _describe(cached, entries)
    record = assembler.freeze(cached) if assembler else None
    head = _Head(
        version=VERSION,
        open_request=state.requests.open.id if state.requests.open else "",
        last_sent=state.requests.sent.id if state.requests.sent else "",
        sent=sent,
        counter=counter if record else "",
        layout=assembler.layout if assembler and record else None,
        last_running=record.last if record else b"",
        standing=record.standing if record else None,
        inline_count=len(origin.inline),
        item_count=len(state.library.item_entries),
    )
    items = ((*key, entry) for key, entry in state.library.item_entries.items())
    frozen = _Frozen(
        head=msgspec.msgpack.encode(head),
        state=_encode(_State, state),
        envelope=_encode(_Envelope, state.envelope),
        library=_encode(_Library, state.library),
        requests=_encode(_Requests, state.requests),
        inline=b"".join(map(msgspec.msgpack.encode, origin.inline)),
        items=b"".join(map(msgspec.msgpack.encode, items)),
        kinds=origin.kinds,
        # As differences: these are small and similar, so they compress well.
        numbers=array("q", map(sub, origin.numbers, chain((0,), origin.numbers))).tobytes(),
        segments=record.segments if record else b"",
        tokens=record.tokens if record else b"",
        running=record.running if record else b"",
    )
    return msgspec.msgpack.encode(frozen)


def _encode(kind: Any, value: Struct) -> bytes:
    fields = {name: getattr(value, name) for name in kind.__struct_fields__}
    return msgspec.msgpack.encode(kind(**fields))


def _describe(cached: Chain[Message], entries: Mapping[str, Entry]) -> _Origin:
    """Return the source of each message."""
    kinds, numbers, inline = bytearray(), array("q"), []
    known = 0
    if (messages := cached.origin) and isinstance(origin := messages.origin, _Origin):
        known = min(messages.base, len(cached))
        kinds += origin.kinds[:known]
        numbers += origin.numbers[:known]
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
    return _Origin(bytes(kinds), numbers, tuple(inline))


def _bare(message: Message) -> Message:
    blocks = tuple(block for block in message.blocks if not isinstance(block, Context))
    return replace(message, blocks=blocks)


def first_origins(journal: Journal) -> Iterator[str]:
    """Return the ids of the entries that reopening a session looks up at once: its last requests,
    its items and the latest messages.
    """
    try:
        frozen = msgspec.msgpack.decode(journal.snapshot, type=_Frozen)
        head = msgspec.msgpack.decode(frozen.head, type=_Head)
        items = _read_records(frozen.items, head.item_count, tuple[ItemId, str, str])
    except msgspec.MsgspecError:
        return
    yield from filter(None, (head.open_request, head.last_sent))
    yield from (entry for _, _, entry in items)
    yield from _ids_of(frozen.kinds[-_LATEST:], _numbers_of(frozen)[-_LATEST:])


def _ids_of(kinds: bytes, numbers: "array[int]") -> Iterator[str]:
    for kind, number in zip(kinds, numbers, strict=True):
        if kind != _INLINE:
            yield mint_id(number)


def _read_records(data: bytes, count: int, kind: Any) -> Any:
    """Return concatenated records: the contents of an array without its length."""
    array_head = b"\xdd" + count.to_bytes(4, "big")
    return msgspec.msgpack.decode(array_head + data, type=tuple[kind, ...])


def _numbers_of(frozen: _Frozen) -> "array[int]":
    steps = array("q")
    steps.frombytes(frozen.numbers)
    return array("q", accumulate(steps))


def thaw(journal: Journal) -> Snapshot | None:
    """Return the snapshot stored for the journal; None if there is none, or if it cannot be
    used.
    """
    if not journal.snapshot:
        return None
    try:
        frozen = msgspec.msgpack.decode(journal.snapshot, type=_Frozen)
        head = msgspec.msgpack.decode(frozen.head, type=_Head)
        if head.version != VERSION:
            return None
        plain = msgspec.msgpack.decode(frozen.state, type=_State)
        envelope = msgspec.msgpack.decode(frozen.envelope, type=_Envelope)
        library = msgspec.msgpack.decode(frozen.library, type=_Library)
        requests = msgspec.msgpack.decode(frozen.requests, type=_Requests)
        inline = _read_records(frozen.inline, head.inline_count, Message)
        items = _read_records(frozen.items, head.item_count, tuple[ItemId, str, str])
    except msgspec.MsgspecError:
        return None
    behind = _path_behind(plain.leaf, journal)
    if behind is None:
        return None
    entries = journal.entries
    state = State(
        session=journal.header,
        envelope=Envelope(
            cached=_cached(_Origin(frozen.kinds, _numbers_of(frozen), inline), entries),
            **asdict(envelope),
        ),
        library=Library(
            items=_items(items, entries),
            item_entries=FrozenMap({(item, version): at for item, version, at in items}),
            **asdict(library),
        ),
        requests=LastRequests(
            open=_request(head.open_request, entries),
            sent=_request(head.last_sent, entries),
            **asdict(requests),
        ),
        **asdict(plain),
    )
    return Snapshot(state=state, behind=behind, sent=head.sent, totals=_totals(frozen, head))


def _totals(frozen: _Frozen, head: _Head) -> _Totals | None:
    if head.layout is None:
        return None
    record = StrandRecord(
        segments=frozen.segments,
        tokens=frozen.tokens,
        running=frozen.running,
        last=head.last_running,
        standing=head.standing,
    )
    return _Totals(counter=head.counter, layout=head.layout, record=record)


def _path_behind(leaf: str, journal: Journal) -> tuple[Entry, ...] | None:
    """Return the entries behind `leaf` on the path to the session's current position; None if that
    path does not pass through it.
    """
    since = {entry.id: entry for entry in journal.since}
    path: list[Entry] = []
    at = journal.leaf
    while at != leaf:
        if at not in since:
            return None
        path.append(since[at])
        at = since[at].parent or ""
    return tuple(reversed(path))


def _cached(origin: _Origin, entries: Mapping[str, Entry]) -> Chain[Message]:
    def load(index: int) -> Message:
        kind, number = origin.kinds[index], origin.numbers[index]
        if kind == _INLINE:
            return origin.inline[number]
        entry = entries[mint_id(number)]
        assert isinstance(entry, MessageEntry)
        return entry.message if kind == _AS_ENTRY else _bare(entry.message)

    return Chain.lazy(LazyList(len(origin.kinds), load, origin))


def _items(
    kept: Sequence[tuple[ItemId, str, str]], entries: Mapping[str, Entry]
) -> FrozenMap[tuple[ItemId, str], Item]:
    def load(index: int) -> Item:
        item, version, at = kept[index]
        match entry := entries[at]:
            case ItemEntry():
                return entry.item
            case SessionEntry(included=several) | OpeningEntry(included=tuple(several)):
                return next(i for i in several if (i.id, i.version) == (item, version))
            case _:
                raise JournalError(f"entry {entry.id!r} does not contain an item")

    keys = [(item, version) for item, version, _ in kept]
    return FrozenMap.lazy(keys, load)


def _request(entry_id: str, entries: Mapping[str, Entry]) -> RequestEntry | None:
    entry = entries[entry_id] if entry_id else None
    assert entry is None or isinstance(entry, RequestEntry)
    return entry
