"""Where history may be cut, and what is said of the part that goes."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from tests.core.compaction.talk import answer, anything, calls, exchanges, parted, results, user
from tests.strategies import count_words, texts, thorough

from lamina.core.compaction.cuts import choose_cut, choose_head, find_cuts, last_turns_start
from lamina.core.compaction.extractive_summary import extract_summary
from lamina.core.compaction.summary_sheet import NOTICE
from lamina.core.values.message import Block, Message, Text, ToolCall


@thorough
@given(exchanges())
def test_no_cut_parts_a_call_from_its_result(messages: list[Message]) -> None:
    cuts = find_cuts(messages)
    assert list(cuts) == sorted(set(cuts))
    for cut in cuts:
        assert 0 <= cut <= len(messages)
        assert not parted(messages, cut)
        assert cut == len(messages) or messages[cut].role != "tool"
    assert {i for i, message in enumerate(messages) if message.role == "user"} <= set(cuts)


@thorough
@given(anything())
def test_no_cut_parts_a_call_from_a_result_that_came_late(messages: list[Message]) -> None:
    for cut in find_cuts(messages):
        assert not parted(messages, cut)


def test_between_questions_and_answers_every_index_is_a_cut() -> None:
    assert find_cuts([]) == (0,)
    assert find_cuts([user(), answer(), user()]) == (0, 1, 2, 3)


def test_calls_hold_a_cut_back_until_all_of_them_are_answered() -> None:
    loop = [user(), calls("a", "b"), results("a"), results("b"), answer()]
    assert find_cuts(loop) == (0, 1, 4, 5)


def test_a_call_that_was_never_answered_does_not_hold_cuts_back_for_ever() -> None:
    assert find_cuts([user(), calls("a"), user(), answer()]) == (0, 1, 2, 3, 4)


sizes_up_to = st.integers(0, 30)


@thorough
@given(exchanges(), st.data(), st.integers(0, 120), st.none() | st.integers(0, 60))
def test_what_a_cut_keeps_is_within_its_limit_and_whole(
    messages: list[Message], data: st.DataObject, keep: int, at_most: int | None
) -> None:
    sizes = data.draw(st.lists(sizes_up_to, min_size=len(messages), max_size=len(messages)))
    cut = choose_cut(messages, sizes, keep, at_most=at_most)
    size = sum(sizes[cut:])
    assert size <= max(keep, at_most or 0)
    assert not parted(messages, cut)
    fitting = [c for c in find_cuts(messages) if c < len(messages) and sum(sizes[c:]) <= keep]
    turns = [c for c in fitting if messages[c].role == "user"]
    if turns:
        assert cut == turns[0], "a whole turn more would have fitted"
    elif fitting:
        assert cut == fitting[0]
    assert cut == choose_cut(messages, sizes, keep, at_most=at_most)


def test_a_cut_prefers_the_start_of_a_turn() -> None:
    messages = [user(), answer(), user(), answer()]
    assert choose_cut(messages, [10, 10, 10, 10], 35) == 2
    assert choose_cut(messages, [10, 10, 10, 10], 40) == 0
    assert choose_cut(messages, [10, 10, 10, 10], 15) == 3
    assert choose_cut(messages, [10, 10, 10, 10], 5) == 4
    assert choose_cut(messages, [10, 10, 10, 10], 5, at_most=10) == 3
    assert choose_cut([], [], 5) == 0


@thorough
@given(exchanges(), st.data(), st.integers(0, 120))
def test_a_head_is_within_its_limit_and_whole(
    messages: list[Message], data: st.DataObject, keep: int
) -> None:
    sizes = data.draw(st.lists(sizes_up_to, min_size=len(messages), max_size=len(messages)))
    head = choose_head(messages, sizes, keep)
    assert sum(sizes[:head]) <= keep
    assert not parted(messages, head)
    longer = [cut for cut in find_cuts(messages) if cut > head]
    assert all(sum(sizes[:cut]) > keep for cut in longer)


def test_a_head_stays_where_an_earlier_cut_left_it_while_it_nearly_fits() -> None:
    messages = [user(), answer(), user(), answer()]
    assert choose_head(messages, [10, 10, 10, 10], 40, known=[2]) == 2
    assert choose_head(messages, [10, 10, 10, 10], 24, known=[3]) == 3
    assert choose_head(messages, [10, 10, 10, 10], 23, known=[3]) == 2


def test_a_head_that_is_far_too_short_is_lengthened() -> None:
    messages = [user(), answer(), user(), answer()]
    assert choose_head(messages, [10, 10, 10, 10], 30, known=[1]) == 3
    assert choose_head(messages, [10, 10, 10, 10], 30, known=[1, 2]) == 2


def test_the_last_turns_begin_with_their_questions() -> None:
    messages = [user(), answer(), user(), calls("a"), results("a"), answer(), user()]
    assert [last_turns_start(messages, turns) for turns in (1, 2, 3, 4)] == [6, 2, 0, 0]
    assert last_turns_start([], 2) == 0


def test_the_last_no_turns_begin_at_the_end() -> None:
    assert last_turns_start([user(), answer()], 0) == 2


# -- the summary ---------------------------------------------------------------------------------

HISTORY = [
    user("\n  How do I install it?\nDetails follow."),
    answer("Run make."),
    user("And on Windows?"),
    Message(role="assistant", blocks=(Text("Let me look."), ToolCall(id="a", name="search"))),
    results("a"),
    answer("x" * 300),
]


def test_a_summary_holds_the_first_line_of_what_was_asked_and_answered() -> None:
    assert extract_summary(HISTORY, 1_000, len).replace("x" * 159, "(159 x)") == snapshot(
        """\
