"""Compacts history: a summary replaces part of it, as a patch, and the next request reports this.

Laws: the plan is pure and comes from `lamina.core.compaction`; only the summary comes from outside.
It is extracted if there is no summarizer or its answer is unusable. A compaction that would not
help is skipped, and the reason is reported.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.assembly.boundary import consolidate, find_boundary, report_pruned, standing_sizes
from lamina.core.assembly.budget import HEADER_TOKENS, PruneCandidate, assemble_standing
from lamina.core.assembly.history_strip import OVER_HISTORY, QUESTION_TOKENS, limit_history
from lamina.core.assembly.prune import drop_over
from lamina.core.assembly.request_draft import Draft, Page
from lamina.core.compaction.compaction_plan import (
    CompactionPlan,
    NoCompaction,
    Trigger,
    is_compaction_due,
    is_compaction_near,
    keep_limit,
    plan_compaction,
    plan_strip,
    reserve_limit,
    summary_limit,
)
from lamina.core.compaction.extractive_summary import extract_plan_summary
from lamina.core.compaction.summary_instruction import is_usable_summary
from lamina.core.compaction.summary_sheet import shorten
from lamina.core.compaction.touched_files import TouchedFiles
from lamina.core.journal import State
from lamina.core.journal.calibration import MAX_RATIO, MAX_TOKENS
from lamina.core.layers import MESSAGE_TOKENS
from lamina.core.ledger import price_history
from lamina.core.ports import Summarizer
from lamina.core.text.headers import UNDER_WAY
from lamina.core.values.item import Item
from lamina.core.values.prompt import total_tokens
from lamina.core.values.request import Attachments, Boundary, HistoryPrice, LeftOut
from lamina.core.values.settings import Promotion, Target
from lamina.engine.record.layouts import Layouts
from lamina.engine.record.record import Record
from lamina.engine.session.session_ports import Emit
from lamina.engine.session.session_spending import Spending
from lamina.engine.session.summarizer import ReadBlobs, SummaryWriter, WrittenSummary
from lamina.errors import TurnStateError

COMPACTION = "lamina.compaction"
# The trigger of a compaction after an overflow.
OVERFLOWED = "compaction (overflow)"


class CompactionOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of a compaction. `reason` is its reason, or why there was none; `problem`
    explains why some or all of the summary was extracted although there was a summarizer.
    """

    changed: bool
    reason: str
    summary: str = ""
    by: str = ""
    messages: int = 0
    tokens_dropped: int = 0
    problem: str = ""
    reports: tuple[LeftOut, ...] = ()
    # It was not needed yet, so its absence is not worth reporting.
    idle: bool = False
    # Its cost and savings, if the cache was cold.
    price: HistoryPrice | None = None


