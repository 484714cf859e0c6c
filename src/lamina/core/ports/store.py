"""What the engine needs of whatever keeps sessions, the beginnings of requests that were sent
lately, and the account of money.

Laws: nothing here says whether that is a file, a table or a server. No offsets, no line ends, no
names of files: entries, paths of entries, snapshots and blobs. Losing sent prefixes only loses
predictions, and that sessions which begin alike are routed alike; losing the account loses money.
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
    """A session that is open for writing, by one at a time.

    Opening costs what came since the newest snapshot, not what there is: `journal` has the header,
    the leaf, the snapshot and the entries behind it, and everything else is looked up when it is
    asked for. A look-up in `entries` always succeeds if the entry is there. Where that would mean
    waiting for a network, `read_ahead` and `read_path` fetch a window of entries first, and the
    look-ups that follow need not wait."""

    @property
    def journal(self) -> "Journal":
        """What was there when it was opened, with what is wrong with it."""
        ...

    @property
    def entries(self) -> Mapping[str, Entry]:
        """Every entry in order of writing, those appended since included."""
        ...

    @property
    def last(self) -> int:
        """The highest number of an id given out so far, also by writes that failed."""
        ...

    async def append(self, entries: Sequence[Entry]) -> None:
        """Keeps `entries` for good before it returns: one write, all of them or none. Once it has
        begun to write, a cancellation has to wait.

        Raises:
            SessionMoved: an id is taken, somebody else wrote to the session meanwhile.
            WriteFailed: they could not be kept; their ids are given up.
        """
        ...

    async def read_path(
        self, entry: str, *, until: str = "", limit: int | None = None
    ) -> Sequence[Entry]:
        """A window of the path that ends with `entry`, in order: from behind the entry `until` on,
        or from the header, and no more than the last `limit` entries of that."""
        ...

    async def read_ahead(self, entries: Iterable[str]) -> None:
        """Makes sure that looking up these ids does not wait. A store that can look up at any time
        does nothing, and does not even go through them."""
        ...

    @property
    def size(self) -> int:
        """Bytes of all lines of the session."""
        ...

    @property
    def since_snapshot(self) -> int | None:
        """How many of these bytes came since the newest snapshot; None if none can be kept."""
        ...

    async def keep_snapshot(self, state: bytes) -> None:
        """Keeps `state`, which is what the engine made of everything written so far, for a faster
        opening. Losing it loses nothing."""
        ...

    async def close(self) -> None:
        """Lets go of the session, so that others can open it."""
        ...


@runtime_checkable
class CheckpointedJournal(Protocol):
    """A session that is open for writing, in which checkpoints can stand: snapshots that go where
    the entries go, and so are there wherever those are."""

    @property
    def is_checkpoint_due(self) -> bool:
        """Whether enough was written since the last one that another costs little."""
        ...

    async def keep_checkpoint(self, state: bytes) -> None:
        """Keeps `state`, which is what the engine made of everything written so far: a MessagePack
        array of byte strings, of which what is new since the last checkpoint is written. Losing it
        loses nothing."""
        ...


class JournalStore(Protocol):
    """Keeps sessions and blobs: the bytes of pictures, and results that were too long to send.

    A session is a sequence of lines, one an entry, each with a checksum of its own
    (`core/journal/lines.py`), and is only ever added to. Whether these are lines of a file or rows
    of a table, reading, verifying, repairing and exporting them is the same. A line that does not
    prove itself is reported as damage and costs itself alone."""

    async def create(self, header: SessionEntry) -> OpenJournal:
        """Begins a session.

        Raises:
            SessionMoved: there is one of that id.
        """
        ...

    async def open(self, session: str) -> OpenJournal:
        """Opens a session for writing.

        Raises:
            UnknownSession: there is none of that id.
            SessionBusy: it is open elsewhere.
        """
        ...

    async def read(self, session: str) -> "Journal":
        """All that the session holds, every checksum verified, without opening it for writing."""
        ...

    async def export(self, session: str) -> bytes:
        """The lines of a session as they are, also those that this version cannot read."""
        ...

    async def has(self, session: str) -> bool:
        """Whether there is a session of that id."""
        ...

    async def sessions(self) -> Sequence[str]:
        """The ids of all sessions, the one written last first."""
        ...

    async def list_sessions(self) -> Sequence[ListedSession]:
        """All sessions with their totals, the one written last first. Totals are kept, so this
        reads what came since; what cannot be read is listed with the problem."""
        ...

    async def delete(self, session: str) -> DeletedSession:
        """Deletes a session, and the blobs that no other session here refers to. If it is cut off,
        blobs may stay behind; a session never stays without its blobs.

        Raises:
            UnknownSession: there is none of that id.
            SessionBusy: it is open elsewhere.
        """
        ...

    def place(self, session: str) -> str:
        """Where the session is, or would be, for a person to read."""
        ...

    async def put_blob(self, data: bytes) -> str:
        """Keeps bytes under their sha256, which it returns."""
        ...

    async def get_blob(self, digest: str) -> bytes:
        """
        Raises:
            JournalError: it is not here, or damaged.
        """
        ...

    async def known_blobs(self, digests: Collection[str]) -> frozenset[str]:
        """Those of `digests` that are here."""
        ...


@runtime_checkable
class ViewableStore(Protocol):
    """A store that can also be looked into quickly, again and again, while others write to it. One
    that cannot is read as a whole each time."""

    async def view(self, session: str) -> "Journal":
        """What the session holds, as an opening would find it, and without opening it: what was
        verified before is believed.

        Raises:
            UnknownSession: there is none of that id.
        """
        ...

    async def stamp(self, session: str) -> str:
        """Something that is another whenever the session is.

        Raises:
            UnknownSession: there is none of that id.
        """
        ...

    async def is_open(self, session: str) -> bool:
        """Whether somebody has it open for writing now."""
        ...


class SentPrefixes(Protocol):
    """Shared by the sessions of a machine. It never fails a request: what cannot be read or written
    is as if it had not been sent."""

    async def recent(self, target: str, now: float) -> RecentPrefixes:
        """What was sent to a target and may be in its cache, the latest first, and how many
        requests each key had within the last minute."""
        ...

    async def count(self, key: str, at: float) -> None:
        """Counts a request of a key."""
        ...

    async def keep(self, prefix: SentPrefix) -> None:
        """Remembers a beginning until it expires; once more if it is known already."""
        ...

    async def aclose(self) -> None:
        """Lets go of what is open."""
        ...


class SpendAccount(Struct, frozen=True, kw_only=True):
    """All requests of an account in order, and what of it could not be read."""

    entries: Sequence[SpendEntry] = ()
    damage: Sequence[Damage] = ()


class SpendLedger(Protocol):
    """Keeps account of what requests cost, for everybody who shares it.

    What it says is kept is kept when it says so, also through a crash of whoever asked. Checking
    limits and reserving are one act: of two who ask at the same time, the second sees what the
    first one reserved.
    """

    def day_of(self, at: float) -> str:
        """The day that a moment belongs to, as 2026-11-17. Which zone counts is the ledger's."""
        ...

    async def reserve(
        self, request: SpendRequest, limits: SpendLimits
    ) -> Reservation | ReachedLimit:
        """Holds the upper price of a request back; or, if that would pass a limit, writes nothing
        and says which.

        Raises:
            SpendLedgerError: the account cannot be read or written.
        """
        ...

    async def settle(self, settlement: Settlement) -> None:
        """Writes down what a request came to, in place of what was reserved for it.

        Raises:
            SpendLedgerError: it cannot be written; what was reserved stays so.
        """
        ...

    async def free(
        self, reservations: Collection[str], at: float, by: Literal["sender", "person"]
    ) -> Sequence[str]:
        """Frees what is reserved: the sender knows that nothing is charged for it, or a person
        decided. Gives the ids of those that were open.

        Raises:
            SpendLedgerError: it cannot be written.
        """
        ...

    async def standing(self, session: str, day: str) -> SpendStanding:
        """What a session spent, its last turn, and everybody on a day; without limits.

        Raises:
            SpendLedgerError: the account cannot be read.
        """
        ...

    async def read(self) -> SpendAccount:
        """The whole account.

        Raises:
            SpendLedgerError: it cannot be read.
        """
        ...
