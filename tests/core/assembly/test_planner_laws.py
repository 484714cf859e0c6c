"""The laws of the pure planner, over conversations that could be. No session is involved: a state
and a draft go in, entries and a prompt come out."""

from collections import Counter
from functools import reduce
from itertools import product, takewhile

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.core.assembly.walks import (
    LOST,
    NOTES,
    RESERVE,
    SEEN,
    Ask,
    Moment,
    Pin,
    Refusal,
    Walk,
    Want,
    Wipe,
    as_sent,
    asks,
    fresh_assembler,
    page_on,
    take,
    walks,
)
from tests.fakes.book import OTHER
from tests.strategies import modest, promotions, thorough

from lamina.core.assembly.planner import plan_turn
from lamina.core.codec import canonical_bytes
from lamina.core.journal import State, fold_entry
from lamina.core.layers import Layout
from lamina.core.text import label_of
from lamina.core.values.entry import ItemEntry, MessageEntry, RequestEntry, TransformEntry
from lamina.core.values.item import Attachment, Item, ItemId, is_guidance, kind_of
from lamina.core.values.message import Text, ToolCall, ToolResult
from lamina.core.values.prompt import Prompt
from lamina.core.values.settings import Promotion, Settings
from lamina.errors import EssentialsTooLarge, PrefixMoved, WindowExceeded


def blocks_in(prompt: Prompt) -> list[str]:
    """The item versions whose text stands in a prompt, once for each time that it does."""
    return [
        segment.source
        for segment in prompt
        if "@" in segment.source and isinstance(segment.content, Text)
    ]


def block_of(item: Item) -> str:
    return f"{item.id}@{item.version[:8]}"


def digests_of(prompt: Prompt) -> list[str]:
    return [segment.digest for segment in prompt]


def is_essential(attachment: Attachment, state: State) -> bool:
    return attachment.is_essential or attachment.item.id in state.library.pinned


