"""How a target is laid out for: assemblers, room, and the prompt that was sent last.

All of it can be rebuilt from the journal; it is kept so that a turn costs what it adds.
"""

from msgspec.structs import replace

from lamina.assembly.budget import Budget, make_budget
from lamina.journal import State
from lamina.layers import Assembler, Layout
from lamina.ledger import judge_cache
from lamina.ports import TargetBook
from lamina.record.record import Record
from lamina.record.snapshot import SentLayout, freeze
from lamina.values.entry import RequestEntry
from lamina.values.envelope import Envelope
from lamina.values.prompt import Prompt
from lamina.values.request import CacheVerdict
from lamina.values.settings import CacheRules, Promotion, Settings, Target, cache_rules
from lamina.values.wire import Reply


class Layouts:
    def __init__(self, book: TargetBook, record: Record) -> None:
        self.book = book
        self._record = record
        self._assembler: Assembler | None = None
        # The name of the counter, and what the layout is of.
        self._assembled_for: tuple[str, Promotion, str] | None = None
        self._sent: Prompt | None = None
        self._sent_for: str | None = None
        self._sent_at: tuple[Envelope, int] | None = None

    def choose(self, name: str | None, settings: Settings) -> Target:
        return self.book.find(name or settings.target)

    def assembler_for(self, target: Target, promotion: Promotion) -> Assembler:
        counter = self.book.counter(target)
        key = (counter.name, promotion, target.wire)
        if self._assembler is None or self._assembled_for != key:
            layout = Layout(promotion=promotion, wire=target.wire)
            self._assembler = Assembler(counter.count, layout)
            self._assembled_for = key
            if snapshot := self._record.snapshot:
                snapshot.restore(self._assembler, counter.name)
        return self._assembler

    def fresh_assembler(self, request: RequestEntry) -> Assembler:
        """An assembler that lays out as the request was, apart from the one in use."""
        target = self.book.find(request.target)
        layout = Layout(promotion=request.promotion, wire=target.wire)
        return Assembler(self.book.counter(target).count, layout)

    def rebuild(self, request: RequestEntry) -> Prompt:
        """The prompt of a request, as it was sent."""
        assembler = self.assembler_for(self.book.find(request.target), request.promotion)
        state = self._record.state_at(request.id)
        return assembler.assemble(state.envelope, state.items, state.turn_start or 0)

    def room(self, target: Target, state: State) -> Budget:
        """The room for a request. What a provider reports never moves a count that is exact, and
        only ever takes room away from an estimate: who reports too little must not be sent more
        than fits."""
        factor = 1.0
        if not self.book.counter(target).exact:
            factor = max(1.0, state.calibration.get(target.name, 1.0))
        return make_budget(state.settings, target, state.envelope.options.max_tokens, factor)

    def remember(self, request: RequestEntry, prompt: Prompt, state: State) -> None:
        """`prompt` is what was sent for `request`, laid out from `state`."""
        self._sent, self._sent_for = prompt, request.id
        self._sent_at = (state.envelope, state.turn_start or 0)

    def last_sent(self, base: State, assembler: Assembler) -> Prompt | None:
        """The prompt of the last request known to be sent on this path."""
        last = base.last_sent
        if last is None:
            return None
        if self._sent is None or self._sent_for != last.id:
            # Laid out as it was then: the settings may have changed since.
            layout = Layout(promotion=last.promotion, wire=self.book.find(last.target).wire)
            if assembler.layout != layout:
                assembler = self.fresh_assembler(last)
            state = self._as_sent(last) or self._record.state_at(last.id)
            prompt = assembler.assemble(state.envelope, state.items, state.turn_start or 0)
            self.remember(last, prompt, state)
        return self._sent

    def _as_sent(self, last: RequestEntry) -> State | None:
        """The state that the last request was laid out from, if opening the session met it, or a
        snapshot says how to get it."""
        state = self._record.sent_state
        if state is not None and state.open_request and state.open_request.id == last.id:
            return state
        snapshot = self._record.snapshot
        if snapshot is None or snapshot.sent is None or snapshot.sent.request != last.id:
            return None
        sent, state = snapshot.sent, snapshot.state
        envelope = replace(
            state.envelope,
            cached=state.envelope.cached.until(sent.messages),
            tool_texts=sent.tool_texts,
            uncached=sent.uncached,
        )
        return replace(state, envelope=envelope, turn_start=sent.turn_start)

    async def index(self, *, least: int, share: float = 0.0) -> None:
        """Keeps what can be taken up again when the session is opened, if it is worth it."""
        # Not while a request is open: leaving it means going back in front of it.
        if self._record.state.open_request is None and self._record.index_due(least, share):
            counter = self._assembled_for[0] if self._assembled_for else ""
            state, entries = self._record.state, self._record.entries
            sent = self._describe_sent(state)
            snapshot = freeze(state, entries, sent, self._assembler, counter)
            await self._record.keep_index(snapshot)

    def _describe_sent(self, state: State) -> SentLayout | None:
        """How to get from the envelope of `state` to the last one sent: only if it was appended to
        since, and nothing else."""
        if self._sent_at is None or state.last_sent is None or self._sent_for != state.last_sent.id:
            return None
        then, turn_start = self._sent_at
        now = state.envelope
        if (then.system, then.library) != (now.system, now.library):
            return None
        if (then.tools, then.listed) != (now.tools, now.listed):
            return None
        if now.cached.shared_with(then.cached) < len(then.cached):
            return None
        return SentLayout(
            request=state.last_sent.id,
            messages=len(then.cached),
            turn_start=turn_start,
            tool_texts=then.tool_texts,
            uncached=then.uncached,
        )

    def judge(self, state: State, request: RequestEntry, reply: Reply) -> CacheVerdict:
        """What the provider's cache figures mean, and what it says of them itself."""
        usage = reply.usage
        target = self.book.find(request.target)
        last = state.last_sent
        rules = cache_rules(state.settings, target)
        # What the provider counts, over what we counted: the truest factor for this request.
        factor = usage.input / request.tokens if usage.input and request.tokens else 1.0
        verdict = judge_cache(
            request.context.agreement,
            last.cached_tokens if last else 0,
            request.at - last.at if last else None,
            rules,
            usage,
            factor,
            same_cache=last is not None and last.target == request.target,
            held=_held(state, rules),
            explicit_before=state.last_usage is not None and bool(state.last_usage.explicit),
        )
        if not reply.missed or verdict.meaning == "as_expected":
            return verdict
        return replace(verdict, detail=f"{verdict.detail}; the provider says: {reply.missed}")


def _held(state: State, rules: CacheRules) -> int | None:
    """What a provider has of the last request, as it counted it itself: what it said it read and
    wrote, where it does so at markers. One that keeps answers has all of it and the answer, but
    for its last token, which was said and never read."""
    last, usage = state.last_sent, state.last_usage
    if rules.explicit and usage is not None:
        return usage.cached + usage.written or None
    if not rules.keeps_answers or last is None or usage is None or not usage.input:
        return None
    if last.cached_tokens < last.tokens:
        return None
    return usage.input + max(0, usage.output - 1)
