"""Implements a turn for callers with a client of their own: request, send, commit, resume."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Protocol

from msgspec.structs import replace

from lamina.core.assembly.wire_parameters import untaken_options
from lamina.core.codec import mend_text
from lamina.core.layers import measure_layers
from lamina.core.ledger import CostRange
from lamina.core.ledger.cost import CacheRewrite, price_request
from lamina.core.ports import Wire
from lamina.core.values.entry import RequestEntry
from lamina.core.values.envelope import Options
from lamina.core.values.item import Attachment
from lamina.core.values.message import Message, ToolCall, ToolResult
from lamina.core.values.patch import HookDisplay
from lamina.core.values.prompt import LayerSize, Prompt
from lamina.core.values.request import CacheVerdict, RequestContext
from lamina.core.values.settings import Settings
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Reply, WireRequest
from lamina.engine.session.engine_calls import EngineCalls
from lamina.engine.session.replies import CommitOutcome
from lamina.engine.session.session_spending import Spending
from lamina.errors import TurnStateError, UsageError

Results = Iterable[ToolResult | Mapping[str, Any]] | Mapping[str, str]


class TurnKeeper(Protocol):
    """The session's side of a turn: only the session writes to the journal."""

    spending: Spending
    engine_calls: EngineCalls

    async def commit(self, turn: "Turn", reply: Reply, *, end: bool) -> CommitOutcome: ...
    async def resume(self, turn: "Turn", results: Sequence[ToolResult]) -> "Turn": ...
    async def retry_smaller(self, turn: "Turn") -> "Turn": ...


