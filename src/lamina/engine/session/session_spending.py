"""Tracks the spending of a session: if there is a limit, every provider call is reserved before it
is sent, and settled by its answer.

Laws: nothing is sent that could pass a limit. A reservation covers one sending; it is freed only if
nothing was sent, or if the provider rejected it. If an answer never arrives, its price stays
reserved. Without a limit nothing is reserved, and each answer is recorded once; an account that
cannot be written then causes a warning, not an error. Storage of an explicit cache is always
reserved, because a process that dies leaves it behind.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
from msgspec import Struct

from lamina.core.journal import State, options_for_request
from lamina.core.layers import measure_layers
from lamina.core.ledger import cost_of
from lamina.core.ledger.cost import (
    CacheRewrite,
    RequestPrice,
    price_request,
    price_rewrite,
    storage_cost,
    upper_tokens,
)
from lamina.core.ledger.savings import find_savings
from lamina.core.ports import SpendLedger, TargetBook, TargetList
from lamina.core.text.money import dollar_range, dollars
from lamina.core.values.entry import CACHE, STORAGE, RequestEntry
from lamina.core.values.prompt import LayerSize, Prompt
from lamina.core.values.request import RequestContext
from lamina.core.values.settings import Target
from lamina.core.values.spend_limits import (
    SPEND_SCOPES,
    ReachedLimit,
    Settlement,
    SpendLimits,
    SpendPurpose,
    SpendRequest,
    SpendStanding,
    SpendSum,
)
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Reply
from lamina.engine.record.record import Record
from lamina.engine.session.session_ports import Warn
from lamina.errors import ProviderError, SpendLedgerError, SpendLimit, UnknownPrice, UnknownTarget

_SCOPES = {"turn": "one turn", "session": "this session", "day": "a day"}


# Receives a `Turn`; an exception raised there prevents the sending.
Gate = Callable[[Any], Awaitable[None]]


class ProviderCall(Struct, frozen=True, kw_only=True):
    """A call that is about to be made, with the values that determine its price."""

    price: RequestPrice
    purpose: SpendPurpose = "answer"
    context: RequestContext | None = None
    layers: tuple[LayerSize, ...] = ()


class Bill(Struct, kw_only=True):
    """A provider call: its reservation, if any, and its progress."""

    call: ProviderCall
    reservation: str = ""
    is_sent: bool = False
    is_over: bool = False


class Spending:
    """The spending of one session. `ceilings` are limits in addition to those of its settings;
    without a `ledger` there is no account and no limit.
    """

    def __init__(
        self,
        record: Record,
        book: TargetBook,
        ledger: SpendLedger | None,
        ceilings: SpendLimits,
        warn: Warn,
    ) -> None:
        self.ledger = ledger
        self._consulted: SpendLedger | None = None
        self.ceilings = ceilings
        self._record = record
        self._clock = record.clock
        self._book = book
        self._warn = warn
        # None continues the turn that the session was in when it was opened.
        self._turn: str | None = None
        self._is_new_turn = False
        self._began_early = False
        # The latest bill of each request that this instance made and whose answer is still awaited.
        self._bills: dict[str, Bill] = {}
        self._is_warned = False
        # Called before a runner sends a turn.
        self.gate: Gate | None = None

    @property
    def limits(self) -> SpendLimits:
        """The limits in force: the lower ones of the settings and the environment."""
        return self._record.state.settings.spend_limits.strictest(self.ceilings)

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit; checked before every request, so it must be fast."""
        settings = self._record.state.settings
        return (
            settings.spend_day is not None
            or settings.spend_session is not None
            or settings.spend_turn is not None
            or bool(self.ceilings)
        ) and self.ledger is not None

    def begin_turn(self, *, early: bool = False) -> None:
        """Record that a question is about to be asked. `early` if something is sent before it is
        prepared: then preparing it does not begin another turn.
        """
        if self._began_early and not early:
            self._began_early = False
            return
        self._began_early = early
        self._turn, self._is_new_turn = None, True

    def _name_turn(self) -> str | None:
        """Return the name of the current turn. It is named after the next entry when it first costs
        something, so that names are in order and unique.
        """
        if self._is_new_turn:
            self._turn, self._is_new_turn = self._record.page().next_id(), False
        return self._turn

    async def standing(self) -> SpendStanding:
        """Return the spending of the session, of its last turn, and of all sessions today."""
        if self.ledger is None:
            return SpendStanding(limits=self.limits)
        day = self.ledger.day_of(self._clock.now())
        standing = await self.ledger.standing(self._record.id, day)
        return SpendStanding(
            day_name=day, turn=standing.turn, session=standing.session, day=standing.day,
            limits=self.limits,
        )  # fmt: skip

    # -- any call --------------------------------------------------------------------------------

    async def reserve(self, call: ProviderCall) -> Bill:
        """Reserve the maximum price of a call, if there is a limit.

        Raises:
            SpendLimit: it could pass a limit; nothing was written.
            UnknownPrice: there is a limit, and the price is unknown.
            SpendLedgerError: there is a limit, and the account cannot be read or written.
        """
        bill = Bill(call=call)
        if self.ledger is None or not (self.is_limited or call.purpose == "storage"):
            return bill
        limits = self.limits
        cost = call.price.range
        if cost is None:
            if self._record.state.settings.spend_unknown == "refuse":
                raise _unknown_price(call.price.target, limits)
            return bill
        if not cost.high:
            return bill
        now = self._clock.now()
        request = SpendRequest(
            at=now, day=self.ledger.day_of(now), session=self._record.id,
            turn=self._name_turn(), target=call.price.target.name, purpose=call.purpose,
            low=cost.low, high=cost.high,
        )  # fmt: skip
        outcome = await self.ledger.reserve(request, limits)
        if isinstance(outcome, ReachedLimit):
            raise self._refusal(call, outcome, cost.low, cost.high)
        bill.reservation = outcome.id
        return bill

    async def settle(
        self, bill: Bill, usage: Usage | None, *, storage: float | None = None
    ) -> None:
        """Record the cost of a call; None if its answer did not report it. `storage` is the cost of
        storing a cache, which is known without an answer.
        """
        if self.ledger is None or bill.is_over:
            return
        bill.is_over = True
        price, now = bill.call.price, self._clock.now()
        cost = storage if usage is None else cost_of(usage, price.target)
        upper = price.range
        if upper is not None and not upper.high:
            cost = 0.0
        settlement = Settlement(
            at=now, day=self.ledger.day_of(now), session=self._record.id,
            turn=self._name_turn(), target=price.target.name, purpose=bill.call.purpose,
            reservation=bill.reservation, cost=cost, usage=usage,
            high=upper.high if upper else None,
        )  # fmt: skip
        try:
            await self.ledger.settle(settlement)
        except SpendLedgerError as error:
            self._tell(error)

    async def release(self, bill: Bill) -> None:
        """Free the reservation of a call that was not sent, or that the provider rejected."""
        if self.ledger is None or bill.is_over:
            return
        bill.is_over = True
        if bill.reservation:
            try:
                await self.ledger.free((bill.reservation,), self._clock.now(), "sender")
            except SpendLedgerError as error:
                self._tell(error)

    async def end_failed(self, bill: Bill, error: BaseException) -> None:
        """Handle a failed call: if it was rejected nothing is charged, otherwise the charge is
        unknown.
        """
        if isinstance(error, ProviderError) and error.is_refusal:
            with anyio.CancelScope(shield=True):
                await self.release(bill)

    # -- explicit caches -------------------------------------------------------------------------

    async def reserve_cache(
        self, target: Target, tokens: int, seconds: float, *, creates: bool,
        note: "NoteCacheCost",
    ) -> "SessionCacheCharge":  # fmt: skip
        """Reserve the cost of an explicit cache: storing it, and creating it if `creates` is set.
        `note` is called with the final cost.

        Raises:
            SpendLimit, SpendLedgerError: as `reserve`; nothing is reserved then.
        """
        upper = upper_tokens(tokens, target)
        price = RequestPrice(target=target, tokens=0, counted=0, cached=0, output_limit=0)
        storage = msgspec.structs.replace(
            price, storage=storage_cost(upper, seconds, target) or 0.0
        )
        kept = ProviderCall(price=storage, purpose="storage")
        creation: Bill | None = None
        try:
            if creates:
                price = msgspec.structs.replace(price, tokens=upper, counted=tokens)
                creation = await self.reserve(ProviderCall(price=price, purpose="cache"))
            return SessionCacheCharge(self, target, creation, await self.reserve(kept), note)
        except SpendLedgerError as error:
            if not self.is_limited:
                self._tell(error)
                return SessionCacheCharge(self, target, creation, Bill(call=kept), note)
            raise
        except SpendLimit:
            if creation is not None:
                await self.release(creation)
            raise

    def _tell(self, error: SpendLedgerError) -> None:
        """Warn once that the account cannot be written."""
        if not self._is_warned:
            self._is_warned = True
            self._warn(f"what this costs is not written down: {error}")

    def _refusal(
        self, call: ProviderCall, reached: ReachedLimit, low: float, high: float
    ) -> SpendLimit:
        book, others = self._book, list[Target]()
        if isinstance(book, TargetList):
            others = [book.find(name) for name in book.names() if "*" not in name]
        total = reached.sum
        reserved = f", {dollars(total.reserved)} is reserved" if total.reserved else ""
        spent = total.spent + total.assumed
        return SpendLimit(
            f"this request could cost {dollar_range(low, high)}, and the limit for "
            f"{_SCOPES[reached.scope]} is {dollars(reached.limit)}: {dollars(spent)} is "
            f"spent{reserved}; nothing was sent",
            scope=reached.scope, limit=reached.limit, spent=spent, reserved=total.reserved,
            low=low, high=high,
            advice=find_savings(reached, call.price, call.context, call.layers, others),
        )  # fmt: skip

    def rehearse(self) -> None:
        """Stop all spending from now on: nothing is sent, reserved or recorded, and limits block
        nothing. `find_refusal` returns the error that a limit would raise.
        """
        self._consulted, self.ledger = self.ledger, None

    async def find_refusal(self, request: RequestEntry, prompt: Prompt) -> SpendLimit | None:
        """Return the error that a limit would raise for the open request, if it began a turn; None
        if it may be sent.
        """
        ledger, limits = self._consulted or self.ledger, self.limits
        if ledger is None or not limits:
            return None
        target = self._book.find(request.target)
        price = self.price(request.context, target)
        if (cost := price.range) is None:
            is_refused = self._record.state.settings.spend_unknown == "refuse"
            return _unknown_price(target, limits) if is_refused else None
        standing = await ledger.standing(self._record.id, ledger.day_of(self._clock.now()))
        sums = {"turn": SpendSum(), "session": standing.session, "day": standing.day}
        for scope in SPEND_SCOPES:
            limit: float | None = getattr(limits, scope)
            if cost.high and limit is not None and sums[scope].counted + cost.high > limit:
                call = ProviderCall(
                    price=price, context=request.context, layers=measure_layers(prompt)
                )
                reached = ReachedLimit(scope=scope, limit=limit, sum=sums[scope])
                return self._refusal(call, reached, cost.low, cost.high)
        return None

    # -- session requests -------------------------------------------------------------------------

    async def reserve_request(
        self, request: RequestEntry, prompt: Prompt, target: Target, state: State | None = None
    ) -> None:
        """Reserve the maximum price of a request for one sending; earlier reservations for it stay.

        `state` is the one behind the request, if it is not written yet.

        Raises:
            SpendLimit, SpendLedgerError: as `reserve`.
        """
        if not self.is_limited:
            # Its cost is recorded once its answer arrives.
            return
        call = ProviderCall(
            price=self.price(request.context, target, state),
            context=request.context,
            layers=measure_layers(prompt),
        )
        bill = await self.reserve(call)
        # Of earlier requests, only those that can still be released matter.
        self._bills = {name: known for name, known in self._bills.items() if known.reservation}
        self._bills[request.id] = bill

    def price(
        self, context: RequestContext, target: Target, state: State | None = None
    ) -> RequestPrice:
        """Return the values that determine the price of the last planned request."""
        state = state or self._record.state
        return price_request(context, options_for_request(state), state.settings, target)

    def rewrite(self, request: RequestEntry, target: Target) -> CacheRewrite | None:
        """Return the cost that the open request incurs by rewriting cached content."""
        state = self._record.state
        if not request.context.boundaries or (sent := state.requests.sent) is None:
            return None
        try:
            sent_target = self._book.find(sent.target)
        except UnknownTarget:
            return None
        return price_rewrite(request.context, state.settings, target, sent, sent_target)

    def is_reserved(self, request: str) -> bool:
        """Return whether one sending of a request is reserved."""
        bill = self._bills.get(request)
        return bill is not None and not bill.is_sent and not bill.is_over

    async def reserve_again(self, request: RequestEntry, prompt: Prompt) -> None:
        """Reserve one more sending of the open request.

        Raises:
            SpendLimit, SpendLedgerError: as `reserve`.
            TurnStateError: the request is not the open one.
        """
        self._record.require_open(request)
        await self.reserve_request(request, prompt, self._book.find(request.target))

    async def begin_sending(self, request: RequestEntry, prompt: Prompt) -> None:
        """Record that a request is being sent. If it was sent before, its price is reserved once
        more.

        Raises:
            SpendLimit, SpendLedgerError: as `reserve`; the request must not be sent.
        """
        if not self.is_reserved(request.id):
            await self.reserve_request(request, prompt, self._book.find(request.target))
        if bill := self._bills.get(request.id):
            bill.is_sent = True

    async def settle_request(self, request: RequestEntry, target: Target, reply: Reply) -> None:
        """Record that the answer of a request arrived, or a part of it."""
        bill = self._bills.pop(request.id, None)
        bill = bill or Bill(call=ProviderCall(price=self.price(request.context, target)))
        usage = reply.usage if reply.usage.input or reply.usage.output else None
        if usage is None and not reply.complete and bill.reservation:
            # It was stopped or broke off, and the charge is unknown: it stays reserved.
            return
        await self.settle(bill, usage)

    @asynccontextmanager
    async def reserving(
        self, request: RequestEntry, prompt: Prompt, target: Target, state: State
    ) -> AsyncIterator[None]:
        """Reserve a request's price before it is written, and free it if writing fails, because it
        was then never sent.
        """
        await self.reserve_request(request, prompt, target, state)
        try:
            yield
        except BaseException:
            await self.release_request(request.id)
            raise

    async def release_request(self, request: str) -> None:
        """Record that a request was not sent, or was rejected."""
        if bill := self._bills.pop(request, None):
            with anyio.CancelScope(shield=True):
                await self.release(bill)

    async def end_failed_request(self, request: str, error: BaseException) -> None:
        """Record that sending a request failed."""
        if bill := self._bills.get(request):
            await self.end_failed(bill, error)


