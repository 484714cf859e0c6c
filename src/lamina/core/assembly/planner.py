"""Plans a single request: a pure function from a state to entries and a prompt.

Laws: nothing is written before everything is decided; the plan never exceeds its budget; everything
left out is reported. Order: boundary, attachments, budget, prefix check.
"""

from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import asdict, replace

from lamina.core.assembly.boundary import PruneOutcome, consolidate, find_boundary, report_pruned
from lamina.core.assembly.budget import (
    PruneCandidate,
    Room,
    assemble_standing,
    assemble_turn,
    drop_until,
    limit_attachments,
    no_room,
    size_attachments,
    split_still_out,
)
from lamina.core.assembly.history_strip import OVER_HISTORY, limit_history
from lamina.core.assembly.prune import prune
from lamina.core.assembly.request_draft import CallResults, Draft, Page, RequestPlan
from lamina.core.assembly.request_report import record_request
from lamina.core.assembly.shortened_results import (
    find_digests,
    is_result,
    notice_tokens,
    result_name,
    shorten_results,
)
from lamina.core.assembly.turn_items import (
    ABSENCE_REASONS,
    TentativeTurn,
    applies,
    compose,
    explain_rules,
    is_laid_always,
    lay_always,
    lay_found,
    resolve,
    stands,
)
from lamina.core.codec import digest_bytes
from lamina.core.journal import State
from lamina.core.layers import Assembler
from lamina.core.ledger.agreement import SentPrompt
from lamina.core.text import label_of
from lamina.core.values.entry import EphemeralEntry, MessageEntry
from lamina.core.values.item import Attachment
from lamina.core.values.message import Block, LoadedTools, Message, ToolResult
from lamina.core.values.prompt import Prompt
from lamina.core.values.request import Attachments, Boundary, LeftOut
from lamina.errors import BudgetError, UsageError

# Each attempt to fit removes the excess plus a little more, for texts that change with it.
ATTEMPTS = 8
SEAMS = 16
# More than a turn's frames and names need.
ROOMY = 1_000
OVER_WINDOW = Boundary(kind="window", reason="the request was over the window")
OVER_WINDOW_REASON = "over the window"


def plan_turn(
    page: Page, draft: Draft, assembler: Assembler, sent: SentPrompt | None
) -> RequestPlan:
    """Return the entries and the prompt of a new user message.

    Raises:
        UsageError: there is nothing to send.
        BudgetError: what must be sent does not fit.
        PrefixMoved: bytes would move without a reason.
    """
    planner = _TurnPlanner(page, draft, assembler)
    planner.cross_boundaries()
    turn = planner.fit()
    planner.report_unseen(turn.attachments.attachments)
    decided = replace(
        draft,
        attachments=planner.reported + turn.attachments,
        boundaries=tuple(planner.boundaries),
    )
    return record_request(turn.page, decided, turn.prompt, sent, assembler, cold=planner.cold)


def foresee(page: Page, draft: Draft, assembler: Assembler) -> State:
    """Return the state from which `plan_turn` will lay out the request, unless something changes
    first; the page is not changed."""
    planner = _TurnPlanner(page.copy(), draft, assembler)
    # The request's planner will explain why it cannot be sent.
    with suppress(BudgetError, UsageError):
        planner.cross_boundaries()
        # Composing the turn needlessly would cost a copy of history.
        if not planner.is_roomy():
            return planner.fit().page.state
    return draft.ephemera.apply_to(planner.page.state)