class Turn:
    """A prepared request, and after `commit` its answer."""

    def __init__(
        self,
        *,
        keeper: TurnKeeper,
        entry: RequestEntry,
        wire: Wire,
        wire_request: WireRequest,
        attachments: tuple[Attachment, ...],
        message: Message | None = None,
        displays: tuple[HookDisplay, ...] = (),
        rewrite: CacheRewrite | None = None,
    ) -> None:
        # Displays from hooks about this request and, once it ended, about the turn.
        self.displays = displays
        self.entry = entry
        self.attachments = attachments
        self.message = message
        # The target of its next request.
        self.target = entry.target
        self.verdict: CacheVerdict | None = None
        self._rewrite = rewrite
        self._keeper = keeper
        self._wire = wire
        self._wire_request = wire_request
        self._reply: Reply | None = None
        self._warnings: tuple[str, ...] = ()
        # The hooks that changed the answer.
        self.changed_by: tuple[str, ...] = ()

    # -- the request ------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The id of the request in the journal."""
        return self.entry.id

    @property
    def prompt(self) -> Prompt:
        """The request as segments, in wire order."""
        return self._wire_request.prompt

    @property
    def context(self) -> RequestContext:
        """The items and parts of the request with their reasons, and those that were left out."""
        return self.entry.context

    @property
    def options(self) -> Options:
        """The settings and options of this request, which determine how the model answers."""
        return self._wire_request.options

    @property
    def citations(self) -> tuple[int, ...]:
        """The numbers of the sources that the answer must cite; empty if there is no such rule."""
        return self._wire_request.enforced_citations

    @property
    def cost_range(self) -> CostRange | None:
        """The minimum and maximum price of the request, in US dollars: from a fully cached request
        without an answer, to an uncached request with the longest answer. None if the price of its
        target is unknown.
        """
        request = self._wire_request
        settings = Settings(cache_ttl=request.cache_ttl)
        return price_request(self.context, request.options, settings, request.target).range

    @property
    def rewrite(self) -> CacheRewrite | None:
        """The cost that the request incurs by rewriting cached content, for example after a pause
        or with another model; None if it does not, or if its price is unknown.
        """
        return self._rewrite

    @property
    def layers(self) -> tuple[LayerSize, ...]:
        """The size of each layer of the request, in wire order."""
        return measure_layers(self.prompt)

    @property
    def layer_digests(self) -> dict[str, str]:
        """The digest of each layer by its name: equal layers of two requests have equal digests."""
        return {size.layer: size.digest for size in self.layers}

    @property
    def processed_text(self) -> str:
        """The user message as the model receives it. Computed, never stored."""
        return "".join(segment.text for segment in self.prompt.asked)

    def request(self) -> dict[str, Any]:
        """Return the request in the target's wire format: keyword arguments for the vendor's
        client.
        """
        return self._wire.encode(self._wire_request)

    # -- the reply --------------------------------------------------------------------------------

    async def commit(self, reply: object, *, end: bool = True) -> "Turn":
        """Accept the provider's reply (the SDK's object or the body as a dict), append answer and
        usage, and return the answered turn. `end=False` skips the hooks and the compaction at the
        end of a turn: for an answer that was stopped.

        Raises:
            ReplyError: the reply cannot be read; the turn stays open.
            TurnStateError: the turn is not open.
        """
        body = reply if isinstance(reply, Reply) else self._wire.decode(reply)
        outcome = await self._keeper.commit(self, body, end=end)
        turn = copy(self)
        turn.message, turn.verdict = outcome.message, outcome.verdict
        turn._reply, turn._warnings = body, outcome.warnings
        turn.changed_by = outcome.changed_by
        turn.displays = self.displays + outcome.displays
        return turn

    async def resume(self, results: Results) -> "Turn":
        """Return the next request of this turn, with the results of the calls it waits for.

        `results` maps call ids to texts, or lists `ToolResult`s or dicts with `call_id`, `text` and
        optionally `is_error`. Calls of the engine's own tools (`find_tools`, `read_result`) may be
        omitted: the session answers them.

        Raises:
            TurnStateError: no calls are pending.
            UsageError: a call has no result, or a result has no call.
        """
        if not self.pending_calls:
            raise TurnStateError("no tool calls are pending: first commit a reply with tool calls")
        by_call = _by_call(results)
        own = self._keeper.engine_calls
        for call in self.pending_calls:
            if call.id not in by_call and own.answers(call):
                by_call[call.id] = await own.answer(call, self.target)
        return await self._keeper.resume(self, self._pair(by_call))

    def with_target(self, target: str) -> "Turn":
        """Return the turn with another target for its next request."""
        turn = copy(self)
        turn.target = target
        return turn

    async def retry_smaller(self) -> "Turn":
        """Remake the turn smaller, for when the provider reports that the request is too long. The
        failed request is left, history is compacted, and the question is asked again; once per
        question.

        Raises:
            TurnStateError: the turn is not open.
            WindowExceeded: compacting would not help, or was done before in this turn.
        """
        return await self._keeper.retry_smaller(self)

    async def reserve(self) -> None:
        """Reserve the price of sending the request once more; `prepare` did so for the first time.
        Call it before resending a request that got no answer.

        Raises:
            SpendLimit: the request could pass a limit; do not send it.
            TurnStateError: the turn is not open.
        """
        await self._keeper.spending.reserve_again(self.entry, self.prompt)

    async def release(self) -> None:
        """Report that the request was not sent, so that nothing stays reserved for it."""
        await self._keeper.spending.release_request(self.id)

    @property
    def answer(self) -> str:
        """The text of the answer; empty before `commit`."""
        return self.message.text if self.message else ""

    @property
    def pending_calls(self) -> tuple[ToolCall, ...]:
        """Tool calls that wait for their results."""
        return self.message.calls if self.message else ()

    @property
    def usage(self) -> Usage | None:
        """The provider's token counts; None before `commit`."""
        return self._reply.usage if self._reply else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the request, failed hooks and the end of the turn."""
        untaken = untaken_options(self._wire_request)
        missing = tuple(
            f"picture {digest[:12]} is missing: the model is told so in its place. Copy the blobs "
            f"of the session here, or attach the picture again"
            for digest in self._wire_request.missing_pictures
        )
        return self.context.warnings + untaken + missing + self._warnings

    @property
    def stop_reason(self) -> str:
        """The vendor's own name for the reason why the answer ended; empty before `commit`."""
        return self._reply.stop if self._reply else ""

    @property
    def interrupted(self) -> bool:
        """Whether the reply ended without its terminator."""
        return self._reply is not None and not self._reply.complete

    def _pair(self, by_call: Mapping[str, ToolResult]) -> list[ToolResult]:
        missing = [call.id for call in self.pending_calls if call.id not in by_call]
        strangers = sorted(by_call.keys() - {call.id for call in self.pending_calls})
        if missing or strangers:
            problem = f"missing {missing!r}, unknown {strangers!r}"
            raise UsageError(f"results do not match the pending calls: {problem}")
        return [
            replace(by_call[call.id], name=call.name, text=mend_text(by_call[call.id].text))
            for call in self.pending_calls
        ]


def _by_call(results: Results) -> dict[str, ToolResult]:
    if isinstance(results, Mapping):
        results = [{"call_id": call, "text": text} for call, text in results.items()]
    values = [v if isinstance(v, ToolResult) else _read_result(v) for v in results]
    return {result.call_id: result for result in values}


def _read_result(value: Mapping[str, Any]) -> ToolResult:
    call = value.get("call_id") or value.get("tool_call_id") or value.get("tool_use_id")
    text = value.get("text", value.get("content"))
    if not isinstance(call, str) or not isinstance(text, str):
        raise UsageError(f"a result needs 'call_id' and 'text' as strings: {dict(value)!r}")
    return ToolResult(call_id=call, name="", text=text, is_error=bool(value.get("is_error", False)))
