"""Keeps the layout for each target: its assembler, its room, and the last prompt sent.

All of it can be rebuilt from the journal; it is kept so that a turn costs only what it adds.
"""

from typing import get_args

from msgspec.structs import replace

from lamina.core.assembly.budget import Budget, assemble_turn, make_budget
from lamina.core.audit.requests import other_digests
from lamina.core.codec import entry_number
from lamina.core.journal import (
    State,
    copy_for_request,
    find_changed_options,
    options_for_request,
    renderer_in,
    texts_of,
)
from lamina.core.layers import Assembler, Layout, layout_for, layout_of
from lamina.core.ledger import judge_cache
from lamina.core.ledger.agreement import SentPrompt, shared_digests
from lamina.core.ports import TargetBook
from lamina.core.text import UNSEEN_PICTURE
from lamina.core.values.entry import RENDERER, RENDERERS, WIRE_FORM, RequestEntry
from lamina.core.values.envelope import Envelope
from lamina.core.values.message import Image, Text
from lamina.core.values.prompt import Prompt, Segment
from lamina.core.values.request import Boundary, CacheVerdict
from lamina.core.values.settings import (
    CacheRules,
    Promotion,
    Settings,
    Target,
    WireName,
    cache_rules,
)
from lamina.core.values.wire import Reply
from lamina.engine.record.record import Record
from lamina.engine.record.snapshot import SentLayout, freeze