class Compactor:
    """Compacts the messages of a page, for one target."""

    def __init__(
        self,
        page: Page,
        layouts: Layouts,
        target: Target,
        promotion: Promotion,
        summarizer: Summarizer | None,
        blobs: ReadBlobs,
        spending: Spending,
        emit: Emit,
    ) -> None:
        self._page = page
        self._target = target
        self._room = layouts.room(target, page.state)
        self._assembler = assembler = layouts.assembler_for(target, promotion)
        wire = layouts.book.wire(target)
        self._writer: SummaryWriter | None = None
        if summarizer is not None:
            self._writer = SummaryWriter(
                page, assembler, target, wire, self._room, summarizer, blobs, spending, emit
            )

    def find_trigger(
        self, texts: Sequence[str], items: Sequence[Item], *, cold: bool
    ) -> Trigger | None:
        """Return the trigger for a compaction before the next request, given its new texts and
        items. While the cache is cold, later turns count too: cutting is cheapest then.
        """
        state, room, assembler = self._page.state, self._room, self._assembler
        settings = state.settings
        tokens = assemble_standing(state, assembler).tokens
        tokens += sum(assembler.count_text(text) + MESSAGE_TOKENS for text in texts)
        # Every request includes names and frames: allow for a little more than they use.
        tokens += self._new_tokens(items) + HEADER_TOKENS
        tokens = round(tokens * room.calibration)
        # However much is kept free for the answer, pruning must not come first.
        most, share = room.window - room.reserve, settings.prune_cold_above if cold else None
        if is_compaction_due(tokens, settings, room.window) or tokens > (share or 1.0) * most:
            return "threshold"
        most = min(most, room.window - reserve_limit(settings, room.window))
        messages = state.envelope.cached.since(0) if cold else ()
        sizes = assembler.message_sizes(messages, state.library.items)
        is_near = cold and is_compaction_near(tokens, most, settings, messages, sizes)
        return "cold" if is_near else None

    def _new_tokens(self, items: Sequence[Item]) -> int:
        """Return the tokens of the items that would be new in a request, without those that cannot
        be sent anyway.
        """
        state, limit = self._page.state, self._room.limit
        if state.settings.attachment_limit is not None:
            limit = min(limit, state.settings.attachment_limit)
        sizes = []
        for item in items:
            standing = state.library.standing.get(item.id)
            if standing is None or item.version not in standing.versions:
                sizes.append(self._assembler.item_tokens(item))
        return sum(size for size in sizes if size <= limit)

    async def compact(self, trigger: Trigger, scale: float = 1.0) -> CompactionOutcome:
        """Write a compaction onto the page, or return why there is none. `scale` is the ratio of
        the provider's count to ours, if known.
        """
        page, state = self._page, self._page.state
        settings, window = state.settings, self._room.window
        messages = state.envelope.cached.since(0)
        scale, could_wait = max(scale, self._room.calibration), trigger == "cold"
        plan = plan_compaction(
            messages,
            self._assembler.message_sizes(messages),
            keep=int(keep_limit(settings, window) / scale),
            summary_tokens=max(1, int(summary_limit(settings, window) / scale)),
            turn_start=state.turn.start,
            question=state.turn.question,
            goal=state.goal,
            known_files=TouchedFiles(read=state.read_files, modified=state.modified_files),
            trigger=trigger,
        )
        if isinstance(plan, NoCompaction):
            idle = could_wait or (trigger == "threshold" and not messages)
            return CompactionOutcome(changed=False, reason=plan.reason, idle=idle)
        written = await self._writer.write(plan, messages) if self._writer else WrittenSummary()
        summary, problem = written.text, written.problem
        if could_wait and (problem or not summary):
            # Everything that fits stays, unless a model summarised all of it in its own words.
            reason = "the window is not full yet"
            return CompactionOutcome(changed=False, reason=reason, problem=problem, idle=True)
        by = "model" if summary else "extract"
        count = self._assembler.count_text
        if not summary:
            summary = extract_plan_summary(
                plan, messages, plan.summary_tokens, count, self._assembler.layout.wording
            )
            question = shorten(plan.question, QUESTION_TOKENS, count)
            if question.strip() and question not in summary:
                summary = f"{summary}\n\n{UNDER_WAY.text}\n{question}"
            if not is_usable_summary(summary, plan.tokens_dropped, count):
                reason = "no summary is smaller than what it would stand for"
                return CompactionOutcome(changed=False, reason=reason, problem=problem)
        reason = f"compaction ({trigger})"
        outcome = consolidate(
            page,
            self._assembler,
            reason,
            first_kept=plan.first_kept,
            evicted=self._evict(plan, count(summary)),
            summary=summary,
            files=plan.files,
            transformer=COMPACTION,
        )
        if not outcome.changed:
            same = "the summary that stands says the same already"
            return CompactionOutcome(changed=False, reason=same, problem=problem)
        return CompactionOutcome(
            changed=True,
            reason=reason,
            summary=summary,
            by=by,
            messages=plan.first_kept,
            tokens_dropped=plan.tokens_dropped,
            problem=problem,
            reports=tuple(report_pruned(outcome)),
            price=self._price(plan, count(summary), written.cost),
        )

    def _price(self, plan: CompactionPlan, summary: int, cost: float | None) -> HistoryPrice:
        """Return the cost and savings of a compaction, if the cache is cold; `cost` is the cost of
        the summary.
        """
        front = assemble_standing(self._page.state, self._assembler).front
        return price_history(
            self._target, self._page.state.settings, self._room.calibration,
            beside=total_tokens(front), history=plan.tokens_dropped + plan.tokens_kept,
            dropped=plan.tokens_dropped, summary=summary, made_for=cost, is_made=True,
        )  # fmt: skip

    async def strip(self) -> CompactionOutcome | None:
        """Summarise what a limit on history removes, if a summarizer is passed. If that fails,
        nothing is cut here: the planner cuts, and extracts the summary.
        """
        page, state = self._page, self._page.state
        settings, known = (
            state.settings,
            TouchedFiles(read=state.read_files, modified=state.modified_files),
        )
        cut = limit_history(state, self._assembler) if settings.limits_history else None
        if self._writer is None or cut is None or not cut.first_kept or cut.summary_room == 0:
            return None
        messages, limit = state.envelope.cached.since(0), settings.summary_tokens
        if cut.summary_room is not None:
            limit = min(limit, cut.summary_room - MESSAGE_TOKENS)
        plan = plan_strip(
            messages,
            self._assembler.message_sizes(messages),
            cut.first_kept,
            summary_tokens=max(1, limit),
            goal=state.goal,
            known_files=known,
        )
        written = await self._writer.write(plan, messages)
        reason, problem = OVER_HISTORY.reason, written.problem
        size = self._assembler.count_text(written.text) + MESSAGE_TOKENS
        if written.text and cut.summary_room is not None and size > cut.summary_room:
            return CompactionOutcome(
                changed=False,
                reason=reason,
                problem="there is no room for what the summarizer said",
            )
        if not written.text:
            return CompactionOutcome(changed=False, reason=reason, problem=problem)
        outcome = consolidate(
            page,
            self._assembler,
            reason,
            first_kept=plan.first_kept,
            summary=written.text,
            files=plan.files,
        )
        return CompactionOutcome(
            changed=outcome.changed,
            reason=reason,
            summary=written.text,
            by="model",
            messages=plan.first_kept,
            tokens_dropped=plan.tokens_dropped,
            problem=problem,
            reports=tuple(report_pruned(outcome)),
        )

    def _evict(self, plan: CompactionPlan, summary: int) -> tuple[PruneCandidate, ...]:
        """Return the items to evict if the library alone is too large: the least wanted first,
        never anything pinned or essential.
        """
        state = self._page.state
        room = self._room.beside(assemble_standing(state, self._assembler)).free
        room -= plan.tokens_kept + summary + HEADER_TOKENS
        return drop_over(standing_sizes(state, self._assembler), max(0, room))[1]


