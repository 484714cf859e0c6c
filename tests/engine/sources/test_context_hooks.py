"""Context hooks: before every request and after every turn, all of what they return or nothing."""

import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import anyio
import anyio.from_thread
import pytest
from anyio.lowlevel import current_token
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, digests, messages_of, note, run, system_of, talk, words
from tests.strategies import thorough

from lamina.core.audit.verification import verify
from lamina.core.values.entry import PROBLEM, CustomEntry, TransformEntry
from lamina.core.values.envelope import SystemPart
from lamina.core.values.message import Message, Text, ToolCall, ToolDefinition, ToolResult
from lamina.core.values.patch import (
    CompactionApply,
    Display,
    ItemLay,
    MessagesCachedReplace,
    MessagesUncachedAppend,
    OptionsSet,
    Patch,
    PatchOp,
    SystemPartRemove,
    SystemPartSet,
    SystemPartsReplace,
    ToolsReplace,
)
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn
from lamina.engine.sources.hooks import ContextEvent, HookReason, Hooks
from lamina.errors import HookError, InvalidPatch, LaminaError, UsageError

WHY = "the person asked for it"
BRIEF = SystemPartSet(name="tone", text="Be brief.", reason=WHY)
BLANK = SystemPartSet(name="tone", text="Be long.", reason="  ")
APART = MessagesUncachedAppend(messages=(Message(role="user", blocks=(Text("psst"),)),))
LIMIT = 0.05


def giving(*results: Any, reason: HookReason = "before_request", **given: Any) -> Hooks:
    """A hook for each result, in order."""
    hooks = Hooks(**given)
    for number, result in enumerate(results):
        hooks.context(reason=reason, name=f"hook {number}")(partial(_give, result))
    return hooks


def _give(result: Any, event: ContextEvent) -> Any:
    return result


def seeing(reason: HookReason, *results: Any) -> tuple[Hooks, list[ContextEvent]]:
    """A hook that keeps what it is given, and gives `results` one after the other."""
    hooks, seen, left = Hooks(), list[ContextEvent](), list(results)

    @hooks.context(reason=reason)
    def look(event: ContextEvent) -> Any:
        seen.append(event)
        return left.pop(0) if left else None

    return hooks, seen


def transformers(session: Session) -> list[str]:
    return [entry.transformer for entry in session.entries if isinstance(entry, TransformEntry)]


async def refused(
    world: World, session: Session, attempt: Awaitable[object], kind: type[LaminaError] = HookError
) -> LaminaError:
    """The error of something that must fail and write nothing."""
    entries, state = session.entries, session.state
    with pytest.raises(kind) as raised:
        await attempt
    assert session.entries == entries
    assert session.state is state
    assert tuple((await world.store.read(session.id)).entries.values()) == entries
    return raised.value


async def sound(world: World, session: Session) -> None:
    """Every request can be rebuilt from what is stored, which is what the session remembers."""
    journal = await world.store.read(session.id)
    assert verify(journal, world.book).sound
    again = await world.open(session.id)
    assert again.envelope == session.envelope


async def with_call(session: Session, text: str = "Q") -> Turn:
    turn = await session.prepare(text)
    return await turn.commit(openai_reply(None, calls=[("c1", "find")]))


# -- when they run, and what they see ------------------------------------------------------------


def test_they_run_before_every_provider_call_and_see_what_is_about_to_be_sent() -> None:
    async def body() -> None:
        hooks, seen = seeing("before_request")
        session = await World().open(hooks=hooks, system="S")
        turn = await with_call(session, "Which berth is free?")
        turn = await turn.resume({"c1": "berth 4"})
        await turn.commit(openai_reply("Berth 4."))
        question, results = (event.message for event in seen)
        assert question is not None
        assert results is not None
        assert (question.role, question.text) == ("user", "Which berth is free?")
        assert results.role == "tool"
        assert results.blocks == (ToolResult(call_id="c1", name="find", text="berth 4"),)
        assert [len(event.envelope.cached) for event in seen] == [0, 2]
        assert {(e.reason, e.session, e.target) for e in seen} == {
            ("before_request", session.id, "fake:small")
        }

    run(body())


def test_each_hook_sees_what_those_before_it_changed() -> None:
    async def body() -> None:
        hooks = giving(BRIEF)
        systems: list[tuple[SystemPart, ...]] = []

        @hooks.context
        async def second(event: ContextEvent) -> None:
            systems.append(event.envelope.system)

        session = await World().open(hooks=hooks, system="S")
        await talk(session)
        named = [[part.name for part in system] for system in systems]
        assert named == [["system", "tone"]]

    run(body())


