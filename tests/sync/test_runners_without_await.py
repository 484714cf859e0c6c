"""Runners that are called without `await`: answers, streams, callbacks and what stops them."""

import threading
from contextvars import ContextVar
from pathlib import Path

import anyio
import pytest
from tests.fakes.providers import ProviderFake, ProvidersFake, Script, calling, saying, spoken
from tests.fakes.tools import ToolHostFake
from tests.sync.scenes import history, open_agent, open_chat

import lamina
import lamina.sync
from lamina.core.values.event import BlockDelta, Event, ToolStarted, TurnEnded
from lamina.core.values.message import ToolCall
from lamina.core.values.tool import Decision, OfferedTool
from lamina.errors import ProviderError, SessionBusy, TurnStateError

CALL = ("c1", "tide", {"harbour": "Cork"})


def test_a_question_is_answered() -> None:
    with open_chat(saying("Berth nine.")) as chat:
        answer = chat.run("Which berth?")
        assert (answer.ending, answer.text, answer.requests) == ("answered", "Berth nine.", 1)
        assert isinstance(answer.turn, lamina.sync.Turn)
        assert history(chat.session) == [("user", "Which berth?"), ("assistant", "Berth nine.")]


def test_events_are_told_in_the_thread_that_waits() -> None:
    events: list[Event] = []
    threads: set[threading.Thread] = set()

    def hear(event: Event) -> None:
        events.append(event)
        threads.add(threading.current_thread())

    with open_chat(saying("Berth nine.")) as chat:
        chat.run("Which berth?", on_event=hear)
    assert threads == {threading.current_thread()}
    assert events[-1] == TurnEnded(ending="answered", answer="Berth nine.", requests=1)


def test_an_async_listener_is_awaited() -> None:
    events: list[Event] = []

    async def hear(event: Event) -> None:
        await anyio.lowlevel.checkpoint()
        events.append(event)

    with open_chat(saying("Berth nine.")) as chat:
        chat.run("Which berth?", on_event=hear)
    assert isinstance(events[-1], TurnEnded)


def test_an_error_of_a_listener_is_raised_and_what_came_is_kept() -> None:
    def hear(event: Event) -> None:
        if isinstance(event, BlockDelta) and event.text == " nine":
            raise ZeroDivisionError

    with open_chat([*spoken("Berth nine"), anyio.Event()], saying("Ten.")) as chat:
        with pytest.raises(ZeroDivisionError):
            chat.run("Which berth?", on_event=hear)
        assert history(chat.session)[-1] == ("assistant", "Berth nine")
        assert chat.run("And now?").text == "Ten."


def test_a_listener_can_stop_the_turn() -> None:
    with open_chat([*spoken("Berth nine"), anyio.Event()], saying("Ten.")) as chat:

        def hear(event: Event) -> None:
            if isinstance(event, BlockDelta) and event.text == " nine":
                assert chat.running
                assert chat.abort()

        answer = chat.run("Which berth?", on_event=hear)
        assert (answer.ending, answer.text) == ("aborted", "Berth nine")
        assert not chat.abort()
        assert chat.run("And now?").text == "Ten."


def test_another_thread_can_stop_the_turn() -> None:
    written = threading.Event()

    def hear(event: Event) -> None:
        if isinstance(event, BlockDelta) and event.text == " nine":
            written.set()

    with open_chat([*spoken("Berth nine"), anyio.Event()]) as chat:

        def stop() -> None:
            written.wait(30)
            chat.abort()

        thread = threading.Thread(target=stop)
        thread.start()
        assert chat.run("Which berth?", on_event=hear).ending == "aborted"
        thread.join()


def test_a_failed_question_is_resumed() -> None:
    with open_chat([ProviderError("no line")], saying("Nine.")) as chat:
        with pytest.raises(ProviderError, match="no line"):
            chat.run("Which berth?")
        assert chat.resume().text == "Nine."
        with pytest.raises(TurnStateError):
            chat.resume()


