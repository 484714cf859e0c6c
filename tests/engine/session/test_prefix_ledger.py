"""The prefix ledger through a session: nothing moves unseen, and replies say what was found."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.fakes.book import OTHER, SMALL, FakeBook
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, all_text, note, placed, run, talk, words

from lamina.core.values.envelope import LaidItem, SystemPart
from lamina.core.values.item import note_id
from lamina.core.values.message import Message, Text, ToolDefinition
from lamina.core.values.patch import (
    CompactionApply,
    ItemLay,
    LibraryConsolidate,
    MessagesCachedReplace,
    OptionsSet,
    PatchOp,
    ResultsReplace,
    SystemPartRemove,
    SystemPartSet,
    SystemPartsReplace,
    ToolsRemove,
    ToolsReplace,
)
from lamina.core.values.settings import CacheRules
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Reply
from lamina.engine.session.session import Session
from lamina.errors import InvalidPatch


def said(text: str, name: str = "x") -> Message:
    return Message(role="user", blocks=(Text(text),), id=name)


BLANK = "  \n"
MOVING: tuple[PatchOp, ...] = (
    SystemPartSet(name="system", text="T", reason=BLANK),
    SystemPartRemove(name="system", reason=BLANK),
    SystemPartsReplace(parts=(SystemPart(name="system", text="T"),), reason=BLANK),
    ToolsReplace(tools=(ToolDefinition(name="other"),), reason=BLANK),
    ToolsRemove(names=("find",), reason=BLANK),
    MessagesCachedReplace(messages=(), reason=BLANK),
    ResultsReplace(message="m", results=(), reason=BLANK),
    CompactionApply(first_kept=1, summary="short", reason=BLANK),
    LibraryConsolidate(items=(), reason=BLANK),
)


@pytest.mark.parametrize("op", MOVING, ids=lambda op: str(op.__struct_config__.tag))
def test_moving_bytes_without_a_reason_is_impossible(op: PatchOp) -> None:
    async def body() -> None:
        session = await World().open(system="S", tools=[ToolDefinition(name="find")])
        await talk(session, "Q1", note("a.md", "AAA"))
        state, entries = session.state, session.entries
        harmless = SystemPartSet(name="memory", text="M", reason="a reason")
        with pytest.raises(InvalidPatch, match="non-blank reason") as caught:
            await session.apply("test", harmless, op)
        assert caught.value.op == str(op.__struct_config__.tag)
        assert session.state is state
        assert session.entries == entries

    run(body())


WRONG: tuple[PatchOp, ...] = (
    SystemPartSet(name="system", text=None, reason="why"),  # type: ignore[arg-type]
    ToolsRemove(names=(3,), reason="why"),  # type: ignore[arg-type]
    MessagesCachedReplace(messages=({"role": "user"},), reason="why"),  # type: ignore[arg-type]
    ResultsReplace(message="m", results=({"text": 1},), reason="why"),  # type: ignore[arg-type]
)


@pytest.mark.parametrize("op", WRONG, ids=lambda op: str(op.__struct_config__.tag))
def test_what_could_not_be_read_back_is_not_written(op: PatchOp) -> None:
    async def body() -> None:
        session = await World().open(system="S", tools=[ToolDefinition(name="find")])
        await talk(session, "Q1")
        state, entries = session.state, session.entries
        with pytest.raises(InvalidPatch) as caught:
            await session.apply("test", op)
        assert caught.value.op == str(op.__struct_config__.tag)
        assert session.state is state
        assert session.entries == entries

    run(body())


async def three_turns(**given: Any) -> Session:
    session = await World().open(system="S", **given)
    for number in range(3):
        await talk(session, f"Q{number}", answer=f"A{number}")
    return session


def test_tampering_with_history_is_reported_at_its_layer_and_place() -> None:
    async def body() -> None:
        session = await three_turns()
        messages = session.envelope.cached.since(0)
        tampered = (*messages[:2], said("Q1, tampered", messages[2].id), *messages[3:])
        await session.apply(
            "hook.redact", MessagesCachedReplace(messages=tampered, reason="redacted")
        )
        broke = (await session.prepare("Q3")).context.agreement.broke
        assert broke is not None
        assert (broke.layer, broke.segment, broke.reason) == ("L4", 3, "redacted")
        assert broke.source == f"message:{messages[2].id}"

    run(body())


def test_a_patch_of_the_last_answer_only_breaks_nothing_that_was_sent() -> None:
    async def body() -> None:
        session = await three_turns()
        messages = session.envelope.cached.since(0)
        tampered = (*messages[:-1], replace(messages[-1], blocks=(Text("mended"),)))
        await session.apply("hook.mend", MessagesCachedReplace(messages=tampered, reason="mended"))
        turn = await session.prepare("Q3")
        assert turn.context.agreement.broke is None
        assert "mended" in all_text(turn)

    run(body())


def test_several_reasons_are_all_told() -> None:
    async def body() -> None:
        session = await three_turns()
        await session.set_system("system", "T", reason="one")
        await session.set_system("memory", "M", reason="two")
        broke = (await session.prepare("Q")).context.agreement.broke
        assert broke is not None
        assert "one" in broke.reason
        assert "two" in broke.reason

    run(body())


def test_a_reason_is_used_up_by_the_request_that_it_explains() -> None:
    async def body() -> None:
        session = await three_turns()
        await session.set_system("system", "T", reason="once")
        await talk(session, "Q3")
        assert session.state.requests.reasons == ()
        assert (await session.prepare("Q4")).context.agreement.broke is None

    run(body())


def test_a_reason_stays_while_the_request_it_explains_was_not_answered() -> None:
    async def body() -> None:
        session = await three_turns()
        await session.set_system("system", "T", reason="once")
        await session.prepare("Q3")
        broke = (await session.prepare("Q3 again")).context.agreement.broke
        assert broke is not None
        assert broke.reason == "once"

    run(body())


def test_options_do_not_stand_in_the_prefix() -> None:
    async def body() -> None:
        session = await three_turns()
        await session.apply("test", OptionsSet(temperature=0.0, max_tokens=50))
        turn = await session.prepare("Q")
        assert turn.context.agreement.broke is None
        assert turn.request()["temperature"] == 0.0
        assert turn.context.fit.reserve == 50

    run(body())


@pytest.mark.parametrize(
    "op",
    [
        ItemLay(item=note_id("unknown.md"), version="v"),
        LibraryConsolidate(
            items=(LaidItem(item=note_id("unknown.md"), version="v"),), reason="why not"
        ),
    ],
    ids=["item_lay", "library_consolidate"],
)
def test_a_patch_that_names_an_unknown_item_is_refused_and_the_session_lives_on(
    op: PatchOp,
) -> None:
    async def body() -> None:
        session = await World().open()
        with pytest.raises(InvalidPatch, match=r"unknown\.md"):
            await session.apply("test", op)
        assert (await talk(session)).answer == "A"

    run(body())


def test_whatever_removes_a_block_makes_its_item_new_again() -> None:
    async def body() -> None:
        session = await World().open()
        a = note("a.md", "AAA")
        await talk(session, "Q1", a)
        await session.apply("test", MessagesCachedReplace(messages=(said("short"),), reason="cut"))
        turn = await session.prepare("Q2", attach=[a])
        assert placed(turn) == {"a.md": "message"}

    run(body())


# -- verdicts ------------------------------------------------------------------------------------

RULES = CacheRules(minimum=100, step=10, lifetime_s=300.0)


async def caching(size: int) -> tuple[World, Session, int]:
    """A session with one request of about `size` tokens behind it, and how large it was."""
    world = World()
    world.book = FakeBook(replace(SMALL, cache=RULES), replace(OTHER, cache=RULES))
    session = await world.open()
    turn = await session.prepare(words(size))
    answered = await turn.commit(openai_reply("A", input=turn.prompt.tokens, cached=0))
    assert answered.verdict is not None
    assert answered.verdict.meaning == "nothing_sent_before"
    return world, session, turn.prompt.tokens


async def judge(
    session: Session, cached: int | None, target: str | None = None
) -> tuple[str, int, int]:
    turn = await session.prepare("Q", target=target)
    answered = await turn.commit(openai_reply("A", input=turn.prompt.tokens, cached=cached))
    assert answered.verdict is not None
    return answered.verdict.meaning, answered.verdict.expected, answered.verdict.reported


def test_a_prefix_that_was_found_is_as_expected() -> None:
    async def body() -> None:
        _, session, size = await caching(996)
        assert await judge(session, size) == ("as_expected", 1_000, 1_000)

    run(body())


def test_a_prefix_below_the_minimum_is_not_expected() -> None:
    async def body() -> None:
        _, session, _ = await caching(50)
        assert await judge(session, 0) == ("below_minimum", 0, 0)

    run(body())


def test_a_prefix_older_than_its_lifetime_is_not_expected() -> None:
    async def body() -> None:
        world, session, _ = await caching(996)
        world.clock.pass_by(301)
        assert await judge(session, 0) == ("lifetime_passed", 0, 0)

    run(body())


def test_a_prefix_that_should_have_been_found_met_another_machine() -> None:
    async def body() -> None:
        world, session, _ = await caching(996)
        world.clock.pass_by(5)
        assert await judge(session, 0) == ("routed_elsewhere", 1_000, 0)

    run(body())


def test_a_provider_that_says_nothing_of_its_cache_is_not_judged() -> None:
    async def body() -> None:
        _, session, _ = await caching(996)
        assert (await judge(session, None))[0] == "not_reported"

    run(body())


def test_another_model_has_a_cache_of_its_own() -> None:
    async def body() -> None:
        _, session, _ = await caching(996)
        assert await judge(session, 0, target=OTHER.name) == ("model_changed", 0, 0)

    run(body())


def test_a_prefix_that_was_moved_is_expected_up_to_there() -> None:
    async def body() -> None:
        _, session, _ = await caching(996)
        await session.set_system("system", "S", reason="a system prompt at last")
        assert await judge(session, 0) == ("prefix_moved", 0, 0)

    run(body())


def test_a_cache_that_another_session_filled_is_more_than_expected() -> None:
    async def body() -> None:
        session = await World().open()
        turn = await session.prepare(words(500))
        answered = await turn.commit(openai_reply("A", input=504, cached=400))
        assert answered.verdict is not None
        assert answered.verdict.meaning == "more_than_expected"

    run(body())


def test_expectations_are_scaled_to_what_the_provider_counts() -> None:
    async def body() -> None:
        _, session, size = await caching(996)
        turn = await session.prepare("Q")
        counted = turn.prompt.tokens * 2
        answered = await turn.commit(openai_reply("A", input=counted, cached=size * 2))
        assert answered.verdict is not None
        assert (answered.verdict.meaning, answered.verdict.expected) == ("as_expected", 2_000)

    run(body())


def test_a_verdict_is_kept_in_the_journal_with_usage() -> None:
    async def body() -> None:
        world, session, size = await caching(996)
        await judge(session, size)
        last = list((await world.store.read(session.id)).entries.values())[-1]
        assert getattr(last, "verdict", None) is not None
        assert getattr(last, "usage", Usage()).cached == 1_000

    run(body())


def test_a_reply_in_our_own_values_is_taken_as_it_is() -> None:
    async def body() -> None:
        session = await World().open()
        turn = await session.prepare("Q")
        reply = Reply(blocks=(Text("A"),), usage=Usage(cache_reported=False), stop="end")
        answered = await turn.commit(reply)
        assert (answered.answer, answered.stop_reason, answered.usage) == ("A", "end", reply.usage)

    run(body())
