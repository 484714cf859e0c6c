"""Defines spending limits, reservations and settlements of requests, and their sums.

Law: an unknown amount is None, never 0.
"""

from typing import Literal

from msgspec import Struct

from lamina.core.values.usage import Usage

SpendScope = Literal["turn", "session", "day"]
SPEND_SCOPES: tuple[SpendScope, ...] = ("turn", "session", "day")
# The purpose of a request: an answer, a plan of tool calls, a summary of history, or creating an
# explicit cache. Storing that cache is not a request; it is paid for by time.
SpendPurpose = Literal["answer", "plan", "summary", "cache", "storage"]
SpendState = Literal["open", "settled", "released", "cleared"]


class SpendLimits(Struct, frozen=True, kw_only=True):
    """Spending limits, in US dollars; None for no limit."""

    turn: float | None = None
    session: float | None = None
    day: float | None = None

    def __bool__(self) -> bool:
        return any(getattr(self, scope) is not None for scope in SPEND_SCOPES)

    def strictest(self, other: "SpendLimits") -> "SpendLimits":
        """Return the lower limit of each scope."""

        def lower(one: float | None, two: float | None) -> float | None:
            return min((limit for limit in (one, two) if limit is not None), default=None)

        return SpendLimits(
            turn=lower(self.turn, other.turn),
            session=lower(self.session, other.session),
            day=lower(self.day, other.day),
        )


class SpendRequest(Struct, frozen=True, kw_only=True):
    """A request about to be sent, with its price range in US dollars. `turn` None continues the
    last turn of its session."""

    at: float
    day: str
    session: str
    target: str
    low: float
    high: float
    turn: str | None = None
    purpose: SpendPurpose = "answer"


class Reservation(Struct, frozen=True, kw_only=True):
    """The amount held back for a request: its upper price, until it is settled, released or cleared
    by a person."""

    id: str
    request: SpendRequest


class Settlement(Struct, frozen=True, kw_only=True):
    """The final cost of a request. `reservation` is empty if nothing was reserved for it. If `cost`
    is None (unknown), `high` counts; if no price is known at all, nothing counts, and sums say
    so."""

    at: float
    day: str
    session: str
    target: str
    turn: str | None = None
    purpose: SpendPurpose = "answer"
    reservation: str = ""
    cost: float | None = None
    high: float | None = None
    usage: Usage | None = None


class SpendSum(Struct, frozen=True, kw_only=True):
    """The amounts spent and reserved, in US dollars. `assumed` counts requests whose answers did
    not report their usage, at their upper prices. `unpriced` is the number of requests in none of
    the amounts, because their price is unknown; `waiting` is the number of open reservations."""

    spent: float = 0.0
    assumed: float = 0.0
    reserved: float = 0.0
    unpriced: int = 0
    waiting: int = 0

    @property
    def counted(self) -> float:
        """Everything that counts towards a limit."""
        return self.spent + self.assumed + self.reserved


class ReachedLimit(Struct, frozen=True, kw_only=True):
    """A limit that a request would exceed, and the amount that already counts towards it."""

    scope: SpendScope
    limit: float
    sum: SpendSum


class SpendStanding(Struct, frozen=True, kw_only=True):
    """The spending of a session, of its last turn, and of everyone on a day. `limits` are those in
    force for the session."""

    day_name: str = ""
    turn: SpendSum = SpendSum()
    session: SpendSum = SpendSum()
    day: SpendSum = SpendSum()
    limits: SpendLimits = SpendLimits()


class SpendEntry(Struct, frozen=True, kw_only=True):
    """One request in the account, and its outcome. `ended` is the time it ended, if it did."""

    id: str
    at: float
    day: str
    session: str
    target: str
    purpose: SpendPurpose = "answer"
    state: SpendState = "open"
    low: float | None = None
    high: float | None = None
    cost: float | None = None
    usage: Usage | None = None
    ended: float | None = None
