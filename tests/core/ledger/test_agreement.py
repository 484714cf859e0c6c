"""How far a request extends the one before it, and what is said where it does not."""

from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import (
    assemble_state,
    assembler,
    count_words,
    entries_after,
    envelope_of,
    modest,
    promotions,
    sessions,
    states_along,
    thorough,
)

from lamina.core.codec import segment_digest
from lamina.core.journal import MovedParts, RecordedReason
from lamina.core.ledger.agreement import (
    SentPrompt,
    compare,
    require_reason,
    shared_links,
    shared_prefix,
)
from lamina.core.values.collections import Chain
from lamina.core.values.entry import Entry
from lamina.core.values.envelope import Envelope, SystemPart
from lamina.core.values.message import Message, Text, ToolDefinition
from lamina.core.values.prompt import Layer, Prompt, Segment, SegmentLink, WireRole, link_segments
from lamina.core.values.request import Agreement, Break
from lamina.errors import PrefixMoved


def agreeing(before: Prompt, after: Prompt) -> int:
    """The law, spelled out: leading segments of one digest."""
    pairs = zip(before, after, strict=False)
    return len(list(takewhile(lambda pair: pair[0].digest == pair[1].digest, pairs)))


# -- any two prompts -----------------------------------------------------------------------------


def segment(role: WireRole, text: str, *, cached: bool = True) -> Segment:
    layer: Layer = "L1" if role == "system" else "L4"
    return Segment(
        layer=layer, role=role, message=text, content=Text(text), source=f"source:{text}",
        digest=segment_digest(role, Text(text), opens=True), tokens=len(text), cached=cached,
    )  # fmt: skip


few = st.lists(st.sampled_from(["a", "bb", "ccc"]), max_size=4)


def chain_of(role: WireRole, names: list[str]) -> Chain[SegmentLink]:
    return link_segments(Chain(), [segment(role, name) for name in names])


@st.composite
def prompts(draw: st.DrawFn) -> Prompt:
    asked = [segment("user", name, cached=draw(st.booleans())) for name in draw(few)]
    return Prompt(
        front=chain_of("system", draw(few)),
        history=chain_of("user", draw(few)),
        asked=tuple(asked),
        steps=chain_of("user", draw(few)),
        tail=tuple(segment("user", name, cached=False) for name in draw(few)),
    )


@thorough
@given(prompts(), prompts())
def test_what_two_prompts_share_is_what_a_plain_comparison_finds(
    before: Prompt, after: Prompt
) -> None:
    assert shared_prefix(before, after) == agreeing(before, after)
    assert shared_prefix(after, before) == agreeing(after, before)
    assert shared_prefix(before, before) == len(before)


@thorough
@given(few, few, few, st.booleans())
def test_links_agree_as_far_as_their_digests_whether_or_not_they_share_a_buffer(
    stem: list[str], left: list[str], right: list[str], grown: bool
) -> None:
    base = chain_of("user", stem)
    one = link_segments(base, [segment("user", name) for name in left])
    two = link_segments(
        base if grown else chain_of("user", stem), [segment("user", name) for name in right]
    )
    pairs = zip(stem + left, stem + right, strict=False)
    assert shared_links(one, two) == len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


# -- prompts of sessions -------------------------------------------------------------------------


@modest
@given(sessions(), promotions, st.data())
def test_along_a_session_the_shared_prefix_is_the_plain_one(
    entries: list[Entry], promotion: str, data: st.DataObject
) -> None:
    branch = data.draw(entries_after(states_along(entries)[-1], "b", most=4))
    states = states_along(entries)[-6:] + states_along(entries + branch)[-4:]
    growing = assembler(promotion, count_words)  # type: ignore[arg-type]
    made = [assemble_state(growing, state) for state in states]
    fresh = [assemble_state(assembler(promotion, count_words), state) for state in states]  # type: ignore[arg-type]
    for before, again in zip(made, fresh, strict=True):
        for after in made:
            assert shared_prefix(before, after) == agreeing(before, after)
            assert shared_prefix(again, after) == agreeing(again, after)


@modest
@given(sessions(), promotions)
def test_agreement_adds_up_and_breaks_exactly_inside_the_cached_run(
    entries: list[Entry], promotion: str
) -> None:
    growing = assembler(promotion, count_words)  # type: ignore[arg-type]
    made = [assemble_state(growing, state) for state in states_along(entries)[-6:]]
    for before in made:
        for after in made:
            agreement = compare(SentPrompt(prompt=before), after)
            shared = agreeing(before, after)
            assert agreement.segments == shared
            assert agreement.tokens == sum(s.tokens for s in after.segments[:shared])
            assert agreement.tokens + agreement.reprocessed == after.tokens
            assert (agreement.broke is not None) == (shared < before.cached_run())


