"""Defines the totals of a listed or deleted session."""

from msgspec import Struct

from lamina.core.values.usage import Usage


class TargetUsage(Struct, frozen=True, kw_only=True, array_like=True):
    """The usage of requests to one target, stored so that their total cost can be computed: each
    count is of tokens paid at one price, in prompts between two steps of length."""

    target: str
    usage: Usage
    # The step exceeded by their prompts, and the number of prompts.
    above: int
    requests: int


class SessionTotals(Struct, frozen=True, kw_only=True):
    """The totals of a session. Costs are not included: prices change, so they are computed from
    `paid` on demand."""

    workspace: str = ""
    # The name given by a person, or else its first question.
    name: str = ""
    # The number of messages on the active path, and of entries in the whole tree.
    messages: int = 0
    entries: int = 0
    # The usage reported by providers on all branches, all of which was paid for.
    usage: Usage = Usage()
    paid: tuple[TargetUsage, ...] = ()
    # The cost of requests outside the turns in US dollars, if nothing else is recorded.
    side_cost: float = 0.0
    damage: int = 0
    # Whether its last request was never answered.
    is_waiting: bool = False
    # Whether calls of its last answer have no results yet.
    awaits_results: bool = False
    # The position at which it continues, and the requests without a reply by target; later entries
    # are added to these.
    leaf: str = ""
    unanswered: dict[str, str] = {}


class ListedSession(Struct, frozen=True, kw_only=True):
    """One session of a store. `totals` is None if it cannot be read, and `problem` says why."""

    session: str
    totals: SessionTotals | None = None
    bytes: int = 0
    # When it was last written to, in seconds since the epoch.
    written: float = 0.0
    problem: str = ""


class DeletedSession(Struct, frozen=True, kw_only=True):
    """The result of a deletion: the removed bytes of the session, and the blobs that only it
    used."""

    session: str
    bytes: int = 0
    blobs: tuple[str, ...] = ()
