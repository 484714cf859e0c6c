"""How a target is laid out for: assemblers, room, and the prompt that was sent last.

All of it can be rebuilt from the journal; it is kept so that a turn costs what it adds.
"""

from typing import get_args

from msgspec.structs import replace

from lamina.assembly.budget import Budget, assemble_turn, make_budget
from lamina.audit.requests import other_digests
from lamina.codec import entry_number
from lamina.journal import State
from lamina.layers import Assembler, Layout
from lamina.ledger import SentPrompt, judge_cache, shared_digests
from lamina.ports import TargetBook
from lamina.record.record import Record
from lamina.record.snapshot import SentLayout, freeze
from lamina.values.entry import RENDERER, WIRE_FORM, RequestEntry
from lamina.values.envelope import Envelope
from lamina.values.prompt import Prompt
from lamina.values.request import Boundary, CacheVerdict
from lamina.values.settings import (
    CacheRules,
    Promotion,
    Settings,
    Target,
    WireName,
    cache_rules,
)
from lamina.values.wire import Reply


class Layouts:
    def __init__(self, book: TargetBook, record: Record) -> None:
        self.book = book
        self._record = record
        self._assembler: Assembler | None = None
        # The name of the counter, and what the layout is of.
        self._assembled_for: tuple[str, Promotion, str] | None = None
        self._sent: SentPrompt | None = None
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

    def rebuild(self, request: RequestEntry) -> Prompt:
        """The prompt of a request, as it would be sent today."""
        assembler = self.assembler_for(self.book.find(request.target), request.promotion)
        state = self._record.state_at(request.id)
        return assemble_turn(state, assembler)

    def is_as_recorded(self, request: RequestEntry, prompt: Prompt) -> bool:
        """Whether a prompt that was rebuilt is the one that was recorded, on its wire."""
        target = self.book.find(request.target)
        if _wire_change(request, request.wire or target.wire, target):
            return False
        return other_digests(request, prompt, self._record.entries) is None

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
        wire = request.wire or self.book.find(request.target).wire
        layout = Layout(promotion=request.promotion, wire=wire)
        self._sent, self._sent_for = SentPrompt(prompt=prompt, layout=layout), request.id
        self._sent_at = (state.envelope, state.turn.start or 0)

    def last_sent(self, base: State, assembler: Assembler, target: Target) -> SentPrompt | None:
        """The last request known to be sent on this path, for the next one, to `target`, to be
        compared with."""
        last = base.requests.sent
        if last is None:
            return None
        if self._sent is None or self._sent_for != last.id:
            self._recall(last, assembler)
        sent = self._sent
        assert sent is not None
        if last.target == target.name and (cause := _wire_change(last, sent.layout.wire, target)):
            return replace(sent, cause=cause, replaced=True)
        return sent

    def _recall(self, last: RequestEntry, assembler: Assembler) -> None:
        """Makes the prompt of the last request again, to be compared with what was recorded."""
        state = self._as_sent(last) or self._record.state_at(last.id)
        wires: tuple[str, ...] = (last.wire,)
        if not last.wire:
            # It does not say which one: the one that gives what was recorded.
            today = self.book.find(last.target).wire
            wires = (today, *(wire for wire in get_args(WireName) if wire != today))
        trials = (self._make_again(last, wire, state, assembler) for wire in wires)
        sent = next(trials)
        if sent.digests is not None:
            sent = next((trial for trial in trials if trial.digests is None), sent)
        self._sent, self._sent_for = sent, last.id
        self._sent_at = (state.envelope, state.turn.start or 0)

    def _make_again(
        self, last: RequestEntry, wire: str, state: State, assembler: Assembler
    ) -> SentPrompt:
        # Laid out as it was then: the settings may have changed since.
        layout = Layout(promotion=last.promotion, wire=wire)
        if assembler.layout != layout:
            target = self.book.find(last.target)
            assembler = Assembler(self.book.counter(target).count, layout)
        prompt = assemble_turn(state, assembler)
        digests = other_digests(last, prompt, self._record.entries)
        if digests is None:
            return SentPrompt(prompt=prompt, layout=layout)
        return SentPrompt(
            prompt=prompt,
            layout=layout,
            digests=digests,
            cause=self._find_cause(last),
            cached_run=last.cached_run,
            same=shared_digests(digests, prompt),
        )

    def _find_cause(self, last: RequestEntry) -> Boundary | None:
        """Why a request is not made again as it was recorded; None if the journal was changed."""
        header = self._record.state.session
        renderer = last.renderer or header.renderer
        if renderer != RENDERER:
            reason = f"texts are rendered otherwise since an upgrade ({renderer}, now {RENDERER})"
            return Boundary(kind="renderer_change", reason=reason)
        repaired = entry_number(header.repaired_until) or -1
        if self._record.damage or (entry_number(last.id) or 0) <= repaired:
            reason = "the journal is damaged: some of what was sent is lost"
            return Boundary(kind="damage", reason=reason)
        return None

    def _as_sent(self, last: RequestEntry) -> State | None:
        """The state that the last request was laid out from, if opening the session met it, or a
        snapshot says how to get it."""
        state = self._record.sent_state
        if state is not None and state.requests.open and state.requests.open.id == last.id:
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
        turn = replace(state.turn, start=sent.turn_start)
        return replace(state, envelope=envelope, turn=turn)

    async def keep_snapshot(self, *, least: int, share: float = 0.0) -> None:
        """Keeps what can be taken up again when the session is opened, if it is worth it."""
        # Not while a request is open: leaving it means going back in front of it.
        if self._record.state.requests.open is None and self._record.is_snapshot_due(least, share):
            counter = self._assembled_for[0] if self._assembled_for else ""
            state, entries = self._record.state, self._record.entries
            sent = self._describe_sent(state)
            snapshot = freeze(state, entries, sent, self._assembler, counter)
            await self._record.keep_snapshot(snapshot)

    def _describe_sent(self, state: State) -> SentLayout | None:
        """How to get from the envelope of `state` to the last one sent: only if it was appended to
        since, and nothing else."""
        if (
            self._sent_at is None
            or state.requests.sent is None
            or self._sent_for != state.requests.sent.id
        ):
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
            request=state.requests.sent.id,
            messages=len(then.cached),
            turn_start=turn_start,
            tool_texts=then.tool_texts,
            uncached=then.uncached,
        )

    def judge(self, state: State, request: RequestEntry, reply: Reply) -> CacheVerdict:
        """What the provider's cache figures mean, and what it says of them itself."""
        usage = reply.usage
        target = self.book.find(request.target)
        last = state.requests.sent
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
            explicit_before=state.requests.sent_usage is not None
            and bool(state.requests.sent_usage.explicit),
        )
        if not reply.missed or verdict.meaning == "as_expected":
            return verdict
        return replace(verdict, detail=f"{verdict.detail}; the provider says: {reply.missed}")


def _wire_change(last: RequestEntry, wire: str, target: Target) -> Boundary | None:
    """Why the same segments are other bytes on the wire than those of a request over `wire`."""
    if wire != target.wire:
        reason = f"{target.name} is sent over the wire of {target.wire}, and was over {wire}"
    elif last.wire_form != WIRE_FORM:
        reason = (
            f"requests are encoded otherwise since an upgrade ({last.wire_form}, now {WIRE_FORM})"
        )
    else:
        return None
    return Boundary(kind="wire_change", reason=reason)


def _held(state: State, rules: CacheRules) -> int | None:
    """What a provider has of the last request, as it counted it itself: what it said it read and
    wrote, where it does so at markers. One that keeps answers has all of it and the answer, but
    for its last token, which was said and never read."""
    last, usage = state.requests.sent, state.requests.sent_usage
    if rules.explicit and usage is not None:
        return usage.cached + usage.written or None
    if not rules.keeps_answers or last is None or usage is None or not usage.input:
        return None
    if last.cached_tokens < last.tokens:
        return None
    return usage.input + max(0, usage.output - 1)