class Layouts:
    def __init__(self, book: TargetBook, record: Record) -> None:
        self.book = book
        self._record = record
        self._assembler: Assembler | None = None
        # The name of the counter, and everything that determines the layout.
        self._assembled_for: tuple[str, Layout] | None = None
        self._sent: SentPrompt | None = None
        self._sent_for: str | None = None
        self._sent_at: tuple[Envelope, int] | None = None

    def choose(self, name: str | None, settings: Settings) -> Target:
        return self.book.find(name or settings.target)

    def assembler_for(
        self, target: Target, promotion: Promotion, renderer: int | None = None
    ) -> Assembler:
        """Return the assembler for requests to `target`; by default with the session's current
        renderer, and without pictures if the target does not support them.
        """
        renderer = renderer or renderer_in(self._record.state)
        layout = layout_for(
            promotion,
            target.wire,
            target.model,
            renderer,
            binds_thinking=target.binds_thinking,
            hides_pictures=not target.sees_pictures,
        )
        return self._assembler_of(layout, target)

    def _assembler_of(self, layout: Layout, target: Target) -> Assembler:
        counter = self.book.counter(target)
        key = (counter.name, layout)
        if self._assembler is None or self._assembled_for != key:
            self._assembler = Assembler(counter.count, layout)
            self._assembled_for = key
            if snapshot := self._record.snapshot:
                snapshot.restore(self._assembler, counter.name)
        return self._assembler

    def rebuild(self, request: RequestEntry) -> Prompt:
        """Return the prompt of a request, as it would be sent today."""
        state = self._record.state_at(request.id)
        target = self.book.find(request.target)
        layout = layout_of(request, target.wire, state.session)
        return assemble_turn(state, self._assembler_of(layout, target))

    def is_as_recorded(self, request: RequestEntry, prompt: Prompt) -> bool:
        """Return whether a rebuilt prompt equals the recorded one, in its wire format."""
        target = self.book.find(request.target)
        if _wire_change(request, request.wire or target.wire, target):
            return False
        return other_digests(request, prompt, self._record.entries) is None

    def room(self, target: Target, state: State) -> Budget:
        """Return the room for a request. A provider's report never changes an exact count, and can
        only reduce an estimate: a provider that reports too little must not be sent more than fits.
        """
        factor = max(1.0, state.calibration.get(target.name, 1.0))
        if factor > 1.0 and self.book.counter(target).exact:
            factor = 1.0
        return make_budget(state.settings, target, options_for_request(state).max_tokens, factor)

    def remember(self, request: RequestEntry, prompt: Prompt) -> None:
        """Record that `prompt` was sent for `request`."""
        wire = request.wire or self.book.find(request.target).wire
        layout = layout_of(request, wire, self._record.state.session)
        self._sent, self._sent_for = SentPrompt(prompt=prompt, layout=layout), request.id
        # Not today's state: entries other than the answer may have been added since then.
        state = self._record.requested_state
        self._sent_at = None
        if state is not None and _is_laid_out(state, request) and not state.once:
            self._sent_at = (state.envelope, state.turn.start or 0)

    def last_sent(self, base: State, assembler: Assembler, target: Target) -> SentPrompt | None:
        """Return the last request known to have been sent on this path, for comparison with the
        next one to `target`.
        """
        last = base.requests.sent
        if last is None:
            return None
        if self._sent is None or self._sent_for != last.id:
            self._recall(last, assembler)
        sent = self._sent
        assert sent is not None
        if (cause := _wire_change(last, sent.layout.wire, target)) and last.target == target.name:
            return replace(sent, cause=cause, replaced=True)
        if sent.cause is None and (cause := _hidden_pictures(last, sent, assembler, target)):
            return replace(sent, cause=cause)
        return sent

    def _recall(self, last: RequestEntry, assembler: Assembler) -> None:
        """Rebuild the prompt of the last request, to compare it with the record."""
        state = self._as_sent(last) or self._record.state_at(last.id)
        wires: tuple[str, ...] = (last.wire,)
        if not last.wire:
            # The record does not name the layout: it is the one that reproduces the recorded bytes.
            today = self.book.find(last.target).wire
            wires = (today, *(wire for wire in get_args(WireName) if wire != today))
        trials = (self._make_again(last, wire, state, assembler) for wire in wires)
        sent = next(trials)
        if sent.digests is not None:
            sent = next((trial for trial in trials if trial.digests is None), sent)
        self._sent, self._sent_for = sent, last.id
        self._sent_at = None if state.once else (state.envelope, state.turn.start or 0)

    def _make_again(
        self, last: RequestEntry, wire: str, state: State, assembler: Assembler
    ) -> SentPrompt:
        # Laid out as it was at the time: the settings may have changed since then.
        layout = layout_of(last, wire, state.session)
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
        """Return why a request cannot be rebuilt as recorded; None if the journal was changed."""
        header = self._record.state.session
        renderer = last.renderer or header.renderer
        if renderer not in RENDERERS:
            reason = f"texts are rendered otherwise since an upgrade ({renderer}, now {RENDERER})"
            return Boundary(kind="renderer_change", reason=reason)
        repaired = entry_number(header.repaired_until) or -1
        if self._record.damage or (entry_number(last.id) or 0) <= repaired:
            reason = "the journal is damaged: some of what was sent is lost"
            return Boundary(kind="damage", reason=reason)
        return None

    def _as_sent(self, last: RequestEntry) -> State | None:
        """Return the state from which the last request was laid out, if it was replayed when the
        session was opened or a snapshot describes it.
        """
        state = self._record.sent_state
        if state is not None and _is_laid_out(state, last):
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

    async def keep_snapshot(self, *, least: int, share: float = 0.0, is_new: bool = False) -> None:
        """Store a snapshot for reopening the session, if it is worth its cost. Reading a session
        does not change its file, unless the session `is_new`.
        """
        record = self._record
        # Not while a request is open: abandoning it goes back to the state in front of it.
        if record.state.requests.open is not None:
            return
        is_checkpoint_due = (record.has_written or is_new) and record.is_checkpoint_due
        if not is_checkpoint_due and not record.is_snapshot_due(least, share):
            return
        counter = self._assembled_for[0] if self._assembled_for else ""
        sent = self._describe_sent(record.state)
        frozen = freeze(record.state, record.entries, sent, self._assembler, counter)
        if is_checkpoint_due:
            await record.keep_checkpoint(frozen)
        if record.is_snapshot_due(least, share):
            await record.keep_snapshot(frozen)

    def _describe_sent(self, state: State) -> SentLayout | None:
        """Return how to get from the envelope of `state` to the last one sent, if it was only
        appended to since then.
        """
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
        """Return the verdict on the provider's cache figures, and the provider's own remarks about
        them.
        """
        usage = reply.usage
        target = self.book.find(request.target)
        last = state.requests.sent
        rules, warm = cache_rules(state.settings, target), request.context.warm
        # The provider's count divided by ours: the most accurate factor for this request.
        factor = usage.input / request.tokens if usage.input and request.tokens else 1.0
        agreement = request.context.agreement
        if rules.keeps_answers and last and last.cache_key not in ("", request.cache_key):
            # A fork: a local server keeps the memory of one session only, and nothing from another.
            agreement = replace(agreement, first=True)
        verdict = judge_cache(
            agreement,
            last.cached_tokens if last else 0,
            request.at - used_at if (used_at := state.requests.cached_at) is not None else None,
            rules,
            usage,
            factor,
            same_cache=last is not None and last.target == request.target,
            held=_held(state, rules),
            explicit_before=state.requests.sent_usage is not None
            and bool(state.requests.sent_usage.explicit),
            warm=warm,
            warm_age=request.at - warm.at if warm else 0.0,
        )
        if verdict.meaning == "as_expected":
            return verdict
        details = [verdict.detail, *_describe_options(state)]
        details += [f"the provider says: {reply.missed}"] if reply.missed else []
        return replace(verdict, detail="; ".join(details))


