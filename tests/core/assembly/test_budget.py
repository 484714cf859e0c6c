"""What fits, and who goes first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.strategies import thorough

from lamina.core.assembly.budget import (
    Budget,
    PruneCandidate,
    drop_until,
    fit_attachments,
    make_budget,
)
from lamina.core.assembly.shortened_results import find_level
from lamina.core.values.collections import Chain
from lamina.core.values.item import ItemId, note_id
from lamina.core.values.message import Text
from lamina.core.values.prompt import Layer, Prompt, Segment, SegmentLink
from lamina.core.values.settings import CacheRules, Settings, Target
from lamina.errors import EssentialsTooLarge, InvalidSetting


def sized(
    name: str, tokens: int, priority: int = 5, *, essential: bool = False, at: int = 0
) -> PruneCandidate:
    return PruneCandidate(
        item=note_id(name), label=name, tokens=tokens, priority=priority, essential=essential,
        recency=at,
    )  # fmt: skip


def names(each: tuple[PruneCandidate, ...]) -> list[str]:
    return [candidate.label for candidate in each]


@st.composite
def candidates(draw: st.DrawFn) -> list[PruneCandidate]:
    drawn = draw(
        st.lists(
            st.tuples(st.integers(0, 50), st.integers(1, 10), st.booleans(), st.integers(0, 2)),
            max_size=8,
        )
    )
    return [
        sized(f"n{number}", tokens, priority, essential=essential and number % 3 == 0, at=at)
        for number, (tokens, priority, essential, at) in enumerate(drawn)
    ]


def tokens_of(each: tuple[PruneCandidate, ...] | list[PruneCandidate]) -> int:
    return sum(candidate.tokens for candidate in each)


# -- the rule, by example ------------------------------------------------------------------------


def test_exactly_at_the_limit_nothing_goes() -> None:
    both = [sized("a", 60), sized("b", 40)]
    assert fit_attachments(both, 100).dropped == ()
    assert names(fit_attachments(both, 99).dropped) == ["a"]


def test_the_highest_priority_number_goes_first() -> None:
    three = [sized("high", 50, 3), sized("low", 50, 10), sized("medium", 50, 5)]
    assert names(fit_attachments(three, 100).dropped) == ["low"]
    assert names(fit_attachments(three, 99).dropped) == ["low", "medium"]
    assert names(fit_attachments(three, 99).kept) == ["high"]


def test_among_equals_the_earliest_added_goes_first() -> None:
    three = [sized("late", 50, at=2), sized("early", 50, at=0), sized("middle", 50, at=1)]
    assert names(fit_attachments(three, 50).dropped) == ["early", "middle"]
    assert names(fit_attachments([sized("a", 50), sized("b", 50)], 50).dropped) == ["a"]


def test_essentials_never_go_however_unwanted_their_number() -> None:
    three = [sized("must", 90, 10, essential=True), sized("a", 5, 1), sized("b", 5, 1)]
    choice = fit_attachments(three, 95)
    assert (names(choice.kept), names(choice.dropped)) == (["must", "b"], ["a"])


def test_what_stays_stays_in_the_order_it_was_attached() -> None:
    four = [sized("d", 1, 3), sized("c", 1, 9), sized("b", 1, 1), sized("a", 1, 2)]
    assert names(fit_attachments(four, 3).kept) == ["d", "b", "a"]


def test_essentials_alone_over_the_limit_are_an_error_with_the_sizes() -> None:
    three = [
        sized("spec", 3_000, essential=True),
        sized("api", 2_000, essential=True),
        sized("x", 1),
    ]
    with pytest.raises(EssentialsTooLarge) as caught:
        fit_attachments(three, 4_000)
    assert caught.value.code == "essentials_too_large"
    assert (caught.value.sizes, caught.value.limit) == ({"spec": 3_000, "api": 2_000}, 4_000)
    assert str(caught.value) == (
        "essential attachments are over the attachment limit; raise attachment_limit or make "
        "fewer of them essential (limit 4,000 tokens; spec 3,000, api 2,000)"
    )


def test_essentials_exactly_at_the_limit_are_kept_and_all_else_goes() -> None:
    three = [sized("spec", 4_000, essential=True), sized("x", 1), sized("y", 1)]
    assert names(fit_attachments(three, 4_000).kept) == ["spec"]


def test_essentials_that_are_called_alike_are_counted_each() -> None:
    """A rule and a reference may have one name, a note and a file one path."""
    both = [
        PruneCandidate(
            item=ItemId(f"{kind}:style"), label="style", tokens=60, priority=5, essential=True
        )
        for kind in ("rule", "reference")
    ]
    with pytest.raises(EssentialsTooLarge):
        fit_attachments(both, 100)


@pytest.mark.parametrize("place", [0, 10, 20])
@pytest.mark.parametrize("priority", [1, 5, 10])
def test_what_cannot_fit_at_all_costs_nothing_else(place: int, priority: int) -> None:
    offered = [sized("must", 50, 0, essential=True), *(sized(f"n{n}", 2) for n in range(20))]
    offered.insert(place, sized("huge", 51, priority))
    assert names(fit_attachments(offered, 100).dropped) == ["huge"]
    # One that would fit is dropped in its turn.
    fits = [replace(each, tokens=50) if each.label == "huge" else each for each in offered]
    assert "huge" in names(fit_attachments(fits, 100).kept) or priority >= 5


# -- laws ----------------------------------------------------------------------------------------


@thorough
@given(candidates(), st.integers(0, 200))
def test_what_is_kept_never_exceeds_the_limit(offered: list[PruneCandidate], limit: int) -> None:
    essential = [each for each in offered if each.essential]
    if tokens_of(essential) > limit:
        with pytest.raises(EssentialsTooLarge):
            fit_attachments(offered, limit)
        return
    choice = fit_attachments(offered, limit)
    assert tokens_of(choice.kept) <= limit
    assert not any(each.essential for each in choice.dropped)
    assert sorted(names(choice.kept + choice.dropped)) == sorted(each.label for each in offered)
    if tokens_of(offered) <= limit:
        assert choice.kept == tuple(offered)


@thorough
@given(candidates(), st.integers(-20, 300))
def test_dropping_stops_as_soon_as_enough_is_gone(
    offered: list[PruneCandidate], excess: int
) -> None:
    choice = drop_until(offered, excess)
    assert not any(each.essential for each in choice.dropped)
    assert sorted(names(choice.kept + choice.dropped)) == sorted(each.label for each in offered)
    if choice.dropped:
        assert tokens_of(choice.dropped[:-1]) < excess, "the last one dropped was not needed"
    if tokens_of(choice.dropped) < excess:
        assert all(each.essential for each in choice.kept)


@thorough
@given(candidates(), st.integers(0, 300))
def test_nobody_goes_before_someone_less_wanted(offered: list[PruneCandidate], excess: int) -> None:
    choice = drop_until(offered, excess)
    spare = [each for each in choice.kept if not each.essential]
    room = tokens_of([each for each in offered if not each.essential]) - excess
    for gone in choice.dropped:
        if gone.tokens <= room:
            assert all((-gone.priority, gone.recency) <= (-k.priority, k.recency) for k in spare)


@thorough
@given(candidates(), st.integers(0, 300), st.integers(0, 100))
def test_a_tighter_limit_drops_the_same_ones_first(
    offered: list[PruneCandidate], excess: int, more: int
) -> None:
    # Of one size: what cannot fit at all depends on the limit.
    alike = [replace(each, tokens=10) for each in offered]
    fewer, all_of_them = drop_until(alike, excess).dropped, drop_until(alike, excess + more)
    assert all_of_them.dropped[: len(fewer)] == fewer


def test_the_same_item_offered_as_essential_and_not_is_never_lost() -> None:
    twice = [sized("a", 10, essential=True), sized("a", 10)]
    choice = drop_until(twice, 5)
    assert len(choice.kept) + len(choice.dropped) == 2
    assert any(each.essential for each in choice.kept)


# -- room ----------------------------------------------------------------------------------------

TARGET = Target(
    provider="fake", model="m", wire="openai", window=128_000, max_output=16_000,
    cache=CacheRules(),
)  # fmt: skip


def test_room_is_the_window_less_what_the_answer_needs() -> None:
    assert make_budget(Settings(), TARGET, None, 1.0) == Budget(window=128_000, reserve=16_000)
    assert make_budget(Settings(), TARGET, 500, 1.0).limit == 127_500
    assert make_budget(Settings(output_reserve=0), TARGET, 500, 1.0).limit == 128_000
    assert make_budget(Settings(window=1_000), TARGET, None, 1.0).limit == 750
    assert make_budget(Settings(window=1_000, output_reserve=100), TARGET, None, 1.5).limit == 600


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (Settings(window=0), "window"),
        (Settings(window=10, output_reserve=10), "output_reserve"),
    ],
)
def test_settings_that_leave_no_room_are_refused_by_name(settings: Settings, name: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        make_budget(settings, TARGET, None, 1.0)
    assert caught.value.name == name


@thorough
@given(st.integers(2, 10**6), st.floats(0.3, 3.0))
def test_what_the_counter_may_say_scaled_back_is_within_the_window(
    window: int, factor: float
) -> None:
    room = make_budget(Settings(window=window), TARGET, None, factor)
    assert room.limit * factor <= (window - room.reserve) * (1 + 1e-9)


@thorough
@given(st.lists(st.integers(0, 200), max_size=8), st.integers(-50, 900))
def test_large_texts_come_down_to_the_highest_level_that_fits(sizes: list[int], goal: int) -> None:
    level = find_level(sizes, goal)
    assert sum(min(size, level) for size in sizes) <= max(0, goal)
    higher = sum(min(size, level + 1) for size in sizes)
    assert higher > goal or level >= max(sizes, default=0)


@thorough
@given(st.integers(0, 400), st.integers(0, 400), st.integers(0, 400), st.integers(1, 2_000))
def test_room_is_what_a_limit_leaves_beside_a_prompt(
    system: int, library: int, history: int, window: int
) -> None:
    def chain(*parts: tuple[Layer, int]) -> Chain[SegmentLink]:
        links, total = Chain[SegmentLink](), 0
        for layer, tokens in parts:
            total += tokens
            segment = Segment(
                layer=layer, role="system", message="", content=Text(""), source="", digest="",
                tokens=tokens,
            )  # fmt: skip
            links = links.extend([SegmentLink(segment, total, "")])
        return links

    front = chain(("tools", 3), ("L1", system), ("L2", library))
    prompt = Prompt(front=front, history=chain(("L4", history)))
    room = Budget(window=window, reserve=0).beside(prompt, turn=7)
    assert room.free == window - 7 - 3 - system
    assert room.for_history == room.free - library
    assert room.left == room.for_history - history
    assert room.standing == 3 + system + library + history
    assert room.texts(0) == max(0, int(0.5 * room.left), int(0.25 * room.free))