def test_a_change_between_two_calls_of_a_turn_reaches_the_second_one() -> None:
    async def body() -> None:
        world = World()
        hooks, _ = seeing("before_request", None, BRIEF)
        session = await world.open(hooks=hooks, system="S")
        turn = await with_call(session)
        assert system_of(turn) == "S"
        turn = await turn.resume({"c1": "found"})
        assert system_of(turn) == "S\n\nBe brief."
        assert turn.context.agreement.broke is not None
        assert turn.context.agreement.broke.reason == WHY
        await turn.commit(openai_reply())
        await sound(world, session)

    run(body())


def test_hooks_of_a_session_do_not_reach_another() -> None:
    async def body() -> None:
        world, shared = World(), Hooks()
        one = await world.open("one", hooks=shared)
        other = await world.open("other", hooks=shared)
        one.hooks.context(partial(_give, BRIEF))
        shared.context(partial(_give, BRIEF))
        assert system_of(await one.prepare("Q")) == "Be brief."
        assert system_of(await other.prepare("Q")) == ""

    run(body())


def test_a_fork_takes_the_hooks_along_and_keeps_later_ones_to_itself() -> None:
    async def body() -> None:
        session = await World().open(hooks=giving(BRIEF))
        fork = await session.fork()
        fork.hooks.context(partial(_give, SystemPartSet(name="x", text="X", reason=WHY)))
        assert system_of(await fork.prepare("Q")) == "Be brief.\n\nX"
        assert system_of(await session.prepare("Q")) == "Be brief."

    run(body())


# -- all or nothing ------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [BLANK, APART, "nonsense", {"op": "system_part_sett"}])
def test_nothing_is_written_if_a_later_hook_is_wrong_and_the_next_prepare_works(wrong: Any) -> None:
    async def body() -> None:
        world = World()
        hooks, _ = seeing("before_request", None, BRIEF, None, None)
        later, _ = seeing("before_request", None, wrong)
        session = await world.open(hooks=hooks.joined(later), system="S")
        await talk(session)
        await refused(world, session, session.prepare("Q2", attach=["a.md"]), LaminaError)
        turn = await session.prepare("Q2")
        assert system_of(turn) == "S"
        await turn.commit(openai_reply())
        await sound(world, session)

    run(body())


@pytest.mark.parametrize("wrong", [BLANK, APART, "nonsense"])
def test_results_can_be_given_again_if_a_hook_stopped_their_request(wrong: Any) -> None:
    async def body() -> None:
        world = World()
        hooks, _ = seeing("before_request", None, wrong)
        session = await world.open(hooks=hooks)
        turn = await with_call(session)
        await refused(world, session, turn.resume({"c1": "found"}), LaminaError)
        turn = await turn.resume({"c1": "found"})
        await turn.commit(openai_reply())
        await sound(world, session)

    run(body())


OPS: list[Any] = [
    BRIEF,
    [BRIEF, OptionsSet(temperature=0.5)],
    Patch(ops=(SystemPartRemove(name="tone", reason=WHY),), display=Display(title="T")),
    {"op": "options_set", "max_tokens": 50},
    {"op": "tools_remove", "names": ["find"], "invalidate_cache_reason": WHY, "scope": "cached"},
    (ToolsReplace(tools=(ToolDefinition(name="find"),), reason=WHY),),
    None,
    [],
    Patch(ops=()),
]
WRONG: list[Any] = [
    BLANK,
    [BRIEF, BLANK],
    APART,
    {"op": "nope"},
    {"op": "options_set", "temperature": -1},
    OptionsSet(max_tokens=-1),
    [BRIEF, None],
    "text",
    7,
    SystemPartSet(name="library", text="L", reason=WHY),
    ToolsReplace(tools=(ToolDefinition(name="a"), ToolDefinition(name="a")), reason=WHY),
    ItemLay(item=note("never.md", "N").id, version="v"),
]


