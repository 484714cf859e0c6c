"""Tools that the model looks for itself: found behind the prefix, called in the same turn."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from msgspec.structs import replace
from tests.engine.runners.scenes import Scene
from tests.fakes.book import SMALL
from tests.fakes.index import IndexFake
from tests.fakes.providers import calling, saying
from tests.fakes.sessions import run
from tests.fakes.tools import CLOSED, ApproverFake, of_host, tool

from lamina.core.assembly.engine_tools import (
    FIND_TOOLS,
    FOUND_TOKENS,
    MAX_FOUND,
    define_engine_tool,
)
from lamina.core.codec import digest_value
from lamina.core.values.entry import RENDERERS, DecisionEntry, RequestEntry, ResultEntry
from lamina.core.values.event import ToolFinished, ToolStarted
from lamina.core.values.message import Text, ToolCall, ToolDefinition
from lamina.core.values.selection import SearchSettings
from lamina.core.values.tool import OfferedTool, Permission
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Reply
from lamina.engine.sources.found_tools import NO_ROOM
from lamina.errors import UsageError

NAMES = ("read", "write", "send", "paint")
ALIKE = {name: {f"tool:fake/{name}": 0.8} for name in NAMES}
# Nothing is chosen for a question: what comes, the model found.
NO_HEAD_START = SearchSettings(top_n=0, include_score=1.0)


def chosen(name: str, permission: Permission = "free", **given: Any) -> OfferedTool:
    return replace(tool(name, permission, **given), include="agent")


def scene(*tools: OfferedTool, index: IndexFake | None = None, **given: Any) -> Scene:
    given.setdefault("tool_search", NO_HEAD_START)
    given.setdefault("whole_pool_tokens", 0)
    there = tools or tuple(map(chosen, NAMES))
    return Scene(tools=there, index=index or IndexFake(ALIKE), **given)


def many_parameters(count: int) -> dict[str, Any]:
    fields = {f"field_{number}": {"type": "string"} for number in range(count)}
    return {"type": "object", "properties": fields}


def look(query: str, call: str = "f1") -> tuple[str, str, dict[str, Any]]:
    return call, "find_tools", {"query": query}


def use(name: str, call: str = "u1", **arguments: Any) -> tuple[str, str, dict[str, Any]]:
    return call, "use_tool", {"name": name, "arguments": arguments}


def listed(played: Scene) -> list[str]:
    return of_host(each["function"]["name"] for each in played.provider.bodies[-1].get("tools", ()))


def found(played: Scene) -> dict[str, tuple[str, str]]:
    return {
        item.item: (item.origin, item.source)
        for item in played.context.items
        if item.item.startswith("tool:")
    }


# -- in the loop -----------------------------------------------------------------------------------


@pytest.mark.parametrize("promotion", ["lazy", "eager"])
def test_what_the_model_finds_is_described_behind_the_results_and_called_in_the_same_turn(
    promotion: str,
) -> None:
    async def body() -> None:
        async with scene(promotion=promotion) as played:
            played.plays(
                calling(look("write it down")), calling(use("write", path="a")), saying("Written.")
            )
            answer = await played.ask("Keep this.")
            assert answer.text == "Written."
            assert played.host.calls == [("write", {"path": "a"})]
            assert [entry.context.agreement.broke for entry in played.kept(RequestEntry)] == [
                None, None, None,
            ]  # fmt: skip
            assert found(played) == {"tool:fake/write": ("model", "write it down")}
            (item,) = played.context.items
            assert item.reason == 'found by the model, which searched for "write it down"'
            messages = played.provider.bodies[1]["messages"]
            assert messages[-2]["content"] == snapshot(
                "Found 1, described below. Call them through use_tool."
            )
            assert messages[-1]["content"] == snapshot(
                """\
