"""Ephemeral hooks: text for one request only, uncached and last, and gone afterwards."""

from collections.abc import Sequence
from functools import partial
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
    talk,
    words,
)

from lamina.core.audit.verification import verify
from lamina.core.ports import SummaryJob
from lamina.core.values.entry import EphemeralEntry, RequestEntry, TransformEntry
from lamina.core.values.message import Message, Text, Thinking, ToolCall, ToolDefinition, ToolResult
from lamina.core.values.patch import (
    CompactionApply,
    Display,
    ItemLay,
    MessagesCachedReplace,
    MessagesUncachedAppend,
    OptionsSet,
    Patch,
    PatchOp,
    ResultsReplace,
    SystemPartSet,
    ToolsRemove,
)
from lamina.engine.session.session import Session
from lamina.engine.sources.hooks import ContextEvent, Hooks
from lamina.errors import BudgetError, HookError, InvalidPatch, LaminaError

WHY = "because"


def whisper(*texts: str, role: Any = "user") -> MessagesUncachedAppend:
    return MessagesUncachedAppend(
        messages=tuple(Message(role=role, blocks=(Text(text),)) for text in texts)
    )


def whispering(*results: Any) -> Hooks:
    """One hook that gives these one after the other, then nothing."""
    hooks, left = Hooks(), list(results)

    @hooks.context(reason="ephemeral", name="whisper")
    def hook(event: ContextEvent) -> Any:
        return left.pop(0) if left else None

    return hooks


def _give(result: Any, event: ContextEvent) -> Any:
    return result


async def sound(world: World, session: Session) -> None:
    verdict = verify(await world.store.read(session.id), world.book)
    assert verdict.sound
    requests = [e for e in session.entries if isinstance(e, RequestEntry)]
    assert len(verdict.checked) == len(requests)


# -- in one request, and in no other -------------------------------------------------------------


@pytest.mark.parametrize("promotion", ["lazy", "eager"])
def test_the_text_is_uncached_and_last_in_this_request_and_gone_in_the_next(promotion: str) -> None:
    async def body() -> None:
        world = World()
        hooks = whispering(None, whisper("It is noon."))
        session = await world.open(hooks=hooks, promotion=promotion, system="S")
        await talk(session, "Q1", note("a.md", "A"))
        turn = await session.prepare("Q2", attach=[note("b.md", "B")])
        assert messages_of(turn)[-1] == {"role": "user", "content": "It is noon."}
        last = turn.prompt.segments[-1]
        assert (last.text, last.cached) == ("It is noon.", False)
        assert turn.prompt.cached_run() < len(turn.prompt)
        turn = await turn.commit(openai_reply("A2"))
        assert session.envelope.uncached == ()
        assert "noon" not in str([m.text for m in session.envelope.cached])
        following = await session.prepare("Q3")
        assert "noon" not in all_text(following)
        again = await world.open(session.id)
        assert "noon" not in str(again.envelope.uncached)
        await following.commit(openai_reply())
        await sound(world, session)

    run(body())


def test_the_prefix_is_not_broken_by_it() -> None:
    async def body() -> None:
        session = await World().open(system=words(50))
        clock = iter(range(99))
        session.hooks.context(reason="ephemeral")(lambda event: whisper(f"It is {next(clock)}."))
        sent: Sequence[str] = ()
        for number in range(6):
            turn = await session.prepare(f"Q{number}", attach=[note("a.md", words(30))])
            assert turn.context.agreement.broke is None
            assert digests(turn)[: len(sent)] == list(sent)
            sent = digests(turn)[: turn.prompt.cached_run()]
            await turn.commit(openai_reply("A"))

    run(body())