[Earlier messages were removed. What they were about:]
Asked: How do I install it?
Answered: Run make.
Asked: And on Windows?
Answered: Let me look. (called search)
Answered: (159 x)…\
"""
    )


def test_the_latest_lines_come_first_in_line_for_the_room() -> None:
    short = [user(f"question {number}") for number in range(9)]
    summary = extract_summary(short, len(NOTICE) + 2 * len("\nAsked: question 0"), len)
    assert summary == f"{NOTICE}\nAsked: question 7\nAsked: question 8"


def test_a_summary_carries_the_one_before_it_within_its_own_limit() -> None:
    carried = f"{NOTICE}\nAsked: first"
    both = f"{carried}\nAsked: second"
    assert extract_summary([user("second")], len(both), len, carried=carried) == both
    tight = extract_summary([user("second")], len(both) - 1, len, carried=carried)
    assert tight == f"{NOTICE}\nAsked: second"


def test_an_earlier_summary_loses_its_middle_before_it_loses_its_beginning() -> None:
    lines = [f"Asked: question {number}" for number in range(30)]
    carried = "\n".join([NOTICE, *lines])
    summary = extract_summary([user("the latest")] * 40, 600, len, carried=carried)
    assert len(summary) <= 600
    assert summary.startswith(f"{NOTICE}\nAsked: question 0\n")
    assert "\n[... shortened ...]\n" in summary
    assert "Asked: question 29\nAsked: the latest" in summary
    assert "question 15" not in summary
    # Nothing is cut within a line.
    known = {NOTICE, "[... shortened ...]", "Asked: the latest", *lines}
    assert set(summary.splitlines()) <= known


texty: st.SearchStrategy[Block] = texts.map(Text)
spoken = st.lists(
    st.builds(
        Message,
        role=st.sampled_from(["user", "assistant", "tool"]),
        blocks=st.lists(texty, max_size=2).map(tuple),
    ),
    max_size=6,
)


@pytest.mark.parametrize("count", [len, count_words])
def test_a_summary_is_within_its_limit_and_always_the_same(count: Callable[[str], int]) -> None:
    @thorough
    @given(
        spoken,
        st.integers(count(NOTICE), 200),
        st.sampled_from(["", NOTICE, "short", f"{NOTICE}\n" + "an earlier line\n" * 60]),
    )
    def check(messages: list[Message], limit: int, carried: str) -> None:
        summary = extract_summary(messages, limit, count, carried=carried)
        assert count(summary) <= limit
        assert summary == extract_summary(messages, limit, count, carried=carried)
        assert summary.startswith((NOTICE, "short"))
        assert len(summary.splitlines()) <= max(1, len(carried.splitlines())) + len(messages)

    check()


def test_a_limit_below_the_notice_still_says_that_something_is_gone() -> None:
    assert extract_summary(HISTORY, 1, len) == NOTICE
