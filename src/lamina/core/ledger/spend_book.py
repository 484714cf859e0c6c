"""Records spending as lines, and sums them.

Laws: every line stands alone, so that a lost one affects no other: a settlement counts even if its
reservation is lost, and vice versa. Amounts are added as whole billionths of a dollar, so that sums
do not drift and do not depend on the order.

Private: see `lamina` for what is public.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec import Struct

from lamina.core.codec import canonical_bytes
from lamina.core.journal.lines import is_proven, write_line
from lamina.core.values.damage import Damage
from lamina.core.values.spend_limits import (
    SPEND_SCOPES,
    ReachedLimit,
    SpendEntry,
    SpendLimits,
    SpendPurpose,
    SpendRequest,
    SpendScope,
    SpendStanding,
    SpendState,
    SpendSum,
)
from lamina.core.values.usage import Usage

SpendAct = Literal["reserve", "settle", "release", "clear"]
BILLION = 1_000_000_000
# The maximum length of an unreadable line as displayed.
_SHOWN = 60
_ENDED: dict[SpendAct, SpendState] = {
    "settle": "settled", "release": "released", "clear": "cleared",
}  # fmt: skip


class SpendLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One recorded action."""

    at: float
    act: SpendAct
    id: str
    day: str = ""
    session: str = ""
    target: str = ""
    turn: str = ""
    purpose: SpendPurpose = "answer"
    low: float | None = None
    high: float | None = None
    cost: float | None = None
    usage: Usage | None = None
    # The time zone of `day`; absent in accounts written before it was recorded.
    zone: str = ""


class _Sum(Struct):
    """The counted amounts, in billionths of a dollar; `turn` is the last turn of a session."""

    spent: int = 0
    assumed: int = 0
    unpriced: int = 0


class _SessionSum(_Sum):
    turn: str = ""
    of_turn: _Sum = msgspec.field(default_factory=_Sum)


class BookSnapshot(Struct, frozen=True, kw_only=True):
    """The contents of a book, so that it need not be read from its first line."""

    version: int = 1
    days: dict[str, _Sum]
    sessions: dict[str, _SessionSum]
    open: tuple[SpendLine, ...]
    damaged: int
    zone: str = ""


def encode_line(line: SpendLine) -> bytes:
    """Return a line with its checksum and line break."""
    return write_line(canonical_bytes(line))


def decode_line(data: bytes, number: int = 0, offset: int = 0) -> SpendLine | Damage:
    """Return the content of a line, given without its line break, or a description of the
    damage."""
    if is_proven(data):
        try:
            return msgspec.json.decode(data, type=SpendLine)
        except msgspec.MsgspecError as error:
            problem = f"the line is not understood: {error}"
            return Damage(
                kind="not_an_entry", detail=problem, line=number, offset=offset, length=len(data)
            )
    beginning = repr(data[:_SHOWN].decode("utf-8", "backslashreplace"))
    return Damage(
        kind="no_checksum",
        detail=f"the line was cut off or changed; it begins {beginning}",
        line=number,
        offset=offset,
        length=len(data),
    )


def billionths(dollars: float) -> int:
    """Return an amount as a whole number of billionths."""
    return round(dollars * BILLION)