class _TurnPlanner:
    """The decisions of one turn, in order. The page's state is the session up to the message."""

    def __init__(self, page: Page, draft: Draft, assembler: Assembler) -> None:
        self.page = page
        self.draft = draft
        self.assembler = assembler
        self.attached = draft.attachments
        self.boundaries: list[Boundary] = list(draft.boundaries)
        self.reports: list[LeftOut] = list(draft.reports)
        self.warnings: list[str] = []
        self.settings = page.state.settings
        self.cold = False

    def cross_boundaries(self) -> None:
        """Make the changes that are due because the prefix is lost, or that history or promotion
        require."""
        page, draft = self.page, self.draft
        explain_rules(page, self.attached.attachments, self.assembler.layout.wording)
        natural = find_boundary(page.state, draft.target, page.at)
        self.cold = cold = natural is not None and natural.kind != "first_request"
        if natural:
            self.boundaries.append(natural)
            if not cold:
                self._lay_always()
        cut = limit_history(page.state, self.assembler) if self.settings.limits_history else None
        if cut is not None:
            self.boundaries.append(OVER_HISTORY)
        promotes = self.settings.promotion == "eager" and any(
            not standing.in_library for standing in page.state.library.standing.values()
        )
        if promotes and not cold:
            reason = "eager promotion into the library"
            self.boundaries.append(Boundary(kind="promotion", reason=reason))
        if cold or promotes or cut is not None:
            reason = "; ".join(boundary.reason for boundary in self.boundaries)
            outcome = consolidate(
                page, self.assembler, reason,
                first_kept=cut.first_kept if cut else 0,
                summary_room=cut.summary_room if cut else None,
            )  # fmt: skip
            self.reports += report_pruned(outcome)
        if cold:
            self._prune_while_cold()
        self._choose_attachments(cold)

    def _lay_always(self) -> None:
        """Lay down the items that apply to every turn, except those that do not fit the window."""
        always = [a for a in self.attached.attachments if is_laid_always(a)]
        candidates = size_attachments(self.page.state, always, self.assembler)
        tokens = sum(candidate.tokens for candidate in candidates) + SEAMS
        tokens += self.assembler.count_text(self.draft.text)
        choice = drop_until(candidates, tokens - self._room().left)
        self._detach(choice.dropped)
        lay_always(self.page, self.attached.attachments)

    def _prune_while_cold(self) -> None:
        room, share = self._room(), self.settings.prune_cold_above
        if share is not None and room.standing > share * room.limit:
            natural = next(b for b in self.boundaries if b.kind not in ("compaction", "history"))
            self._shrink(0, _while_cold(natural))

    def _choose_attachments(self, cold: bool) -> None:
        state = self.page.state
        spare = 0
        if cold and state.library.still_out:
            room = self._room()
            spare = int(self.settings.prune_to * room.limit) - room.standing
        self.attached = split_still_out(state, self.attached, spare, self.assembler)
        self.attached = limit_attachments(state, self.attached, self.assembler)

    def is_roomy(self) -> bool:
        """Return whether the turn certainly fits as it is."""
        new = size_attachments(self.page.state, self.attached.attachments, self.assembler)
        texts = [self.draft.text, *[text.text for text in self.draft.tool_texts]]
        texts += [message.text for message in self.draft.ephemera.messages]
        tokens = sum(candidate.tokens for candidate in new) + ROOMY
        tokens += sum(self.assembler.count_text(text) for text in texts)
        return tokens <= self._room().left

    def fit(self) -> TentativeTurn:
        """Fit the turn within its budget, as far as possible."""
        limit = self.draft.room.limit
        turn = self._compose()
        if turn.prompt.tokens <= limit:
            return turn
        # Parts worth less than history are dropped before history, exactly and without a break.
        turn = self._drop_new(turn, limit, above=self.settings.history_priority)
        if turn.prompt.tokens <= limit:
            return turn
        room = self.draft.room.beside(turn.prompt)
        if (too_much := turn.turn_tokens - room.free) > 0:
            turn = self._drop_new(turn, turn.prompt.tokens - too_much)
        self.attached = turn.attachments
        turn = self._make_room(turn.turn_tokens)
        if (over := turn.prompt.tokens - limit) > 0:
            # Names and summaries took more than estimated: free the difference.
            turn = self._make_room(turn.turn_tokens + over + SEAMS)
        return turn if turn.prompt.tokens <= limit else self._make_room(limit)

    def report_unseen(self, attachments: Sequence[Attachment]) -> None:
        """Report new pictures that the model is told of but cannot see."""
        pictured = [a for a in attachments if a.item.pictures]
        if not self.assembler.layout.hides_pictures or not pictured:
            return
        new = {use.item for use in resolve(self.page.state, pictured) if use.form == "full"}
        for item in (a.item for a in pictured if a.item.id in new):
            label, count = label_of(item.id), len(item.pictures)
            of_it = "1 picture of " if count == 1 else f"{count:,} pictures of "
            what = label if item.kind == "image" else f"{of_it}{label}"
            warning = f"not sent: {what}, as {self.draft.target.name} cannot see pictures"
            self.warnings.append(warning)

    @property
    def reported(self) -> Attachments:
        """Return everything to report about the turn, except what its attachments report."""
        return Attachments(left_out=tuple(self.reports), warnings=tuple(self.warnings))

    def _make_room(self, tokens: int) -> TentativeTurn:
        """Return the turn after pruning `tokens` of what was sent, to make room for it."""
        if self._shrink(tokens, OVER_WINDOW_REASON) and OVER_WINDOW not in self.boundaries:
            self.boundaries.append(OVER_WINDOW)
        return self._drop_new(self._compose(), self.draft.room.limit)

    def _drop_new(self, turn: TentativeTurn, limit: int, *, above: int = -1) -> TentativeTurn:
        """Leave out unsent items with a priority number above `above` until the request is within
        `limit`. With a floor it is all or nothing: dropping only some would not help."""
        state, assembler = self.page.state, self.assembler
        attachments = turn.attachments.attachments
        new = {use.item for use in resolve(state, attachments) if use.form == "full"}
        before = turn
        while (excess := turn.prompt.tokens - limit) > 0:
            kept = turn.attachments.attachments
            spare = [a for a in kept if a.item.id in new and a.priority > above]
            choice = drop_until(size_attachments(state, spare, assembler), excess)
            victims = {candidate.item for candidate in choice.dropped}
            if not victims:
                return before if above >= 0 else turn
            rest = turn.attachments.without(victims, self._no_room)
            turn = compose(self.page, self.draft, rest, assembler)
        return turn

    def _compose(self) -> TentativeTurn:
        return compose(self.page, self.draft, self.attached, self.assembler)

    def _shrink(self, turn_tokens: int, reason: str) -> bool:
        """Prune what was sent, and return whether anything changed. Attachments removed here are
        not laid down again at once; new versions of others are still sent."""
        state, attached = self.page.state, self.attached.attachments
        outcome = prune(
            self.page, self.assembler, self.draft.room,
            turn_tokens=turn_tokens, reason=reason, attached=attached, cold=self.cold,
        )  # fmt: skip
        self.reports += report_pruned(outcome, attached)
        new = {a.item.id for a in attached if not applies(state, a.item)}
        self._detach([candidate for candidate in outcome.evicted if candidate.item not in new])
        return outcome.changed

    def _detach(self, candidates: Sequence[PruneCandidate]) -> None:
        victims = {candidate.item for candidate in candidates}
        self.attached = self.attached.without(victims, self._no_room)

    def _no_room(self, attachment: Attachment) -> LeftOut:
        return no_room(attachment, self.assembler)

    def _room(self) -> Room:
        return self.draft.room.beside(assemble_standing(self.page.state, self.assembler))


