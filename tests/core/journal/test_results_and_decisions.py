"""What has run and what was decided: kept when it happens, gone with the turn, sound after a
restart."""

from pathlib import Path
from typing import Any

import pytest
from tests.engine.runners.scenes import Scene
from tests.fakes.providers import calling, saying
from tests.fakes.sessions import run, words
from tests.fakes.tools import tool

from lamina.adapters.stores.jsonl import JsonlStore
from lamina.core.codec import decode_entry, encode_entry
from lamina.core.journal import replay, replay_repaired
from lamina.core.journal.state import State
from lamina.core.values.entry import (
    DecisionEntry,
    Entry,
    LeaveEntry,
    MessageEntry,
    ResultEntry,
    SessionEntry,
)
from lamina.core.values.item import ItemId
from lamina.core.values.message import Message, Text, ToolCall, ToolResult
from lamina.core.values.settings import Settings
from lamina.core.values.tool import Decision, ToolOutput
from lamina.errors import TurnStateError

TOOL = ItemId("tool:fake/find")


class Trail:
    """Entries one behind the other."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.add(SessionEntry, session="s", settings=Settings(target="fake:small"))

    def add(self, kind: Any, **fields: Any) -> "Trail":
        parent = self.entries[-1].id if self.entries else None
        number = f"{len(self.entries):06x}"
        self.entries.append(kind(id=number, parent=parent, at=1.0, **fields))
        return self

    def message(self, role: Any, *blocks: Any) -> "Trail":
        return self.add(MessageEntry, message=Message(role=role, blocks=blocks, id="m"))

    def result(self, call: str, text: str) -> "Trail":
        return self.add(ResultEntry, result=ToolResult(call_id=call, name="find", text=text))

    def decision(self, call: str, decision: Decision, digest: str = "d1") -> "Trail":
        return self.add(DecisionEntry, call_id=call, tool=TOOL, digest=digest, decision=decision)

    @property
    def state(self) -> State:
        return replay(self.entries)


def asked() -> Trail:
    calls = (ToolCall(id="a", name="find"), ToolCall(id="b", name="find"))
    return Trail().message("user", Text("Q")).message("assistant", *calls)


def test_results_and_decisions_are_read_back_as_they_were_written() -> None:
    path = asked().result("a", "found").decision("b", "allow_session")
    for entry in path.entries:
        assert decode_entry(encode_entry(entry)) == entry


def test_results_and_decisions_stand_while_their_calls_wait() -> None:
    state = asked().result("a", "found").decision("b", "deny").state
    assert {call: each.text for call, each in state.turn.results.items()} == {"a": "found"}
    assert {call: entry.decision for call, entry in state.turn.decisions.items()} == {"b": "deny"}
    assert state.allowed == {}
    # They are no messages: what is sent does not change by them.
    assert len(state.envelope.cached) == 2


def test_the_message_with_the_results_takes_their_place() -> None:
    results = [ToolResult(call_id=call, name="find", text="found") for call in "ab"]
    path = asked().result("a", "found").decision("b", "allow_once").message("tool", *results)
    assert path.state.turn.results == {}
    assert path.state.turn.decisions == {}


def test_what_is_allowed_for_the_session_outlives_the_turn_with_its_latest_digest() -> None:
    path = asked().decision("a", "allow_session", "d1").decision("b", "allow_once", "d3")
    path = path.message("tool").add(LeaveEntry).message("user", Text("Q2"))
    assert path.state.allowed == {TOOL: "d1"}
    path = path.message("assistant", ToolCall(id="c", name="find"))
    assert path.decision("c", "allow_session", "d2").state.allowed == {TOOL: "d2"}


def test_a_denial_takes_nothing_back_that_was_allowed_for_the_session() -> None:
    state = asked().decision("a", "allow_session").decision("b", "deny").state
    assert state.allowed == {TOOL: "d1"}


@pytest.mark.parametrize("lost", [1, 2])
def test_a_result_whose_call_is_lost_does_no_harm(lost: int) -> None:
    path = asked().result("a", "found").decision("b", "allow_once").message("user", Text("Q2"))
    kept = [entry for n, entry in enumerate(path.entries) if n != lost]
    state, _ = replay_repaired(kept)
    assert state.turn.results == {}
    assert state.envelope.cached[-1].text == "Q2"


def test_what_no_call_waits_for_cannot_be_kept() -> None:
    async def body() -> None:
        async with Scene(calling(("a", "find", {}), ("b", "find", {})), chat=True) as scene:
            session = scene.runner.session
            result = ToolResult(call_id="a", name="find", text="found")
            with pytest.raises(TurnStateError, match="is not waiting; waiting calls: \\[\\]"):
                await session.keep_result(result)
            await scene.ask()
            await session.keep_result(result)
            with pytest.raises(TurnStateError, match="is not waiting; waiting calls: \\['b'\\]"):
                await session.keep_result(result)
            with pytest.raises(TurnStateError):
                await session.keep_decision("a", tool("find"), "deny")
            assert [call.id for call in session.pending_calls] == ["b"]

    run(body())


def test_giving_up_ends_the_turn_with_a_result_for_every_call() -> None:
    async def body() -> None:
        async with Scene(calling(("a", "find", {}), ("b", "find", {})), chat=True) as scene:
            session = scene.runner.session
            assert not await session.abandon_turn("no")
            await scene.ask()
            await session.keep_result(ToolResult(call_id="b", name="find", text="found"))
            assert await session.abandon_turn("Not now.")
            assert scene.history[-1] == ("tool", "Not now. | found")
            assert not await session.abandon_turn("no")
            assert session.pending_calls == ()
            await session.prepare("Something else?")

    run(body())


@pytest.mark.parametrize("indexed", [False, True])
def test_calls_that_wait_are_the_same_after_a_restart(indexed: bool, tmp_path: Path) -> None:
    async def body() -> None:
        calls = calling(("a", "free", {}), ("b", "find", {}), ("c", "find", {}))
        tools = [tool("free"), tool("find", "required")]
        store = JsonlStore(tmp_path)
        async with Scene(calls, tools=tools, store=store, window=200_000) as scene:
            size = 20_000 if indexed else 10
            scene.host.outputs["free"] = ToolOutput(text=words(size, "found"))
            await scene.ask("Which berth?")
            await scene.agent.decide("b", "allow_session")
            await scene.agent.decide("c", "deny")
            before = scene.runner.session.state
            await scene.restart()
            assert (scene.runner.session._record.snapshot is not None) == indexed
            after = scene.runner.session.state
            assert after == before
            assert after.turn.results["a"].text == words(size, "found")
            assert after.turn.decisions["c"].decision == "deny"
            assert list(after.allowed) == [tools[1].id]
            scene.plays(saying("Nine."))
            assert (await scene.go_on()).text == "Nine."
            assert scene.host.called == ["free", "find"]
            await scene.require_sound()

    run(body())


def test_decisions_hold_on_the_branch_they_were_made_on() -> None:
    async def body() -> None:
        script = (saying("Hello."), calling(("a", "find", {})))
        async with Scene(*script, tools=[tool("find", "required")]) as scene:
            session = scene.runner.session
            await scene.ask("Hi")
            before = session.state.leaf
            await scene.ask("Which berth?")
            await scene.agent.decide("a", "allow_session")
            allowed = session.state.leaf
            await session.navigate(before)
            assert session.state.allowed == {}
            await session.navigate(allowed)
            assert [call.id for call in session.pending_calls] == ["a"]
            assert (await scene.go_on()).ending == "answered"
            assert scene.host.called == ["find"]
            await scene.verify()

    run(body())
