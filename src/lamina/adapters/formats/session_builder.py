"""Builds our entries from those of a foreign session, one by one, parents before children.

Laws: an entry is only written if it folds onto its parent; otherwise it is kept as data and
reported. Every record is written once; without forward references the order is that of the file,
and a cycle of parents is cut at its first record in the file. Ids count up in writing order, and a
message has its entry's id. On every path calls and results are paired (see `call_pairs`): before an
entry that would break that, the missing parts are inserted. Content that a foreign request carried
for one turn only is removed when the next turn begins, and at the end no turn is in progress.
"""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec.structs import replace

from lamina.adapters.formats.call_pairs import (
    missing_results,
    order_results,
    orphan_text,
    results_of,
    split_results,
    waiting_calls,
)
from lamina.adapters.formats.imported_session import ImportedSession, ImportProblem
from lamina.adapters.formats.json_lines import JsonLine, LineRecord, Object, UnreadLine
from lamina.core.codec import digest_bytes
from lamina.core.values.entry import (
    BranchSummaryEntry,
    CustomEntry,
    Entry,
    EntryBase,
    LeafEntry,
    LeaveEntry,
    MessageEntry,
    ModelEntry,
    SessionEntry,
    TransformEntry,
)
from lamina.core.values.envelope import SystemPart
from lamina.core.values.item import Picture
from lamina.core.values.message import Image, Message, ToolDefinition, ToolResult
from lamina.core.values.patch import MessagesCachedAppend, PatchOp
from lamina.errors import InvalidPatch, InvalidSetting, JournalError

if TYPE_CHECKING:
    from lamina.core.journal import State


T = TypeVar("T")
# A record's own id and its parent's; None if it has none.
IdPair = Callable[[T], tuple[str | None, str | None]]


def order_by_parent(records: Sequence[T], ids: IdPair[T]) -> list[tuple[T, bool]]:
    """Return the records in an order in which they can be placed, each with a flag that says
    whether a cycle was cut there; if so, its parent does not come before it."""
    indexes: dict[str, int] = {}
    for index, record in enumerate(records):
        own, _ = ids(record)
        if own is not None:
            indexes.setdefault(own, index)
    placed_indexes: set[int] = set()
    order: list[tuple[T, bool]] = []
    for start in range(len(records)):
        cut_index = -1
        chain: list[int] = []
        on_chain: set[int] = set()
        at: int | None = start
        while at is not None and at not in placed_indexes and at not in on_chain:
            chain.append(at)
            on_chain.add(at)
            _, parent = ids(records[at])
            at = indexes.get(parent) if parent is not None else None
        if at is not None and at in on_chain:
            # The file names `min` of the cycle first; that record loses its parent.
            inside = chain[chain.index(at) :]
            first = inside.index(min(inside))
            chain = [*chain[: chain.index(at)], *inside[first + 1 :], *inside[: first + 1]]
            cut_index = chain[-1]
        for index in reversed(chain):
            placed_indexes.add(index)
            order.append((records[index], index == cut_index))
    return order


_REFUSED = (JournalError, InvalidPatch, InvalidSetting)