def plan_results(
    page: Page, draft: Draft, answer: CallResults, assembler: Assembler, sent: SentPrompt | None
) -> RequestPlan:
    """Return the next request of the current turn, with the results of its tool calls.

    Raises:
        BudgetError: what must be sent does not fit.
        PrefixMoved: bytes would move without a reason.
    """
    planner = _ResultsPlanner(page, draft, answer, assembler)
    planner.fit()
    planner.bring_along()
    return record_request(
        planner.page, planner.decided_draft(), planner.prompt, sent, assembler, cold=planner.cold
    )


class _ResultsPlanner:
    """The decisions of one message of results, in order. `page` contains the message as it would be
    sent, and the parts pruned for it."""

    def __init__(self, page: Page, draft: Draft, answer: CallResults, assembler: Assembler) -> None:
        self._before = state = page.state
        self._start = page
        self._draft = draft
        self._answer = answer
        self._assembler = assembler
        self._wholes = dict(state.turn.whole_results if answer.wholes is None else answer.wholes)
        digests = find_digests(state, "", answer.results)
        self._digests = None if digests is None else digests | self._wholes
        self._results: Sequence[ToolResult] = answer.results
        self._loads = answer.loads
        self._attachments = answer.attachments
        self._reports: list[LeftOut] = []
        self._unloaded: list[LeftOut] = []
        self._pruned = PruneOutcome()
        self.page, self.prompt = self._lay_out()
        if self._loads and self.prompt.tokens > draft.room.limit:
            self._unloaded = _report_unloaded(self._loads, assembler)
            self._loads = ()
            self.page, self.prompt = self._lay_out()
        natural = find_boundary(state, draft.target, page.at)
        self.cold = natural is not None and natural.kind == "expired"
        self._boundary, self._reason, self._most = OVER_WINDOW, OVER_WINDOW_REASON, draft.room.limit
        share = state.settings.prune_cold_above
        if natural and self.cold and share is not None and self.prompt.tokens <= draft.room.limit:
            self._boundary, self._reason = natural, _while_cold(natural)
            self._most = int(share * draft.room.limit)

    def fit(self) -> None:
        """Bring the request within its budget, as far as possible: sent parts are pruned first,
        then unsent parts are shortened."""
        if self.prompt.tokens <= self._most:
            return
        limit, settings = self._draft.room.limit, self._before.settings
        # The most by which the results can be shortened: only the notices would remain.
        longest = sum(self._assembler.count_text(result.text) for result in self._answer.results)
        notices = notice_tokens(self._digests) * len(self._answer.results)
        slack = too_long = 0
        for attempt in range(ATTEMPTS):
            if is_last := attempt == ATTEMPTS - 1:
                # Drop everything that may go, before refusing a request that could have been sent.
                slack = limit
                self._shorten(longest)
            self.page, self.prompt = self._lay_out()
            self._prune(slack)
            if is_last or (over := self.prompt.tokens - limit) <= 0:
                return
            if attempt % 2 == 0 or too_long + notices >= longest:
                slack += max(over + SEAMS, slack)
                continue
            too_long += over + SEAMS
            if self._pruned.dropped_messages > 1 and not self._reports:
                # Leave room for a summary: earlier steps must not be repeated.
                too_long += min(settings.summary_tokens, limit // 20)
                slack = 0
            self._shorten(too_long)
            self.page, self.prompt = self._lay_out()
            self._pruned = PruneOutcome()
            if self.prompt.tokens <= self._most:
                return

    def bring_along(self) -> None:
        """Lay down the items that the results brought, if nothing had to make room."""
        found = self._answer.found
        if not found:
            return
        page = self.page.copy()
        lay_found(page, self._attachments, found)
        prompt = assemble_turn(page.state, self._assembler)
        if not (self._pruned.changed or self._reports) and prompt.tokens <= self._draft.room.limit:
            self.page, self.prompt = page, prompt
            self._attachments = (*self._attachments, *found)
        else:
            self._reports += [no_room(attachment, self._assembler) for attachment in found]

    def decided_draft(self) -> Draft:
        """Return the draft with the attachments that remain, and everything to report about the
        others."""
        draft, state = self._draft, self.page.state
        standing = tuple(a for a in self._attachments if stands(state, a.item))
        reports = [*self._reports, *self._unloaded, *report_pruned(self._pruned)]
        reported = {report.what for report in reports}
        leavers = [a for a in self._attachments if a not in standing and a.item.id not in reported]
        reports += [no_room(leaver, self._assembler, reason="removed") for leaver in leavers]
        still_out = _still_without(self._answer.left_out, state, reports)
        attached = Attachments(
            attachments=standing,
            left_out=(*draft.reports, *draft.attachments.left_out, *reports, *still_out),
            warnings=draft.attachments.warnings,
        )
        crossed = (self._boundary,) if self._pruned.changed else ()
        return replace(draft, attachments=attached, boundaries=(*draft.boundaries, *crossed))

    def _lay_out(self) -> tuple[Page, Prompt]:
        """Return a separate page with the current results, and its prompt."""
        page = self._start.copy()
        blocks: tuple[Block, ...] = (*self._results, *self._loads)
        message = Message(role="tool", blocks=blocks, id=page.next_id())
        pairs = zip(self._answer.results, self._results, strict=True)
        cut = {whole.call_id: whole.text for whole, short in pairs if short.text != whole.text}
        kept = {call: digest_bytes(text.encode()) for call, text in cut.items()}
        page.write(MessageEntry, message=message, whole_results=kept | self._wholes)
        if self._draft.ephemera:
            page.write(EphemeralEntry, **asdict(self._draft.ephemera))
        return page, assemble_turn(page.state, self._assembler)

    def _shorten(self, excess: int) -> None:
        self._results, self._reports = shorten_results(
            self._answer.results, excess, self._assembler.count_text, self._digests
        )

    def _prune(self, slack: int) -> None:
        self._pruned = prune(
            self.page, self._assembler, self._draft.room,
            turn_tokens=slack, reason=self._reason, keep_last=True, cold=self.cold,
        )  # fmt: skip
        self.prompt = assemble_turn(self.page.state, self._assembler)


def _while_cold(boundary: Boundary) -> str:
    return f"{boundary.reason}; pruned while the cache is cold"


def _still_without(
    left_out: Sequence[LeftOut], state: State, reports: Sequence[LeftOut]
) -> list[LeftOut]:
    """Return what the turn is still without, except results that are gone or were shortened again.
    shortened again."""
    reported = {report.what for report in reports}
    reasons = (*ABSENCE_REASONS, "still_out")
    without = [o for o in left_out if o.reason in reasons and o.what not in reported]
    # A turn may have many steps: they are searched only if there is something to find.
    if not any(is_result(omission.what) for omission in without):
        return without
    turn = state.envelope.cached.since(state.turn.start or 0)
    blocks = [block for message in turn for block in message.blocks]
    there = {result_name(block) for block in blocks if isinstance(block, ToolResult)}
    return [o for o in without if o.what in there or not is_result(o.what)]


def _report_unloaded(loads: Sequence[LoadedTools], assembler: Assembler) -> list[LeftOut]:
    return [
        LeftOut(
            what=tool.item,
            reason="window",
            detail=f"{label_of(tool.item)} was found, and there is no room for it",
            tokens=assembler.definition_tokens(tool.definition),
        )
        for block in loads
        for tool in block.tools
    ]