@thorough
@given(st.lists(st.sampled_from(OPS + WRONG), max_size=5), st.booleans())
def test_of_any_list_of_results_everything_is_written_or_nothing(
    results: Sequence[Any], between_calls: bool
) -> None:
    async def body() -> None:
        world = World()
        session = await world.open(system="S", tools=[ToolDefinition(name="find")])
        begun = await with_call(session) if between_calls else None
        for number, result in enumerate(results):
            session.hooks.context(name=f"hook {number}")(partial(_give, result))
        attempt = begun.resume({"c1": "found"}) if begun else session.prepare("Q")
        if any(any(result is each for each in WRONG) for result in results):
            await refused(world, session, attempt, LaminaError)
            session = await world.open(session.id)
            turn = await session.current_turn() if begun else await session.prepare("Q")
            assert turn is not None
        else:
            await attempt
            # What would change nothing is not written; the rest is, in order.
            changing = [f"hook {n}" for n, result in enumerate(results) if _changes(result)]
            written = [name for name in transformers(session) if "hook" in name]
            assert written == [name for name in changing if name in written]
        await sound(world, session)

    run(body())


def _changes(result: Any) -> bool:
    return bool(result.ops if isinstance(result, Patch) else result)


# -- what they may return ------------------------------------------------------------------------


@pytest.mark.parametrize("nothing", [None, [], (), Patch(ops=()), iter(())])
def test_a_hook_that_returns_nothing_gives_no_entry(nothing: Any) -> None:
    async def body() -> None:
        world = World()
        plain, hooked = await world.open("plain"), await world.open("h", hooks=giving(nothing))
        one, other = await talk(plain), await talk(hooked)
        assert transformers(hooked) == transformers(plain)
        assert [type(e) for e in hooked.entries] == [type(e) for e in plain.entries]
        assert digests(one) == digests(other)

    run(body())


@pytest.mark.parametrize(
    "rubbish", ["text", b"bytes", 7, True, object(), SystemPartSet, Patch, list, dict, [7], [None]]
)
@pytest.mark.parametrize("reason", ["before_request", "ephemeral"])
def test_rubbish_is_a_hook_error_that_names_the_hook(reason: HookReason, rubbish: Any) -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=giving(None, rubbish, reason=reason))
        error = await refused(world, session, session.prepare("Q"))
        assert error.code == "hook"
        assert str(error).startswith("hook 'hook 1': returned ")

    run(body())


# Values are not checked when they are made: types say so, and most Python has none.
ILL_TYPED: dict[str, Any] = {
    "patch of text": Patch(ops=("nonsense",)),  # type: ignore[arg-type]
    "patch of an op": Patch(ops=BRIEF),  # type: ignore[arg-type]
    "patch of dicts": Patch(ops=({"op": "nope"},)),  # type: ignore[arg-type]
    "text none": SystemPartSet(name="tone", text=None, reason=WHY),  # type: ignore[arg-type]
    "reason none": SystemPartSet(name="tone", text="T", reason=None),  # type: ignore[arg-type]
    "name none": SystemPartSet(name=None, text="T", reason=WHY),  # type: ignore[arg-type]
    "part is text": SystemPartsReplace(parts=("S",), reason=WHY),  # type: ignore[arg-type]
    "temperature": OptionsSet(temperature="hot"),  # type: ignore[arg-type]
    "reasoning": OptionsSet(reasoning=7),  # type: ignore[arg-type]
    "message": MessagesCachedReplace(messages=("hello",), reason=WHY),  # type: ignore[arg-type]
    "role": MessagesCachedReplace(
        messages=(Message(role="system", blocks=(Text("S"),)),),  # type: ignore[arg-type]
        reason=WHY,
    ),
    "cut": CompactionApply(first_kept="all", summary="S", reason=WHY),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("ill", ILL_TYPED)
def test_an_op_with_a_value_of_the_wrong_type_is_an_error_and_nothing_is_written(ill: str) -> None:
    async def body() -> None:
        world = World()
        session = await world.open(system="S")
        await talk(session)
        session.hooks.context(partial(_give, ILL_TYPED[ill]))
        await refused(world, session, session.prepare("Q"), LaminaError)
        again = await world.open(session.id)
        assert not again.damage
        await talk(again)

    run(body())


@pytest.mark.parametrize("ill", ILL_TYPED)
def test_an_op_of_the_wrong_type_after_a_turn_is_reported_and_the_session_goes_on(ill: str) -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=giving(ILL_TYPED[ill], reason="turn_end"), system="S")
        turn = await talk(session)
        assert turn.warnings
        assert not transformers(session)
        await talk(session)
        await sound(world, session)

    run(body())