def test_a_preview_holds_a_turn_that_needs_no_await() -> None:
    with open_chat() as chat:
        preview = chat.preview("Which berth?")
        assert isinstance(preview, lamina.sync.Preview)
        assert preview.turn.request()["messages"][-1]["content"] == "Which berth?"


# -- streams -------------------------------------------------------------------------------------


def test_a_stream_gives_the_events_in_order() -> None:
    text = " ".join(f"w{number}" for number in range(200))
    with open_chat(saying(text)) as chat:
        with chat.stream("Which berth?") as events:
            seen = list(events)
        written = [event.text for event in seen if isinstance(event, BlockDelta)]
        assert "".join(written) == text
        assert isinstance(seen[-1], TurnEnded)


def test_a_stream_that_is_left_stops_the_model_and_keeps_what_came() -> None:
    script: Script = [*spoken("Berth nine"), anyio.Event()]
    provider = ProviderFake(script, saying("Ten."))
    with open_chat(providers=ProvidersFake(provider)) as chat:
        with chat.stream("Which berth?") as events:
            for event in events:
                if isinstance(event, BlockDelta) and event.text == " nine":
                    break
        assert provider.closed == 1
        assert history(chat.session)[-1] == ("assistant", "Berth nine")
        assert chat.run("And now?").text == "Ten."


def test_a_stream_that_nobody_reads_is_stopped_with_its_block() -> None:
    with open_chat([anyio.Event()]) as chat:
        with chat.stream("Which berth?"):
            pass
        assert not chat.running


def test_what_went_wrong_with_a_stream_is_raised_behind_its_events() -> None:
    with open_chat([*spoken("Berth nine"), ProviderError("no line")]) as chat:
        seen: list[Event] = []
        with pytest.raises(ProviderError, match="no line"), chat.stream("Which berth?") as events:
            seen.extend(events)
        assert "".join(e.text for e in seen if isinstance(e, BlockDelta)) == "Berth nine"


def test_the_error_of_a_block_is_not_hidden_by_that_of_its_stream() -> None:
    with open_chat([ProviderError("no line")]) as chat:

        def read() -> None:
            with chat.stream("Which berth?") as events:
                list(events)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            read()
        assert not chat.running


# -- tools, approvers, hooks ---------------------------------------------------------------------

USER: ContextVar[str] = ContextVar("user", default="nobody")


def test_a_plain_tool_runs_and_sees_the_context_of_the_caller() -> None:
    seen: list[tuple[str, bool]] = []

    @lamina.tool(permission="free")
    def tide(harbour: str) -> str:
        """Tells when the water is high."""
        seen.append((USER.get(), threading.current_thread() is threading.main_thread()))
        return f"noon in {harbour}"

    token = USER.set("ann")
    with open_agent(calling(CALL), saying("At noon."), tools=[tide]) as agent:
        assert agent.run("When?").text == "At noon."
    USER.reset(token)
    assert seen == [("ann", False)]


def test_a_tool_that_waits_does_not_hold_up_other_sessions() -> None:
    is_answered = threading.Event()

    @lamina.tool(permission="free")
    def tide(harbour: str) -> str:
        """Tells when the water is high."""
        return "noon" if is_answered.wait(30) else "too late"

    def ask_meanwhile(event: Event) -> None:
        if isinstance(event, ToolStarted):
            with open_chat(saying("Nine.")) as chat:
                assert chat.run("Which berth?").text == "Nine."
            is_answered.set()

    provider = ProviderFake(calling(CALL), saying("At noon."))
    with open_agent(providers=ProvidersFake(provider), tools=[tide]) as agent:
        agent.run("When?", on_event=ask_meanwhile)
    assert provider.bodies[-1]["messages"][-1]["content"] == "noon"