# -- what broke ----------------------------------------------------------------------------------

PARTS = (SystemPart(name="persona", text="S"), SystemPart(name="memory", text="M"))
ASKED = Message(role="user", blocks=(Text("Q"),), id="m1")
ANSWERED = Message(role="assistant", blocks=(Text("R"),), id="m2")


def prompt_of(*messages: Message, turn_start: int | None = None, **fields: object) -> Prompt:
    envelope: Envelope = envelope_of(*messages, **{"system": PARTS, **fields})
    start = len(messages) if turn_start is None else turn_start
    return assembler().assemble(envelope, {}, start)


def compared(before: Prompt, after: Prompt, *reasons: RecordedReason) -> Agreement:
    return compare(SentPrompt(prompt=before), after, reasons)


def broken(before: Prompt, after: Prompt, *reasons: RecordedReason) -> Break:
    broke = compared(before, after, *reasons).broke
    assert broke is not None
    return broke


def reason(text: str, *sources: str) -> RecordedReason:
    return RecordedReason(text=text, moved=MovedParts(sources=sources))


def test_the_first_request_agrees_with_nothing_and_breaks_nothing() -> None:
    after = prompt_of(ASKED)
    agreement = compare(None, after)
    assert agreement == Agreement(first=True, reprocessed=after.tokens)
    require_reason(agreement)


def test_a_request_that_only_grew_needs_no_reason() -> None:
    before, after = prompt_of(ASKED, turn_start=0), prompt_of(ASKED, ANSWERED)
    agreement = compared(before, after)
    assert (agreement.segments, agreement.broke) == (3, None)
    assert agreement.reprocessed == len("R") + 4
    require_reason(agreement)


def test_a_changed_part_is_named_with_its_layer_place_and_source() -> None:
    changed = (PARTS[0], SystemPart(name="memory", text="other"))
    before, after = prompt_of(ASKED), prompt_of(ASKED, system=changed)
    twice = [reason(text, "system:memory") for text in ("memory changed", "twice")]
    broke = broken(before, after, reason("other tools", "tool:find"), *twice)
    assert broke == Break(
        layer="L1", segment=1, source="system:memory", before="system:memory",
        reason="memory changed; twice",
    )  # fmt: skip


def test_a_changed_tool_is_named_first_of_all() -> None:
    tools = (ToolDefinition(name="find"),)
    broke = broken(prompt_of(ASKED, tools=tools), prompt_of(ASKED))
    assert (broke.layer, broke.segment) == ("L1", 0)
    assert (broke.source, broke.before) == ("system:persona", "tool:find")


def test_a_changed_message_is_named() -> None:
    other = Message(role="user", blocks=(Text("changed"),), id="m9")
    broke = broken(prompt_of(ASKED, ANSWERED), prompt_of(other, ANSWERED))
    assert (broke.layer, broke.segment, broke.source) == ("L4", 2, "message:m9")
    assert broke.before == "message:m1"


def test_what_is_missing_at_the_end_is_named_by_what_stood_there() -> None:
    broke = broken(prompt_of(ASKED, ANSWERED), prompt_of(ASKED))
    assert (broke.layer, broke.segment, broke.source) == ("L4", 3, "message:m2")


def test_what_was_uncached_may_move_without_a_reason() -> None:
    tail = (Message(role="user", blocks=(Text("only now"),), id="u1"),)
    before = prompt_of(ASKED, turn_start=0, uncached=tail)
    assert compared(before, prompt_of(ASKED, ANSWERED)).broke is None


def test_moving_bytes_without_a_reason_is_refused_and_says_where() -> None:
    changed = (SystemPart(name="persona", text="other"), PARTS[1])
    agreement = compared(prompt_of(ASKED), prompt_of(ASKED, system=changed))
    with pytest.raises(PrefixMoved) as caught:
        require_reason(agreement)
    error = caught.value
    assert (error.code, error.layer, error.segment) == ("prefix_moved", "L1", 0)
    assert str(error) == (
        "bytes already sent would move at segment 0 (L1, system:persona): its content changed; "
        "record a reason with the change (invalidate_cache_reason) or set prefix_check='warn'"
    )
    covered = reason("new persona", "system:persona")
    require_reason(compared(prompt_of(ASKED), prompt_of(ASKED, system=changed), covered))


@pytest.mark.parametrize("blank", [(), ("",), ("  ",), ("", "")])
def test_blank_reasons_are_no_reasons(blank: tuple[str, ...]) -> None:
    reasons = [reason(text, "system:persona", "system:memory") for text in blank]
    agreement = compared(prompt_of(ASKED), prompt_of(ASKED, system=PARTS[1:]), *reasons)
    with pytest.raises(PrefixMoved, match="was system:persona"):
        require_reason(agreement)