def test_a_hook_may_yield_its_ops() -> None:
    async def body() -> None:
        session = await World().open()

        @session.hooks.context
        def hook(event: ContextEvent) -> Iterator[PatchOp]:
            yield BRIEF
            yield OptionsSet(temperature=0)

        turn = await session.prepare("Q")
        assert system_of(turn) == "Be brief."
        assert turn.request()["temperature"] == 0

    run(body())


def test_a_hook_that_fails_while_it_yields_is_a_hook_error() -> None:
    async def body() -> None:
        world = World()
        session = await world.open()

        @session.hooks.context(name="yielding")
        def hook(event: ContextEvent) -> Iterator[PatchOp]:
            yield BRIEF
            raise ValueError("half way")

        error = await refused(world, session, session.prepare("Q"))
        assert "'yielding'" in str(error)
        assert "half way" in str(error)

    run(body())


def test_a_hook_that_hangs_while_it_yields_is_stopped_by_its_time_limit() -> None:
    # In a process of its own: its event loop is held up by it.
    script = """
import anyio, threading, lamina
from tests.fakes.sessions import World

async def main():
    session = await World().open()
    @session.hooks.context(timeout=0.05)
    def hook(event):
        threading.Event().wait(2)
        yield {"op": "options_set", "temperature": 0}
    try:
        await session.prepare("Q")
    except lamina.LaminaError as error:
        print(error)

anyio.run(main)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert "took longer than its 0.05 s" in done.stdout, done.stderr


def test_dict_ops_are_as_a_journal_holds_them() -> None:
    async def body() -> None:
        world = World()
        op = {"op": "system_part_set", "name": "tone", "text": "Be brief.", "scope": "cached"}
        given = {**op, "invalidate_cache_reason": WHY}
        session = await world.open(
            hooks=giving(given, [given, {"op": "options_set", "temperature": 0}])
        )
        turn = await talk(session)
        assert system_of(turn) == "Be brief."
        written = [e.patch.ops for e in session.entries if isinstance(e, TransformEntry)]
        assert written == [(BRIEF,), (BRIEF, OptionsSet(temperature=0))]
        await sound(world, session)

    run(body())


@pytest.mark.parametrize(
    ("op", "said"),
    [
        ({"op": "system_part_sett"}, "system_part_sett"),
        ({"op": "tools_remove", "names": [], "reasn": WHY}, "reasn"),
        ({"op": "tools_remove", "names": [], "scope": "uncached", "reason": WHY}, "scope"),
        ({"op": "messages_uncached_append", "messages": [], "scope": "cached"}, "scope"),
        ({"op": "tools_remove", "names": [], "reason": "\t"}, "tools_remove"),
        ({"op": "tools_remove", "names": []}, "tools_remove"),
        ({"name": "tone"}, "op"),
        ({}, "op"),
    ],
)
def test_a_wrong_dict_op_is_an_error_that_says_what_is_wrong(
    op: Mapping[str, Any], said: str
) -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=giving(op))
        error = await refused(world, session, session.prepare("Q"), InvalidPatch)
        assert said in str(error)

    run(body())


@pytest.mark.parametrize("wrong", [BLANK, {"op": "nope"}, OptionsSet(max_tokens=-1)])
def test_a_wrong_op_is_an_error_that_names_the_hook(wrong: Any) -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=giving(BRIEF, wrong))
        error = await refused(world, session, session.prepare("Q"), InvalidPatch)
        assert "'hook 1'" in str(error)

    run(body())


def test_a_blank_reason_is_an_error_that_names_the_op() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=giving(BRIEF, BLANK))
        error = await refused(world, session, session.prepare("Q"), InvalidPatch)
        assert isinstance(error, InvalidPatch)
        assert error.op == "system_part_set"
        assert "reason" in str(error)

    run(body())


@pytest.mark.parametrize("op", [APART, {"op": "messages_uncached_append", "messages": []}])
@pytest.mark.parametrize("first", [BRIEF, None])
def test_uncached_text_before_a_request_is_an_error_and_nothing_is_written(
    op: Any, first: Any
) -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=giving(first, op))
        error = await refused(world, session, session.prepare("Q"), InvalidPatch)
        assert isinstance(error, InvalidPatch)
        assert error.op == "messages_uncached_append"
        assert "ephemeral" in str(error)
        assert "'hook 1'" in str(error)

    run(body())


@pytest.mark.parametrize(
    "op",
    [
        MessagesCachedReplace(messages=(), reason=WHY),
        CompactionApply(first_kept=99, summary="S", reason=WHY),
        MessagesCachedReplace(
            messages=(Message(role="user", blocks=(Text("Q"),), id="q"),), reason=WHY
        ),
    ],
)
def test_no_hook_takes_a_call_away_from_the_results_that_are_about_to_be_sent(op: PatchOp) -> None:
    async def body() -> None:
        world = World()
        hooks, _ = seeing("before_request", None, op)
        session = await world.open(hooks=hooks)
        turn = await with_call(session)
        try:
            turn = await turn.resume({"c1": "found"})
        except InvalidPatch:
            return
        called = {call["id"] for m in messages_of(turn) for call in m.get("tool_calls", ())}
        answered = {m["tool_call_id"] for m in messages_of(turn) if m["role"] == "tool"}
        assert answered <= called
        await sound(world, session)

    run(body())


def test_no_hook_puts_a_call_without_result_in_front_of_the_question() -> None:
    async def body() -> None:
        call = Message(role="assistant", blocks=(ToolCall(id="x", name="find"),))
        op = MessagesCachedReplace(messages=(call,), reason=WHY)
        hooks, _ = seeing("before_request", None, op)
        world = World()
        session = await world.open(hooks=hooks)
        await talk(session)
        await refused(world, session, session.prepare("Q"), InvalidPatch)

    run(body())


def test_what_a_hook_is_given_cannot_be_changed_in_place() -> None:
    async def body() -> None:
        world = World()
        tool = ToolDefinition(name="find", parameters={"type": "object"})
        session = await world.open(tools=[tool])

        @session.hooks.context
        def scribble(event: ContextEvent) -> None:
            try:
                event.envelope.tools[0].parameters["type"] = "scribbled"
            except TypeError:
                return

        await talk(session)
        assert session.envelope.tools[0].parameters == {"type": "object"}
        await sound(world, session)

    run(body())


def test_what_a_hook_returned_cannot_be_changed_afterwards() -> None:
    async def body() -> None:
        world = World()
        parts = [SystemPart(name="a", text="A")]
        op = SystemPartsReplace(parts=parts, reason=WHY)  # type: ignore[arg-type]
        hooks, _ = seeing("before_request", op)
        session = await world.open(hooks=hooks)
        await talk(session)
        parts.append(SystemPart(name="b", text="B"))
        assert [part.name for part in session.envelope.system] == ["a"]
        assert system_of(await session.prepare("Q")) == "A"

    run(body())


# -- failing, slow, cancelled --------------------------------------------------------------------


@pytest.mark.parametrize("threaded", [True, False])
def test_an_exception_stops_the_request_and_names_the_hook(threaded: bool) -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=giving(BRIEF))

        def failing(event: ContextEvent) -> None:
            raise LookupError("no such row")

        async def failing_later(event: ContextEvent) -> None:
            failing(event)

        session.hooks.context(name="rows")(failing if threaded else failing_later)
        error = await refused(world, session, session.prepare("Q"))
        assert isinstance(error, HookError)
        assert (error.code, error.hook) == ("hook", "rows")
        assert str(error) == "hook 'rows': LookupError: no such row"
        assert isinstance(error.__cause__, LookupError)

    run(body())


def test_a_hook_that_raises_stop_iteration_is_a_hook_error() -> None:
    async def body() -> None:
        world = World()
        session = await world.open()
        session.hooks.context(lambda event: next(iter(())))
        await refused(world, session, session.prepare("Q"))

    run(body())


async def _wait_forever(event: ContextEvent) -> None:
    await anyio.Event().wait()


@pytest.mark.parametrize("kind", ["async", "sync", "cpu", "async object", "awaitable"])
def test_a_hook_that_is_too_slow_stops_the_request(kind: str) -> None:
    over = threading.Event()

    class Waiting:
        async def __call__(self, event: ContextEvent) -> None:
            await anyio.Event().wait()

    def spin(event: ContextEvent) -> None:
        while not over.is_set():
            pass

    handlers: dict[str, Callable[[ContextEvent], Any]] = {
        "async": _wait_forever,
        "sync": lambda event: over.wait(),
        "cpu": spin,
        "async object": Waiting(),
        "awaitable": lambda event: _wait_forever(event),
    }

    async def body() -> None:
        world = World()
        session = await world.open(hooks=giving(BRIEF))
        session.hooks.context(name="slow", timeout=LIMIT)(handlers[kind])
        with anyio.fail_after(20):
            error = await refused(world, session, session.prepare("Q"))
        assert str(error) == "hook 'slow': took longer than its 0.05 s"

    try:
        run(body())
    finally:
        over.set()


def test_a_late_result_that_swallowed_its_cancellation_does_not_count() -> None:
    async def body() -> None:
        world = World()
        session = await world.open()

        @session.hooks.context(timeout=LIMIT)
        async def stubborn(event: ContextEvent) -> PatchOp:
            try:
                await anyio.Event().wait()
            except BaseException:  # noqa: BLE001
                return BRIEF
            raise AssertionError

        await refused(world, session, session.prepare("Q"))

    run(body())


def test_a_hook_that_hangs_does_not_keep_the_process_alive() -> None:
    script = """
