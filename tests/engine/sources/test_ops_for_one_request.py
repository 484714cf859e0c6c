"""Ephemeral hooks change anything for one request, on a copy: the session goes on as it was."""

from typing import Any

import pytest
from tests.fakes.book import THINKER
from tests.fakes.replies import anthropic_reply, openai_reply
from tests.fakes.sessions import (
    World,
    all_text,
    digests,
    messages_of,
    note,
    reported,
    run,
    system_of,
    talk,
    words,
)

from lamina.core.audit.verification import verify
from lamina.core.journal import options_for_request
from lamina.core.values.entry import EphemeralEntry, TransformEntry
from lamina.core.values.envelope import SystemPart
from lamina.core.values.item import note_id
from lamina.core.values.message import Message, Text, ToolDefinition, ToolResult
from lamina.core.values.patch import (
    CompactionApply,
    MessagesCachedAppend,
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
from lamina.engine.session.session import Session
from lamina.engine.sources.hooks import Hooks
from lamina.errors import InvalidPatch

WHY = "only this once"
FIND, LOOK = ToolDefinition(name="find"), ToolDefinition(name="look")


def said(text: str) -> Message:
    return Message(role="user", blocks=(Text(text),))


# Every op that moves something, and what then stands in the request.
OPS: dict[str, tuple[Any, str]] = {
    "set": (SystemPartSet(name="tone", text="ONCE", reason=WHY), "ONCE"),
    "document": (
        {"transformerName": "once", "patch": [{"op": "system_part_set", "partName": "tone",
         "content": "ONCE", "invalidateCacheReason": WHY}]},
        "ONCE",
    ),
    "remove": (SystemPartRemove(name="tone", reason=WHY), ""),
    "parts": (SystemPartsReplace(parts=(SystemPart(name="x", text="ONCE"),), reason=WHY), "ONCE"),
    "tools": (ToolsReplace(tools=(FIND, LOOK), reason=WHY), ""),
    "fewer tools": (ToolsRemove(names=("find",), reason=WHY), ""),
    "messages": (MessagesCachedReplace(messages=(said("ONCE"),), reason=WHY), "ONCE"),
    "append": (MessagesCachedAppend(messages=(said("ONCE"),)), "ONCE"),
    "compaction": (CompactionApply(first_kept=9, summary="ONCE", reason=WHY), "ONCE"),
}  # fmt: skip


async def open_talk(world: World, session: str = "talk", **given: Any) -> Session:
    parts = [("persona", "You are a pilot."), ("tone", "Be kind.")]
    return await world.open(session, system=parts, tools=[FIND], **given)


async def require_sound(world: World, session: Session) -> None:
    verdict = verify(await world.store.read(session.id), world.book)
    assert verdict.sound, verdict


@pytest.mark.parametrize("name", OPS)
def test_an_op_is_applied_for_one_request_and_the_next_returns_to_the_cached_bytes(
    name: str,
) -> None:
    op, stands = OPS[name]

    async def body() -> None:
        world, hooks, gifts = World(), Hooks(), [None, op]
        hooks.context(reason="ephemeral", name="once")(
            lambda event: gifts.pop(0) if gifts else None
        )
        session = await open_talk(world, hooks=hooks)
        first = await session.prepare("Q1", attach=[note("a.md", "Alpha")])
        await first.commit(openai_reply("A1"))
        before = session.envelope
        second = await session.prepare("Q2")
        assert stands in all_text(second)
        assert all_text(second).endswith("Q2")
        # What the session has is as it was, but for the question.
        assert session.envelope.system == before.system
        assert session.envelope.tools == before.tools
        assert [m.text for m in session.envelope.cached] == ["Q1", "A1", "Q2"]
        # Rebuilt from the journal, without the hook.
        replayed = await (await world.open("talk")).current_turn()
        assert replayed is not None
        assert replayed.request() == second.request()
        broke = second.context.agreement.broke
        if name != "append":
            assert broke is not None
            assert broke.reason == f"{WHY} (for one request, by once)"
        await second.commit(openai_reply("A2"))
        third = await session.prepare("Q3")
        assert digests(third)[: len(digests(first))] == digests(first)
        assert "ONCE" not in all_text(third)
        # Compared with what was really sent: it moved back, and whose doing that is.
        moved_back = third.context.agreement.broke
        assert moved_back is not None
        assert moved_back.reason.startswith("back from one request of once: ")
        await third.commit(openai_reply("A3"))
        fourth = await session.prepare("Q4")
        assert fourth.context.agreement.broke is None
        await fourth.commit(openai_reply("A4"))
        assert not [e for e in session.entries if isinstance(e, TransformEntry)]
        await require_sound(world, session)

    run(body())


@pytest.mark.parametrize("name", OPS)
def test_a_session_opened_again_behind_such_a_request_knows_what_was_sent(name: str) -> None:
    op, _ = OPS[name]

    async def body() -> None:
        world, hooks, gifts = World(), Hooks(), [None, op]
        hooks.context(reason="ephemeral", name="once")(
            lambda event: gifts.pop(0) if gifts else None
        )
        session = await open_talk(world, hooks=hooks)
        await talk(session, "Q1", note("a.md", "Alpha"))
        await talk(session, "Q2")
        await session.close()
        again = await world.open("talk")
        turn = await again.prepare("Q3")
        broke = turn.context.agreement.broke
        assert broke is not None
        assert "once" in broke.reason
        await turn.commit(openai_reply("A"))
        await require_sound(world, again)

    run(body())


def test_options_are_for_one_request_only() -> None:
    async def body() -> None:
        world, hooks = World(), Hooks()
        gifts: list[Any] = [
            None,
            {"op": "options_set", "scope": "ephemeral", "temperature": 0, "maxTokens": 7},
            OptionsSet(temperature=0.9),
        ]
        hooks.context(reason="ephemeral", name="calm")(
            lambda event: gifts.pop(0) if gifts else None
        )
        session = await open_talk(world, hooks=hooks)
        await session.apply("test", OptionsSet(temperature=0.5))
        sent = []
        for number in range(4):
            turn = await session.prepare(f"Q{number}")
            body = turn.request()
            sent.append((body["temperature"], body.get("max_tokens")))
            assert turn.context.agreement.broke is None
            await turn.commit(openai_reply("A"))
        assert sent == [(0.5, None), (0, 7), (0.9, None), (0.5, None)]
        assert session.envelope.options.temperature == 0.5
        await require_sound(world, session)

    run(body())


def test_the_room_for_an_answer_is_that_of_its_own_options() -> None:
    async def body() -> None:
        session = await World().open(window=1_000)
        plain = (await session.prepare("Q")).context.fit.reserve
        once = OptionsSet(max_tokens=400)
        session.hooks.context(reason="ephemeral")(lambda event: once)
        turn = await session.prepare("Q")
        assert plain != 400
        assert turn.context.fit.reserve == 400

    run(body())


def test_applied_by_hand_options_of_the_scope_uncached_are_for_the_next_request() -> None:
    async def body() -> None:
        world = World()
        session = await world.open()
        await session.apply("test", OptionsSet(temperature=0.1, scope="uncached"))
        assert session.envelope.options.temperature is None
        assert options_for_request(session.state).temperature == 0.1
        turn = await session.prepare("Q")
        assert turn.request()["temperature"] == 0.1
        await turn.commit(openai_reply("A"))
        assert "temperature" not in (await session.prepare("Q")).request()
        await require_sound(world, session)

    run(body())


@pytest.mark.parametrize("reason", ["before_request", "turn_end"])
def test_a_hook_that_is_not_ephemeral_sets_no_options_for_one_request(reason: Any) -> None:
    async def body() -> None:
        hooks = Hooks()
        once = OptionsSet(temperature=0.1, scope="uncached")
        hooks.context(reason=reason, name="calm")(lambda event: once)
        session = await World().open(hooks=hooks)
        if reason == "before_request":
            with pytest.raises(InvalidPatch, match=r"options_set.*'calm'"):
                await session.prepare("Q")
            assert len(session.entries) == 1
        else:
            turn = await talk(session)
            assert any("options_set" in warning for warning in turn.warnings)

    run(body())


def test_cached_options_need_a_reason_stay_and_keep_it() -> None:
    async def body() -> None:
        world = World()
        session = await world.open()
        with pytest.raises(InvalidPatch, match=r"options_set.*reason"):
            await session.apply("test", OptionsSet(reasoning="low", scope="cached", reason=" "))
        op = OptionsSet(reasoning="low", scope="cached", reason="it is easy")
        await session.apply("test", op)
        for _ in range(2):
            turn = await session.prepare("Q")
            assert turn.request()["reasoning_effort"] == "low"
            await turn.commit(openai_reply("A"))
        (entry,) = [e for e in session.entries if isinstance(e, TransformEntry)]
        assert entry.patch.ops == (op,)
        await require_sound(world, session)

    run(body())


def test_where_a_cache_is_not_read_the_option_that_changed_is_named_with_its_reason() -> None:
    async def body() -> None:
        session = await World().open(target=THINKER.name, system=words(2_000))
        usage = {"input_tokens": 2_010, "output_tokens": 5, "cache_read_input_tokens": 0,
                 "cache_creation_input_tokens": 2_000}  # fmt: skip
        turn = await session.prepare("Q1")
        await turn.commit({**anthropic_reply("A"), "usage": usage})
        op = OptionsSet(reasoning="high", scope="cached", reason="it is hard")
        await session.apply("test", op)
        turn = await session.prepare("Q2")
        turn = await turn.commit({**anthropic_reply("A"), "usage": usage})
        assert turn.verdict is not None
        assert "the option reasoning changed (it is hard)" in turn.verdict.detail

    run(body())


def test_each_hook_sees_what_those_before_it_changed() -> None:
    async def body() -> None:
        hooks, seen = Hooks(), []

        @hooks.context(reason="ephemeral", name="first")
        def first(event: Any) -> PatchOp:
            return SystemPartSet(name="tone", text="ONE", reason=WHY)

        @hooks.context(reason="ephemeral", name="second")
        def second(event: Any) -> PatchOp:
            seen.append([part.text for part in event.envelope.system])
            return SystemPartSet(name="more", text="TWO", reason=WHY)

        session = await open_talk(World(), hooks=hooks)
        turn = await session.prepare("Q")
        assert seen == [["You are a pilot.", "ONE"]]
        assert system_of(turn) == "You are a pilot.\n\nONE\n\nTWO"
        (entry,) = [e for e in session.entries if isinstance(e, EphemeralEntry)]
        assert [once.transformer for once in entry.patches] == ["first", "second"]
        assert entry.hooks == ("first", "second")

    run(body())


def test_an_op_that_changes_nothing_leaves_no_entry() -> None:
    async def body() -> None:
        hooks = Hooks()
        hooks.context(reason="ephemeral")(
            lambda event: SystemPartSet(name="tone", text="Be kind.", reason=WHY)
        )
        session = await open_talk(World(), hooks=hooks)
        await talk(session)
        assert not [e for e in session.entries if isinstance(e, EphemeralEntry)]

    run(body())


def test_an_item_that_is_taken_out_of_one_request_is_reported_and_the_model_is_told() -> None:
    async def body() -> None:
        world, hooks = World(), Hooks()
        gifts = [None, MessagesCachedReplace(messages=(), reason="a blank page")]
        hooks.context(reason="ephemeral", name="blank")(
            lambda event: gifts.pop(0) if gifts else None
        )
        session = await open_talk(world, hooks=hooks)
        await talk(session, "Q1", note("a.md", "Alpha"))
        turn = await session.prepare("Q2", attach=[note("a.md", "Alpha")])
        assert "Alpha" not in all_text(turn)
        assert "not part of this request" in all_text(turn)
        assert (note_id("a.md"), "removed") in reported(turn)
        await turn.commit(openai_reply("A"))
        following = await session.prepare("Q3", attach=[note("a.md", "Alpha")])
        assert all_text(following).count("Alpha") == 1
        assert "not part of this request" not in all_text(following)
        await following.commit(openai_reply("A"))
        await require_sound(world, session)

    run(body())


def test_between_calls_and_results_only_the_results_come() -> None:
    async def body() -> None:
        world, hooks = World(), Hooks()
        hooks.context(reason="ephemeral", name="once")(
            lambda event: MessagesCachedAppend(messages=(said("ONCE"),))
        )
        session = await open_talk(world, hooks=hooks)
        turn = await session.prepare("Q")
        answered = await turn.commit(openai_reply(None, calls=[("c1", "find")]))
        turn = await answered.resume({"c1": "found"})
        roles = [message["role"] for message in messages_of(turn)]
        assert roles == ["system", "user", "assistant", "tool", "user"]
        assert all_text(turn).endswith("ONCE")
        await turn.commit(openai_reply("A"))
        await require_sound(world, session)

    run(body())


def test_results_are_shortened_for_one_request() -> None:
    async def body() -> None:
        world, hooks = World(), Hooks()

        @hooks.context(reason="ephemeral", name="short")
        def shorten(event: Any) -> Any:
            for message in event.envelope.cached:
                if message.role == "tool":
                    result = ToolResult(call_id="c1", name="find", text="SHORT")
                    return ResultsReplace(message=message.id, results=(result,), reason=WHY)
            return None

        session = await open_talk(world, hooks=hooks)
        turn = await session.prepare("Q1")
        answered = await turn.commit(openai_reply(None, calls=[("c1", "find")]))
        turn = await answered.resume({"c1": words(9, "found")})
        await turn.commit(openai_reply("A"))
        turn = await session.prepare("Q2")
        assert "SHORT" in all_text(turn)
        assert "found" in str(session.envelope.cached.since(0))
        await turn.commit(openai_reply("A"))
        await require_sound(world, session)

    run(body())


def test_the_journal_does_not_repeat_history_for_one_request() -> None:
    async def body() -> None:
        hooks = Hooks()
        hooks.context(reason="ephemeral", name="once")(
            lambda event: MessagesCachedReplace(
                messages=(*event.envelope.cached, said("ONCE")), reason=WHY
            )
        )
        session = await World().open(window=1_000_000, hooks=hooks)
        for _ in range(5):
            await talk(session)
        entries = [e for e in session.entries if isinstance(e, EphemeralEntry)]
        (op,) = entries[-1].patches[0].ops
        assert op == MessagesCachedReplace(messages=(said("ONCE"),), kept=8, reason=WHY)

    run(body())
