"""What became of rules, references and tools: counted from journals alone."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from msgspec.structs import replace
from tests.fakes.clock import FakeClock
from tests.fakes.providers import ProviderFake, ProvidersFake, Step, calling, saying
from tests.fakes.replies import openai_reply
from tests.fakes.selection import SelectorFake, guide, open_guided
from tests.fakes.sessions import run
from tests.fakes.store import FakeStore
from tests.fakes.tools import ToolHostFake, tool

from lamina.core.audit.item_usage import (
    InForce,
    ItemUse,
    TurnUse,
    agent_of,
    read_turns,
    suggest,
    sum_use,
)
from lamina.core.journal import Journal
from lamina.core.values.entry import MessageEntry
from lamina.core.values.item import Include, ItemId
from lamina.core.values.selection import SelectedItem
from lamina.core.values.settings import Settings
from lamina.engine.runners.runner import AgentRunner
from lamina.engine.session.session import Session

RULE, REFERENCE = ItemId("rule:house-style"), ItemId("reference:glossary")
READ, WRITE = ItemId("tool:fake/read"), ItemId("tool:fake/write")


async def talk(session: Session, *answers: str, question: str = "Q") -> None:
    for answer in answers:
        turn = await session.prepare(question)
        await turn.commit(openai_reply(answer))


def journal_of(session: Session) -> Journal:
    return Journal(entries={entry.id: entry for entry in session.entries}, leaf=session.state.leaf)


def turns_of(session: Session, **given: Any) -> tuple[TurnUse, ...]:
    return read_turns(journal_of(session), **given)


def use_of(turns: Sequence[TurnUse], item: ItemId) -> ItemUse:
    (found,) = (use for use in sum_use("pilot", turns).items if use.item == item)
    return found


# -- what is counted -------------------------------------------------------------------------------


def test_items_are_counted_by_mode_with_their_scores() -> None:
    async def body() -> None:
        selector = SelectorFake(
            guide("rule", "house-style"),
            guide("reference", "glossary", "agent"),
            guide("rule", "tone", "manual"),
            finds={
                "term": [SelectedItem(item=REFERENCE, score=0.8)],
                "word": [SelectedItem(item=REFERENCE, score=0.6)],
            },
        )
        session = await open_guided(selector)
        await talk(session, "See the glossary.", question="Which term?")
        await session.add("rule:tone")
        await talk(session, "No.", question="Which word?")
        await talk(session, "By house-style: no.", question="Else?")
        assert agent_of(journal_of(session)) == "pilot"
        summed = sum_use("pilot", turns_of(session))
        assert (summed.sessions, summed.turns) == (1, 3)
        shown = [
            (u.item, u.turns, u.always, u.manual, u.agent, u.chosen, u.score, u.used, u.since)
            for u in summed.items
        ]
        assert shown == snapshot(
            [
                ("rule:house-style", 3, 3, 0, 0, 0, None, 1, 3),
                ("rule:tone", 2, 0, 2, 0, 0, None, 0, 2),
                ("reference:glossary", 2, 0, 0, 2, 2, 0.7, 1, 3),
            ]
        )

    run(body())


@pytest.mark.parametrize(
    ("answer", "used"),
    [
        ("As the house-style says.", True),
        ("HOUSE-STYLE!", True),
        ("So it is [house-style].", True),
        ("So it is.[^house-style]", True),
        ("I took @rule:house-style.", True),
        ("Our house-styles differ.", False),
        ("An in-house-style matter.", False),
        ("The house has style.", False),
        ("", False),
    ],
)
def test_a_rule_is_used_if_the_answer_names_it_as_a_whole_word(answer: str, used: bool) -> None:
    async def body() -> None:
        session = await open_guided(SelectorFake(guide("rule", "house-style")))
        await talk(session, answer or " ")
        assert use_of(turns_of(session), RULE).used == used

    run(body())


@pytest.mark.parametrize(
    ("answer", "used"),
    [
        ("A pier is a place.", False),
        ("As in [A].", True),
        ("As told.[^a]", True),
        ("rule:A says so", True),
        ("rule:Also", False),
    ],
)
def test_a_name_of_one_letter_has_to_be_cited(answer: str, used: bool) -> None:
    async def body() -> None:
        session = await open_guided(SelectorFake(guide("rule", "A")))
        await talk(session, answer)
        assert use_of(turns_of(session), ItemId("rule:A")).used == used

    run(body())


async def act(
    selector: SelectorFake,
    *scripts: Sequence[Step],
    questions: Sequence[str] = ("Q",),
    settings: Settings | None = None,
) -> Session:
    """A session in which a model calls tools that are found by search."""
    session = await open_guided(selector, settings=settings or Settings(whole_pool_tokens=0))
    tools = [replace(tool(name), include="agent") for name in ("read", "write")]
    runner = AgentRunner(session, ProvidersFake(ProviderFake(*scripts)), ToolHostFake(*tools))
    async with runner:
        for question in questions:
            await runner.run(question)
    return session


def test_a_tool_is_used_when_it_is_called_and_a_turn_counts_once() -> None:
    async def body() -> None:
        found = [SelectedItem(item=READ, score=0.5), SelectedItem(item=WRITE, score=0.4)]
        session = await act(
            SelectorFake(finds={"Q": found}),
            calling(("c1", "read", {}), ("c2", "read", {})),
            calling(("c3", "read", {})),
            saying("I shall not write."),
        )
        turns = turns_of(session)
        assert len(turns) == 1
        read, write = (use_of(turns, item) for item in (READ, WRITE))
        assert (read.turns, read.agent, read.chosen, read.score, read.used) == (1, 1, 1, 0.5, 1)
        assert (write.turns, write.chosen, write.used) == (1, 1, 0)

    run(body())


def test_a_tool_that_is_described_in_the_conversation_is_used_through_another() -> None:
    async def body() -> None:
        selector = SelectorFake(
            finds={
                "first": [SelectedItem(item=READ)],
                "second": [SelectedItem(item=WRITE, score=0.9)],
            }
        )
        asked = {"name": "write", "arguments": {"path": "a"}}
        session = await act(
            selector,
            saying("1"),
            calling(("c1", "use_tool", asked)),
            saying("2"),
            calling(("c2", "use_tool", asked)),
            saying("3"),
            questions=("first", "second", "third"),
            settings=Settings(tool_joins=0, whole_pool_tokens=0),
        )
        turns = turns_of(session)
        write = use_of(turns, WRITE)
        # Once it was described for the question, once it was only still there.
        assert (write.turns, write.agent, write.chosen, write.used) == (2, 2, 1, 2)
        read = use_of(turns, READ)
        # It stays in the list; it was chosen for the first question alone.
        assert (read.turns, read.chosen, read.used) == (3, 1, 0)
        assert "use_tool" not in {use.item for use in sum_use("", turns).items}

    run(body())


def test_a_question_that_was_never_answered_does_not_count() -> None:
    async def body() -> None:
        session = await open_guided(SelectorFake(guide("rule", "house-style")))
        await session.prepare("Q")
        assert turns_of(session) == ()
        await talk(session, "house-style")
        assert len(turns_of(session)) == 1

    run(body())


def test_every_branch_counts_for_it_was_answered() -> None:
    async def body() -> None:
        session = await open_guided(SelectorFake(guide("rule", "house-style")))
        await talk(session, "house-style", "No.")
        messages = [entry for entry in session.path if isinstance(entry, MessageEntry)]
        await session.navigate(messages[2].id)
        await talk(session, "house-style again")
        use = use_of(turns_of(session), RULE)
        assert (use.turns, use.used) == (3, 2)

    run(body())


def test_what_a_fork_took_over_counts_once_unless_its_origin_is_gone() -> None:
    async def body() -> None:
        clock, store = FakeClock(), FakeStore()
        selector = SelectorFake(guide("rule", "house-style"))
        session = await open_guided(selector, clock=clock, store=store)
        await talk(session, "house-style")
        clock.pass_by(60)
        fork = await session.fork("other")
        clock.pass_by(60)
        await talk(fork, "house-style")
        assert [turn.session for turn in turns_of(fork)] == ["other"]
        assert len(turns_of(fork, inherited=True)) == 2

    run(body())


def test_what_was_missing_or_taken_out_is_not_in_force() -> None:
    async def body() -> None:
        selector = SelectorFake(guide("rule", "house-style"), guide("rule", "tone"))
        session = await open_guided(selector)
        await talk(session, "house-style")
        selector.source.listed = [guide("rule", "tone")]
        await session.remove("rule:tone")
        await talk(session, "house-style and tone")
        turns = turns_of(session)
        assert [sorted(turn.in_force) for turn in turns] == [["rule:house-style", "rule:tone"], []]
        assert turns[1].used == frozenset()

    run(body())


# -- what is suggested -----------------------------------------------------------------------------


def turn(at: int, include: Include, *, used: bool, chosen: bool = False) -> TurnUse:
    return TurnUse(
        session=f"s{at % 2}",
        at=float(at),
        in_force={RULE: InForce(include=include, chosen=chosen)},
        used=frozenset({RULE} if used else ()),
    )


def other(at: int) -> TurnUse:
    return TurnUse(session="s", at=float(at), in_force={})


def test_what_is_always_in_and_never_used_is_said_to_be() -> None:
    turns = [turn(at, "always", used=False) for at in range(9)]
    assert use_of(turns, RULE).suggestion == ""
    turns.append(turn(9, "agent", used=False, chosen=True))
    assert use_of(turns, RULE).suggestion == snapshot(
        "never named in an answer, though it was always in or chosen in 10 turns: if it does not "
        "shape answers either, make it manual, or take it out"
    )
    tool_use = ItemUse(item=READ, chosen=12, agent=12, turns=12, since=12)
    assert suggest(tool_use) == snapshot(
        "never called, though it was always in or chosen in 12 turns: make it manual, or take it "
        "out"
    )


def test_what_is_only_kept_is_not_held_against_it() -> None:
    turns = [turn(at, "agent", used=False) for at in range(20)]
    assert use_of(turns, RULE).suggestion == ""


def test_what_is_needed_in_most_turns_had_better_be_always_in() -> None:
    turns = [turn(at, "agent", used=at < 8, chosen=True) for at in range(10)]
    assert use_of(turns, RULE).suggestion == snapshot("needed in 8 of 10 turns: make it always")
    assert use_of([*turns, other(10)], RULE).suggestion == ""
    # Turns before there was such a rule say nothing of it.
    assert use_of([*map(other, range(-20, 0)), *turns], RULE).suggestion != ""


def test_what_is_always_in_already_needs_no_word() -> None:
    assert use_of([turn(at, "always", used=True) for at in range(30)], RULE).suggestion == ""


def test_what_is_added_by_hand_again_and_again_had_better_be_always_in() -> None:
    turns = [turn(at, "manual", used=False) for at in range(12)]
    assert use_of(turns, RULE).suggestion == snapshot(
        "added by hand in 12 of 12 turns: make it always"
    )
    assert use_of(turns[:9], RULE).suggestion == ""


turns_drawn = st.lists(
    st.builds(
        turn,
        st.integers(0, 50),
        st.sampled_from(["always", "manual", "agent"]),
        used=st.booleans(),
        chosen=st.booleans(),
    ),
    min_size=1,
)


@given(turns_drawn)
def test_counts_add_up_in_any_order(turns: list[TurnUse]) -> None:
    use = use_of(turns, RULE)
    assert use.turns == use.always + use.manual + use.agent == use.since == len(turns)
    assert use.needed <= use.used <= use.turns
    assert use.chosen <= use.turns
    assert sum_use("pilot", reversed(turns)) == sum_use("pilot", turns)