import anyio, threading, lamina
from tests.fakes.sessions import World

async def main():
    session = await World().open()
    session.hooks.context(timeout=0.05)(lambda event: threading.Event().wait())
    try:
        await session.prepare("Q")
    except lamina.LaminaError as error:
        print(error.code)

anyio.run(main)
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "hook\n"
        try:
            assert process.wait(timeout=5) == 0
        finally:
            process.kill()


def test_other_sessions_go_on_while_a_hook_is_waited_for() -> None:
    over = threading.Event()

    async def body() -> None:
        world = World()
        slow, quick = await world.open("slow"), await world.open("quick")
        started, token = anyio.Event(), current_token()

        @slow.hooks.context
        def wait(event: ContextEvent) -> None:
            anyio.from_thread.run_sync(started.set, token=token)
            over.wait()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(slow.prepare, "Q")
            await started.wait()
            await talk(quick)
            over.set()
        assert slow.interrupted

    try:
        run(body())
    finally:
        over.set()


@pytest.mark.parametrize("reason", ["before_request", "ephemeral"])
@pytest.mark.parametrize("threaded", [True, False])
def test_a_cancellation_reaches_a_long_hook_and_the_session_is_usable(
    reason: HookReason, threaded: bool
) -> None:
    over = threading.Event()

    async def body() -> None:
        world = World()
        hooks, _ = seeing("before_request", BRIEF)
        session = await world.open(hooks=hooks)
        started, token = anyio.Event(), current_token()
        calls: list[ContextEvent] = []

        def wait(event: ContextEvent) -> None:
            calls.append(event)
            if len(calls) == 1:
                anyio.from_thread.run_sync(started.set, token=token)
                over.wait()

        async def wait_async(event: ContextEvent) -> None:
            calls.append(event)
            if len(calls) == 1:
                started.set()
                await anyio.Event().wait()

        session.hooks.context(reason=reason)(wait if threaded else wait_async)
        entries = session.entries
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.prepare, "never sent")
            await started.wait()
            tasks.cancel_scope.cancel()
        assert session.entries == entries
        assert not session.interrupted
        turn = await talk(session, "Q")
        assert "never sent" not in str(turn.request())
        await sound(world, session)

    try:
        run(body())
    finally:
        over.set()