class Compactions:
    """The compactions of one session, one after the other."""

    def __init__(
        self,
        record: Record,
        layouts: Layouts,
        summarizer: Summarizer | None,
        blobs: ReadBlobs,
        spending: Spending,
        emit: Emit,
    ) -> None:
        self._record = record
        self._layouts = layouts
        self._blobs = blobs
        self._spending = spending
        self._summarizer = summarizer
        # Listeners to a turn see the extra requests.
        self._emit = emit

    def swallowed_overflow(self, state: State, target: Target) -> int:
        """Return the provider's token count for the last request if it exceeded the window and was
        answered anyway; 0 otherwise, or if this was already handled: a provider that reports the
        same for the smaller request is wrong.
        """
        last, usage = state.requests.sent, state.requests.sent_usage
        if last is None or usage is None or last.target != target.name or state.requests.cuts:
            return 0
        if usage.input <= self._layouts.room(target, state).window:
            return 0
        is_smaller = any(boundary.reason == OVERFLOWED for boundary in last.context.boundaries)
        return 0 if is_smaller else usage.input

    async def if_due(
        self,
        page: Page,
        target: Target,
        promotion: Promotion,
        texts: Sequence[str] = (),
        items: Sequence[Item] = (),
        *,
        at_end: bool = False,
    ) -> CompactionOutcome | None:
        """Compact if the next request would be over the threshold, or soon after it while the cache
        is cold, or if the last one exceeded the window without an error. Without a summarizer, only
        the last case applies: pruning spares the cache, and drops nothing that fits.
        """
        state = page.state
        if state.settings.compaction == "off":
            return None
        if (reported := self.swallowed_overflow(state, target)) and state.requests.sent:
            # By the provider's count: a request that is small by our count may fill the window
            # there.
            scale = min(MAX_RATIO, min(reported, MAX_TOKENS) / max(1, state.requests.sent.tokens))
            return await self._compactor(page, target, promotion).compact("overflow", scale)
        if self._summarizer is None:
            return None
        boundary = None if at_end else find_boundary(state, target, page.at)
        cold = boundary is not None and boundary.kind != "first_request"
        compactor = self._compactor(page, target, promotion)
        trigger = compactor.find_trigger(texts, items, cold=cold)
        return await compactor.compact(trigger) if trigger else None

    async def before_request(
        self, page: Page, target: Target, promotion: Promotion, texts: Sequence[str],
        items: Sequence[Item], *, is_question: bool,
    ) -> tuple[Page, CompactionOutcome | None, CompactionOutcome | None]:  # fmt: skip
        """Return the page after everything due before a request is done and written: a compaction,
        and before a question everything that the limits on history require; with the outcomes of
        both.
        """
        compaction = await self.if_due(page, target, promotion, texts, items)
        if compaction and compaction.changed:
            page = await self.keep(page)
        strip = None
        if is_question and self._summarizer is not None:
            strip = await self._compactor(page, target, promotion).strip()
            if strip and strip.changed:
                page = await self.keep(page)
        return page, compaction, strip

    async def now(
        self, page: Page, target: Target, promotion: Promotion, trigger: Trigger
    ) -> CompactionOutcome:
        return await self._compactor(page, target, promotion).compact(trigger)

    async def by_hand(self) -> CompactionOutcome:
        """Compact now, at a person's request.

        Raises:
            TurnStateError: a request is open.
        """
        state = self._record.state
        if state.requests.open is not None:
            raise TurnStateError("a request is open: commit its reply first, then compact")
        target = self._layouts.choose(None, state.settings)
        self._spending.begin_turn()
        async with self._record.writing() as page:
            return await self.now(page, target, state.settings.promotion, "manual")

    async def keep(self, page: Page, *, leaving: bool = False) -> Page:
        """Write a compaction to the journal separately, so that a summary that took a model time is
        not lost with the request behind it. Not while another request is open, unless it is to be
        left.
        """
        if self._record.state.requests.open is not None and not leaving:
            return page
        await self._record.keep(page.written, page.state)
        return self._record.page()

    def _compactor(self, page: Page, target: Target, promotion: Promotion) -> Compactor:
        return Compactor(
            page, self._layouts, target, promotion, self._summarizer, self._blobs, self._spending,
            self._emit,
        )  # fmt: skip


