"""Protocols for storing sessions, the beginnings of recently sent requests, and the spending
account.

Laws: nothing here depends on whether the storage is a file, a table or a server. No offsets, no
line ends, no file names: entries, paths of entries, snapshots and blobs. Losing sent prefixes only
loses predictions, and the common routing of sessions with the same beginning; losing the account
loses money.
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

    Opening costs only what was written since the newest snapshot, not the whole session: `journal`
    has the header, the leaf, the snapshot and the entries after it, and everything else is looked
    up on access. A lookup in `entries` always succeeds if the entry exists. If that would mean
    waiting for a network, `read_ahead` and `read_path` fetch a window of entries first, so that
    later lookups need not wait.
    """

    @property
    def journal(self) -> "Journal":
        """The journal as it was when opened, with any damage."""
        ...

    @property
    def entries(self) -> Mapping[str, Entry]:
        """All entries in the order of writing, including those appended since opening."""
        ...

    @property
    def last(self) -> int:
        """The highest id number assigned so far, including by failed writes."""
        ...

    async def append(self, entries: Sequence[Entry]) -> None:
        """Store `entries` durably before returning: one write, all of them or none. Once writing
        has started, a cancellation has to wait.

        Raises:
            SessionMoved: an id is taken, because someone else wrote to the session.
            WriteFailed: they could not be stored; their ids are given up.
        """
        ...

    async def read_path(
        self, entry: str, *, until: str = "", limit: int | None = None
    ) -> Sequence[Entry]:
        """Return part of the path that ends with `entry`, in order: from after the entry `until`,
        or from the header, and at most the last `limit` entries of that."""
        ...

    async def read_ahead(self, entries: Iterable[str]) -> None:
        """Fetch these entries, so that looking them up does not wait. A store with immediate
        lookups does nothing, and does not even iterate over them."""
        ...

    @property
    def size(self) -> int:
        """The number of bytes in all lines of the session."""
        ...

    @property
    def since_snapshot(self) -> int | None:
        """The number of these bytes written since the newest snapshot; None if none can be
        stored."""
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
    """A session open for writing that can contain checkpoints: snapshots stored with the entries,
    and so available wherever those are."""

    @property
    def is_checkpoint_due(self) -> bool:
        """Whether enough was written since the last checkpoint that another costs little."""
        ...

    async def keep_checkpoint(self, state: bytes) -> None:
        """Store `state`, the engine's snapshot of everything written so far: a MessagePack array of
        byte strings. Only what is new since the last checkpoint is written. Losing it loses
        nothing."""
        ...


class JournalStore(Protocol):
    """Stores sessions and blobs: the bytes of pictures, and results too long to send.

    A session is an append-only sequence of lines, one per entry, each with its own checksum
    (`core/journal/lines.py`). Reading, verifying, repairing and exporting them is the same for
    lines of a file and rows of a table. An unproven line is reported as damage and does not affect
    the others.
    """

    async def create(self, header: SessionEntry) -> OpenJournal:
        """Create a session.

        Raises:
            SessionMoved: a session with that id exists.
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
        """Return the lines of a session unchanged, including those that this version cannot
        read."""
        ...

    async def has(self, session: str) -> bool:
        """Return whether there is a session with that id."""
        ...

    async def sessions(self) -> Sequence[str]:
        """Return the ids of all sessions, most recently written first."""
        ...

    async def list_sessions(self) -> Sequence[ListedSession]:
        """Return all sessions with their totals, most recently written first. Totals are stored, so
        this reads only what was written since then; unreadable sessions are listed with the
        problem."""
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
        """Return the current or future location of the session, for a person to read."""
        ...

    async def put_blob(self, data: bytes) -> str:
        """Store bytes under their sha256, and return it."""
        ...

    async def get_blob(self, digest: str) -> bytes:
        """Return the bytes of a blob.

        Raises:
            JournalError: it is not here, or damaged.
        """
        ...

    async def known_blobs(self, digests: Collection[str]) -> frozenset[str]:
        """Return those of `digests` that are stored here."""
        ...


@runtime_checkable
class ViewableStore(Protocol):
    """A store that can also be read quickly and repeatedly while others write to it. With any
    other, everything is read each time."""

    async def view(self, session: str) -> "Journal":
        """Return the session as if opened, without opening it: what was verified before is trusted.

        Raises:
            UnknownSession: there is none with that id.
        """
        ...

    async def stamp(self, session: str) -> str:
        """Return a value that changes whenever the session does.

        Raises:
            UnknownSession: there is none with that id.
        """
        ...

    async def is_open(self, session: str) -> bool:
        """Return whether it is currently open for writing."""
        ...


class SentPrefixes(Protocol):
    """Sent prefixes, shared by the sessions on a machine. Never fails a request: what cannot be
    read or written counts as not sent."""

    async def recent(self, target: str, now: float) -> RecentPrefixes:
        """Return what was sent to a target and may be in its cache, latest first, and the number of
        requests per key within the last minute."""
        ...

    async def count(self, key: str, at: float) -> None:
        """Count a request with a key."""
        ...

    async def keep(self, prefix: SentPrefix) -> None:
        """Store a prefix until it expires, or renew it if already stored."""
        ...

    async def aclose(self) -> None:
        """Release open resources."""
        ...


class SpendAccount(Struct, frozen=True, kw_only=True):
    """All requests of an account in order, and problems reading it."""

    entries: Sequence[SpendEntry] = ()
    damage: Sequence[Damage] = ()


class SpendLedger(Protocol):
    """The account of request costs, for everyone who shares it.

    Everything it reports as stored is stored by then, even if the caller crashes. Checking limits
    and reserving are atomic: of two simultaneous callers, the second sees the reservation of the
    first.
    """

    def day_of(self, at: float) -> str:
        """Return the day of a time, as 2026-11-17. The ledger determines the time zone."""
        ...

    async def reserve(
        self, request: SpendRequest, limits: SpendLimits
    ) -> Reservation | ReachedLimit:
        """Reserve the upper price of a request; if that would exceed a limit, write nothing and
        return the limit.

        Raises:
            SpendLedgerError: the account cannot be read or written.
        """
        ...

    async def settle(self, settlement: Settlement) -> None:
        """Record the cost of a request, replacing its reservation.

        Raises:
            SpendLedgerError: it cannot be written; the reservation remains.
        """
        ...

    async def free(
        self, reservations: Collection[str], at: float, by: Literal["sender", "person"]
    ) -> Sequence[str]:
        """Release reservations, because the sender knows that nothing is charged, or a person
        decided so. Returns the ids of those that were open.

        Raises:
            SpendLedgerError: it cannot be written.
        """
        ...

    async def standing(self, session: str, day: str) -> SpendStanding:
        """Return the spending of a session, of its last turn, and of everyone on a day, without
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
