"""What the engine needs from the storage of sessions, of the beginnings of recently sent requests,
and of the account of money.

Laws: nothing here depends on whether that is a file, a table or a server. No offsets, no line ends,
no file names: entries, paths of entries, snapshots and blobs. Losing sent prefixes only loses
predictions, and that sessions which start alike are routed alike; losing the account loses money.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from msgspec import Struct

from lamina.core.values.damage import Damage
from lamina.core.values.entry import Entry, SessionEntry
from lamina.core.values.sent_prefix import RecentPrefixes, SentPrefix
from lamina.core.values.spend_limits import (
    ReachedLimit,
    Reservation,
    Settlement,
    SpendEntry,
    SpendLimits,
    SpendRequest,
    SpendStanding,
)
from lamina.core.values.totals import DeletedSession, ListedSession

if TYPE_CHECKING:
    from lamina.core.journal import Journal


class OpenJournal(Protocol):
    """A session that is open for writing, by one writer at a time.

    Opening costs what came since the newest snapshot, not the whole session: `journal` has the
    header, the leaf, the snapshot and the entries after it, and everything else is looked up on
    access. A look-up in `entries` always succeeds if the entry exists. Where that would mean
    waiting for a network, `read_ahead` and `read_path` fetch a window of entries first, and the
    following look-ups need not wait.
    """

    @property
    def journal(self) -> "Journal":
        """What existed when it was opened, with any damage."""
        ...

    @property
    def entries(self) -> Mapping[str, Entry]:
        """Every entry in the order of writing, including those appended since."""
        ...

    @property
    def last(self) -> int:
        """The highest number of an id assigned so far, also by writes that failed."""
        ...

    async def append(self, entries: Sequence[Entry]) -> None:
        """Store `entries` durably before returning: one write, all of them or none. Once it has
        started to write, a cancellation has to wait.

        Raises:
            SessionMoved: an id is taken, because someone else wrote to the session.
            WriteFailed: they could not be stored; their ids are given up.
        """
        ...

    async def read_path(
        self, entry: str, *, until: str = "", limit: int | None = None
    ) -> Sequence[Entry]:
        """Return a window of the path that ends with `entry`, in order: from after the entry
        `until`, or from the header, and at most the last `limit` entries of that."""
        ...

    async def read_ahead(self, entries: Iterable[str]) -> None:
        """Make sure that looking up these ids does not wait. A store that can look up at any time
        does nothing, and does not even iterate over them."""
        ...

    @property
    def size(self) -> int:
        """Bytes of all lines of the session."""
        ...

    @property
    def since_snapshot(self) -> int | None:
        """How many of these bytes came since the newest snapshot; None if none can be stored."""
        ...

    async def keep_snapshot(self, state: bytes) -> None:
        """Store `state`, the engine's snapshot of everything written so far, for faster opening.
        Losing it loses nothing."""
        ...

    async def close(self) -> None:
        """Release the session, so that others can open it."""
        ...


@runtime_checkable
class CheckpointedJournal(Protocol):
    """A session that is open for writing and can contain checkpoints: snapshots stored with the
    entries, and so available wherever those are."""

    @property
    def is_checkpoint_due(self) -> bool:
        """Whether enough was written since the last one that another costs little."""
        ...

    async def keep_checkpoint(self, state: bytes) -> None:
        """Store `state`, the engine's snapshot of everything written so far: a MessagePack array of
        byte strings, of which what is new since the last checkpoint is written. Losing it loses
        nothing."""
        ...


class JournalStore(Protocol):
    """Stores sessions and blobs: the bytes of pictures, and results that were too long to send.

    A session is a sequence of lines, one per entry, each with its own checksum
    (`core/journal/lines.py`), and is only ever appended to. Whether these are lines of a file or
    rows of a table, reading, verifying, repairing and exporting them is the same. An unproven line
    is reported as damage and does not affect the others.
    """

    async def create(self, header: SessionEntry) -> OpenJournal:
        """Create a session.

        Raises:
            SessionMoved: one with that id exists.
        """
        ...

    async def open(self, session: str) -> OpenJournal:
        """Open a session for writing.

        Raises:
            UnknownSession: there is none with that id.
            SessionBusy: it is open elsewhere.
        """
        ...

    async def read(self, session: str) -> "Journal":
        """Return the whole session, every checksum verified, without opening it for writing."""
        ...

    async def export(self, session: str) -> bytes:
        """Return the lines of a session as they are, including those that this version cannot
        read."""
        ...

    async def has(self, session: str) -> bool:
        """Return whether there is a session with that id."""
        ...

    async def sessions(self) -> Sequence[str]:
        """Return the ids of all sessions, the one written last first."""
        ...

    async def list_sessions(self) -> Sequence[ListedSession]:
        """Return all sessions with their totals, the one written last first. Totals are stored, so
        this reads only what came since; unreadable sessions are listed with the problem."""
        ...

    async def delete(self, session: str) -> DeletedSession:
        """Delete a session, and the blobs that no other session here refers to. If it is
        interrupted, blobs may remain; a session never remains without its blobs.

        Raises:
            UnknownSession: there is none with that id.
            SessionBusy: it is open elsewhere.
        """
        ...

    def place(self, session: str) -> str:
        """Return where the session is, or would be, for a person to read."""
        ...

    async def put_blob(self, data: bytes) -> str:
        """Store bytes under their sha256, which it returns."""
        ...

    async def get_blob(self, digest: str) -> bytes:
        """
        Raises:
            JournalError: it is not here, or damaged.
        """
        ...

    async def known_blobs(self, digests: Collection[str]) -> frozenset[str]:
        """Return those of `digests` that are here."""
        ...


@runtime_checkable
class ViewableStore(Protocol):
    """A store that can also be read quickly, again and again, while others write to it. With any
    other, everything is read each time."""

    async def view(self, session: str) -> "Journal":
        """Return the session as an opening would find it, without opening it: what was verified
        before is trusted.

        Raises:
            UnknownSession: there is none with that id.
        """
        ...

    async def stamp(self, session: str) -> str:
        """Return something that changes whenever the session does.

        Raises:
            UnknownSession: there is none with that id.
        """
        ...

    async def is_open(self, session: str) -> bool:
        """Return whether it is currently open for writing."""
        ...


class SentPrefixes(Protocol):
    """Shared by the sessions of a machine. It never fails a request: what cannot be read or written
    counts as not sent."""

    async def recent(self, target: str, now: float) -> RecentPrefixes:
        """Return what was sent to a target and may be in its cache, the latest first, and how many
        requests each key had within the last minute."""
        ...

    async def count(self, key: str, at: float) -> None:
        """Count a request of a key."""
        ...

    async def keep(self, prefix: SentPrefix) -> None:
        """Remember a beginning until it expires; renew it if it is already known."""
        ...

    async def aclose(self) -> None:
        """Release what is open."""
        ...


class SpendAccount(Struct, frozen=True, kw_only=True):
    """All requests of an account in order, and what could not be read."""

    entries: Sequence[SpendEntry] = ()
    damage: Sequence[Damage] = ()


class SpendLedger(Protocol):
    """The account of what requests cost, for everyone who shares it.

    What it reports as stored is stored at that time, even if the caller crashes. Checking limits
    and reserving are one act: of two simultaneous callers, the second sees what the first one
    reserved.
    """

    def day_of(self, at: float) -> str:
        """Return the day of a time, as 2026-11-17. The ledger determines the zone."""
        ...

    async def reserve(
        self, request: SpendRequest, limits: SpendLimits
    ) -> Reservation | ReachedLimit:
        """Reserve the upper price of a request; or, if that would exceed a limit, write nothing and
        return which.

        Raises:
            SpendLedgerError: the account cannot be read or written.
        """
        ...

    async def settle(self, settlement: Settlement) -> None:
        """Record the cost of a request, in place of what was reserved for it.

        Raises:
            SpendLedgerError: it cannot be written; the reservation remains.
        """
        ...

    async def free(
        self, reservations: Collection[str], at: float, by: Literal["sender", "person"]
    ) -> Sequence[str]:
        """Release reservations: the sender knows that nothing is charged, or a person decided.
        Returns the ids of those that were open.

        Raises:
            SpendLedgerError: it cannot be written.
        """
        ...

    async def standing(self, session: str, day: str) -> SpendStanding:
        """Return the spending of a session, of its last turn, and of everyone on a day; without
        limits.

        Raises:
            SpendLedgerError: the account cannot be read.
        """
        ...

    async def read(self) -> SpendAccount:
        """Return the whole account.

        Raises:
            SpendLedgerError: it cannot be read.
        """
        ...