def test_a_plain_function_approves_in_the_thread_that_waits() -> None:
    asked: list[tuple[str, str, bool]] = []

    def decide(call: ToolCall, tool: OfferedTool) -> Decision:
        is_here = threading.current_thread() is threading.main_thread()
        asked.append((call.name, USER.get(), is_here))
        return "deny"

    @lamina.tool
    def tide(harbour: str) -> str:
        """Tells when the water is high."""
        raise AssertionError("it was denied")

    token = USER.set("ann")
    with open_agent(calling(CALL), saying("No."), tools=[tide], approver=decide) as agent:
        assert agent.run("When?").text == "No."
    USER.reset(token)
    assert asked == [("tide", "ann", True)]


def test_an_approver_of_the_async_door_works_here_too() -> None:
    class Person:
        async def decide(self, call: ToolCall, tool: OfferedTool) -> Decision:
            await anyio.lowlevel.checkpoint()
            return "allow_once"

    @lamina.tool
    def tide(harbour: str) -> str:
        """Tells when the water is high."""
        return "noon"

    with open_agent(calling(CALL), saying("At noon."), tools=[tide], approver=Person()) as agent:
        assert agent.run("When?").text == "At noon."


def test_an_approver_is_asked_while_a_stream_is_read() -> None:
    @lamina.tool
    def tide(harbour: str) -> str:
        """Tells when the water is high."""
        return "noon"

    scripts = calling(CALL), saying("At noon.")
    with (
        open_agent(*scripts, tools=[tide], approver=lambda call, tool: "allow_once") as agent,
        agent.stream("When?") as events,
    ):
        assert list(events)[-1] == TurnEnded(ending="answered", answer="At noon.", requests=2)


def test_hooks_see_the_context_of_the_caller_whether_they_are_async_or_not() -> None:
    seen: list[str] = []
    hooks = lamina.Hooks()

    @hooks.context
    def plain(event: object) -> None:
        seen.append(USER.get())

    @hooks.context
    async def waiting(event: object) -> None:
        seen.append(USER.get())

    token = USER.set("ann")
    with open_chat(saying("Nine."), hooks=hooks) as chat:
        chat.run("Which berth?")
    USER.reset(token)
    assert seen == ["ann", "ann"]


def test_a_message_is_sent_while_the_turn_is_under_way() -> None:
    @lamina.tool(permission="free")
    def tide(harbour: str) -> str:
        """Tells when the water is high."""
        return "noon"

    provider = ProviderFake(calling(CALL), saying("At one."))
    with open_agent(providers=ProvidersFake(provider), tools=[tide]) as agent:

        def steer(event: Event) -> None:
            if isinstance(event, ToolStarted):
                agent.send_message("And tomorrow?")

        agent.run("When?", on_event=steer)
    assert provider.bodies[-1]["messages"][-1] == {"role": "user", "content": "And tomorrow?"}


def test_a_call_that_waits_is_decided_and_the_turn_resumed() -> None:
    @lamina.tool
    def tide(harbour: str) -> str:
        """Tells when the water is high."""
        return "noon"

    with open_agent(calling(CALL), saying("At noon."), tools=[tide]) as agent:
        assert agent.run("When?").ending == "waiting"
        assert [call.id for call in agent.session.pending_calls] == ["c1"]
        agent.decide("c1", "allow_once")
        assert agent.resume().text == "At noon."


def test_tools_that_have_to_be_opened_are_opened_and_closed_with_the_block() -> None:
    host = ToolHostFake()
    with open_agent(saying("Nine."), tools=host) as agent:
        assert not host.closed
        agent.run("Which berth?")
    assert host.closed


def test_a_block_that_is_left_by_an_error_closes_the_runner(tmp_path: Path) -> None:
    store = lamina.JsonlStore(tmp_path, wait=0.0)

    def fail() -> None:
        with open_chat(store=store):
            with pytest.raises(SessionBusy):
                open_chat(store=store)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    open_chat(store=store).close()