<tool_context>
write: Does write.
Arguments: none
</tool_context>\
"""
            )
            assert [event.call.name for event in played.told(ToolStarted)] == [
                "find_tools", "write",
            ]  # fmt: skip
            assert [event.result.call_id for event in played.told(ToolFinished)] == ["f1", "u1"]
            await played.restart()
            await played.verify()

    run(body())


def test_both_engine_tools_stand_in_front_from_the_first_request_and_never_move() -> None:
    async def body() -> None:
        async with scene(tool("clock"), *map(chosen, NAMES)) as played:
            for name in NAMES:
                played.plays(calling(look(name)), calling(use(name)), saying("Done."))
                await played.ask("Go on.")
                assert listed(played) == ["use_tool", "find_tools", "clock"]
            assert len({str(body["tools"]) for body in played.provider.bodies}) == 1
            assert not [e for e in played.kept(RequestEntry) if e.context.agreement.broke]
            assert played.host.called == list(NAMES)
            await played.verify()

    run(body())


def test_at_the_next_boundary_what_was_found_and_called_joins_the_list() -> None:
    async def body() -> None:
        async with scene() as played:
            played.plays(calling(look("read, write")), calling(use("write")), saying("Done."))
            await played.ask("Go on.")
            played.clock.pass_by(301)
            await played.ask("And?")
            assert listed(played) == ["use_tool", "find_tools", "write"]

    run(body())


def test_it_needs_no_approval_and_what_it_finds_needs_its_own() -> None:
    async def body() -> None:
        tools = [chosen("read"), chosen("write", "required")]
        async with scene(*tools, ask_before_tools="always") as played:
            played.plays(calling(look("write")), calling(use("write")))
            answer = await played.ask("Keep this.")
            assert answer.ending == "waiting"
            assert [waiting.call.name for waiting in answer.waiting_calls] == ["write"]
            assert played.kept(DecisionEntry) == []
            await played.restart()
            await played.agent.decide("u1", "allow_once")
            assert (await played.go_on()).ending == "answered"
            assert played.host.called == ["write"]

    run(body())


def test_searches_of_one_answer_do_not_bring_the_same_twice() -> None:
    async def body() -> None:
        alike = ALIKE | {"all": {f"tool:fake/{name}": 0.5 for name in NAMES}}
        async with scene(index=IndexFake(alike)) as played:
            played.plays(calling(look("write"), look("all", "f2"), look("all", "f3")))
            await played.ask("Keep this.")
            assert played.results == snapshot(
                [
                    "Found 1, described below. Call them through use_tool.",
                    """\
Found 3, described below. Call them through use_tool.
Already available: write\
""",
                    """\
