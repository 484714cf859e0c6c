"""Include modes and what is chosen for a question, as the original documents have it: behaviours
13 to 20, 40 and 41, by number."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.engine.runners.scenes import Scene
from tests.fakes.index import IndexFake, Likeness
from tests.fakes.providers import calling, saying
from tests.fakes.selection import GuideSourceFake, guide
from tests.fakes.sessions import run
from tests.fakes.tools import ApproverFake, tool

from lamina.adapters.tools.mcp_client.config import parse_servers
from lamina.core.selection.chunks import chunk_item, chunk_tool, split_sentences
from lamina.core.values.agent import Guide
from lamina.core.values.item import Include, Item, note_id
from lamina.core.values.request import ContextItem, ContextTool
from lamina.core.values.selection import SearchSettings
from lamina.core.values.settings import Settings
from lamina.core.values.tool import OfferedTool


def scene(*guides: Guide, alike: Likeness | None = None, **given: Any) -> Scene:
    given.setdefault("whole_pool_tokens", 0)  # the original searches pools of any size
    return Scene(guides=GuideSourceFake(*guides), index=IndexFake(alike), **given)


def rules(*names: str, include: Include = "agent") -> list[Guide]:
    return [guide("rule", name, include) for name in names]


def found(name: str) -> OfferedTool:
    """A tool that is chosen by search."""
    return replace(tool(name), include="agent")


def request_of(played: Scene) -> dict[str, tuple[str, float | None]]:
    """The items and tools of the last request, each with its mode and score."""
    parts: tuple[ContextItem | ContextTool, ...] = (*played.context.items, *played.context.tools)
    own = ("tool:lamina/use_tool", "tool:use_tool")
    return {part.item: (part.include, part.score) for part in parts if part.item not in own}


async def members_of(played: Scene) -> list[str]:
    return [member.item for member in await played.runner.session.items()]


# -- 13: a new session, and the defaults ---------------------------------------------------------


def test_13_a_new_session_has_always_references_then_rules_by_priority_and_name_then_tools() -> (
    None
):
    async def body() -> None:
        guides = (
            guide("rule", "b", level=2),
            guide("rule", "a", level=2),
            guide("rule", "first", level=1),
            guide("reference", "book", level=900),
            guide("rule", "by hand", "manual"),
            guide("rule", "by search", "agent"),
        )
        async with scene(*guides, tools=[tool("read")]) as played:
            await played.ask("Hello")
            assert await members_of(played) == [
                "reference:book", "rule:first", "rule:a", "rule:b", "tool:fake/read",
            ]  # fmt: skip

    run(body())


def test_13_items_added_by_hand_append_in_call_order_and_chosen_ones_follow_by_score() -> None:
    async def body() -> None:
        alike = {"ask": {"rule:low": 0.71, "rule:high": 0.93}}
        guides = (*rules("a", "b", include="manual"), *rules("low", "high"))
        async with scene(*guides, alike=alike) as played:
            session = played.runner.session
            assert await session.add("rule:b")
            assert await session.add("rule:a")
            await played.ask("ask")
            assert list(request_of(played)) == ["rule:b", "rule:a", "rule:high", "rule:low"]

    run(body())


def test_13_the_defaults_are_those_of_the_document() -> None:
    search = Settings().guide_search
    assert (search.top_k, search.top_n, search.include_score) == (20, 5, 0.7)
    assert (search.expansion_depth, search.expansion_threshold) == (0, 0.75)
    assert (search.expansion_top_n, search.expansion_chunks) == (3, 5)


def test_13_where_no_embedding_can_be_had_words_rank_and_there_is_no_score() -> None:
    async def body() -> None:
        index = IndexFake({"ask": {f"rule:{n}": 1.0 + n for n in range(8)}})
        index.lexical = "no embedding model"
        guides = GuideSourceFake(*rules(*map(str, range(8))))
        async with Scene(guides=guides, index=index) as played:
            await played.ask("ask")
            chosen = {item.item: (item.score, item.origin) for item in played.context.items}
            assert len(chosen) == 5
            assert set(chosen.values()) == {(None, "lexical")}

    run(body())


def test_13_adding_twice_and_removing_what_is_absent_answer_false() -> None:
    async def body() -> None:
        async with scene(*rules("a", include="manual")) as played:
            session = played.runner.session
            assert await session.add("rule:a") is True
            assert await session.add("rule:a") is False
            assert await session.remove("rule:a") is True
            assert await session.remove("rule:a") is False

    run(body())


# -- 14: taking out and putting in ----------------------------------------------------------------


def test_14_an_always_item_that_was_removed_stays_out_of_the_session_and_of_search() -> None:
    async def body() -> None:
        alike = {"ask": {"rule:a": 0.95, "rule:b": 0.9}}
        guides = (*rules("a", include="always"), *rules("b"))
        async with scene(*guides, alike=alike) as played:
            await played.runner.session.remove("rule:a")
            await played.runner.session.remove("rule:b")
            await played.ask("ask")
            assert request_of(played) == {}

    run(body())


def test_14_an_agent_item_added_by_hand_is_manual_without_score_and_not_searched() -> None:
    async def body() -> None:
        async with scene(*rules("a"), alike={"ask": {"rule:a": 0.95}}) as played:
            await played.runner.session.add("rule:a")
            await played.ask("ask")
            assert request_of(played) == {"rule:a": ("manual", None)}

    run(body())


# -- 15: tools ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "include", "permission"),
    [
        ({}, "always", "required"),
        ({"include": "manual", "permission": "free"}, "manual", "free"),
        (
            {
                "include": "manual",
                "permission": "free",
                "tools": {"read": {"include": "agent", "permission": "required"}},
            },
            "agent",
            "required",
        ),
    ],
)
def test_15_what_holds_for_a_tool_is_its_own_then_its_servers_then_always_and_required(
    written: dict[str, Any], include: str, permission: str
) -> None:
    entry = {"command": "serve", **written}
    data = json.dumps({"mcpServers": {"files": entry}}).encode()
    (server,) = parse_servers(data, Path("mcp.json"), {}).servers
    assert server.include_of("read") == include
    assert server.permission_of("read") == permission


# -- 16: chunks -----------------------------------------------------------------------------------


def test_16_a_question_is_split_at_ends_of_sentences_into_at_most_500_characters() -> None:
    assert split_sentences("What is it? Say so! Then go. v1.2 stays") == (
        "What is it?", "Say so!", "Then go.", "v1.2 stays",
    )  # fmt: skip
    assert max(map(len, split_sentences("word " * 1_000))) <= 500


def test_16_an_item_is_name_and_description_then_paragraphs_and_a_tool_is_one_chunk() -> None:
    long = " ".join(f"Sentence {number} is not a very long one." for number in range(60))
    chunks = chunk_item("Login", "How people log in", f"First paragraph.\n\n{long}")
    assert chunks[:2] == ("Login: How people log in", "First paragraph.")
    assert len(chunks) > 4
    assert max(map(len, chunks)) <= 500
    assert all(chunk.endswith(".") for chunk in chunks[1:])
    assert len(chunk_tool("fetch_website", long, server="web", parameters=["url"])) == 1


# -- 17: how many ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "taken"),
    [
        ([0.9, 0.85, 0.8, 0.79, 0.75, 0.71, 0.7], 7),
        ([0.9, 0.8, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2], 5),
        ([0.7] + [0.69] * 9, 5),
        ([0.0, -0.2], 0),
    ],
)
def test_17_all_at_or_above_the_score_are_in_and_otherwise_five(
    scores: list[float], taken: int
) -> None:
    async def body() -> None:
        names = [f"r{number}" for number in range(len(scores))]
        alike = {"ask": {f"rule:{name}": score for name, score in zip(names, scores, strict=True)}}
        async with scene(*rules(*names), alike=alike) as played:
            await played.ask("ask")
            # Ties keep the order of the candidates.
            assert list(request_of(played)) == [f"rule:{name}" for name in names[:taken]]

    run(body())


def test_17_an_empty_query_brings_nothing_and_is_no_error() -> None:
    async def body() -> None:
        async with scene(*rules("a"), alike={"": {"rule:a": 0.9}}) as played:
            answer = await played.ask("", attach=[Item(id=note_id("a.md"), content="AAA")])
            assert answer.ending == "answered"
            assert list(request_of(played)) == ["note:a.md"]

    run(body())


# -- 18, 20: searches that fail, questions about several things -----------------------------------


def test_18_a_search_that_fails_is_a_warning_and_the_session_items_are_still_sent() -> None:
    async def body() -> None:
        guides = (*rules("a", include="always"), *rules("b"))
        async with scene(*guides, alike={"ask": {"rule:b": 0.9}}) as played:
            index = played._selecting[0]
            assert isinstance(index, IndexFake)
            index.fails = OSError("the disk is gone")
            answer = await played.ask("ask")
            assert answer.ending == "answered"
            assert list(request_of(played)) == ["rule:a"]
            assert any("the disk is gone" in warning for warning in played.context.warnings)

    run(body())


def test_20_every_part_of_a_question_gets_an_item_if_one_is_above_the_floor() -> None:
    async def body() -> None:
        strong = {f"rule:boat{number}": 0.9 - number / 100 for number in range(9)}
        alike = {"boat": strong, "invoice": {"rule:invoices": 0.3}, "moon": {"rule:moon": 0.1}}
        guides = rules(*(name.removeprefix("rule:") for name in strong), "invoices", "moon")
        async with scene(*guides, alike=alike) as played:
            await played.ask("Where is the boat? Who pays the invoice? And the moon?")
            assert "rule:invoices" in request_of(played)
            assert "rule:moon" not in request_of(played)

    run(body())


# -- 19: approvals --------------------------------------------------------------------------------


def test_19_an_approval_reuses_the_request_context_and_the_next_message_rebuilds_it() -> None:
    async def body() -> None:
        alike = {"boat": {"rule:sea": 0.9}, "invoice": {"rule:money": 0.9}}
        script = (calling(("a", "pay", {})), saying("Paid."), saying("Sailed."))
        tools = [tool("pay", "required")]
        async with scene(*rules("sea", "money"), alike=alike, tools=tools) as played:
            played.plays(*script)
            answer = await played.ask("the invoice")
            assert answer.ending == "waiting"
            chosen = request_of(played)
            await played.agent.decide("a", "allow_once")
            assert (await played.go_on()).text == "Paid."
            assert request_of(played) == chosen
            await played.ask("the boat")
            assert "rule:sea" in request_of(played)
            assert "rule:money" not in request_of(played)

    run(body())


def test_19_decisions_are_allow_for_session_allow_once_and_deny() -> None:
    async def body() -> None:
        calls = [calling((f"c{n}", "pay", {})) for n in range(4)]
        approver = ApproverFake("allow_once", "deny", "allow_session")
        async with Scene(*calls, tools=[tool("pay", "required")], approver=approver) as played:
            await played.ask("pay")
            assert approver.asked == ["c0", "c1", "c2"]
            assert played.results == ["pay gave {}", "Tool call denied", *["pay gave {}"] * 2]

    run(body())


def test_19_in_a_mixed_turn_the_free_calls_run_and_the_others_wait() -> None:
    async def body() -> None:
        mixed = calling(("a", "look", {}), ("b", "pay", {}))
        async with Scene(mixed, tools=[tool("look"), tool("pay", "required")]) as played:
            answer = await played.ask("look and pay")
            assert played.host.called == ["look"]
            assert [call.call.id for call in answer.waiting_calls] == ["b"]

    run(body())


# -- 40, 41: the flow of the documents, and expansion ---------------------------------------------

FLOW = (
    guide("rule", "A", "always"),
    guide("rule", "B", "manual"),
    guide("rule", "C", "agent"),
    guide("reference", "X", "always"),
    guide("reference", "Y", "agent"),
)
FLOW_ALIKE = {
    "How do I authenticate?": {"rule:C": 0.92},
    "What's the error handling?": {"reference:Y": 0.87},
}


def test_40_each_request_has_the_session_items_and_what_its_own_question_brings() -> None:
    async def body() -> None:
        async with scene(*FLOW, alike=FLOW_ALIKE) as played:
            assert set(await members_of(played)) == {"rule:A", "reference:X"}
            await played.runner.session.add("rule:B")
            assert set(await members_of(played)) == {"rule:A", "reference:X", "rule:B"}
            held = {
                "rule:A": ("always", None),
                "reference:X": ("always", None),
                "rule:B": ("manual", None),
            }
            await played.ask("How do I authenticate?")
            assert request_of(played) == held | {"rule:C": ("agent", 0.92)}
            await played.ask("What's the error handling?")
            assert request_of(played) == held | {"reference:Y": ("agent", 0.87)}
            # What the first question brought applies no more, though its bytes stay where they are.
            assert "rule:C" not in await members_of(played)
            assert played.context.agreement.broke is None

    run(body())


SECURE = guide(
    "reference", "Authentication Rules", "agent", text="Tokens come from the endpoint: fetch it."
)


@pytest.mark.parametrize("graph", [False, True])
def test_41_a_selected_reference_brings_the_tool_that_its_text_speaks_of(graph: bool) -> None:
    async def body() -> None:
        alike = {
            "How do I authenticate?": {"reference:Authentication Rules": 0.92},
            "fetch it": {"tool:fake/fetch_website": 0.81, "tool:fake/sing": 0.2},
        }
        search = SearchSettings(expansion_depth=1, expansion_graph=graph)
        tools = [found("fetch_website"), found("sing")]
        settings = {"guide_search": search, "tool_search": search}
        async with scene(SECURE, alike=alike, tools=tools, **settings) as played:
            await played.ask("How do I authenticate?")
            brought = request_of(played)
            assert brought["reference:Authentication Rules"] == ("agent", 0.92)
            assert brought["tool:fake/fetch_website"] == ("agent", 0.81)
            assert "tool:fake/sing" not in brought
            (fetch,) = [t for t in played.context.tools if t.item == "tool:fake/fetch_website"]
            assert (fetch.origin, fetch.source) == (
                "expansion", "reference:Authentication Rules",
            )  # fmt: skip

    run(body())