def test_between_tool_calls_every_request_has_its_own() -> None:
    async def body() -> None:
        world = World()
        hooks = whispering(whisper("one"), whisper("two"), None)
        session = await world.open(hooks=hooks)
        turn = await session.prepare("Q")
        assert messages_of(turn)[-1]["content"] == "one"
        for number in (1, 2):
            call = f"c{number}"
            turn = await turn.commit(openai_reply(None, calls=[(call, "find")]))
            turn = await turn.resume({call: "found"})
            assert turn.context.agreement.broke is None
            assert "one" not in all_text(turn)
            assert ("two" in all_text(turn)) == (number == 1)
        await turn.commit(openai_reply())
        await sound(world, session)

    run(body())


def test_a_request_with_it_is_rebuilt_after_a_restart_without_the_hooks() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=whispering(whisper("It is noon.", "Or one.")))
        turn = await session.prepare("Q")
        again = await world.open(session.id)
        rebuilt = await again.current_turn()
        assert rebuilt is not None
        assert rebuilt.request() == turn.request()
        assert digests(rebuilt) == digests(turn)
        await rebuilt.commit(openai_reply())
        assert again.envelope.uncached == ()
        await sound(world, again)

    run(body())


def test_preparing_again_does_not_take_the_text_of_the_abandoned_request_along() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=whispering(whisper("one"), whisper("two")))
        await session.prepare("Q")
        turn = await session.prepare("Q again")
        assert [m["content"] for m in messages_of(turn)] == ["Q again", "two"]
        await turn.commit(openai_reply())
        await sound(world, session)

    run(body())


def test_the_text_is_written_as_ephemeral_and_as_no_transform() -> None:
    async def body() -> None:
        session = await World().open(hooks=whispering(whisper("It is noon.")))
        await session.prepare("Q")
        (entry,) = [e for e in session.entries if isinstance(e, EphemeralEntry)]
        assert [m.text for m in entry.messages] == ["It is noon."]
        assert not [e for e in session.entries if isinstance(e, TransformEntry)]

    run(body())


def test_the_journal_says_which_hook_added_it() -> None:
    async def body() -> None:
        session = await World().open(hooks=whispering(whisper("It is noon.")))
        turn = await session.prepare("Q")
        written = str([e for e in session.entries if isinstance(e, EphemeralEntry | RequestEntry)])
        assert "whisper" in written + str(turn.context)

    run(body())


def test_the_question_as_the_model_gets_it_is_without_it() -> None:
    async def body() -> None:
        session = await World().open(hooks=whispering(whisper("It is noon.")))
        turn = await session.prepare("Q")
        assert turn.processed_text == "Q"

    run(body())


@pytest.mark.parametrize("result", [None, [], Patch(ops=()), whisper(), whisper("")])
def test_nothing_to_add_gives_no_entry_and_no_message(result: Any) -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=whispering(result))
        turn = await session.prepare("Q")
        assert [m["content"] for m in messages_of(turn)] == ["Q"]
        assert not [e for e in session.entries if isinstance(e, EphemeralEntry)]

    run(body())


# -- what they see -------------------------------------------------------------------------------


def test_each_sees_what_those_before_it_added_and_what_before_request_changed() -> None:
    async def body() -> None:
        hooks = whispering(whisper("one"))
        seen: list[ContextEvent] = []
        hooks.context(reason="ephemeral")(seen.append)
        part = SystemPartSet(name="tone", text="Be brief.", reason=WHY)
        hooks.context(partial(_give, part))
        session = await World().open(hooks=hooks)
        await session.prepare("Q")
        (event,) = seen
        assert [m.text for m in event.envelope.uncached] == ["one"]
        assert [p.name for p in event.envelope.system] == ["tone"]
        assert event.message is not None
        assert (event.reason, event.message.text) == ("ephemeral", "Q")

    run(body())


def test_texts_of_several_hooks_stand_in_order_as_messages_of_their_own() -> None:
    async def body() -> None:
        hooks = whispering([whisper("one"), whisper("two")]).joined(whispering(whisper("three")))
        turn = await (await World().open(hooks=hooks)).prepare("Q")
        assert [m["content"] for m in messages_of(turn)] == ["Q", "one", "two", "three"]

    run(body())


