"""What the engine needs of whatever keeps account of money.

Law: nothing here says whether that is a file, a table or a server.
"""

from collections.abc import Collection, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from lamina.core.values.damage import Damage
from lamina.core.values.spending import (
    ReachedLimit,
    Reservation,
    Settlement,
    SpendEntry,
    SpendLimits,
    SpendRequest,
    SpendStanding,
)


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
