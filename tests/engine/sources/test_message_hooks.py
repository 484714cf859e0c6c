"""Message hooks: a finalised message is kept, replaced, or, if a person wrote it, dropped."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import pytest
from msgspec.structs import replace
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, messages_of, note, run, talk, user_of

import lamina
from lamina.core.audit.verification import verify
from lamina.core.values.entry import CustomEntry, MessageEntry, ReplyEntry, RequestEntry
from lamina.core.values.item import Picture
from lamina.core.values.message import (
    Context,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Use,
)
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn
from lamina.engine.sources.hook_runs import DROPPED
from lamina.engine.sources.hooks import Drop, Hooks, MessageEvent
from lamina.errors import HookError, LaminaError, MessageDropped

LIMIT = 0.05
STAYS = "the message stays as it was"


def on(role: str, change: Callable[[Message], Any], name: str = "hook") -> Hooks:
    """A hook that changes messages of one role."""
    hooks = Hooks()

    @hooks.message(name=name)
    def hook(event: MessageEvent) -> Any:
        return change(event.message) if event.message.role == role else None

    return hooks


def say(text: str, message: Message) -> Message:
    return replace(message, blocks=(Text(text),))


def saying(text: str) -> Callable[[Message], Message]:
    return partial(say, text)


def answering(text: str) -> Callable[[Message], Message]:
    """Other texts for results."""

    def change(message: Message) -> Message:
        results = [block for block in message.blocks if isinstance(block, ToolResult)]
        return replace(message, blocks=tuple(replace(result, text=text) for result in results))

    return change


async def called(session: Session, text: str = "Q") -> Turn:
    turn = await session.prepare(text)
    return await turn.commit(openai_reply("Let me look.", calls=[("c1", "find"), ("c2", "read")]))


async def resumed(session: Session) -> Turn:
    return await (await called(session)).resume({"c1": "one", "c2": "two"})


async def sound(world: World, session: Session) -> None:
    assert verify(await world.store.read(session.id), world.book).sound
    again = await world.open(session.id)
    assert again.envelope == session.envelope


# -- replacing -----------------------------------------------------------------------------------


def test_every_finalised_message_comes_by_once_and_in_order() -> None:
    async def body() -> None:
        seen: list[tuple[str, str, int]] = []
        session = await World().open()

        @session.hooks.message
        async def look(event: MessageEvent) -> None:
            message = event.message
            results = [b.text for b in message.blocks if isinstance(b, ToolResult)]
            seen.append(
                (message.role, " ".join([message.text, *results]), len(event.envelope.cached))
            )
            assert event.session == session.id

        turn = await resumed(session)
        await turn.commit(openai_reply("Done."))
        assert [(role, text.strip()) for role, text, _ in seen] == [
            ("user", "Q"), ("assistant", "Let me look."), ("tool", "one two"),
            ("assistant", "Done."),
        ]  # fmt: skip
        # None of them is in the envelope yet when it comes by.
        assert [length for _, _, length in seen] == [0, 1, 2, 3]

    run(body())


def test_a_replaced_question_is_what_is_sent_and_kept() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=on("user", saying("My key is [key].")))
        turn = await talk(session, "My key is 1234.", note("a.md", "A"))
        assert turn.warnings == ()
        assert user_of(turn).endswith("My key is [key].")
        assert "1234" not in str(await world.store.read(session.id))
        assert "1234" not in str(session.entries)
        await sound(world, session)

    run(body())


def test_context_hooks_see_the_question_as_message_hooks_left_it() -> None:
    async def body() -> None:
        session = await World().open(hooks=on("user", saying("changed")))
        seen = []

        @session.hooks.context
        def look(event: Any) -> None:
            seen.append(event.message.text)

        await session.prepare("Q")
        assert seen == ["changed"]

    run(body())


def test_a_replaced_answer_is_what_the_turn_gives_and_what_history_holds() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=on("assistant", saying("Cleaned.")))
        turn = await talk(session, answer="Dirty.")
        assert turn.answer == "Cleaned."
        following = await session.prepare("Q2")
        assert [m["content"] for m in messages_of(following)] == ["Q", "Cleaned.", "Q2"]
        assert following.context.agreement.broke is None
        await sound(world, session)

    run(body())


def test_replaced_results_are_what_is_sent() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=on("tool", answering("short")))
        turn = await resumed(session)
        assert [m["content"] for m in messages_of(turn)[-2:]] == ["short", "short"]
        assert turn.warnings == ()
        await turn.commit(openai_reply())
        await sound(world, session)

    run(body())


def test_each_hook_gets_what_the_one_before_it_made() -> None:
    async def body() -> None:
        hooks = on("user", lambda m: say(m.text + "b", m))
        session = await World().open(hooks=hooks.joined(on("user", lambda m: say(m.text + "c", m))))
        assert user_of(await session.prepare("a")) == "abc"

    run(body())


def test_none_leaves_a_message_byte_for_byte() -> None:
    async def body() -> None:
        world = World()
        plain, hooked = await world.open("plain"), await world.open("hooked")
        hooked.hooks.message(lambda event: None)
        one, other = await resumed(plain), await resumed(hooked)
        assert one.request()["messages"] == other.request()["messages"]
        assert other.warnings == ()

    run(body())


def test_a_hook_that_takes_the_calls_out_of_an_answer_ends_the_turn() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=on("assistant", saying("No tools today.")))
        ended: list[Any] = []
        session.hooks.context(reason="turn_end")(ended.append)
        turn = await called(session)
        assert turn.pending_calls == ()
        assert len(ended) == 1
        await talk(session, "Q2")
        await sound(world, session)

    run(body())


def test_a_message_keeps_its_id_whatever_a_hook_says() -> None:
    async def body() -> None:
        session = await World().open(hooks=on("assistant", lambda m: replace(m, id="mine")))
        await talk(session)
        ids = [message.id for message in session.envelope.cached]
        assert "mine" not in ids
        assert len(set(ids)) == 2

    run(body())


# -- dropping ------------------------------------------------------------------------------------


def test_a_dropped_question_is_not_sent_the_journal_says_so_and_the_session_goes_on() -> None:
    async def body() -> None:
        world = World()
        hooks = on("user", lambda m: Drop() if "secret" in m.text else None, "guard")
        session = await world.open(hooks=hooks, system="S")
        await talk(session, "Q1")
        with pytest.raises(MessageDropped) as raised:
            await session.prepare("a secret", attach=["gone.md"])
        assert (raised.value.code, raised.value.hook) == ("message_dropped", "guard")
        assert "'guard'" in str(raised.value)
        (entry,) = [e for e in session.entries if isinstance(e, CustomEntry)]
        assert entry.kind == DROPPED
        assert entry.data["hook"] == "guard"
        assert len([e for e in session.entries if isinstance(e, RequestEntry)]) == 1
        assert [m.text for m in session.envelope.cached] == ["Q1", "A"]
        turn = await talk(session, "Q2")
        assert "secret" not in str(turn.request())
        assert turn.context.agreement.broke is None
        await sound(world, session)

    run(body())


def test_a_dropped_question_leaves_an_open_request_open() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=on("user", lambda m: Drop() if "!" in m.text else None))
        turn = await session.prepare("Q")
        with pytest.raises(MessageDropped):
            await session.prepare("!")
        assert session.interrupted
        await turn.commit(openai_reply("A"))
        await sound(world, session)

    run(body())


def test_a_dropped_message_does_not_reach_later_hooks() -> None:
    async def body() -> None:
        session = await World().open(hooks=on("user", lambda m: Drop()))
        seen: list[Any] = []
        session.hooks.message(seen.append)
        session.hooks.context(seen.append)
        with pytest.raises(MessageDropped):
            await session.prepare("Q")
        assert not seen

    run(body())


def test_the_journal_holds_a_dropped_message_as_the_hooks_before_left_it() -> None:
    async def body() -> None:
        hooks = on("user", saying("My key is [key].")).joined(on("user", lambda m: Drop()))
        session = await World().open(hooks=hooks)
        with pytest.raises(MessageDropped):
            await session.prepare("My key is 1234.")
        assert "1234" not in str(session.entries)

    run(body())


def test_dropping_an_answer_is_reported_and_the_answer_stays() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=on("assistant", lambda m: Drop(), "guard"))
        turn = await talk(session, answer="the answer")
        assert turn.answer == "the answer"
        (warning,) = turn.warnings
        assert "'guard'" in warning
        assert STAYS in warning
        (reply,) = [e for e in session.entries if isinstance(e, ReplyEntry)]
        assert reply.warnings == (warning,)
        await sound(world, session)

    run(body())


def test_dropping_results_is_reported_and_they_stay() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=on("tool", lambda m: Drop(), "guard"))
        turn = await resumed(session)
        assert [m["content"] for m in messages_of(turn)[-2:]] == ["one", "two"]
        (warning,) = turn.warnings
        assert "'guard'" in warning
        assert "'tool'" in warning
        await turn.commit(openai_reply())
        await sound(world, session)

    run(body())


def test_drop_is_part_of_the_public_api() -> None:
    assert lamina.Drop is Drop
    assert lamina.Hooks is Hooks


# -- failing -------------------------------------------------------------------------------------


def _fail(message: Message) -> Any:
    raise LookupError("no such row")


def _as(role: Any) -> Callable[[Message], Message]:
    return lambda message: replace(message, role=role)


def _blocks(*blocks: Any) -> Callable[[Message], Message]:
    return lambda message: replace(message, blocks=blocks)


RESULT = ToolResult(call_id="c9", name="find", text="found")
RUBBISH: dict[str, Callable[[Message], Any]] = {
    "exception": _fail,
    "text": lambda m: "text",
    "dict": lambda m: {"role": m.role, "blocks": []},
    "message class": lambda m: Message,
    "drop class": lambda m: Drop,
    "false": lambda m: False,
    "list": lambda m: [m],
    "no blocks": lambda m: replace(m, blocks=None),
    "blocks as text": lambda m: replace(m, blocks="hello"),
    "a block that is text": _blocks("hello"),
    "text that is none": _blocks(Text(None)),  # type: ignore[arg-type]
    "lone surrogate": _blocks(Text("\ud800")),
    "another role": lambda m: replace(m, role="tool" if m.role == "user" else "user"),
    "no role": _as(None),
    "system": _as("system"),
    "a result": lambda m: replace(m, blocks=(*m.blocks, RESULT)),
}
ROLES = ["user", "assistant", "tool"]


@pytest.mark.parametrize("rubbish", RUBBISH)
@pytest.mark.parametrize("role", ROLES)
def test_what_a_failing_hook_was_given_is_used_and_the_failure_reported(
    role: str, rubbish: str
) -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=on(role, RUBBISH[rubbish], "bad"))
        warnings: list[str] = []
        turn = await called(session)
        warnings += turn.warnings
        turn = await turn.resume({"c1": "one", "c2": "two"})
        warnings += turn.warnings
        assert [m["content"] for m in messages_of(turn)] == ["Q", "Let me look.", "one", "two"]
        turn = await turn.commit(openai_reply("Done."))
        warnings += turn.warnings
        assert turn.answer == "Done."
        assert warnings
        assert all("'bad'" in warning and STAYS in warning for warning in warnings)
        await sound(world, session)

    run(body())


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("kind", ["async", "sync", "cpu"])
def test_a_slow_hook_is_reported_and_the_message_stays(role: str, kind: str) -> None:
    over = threading.Event()

    def spin() -> None:
        while not over.is_set():
            pass

    async def body() -> None:
        world = World()
        session = await world.open()

        async def wait(event: MessageEvent) -> None:
            if event.message.role == role:
                await anyio.Event().wait()

        def block(event: MessageEvent) -> None:
            if event.message.role == role:
                (over.wait if kind == "sync" else spin)()

        handler: Callable[[MessageEvent], Any] = wait if kind == "async" else block
        session.hooks.message(name="slow", timeout=LIMIT)(handler)
        with anyio.fail_after(20):
            first = await called(session)
            second = await first.resume({"c1": "one", "c2": "two"})
        assert [m["content"] for m in messages_of(second)] == ["Q", "Let me look.", "one", "two"]
        said = f"hook 'slow': took longer than its 0.05 s; {STAYS}"
        assert said in (*first.warnings, *second.warnings)

    try:
        run(body())
    finally:
        over.set()


def test_a_failing_hook_does_not_undo_what_the_others_changed() -> None:
    async def body() -> None:
        hooks = on("user", lambda m: say(m.text + "b", m)).joined(on("user", _fail))
        session = await World().open(hooks=hooks.joined(on("user", lambda m: say(m.text + "c", m))))
        turn = await session.prepare("a")
        assert user_of(turn) == "abc"
        assert len(turn.warnings) == 1

    run(body())


@pytest.mark.parametrize(
    "blocks",
    [
        (Image(Picture(digest="d", media_type="image/png", width=1, height=1)),),
        (Text("Q"), Context(uses=(Use(item=note("a.md", "A").id, version="v", form="full"),))),
        (ToolCall(id="c9", name="find"),),
        (Thinking(text="hm"),),
    ],
)
def test_a_question_is_text_and_nothing_else(blocks: tuple[Any, ...]) -> None:
    async def body() -> None:
        session = await World().open(hooks=on("user", _blocks(*blocks)))
        turn = await session.prepare("Q")
        assert user_of(turn) == "Q"
        assert len(turn.warnings) == 1

    run(body())


@pytest.mark.parametrize(
    "blocks",
    [
        (Image(Picture(digest="0" * 64, media_type="image/png", width=1, height=1)),),
        (Text("A"), Context(uses=(Use(item=note("a.md", "A").id, version="v", form="full"),))),
    ],
)
def test_an_answer_holds_only_what_a_model_can_say(blocks: tuple[Any, ...]) -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=on("assistant", _blocks(*blocks)))
        turn = await talk(session, answer="the answer")
        assert turn.answer == "the answer"
        assert len(turn.warnings) == 1
        await talk(session, "Q2")
        await sound(world, session)

    run(body())


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("blocks", [(), (Text(""),), (Text("  \n"),)])
def test_a_message_that_a_hook_empties_is_reported_and_stays(
    blocks: tuple[Any, ...], role: str
) -> None:
    async def body() -> None:
        session = await World().open(hooks=on(role, _blocks(*blocks), "empty"))
        turn = await talk(session, "Q", answer="A")
        assert any("'empty'" in warning for warning in turn.warnings)
        following = await session.prepare("Q2")
        assert [m["content"] for m in messages_of(following)] == ["Q", "A", "Q2"]

    run(body())


SAME = ToolResult(call_id="c1", name="find", text="one")
OTHER = ToolResult(call_id="c2", name="read", text="two")


@pytest.mark.parametrize(
    "blocks",
    [
        (),
        (SAME,),
        (OTHER, SAME),
        (SAME, SAME, OTHER),
        (SAME, replace(OTHER, call_id="c1")),
        (replace(SAME, call_id="other"), OTHER),
        (replace(SAME, call_id=""), OTHER),
        (replace(SAME, text="\ud800"), OTHER),
        (replace(SAME, text=None), OTHER),
        (replace(SAME, name="other"), OTHER),
        (SAME, OTHER, Text("and more")),
        (SAME, OTHER, ToolCall(id="c3", name="find")),
    ],
)
def test_results_keep_their_calls_and_hold_nothing_else(blocks: tuple[Any, ...]) -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=on("tool", _blocks(*blocks), "bad"))
        turn = await resumed(session)
        sent = messages_of(turn)[-2:]
        assert [(m["tool_call_id"], m["content"]) for m in sent] == [("c1", "one"), ("c2", "two")]
        (warning,) = turn.warnings
        assert "'bad'" in warning
        stored = [e.message for e in session.entries if isinstance(e, MessageEntry)][-1]
        assert stored.blocks == (SAME, OTHER)
        await turn.commit(openai_reply())
        await sound(world, session)

    run(body())


@pytest.mark.parametrize(
    "blocks",
    [
        (ToolCall(id="c1", name="find", arguments="\ud800"),),
        (ToolCall(id="c1", name="find", arguments={"a": 1}),),  # type: ignore[arg-type]
        (ToolCall(id="c1", name="find"), ToolCall(id="c1", name="find")),
    ],
)
def test_calls_that_could_not_be_sent_back_are_reported_and_the_answer_stays(
    blocks: tuple[Any, ...],
) -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=on("assistant", _blocks(*blocks), "bad"))
        turn = await talk(session, answer="the answer")
        assert turn.answer == "the answer"
        assert "'bad'" in turn.warnings[0]
        await talk(session)
        await sound(world, session)

    run(body())


def test_an_answer_can_be_committed_again_after_a_cancellation_in_a_hook() -> None:
    async def body() -> None:
        world = World()
        session = await world.open()
        started = anyio.Event()

        @session.hooks.message
        async def wait(event: MessageEvent) -> None:
            if event.message.role == "assistant" and not started.is_set():
                started.set()
                await anyio.Event().wait()

        turn = await session.prepare("Q")
        entries = session.entries
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(turn.commit, openai_reply("A"))
            await started.wait()
            tasks.cancel_scope.cancel()
        assert session.entries == entries
        turn = await turn.commit(openai_reply("A"))
        assert turn.answer == "A"
        await sound(world, session)

    run(body())


@pytest.mark.parametrize("role", ROLES)
def test_a_failure_is_in_the_journal_too(role: str) -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=on(role, _fail, "bad"))
        turn = await resumed(session)
        await turn.commit(openai_reply())
        journal = (await world.store.read(session.id)).entries.values()
        requests = [e.context.warnings for e in journal if isinstance(e, RequestEntry)]
        replies = [e.warnings for e in journal if isinstance(e, ReplyEntry)]
        said = [len(reply) for reply in (replies if role == "assistant" else requests)]
        assert said == {"user": [1, 0], "assistant": [1, 1], "tool": [0, 1]}[role]

    run(body())


# -- registering ---------------------------------------------------------------------------------


def test_message_hooks_are_registered_with_and_without_arguments() -> None:
    hooks = Hooks(timeout=2)

    @hooks.message
    def bare(event: MessageEvent) -> None: ...

    @hooks.message(name="named", timeout=3)
    async def told(event: MessageEvent) -> None: ...

    first, second = hooks.message_hooks
    assert (first.handler, first.timeout) == (bare, 2)
    assert (second.handler, second.name, second.timeout) == (told, "named", 3)


def test_message_hooks_of_a_session_do_not_reach_another() -> None:
    async def body() -> None:
        world, shared = World(), Hooks()
        one = await world.open("one", hooks=shared)
        other = await world.open("other", hooks=shared)
        one.hooks.message(lambda event: say("changed", event.message))
        assert user_of(await one.prepare("Q")) == "changed"
        assert user_of(await other.prepare("Q")) == "Q"

    run(body())


def test_the_errors_of_hooks_are_a_family() -> None:
    assert issubclass(MessageDropped, HookError)
    assert issubclass(HookError, LaminaError)
