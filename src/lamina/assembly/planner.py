"""What one request will be made of: a pure plan, from a state to entries and a prompt.

Laws: nothing is written before everything is decided; the plan never exceeds its budget; what it
leaves out it reports. Order: boundary, attachments, budget, prefix check.
"""

from collections.abc import Sequence

from msgspec.structs import asdict

from lamina.assembly.boundary import PruneOutcome, consolidate, find_boundary, report_pruned
from lamina.assembly.budget import (
    drop_until,
    limit_attachments,
    no_room,
    size_attachment,
    split_still_out,
)
from lamina.assembly.draft import Draft, RequestPlan
from lamina.assembly.history import limit_history
from lamina.assembly.items import (
    ABSENCE_REASONS,
    TentativeTurn,
    compose,
    explain_rules,
    lay_always,
    resolve,
    stands,
)
from lamina.assembly.page import Page
from lamina.assembly.prune import prune
from lamina.assembly.report import record_request
from lamina.assembly.truncation import is_result, result_name, shorten_results
from lamina.journal import State
from lamina.layers import Assembler
from lamina.values.entry import EphemeralEntry, MessageEntry
from lamina.values.item import Attachment
from lamina.values.message import Message, ToolResult
from lamina.values.prompt import Prompt
from lamina.values.request import Boundary, LeftOut

# New items that would not all fit even by themselves may take this share of what tools and L1
# leave: history and the library are not wiped out for them.
NEW_ITEMS_SHARE = 0.75
# Each try to fit gives up what was too much, and a little for texts that change by it.
ATTEMPTS = 8
SEAMS = 16


def plan_turn(page: Page, draft: Draft, assembler: Assembler, sent: Prompt | None) -> RequestPlan:
    """The entries and the prompt of a new user message.

    Raises:
        UsageError: there is nothing to send.
        BudgetError: what must be sent does not fit.
        PrefixMoved: bytes would move without a reason.
    """
    planner = _TurnPlanner(page, draft, assembler)
    planner.cross_boundaries()
    composed = planner.fit()
    return record_request(
        composed.page, draft, composed.prompt, sent, assembler,
        kept=composed.kept,
        left_out=(*planner.reports, *composed.left_out),
        boundaries=tuple(planner.boundaries),
    )  # fmt: skip


