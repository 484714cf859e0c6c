"""When history is compacted, and what the plan says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.core.compaction.talk import (
    PORT,
    PORT_SIZES,
    answer,
    anything,
    calls,
    exchanges,
    parted,
    results,
    step,
    summary,
    user,
)
from tests.fakes.renderers import WORDS
from tests.strategies import assembler, envelope_of, thorough

from lamina.core.codec import decode
from lamina.core.compaction.compaction_plan import (
    CompactionPlan,
    NoCompaction,
    is_compaction_due,
    is_compaction_near,
    keep_limit,
    plan_compaction,
    reserve_limit,
    summary_limit,
)
from lamina.core.compaction.cuts import find_cuts
from lamina.core.compaction.extractive_summary import extract_plan_summary
from lamina.core.compaction.touched_files import TouchedFiles
from lamina.core.journal import SUMMARY_ID, apply_patch
from lamina.core.values.item import note_id
from lamina.core.values.message import Message
from lamina.core.values.patch import CompactionApply, Patch
from lamina.core.values.settings import Settings
from lamina.errors import InvalidSetting

# -- when ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "reserve", "keep", "most"),
    [
        (200_000, 16_384, 20_000, 2_000),
        (65_536, 16_384, 20_000, 2_000),
        (32_768, 8_192, 10_922, 2_000),
        (4_096, 1_024, 1_365, 682),
        (0, 0, 0, 1),
    ],
)
def test_the_defaults_depend_on_the_window(window: int, reserve: int, keep: int, most: int) -> None:
    settings = Settings()
    assert reserve_limit(settings, window) == reserve
    assert keep_limit(settings, window) == keep
    assert summary_limit(settings, window) == most


def test_settings_override_the_defaults() -> None:
    settings = Settings(compaction_reserve=0, compaction_keep=7, compaction_summary=5)
    assert (reserve_limit(settings, 1_000), keep_limit(settings, 1_000)) == (0, 7)
    assert summary_limit(settings, 1_000) == 5


def test_compaction_is_due_above_the_window_less_the_reserve() -> None:
    assert not is_compaction_due(183_616, Settings(), 200_000)
    assert is_compaction_due(183_617, Settings(), 200_000)
    assert is_compaction_due(991, Settings(compaction_reserve=10), 1_000)
    assert not is_compaction_due(999_999, Settings(compaction="off"), 1_000)


@pytest.mark.parametrize(
    ("history", "sizes", "settings", "near_above"),
    [
        # Turns of 50 tokens: four of them.
        ([user(), answer()] * 3, [20, 30] * 3, Settings(), 800),
        ([user(), answer()] * 3, [20, 30] * 3, Settings(compaction_ahead=1), 950),
        ([user(), answer()] * 3, [20, 30] * 3, Settings(compaction_ahead=0), 1_000),
        # Large turns are reckoned with a quarter of the room at most.
        ([user(), answer()] * 3, [200, 300] * 3, Settings(), 750),
        # What a summary took, and what it stands for, is no turn.
        ([summary("S"), user(), answer()], [900, 10, 15], Settings(), 900),
        ([], [], Settings(), 1_000),
    ],
)
def test_compaction_is_near_where_a_few_more_turns_like_these_would_not_fit(
    history: list[Message], sizes: list[int], settings: Settings, near_above: int
) -> None:
    assert not is_compaction_near(near_above, 1_000, settings, history, sizes)
    assert is_compaction_near(near_above + 1, 1_000, settings, history, sizes)


def test_a_share_that_an_earlier_version_recorded_is_still_read() -> None:
    assert decode(b'{"prune_cold_above":0.7}', Settings).prune_cold_above == 0.7
    assert decode(b"{}", Settings).prune_cold_above is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("compaction", "on"),
        ("compaction_reserve", -1),
        ("compaction_keep", -1),
        ("compaction_summary", -1),
        ("compaction_ahead", -1),
        ("prune_cold_above", 0),
    ],
)
def test_a_compaction_setting_out_of_range_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(InvalidSetting) as error:
        Settings(**{name: value})  # type: ignore[arg-type]
    assert error.value.name == name


# -- where ---------------------------------------------------------------------------------------


def planned(
    messages: list[Message],
    sizes: list[int],
    keep: int,
    *,
    turn_start: int | None = None,
    question: str = "",
    known_files: TouchedFiles = TouchedFiles(),  # noqa: B008
) -> CompactionPlan:
    plan = plan_compaction(
        messages, sizes, keep=keep, summary_tokens=0, turn_start=turn_start, question=question,
        known_files=known_files, trigger="manual",
    )  # fmt: skip
    assert isinstance(plan, CompactionPlan), plan
    return plan


def refused(messages: list[Message], sizes: list[int], keep: int, most: int = 0) -> str:
    plan = plan_compaction(messages, sizes, keep=keep, summary_tokens=most, trigger="manual")
    assert isinstance(plan, NoCompaction)
    return plan.reason


def test_a_cut_prefers_the_start_of_a_turn() -> None:
    talk = [user("one"), answer(), user("two"), answer(), user("three")]
    plan = planned(talk, [100, 100, 100, 100, 100], 450)
    assert (plan.first_kept, plan.dropped, plan.splits_turn) == (2, range(2), False)
    assert (plan.tokens_dropped, plan.tokens_kept, plan.kept_line) == (200, 300, "two")


def test_a_turn_is_cut_if_that_keeps_more_than_twice_as_much() -> None:
    talk = [user("one"), calls("a"), results("a"), answer("R"), user("two")]
    plan = planned(talk, [100, 50, 800, 60, 10], 100)
    assert (plan.first_kept, plan.turn_begin, plan.question) == (3, 0, "one")
    assert planned(talk, [100, 50, 800, 10, 10], 100).first_kept == 4


def test_calls_under_way_stay_whole_whatever_their_size() -> None:
    waiting = [user("one"), answer("R"), user("two"), calls("a", "b")]
    for keep in (0, 50, 899):
        assert planned(waiting, [500, 500, 10, 900], keep, turn_start=2).first_kept == 3
    assert planned(waiting, [500, 500, 10, 900], 910, turn_start=2).first_kept == 2
    half = [*waiting, results("a")]
    for keep in (0, 50, 1_000):
        assert planned(half, [500, 500, 10, 900, 200], keep, turn_start=2).first_kept == 3


def test_the_turn_under_way_may_begin_in_what_stays_or_in_what_goes() -> None:
    stays = planned(PORT, PORT_SIZES, 600, turn_start=4)
    assert (stays.first_kept, stays.turn_begin, stays.question) == (4, None, "")
    goes = planned(PORT, PORT_SIZES, 150, turn_start=4, question="Go on, as typed.")
    assert (goes.first_kept, goes.turn_begin, goes.question) == (9, 4, "Go on, as typed.")
    over = planned(PORT, PORT_SIZES, 150)
    assert (over.first_kept, over.turn_begin) == (9, 4)
    assert over.question == PORT[4].text


def test_a_turn_whose_question_went_before_is_still_known_as_cut() -> None:
    talk = [summary("so far"), calls("a"), results("a"), calls("b"), results("b")]
    plan = planned(talk, [10, 10, 500, 10, 10], 20, turn_start=0, question="typed")
    assert (plan.first_kept, plan.turn_begin, plan.question) == (3, 0, "typed")
    over = planned(talk, [10, 10, 500, 10, 10], 20)
    assert (over.turn_begin, over.question) == (0, "")


def test_a_second_plan_carries_the_summary_of_the_first_and_its_files() -> None:
    talk = [
        user("kept head"), summary("so far"), user("two", note_id("a.md")),
        step("", "1", "edit", path="b.md"), user("three"),
    ]  # fmt: skip
    files = TouchedFiles(read=("b.md", "c.md"), modified=("d.md",))
    plan = planned(talk, [10, 10, 500, 10, 10], 10, known_files=files)
    assert plan.previous_summary == "so far"
    assert plan.files == TouchedFiles(read=("c.md", "a.md"), modified=("d.md", "b.md"))


def test_an_earlier_summary_never_stays_behind_a_new_one() -> None:
    talk = [user("one"), answer(), summary("so far"), user("two"), answer()]
    assert planned(talk, [400, 400, 10, 10, 10], 35).first_kept == 3


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (user("\n# Title\nmore"), "Title"),
        (step("", "1", "grep", q="x"), "(calls grep)"),
        (replace(user("", note_id("a.md")), id="lay:1"), "a.md"),
    ],
)
def test_a_plan_knows_how_the_first_message_that_stays_begins(message: Message, line: str) -> None:
    assert planned([user("one"), message], [900, 9], 9).kept_line == line


# -- when it would not help ----------------------------------------------------------------------


def test_without_anything_to_cut_there_is_no_plan_and_a_sentence_why() -> None:
    assert refused([], [], 10) == "all of history (0 tokens) is within the 10 that stay"
    assert refused([user(), answer()], [5, 5], 10).startswith("all of history (10 tokens)")
    nothing = "there is nothing in front of the latest exchange that could go"
    assert refused([user()], [500], 10) == nothing
    assert refused([calls("a"), results("a")], [50, 500], 10) == nothing
    assert refused([user("old"), summary("so far")], [500, 500], 10) == nothing


def test_what_goes_has_to_be_larger_than_the_summary_and_a_margin() -> None:
    talk = [user("one"), answer(), user("two")]
    assert refused(talk, [100, 164, 10], 10, most=200) == (
        "only 264 tokens could go, which is not enough: the summary that would stand for them "
        "may take 200, and the cut has to free 64 more"
    )
    enough = plan_compaction(talk, [100, 165, 10], keep=10, summary_tokens=200, trigger="overflow")
    assert isinstance(enough, CompactionPlan)
    # At the threshold there is no hurry: it has to be worth the cache.
    early = plan_compaction(talk, [100, 200, 10], keep=10, summary_tokens=200)
    assert isinstance(early, NoCompaction)


# -- for whatever history ------------------------------------------------------------------------

histories = st.one_of(exchanges(), anything())


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Message], list[int], int, int | None]:
    talk = draw(histories)
    if draw(st.booleans()):
        talk.insert(draw(st.integers(0, len(talk))), summary("so far"))
    sizes = draw(st.lists(st.integers(0, 300), min_size=len(talk), max_size=len(talk)))
    starts = [i for i, message in enumerate(talk) if message.role == "user"]
    start = draw(st.sampled_from([None, *starts[-1:]]))
    return talk, sizes, draw(st.integers(0, 600)), start


@thorough
@given(cases(), st.integers(0, 300))
def test_every_plan_is_whole_helps_and_is_always_the_same(
    case: tuple[list[Message], list[int], int, int | None], most: int
) -> None:
    talk, sizes, keep, start = case

    def make() -> CompactionPlan | NoCompaction:
        return plan_compaction(talk, sizes, keep=keep, summary_tokens=most, turn_start=start)

    plan = make()
    assert plan == make()
    if isinstance(plan, NoCompaction):
        assert plan.reason
        return
    cut = plan.first_kept
    assert 0 < cut < len(talk)
    assert not parted(talk, cut)
    assert talk[cut].role != "tool"
    assert (plan.tokens_dropped, plan.tokens_kept) == (sum(sizes[:cut]), sum(sizes[cut:]))
    assert plan.tokens_dropped > most
    assert SUMMARY_ID not in [message.id for message in talk[cut:]]
    summaries = [message.text for message in talk[:cut] if message.id == SUMMARY_ID]
    assert plan.previous_summary == "".join(summaries)
    assert plan.turn_begin is None or plan.turn_begin < cut
    if start is not None:
        assert (plan.turn_begin == start) == (start < cut)
    if plan.tokens_kept > keep:
        later = [index for index in find_cuts(talk) if cut < index < len(talk)]
        assert not any(sum(sizes[index:]) <= keep for index in later)


@thorough
@given(exchanges(), st.integers(0, 400), st.integers(40, 300), st.data())
def test_a_plan_that_is_applied_makes_the_envelope_smaller_and_soon_finds_nothing_more(
    talk: list[Message], keep: int, most: int, data: st.DataObject
) -> None:
    using = assembler()
    long = [data.draw(st.integers(0, 400)) for _ in talk]
    talk = [
        message
        if message.role == "tool"
        else replace(message, blocks=(*user("x" * n).blocks, *message.blocks))
        for message, n in zip(talk, long, strict=True)
    ]
    envelope = envelope_of(*talk)
    start = next((i for i in range(len(talk) - 1, -1, -1) if talk[i].role == "user"), None)
    question = talk[start].text if start is not None else ""
    rounds = 0
    while True:
        messages = envelope.cached.since(0)
        sizes = using.message_sizes(messages, {})
        plan = plan_compaction(
            messages, sizes, keep=keep, summary_tokens=most,
            turn_start=start, question=question, trigger="overflow",
        )  # fmt: skip
        if isinstance(plan, NoCompaction):
            break
        text = extract_plan_summary(plan, messages, plan.summary_tokens, len, WORDS)
        op = CompactionApply(
            first_kept=plan.first_kept, summary=text, read=plan.files.read,
            modified=plan.files.modified, reason="test",
        )  # fmt: skip
        envelope, start = apply_patch(envelope, Patch(ops=(op,)), start)
        assert sum(using.message_sizes(envelope.cached.since(0), {})) < sum(sizes)
        rounds += 1
    assert rounds <= 1
