"""A small pool of tools is offered whole, from the first request on, and never moves."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.engine.runners.scenes import Scene
from tests.fakes.book import SMALL
from tests.fakes.index import IndexFake
from tests.fakes.providers import calling, saying
from tests.fakes.selection import GuideSourceFake, guide
from tests.fakes.sessions import run
from tests.fakes.tools import of_host, tool

from lamina.core.assembly.tool_offer import MAX_WHOLE_POOL, is_small_pool
from lamina.core.values.entry import RequestEntry
from lamina.core.values.message import ToolDefinition
from lamina.core.values.request import WHOLE_POOL
from lamina.core.values.selection import SearchSettings
from lamina.core.values.settings import Settings
from lamina.core.values.tool import OfferedTool

NAMES = ("weather", "read", "write", "send", "paint", "sing", "cook", "sew")
LARGE = replace(SMALL, window=200_000)


def searched(name: str, **given: Any) -> OfferedTool:
    """A tool that search may choose."""
    return replace(tool(name, **given), include="agent")


POOL = tuple(map(searched, NAMES))


def scene(*tools: OfferedTool, **given: Any) -> Scene:
    given.setdefault("target", LARGE)
    # An index that finds nothing: whatever is offered, search did not choose it.
    given.setdefault("index", IndexFake({}))
    return Scene(tools=tools or POOL, **given)


def listed(played: Scene) -> list[str]:
    return [each["function"]["name"] for each in played.provider.bodies[-1].get("tools", ())]


def breaks(played: Scene) -> list[str]:
    agreements = [entry.context.agreement for entry in played.kept(RequestEntry)]
    return [agreement.broke.reason for agreement in agreements if agreement.broke]


# -- what is offered -------------------------------------------------------------------------------


def test_all_of_eight_tools_can_be_called_whatever_is_asked_and_nothing_ever_moves() -> None:
    async def body() -> None:
        async with scene() as played:
            for number, question in enumerate(("What is the weather in Oslo?", "Thanks!", "Sing.")):
                played.plays(calling((f"c{number}", "weather", {})), saying("Done."))
                await played.ask(question)
                # Nothing is left to be found, so nothing that finds stands in the list.
                assert listed(played) == ["read_result", *NAMES]
            played.clock.pass_by(301)
            await played.ask("Still there?")
            assert listed(played) == ["read_result", *NAMES]
            assert breaks(played) == []
            assert played.host.called == ["weather"] * 3
            rows = {row.name: row for row in played.context.tools}
            assert (rows["weather"].include, rows["weather"].origin) == ("agent", WHOLE_POOL)
            await played.verify()

    run(body())


def test_without_an_index_a_small_pool_is_offered_and_nothing_is_missed() -> None:
    async def body() -> None:
        async with scene(index=None) as played:
            await played.ask("What is the weather in Oslo?")
            assert of_host(listed(played)) == list(NAMES)
            assert played.context.warnings == ()

    run(body())


@pytest.mark.parametrize(
    ("given", "is_whole"),
    [
        ({}, True),
        ({"whole_pool_tokens": 0}, False),
        ({"whole_pool_tokens": 20}, False),
        ({"window": 400}, False),
        ({"tool_policy": "exact"}, False),
        ({"tool_search": SearchSettings(search=False)}, False),
        ({"target": replace(LARGE, max_tools=9)}, True),
        ({"target": replace(LARGE, max_tools=8)}, False),
    ],
)
def test_what_is_small_is_a_matter_of_tools_tokens_and_the_window(
    given: dict[str, Any], is_whole: bool
) -> None:
    async def body() -> None:
        async with scene(**given) as played:
            await played.ask("Hello")
            assert ("weather" in listed(played)) == is_whole

    run(body())


def test_beyond_so_many_tools_search_begins() -> None:
    def pool(size: int) -> list[ToolDefinition]:
        return [searched(f"t{number}").definition for number in range(size)]

    def count(_: ToolDefinition) -> int:
        return 100

    assert is_small_pool(pool(MAX_WHOLE_POOL), Settings(), count, LARGE)
    assert not is_small_pool(pool(MAX_WHOLE_POOL + 1), Settings(), count, LARGE)
    assert not is_small_pool([], Settings(), count, LARGE)

    async def body() -> None:
        tools = [searched(f"t{number}") for number in range(MAX_WHOLE_POOL + 1)]
        async with scene(*tools) as played:
            await played.ask("Hello")
            assert listed(played) == ["use_tool", "find_tools", "read_result"]

    run(body())


def test_what_a_tool_brings_along_still_comes_with_the_question_that_fits_it() -> None:
    async def body() -> None:
        units = guide("rule", "units", "manual")
        alike = {"weather": {"tool:fake/weather": 0.9}}
        given: dict[str, Any] = {"relations": {"tool:fake/weather": ["rule:units"]}}
        given |= {"guides": GuideSourceFake(units), "index": IndexFake(alike)}
        async with scene(**given) as played:
            await played.ask("Hello")
            assert [item.item for item in played.context.items] == []
            await played.ask("What is the weather?")
            assert [item.item for item in played.context.items] == ["rule:units"]
            assert of_host(listed(played)) == list(NAMES)
            await played.verify()

    run(body())


# -- pools that change -----------------------------------------------------------------------------


def test_a_list_that_search_made_takes_the_whole_pool_at_its_next_boundary() -> None:
    async def body() -> None:
        index = IndexFake({"read": {"tool:fake/read": 0.9}})
        async with scene(index=index, whole_pool_tokens=0, tool_joins=0) as played:
            await played.ask("read it")
            before = listed(played)
            assert before == ["use_tool", "find_tools", "read_result", "read"]
            await played.runner.session.update_settings(whole_pool_tokens=3_000)
            await played.ask("What is the weather in Oslo?")
            assert (listed(played), breaks(played)) == (before, [])
            played.clock.pass_by(301)
            await played.ask("What is the weather in Oslo?")
            assert sorted(listed(played)) == sorted(["read_result", *NAMES])
            # A model may go on as it did before.
            inner = {"name": "weather", "arguments": {}}
            played.plays(calling(("c1", "use_tool", inner)), saying("Rain."))
            await played.ask("And now?")
            assert played.host.called == ["weather"]
            await played.restart()
            await played.verify()

    run(body())


def test_a_tool_that_comes_later_joins_and_a_pool_that_outgrows_its_list_is_searched() -> None:
    async def body() -> None:
        index = IndexFake({"seek": {"tool:fake/t30": 0.9}})
        async with scene(index=index, tool_joins=0) as played:
            await played.ask("Hello")
            played.host.tools = (*POOL, searched("knit"))
            await played.ask("Hello again")
            assert of_host(listed(played)) == [*NAMES, "knit"]
            assert breaks(played) == ["tools new: knit"]
            more = [searched(f"t{number}") for number in range(40)]
            played.host.tools = (*played.host.tools, *more)
            await played.ask("Small talk")
            assert of_host(listed(played)) == [*NAMES, "knit"]
            # What is found has to be callable: the list moves once, for `use_tool`, too.
            await played.ask("seek it")
            assert set(listed(played)) >= {"use_tool", "find_tools", "t30", *NAMES}
            assert len(breaks(played)) == 2
            await played.verify()

    run(body())


def test_a_tool_that_a_person_removes_leaves_and_the_rest_of_the_pool_stays() -> None:
    async def body() -> None:
        async with scene() as played:
            await played.ask("Hello")
            await played.runner.session.remove("tool:fake/paint")
            await played.ask("Hello again")
            assert of_host(listed(played)) == [name for name in NAMES if name != "paint"]
            assert breaks(played) == ["tools removed: paint"]
            await played.ask("And again")
            assert len(breaks(played)) == 1
            await played.verify()

    run(body())
