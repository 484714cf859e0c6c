"""Rules and references: named as a set in force, whenever the model would not know otherwise."""

import pytest
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import (
    World,
    all_text,
    library_of,
    rule,
    run,
    system_of,
    talk,
    user_of,
)

from lamina.core.values.item import Item, ItemId
from lamina.core.values.settings import Promotion
from lamina.errors import UsageError

TONE, UNITS = rule("tone", "Be brief."), rule("units", "Use metres.")
TERMS = Item(id=ItemId("reference:terms"), content="NM: nautical mile")
SENTENCE = (
    "Rules and references apply only while the latest list of those in force names them. "
    "Ignore any that it does not name."
)
IN_FORCE = "Rules and references in force from here on:\n"
NONE = "No rules or references are in force from here on."
both = pytest.mark.parametrize("promotion", ["lazy", "eager"])


@both
def test_always_rules_stand_in_the_library_from_the_first_request(promotion: Promotion) -> None:
    async def body() -> None:
        session = await World().open(system="S", always=[TONE, TERMS, UNITS], promotion=promotion)
        turn = await talk(session, "Q1")
        assert library_of(session) == ["terms", "tone", "units"]
        assert system_of(turn).startswith(f"S\n\n{SENTENCE}\n\n## Context Library\n\n")
        assert user_of(turn) == (
            f"{IN_FORCE}- terms\n- tone\n- units\n\n---\n\n[User query]:\n\nQ1"
        )

    run(body())


def test_in_lazy_an_unchanged_set_is_not_named_again() -> None:
    async def body() -> None:
        session = await World().open(always=[TONE])
        await talk(session, "Q1")
        assert user_of(await session.prepare("Q2")) == "Q2"

    run(body())


@both
def test_the_rules_in_force_are_named_somewhere_in_every_request(promotion: Promotion) -> None:
    async def body() -> None:
        session = await World().open(always=[TONE], promotion=promotion)
        for number in range(3):
            turn = await talk(session, f"Q{number}")
            assert f"{IN_FORCE}- tone" in all_text(turn)

    run(body())


@both
def test_the_rules_in_force_are_named_again_after_a_boundary(promotion: Promotion) -> None:
    async def body() -> None:
        world = World()
        session = await world.open(always=[TONE], promotion=promotion)
        await talk(session, "Q1")
        world.clock.pass_by(301)
        turn = await session.prepare("Q2")
        # L1 says that what the latest list does not name does not apply, and the first is gone.
        assert f"{IN_FORCE}- tone" in all_text(turn)

    run(body())


def test_the_rules_in_force_are_named_again_after_a_prune() -> None:
    async def body() -> None:
        session = await World().open(always=[TONE], window=400, output_reserve=100)
        for number in range(12):
            turn = await talk(session, f"Q{number}", answer="word " * 40)
            assert f"{IN_FORCE}- tone" in all_text(turn)

    run(body())


@both
def test_the_rules_in_force_stay_named_while_a_long_turn_goes_on(promotion: Promotion) -> None:
    async def body() -> None:
        session = await World().open(
            always=[TONE], window=500, output_reserve=100, promotion=promotion
        )
        turn = await session.prepare("Q")
        for number in range(12):
            turn = await turn.commit(openai_reply(None, calls=[(f"c{number}", "find")]))
            turn = await turn.resume({f"c{number}": "word " * 40})
            assert f"{IN_FORCE}- tone" in all_text(turn)

    run(body())


def test_a_pinned_rule_is_in_force_with_every_turn() -> None:
    async def body() -> None:
        session = await World().open()
        await session.pin(TONE)
        for number in range(3):
            assert f"{IN_FORCE}- tone" in all_text(await talk(session, f"Q{number}"))
        await session.unpin("tone")
        assert NONE in user_of(await session.prepare("Q"))

    run(body())


def test_a_rule_that_is_no_longer_attached_is_no_longer_in_force() -> None:
    async def body() -> None:
        session = await World().open()
        await talk(session, "Q1", TONE, UNITS)
        second = await talk(session, "Q2", UNITS)
        assert user_of(second) == f"{IN_FORCE}- units\n\n---\n\n[User query]:\n\nQ2"
        assert user_of(await talk(session, "Q3")) == f"{NONE}\n\n---\n\n[User query]:\n\nQ3"
        assert user_of(await session.prepare("Q4")) == "Q4"

    run(body())


def test_a_rule_that_changes_is_sent_once_more() -> None:
    async def body() -> None:
        session = await World().open()
        await talk(session, "Q1", TONE)
        turn = await session.prepare("Q2", attach=[rule("tone", "Be kind.")])
        assert "replaces the one above:\n- tone" in user_of(turn)
        assert "Rule: Be kind." in user_of(turn)

    run(body())


def test_rules_that_come_into_play_later_explain_themselves_in_l1_with_a_reason() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        await talk(session, "Q1")
        assert SENTENCE not in all_text(await talk(session, "Q2"))
        turn = await session.prepare("Q3", attach=[TONE])
        assert system_of(turn) == f"S\n\n{SENTENCE}"
        assert turn.context.agreement.broke is not None
        assert "rules" in turn.context.agreement.broke.reason

    run(body())


def test_an_empty_message_with_nothing_new_to_say_is_refused() -> None:
    async def body() -> None:
        session = await World().open(always=[TONE])
        await talk(session, "Q1")
        entries = session.entries
        with pytest.raises(UsageError, match="nothing to send"):
            await session.prepare("  ")
        assert session.entries == entries

    run(body())