# -- what they may not do ------------------------------------------------------------------------

OTHERS: list[PatchOp] = [
    SystemPartSet(name="tone", text="Be brief.", reason="  "),
    ToolsRemove(names=("find",)),
    OptionsSet(temperature=-1),
    OptionsSet(temperature=0, scope="cached"),
    MessagesCachedReplace(messages=()),
    ResultsReplace(message="m", results=(), reason=WHY),
    CompactionApply(first_kept=0, summary="S", reason=" "),
    ItemLay(item=note("a.md", "A").id, version="v"),
]


@pytest.mark.parametrize("op", OTHERS)
def test_an_op_that_is_wrong_is_an_error_and_nothing_is_written(op: PatchOp) -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=whispering([whisper("fine"), op]))
        session.hooks.context(partial(_give, SystemPartSet(name="tone", text="T", reason=WHY)))
        before = session.entries
        with pytest.raises(InvalidPatch, match="'whisper'") as raised:
            await session.prepare("Q")
        assert raised.value.op == op.__struct_config__.tag
        assert session.entries == before
        await talk(session, "Q")
        await sound(world, session)

    run(body())


UNSENDABLE: dict[str, Any] = {
    "result": (ToolResult(call_id="c", name="find", text="x"),),
    "call": (ToolCall(id="c", name="find"),),
    "thinking": (Thinking(text="hm"),),
    "lone surrogate": (Text("\ud800"),),
    "text that is none": (Text(None),),  # type: ignore[arg-type]
    "no block": ("hello",),
    "no blocks": None,
}


@pytest.mark.parametrize("blocks", UNSENDABLE)
def test_only_text_can_be_added(blocks: str) -> None:
    async def body() -> None:
        message = Message(role="user", blocks=UNSENDABLE[blocks])
        session = await World().open(hooks=whispering(MessagesUncachedAppend(messages=(message,))))
        before = session.entries
        with pytest.raises(LaminaError, match="'whisper'"):
            await session.prepare("Q")
        assert session.entries == before
        await talk(session)

    run(body())


@pytest.mark.parametrize("role", ["tool", "system", "developer", None])
def test_only_a_user_or_an_assistant_can_say_it(role: Any) -> None:
    async def body() -> None:
        session = await World().open(hooks=whispering(whisper("x", role=role)))
        with pytest.raises(LaminaError, match="'whisper'"):
            await session.prepare("Q")

    run(body())


@pytest.mark.parametrize("messages", [[], None, "text", ("text",)])
@pytest.mark.parametrize("listed", [True, False])
def test_messages_of_the_wrong_kind_are_an_error_or_taken_as_meant(
    messages: Any, listed: bool
) -> None:
    async def body() -> None:
        op: Any = MessagesUncachedAppend(messages=messages)
        session = await World().open(hooks=whispering([op] if listed else op))
        if messages == []:
            await session.prepare("Q")
            return
        with pytest.raises(LaminaError, match="'whisper'"):
            await session.prepare("Q")

    run(body())


def test_an_exception_stops_the_request_and_nothing_is_written() -> None:
    async def body() -> None:
        session = await World().open()

        @session.hooks.context(reason="ephemeral", name="clock")
        def hook(event: ContextEvent) -> None:
            raise OSError("no clock")

        before = session.entries
        with pytest.raises(HookError, match=r"^hook 'clock': OSError: no clock$"):
            await session.prepare("Q")
        assert session.entries == before

    run(body())