def compaction_warnings(outcome: CompactionOutcome | None) -> tuple[str, ...]:
    """Return warnings about a compaction: that it did not help, or how it was made."""
    if outcome is None:
        return ()
    warnings = []
    if outcome.problem:
        instead = "nothing was left out" if outcome.idle else "the summary was extracted"
        instead = "" if outcome.by == "model" else f"; {instead}"
        warnings.append(f"compaction: {outcome.problem}{instead}")
    if not outcome.changed and not outcome.idle:
        warnings.append(f"compaction would not help: {outcome.reason}")
    return tuple(warnings)


def report_strip(draft: Draft, strip: CompactionOutcome) -> Draft:
    """Return the draft with the messages that a limit on history removed, and how the summary was
    made.
    """
    warnings = []
    if strip.problem:
        extracted = "" if strip.changed else "; the summary was extracted"
        warnings.append(f"{strip.reason}: {strip.problem}{extracted}")
    return replace(
        draft,
        attachments=draft.attachments + Attachments(warnings=tuple(warnings)),
        reports=(*draft.reports, *strip.reports),
        boundaries=(*draft.boundaries, *((OVER_HISTORY,) if strip.changed else ())),
    )


def report_compaction(
    draft: Draft, outcome: CompactionOutcome | None, earlier: Sequence[tuple[str, int]]
) -> Draft:
    """Return the draft with the messages that summaries replaced since the last request: those in
    `earlier`, at the end of its turn or by hand, and those right before it. `earlier` also includes
    a compaction after an overflow.
    """
    reports = []
    for reason, count in earlier[:-1] if draft.retry else earlier:
        detail = f"{count} earlier messages gave way to a summary: {reason}"
        reports.append(LeftOut(what="history", reason="history", detail=detail))
    reasons = [reason for reason, _ in earlier if reason.startswith("compaction")]
    if outcome is not None:
        reports += outcome.reports
        reasons = [outcome.reason] if outcome.changed else reasons
    kinds = [Boundary(kind="compaction", reason=reason) for reason in dict.fromkeys(reasons)]
    return replace(
        draft,
        attachments=draft.attachments + Attachments(warnings=compaction_warnings(outcome)),
        reports=tuple(reports),
        boundaries=tuple(kinds),
        summary=outcome.price if outcome else None,
    )