class SessionBuilder:
    """Places foreign entries in one of our trees. Positions are our ids; foreign ids are only
    looked up."""

    def __init__(
        self,
        *,
        session: str,
        source: str,
        at: float = 0.0,
        system: tuple[SystemPart, ...] = (),
        tools: tuple[ToolDefinition, ...] = (),
        workspace: str = "",
        forked_from: str = "",
        extra: dict[str, Any] | None = None,
        line: int | None = None,
        problems: tuple[ImportProblem, ...] = (),
    ) -> None:
        header = SessionEntry(
            id=f"{0:06x}", parent=None, at=at, session=session, system=system, tools=tools,
            workspace=workspace, forked_from=forked_from, source=source,
            extra={source: extra} if extra else {},
        )  # fmt: skip
        self.source = source
        self.root = self.last = header.id
        self._entries: list[Entry] = [header]
        self._parents: dict[str, str] = {}
        # Loaded when the first session is built: code that only inspects files needs no fold.
        from lamina.core.journal import fold_entry, initial_state

        self._fold_entry = fold_entry
        self._states: dict[str, State] = {header.id: initial_state(header)}
        self._ids: dict[str, str] = {}
        self._raws: dict[str, Any] = {}
        # Where an entry's children go instead: after the entries placed in line after it.
        self._tails: dict[str, str] = {}
        self._problems = list(problems)
        self._lines: list[tuple[int, str]] = []
        self._blobs: dict[str, bytes] = {}
        self.map_line(line, header.id)

    # -- placing ---------------------------------------------------------------------------------

    def find_duplicate(self, foreign_id: str | None, line: int | None, raw: Any) -> str | None:
        """Return the earlier entry with the same foreign id and content. A duplicate is
        reported."""
        if foreign_id is None or foreign_id not in self._ids:
            return None
        place = self._ids[foreign_id]
        same = raw == self._raws.get(foreign_id)
        detail = f"{foreign_id!r} stands in the file twice"
        self.report(line, "duplicate", detail if same else f"{detail}, with different content")
        if same:
            self.map_line(line, place)
        return place if same else None

    def find_parent(
        self,
        foreign_id: str | None,
        foreign_parent: str | None,
        line: int | None,
        *,
        is_cut: bool = False,
        nearest: str | None = None,
    ) -> str:
        """Return the parent for a foreign entry. A parent of None is the header; a parent that is
        unknown, or that is cut off from a cycle by `is_cut`, is reported and replaced by `nearest`
        (by default the last entry written)."""
        if foreign_parent is None:
            return self.tail(self.root)
        if is_cut:
            self.report(line, "cycle", f"{foreign_id!r} is its own ancestor; it was attached anew")
        elif foreign_parent in self._ids:
            return self.tail(self._ids[foreign_parent])
        else:
            detail = f"the parent {foreign_parent!r} of {foreign_id!r} is not in the file"
            self.report(line, "missing_parent", detail)
        return self.tail(nearest or self.last)

    def put(
        self,
        parent: str,
        kind: type[EntryBase],
        /,
        *,
        at: float | None,
        line: int | None = None,
        raw: Any = None,
        foreign_id: str | None = None,
        inline: bool = False,
        rest: Object | None = None,
        **fields: Any,
    ) -> str:
        """Write an entry exactly under `parent`, one of our ids. `raw` is the foreign record,
        `rest` its fields that our entries lack. With `inline`, anything attached to `parent` later
        follows this entry."""
        if rest:
            fields["extra"] = {self.source: rest}
        when = self._time_of(parent) if at is None else at
        if kind is MessageEntry:
            place = self._message(parent, when, line, raw, **fields)
        elif kind is BranchSummaryEntry:
            place = self._write(self._settle(parent, when, line), kind, when, line, raw, **fields)
        else:
            place = self._write(parent, kind, when, line, raw, **fields)
        if inline:
            self._tails[parent] = place
        if foreign_id is not None:
            self._raws.setdefault(foreign_id, raw)
            self._ids.setdefault(foreign_id, place)
        self.map_line(line, place)
        return place

    def keep_data(
        self, kind: str, data: Any, *, at: float | None = None, line: int | None = None,
        parent: str | None = None, foreign_id: str | None = None,
    ) -> str:  # fmt: skip
        """Keep data that has no place in a context, in line after `parent`."""
        return self.put(
            self.tail(parent or self.last), CustomEntry, at=at, line=line, raw=data, inline=True,
            foreign_id=foreign_id, kind=f"{self.source}.{kind}", data=data,
        )  # fmt: skip

    def keep_unread_line(self, record: UnreadLine, parent: str | None = None) -> str:
        """Keep a line that could not be read; the reader reported the problem."""
        return self.keep_data("unreadable", record.data, line=record.number, parent=parent)

    def add_in_order(
        self, records: Sequence[LineRecord], ids: IdPair[LineRecord],
        add: Callable[[JsonLine, bool], str],
    ) -> ImportedSession:  # fmt: skip
        """Import records that may precede their parents. `add` is passed whether a cycle was cut at
        its line. The session continues at the last record in the file."""
        leaf: str | None = None
        for record, is_cut in order_by_parent(records, ids):
            if isinstance(record, UnreadLine):
                place = self.keep_unread_line(record)
            else:
                place = add(record, is_cut)
            if record is records[-1]:
                leaf = place
        return self.finish(leaf)

    def use_model(self, parent: str, target: str, *, at: float | None, line: int | None) -> str:
        """Return the position after `parent` at which the session uses `target`."""
        if not target or self.state(parent).settings.target == target:
            return parent
        return self.put(parent, ModelEntry, at=at, line=line, target=target)

    # -- lookup ------------------------------------------------------------------------------------

    def find(self, foreign_id: str | None) -> str | None:
        return None if foreign_id is None else self._ids.get(foreign_id)

    def add_alias(self, foreign_id: str, place: str) -> None:
        """Add another foreign id for the same entry."""
        self._ids.setdefault(foreign_id, place)

    def tail(self, place: str) -> str:
        """Return where a child of `place` goes."""
        end = place
        while end in self._tails:
            end = self._tails[end]
        while place != end:  # a long run is walked once
            self._tails[place], place = end, self._tails[place]
        return end

    def state(self, place: str) -> "State":
        return self._states[place]

    def path(self, place: str) -> list[str]:
        """Return the ids from `place` up to the header."""
        ids = [place]
        while place in self._parents:
            place = self._parents[place]
            ids.append(place)
        return ids

    def cut_at(self, place: str, index: int) -> int:
        """Return `index` in the messages at `place`, moved up so that no result loses its call."""
        messages = self.state(place).envelope.cached
        index = max(0, min(index, len(messages)))
        while 0 < index < len(messages) and messages[index].role == "tool":
            index -= 1
        return index

    # -- recording ---------------------------------------------------------------------------------

    def report(self, line: int | None, what: str, detail: str) -> None:
        self._problems.append(ImportProblem(line=line, what=what, detail=detail))

    def map_line(self, line: int | None, place: str) -> None:
        """Record which entry a line became."""
        if line is not None:
            self._lines.append((line, place))

    def add_picture(self, data: Any, media_type: str, line: int | None) -> Image | None:
        """Return the image in base64 text; its bytes are kept for the store."""
        try:
            base64_text = "".join(data.split()).rstrip("=") if isinstance(data, str) else ""
            blob = base64.b64decode(base64_text + "=" * (-len(base64_text) % 4), validate=True)
        except (binascii.Error, ValueError) as error:
            self.report(line, "image", f"its base64 is broken: {error}")
            return None
        if not blob:
            self.report(line, "image", "it has no data")
            return None
        digest = digest_bytes(blob)
        self._blobs[digest] = blob
        kind = media_type if media_type.startswith("image/") else "image/png"
        return Image(Picture(digest=digest, media_type=kind))

    def mint_call(self, index: int) -> str:
        """Return an id for a call without one."""
        return f"call-{len(self._entries):06x}-{index}"

    def finish(self, leaf: str | None = None) -> ImportedSession:
        """Return the finished session; it continues at `leaf`, by default after the last entry
        written.

        A turn in progress there is ended: its request was not ours, and a question of ours without
        a request would be mistaken for one that was never sent."""
        place = self.tail(leaf or self.last)
        place = self._settle(place, self._time_of(place), None)
        state = self._states[place]
        if state.turn.start is not None or state.envelope.uncached:
            place = self._write(place, LeaveEntry, self._time_of(place))
        if self._entries[-1].id != place:
            self._write(place, LeafEntry, self._time_of(place))
        entries, moves = order_results(self._entries)
        return ImportedSession(
            entries=tuple(entries),
            problems=tuple(self._problems),
            leaf=place,
            blobs=tuple(self._blobs.values()),
            lines=tuple((line, moves.get(entry, entry)) for line, entry in self._lines),
        )

    # -- internals ---------------------------------------------------------------------------------

    def _time_of(self, place: str) -> float:
        return self._entries[int(place, 16)].at

    def _write(
        self, parent: str, kind: type[EntryBase], at: float, line: int | None = None,
        raw: Any = None, /, **fields: Any,
    ) -> str:  # fmt: skip
        place = f"{len(self._entries):06x}"
        entry = cast(Entry, kind(id=place, parent=parent, at=at, **fields))
        if isinstance(entry, MessageEntry):
            entry = replace(entry, message=replace(entry.message, id=place))
        elif isinstance(entry, TransformEntry):
            ops = tuple(_with_id(op, place) for op in entry.patch.ops)
            entry = replace(entry, patch=replace(entry.patch, ops=ops))
        try:
            state = self._fold_entry(self._states[parent], entry)
        except _REFUSED as error:
            self.report(line, "refused", str(error))
            kind_name = f"{self.source}.unreadable"
            entry = CustomEntry(id=place, parent=parent, at=at, kind=kind_name, data=raw)
            state = self._fold_entry(self._states[parent], entry)
        self._entries.append(entry)
        self._states[place] = state
        self._parents[place] = parent
        self.last = place
        return place

    def _message(
        self, parent: str, at: float, line: int | None, raw: Any, message: Message, **fields: Any
    ) -> str:
        if message.role == "tool":
            return self._results(parent, at, line, raw, message, **fields)
        parent = self._settle(parent, at, line)
        if message.role == "user" and self._states[parent].envelope.uncached:
            parent = self._write(parent, LeaveEntry, at)
        if message.role == "assistant" and (target := fields.get("model")):
            message = message.thought_by(target.partition(":")[2])
        return self._write(parent, MessageEntry, at, line, raw, message=message, **fields)

    def _results(
        self, parent: str, at: float, line: int | None, raw: Any, message: Message, **fields: Any
    ) -> str:
        waiting = waiting_calls(self._states[parent].envelope.cached)
        fitting_results, orphans = split_results(results_of(message), waiting)
        place = parent
        if fitting_results:
            answer = Message(role="tool", blocks=tuple(fitting_results))
            place = self._write(parent, MessageEntry, at, line, raw, message=answer, **fields)
            fields = {}
        extra = fields.get("extra", {})
        still_waiting = len(fitting_results) < len(waiting)
        for orphan in orphans:
            place = self._orphan(place, at, line, orphan, extra, as_text=not still_waiting)
            extra = {}
        return place

    def _orphan(
        self, parent: str, at: float, line: int | None, result: ToolResult, extra: dict[str, Any],
        *, as_text: bool,
    ) -> str:  # fmt: skip
        facts = {"call_id": result.call_id, "name": result.name, "is_error": result.is_error}
        detail = f"the result of {result.call_id!r} has no call on its path"
        if as_text:
            self.report(line, "orphan_result", f"{detail}; it became a text")
            message = Message(role="user", blocks=(orphan_text(result),))
            note = {**extra, "lamina": {"orphan_result": facts}}
            return self._write(parent, MessageEntry, at, line, message=message, extra=note)
        # No text may come between a call and its result.
        self.report(line, "orphan_result", f"{detail}; it is kept as data")
        kind, data = f"{self.source}.orphan_result", {**facts, "text": result.text}
        return self._write(parent, CustomEntry, at, line, kind=kind, data=data, extra=extra)

    def _settle(self, parent: str, at: float, line: int | None) -> str:
        """Return the position after `parent` at which no call waits for its result."""
        waiting = waiting_calls(self._states[parent].envelope.cached)
        if not waiting:
            return parent
        self.report(line, "missing_result", f"no result of {', '.join(waiting)}; one says so now")
        message = Message(role="tool", blocks=missing_results(waiting))
        extra = {"lamina": {"missing_result": True}}
        return self._write(parent, MessageEntry, at, line, message=message, extra=extra)


def _with_id(op: PatchOp, entry: str) -> PatchOp:
    """Return an op that adds one message, with the entry's id as the message id, as elsewhere."""
    if not isinstance(op, MessagesCachedAppend) or len(op.messages) != 1 or op.messages[0].id:
        return op
    return replace(op, messages=(replace(op.messages[0], id=entry),))
