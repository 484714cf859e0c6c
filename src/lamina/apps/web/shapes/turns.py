"""Turns: what they are asked with, and what is said while they run."""

from msgspec import Struct

from lamina.apps.web.route import RequestBody
from lamina.core.values.entry import Delivery
from lamina.core.values.event import EventBase
from lamina.core.values.tool import Decision


class NewTurn(RequestBody, frozen=True, kw_only=True):
    """A question; what `@` mentions in it is attached as well."""

    text: str
    attach: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()
    target: str | None = None


class EditedQuestion(RequestBody, frozen=True, kw_only=True):
    """A question asked otherwise. Without `attach` and `essential`, what was attached to it goes
    along again."""

    question: str
    text: str
    attach: tuple[str, ...] | None = None
    essential: tuple[str, ...] | None = None
    target: str | None = None


class RepeatedAnswer(RequestBody, frozen=True, kw_only=True):
    """An answer asked for again; without one, the last."""

    answer: str | None = None
    target: str | None = None


class ResumedTurn(RequestBody, frozen=True, kw_only=True):
    target: str | None = None


class TurnBegun(Struct, frozen=True, kw_only=True):
    """The turn that was begun; `turns/{turn}/events` tells of it."""

    turn: str


class Aborted(Struct, frozen=True, kw_only=True):
    """Whether there was something to stop."""

    aborted: bool


class SentMessage(RequestBody, frozen=True, kw_only=True):
    """Something said while a turn runs: with its next request, or after its answer."""

    text: str
    deliver: Delivery = "steer"


class MessageTaken(Struct, frozen=True, kw_only=True):
    """Whether a turn runs that the message reaches; otherwise it waits for the next one."""

    running: bool


class DecisionBody(RequestBody, frozen=True, kw_only=True):
    decision: Decision


class DecisionKept(Struct, frozen=True, kw_only=True):
    """What was decided, which calls still wait, and the turn that was taken up if none does."""

    call_id: str
    decision: Decision
    waiting: tuple[str, ...]
    turn: str | None


class TurnFailed(EventBase, frozen=True, kw_only=True, tag="failed"):
    """The turn is over without an answer; always the last event, if it is there."""

    code: str
    message: str


class CompactionDone(EventBase, frozen=True, kw_only=True, tag="compaction"):
    """What a compaction that a person asked for came to."""

    changed: bool
    reason: str
    summary: str
    by: str
    messages: int
    tokens_dropped: int
    problem: str


class Ping(EventBase, frozen=True, kw_only=True, tag="ping"):
    """Nothing happened for a while, and the connection is there."""