def _is_laid_out(state: State, request: RequestEntry) -> bool:
    """Return whether `request` is the one laid out from `state`."""
    return state.requests.open is not None and state.requests.open.id == request.id


def _hidden_pictures(
    last: RequestEntry, sent: SentPrompt, assembler: Assembler, target: Target
) -> Boundary | None:
    """Return why words replace pictures that were sent to the same model before, or the reverse:
    more is known about the model now.
    """
    if last.hides_pictures == assembler.layout.hides_pictures or last.target != target.name:
        return None
    if not any(_is_picture(segment) for segment in sent.prompt):
        return None
    sees = "sees" if target.sees_pictures else "cannot see"
    reason = f"the model book says by now that {target.name} {sees} pictures"
    return Boundary(kind="wire_change", reason=reason)


def _is_picture(segment: Segment) -> bool:
    """Return whether a segment is a picture, or the words that replace one."""
    content = segment.content
    return isinstance(content, Image) or (
        isinstance(content, Text) and content.text.strip() == UNSEEN_PICTURE
    )


def _describe_options(state: State) -> list[str]:
    """Return the options that changed since the last request for a recorded reason, and that
    reason: some providers keep separate caches for them.
    """
    changed = find_changed_options(state.requests.sent_options, options_for_request(state))
    if state.requests.sent is None or not changed:
        return []
    reasons = (*state.requests.reasons, *copy_for_request(state).reasons)
    given = {
        name: texts_of(reason for reason in reasons if reason.covers_source(f"option:{name}"))
        for name in changed
    }
    return [f"the option {name} changed ({why})" for name, why in given.items() if why]


def _wire_change(last: RequestEntry, wire: str, target: Target) -> Boundary | None:
    """Return why the same segments have different bytes on the wire than in a request over
    `wire`.
    """
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
    """Return how many tokens of the last request a provider has cached, by its own count: those
    reported as read and written, if its cache uses markers. A provider that caches answers has the
    whole request and the answer, except for the last token, which was generated and never read.
    """
    last, usage = state.requests.sent, state.requests.sent_usage
    if rules.explicit and usage is not None:
        return usage.cached + usage.written or None
    if not rules.keeps_answers or last is None or usage is None or not usage.input:
        return None
    if last.cached_tokens < last.tokens:
        return None
    return usage.input + max(0, usage.output - 1)