class _TurnPlanner:
    """The decisions of one turn, in order. The page's state is the session up to the message."""

    def __init__(self, page: Page, draft: Draft, assembler: Assembler) -> None:
        self.page = page
        self.draft = draft
        self.assembler = assembler
        self.attachments = draft.attachments
        self.left_out = list(draft.left_out)
        self.boundaries: list[Boundary] = list(draft.boundaries)
        self.reports: list[LeftOut] = list(draft.reports)
        self.settings = page.state.settings
        self.cold = False

    def cross_boundaries(self) -> None:
        """What is due because the prefix is dead, or because history or promotion ask for it."""
        page, draft = self.page, self.draft
        explain_rules(page, self.attachments)
        natural = find_boundary(page.state, draft.target, page.at)
        self.cold = cold = natural is not None and natural.kind != "first_request"
        if natural:
            self.boundaries.append(natural)
            if not cold:
                self._lay_always()
        cut = limit_history(page.state, self.assembler) if self.settings.limits_history else None
        if cut is not None:
            self.boundaries.append(Boundary(kind="history", reason="history is over its limit"))
        promotes = self.settings.promotion == "eager" and any(
            not standing.in_library for standing in page.state.standing.values()
        )
        if promotes and not cold:
            reason = "eager promotion into the library"
            self.boundaries.append(Boundary(kind="promotion", reason=reason))
        if cold or promotes or cut is not None:
            reason = "; ".join(boundary.reason for boundary in self.boundaries)
            pruned = consolidate(
                page, self.assembler, reason,
                first_kept=cut.first_kept if cut else 0,
                summary_room=cut.summary_room if cut else None,
            )  # fmt: skip
            self.reports += report_pruned(pruned)
        if cold:
            self._prune_while_cold()
        self._choose_attachments(cold)

    def _lay_always(self) -> None:
        """Lays down what applies to every turn, less what the window has no room for."""
        always = [a for a in self.attachments if a.include == "always" and not a.item.pictures]
        sized = [
            size_attachment(self.page.state, attachment, index, self.assembler)
            for index, attachment in enumerate(always)
        ]
        tokens = self._standing_tokens() + self.assembler.count_text(self.draft.text)
        excess = (
            tokens + sum(candidate.tokens for candidate in sized) + SEAMS - self.draft.room.limit
        )
        gone = {candidate.item for candidate in drop_until(sized, excess).dropped}
        self.left_out += [no_room(a, self.assembler) for a in always if a.item.id in gone]
        self.attachments = tuple(a for a in self.attachments if a.item.id not in gone)
        lay_always(self.page, self.attachments)

    def _prune_while_cold(self) -> None:
        if self._standing_tokens() > self.settings.prune_cold_above * self.draft.room.limit:
            natural = next(
                boundary for boundary in self.boundaries if boundary.kind != "compaction"
            )
            self._put_out(self._shrink(0, _while_cold(natural)))

    def _choose_attachments(self, cold: bool) -> None:
        state = self.page.state
        room = 0
        if cold and state.still_out:
            room = int(self.settings.prune_to * self.draft.room.limit) - self._standing_tokens()
        self.attachments, out = split_still_out(state, self.attachments, room, self.assembler)
        self.attachments, over = limit_attachments(state, self.attachments, self.assembler)
        self.left_out += [*out, *over]

    def fit(self) -> TentativeTurn:
        """The turn within its budget, as far as that can be done."""
        limit = self.draft.room.limit
        composed = self._compose()
        if composed.prompt.tokens <= limit:
            return composed
        # What is worth less than history goes before history does, exactly and without a break.
        composed = self._drop_new(composed, limit, above=self.settings.history_priority)
        if composed.prompt.tokens <= limit:
            return composed
        fixed = sum(
            link.segment.tokens
            for link in composed.prompt.front
            if link.segment.layer in ("tools", "L1")
        )
        if composed.turn_tokens > limit - fixed:
            too_much = composed.turn_tokens - int(NEW_ITEMS_SHARE * (limit - fixed))
            composed = self._drop_new(composed, composed.prompt.tokens - too_much)
        self.attachments, self.left_out = composed.kept, list(composed.left_out)
        pruned = self._shrink(composed.turn_tokens, "over the window")
        if pruned.changed:
            self.boundaries.append(
                Boundary(kind="window", reason="the request was over the window")
            )
        self._put_out(pruned)
        composed = self._drop_new(self._compose(), limit)
        if (over := composed.prompt.tokens - limit) > 0:
            # Names and summaries took more than was reckoned: give up that much more.
            self._put_out(self._shrink(composed.turn_tokens + over + SEAMS, "over the window"))
            composed = self._drop_new(self._compose(), limit)
        return composed

    def _drop_new(self, composed: TentativeTurn, limit: int, *, above: int = -1) -> TentativeTurn:
        """Leaves out unsent items with a priority number above `above` until the request is within
        `limit`. With a floor it is all or nothing: dropping some would not help."""
        state, assembler = self.page.state, self.assembler
        new = {use.item for use in resolve(state, composed.kept) if use.form == "full"}
        before = composed
        while (excess := composed.prompt.tokens - limit) > 0:
            candidates = [
                size_attachment(state, attachment, index, assembler)
                for index, attachment in enumerate(composed.kept)
                if attachment.item.id in new and attachment.priority > above
            ]
            gone = {candidate.item for candidate in drop_until(candidates, excess).dropped}
            if not gone:
                return before if above >= 0 else composed
            reports = tuple(no_room(a, assembler) for a in composed.kept if a.item.id in gone)
            kept = tuple(a for a in composed.kept if a.item.id not in gone)
            left_out = (*composed.left_out, *reports)
            composed = compose(self.page, self.draft, kept, left_out, assembler)
        return composed

    def _compose(self) -> TentativeTurn:
        left_out = tuple(self.left_out)
        return compose(self.page, self.draft, self.attachments, left_out, self.assembler)

    def _shrink(self, turn_tokens: int, reason: str) -> PruneOutcome:
        return prune(
            self.page, self.assembler, self.draft.room,
            turn_tokens=turn_tokens, reason=reason, attached=self.attachments, cold=self.cold,
        )  # fmt: skip

    def _put_out(self, pruned: PruneOutcome) -> None:
        """Attachments that a prune took away are not laid down again in the same breath."""
        self.reports += report_pruned(pruned, self.attachments)
        gone = {candidate.item for candidate in pruned.evicted}
        self.left_out += [no_room(a, self.assembler) for a in self.attachments if a.item.id in gone]
        self.attachments = tuple(a for a in self.attachments if a.item.id not in gone)

    def _standing_tokens(self) -> int:
        state = self.page.state
        end = len(state.envelope.cached)
        return self.assembler.assemble(state.envelope, state.items, end).tokens