class SpendBook:
    """The sums of an account's lines added so far. The cost of a query depends only on the number
    of pending answers, not on the number of lines."""

    def __init__(self, snapshot: BookSnapshot | None = None) -> None:
        self.damaged = snapshot.damaged if snapshot else 0
        # The zone in which the account's days are counted: the first that a line names.
        self.zone = snapshot.zone if snapshot else ""
        self._days = dict(snapshot.days) if snapshot else {}
        self._sessions = dict(snapshot.sessions) if snapshot else {}
        self.open = {line.id: line for line in snapshot.open} if snapshot else {}

    def take(self, line: SpendLine | Damage) -> None:
        """Add the next line."""
        if isinstance(line, Damage):
            self.damaged += 1
            return
        self.zone = self.zone or line.zone
        if line.act == "reserve":
            self.open[line.id] = line
            self._session_of(line)
            return
        self.open.pop(line.id, None)
        if line.act == "settle":
            self._count(line)

    def turn_of(self, session: str) -> str:
        """Return the last turn of a session; empty if unknown."""
        known = self._sessions.get(session)
        return known.turn if known else ""

    def sum_of(self, scope: SpendScope, session: str, turn: str, day: str) -> SpendSum:
        """Return the amount that counts for a turn of a session, for a session, or for a day."""
        own: _Sum | None
        own = self._days.get(day) if scope == "day" else self._sessions.get(session)
        if scope == "turn":
            known = self._sessions.get(session)
            own = known.of_turn if known and known.turn == turn else None
        waiting = [line for line in self.open.values() if _is_in(line, scope, session, turn, day)]
        reserved = sum(billionths(line.high or 0.0) for line in waiting)
        own = own or _Sum()
        return SpendSum(
            spent=own.spent / BILLION,
            assumed=own.assumed / BILLION,
            reserved=reserved / BILLION,
            unpriced=own.unpriced,
            waiting=len(waiting),
        )

    def standing(self, session: str, day: str) -> SpendStanding:
        turn = self.turn_of(session)
        return SpendStanding(
            day_name=day,
            turn=self.sum_of("turn", session, turn, day),
            session=self.sum_of("session", session, turn, day),
            day=self.sum_of("day", session, turn, day),
        )

    def find_reached(self, request: SpendRequest, limits: SpendLimits) -> ReachedLimit | None:
        """Return the first limit that a request would exceed if its answer cost the upper price."""
        turn = self.turn_of(request.session) if request.turn is None else request.turn
        for scope in SPEND_SCOPES:
            limit: float | None = getattr(limits, scope)
            if limit is None:
                continue
            counted = self.sum_of(scope, request.session, turn, request.day)
            if billionths(counted.counted) + billionths(request.high) > billionths(limit):
                return ReachedLimit(scope=scope, limit=limit, sum=counted)
        return None

    def snapshot(self) -> BookSnapshot:
        return BookSnapshot(
            days=self._days,
            sessions=self._sessions,
            open=tuple(self.open.values()),
            damaged=self.damaged,
            zone=self.zone,
        )

    def _session_of(self, line: SpendLine) -> _SessionSum:
        known = self._sessions.setdefault(line.session, _SessionSum())
        # Turns are named in order; a late line for an earlier turn does not bring it back.
        if (len(line.turn), line.turn) > (len(known.turn), known.turn):
            known.turn, known.of_turn = line.turn, _Sum()
        return known

    def _count(self, line: SpendLine) -> None:
        session = self._session_of(line)
        sums = [session, self._days.setdefault(line.day, _Sum())]
        if session.turn == line.turn:
            sums.append(session.of_turn)
        for own in sums:
            if line.cost is not None:
                own.spent += billionths(line.cost)
            elif line.high is not None:
                own.assumed += billionths(line.high)
            else:
                own.unpriced += 1


def _is_in(line: SpendLine, scope: SpendScope, session: str, turn: str, day: str) -> bool:
    if scope == "day":
        return line.day == day
    return line.session == session and (scope == "session" or line.turn == turn)


def list_entries(lines: Iterable[SpendLine]) -> list[SpendEntry]:
    """Return every request that lines mention, in order of first mention, with its outcome."""
    entries: dict[str, SpendEntry] = {}
    for line in lines:
        known = entries.get(line.id)
        if line.act in ("release", "clear"):
            # An answer that arrived anyway counts, whatever a person decided.
            if known is not None and known.state == "open":
                entries[line.id] = msgspec.structs.replace(
                    known, state=_ENDED[line.act], ended=line.at
                )
            continue
        is_end = line.act == "settle"
        entries[line.id] = SpendEntry(
            id=line.id,
            at=known.at if known else line.at,
            day=line.day,
            session=line.session,
            target=line.target,
            purpose=line.purpose,
            state="settled" if is_end else "open",
            low=known.low if known else line.low,
            high=line.high if line.high is not None else known.high if known else None,
            cost=line.cost,
            usage=line.usage,
            ended=line.at if is_end else None,
        )
    return list(entries.values())
