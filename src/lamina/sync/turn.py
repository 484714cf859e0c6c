"""A turn without `await`: request, send with a client of one's own, commit, resume."""

from typing import Any

from lamina.core.ledger import CostRange
from lamina.core.ledger.request_price import CacheRewrite
from lamina.core.values.entry import RequestEntry
from lamina.core.values.envelope import Options
from lamina.core.values.item import Attachment
from lamina.core.values.message import Message, ToolCall
from lamina.core.values.prompt import LayerSize, Prompt
from lamina.core.values.request import CacheVerdict, RequestContext
from lamina.core.values.usage import Usage
from lamina.engine.session import turn as async_turn
from lamina.engine.session.turn import Results
from lamina.sync.portal import Portal


class Turn:
    """One prepared request, and after `commit` its answer; `lamina.Turn` without `await`."""

    def __init__(self, portal: Portal, turn: async_turn.Turn) -> None:
        self._portal = portal
        self._turn = turn

    # -- what is about to be sent ----------------------------------------------------------------

    @property
    def id(self) -> str:
        """The request's id in the journal."""
        return self._turn.id

    @property
    def entry(self) -> RequestEntry:
        """The request as the journal has it."""
        return self._turn.entry

    @property
    def target(self) -> str:
        """Whom the turn's next request goes to."""
        return self._turn.target

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """What the request has of what applies to it."""
        return self._turn.attachments

    @property
    def prompt(self) -> Prompt:
        """The segments of the request, in wire order."""
        return self._turn.prompt

    @property
    def context(self) -> RequestContext:
        """What the request was built from and why, and what was left out."""
        return self._turn.context

    @property
    def options(self) -> Options:
        """How the model is to answer: as settings and options said for this request."""
        return self._turn.options

    @property
    def citations(self) -> tuple[int, ...]:
        """The numbers of the sources that the answer is held to cite from; empty if it is not."""
        return self._turn.citations

    @property
    def cost_range(self) -> CostRange | None:
        """The least and the most that the request can cost; as `lamina.Turn.cost_range`."""
        return self._turn.cost_range

    @property
    def rewrite(self) -> CacheRewrite | None:
        """What it costs because it writes again what a cache had; None if it does not."""
        return self._turn.rewrite

    @property
    def layers(self) -> tuple[LayerSize, ...]:
        """How large each layer of the request is."""
        return self._turn.layers

    @property
    def layer_digests(self) -> dict[str, str]:
        """The digest of each layer of the request."""
        return self._turn.layer_digests

    @property
    def processed_text(self) -> str:
        """The user message as the model gets it."""
        return self._turn.processed_text

    def request(self) -> dict[str, Any]:
        """The request in the target's wire form: keyword arguments for the vendor's client."""
        return self._turn.request()

    # -- what came back --------------------------------------------------------------------------

    def commit(self, reply: object, *, end: bool = True) -> "Turn":
        """Takes the provider's reply, and gives the answered turn; as `lamina.Turn.commit`."""
        return Turn(self._portal, self._portal.run(lambda: self._turn.commit(reply, end=end)))

    def resume(self, results: Results) -> "Turn":
        """The next request of this turn, with the results of its calls; as `lamina.Turn.resume`."""
        return Turn(self._portal, self._portal.run(lambda: self._turn.resume(results)))

    def with_target(self, target: str) -> "Turn":
        """The turn, whose next request goes to another target."""
        return Turn(self._portal, self._turn.with_target(target))

    def retry_smaller(self) -> "Turn":
        """The turn anew after a compaction, as the provider said that the request is too long; as
        `lamina.Turn.retry_smaller`."""
        return Turn(self._portal, self._portal.run(self._turn.retry_smaller))

    def reserve(self) -> None:
        """Reserves what sending the request once more may cost; as `lamina.Turn.reserve`."""
        self._portal.run(self._turn.reserve)

    def release(self) -> None:
        """Says that the request was not sent; as `lamina.Turn.release`."""
        self._portal.run(self._turn.release)

    @property
    def message(self) -> Message | None:
        """The answer as a message; None before `commit`."""
        return self._turn.message

    @property
    def answer(self) -> str:
        """The text of the answer; empty before `commit`."""
        return self._turn.answer

    @property
    def pending_calls(self) -> tuple[ToolCall, ...]:
        """Tool calls that wait for their results."""
        return self._turn.pending_calls

    @property
    def usage(self) -> Usage | None:
        """What the provider said the request cost, in tokens."""
        return self._turn.usage

    @property
    def verdict(self) -> CacheVerdict | None:
        """Whether the provider's cache did what was to be expected and, if not, why."""
        return self._turn.verdict

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know about the request, failed hooks and the end of the turn."""
        return self._turn.warnings

    @property
    def stop_reason(self) -> str:
        """Why the model stopped, in the provider's words."""
        return self._turn.stop_reason

    @property
    def interrupted(self) -> bool:
        """Whether the reply ended without its terminator."""
        return self._turn.interrupted
