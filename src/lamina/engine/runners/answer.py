"""Defines the results of a runner: an answer with its sources and cost, or a preview of the
request.

Law: a preview asks no model and runs no tool; for a planned question, only the request for the plan
can be shown.
"""

from typing import Any, NoReturn

from msgspec import Struct

from lamina.core.ledger import CostRange
from lamina.core.values.event import Ending, Event, UsageReported, WarningIssued
from lamina.core.values.note import NoteSearchResult
from lamina.core.values.prices import CostSum
from lamina.core.values.prompt import Prompt
from lamina.core.values.request import LeftOut
from lamina.core.values.settings import Target
from lamina.core.values.usage import Usage
from lamina.engine.runners.approvals import WaitingCall
from lamina.engine.session.turn import Turn
from lamina.errors import UsageError


class CitedSource(Struct, frozen=True, kw_only=True):
    """A part of a note that an answer cites as `[^number]`. `heading` is the trail of headings
    above it, `anchor` the innermost of these, `link` the note and heading in link format.
    """

    number: int
    path: str
    title: str
    link: str
    heading: str = ""
    anchor: str = ""
    start: int = 0
    end: int = 0


class Answer(Struct, frozen=True, kw_only=True):
    """The answer to a question. `turn` is its last request; `waiting_calls` need a decision before
    the turn can continue. If notes were searched, `search_result` contains the hits, `sources` are
    those that the answer cites, and `text` uses their numbers; the journal keeps the model's own
    numbers.
    """

    ending: Ending
    text: str
    turn: Turn | None = None
    requests: int = 0
    usage: Usage = Usage()
    # In US dollars, without the `unpriced` requests, whose price is unknown; None if all are.
    cost: float | None = 0.0
    unpriced: int = 0
    waiting_calls: tuple[WaitingCall, ...] = ()
    warnings: tuple[str, ...] = ()
    sources: tuple[CitedSource, ...] = ()
    search_result: NoteSearchResult | None = None


class Tally:
    """A run's usage so far, and its warnings."""

    def __init__(self) -> None:
        self.requests = 0
        self.usage = Usage()
        self.cost = CostSum()
        self.warnings: list[str] = []
        self.turn: Turn | None = None

    def note(self, event: Event) -> None:
        match event:
            case WarningIssued(text=text):
                self.warnings.append(text)
            case UsageReported(usage=usage, cost=cost):
                self.cost = self.cost.plus(cost)
                self.usage = self.usage.plus(usage)
            case _:
                pass


class Preview(Struct, frozen=True, kw_only=True):
    """A prepared turn. `search_result` is what a search added to it."""

    turn: Turn
    search_result: NoteSearchResult | None = None
    warnings: tuple[str, ...] = ()


class PlanPreview(Struct, frozen=True, kw_only=True):
    """The request for a plan; `body` is the request as sent over the wire."""

    target: Target
    prompt: Prompt
    body: dict[str, Any]
    left_out: tuple[LeftOut, ...] = ()
    warnings: tuple[str, ...] = ()
    # Its maximum cost; None if unknown.
    cost_range: CostRange | None = None


class NoProviders:
    """Providers for a runner that only previews."""

    async def provider(self, target: Target) -> NoReturn:
        raise UsageError(f"this is a preview: nothing is sent to {target.name}")
