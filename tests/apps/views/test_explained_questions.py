"""Why a question was answered with what it was: also what came in the course of its turn."""

from typing import Any

from msgspec.structs import replace
from tests.engine.runners.scenes import Scene
from tests.fakes.index import IndexFake
from tests.fakes.providers import calling, saying
from tests.fakes.sessions import run
from tests.fakes.tools import tool

from lamina.apps.cli.log import render_log
from lamina.apps.views.journal_log import describe_inclusion
from lamina.apps.views.why import Explanation, explain_question
from lamina.apps.web.context_record import record_context
from lamina.core.values.entry import RequestEntry, ResultEntry
from lamina.core.values.item import ItemId
from lamina.core.values.request import ContextTool
from lamina.core.values.selection import SearchSettings

NAMES = ("read", "write", "send")
ALIKE = {name: {f"tool:fake/{name}": 0.8} for name in NAMES}


def scene() -> Scene:
    """Nothing is chosen for a question: what comes, the model found."""
    tools = [replace(tool(name), include="agent") for name in NAMES]
    search = SearchSettings(top_n=0, include_score=1.0)
    return Scene(
        tools=tools, index=IndexFake(ALIKE), tool_search=search, whole_pool_tokens=0
    )  # fmt: skip


def look(query: str) -> tuple[str, str, dict[str, Any]]:
    return f"f-{query[:9]}", "find_tools", {"query": query}


def use(name: str) -> tuple[str, str, dict[str, Any]]:
    return f"u-{name}", "use_tool", {"name": name, "arguments": {}}


async def why(played: Scene, number: int) -> Explanation:
    return explain_question(await played.store.read("talk"), number, played.book)


def found(explanation: Explanation) -> list[tuple[str, str, str]]:
    return [
        (tool.name, tool.source, tool.notes[-1])
        for tool in explanation.tools
        if tool.origin == "model"
    ]


def test_a_question_is_told_with_what_the_model_found_in_its_turn_and_with_which_words() -> None:
    async def body() -> None:
        async with scene() as played:
            played.plays(
                calling(look("write it")), calling(use("write")), calling(look("send it")),
                saying("1"), saying("2"),
            )  # fmt: skip
            await played.ask("Go on.")
            await played.ask("And now?")
            requests = [entry.id for entry in played.kept(RequestEntry)]
            note = "added later in the turn, with request "
            assert found(await why(played, 1)) == [
                ("write", "write it", note + requests[1]),
                ("send", "send it", note + requests[3]),
            ]
            explanation = await why(played, 1)
            assert explanation.request == requests[0]
            names = [tool.name for tool in explanation.tools]
            assert len(set(names)) == len(names)
            assert found(await why(played, 2)) == []
            # A page tells of one request what that one was built from.
            journal = await played.store.read("talk")
            first_page, second_page = (
                record_context(journal, request, played.book) for request in requests[:2]
            )
            assert not [tool for tool in first_page.tools if tool.origin == "model"]
            (row,) = (tool for tool in second_page.tools if tool.origin == "model")
            assert (row.name, row.source) == ("write", "write it")

    run(body())


def test_of_a_long_query_a_note_is_kept_and_less_is_printed() -> None:
    async def body() -> None:
        async with scene() as played:
            query = "write it " + "down " * 1_000
            played.plays(calling(look(query)), calling(use("write")), saying("Done."))
            await played.ask("Go on.")
            (result,) = (entry for entry in played.kept(ResultEntry) if entry.query)
            assert 190 < len(result.query) <= 200
            sources = {item.source for r in played.kept(RequestEntry) for item in r.context.items}
            assert sources == {result.query}
            assert found(await why(played, 1))[0][:2] == ("write", result.query)
            journal = await played.store.read("talk")
            assert len(render_log(journal, tree=False, dropped=False, full=False)) < 4_000
            # All of it is in the call.
            assert query in render_log(journal, tree=False, dropped=False, full=True)
            await played.verify()

    run(body())


def test_a_long_query_that_is_noted_whole_is_printed_in_brief() -> None:
    row = ContextTool(
        item=ItemId("tool:fake/write"), name="write", include="agent", score=0.8, origin="model",
        source="write " * 1_000,
    )  # fmt: skip
    assert describe_inclusion(row).startswith("agent 0.80, model from write write ")
    assert len(describe_inclusion(row)) < 120
