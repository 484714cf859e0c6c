"""What a session amounts to in a list of sessions, and what became of one that was deleted."""

from msgspec import Struct

from lamina.core.values.usage import Usage


class TargetUsage(Struct, frozen=True, kw_only=True, array_like=True):
    """What requests to one target took, in a form that costs what they cost together: each count is
    of tokens that are paid for at one price, in prompts between two steps of length."""

    target: str
    usage: Usage
    # The step that their prompts are longer than, and how many they are.
    above: int
    requests: int


class SessionTotals(Struct, frozen=True, kw_only=True):
    """What a session came to. Costs are not in it: prices change, so they are reckoned from `paid`
    when somebody looks."""

    workspace: str = ""
    # What a person called it, else its first question.
    name: str = ""
    # Messages on the active path, and entries of the whole tree.
    messages: int = 0
    entries: int = 0
    # What providers reported, on every branch: it was all paid for.
    usage: Usage = Usage()
    paid: tuple[TargetUsage, ...] = ()
    # What requests beside the turns cost in US dollars where no more than that is recorded.
    side_cost: float = 0.0
    damage: int = 0
    # Whether its last request was never answered.
    is_waiting: bool = False
    # Whether calls of its last answer have no results yet.
    awaits_results: bool = False
    # Where it goes on, and the requests without a reply by their targets: what the next entries
    # are added to.
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
    """What a deletion took away: the bytes of the session, and the blobs that were its alone."""

    session: str
    bytes: int = 0
    blobs: tuple[str, ...] = ()
