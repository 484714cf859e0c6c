"""Rules and references bring tools along, and tools bring them; results of tools bring both into
the turn under way. Behaviour 41."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.engine.runners.scenes import Scene
from tests.fakes.book import SMALL
from tests.fakes.index import IndexFake, Likeness
from tests.fakes.providers import calling, saying
from tests.fakes.selection import GuideSourceFake, guide
from tests.fakes.sessions import run
from tests.fakes.tools import tool

from lamina.core.values.agent import Guide
from lamina.core.values.entry import RequestEntry
from lamina.core.values.item import ItemId
from lamina.core.values.request import RequestContext
from lamina.core.values.selection import SearchSettings
from lamina.core.values.tool import OfferedTool, ToolOutput
from lamina.errors import RequestTooLong

AUTH = guide(
    "reference", "Authentication Rules", "agent",
    text="Sign in first.\n\nThen fetch the endpoint of the token.",
)  # fmt: skip
FETCH = replace(tool("fetch_website"), include="agent")
PAINT = replace(tool("paint"), include="agent")
ONE_STEP = SearchSettings(top_n=0, expansion_depth=1)
JUST_SURE = SearchSettings(top_n=0)
ALIKE: Likeness = {
    "authenticate": {AUTH.id: 0.92},
    "endpoint": {FETCH.id: 0.81, PAINT.id: 0.74},
    "fetch_website": {AUTH.id: 0.8},
    "website": {FETCH.id: 0.9},
}


def scene(*guides: Guide, tools: tuple[OfferedTool, ...] = (FETCH, PAINT), **given: Any) -> Scene:
    given.setdefault("index", IndexFake(given.pop("alike", ALIKE)))
    given.setdefault("guide_search", JUST_SURE)
    given.setdefault("tool_search", JUST_SURE)
    given.setdefault("whole_pool_tokens", 0)
    return Scene(guides=GuideSourceFake(*guides), tools=tools, **given)


def origins(context: RequestContext) -> dict[str, tuple[float | None, str, str]]:
    """What search brought, with its score, how and from what."""
    pairs = [(item.item, item.provenance) for item in context.items]
    pairs += [(tool.item, tool.provenance) for tool in context.tools]
    return {
        item: (None if how.score is None else round(how.score, 2), how.origin, how.source)
        for item, how in pairs
        if how.include == "agent"
    }


@pytest.mark.parametrize("graph", [False, True])
def test_a_reference_brings_a_tool_that_the_question_does_not_mention(graph: bool) -> None:
    async def body() -> None:
        step = replace(ONE_STEP, expansion_graph=graph)
        async with scene(AUTH, guide_search=step, tool_search=step) as played:
            await played.ask("How do I authenticate?")
            assert origins(played.context) == {
                AUTH.id: (0.92, "search", ""),
                # By the best pair of their chunks; 0.74 is below the threshold.
                FETCH.id: (0.81, "expansion", AUTH.id),
            }
            names = [each["function"]["name"] for each in played.provider.bodies[-1]["tools"]]
            assert names == ["use_tool", "find_tools", "read_result", "fetch_website"]
            await played.verify()

    run(body())


def test_a_tool_brings_a_reference() -> None:
    async def body() -> None:
        async with scene(AUTH, guide_search=ONE_STEP, tool_search=ONE_STEP) as played:
            await played.ask("Look at the website.")
            assert origins(played.context) == {
                FETCH.id: (0.9, "search", ""),
                AUTH.id: (0.8, "expansion", FETCH.id),
            }
            assert played.context.items[0].reason == f"like {FETCH.id}, which was chosen"

    run(body())


def test_without_expansion_nothing_crosses_and_what_was_removed_stays_out() -> None:
    async def body() -> None:
        async with scene(AUTH) as played:
            await played.ask("How do I authenticate?")
            assert origins(played.context) == {AUTH.id: (0.92, "search", "")}
        async with scene(AUTH, guide_search=ONE_STEP) as played:
            await played.ask("How do I authenticate?")
            assert origins(played.context) == {AUTH.id: (0.92, "search", "")}
        async with scene(AUTH, guide_search=ONE_STEP, tool_search=ONE_STEP) as played:
            await played.runner.session.remove(FETCH.id)
            await played.ask("How do I authenticate?")
            assert origins(played.context) == {AUTH.id: (0.92, "search", "")}

    run(body())


def test_steps_go_on_from_kind_to_kind() -> None:
    async def body() -> None:
        log = guide("rule", "log", "agent", text="Keep a record.")
        alike: Likeness = {**ALIKE, "fetch_website": {log.id: 0.77}}
        deep = replace(ONE_STEP, expansion_depth=2)
        async with scene(AUTH, log, alike=alike, guide_search=deep, tool_search=deep) as played:
            await played.ask("How do I authenticate?")
            assert origins(played.context) == {
                AUTH.id: (0.92, "search", ""),
                FETCH.id: (0.81, "expansion", AUTH.id),
                log.id: (0.77, "expansion", FETCH.id),
            }

    run(body())


def test_relations_cross_in_both_directions() -> None:
    async def body() -> None:
        tone = guide("rule", "tone", "manual")
        relations = {AUTH.id: [PAINT.id, tone.id], FETCH.id: [tone.id]}
        async with scene(AUTH, tone, relations=relations) as played:
            await played.ask("How do I authenticate?")
            assert origins(played.context) == {
                AUTH.id: (0.92, "search", ""),
                PAINT.id: (None, "relation", AUTH.id),
                tone.id: (None, "relation", AUTH.id),
            }
        async with scene(AUTH, tone, relations=relations) as played:
            await played.ask("Look at the website.")
            assert origins(played.context) == {
                FETCH.id: (0.9, "search", ""),
                tone.id: (None, "relation", FETCH.id),
            }

    run(body())


# -- the turn under way ----------------------------------------------------------------------------

LOOK = tool("look")
SEA = guide("rule", "sea", "agent", text="Say port, not left.")
ROW = replace(tool("row"), include="agent")
BOAT: Likeness = {"boat": {SEA.id: 0.8, ROW.id: 0.78, PAINT.id: 0.3}}
TONE = guide("rule", "tone")


def harbour(**given: Any) -> Scene:
    given.setdefault("expanding_tools", "look")
    return scene(TONE, SEA, tools=(LOOK, ROW, PAINT), alike=BOAT, **given)


def requests(played: Scene) -> list[RequestContext]:
    return [entry.context for entry in played.kept(RequestEntry)]


@pytest.mark.parametrize("promotion", ["lazy", "eager"])
def test_results_bring_rules_and_tools_into_the_turn_under_way(promotion: str) -> None:
    async def body() -> None:
        async with harbour(promotion=promotion) as played:
            played.host.outputs["look"] = ToolOutput(text="There is a boat.")
            row = ("c2", "use_tool", {"name": "row", "arguments": {"path": "out"}})
            played.plays(calling(("c1", "look", {})), calling(row), saying("At sea."))
            await played.ask("What is there?")
            first, second, third = requests(played)
            assert origins(first) == {}
            found = {SEA.id: (0.8, "result", "look"), ROW.id: (0.78, "result", "look")}
            assert origins(second) == origins(third) == found
            assert [i.reason for i in second.items if i.item == SEA.id] == ["like what look gave"]
            # Nothing that was sent moved: the list of tools stays, items stand behind the results.
            assert second.agreement.broke is None
            assert third.agreement.broke is None
            messages = played.provider.bodies[-2]["messages"]
            behind = "".join(
                str(m["content"]) for m in messages[messages.index(_result(messages)) :]
            )
            assert "Say port, not left." in behind
            assert "tone" in behind  # which goes on to apply, and is named with the new one
            assert "<tool_context>" in behind
            assert [name for name, *_ in played.host.calls] == ["look", "row"]
            await played.restart()
            await played.ask("And now?")
            assert SEA.id not in {item.item for item in played.context.items}
            await played.verify()

    run(body())


def _result(messages: list[dict[str, Any]]) -> dict[str, Any]:
    return next(message for message in messages if message["role"] == "tool")


@pytest.mark.parametrize("names", ["", "paint", "lo", "see, paint*"])
def test_only_the_tools_that_are_named_expand_a_turn(names: str) -> None:
    async def body() -> None:
        async with harbour(expanding_tools=names) as played:
            played.host.outputs["look"] = ToolOutput(text="There is a boat.")
            played.plays(calling(("c1", "look", {})), saying("A boat."))
            await played.ask("What is there?")
            assert origins(played.context) == {}

    run(body())


@pytest.mark.parametrize("name", ["look", "far__look", "far/look", "far/*", "*__look", "l??k"])
def test_a_tool_of_a_server_goes_by_its_name_with_or_without_its_server(name: str) -> None:
    async def body() -> None:
        far = replace(
            tool("far__look"), id=ItemId("tool:far/look"), include="always", label="far · look"
        )
        tools = (far, ROW, PAINT)
        async with scene(TONE, SEA, tools=tools, alike=BOAT, expanding_tools=name) as played:
            played.host.outputs["far__look"] = ToolOutput(text="There is a boat.")
            played.plays(calling(("c1", "far__look", {})), saying("A boat."))
            await played.ask("What is there?")
            assert SEA.id in origins(played.context)

    run(body())


@pytest.mark.parametrize("names", ["look", "*", "paint, l*k"])
def test_names_may_have_gaps_and_failures_bring_nothing(names: str) -> None:
    async def body() -> None:
        async with harbour(expanding_tools=names) as played:
            played.host.outputs["look"] = ToolOutput(text="There is a boat.")
            played.plays(calling(("c1", "look", {})), saying("A boat."))
            await played.ask("What is there?")
            assert SEA.id in origins(played.context)
            await played.verify()
        async with harbour(expanding_tools=names) as played:
            played.host.outputs["look"] = ToolOutput(text="There is a boat.", is_error=True)
            played.plays(calling(("c1", "look", {})), saying("No boat."))
            await played.ask("What is there?")
            assert origins(played.context) == {}

    run(body())


def test_a_tool_that_nothing_could_call_waits_for_the_next_question_and_that_is_told() -> None:
    async def body() -> None:
        local = replace(SMALL, wire="llamacpp")
        async with harbour(target=local) as played:
            played.host.outputs["look"] = ToolOutput(text="There is a boat.")
            played.plays(calling(("c1", "look", {})), saying("A boat."))
            await played.ask("What is there?")
            assert origins(played.context) == {SEA.id: (0.8, "result", "look")}
            (left,) = [out for out in played.context.left_out if out.what == ROW.id]
            assert "stays as it is until the next question" in left.detail

    run(body())


def test_an_item_that_stood_before_applies_again_without_its_text() -> None:
    async def body() -> None:
        async with harbour() as played:
            played.host.outputs["look"] = ToolOutput(text="There is a boat.")
            for _ in range(2):
                played.plays(calling(("c1", "look", {})), saying("A boat."))
                await played.ask("What is there?")
                assert SEA.id in origins(played.context)
            assert str(played.provider.bodies[-1]).count("Say port, not left.") == 1
            assert played.runner.session.state.library.in_force == (TONE.id, SEA.id)
            await played.verify()

    run(body())


def test_a_request_that_was_too_long_is_made_again_with_what_its_results_brought() -> None:
    async def body() -> None:
        async with harbour() as played:
            played.host.outputs["look"] = ToolOutput(text="There is a boat.")
            for number in range(6):
                await played.ask(f"Question {number} " + "and more of it " * 250)
            played.plays(
                calling(("c1", "look", {})), [RequestTooLong("too long")], saying("A boat.")
            )
            await played.ask("What is there?")
            assert SEA.id in origins(played.context)
            assert "Say port, not left." in str(played.provider.bodies[-1])
            await played.verify()

    run(body())