def test_a_cancellation_while_a_turn_ends_does_not_lose_the_answer() -> None:
    async def body() -> None:
        world = World()
        session = await world.open()
        started = anyio.Event()

        @session.hooks.context(reason="turn_end")
        async def wait(event: ContextEvent) -> None:
            if not started.is_set():
                started.set()
                await anyio.Event().wait()

        turn = await session.prepare("Q")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(turn.commit, openai_reply("the answer"))
            await started.wait()
            tasks.cancel_scope.cancel()
        assert session.envelope.cached[-1].text == "the answer"
        assert await session.current_turn() is None
        await talk(session, "Q2")
        await sound(world, session)

    run(body())


def test_a_hook_that_uses_the_session_it_is_called_by_is_an_error_and_no_deadlock() -> None:
    async def body() -> None:
        world = World()
        session = await world.open()

        @session.hooks.context(timeout=LIMIT)
        async def meddle(event: ContextEvent) -> None:
            await session.rename("mine")

        with anyio.fail_after(20):
            await refused(world, session, session.prepare("Q"))

    run(body())


# -- replay --------------------------------------------------------------------------------------


def test_without_the_hooks_installed_replay_gives_the_same_messages_and_digests() -> None:
    async def body() -> None:
        world = World()
        greeting = Message(role="assistant", blocks=(Text("Welcome."),))
        results = [
            [SystemPartSet(name="tone", text="Be brief.", reason=WHY), OptionsSet(temperature=0)],
            ToolsReplace(tools=(ToolDefinition(name="find"),), reason=WHY),
            None,
            MessagesCachedReplace(messages=(greeting,), reason=WHY),
            CompactionApply(first_kept=99, summary="They met.", reason=WHY),
        ]
        hooks, _ = seeing("before_request", *results)
        session = await world.open(hooks=hooks, system="S")
        turns = [await talk(session, f"Q{number}", "gone.md") for number in range(4)]
        turns.append(await session.prepare("last", attach=[note("a.md", "A")]))
        again = await world.open(session.id)
        rebuilt = await again.current_turn()
        assert rebuilt is not None
        assert rebuilt.request() == turns[-1].request()
        assert digests(rebuilt) == digests(turns[-1])
        assert again.envelope == session.envelope
        await sound(world, session)

    run(body())