def plan_results(
    page: Page,
    draft: Draft,
    results: Sequence[ToolResult],
    assembler: Assembler,
    sent: Prompt | None,
    attachments: tuple[Attachment, ...],
    left_out: Sequence[LeftOut],
) -> RequestPlan:
    """The next request of the turn under way, with the results of its tool calls. `left_out` is
    what the turn went without so far, and still does."""
    limit = draft.room.limit
    given = list(results)
    reports: list[LeftOut] = []
    trial, prompt = _with_results(page, given, draft, assembler)
    pruned = PruneOutcome()
    slack = too_long = 0
    boundary = Boundary(kind="window", reason="the request was over the window")
    reason = "over the window"
    natural = find_boundary(page.state, draft.target, page.at)
    cold = natural is not None and natural.kind == "expired"
    most = limit
    if natural and cold and prompt.tokens <= limit:
        boundary, reason = natural, _while_cold(natural)
        most = int(page.state.settings.prune_cold_above * limit)
    for attempt in range(ATTEMPTS):
        if prompt.tokens <= most:
            break
        trial, _ = _with_results(page, given, draft, assembler)
        pruned = prune(
            trial, assembler, draft.room,
            turn_tokens=slack, reason=reason, keep_last=True, cold=cold,
        )  # fmt: skip
        prompt = _assemble(trial.state, assembler)
        if (over := prompt.tokens - limit) <= 0:
            break
        # What was sent gives way first; then what was not sent yet is shortened.
        if attempt % 2 == 0:
            slack += over + SEAMS
        else:
            too_long += over + SEAMS
            if pruned.dropped_messages > 1 and not reports:
                # With room for a summary: what was done before must not be done again.
                too_long += min(page.state.settings.summary_tokens, limit // 20)
                slack = 0
            given, reports = shorten_results(results, too_long, assembler.count_text)
            trial, prompt = _with_results(page, given, draft, assembler)
            pruned = PruneOutcome()
    kept = tuple(a for a in attachments if stands(trial.state, a.item))
    reports += report_pruned(pruned)
    known = {report.what for report in reports}
    reports += [
        no_room(a, assembler, reason="removed")
        for a in attachments
        if a not in kept and a.item.id not in known
    ]
    return record_request(
        trial, draft, prompt, sent, assembler,
        kept=kept,
        left_out=(*draft.reports, *reports, *_still_without(left_out, trial.state, reports)),
        boundaries=(*draft.boundaries, *((boundary,) if pruned.changed else ())),
    )  # fmt: skip


def _while_cold(boundary: Boundary) -> str:
    return f"{boundary.reason}; pruned while the cache is cold"


def _still_without(
    left_out: Sequence[LeftOut], state: State, reports: Sequence[LeftOut]
) -> list[LeftOut]:
    """What the turn went without before and still does: not of results that are gone, or that were
    shortened once more."""
    told = {report.what for report in reports}
    without = [
        omission
        for omission in left_out
        if (omission.reason in ABSENCE_REASONS or omission.reason == "still_out")
        and omission.what not in told
    ]
    # A turn may have very many steps: they are looked through only if there is something to find.
    if not any(is_result(omission.what) for omission in without):
        return without
    turn = state.envelope.cached.since(state.turn_start or 0)
    blocks = [block for message in turn for block in message.blocks]
    there = {result_name(block) for block in blocks if isinstance(block, ToolResult)}
    return [
        omission for omission in without if omission.what in there or not is_result(omission.what)
    ]


def _with_results(
    page: Page, results: Sequence[ToolResult], draft: Draft, assembler: Assembler
) -> tuple[Page, Prompt]:
    trial = page.copy()
    message = Message(role="tool", blocks=tuple(results), id=trial.next_id())
    trial.write(MessageEntry, message=message)
    if draft.ephemera.messages:
        trial.write(EphemeralEntry, **asdict(draft.ephemera))
    return trial, _assemble(trial.state, assembler)


def _assemble(state: State, assembler: Assembler) -> Prompt:
    return assembler.assemble(state.envelope, state.items, state.turn_start or 0)