def test_a_failing_one_leaves_what_was_checked_before_it_and_the_compaction() -> None:
    """Patches of before_request were checked and written with the compaction; they hold."""

    async def body() -> None:
        async def summarize(job: SummaryJob) -> str:
            return "They talked."

        session = await World().open(window=600, output_reserve=100, summarizer=summarize)
        for number in range(6):
            await talk(session, words(30, f"q{number}"), answer=words(30, f"r{number}"))
        session.hooks.context(name="before")(partial(_give, OptionsSet(temperature=0)))

        @session.hooks.context(reason="ephemeral")
        def hook(event: ContextEvent) -> None:
            raise OSError("no clock")

        before = len(session.entries)
        with pytest.raises(HookError):
            await session.prepare(words(60))
        added = [e for e in session.entries[before:] if isinstance(e, TransformEntry)]
        assert [e.transformer for e in added] == ["before", "lamina.compaction"]
        assert session.envelope.options.temperature == 0
        assert not session.interrupted

    run(body())


# -- budget --------------------------------------------------------------------------------------


def test_the_text_is_counted_in_the_budget() -> None:
    async def body() -> None:
        world = World()
        plain = await (await world.open("plain")).prepare("Q")
        added = await (await world.open("added", hooks=whispering(whisper(words(50))))).prepare("Q")
        assert added.prompt.tokens == plain.prompt.tokens + 50 + 4
        assert added.context.fit.tokens == added.prompt.tokens

    run(body())


def test_what_is_over_the_window_with_it_gives_way_to_it() -> None:
    async def body() -> None:
        hooks = whispering(None, None, whisper(words(200, "soon")))
        session = await World().open(hooks=hooks, window=400, output_reserve=100)
        for number in range(2):
            await talk(session, words(50, f"q{number}"), answer=words(20))
        turn = await session.prepare("Q", attach=[note("a.md", words(80))])
        assert turn.prompt.tokens <= 300
        assert all_text(turn).count("soon") == 200
        assert reported(turn) or turn.context.boundaries

    run(body())


def test_text_that_cannot_fit_is_an_error_with_the_sizes_and_nothing_is_written() -> None:
    async def body() -> None:
        hooks = whispering(whisper(words(500)))
        session = await World().open(hooks=hooks, window=400, output_reserve=100)
        before = session.entries
        with pytest.raises(BudgetError) as raised:
            await session.prepare("Q")
        assert raised.value.sizes["L3"] > 500
        assert session.entries == before

    run(body())


def test_in_a_tool_loop_results_give_way_to_it_and_the_question_stays() -> None:
    async def body() -> None:
        hooks = whispering(None, whisper(words(100, "soon")))
        session = await World().open(hooks=hooks, window=400, output_reserve=100)
        turn = await session.prepare("Why so?")
        turn = await turn.commit(openai_reply(None, calls=[("c", "find")]))
        turn = await turn.resume({"c": words(400)})
        assert turn.prompt.tokens <= 300
        assert all_text(turn).count("soon") == 100
        assert "Why so?" in all_text(turn)

    run(body())


# -- wires ---------------------------------------------------------------------------------------


def test_on_a_wire_that_joins_neighbours_the_cached_part_still_ends_before_it() -> None:
    async def body() -> None:
        world = World()
        hooks = whispering(whisper("It is noon."))
        session = await world.open(
            hooks=hooks, target=THINKER.name, system="S", tools=[ToolDefinition(name="find")]
        )
        turn = await session.prepare("Q")
        request = turn.request()
        assert "It is noon." in str(request["messages"][-1])
        assert "cache_control" not in str(_last_block(request["messages"]))
        await turn.commit(anthropic_reply("A"))
        await sound(world, session)

    run(body())


def _last_block(messages: Sequence[dict[str, Any]]) -> Any:
    content = messages[-1]["content"]
    return content if isinstance(content, str) else content[-1]


def test_how_it_is_displayed_is_not_lost() -> None:
    async def body() -> None:
        display = Display(title="The time", summary="Noon.", markdown="It is **noon**.")
        patch = Patch(ops=(whisper("It is noon."),), display=display)
        session = await World().open(hooks=whispering(patch))
        await session.prepare("Q")
        assert "The time" in str(session.entries)

    run(body())