def shared_run(before: Prompt, after: Prompt) -> int:
    pairs = zip(digests_of(before), digests_of(after), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


# -- the budget ----------------------------------------------------------------------------------


@thorough
@given(walks)
def test_a_plan_never_exceeds_its_budget_and_counts_every_segment(walk: Walk) -> None:
    limit = int((walk.window - RESERVE) / walk.calibration)
    for moment in take(walk)[0]:
        prompt, request = moment.plan.prompt, moment.plan.request
        assert prompt.tokens == sum(segment.tokens for segment in prompt) <= limit
        assert request.tokens == prompt.tokens
        fit = request.context.fit
        assert (fit.window, fit.reserve) == (walk.window, RESERVE)
        assert fit.tokens == round(prompt.tokens * walk.calibration) <= fit.available
        assert request.cached_tokens == sum(
            segment.tokens for segment in list(prompt)[: request.cached_run]
        )


# What is written around items and messages: frames, names, notices, the library's header.
SEAMS = 120
SEAM_OF_ITEM = 16
SEAM_OF_RESULT = 50


def least_request(refusal: Refusal) -> int:
    """About the smallest request that would do: tools, L1, what is essential, and what is asked."""
    state, draft, assembler = refusal.before, refusal.draft, refusal.assembler
    front = assembler.assemble(
        state.envelope, state.library.items, len(state.envelope.cached)
    ).front
    fixed = sum(link.segment.tokens for link in front if link.segment.layer in ("tools", "L1"))
    essential: dict[ItemId, Item] = {}
    for item, standing in state.library.standing.items():
        if not standing.current:
            continue
        known, shown = state.library.known.get(item), state.library.items[item, standing.current]
        if kind_of(item) == "rule" or item in state.library.pinned or (known and known.essential):
            essential[item] = shown
    for attachment in draft.attachments.attachments:
        if is_essential(attachment, state):
            essential[attachment.item.id] = attachment.item
    asked = [draft.text, *(text.text for text in draft.tool_texts)]
    asked += [message.text for message in draft.ephemera.messages]
    asked += [state.turn.question for _ in refusal.results[:1]]
    seams = SEAMS + SEAM_OF_ITEM * (len(draft.attachments.attachments) + len(state.library.known))
    # Calls stay with their results, however short those become.
    seams += SEAM_OF_RESULT * len(refusal.results)
    return (
        fixed
        + seams
        + sum(assembler.item_tokens(item) for item in essential.values())
        + sum(assembler.count_text(text) for text in asked)
    )


# A picture comes with a question that is not about it alone, and then results want its room.
PICTURED = Walk(
    steps=(Ask(attach=(Want(item=SEEN, size=300, pictured=True),), calls=(1, 3), result=30),),
    window=1_000,
    settings=Settings(summary_tokens=40),
)


def test_a_picture_that_is_not_essential_gives_way_to_results_of_its_own_turn() -> None:
    """Issue 16, left from issue 15: it could never go, and the request was refused."""
    moments, refusals = take(PICTURED)
    assert not refusals
    assert [bool(moment.plan.kept) for moment in moments] == [True, True, False]
    assert (SEEN, "removed") in {(each.what, each.reason) for each in moments[-1].left_out}


@settings(thorough, max_examples=250)
@given(walks)
@example(PICTURED)
def test_a_request_is_refused_only_if_what_is_essential_does_not_fit(walk: Walk) -> None:
    for refusal in take(walk)[1]:
        if isinstance(refusal.error, WindowExceeded):
            assert least_request(refusal) > refusal.draft.room.limit
        else:
            assert isinstance(refusal.error, EssentialsTooLarge)
            tokens = sum(
                refusal.assembler.item_tokens(attachment.item)
                for attachment in refusal.draft.attachments.attachments
                if is_essential(attachment, refusal.before)
            )
            assert walk.settings.attachment_limit is not None
            assert tokens > walk.settings.attachment_limit


@modest
@given(st.integers(400, 3_000), st.integers(1, 6_000), promotions)
def test_one_question_fits_or_is_refused_by_the_token(
    window: int, size: int, promotion: Promotion
) -> None:
    def planned(limit: int) -> bool:
        walk = Walk(steps=(Ask(size=size),), window=limit, settings=Settings(promotion=promotion))
        return bool(take(walk)[0])

    moments, _ = take(Walk(steps=(Ask(size=size),)))
    tokens = moments[0].plan.prompt.tokens
    assert planned(window) == (tokens <= window - RESERVE)
    assert planned(tokens + RESERVE)
    assert not planned(tokens + RESERVE - 1)


@modest
@given(st.lists(st.tuples(st.integers(5, 40), st.integers(5, 60)), min_size=40, max_size=40))
def test_the_window_moves_the_prefix_once_in_many_turns(sizes: list[tuple[int, int]]) -> None:
    steps = tuple(Ask(size=size, answer=answer) for size, answer in sizes)
    moments, _ = take(Walk(steps=steps, window=1_200))
    assert len(moments) == len(steps)
    # Each prune frees half of the room, which takes several turns to fill.
    assert sum("window" in moment.boundaries for moment in moments) <= len(steps) / 4


# -- nothing disappears silently -----------------------------------------------------------------


def standing_blocks(item: ItemId, state: State) -> set[str]:
    """The blocks of the version that applies; with it those of the same text with images."""
    laid = state.library.standing.get(item)
    return {f"{item}@{laid.current[:8]}"} if laid else set()


@thorough
@given(walks)
def test_every_attachment_stands_in_the_prompt_or_is_left_out_with_a_reason(walk: Walk) -> None:
    for moment in take(walk)[0]:
        context, plan = moment.plan.request.context, moment.plan
        assert {item.item for item in context.items} == {a.item.id for a in plan.kept}
        blocks = set(blocks_in(plan.prompt))
        reported = {each.what for each in context.left_out if each.reason != "superseded"}
        for attachment in moment.draft.attachments.attachments or moment.attachments:
            item = attachment.item
            if attachment in plan.kept:
                assert item.id not in reported
                (block,) = standing_blocks(item.id, plan.state)
                assert block in blocks
                shown = plan.state.library.items[
                    item.id, plan.state.library.standing[item.id].current
                ]
                assert shown.content == item.content
            elif item.id not in plan.state.library.standing:
                assert item.id in reported
        assert all(each.detail.strip() for each in context.left_out)


# While its turn goes on, the middle of it gives way to a summary, and with it the new version of a
# note; the old version stands in the library.
OUTDATED = Walk(
    steps=(
        Ask(attach=(Want(item=NOTES[3], size=120),)),
        Ask(attach=(Want(item=NOTES[3], size=120, edition=1),), pause=1_000.0, calls=(1, 1, 1),
            result=150),
    ),
    window=700,
    settings=Settings(summary_tokens=40),
)  # fmt: skip


def test_a_new_version_that_goes_is_reported_and_no_older_one_outlives_it() -> None:
    """Issue 16, left from issue 15: what was removed was told by its id, not by its version."""
    for moment in take(OUTDATED)[0]:
        kept = {attachment.item.id for attachment in moment.plan.kept}
        reported = {each.what for each in moment.left_out if each.reason != "superseded"}
        assert {a.item.id for a in moment.attachments} <= kept | reported
        outdated = [
            item
            for item, laid in moment.plan.state.library.standing.items()
            if (then := moment.before.requests.sent_standing.get(item))
            and laid.current in then.versions[: then.versions.index(then.current)]
        ]
        assert outdated == []


# A person empties history, and the note that stood in it goes with it.
WIPED = Walk(steps=(Ask(attach=(Want(item=NOTES[0]),)), Wipe(), Ask()))


@thorough
@given(walks)
@example(WIPED)
def test_an_item_that_stood_and_no_longer_does_is_reported(walk: Walk) -> None:
    for moment in take(walk)[0]:
        gone = set(moment.before.requests.sent_standing) - set(moment.plan.state.library.standing)
        assert gone <= {omission.what for omission in moment.left_out}


# History is cut at its own limit where nothing stands in front but the summary of an earlier cut.
SUMMARY_ALONE = Walk(
    steps=(
        Ask(size=1, tool_text=30, calls=(1, 3), result=5, answer=1),
        Ask(size=5, target=OTHER, tool_text=30, aside=10, answer=11),
        Ask(size=1, lost=True, aside=10),
    ),
    window=350,
    settings=Settings(history_messages=4, history_tokens=200, history="strip", strip_turns=1),
    calibration=1.25,
)


@thorough
@given(walks)
@example(SUMMARY_ALONE)
def test_messages_that_go_leave_a_report_and_a_boundary(walk: Walk) -> None:
    for moment in take(walk)[0]:
        before = [(message.id, message.text) for message in moment.before.envelope.cached]
        after = {(message.id, message.text) for message in moment.plan.state.envelope.cached}
        gone = [message for message in before if message not in after]
        reports = [each for each in moment.left_out if each.reason == "history"]
        assert bool(gone) == bool(reports)
        assert not gone or set(moment.boundaries) - {"first_request", "promotion"}


@modest
@given(walks)
def test_the_model_is_told_of_what_it_does_not_get(walk: Walk) -> None:
    for moment in take(walk)[0]:
        if moment.results:
            continue
        (question,) = [segment for segment in moment.plan.prompt if segment.layer == "L5"]
        told = "\n".join(
            segment.text
            for segment in moment.plan.prompt
            if segment.message == question.message and segment.layer == "L3"
        )
        for omission in moment.left_out:
            if omission in moment.draft.attachments.left_out or omission.reason == "window":
                assert label_of(ItemId(omission.what)) in told
        assert (LOST in moment.draft.attachments.left_out) == (LOST in moment.left_out)


@modest
@given(walks)
def test_what_was_typed_is_sent_as_it_is_and_comes_last(walk: Walk) -> None:
    for moment in take(walk)[0]:
        if not moment.results:
            typed = [segment.text for segment in moment.plan.prompt if segment.layer == "L5"]
            assert typed == [moment.draft.text]


# -- entries, state and prompt are one -----------------------------------------------------------


@thorough
@given(walks)
def test_the_state_of_a_plan_is_the_fold_of_its_entries(walk: Walk) -> None:
    for moment in take(walk)[0]:
        plan = moment.plan
        assert reduce(fold_entry, plan.entries, moment.before) == plan.state
        parents = [moment.before.leaf, *(entry.id for entry in plan.entries)]
        assert [entry.parent for entry in plan.entries] == parents[:-1]
        assert len({entry.id for entry in plan.entries}) == len(plan.entries)
        assert plan.entries[-1] is plan.request
        assert plan.request.before == moment.before.leaf


@thorough
@given(walks)
def test_the_prompt_of_a_plan_is_made_of_its_state_alone(walk: Walk) -> None:
    requests: dict[str, RequestEntry] = {}
    digests: dict[str, list[str]] = {}
    for moment in take(walk)[0]:
        plan, state = moment.plan, moment.plan.state
        fresh = fresh_assembler(moment.assembler.layout)
        rebuilt = fresh.assemble(state.envelope, state.library.items, state.turn.start or 0)
        assert digests_of(rebuilt) == digests_of(plan.prompt)
        request = requests[plan.request.id] = plan.request
        base = digests[request.base] if request.base else []
        assert [*base[: request.kept], *request.digests] == digests_of(plan.prompt)
        digests[request.id] = digests_of(plan.prompt)


@thorough
@given(walks)
def test_the_same_plan_twice_has_the_same_bytes(walk: Walk) -> None:
    for moment in take(walk)[0]:
        again = moment.plan_again()
        assert [canonical_bytes(entry) for entry in again.entries] == [
            canonical_bytes(entry) for entry in moment.plan.entries
        ]
        assert digests_of(again.prompt) == digests_of(moment.plan.prompt)


@modest
@given(walks)
def test_a_page_that_was_planned_on_can_be_planned_on_again(walk: Walk) -> None:
    """What a plan tries on copies leaves no trace on them: only its own entries are in it."""
    for moment in take(walk)[0]:
        messages = [entry for entry in moment.plan.entries if isinstance(entry, MessageEntry)]
        assert len(messages) == 1
        kept = [entry.item for entry in moment.plan.entries if isinstance(entry, ItemEntry)]
        assert not [item for item in kept if (item.id, item.version) in moment.before.library.items]
        assert len({block_of(item) for item in kept}) == len(kept)


# -- the prefix ----------------------------------------------------------------------------------


@thorough
@given(walks)
def test_a_prompt_extends_the_last_one_sent_or_says_why_not(walk: Walk) -> None:
    for moment in take(walk)[0]:
        agreement, prompt = moment.plan.request.context.agreement, moment.plan.prompt
        if moment.sent is None:
            assert agreement.first
            assert moment.plan.request.base is None
            continue
        shared = shared_run(moment.sent, prompt)
        assert (agreement.segments, agreement.tokens) == (shared, prompt.tokens_until(shared))
        assert moment.plan.request.kept == shared
        extends = shared >= moment.sent.cached_run()
        assert extends == (agreement.broke is None)
        if agreement.broke:
            assert agreement.broke.reason.strip()
            reasons = {reason.text for reason in moment.plan.state.requests.reasons}
            reasons |= {boundary.reason for boundary in moment.plan.request.context.boundaries}
            assert set(agreement.broke.reason.split("; ")) & {
                part for reason in reasons for part in reason.split("; ")
            }


@modest
@given(st.lists(asks, min_size=1, max_size=6), promotions)
def test_without_a_cause_there_is_no_boundary(turns: list[Ask], promotion: Promotion) -> None:
    """One target, a live cache, room for all: lazy only ever appends, eager promotes."""
    steps = tuple(
        replace(ask, pause=10.0, target=turns[0].target, attach=tuple(
            want for want in ask.attach if not is_guidance(ItemId(want.item))
        ))
        for ask in turns
    )  # fmt: skip
    moments, refusals = take(Walk(steps=steps, settings=Settings(promotion=promotion)))
    assert not refusals
    assert moments[0].boundaries == ["first_request"]
    for moment in moments[1:]:
        causes = [] if promotion == "lazy" else ["promotion"]
        assert set(moment.boundaries) <= set(causes)
        broke = moment.plan.request.context.agreement.broke
        assert broke is None or promotion == "eager"
        if not moment.boundaries:
            transforms = [e for e in moment.plan.entries if isinstance(e, TransformEntry)]
            assert transforms == []


@modest
@given(st.lists(asks, min_size=2, max_size=5))
def test_bytes_that_move_without_a_reason_are_refused(turns: list[Ask]) -> None:
    """The ledger is given a last prompt that is not this path's, and nobody gave a reason."""
    steps = [replace(ask, pause=10.0, target=turns[0].target, attach=(), calls=()) for ask in turns]
    walk = Walk(steps=tuple(steps))
    moments, _ = take(walk)
    moment = moments[-1]
    other = take(replace(walk, steps=(replace(steps[0], size=steps[0].size + 1), *steps[1:])))
    strange = as_sent(other[0][-1].plan.prompt, moment.before)
    page = page_on(moment.before, moment.at)
    with pytest.raises(PrefixMoved) as raised:
        plan_turn(page, moment.draft, moment.assembler, strange)
    assert raised.value.layer == "L4"
    assert page.written == ()
    lenient = replace(moment.before, settings=replace(walk.settings, prefix_check="warn"))
    plan = plan_turn(page_on(lenient, moment.at), moment.draft, moment.assembler, strange)
    (warning,) = plan.request.context.warnings
    assert "moved without a reason" in warning


# -- items ---------------------------------------------------------------------------------------

# A note changes and changes back: its first version stands already.
CHANGED_BACK = Walk(
    steps=tuple(Ask(attach=(Want(item=NOTES[0], edition=edition),)) for edition in (0, 1, 0))
)
# A note that has no room stays attached.
TOO_LARGE = Walk(steps=(Ask(attach=(Want(item=NOTES[4], size=400),)),) * 2, window=380)
# A pinned note changes: the new version comes before history, whatever its number.
PINNED = Walk(
    steps=(
        Ask(size=50, attach=(Want(item=NOTES[0]),), answer=120),
        Pin(NOTES[0]),
        Ask(size=50, attach=(Want(item=NOTES[0], size=200, edition=1, priority=10),)),
    ),
    window=450,
)
# A note that stands and was not essential is attached anew, changed, and now it is.
ESSENTIAL_NOW = Walk(
    steps=(
        Ask(attach=(Want(item=NOTES[3], size=120),), answer=60),
        Ask(size=30, attach=(Want(item=NOTES[3], size=120, edition=1, essential=True),)),
    ),
    window=350,
)
# What always applies is laid down before the first request, when nothing is known of it yet.
ESSENTIAL_ALWAYS = Walk(
    steps=(Ask(size=1, lost=True),),
    window=350,
    always=(
        Want(item=NOTES[2], size=60, priority=3, essential=True, always=True),
        Want(item=NOTES[3], size=120, priority=3, essential=True, always=True),
    ),
)


@thorough
@given(walks)
@example(CHANGED_BACK)
def test_a_version_of_an_item_is_laid_down_at_most_once(walk: Walk) -> None:
    for moment in take(walk)[0]:
        blocks = Counter(blocks_in(moment.plan.prompt))
        assert all(count == 1 for count in blocks.values()), blocks


@thorough
@given(walks)
def test_an_item_that_stands_is_named_and_not_sent_again(walk: Walk) -> None:
    """In lazy, while nothing is taken away: what stood before is no part of what is new."""
    for moment in take(walk)[0]:
        if moment.results or moment.boundaries:
            continue
        standing = {
            (item, version)
            for item, laid in moment.before.library.standing.items()
            for version in laid.versions
        }
        question = moment.plan.state.envelope.cached[-1]
        uses = question.context.uses if question.context else ()
        for use in uses:
            assert (use.form == "named") == ((use.item, use.version) in standing)


@thorough
@given(walks)
@example(PINNED)
@example(ESSENTIAL_NOW)
@example(ESSENTIAL_ALWAYS)
def test_what_is_essential_or_pinned_is_never_left_out(walk: Walk) -> None:
    for moment in take(walk)[0]:
        kept = {attachment.item.id for attachment in moment.plan.kept}
        for attachment in moment.draft.attachments.attachments:
            if is_essential(attachment, moment.before):
                assert attachment.item.id in kept
        for attachment in moment.attachments:
            if attachment.item.id in moment.before.library.pinned:
                assert attachment.item.id in kept


@thorough
@given(walks)
def test_among_new_items_the_higher_priority_number_goes_first(walk: Walk) -> None:
    for moment in take(walk)[0]:
        state = moment.before
        out = {each.what for each in moment.left_out if each.reason == "window"}
        new = [
            attachment
            for attachment in moment.draft.attachments.attachments
            if attachment.item.id not in state.library.standing
            and attachment.provenance.include != "always"
            and not is_essential(attachment, state)
        ]
        dropped = [attachment for attachment in new if attachment.item.id in out]
        kept = [attachment for attachment in new if attachment in moment.plan.kept]
        tokens = moment.assembler.item_tokens
        for gone, stays in product(dropped, kept):
            # What is larger may have had no room at all.
            if tokens(gone.item) <= tokens(stays.item):
                assert stays.priority <= gone.priority


@modest
@given(
    st.permutations(NOTES[:4]),
    st.lists(st.sampled_from([3, 5, 7]), min_size=4, max_size=4),
    st.integers(0, 4),
)
def test_exactly_the_least_wanted_new_items_go(
    items: list[ItemId], priorities: list[int], fitting: int
) -> None:
    """Four new notes of one size and room for some of them: those that stay are the most wanted,
    among equals the latest added."""
    wants = tuple(
        Want(item=item, size=100, priority=priority)
        for item, priority in zip(items, priorities, strict=True)
    )
    assembler = fresh_assembler(Layout())
    (block,) = {assembler.item_tokens(want.attachment().item) for want in wants}
    bare = take(Walk(steps=(Ask(),)))[0][0].plan.prompt.tokens
    # Frames, and a line for each that is left out: less than one note.
    window = bare + fitting * block + 80 + RESERVE
    ((moment,), _) = take(Walk(steps=(Ask(attach=wants),), window=window))
    order = [attachment.item.id for attachment in moment.draft.attachments.attachments]
    worth = {want.item: (want.priority, -order.index(ItemId(want.item))) for want in wants}
    kept = {attachment.item.id for attachment in moment.plan.kept}
    assert kept == set(sorted(order, key=lambda item: worth[item])[: len(kept)])
    assert len(kept) == fitting
    assert moment.boundaries == ["first_request"]


@thorough
@given(walks)
@example(TOO_LARGE)
def test_what_had_no_room_stays_out_while_it_stays_attached(walk: Walk) -> None:
    for moment in take(walk)[0]:
        if moment.results or moment.boundaries:
            continue
        for attachment in moment.draft.attachments.attachments:
            item = attachment.item
            if (
                item.id in moment.before.library.still_out
                and item.id not in moment.before.library.standing
                and not is_essential(attachment, moment.before)
            ):
                assert (item.id, "still_out") in {(e.what, e.reason) for e in moment.left_out}


@thorough
@given(walks, st.integers(20, 400))
def test_attachments_stay_under_their_own_limit(walk: Walk, limit: int) -> None:
    walk = replace(walk, settings=replace(walk.settings, attachment_limit=limit))
    for moment in take(walk)[0]:
        if moment.results:
            continue
        tokens = sum(
            moment.assembler.item_tokens(attachment.item)
            for attachment in moment.plan.kept
            if not is_guidance(attachment.item.id)
        )
        assert tokens <= limit


# -- results of calls ----------------------------------------------------------------------------


@thorough
@given(walks)
def test_calls_and_their_results_stay_together(walk: Walk) -> None:
    for moment in take(walk)[0]:
        waiting: list[str] = []
        for segment in moment.plan.prompt:
            match segment.content:
                case ToolCall(id=call):
                    waiting.append(call)
                case ToolResult(call_id=call):
                    assert waiting.pop(0) == call
                case _:
                    assert not waiting
        assert not waiting


@thorough
@given(walks)
def test_every_result_is_sent_whole_or_is_said_to_be_shortened(walk: Walk) -> None:
    for moment in take(walk)[0]:
        sent = {
            segment.content.call_id: segment.content.text
            for segment in moment.plan.prompt
            if isinstance(segment.content, ToolResult)
        }
        shortened = {each.what for each in moment.left_out if each.reason == "window"}
        for result in moment.results:
            whole = sent[result.call_id] == result.text
            assert whole != (f"result:{result.call_id}" in shortened)
            assert whole or "tokens removed to fit the context window" in sent[result.call_id]


@modest
@given(walks)
def test_a_question_outlives_the_cuts_of_its_own_turn(walk: Walk) -> None:
    for moment in take(walk)[0]:
        if moment.results:
            texts = [segment.text for segment in moment.plan.prompt if segment.role == "user"]
            assert any(moment.before.turn.question in text for text in texts)


@modest
@given(walks)
def test_what_a_turn_went_without_is_said_at_each_of_its_steps(walk: Walk) -> None:
    earlier: Moment | None = None
    for moment in take(walk)[0]:
        if moment.results and earlier is not None:
            # What is over a limit may stand all the same, and go at a later step for want of room.
            without = {each.what for each in moment.left_out}
            for omission in earlier.left_out:
                if omission == LOST or omission.reason in ("still_out", "attachment_limit"):
                    assert omission in moment.left_out or omission.what in without - {LOST.what}
        earlier = moment