No other tool matches. Describe the task differently.
Already available: read, write, send\
""",
                ]
            )
            assert str(played.provider.bodies[-1]["messages"]).count("<tool_context>") == len(NAMES)
            await played.verify()

    run(body())


@given(
    sizes=st.lists(st.integers(1, 400), min_size=1, max_size=25),
    listed_already=st.integers(0, 3),
)
def test_a_search_brings_at_most_ten_and_two_thousand_tokens(
    sizes: list[int], listed_already: int
) -> None:
    async def body() -> None:
        names = [f"t{number}" for number in range(len(sizes))]
        tools = [
            replace(
                tool(name, parameters=many_parameters(size // 8)),
                include="always" if number < listed_already else "agent",
            )
            for number, (name, size) in enumerate(zip(names, sizes, strict=True))
        ]
        alike = {"any": {f"tool:fake/{name}": 0.5 for name in names}}
        wide = replace(SMALL, window=100_000)
        async with scene(*tools, chosen("other"), index=IndexFake(alike), target=wide) as played:
            played.plays(calling(look("any")))
            await played.ask("Go on.")
            (entry,) = played.kept(ResultEntry)
            assert len(entry.found) <= MAX_FOUND
            first, second = played.kept(RequestEntry)
            told = second.tokens - first.tokens
            # The call itself and the frames of three messages come on top.
            assert told <= FOUND_TOKENS + 60
            assert not {f.item for f in entry.found} & {
                f"tool:fake/t{n}" for n in range(listed_already)
            }
            await played.verify()

    run(body())


# -- what may be found -----------------------------------------------------------------------------


def test_what_a_person_or_a_hook_removed_is_not_found() -> None:
    async def body() -> None:
        async with scene() as played:
            session = played.runner.session
            await played.ask("Hello.")
            await session.remove("tool:fake/write")
            await session.apply("hook", {"op": "tools_remove", "names": ["send"], "reason": "no"})
            played.plays(calling(look("write and send and read")), calling(use("write")))
            await played.ask("Keep this.")
            (entry,) = played.kept(ResultEntry)[:1]
            assert [tool.item for tool in entry.found] == ["tool:fake/read"]
            assert played.host.called == []

    run(body())


def test_a_tool_that_changed_is_found_as_it_is_now() -> None:
    async def body() -> None:
        async with scene() as played:
            played.plays(calling(look("write")), saying("Ok."))
            await played.ask("Keep this.")
            changed = chosen("write", parameters=CLOSED)
            played.host.tools = [*(t for t in played.host.tools if t.id != changed.id), changed]
            played.plays(
                calling(use("write", path="a")), calling(look("write", "f2")),
                calling(use("write", "u2", path="a")), saying("Ok."),
            )  # fmt: skip
            await played.ask("Again.")
            first, *_ = [event.result.text for event in played.told(ToolFinished)]
            assert "is not described yet: search for it with find_tools" in first
            assert played.host.calls == [("write", {"path": "a"})]
            await played.verify()

    run(body())


def test_a_tool_that_leaves_between_search_and_request_is_not_described() -> None:
    async def body() -> None:
        async with scene(chosen("write"), chosen("slow"), chosen("read")) as played:
            played.plays(calling(look("write")), saying("Ok."))

            async def remove(event: object, _: int) -> None:
                if isinstance(event, ToolFinished):
                    await played.runner.session.remove("tool:fake/write")

            played.on_event = remove
            await played.ask("Keep this.")
            assert found(played) == {}
            assert "<tool_context>" not in str(played.provider.bodies[-1]["messages"])
            await played.verify()

    run(body())


@pytest.mark.parametrize(
    "arguments", ["{", "[1]", {}, {"query": 3}, {"text": "write"}, {"query": "", "x": "y"}]
)
def test_a_call_that_cannot_be_read_says_what_it_needs(arguments: Any) -> None:
    async def body() -> None:
        async with scene() as played:
            played.plays(calling(("f1", "find_tools", arguments)))
            await played.ask("Keep this.")
            (told,) = played.results
            assert told in (
                "find_tools requires 'query' (a string).",
                "No other tool matches. Describe the task differently.",
            )
            await played.require_sound()

    run(body())


def test_a_search_that_fails_is_told_to_the_model() -> None:
    async def body() -> None:
        index = IndexFake(ALIKE)
        async with scene(index=index) as played:
            await played.ask("Hello.")
            index.fails = OSError("the disk is gone")
            played.plays(calling(look("write")))
            await played.ask("Keep this.")
            assert played.results == ["The search failed: OSError: the disk is gone"]
            index.fails = None
            await played.require_sound()

    run(body())


@pytest.mark.parametrize("count", [20, 1_500])
def test_a_tool_is_found_however_much_it_takes(count: int) -> None:
    async def body() -> None:
        big = chosen("write", parameters=many_parameters(count))
        async with scene(big, chosen("read")) as played:
            played.plays(calling(look("write, read")))
            await played.ask("Keep this.")
            assert "tool:fake/write" in [f.item for f in played.kept(ResultEntry)[0].found]
            await played.verify()

    run(body())


def test_where_there_is_no_room_the_model_is_told_so() -> None:
    async def body() -> None:
        big = chosen("write", parameters=many_parameters(1_500))
        async with scene(big, target=replace(SMALL, window=500)) as played:
            played.plays(calling(look("write")))
            await played.ask("Keep this.")
            assert played.kept(ResultEntry)[0].found == ()
            assert played.results == [NO_ROOM]
            await played.verify()

    run(body())


# -- where it is offered ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {"tool_policy": "exact"},
        {"tool_policy": "all"},
        {"tool_joins": None},
        {"target": replace(SMALL, wire="llamacpp")},
        {"tool_search": SearchSettings(search=False)},
    ],
    ids=["exact", "all", "joins", "local", "no search"],
)
def test_it_is_offered_only_where_tools_are_searched_and_called_through_use_tool(
    given: dict[str, Any],
) -> None:
    async def body() -> None:
        async with scene(tool("clock"), *map(chosen, NAMES), **given) as played:
            await played.ask("read it")
            assert "find_tools" not in [row.name for row in played.context.tools]

    run(body())


def test_without_an_index_it_is_not_offered() -> None:
    async def body() -> None:
        async with Scene(tools=tuple(map(chosen, NAMES)), whole_pool_tokens=0) as played:
            await played.ask("read it")
            assert of_host(row.name for row in played.context.tools) == ["use_tool"]

    run(body())


def test_a_tool_of_that_name_that_somebody_brings_is_called_as_theirs() -> None:
    async def body() -> None:
        own = tool("find_tools", description="Finds hammers.")
        async with scene(own, *map(chosen, NAMES)) as played:
            played.plays(calling(look("write")))
            await played.ask("Go on.")
            assert listed(played) == ["use_tool", "find_tools"]
            assert played.host.calls == [("find_tools", {"query": "write"})]
            assert found(played) == {}

    run(body())


def test_who_withdraws_it_is_heard() -> None:
    async def body() -> None:
        async with scene() as played:
            await played.ask("Hello.")
            session = played.runner.session
            op = {"op": "tools_remove", "names": ["find_tools"], "reason": "nothing new"}
            await session.apply("hook", op)
            played.plays(calling(look("write")))
            await played.ask("Keep this.")
            assert listed(played) == ["use_tool"]
            assert played.results == [
                "The tool was removed from this session; the call was not run."
            ]
            await played.verify()

    run(body())


def test_a_session_of_before_keeps_its_list_until_the_next_boundary() -> None:
    async def body() -> None:
        searched: dict[str, Any] = {"tool_search": NO_HEAD_START, "whole_pool_tokens": 0}
        async with Scene(tools=tuple(map(chosen, NAMES)), **searched) as played:
            await played.ask("Hello.")
            assert listed(played) == ["use_tool"]
            # As if there had been no such tool then: now there is.
            played.use_index(IndexFake(ALIKE))
            await played.restart()
            await played.ask("One.")
            assert listed(played) == ["use_tool"]
            assert played.context.agreement.broke is None
            played.clock.pass_by(301)
            await played.ask("Two.")
            assert listed(played) == ["find_tools", "use_tool"]
            await played.verify()

    run(body())


# -- taken up again, left, by hand -----------------------------------------------------------------


def test_a_turn_that_is_taken_up_again_searches_nothing_and_brings_the_same() -> None:
    async def body() -> None:
        index = IndexFake(ALIKE)
        tools = [chosen("read", "required"), chosen("write"), chosen("send")]
        async with scene(*tools, index=index) as played:
            played.plays(calling(look("read")), saying("Ok."))
            await played.ask("Hello.")
            played.plays(calling(look("write", "f2"), use("read")))
            assert (await played.ask("Keep this.")).ending == "waiting"
            await played.restart()
            asked = len(index.asked)
            await played.agent.decide("u1", "allow_once")
            played.plays(calling(use("write", "u2")), saying("Done."))
            await played.go_on()
            assert len(index.asked) == asked
            assert played.host.called == ["read", "write"]
            assert found(played)["tool:fake/write"] == ("model", "write")
            await played.verify()

    run(body())


def test_what_was_found_in_a_turn_that_was_left_is_described_all_the_same() -> None:
    async def body() -> None:
        tools = [chosen("read"), chosen("write", "required")]
        async with scene(*tools) as played:
            played.plays(calling(look("write")), saying("Ok."))
            await played.ask("Hello.")
            played.plays(calling(look("read", "f2"), use("write")))
            assert (await played.ask("Keep this.")).ending == "waiting"
            played.plays(calling(use("read", "u2")), saying("Read."))
            await played.ask("Never mind: read.")
            assert played.host.called == ["read"]
            await played.verify()

    run(body())


def test_with_a_client_of_ones_own_the_session_answers_such_a_call() -> None:
    async def body() -> None:
        async with scene() as played:
            await played.ask("Hello.")
            session = played.runner.session
            turn = await session.prepare("Keep this.")
            calls = (
                ToolCall(id="f1", name="find_tools", arguments='{"query": "write"}'),
                ToolCall(id="x1", name="read", arguments="{}"),
            )
            turn = await turn.commit(Reply(blocks=calls, usage=Usage(), stop="tool_calls"))
            with pytest.raises(UsageError, match=r"missing .'x1'."):
                await turn.resume({})
            turn = await turn.resume({"x1": "There is no such tool."})
            body = turn.request()
            assert "Found 1, described below" in str(body["messages"])
            assert "write: Does write." in str(body["messages"])
            await turn.commit(Reply(blocks=(Text("Ok."),), usage=Usage(), stop="end"))
            # Or they answer it themselves, with what they like.
            turn = await session.prepare("And now?")
            call = ToolCall(id="f2", name="find_tools", arguments='{"query": "send"}')
            turn = await turn.commit(Reply(blocks=(call,), usage=Usage(), stop="tool_calls"))
            turn = await turn.resume({"f2": "Ask me instead."})
            assert "send: Does send." not in str(turn.request())
            await turn.commit(Reply(blocks=(Text("Ok."),), usage=Usage(), stop="end"))
            await played.verify()

    run(body())


def test_an_application_that_brings_a_definition_of_that_name_answers_it() -> None:
    async def body() -> None:
        own = ToolDefinition(name="find_tools", description="Finds hammers.")
        async with Scene(definitions=[own], chat=True, index=IndexFake(ALIKE)) as played:
            played.plays(calling(look("write")))
            answer = await played.ask("Go on.")
            assert answer.turn is not None
            assert [call.name for call in answer.turn.pending_calls] == ["find_tools"]
            with pytest.raises(UsageError, match="missing"):
                await answer.turn.resume({})
            await answer.turn.resume({"f1": "A hammer."})

    run(body())


def test_results_of_searches_bring_nothing_by_themselves() -> None:
    async def body() -> None:
        alike = ALIKE | {"through": {"tool:fake/paint": 0.9}}
        async with scene(
            index=IndexFake(alike), expanding_tools="*", expand_results=True
        ) as played:
            played.plays(calling(look("write")), saying("Ok."))
            await played.ask("Keep this.")
            assert found(played) == {"tool:fake/write": ("model", "write")}
            await played.ask("And now?")
            assert "tool:fake/paint" not in {row.item for row in played.context.tools}

    run(body())


def test_the_definition_stays_as_it_was_first_sent() -> None:
    # Sessions hold it: another word in it would move the prefix of every one of them.
    digests = [digest_value(define_engine_tool(FIND_TOOLS.name, number)) for number in RENDERERS]
    assert digests == snapshot(
        [
            "f9e5a709c166c85f4b544f2e9900c67ab1a7beccd8087a0305b1e109a0c6238d",
            "f9e5a709c166c85f4b544f2e9900c67ab1a7beccd8087a0305b1e109a0c6238d",
            "69a230739155a789d00af14ef3b423d8e8cfe019169bbbdf22f16f9b11d4f39b",
        ]
    )


def test_a_denial_of_the_found_tool_is_told() -> None:
    async def body() -> None:
        tools = [chosen("read"), chosen("write", "required")]
        async with scene(*tools, approver=ApproverFake("deny")) as played:
            played.plays(calling(look("write")), calling(use("write")))
            await played.ask("Keep this.")
            assert played.results[-1] == "Tool call denied"

    run(body())


def test_what_is_found_is_said_in_brief_and_a_call_that_does_not_fit_is_told_the_rest() -> None:
    async def body() -> None:
        long = "Writes a file. It has to be\nin the folder, and " + "so on " * 50
        path = {"type": "string", "description": "Where to, as a path."}
        schema = {"type": "object", "properties": {"path": path, "size": {}}, "required": ["path"]}
        tools = [chosen("write", description=long, parameters=schema), chosen("read")]
        async with scene(*tools) as played:
            played.plays(calling(look("write")), calling(use("write", size=3)), saying("Ok."))
            await played.ask("Keep this.")
            assert played.provider.bodies[1]["messages"][-1]["content"] == snapshot(
                """\
<tool_context>
write: Writes a file.
Arguments: path: string, size?: any
</tool_context>\
"""
            )
            told = played.results[-1]
            assert told.startswith("The arguments do not fit the tool")
            assert "- path (string): Where to, as a path." in told
            assert played.host.called == []
            # Chosen by search later, it is not said again.
            await played.runner.session.update_settings(tool_search=SearchSettings(), tool_joins=0)
            await played.ask("write it")
            (item,) = played.context.items
            assert (item.item, item.placement) == ("tool:fake/write", "above")
            await played.verify()

    run(body())