def test_a_patch_keeps_how_it_is_displayed() -> None:
    async def body() -> None:
        world = World()
        display = Display(title="Tone", summary="Brief now.", markdown="**brief**")
        session = await world.open(hooks=giving(Patch(ops=(BRIEF,), display=display)))
        await talk(session)
        again = await world.open(session.id)
        kept = [e.patch.display for e in again.entries if isinstance(e, TransformEntry)]
        assert kept == [display]

    run(body())


def test_a_hook_that_says_the_same_again_does_not_move_the_prefix() -> None:
    async def body() -> None:
        session = await World().open(hooks=giving(BRIEF), system="S")
        a = note("a.md", words(50))
        for _ in range(3):
            turn = await talk(session, "Q", a)
        assert turn.context.agreement.broke is None
        assert turn.context.boundaries == ()

    run(body())


def test_an_abandoned_request_leaves_what_hooks_changed_for_it_on_its_branch() -> None:
    async def body() -> None:
        world = World()
        hooks, _ = seeing("before_request", None, BRIEF, None)
        session = await world.open(hooks=hooks, system="S")
        await talk(session)
        assert system_of(await session.prepare("Q2")) == "S\n\nBe brief."
        turn = await session.prepare("Q2, said better")
        assert system_of(turn) == "S"
        await turn.commit(openai_reply())
        await sound(world, session)

    run(body())


# -- after the turn ------------------------------------------------------------------------------


def test_turn_end_runs_once_after_the_final_answer_and_sees_it() -> None:
    async def body() -> None:
        hooks, seen = seeing("turn_end")
        session = await World().open(hooks=hooks)
        turn = await with_call(session)
        turn = await turn.resume({"c1": "found"})
        assert not seen
        await turn.commit(openai_reply("Done."))
        (event,) = seen
        assert event.message is not None
        assert (event.message.role, event.message.text) == ("assistant", "Done.")
        assert event.envelope.cached[-1] == event.message
        assert (event.reason, event.target) == ("turn_end", "fake:small")

    run(body())


def test_what_turn_end_changes_holds_for_the_next_turn() -> None:
    async def body() -> None:
        world = World()
        hooks, _ = seeing("turn_end", BRIEF)
        session = await world.open(hooks=hooks, system="S")
        turn = await talk(session)
        assert turn.warnings == ()
        assert system_of(turn) == "S"
        again = await world.open(session.id)
        turn = await again.prepare("Q2")
        assert system_of(turn) == "S\n\nBe brief."
        assert turn.context.agreement.broke is not None
        assert turn.context.agreement.broke.reason == WHY
        await sound(world, again)

    run(body())


def _raise(event: ContextEvent) -> None:
    raise LookupError("no such row")


def _yield_and_raise(event: ContextEvent) -> Iterator[PatchOp]:
    yield BRIEF
    raise LookupError("no such row")


@pytest.mark.parametrize(
    "failing",
    [_raise, _yield_and_raise, partial(_give, BLANK), partial(_give, APART), partial(_give, list),
     _wait_forever],
)  # fmt: skip
def test_a_failing_turn_end_keeps_the_answer_and_is_said_and_written_down(
    failing: Callable[[ContextEvent], Any],
) -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=giving(BRIEF, reason="turn_end"))
        session.hooks.context(reason="turn_end", name="rows", timeout=LIMIT)(failing)
        turn = await talk(session, answer="the answer")
        assert turn.answer == "the answer"
        (said,) = turn.warnings
        assert said.startswith("after the turn: ")
        assert "'rows'" in said
        (problem,) = [e for e in session.entries if isinstance(e, CustomEntry)]
        assert problem.kind == PROBLEM
        assert problem.data["problem"] in said
        assert not transformers(session)
        await talk(session, "Q2")
        await sound(world, session)

    run(body())