# Receives the cost of a cache: the kind of the journal's entry, and its data.
NoteCacheCost = Callable[[str, dict[str, Any]], Awaitable[None]]


class SessionCacheCharge:
    """The cost of one explicit cache for a session, from a creation or a renewal to its end."""

    def __init__(
        self, spending: Spending, target: Target, creation: Bill | None, storage: Bill,
        note: NoteCacheCost,
    ) -> None:  # fmt: skip
        self._spending = spending
        self._target = target
        self._creation = creation
        self._storage = storage
        self._note = note
        self._tokens = 0

    async def confirm(self, tokens: int) -> None:
        self._tokens = tokens
        if self._creation is None:
            return
        usage = Usage(input=tokens)
        await self._spending.settle(self._creation, usage)
        data = {"target": self._target.name, "tokens": tokens, "usage": {"input": tokens}}
        await self._note(CACHE, data | {"cost": cost_of(usage, self._target)})

    async def fail(self, error: BaseException) -> None:
        for bill in (self._creation, self._storage):
            if bill is not None:
                await self._spending.end_failed(bill, error)

    async def end(self, seconds: float) -> None:
        cost = storage_cost(self._tokens, seconds, self._target)
        await self._spending.settle(self._storage, None, storage=cost)
        data = {"model": self._target.name, "tokens": self._tokens, "usage": {}, "cost": cost}
        await self._note(STORAGE, data | {"seconds": round(seconds, 3)})


def _unknown_price(target: Target, limits: SpendLimits) -> UnknownPrice:
    scope, limit = next(
        (scope, limit)
        for scope in ("turn", "session", "day")
        if (limit := getattr(limits, scope)) is not None
    )
    return UnknownPrice(
        f"the price of {target.name} is unknown, and {dollars(limit)} is the limit for "
        f"{_SCOPES[scope]}; nothing was sent",
        scope=scope,
        limit=limit,
        advice=(
            "set its price in a models file (LAMINA_MODELS), choose a model with a known price "
            "(`lamina targets`), or let unknown prices pass uncounted (spend_unknown=allow)",
        ),
    )
