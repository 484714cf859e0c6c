"""Two prompts, compared to the byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.doctor.doctor_requests import prompt

from lamina.doctor.observed_request import PromptPart, RecordedPrompt
from lamina.doctor.prompt_comparison import Lineage, compare_prompts, find_volatile, judge_markers


def test_what_is_only_appended_is_no_change() -> None:
    change = compare_prompts(prompt("one"), prompt("one", "two", "three"))
    assert change.cause is None
    assert change.shared == change.size


@pytest.mark.parametrize(
    ("before", "after", "cause", "place", "offset"),
    [
        (prompt("q", system="At 10:00:07."), prompt("q", "a", system="At 10:00:41."),
         "clock", "system", 9),
        (prompt("q", system="Be kind."), prompt("q", system="Be brief."),
         "system_changed", "system", 3),
        (prompt("q"), prompt("q", tools=("b", "a")), "tools_reordered", "tools[0]", 9),
        (prompt("q"), prompt("q", tools=("a", "b", "c")), "tools_changed", "tools[2]", 0),
        (prompt("q"), prompt("q", tools=("a", "x")), "tools_changed", "tools[1]", 9),
        (prompt("q", "a", "r"), prompt("Q", "a", "r"), "first_message", "messages[0]", 0),
        (prompt("q", "a", "result", "b", "s"), prompt("q", "a", "cleared", "b", "s", "c"),
         "history_edited", "messages[2]", 0),
        (prompt("q", "a b\n"), prompt("q", "a b", "r"), "whitespace", "messages[1]", 3),
        (prompt("q", '!call {"a":1,"b":2}'), prompt("q", '!call {"b":2,"a":1}'), "key_order",
         "messages[1]", 2),
        (prompt("q", "!thinking hm", "r"), prompt("q", "done", "r"), "thinking", "messages[1]", 0),
        (prompt("!image AAAA", "a"), prompt("!image BBBB", "a", "r"), "image", "messages[0]", 0),
        (prompt("1", "2", "3", "4", "5"), prompt("3", "4", "5", "6", "7"), "trimmed",
         "messages[0]", 0),
        (prompt(*("long message " * 9 for _ in range(6)), "end"), prompt("Summary.", "x", "end"),
         "compaction", "messages[0]", 0),
        (prompt("q", "a", "r"), prompt("q"), "rewound", "messages[1]", None),
    ],
)  # fmt: skip
def test_what_stands_at_the_first_difference_says_what_happened(
    before: RecordedPrompt, after: RecordedPrompt, cause: str, place: str, offset: int | None
) -> None:
    change = compare_prompts(before, after)
    assert (change.cause, change.place, change.offset) == (cause, place, offset)


def test_a_parameter_counts_before_a_change_behind_it_and_after_one_in_front() -> None:
    low = replace(prompt("q", "a"), parameters=(("effort", "low"),))
    high = replace(prompt("q", "b"), parameters=(("effort", "high"),))
    assert compare_prompts(low, high).cause == "parameter"
    moved = replace(prompt("q", "b", system="T"), parameters=(("effort", "high"),))
    assert compare_prompts(low, moved).cause == "system_changed"


@given(st.lists(st.text(max_size=9), min_size=1, max_size=6), st.text(min_size=1, max_size=9))
def test_a_difference_is_found_where_it_is(messages: list[str], added: str) -> None:
    plain = [f"{index}{message}" for index, message in enumerate(messages)]
    last = len(plain) - 1
    after = [*plain[:last], plain[last] + added]
    change = compare_prompts(prompt(*plain), prompt(*after))
    if change.cause is None:
        return
    assert change.place == f"messages[{last}]"
    assert change.offset == len(plain[last].encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        ("id 3f9a0c12-0000-4000-8000-000000000001", "id 3f9a0c12-0000-4000-8000-000000000002",
         "a uuid"),
        ("on 2026-11-01.", "on 2026-11-02.", "a date"),
        ("Nov 3, 2026", "Nov 4, 2026", "a date"),
        ("at 09:30", "at 09:31", "a time"),
        ("turn 7 of", "turn 8 of", "a counter"),
        ("be kind", "be rude", ""),
    ],
)  # fmt: skip
def test_what_is_made_anew_is_told_by_both_sides(before: str, after: str, name: str) -> None:
    pairs = zip(before, after, strict=False)
    offset = next(place for place, (one, other) in enumerate(pairs) if one != other)
    assert find_volatile(before.encode(), after.encode(), offset) == name


def _marked(count: int, *marks: int) -> RecordedPrompt:
    parts = tuple(
        PromptPart(
            layer="messages", place=f"messages[{index}]", kind="text", role="user", message=index,
            data=b"x", marked=index in marks,
        )
        for index in range(count)
    )  # fmt: skip
    return RecordedPrompt(parts=parts, has_markers=True)


@pytest.mark.parametrize(
    ("before", "after", "cause"),
    [
        (_marked(3, 2), _marked(5, 4), None),
        (_marked(3), _marked(5, 4), "marker"),
        (_marked(5, 4), _marked(7, 2), "marker"),
        (_marked(3, 2), _marked(22, 21), None),
        (_marked(3, 2), _marked(23, 22), "look_back"),
        (_marked(3, 2), _marked(23, 10, 22), None),
    ],
)
def test_markers_reach_twenty_blocks_back(
    before: RecordedPrompt, after: RecordedPrompt, cause: str | None
) -> None:
    assert judge_markers(compare_prompts(before, after), before, after).cause == cause


def test_interleaved_conversations_are_told_apart_by_what_was_said() -> None:
    lineage = Lineage()
    assert lineage.add("a1", prompt("sail", "yes")) is None
    assert lineage.add("b1", prompt("row", "no")) is None
    for id, before, messages in (
        ("a2", "a1", ("sail", "yes", "where", "here")),
        ("b2", "b1", ("row", "no", "why", "so")),
        ("a3", "a2", ("sail", "yes", "where", "here", "when", "now")),
        ("b3", "b2", ("ROW", "no", "why", "so", "then", "hm")),
    ):
        found = lineage.add(id, prompt(*messages))
        assert found is not None
        assert found.id == before


def test_a_question_asked_beside_another_goes_on_from_what_both_share() -> None:
    lineage = Lineage()
    lineage.add("one", prompt("brief"))
    lineage.add("north", prompt("brief", "ready", "north"))
    found = lineage.add("south", prompt("brief", "ready", "south"))
    assert found is not None
    assert found.id == "one"


def test_a_lineage_keeps_no_more_prompts_than_run_at_once() -> None:
    lineage = Lineage()
    for number in range(200):
        lineage.add(str(number), prompt(f"talk {number}"))
    assert len(lineage.known) == 32