def test_text_that_cannot_be_encoded_is_an_error_of_the_hook() -> None:
    async def body() -> None:
        world = World()
        lone = SystemPartSet(name="tone", text="\ud800", reason=WHY)
        session = await world.open(hooks=giving(lone))
        await refused(world, session, session.prepare("Q"), LaminaError)
        session = await world.open("end", hooks=giving(lone, reason="turn_end"))
        turn = await talk(session, answer="the answer")
        assert turn.warnings
        assert session.envelope.system == ()

    run(body())


# -- registering ---------------------------------------------------------------------------------


def test_decorators_work_with_and_without_arguments_and_give_the_function_back() -> None:
    hooks = Hooks()

    @hooks.context
    def bare(event: ContextEvent) -> None: ...

    @hooks.context()
    def called(event: ContextEvent) -> None: ...

    @hooks.context(reason="turn_end", name="named", timeout=3)
    async def told(event: ContextEvent) -> None: ...

    first, second = hooks.for_context("before_request")
    (third,) = hooks.for_context("turn_end")
    assert (first.handler, second.handler, third.handler) == (bare, called, told)
    assert first.name.endswith("test_context_hooks." + bare.__qualname__)
    assert (third.name, third.timeout) == ("named", 3)
    assert first.timeout == 10.0
    assert hooks.for_context("ephemeral") == ()


class Policy:
    def check(self, event: ContextEvent) -> None: ...

    def __call__(self, event: ContextEvent) -> None: ...


@pytest.mark.parametrize(
    ("handler", "name"),
    [
        (Policy().check, "Policy.check"),
        (Policy(), "Policy"),
        (partial(_give, None), "_give"),
        (print, "print"),
    ],
)
def test_every_callable_has_a_name_a_person_can_find_it_by(handler: Any, name: str) -> None:
    hooks = Hooks()
    hooks.context(handler)
    (hook,) = hooks.for_context("before_request")
    assert name in hook.name
    assert "0x" not in hook.name
    assert "None" not in hook.name


@pytest.mark.parametrize("limit", [0, -1, float("nan")])
def test_a_time_limit_is_above_zero(limit: float) -> None:
    with pytest.raises(UsageError, match="time limit"):
        Hooks().context(timeout=limit)(_raise)


@pytest.mark.parametrize("reason", ["before", "", None, "compaction"])
def test_an_unknown_reason_is_an_error_when_the_hook_is_registered(reason: Any) -> None:
    with pytest.raises(UsageError, match="before_request"):
        Hooks().context(reason=reason)


@pytest.mark.parametrize("handler", ["ephemeral", 7, BRIEF])
def test_what_cannot_be_called_is_refused_when_it_is_registered(handler: Any) -> None:
    with pytest.raises(UsageError):
        Hooks().context(handler)


# -- cost ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("hooked", [True, False])
def test_history_is_not_copied_from_turn_to_turn(hooked: bool) -> None:
    async def body() -> None:
        session = await World().open(window=1_000_000, system="S")
        if hooked:
            for reason in ("before_request", "ephemeral", "turn_end"):
                session.hooks.context(reason=reason)(partial(_give, None))
            session.hooks.context(partial(_give, OptionsSet(temperature=0)))
            session.hooks.message(partial(_give, None))
        await talk(session)
        for number in range(20):
            before = session.envelope.cached
            turn = await with_call(session, f"Q{number}")
            turn = await turn.resume({"c1": "found"})
            await turn.commit(openai_reply())
            assert session.envelope.cached.shared_with(before) == len(before)

    run(body())


def test_a_turn_with_hooks_counts_no_more_tokens_late_than_early() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(window=1_000_000, hooks=giving(None, OptionsSet(temperature=0)))
        session.hooks.context(reason="ephemeral")(partial(_give, APART))
        asked = []
        for number in range(40):
            before = world.book.words.asked
            await talk(session, f"Q{number}", note(f"{number}.md", words(5)))
            asked.append(world.book.words.asked - before)
        assert max(asked[-10:]) <= max(asked[1:10])

    run(body())
