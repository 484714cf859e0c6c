"""Tools for a question: they join while that is cheap, and are described where it is not."""

from typing import Any

import pytest
from inline_snapshot import snapshot
from msgspec.structs import replace
from tests.engine.runners.scenes import Scene
from tests.fakes.book import SMALL
from tests.fakes.index import IndexFake
from tests.fakes.providers import calling, saying
from tests.fakes.sessions import run
from tests.fakes.tools import CLOSED, PATH, ApproverFake, of_host, tool

from lamina.core.assembly.tool_offer import LONG_DESCRIPTION
from lamina.core.values.entry import DecisionEntry, TransformEntry
from lamina.core.values.item import Include
from lamina.core.values.message import ToolResult
from lamina.core.values.selection import SearchSettings
from lamina.core.values.tool import OfferedTool, Permission, ToolOutput
from lamina.errors import UsageError

NAMES = ("read", "write", "send", "paint", "sing", "dance", "cook", "sew")
# Each is found by its own name.
ALIKE = {name: {f"tool:fake/{name}": 0.8} for name in NAMES}
RESTRICTS = replace(SMALL, restricts_tools=True)


def chosen(name: str, permission: Permission = "free", **given: Any) -> OfferedTool:
    """A tool that is chosen by search."""
    return replace(tool(name, permission, **given), include="agent")


def with_mode(name: str, include: Include) -> OfferedTool:
    return replace(tool(name), include=include)


def scene(*tools: OfferedTool, index: IndexFake | None = None, **given: Any) -> Scene:
    # Just what is sure to be meant: recent questions must not bring anything here.
    given.setdefault("tool_search", SearchSettings(top_n=0))
    # As in a pool that is too large to be offered whole.
    given.setdefault("whole_pool_tokens", 0)
    return Scene(tools=tools, index=index or IndexFake(ALIKE), **given)


ALL = tuple(chosen(name) for name in NAMES)


def listed(played: Scene) -> list[str]:
    return of_host(each["function"]["name"] for each in played.provider.bodies[-1].get("tools", ()))


def described(played: Scene) -> list[str]:
    return [e.label for e in played.context.items if e.item.startswith("tool:")]


def broke(played: Scene) -> str:
    agreement = played.context.agreement
    return agreement.broke.reason if agreement.broke else ""


def left(played: Scene) -> list[tuple[str, str]]:
    return [(omission.what, omission.reason) for omission in played.context.left_out]


async def use_up_joins(played: Scene) -> None:
    """Lets tools join until the list is as it stays."""
    for name in NAMES[:5]:
        await played.ask(name)
    assert played.runner.session.state.tool_joins == 4


# -- nothing for nothing ---------------------------------------------------------------------------


def test_a_question_for_which_no_tool_stands_out_brings_none_and_says_how_much_was_lacking() -> (
    None
):
    async def body() -> None:
        index = IndexFake({"thanks": {ALL[0].id: 0.28, ALL[1].id: 0.2}})
        async with scene(*ALL, index=index, tool_search=SearchSettings()) as played:
            await played.ask("thanks")
            assert not {item.item for item in played.context.tools} & {tool.id for tool in ALL}
            assert described(played) == []
            (first, *_) = played.context.left_out
            assert (first.what, first.reason, first.score) == (ALL[0].id, "ranked_lower", 0.28)
            assert first.lacking is not None
            assert first.lacking.verdict in first.detail
            # Whoever sets a floor decides alone.
            await played.runner.session.update_settings(tool_search={"floor": 0.25})
            await played.ask("thanks")
            assert [item.item for item in played.context.tools if item.score] == [ALL[0].id]

    run(body())


# -- sticky ----------------------------------------------------------------------------------------


def test_chosen_tools_are_in_the_first_request_with_their_scores_and_others_are_not() -> None:
    async def body() -> None:
        async with scene(tool("clock"), *ALL) as played:
            await played.ask("read and write it")
            assert listed(played) == ["use_tool", "find_tools", "clock", "read", "write"]
            tools = {t.name: (t.include, t.score, t.origin) for t in played.context.tools}
            assert tools == {
                "use_tool": ("always", None, ""),
                "find_tools": ("always", None, ""),
                "read_result": ("always", None, ""),
                "clock": ("always", None, ""),
                "read": ("agent", pytest.approx(0.8), "search"),
                "write": ("agent", pytest.approx(0.8), "search"),
            }
            assert all(each.tokens > 0 for each in played.context.tools)
            assert broke(played) == ""

    run(body())


def test_a_tool_that_joined_stays_and_says_that_it_was_kept() -> None:
    async def body() -> None:
        async with scene(*ALL) as played:
            await played.ask("read it")
            await played.ask("Thanks!")
            assert listed(played) == ["use_tool", "find_tools", "read"]
            *_, kept = played.context.tools
            assert (kept.name, kept.kept, kept.score) == ("read", True, None)
            assert broke(played) == ""
            await played.verify()

    run(body())


def test_later_tools_join_with_a_reason_four_times_and_then_are_described() -> None:
    async def body() -> None:
        async with scene(*ALL) as played:
            reasons = []
            for name in NAMES:
                await played.ask(f"{name} it")
                reasons.append(broke(played))
            assert reasons == ["", *(f"tools new: {n}" for n in NAMES[1:5]), "", "", ""]
            assert listed(played) == ["use_tool", "find_tools", *NAMES[:5]]
            assert described(played) == ["fake/sew"]
            (sew,) = [e for e in played.context.items if e.item == "tool:fake/sew"]
            assert (sew.include, sew.placement) == ("agent", "message")
            assert sew.score == pytest.approx(0.8)
            await played.verify()

    run(body())


@pytest.mark.parametrize(("joins", "breaks"), [(0, 0), (1, 1), (None, 7)])
def test_how_often_tools_join_is_a_setting(joins: int | None, breaks: int) -> None:
    async def body() -> None:
        async with scene(*ALL, tool_joins=joins) as played:
            reasons = []
            for name in NAMES:
                await played.ask(f"{name} it")
                reasons.append(broke(played))
            assert len([reason for reason in reasons if reason]) == breaks
            assert ("use_tool" in listed(played)) == (joins is not None)
            await played.verify()

    run(body())


def test_a_long_conversation_is_not_moved_for_a_tool() -> None:
    async def body() -> None:
        async with scene(*ALL, target=replace(SMALL, window=100_000)) as played:
            await played.ask("read it " + "word " * 9_000)
            await played.ask("write it")
            assert (listed(played), described(played)) == (
                ["use_tool", "find_tools", "read"],
                ["fake/write"],
            )
            assert broke(played) == ""

    run(body())


def test_a_described_tool_that_is_chosen_again_is_only_named() -> None:
    async def body() -> None:
        async with scene(*ALL, tool_joins=0) as played:
            await played.ask("read it")
            await played.ask("write it")
            await played.ask("write it again")
            (again,) = [e for e in played.context.items if e.item == "tool:fake/write"]
            assert again.placement == "above"
            assert str(played.provider.bodies[-1]).count("write: Does write.") == 1
            await played.verify()

    run(body())


@pytest.mark.parametrize("more", [0, 1])
def test_a_chosen_tool_is_described_in_full_unless_that_is_long(more: int) -> None:
    async def body() -> None:
        frame = len("write: Writes. \nArguments:\n- path (string)")
        long = f"Writes. {'x' * (LONG_DESCRIPTION - frame + more)}"
        tools = [chosen("read"), chosen("write", description=long, parameters=PATH)]
        async with scene(*tools, tool_joins=0) as played:
            await played.ask("read it")
            wrong = {"name": "write", "arguments": {"path": 3}}
            played.plays(calling(("c1", "use_tool", wrong)), calling(("c2", "write", {"path": 3})))
            await played.ask("write it")
            asked = str(played.provider.bodies[1]["messages"])
            assert (long in asked) is (not more)
            assert ("write: Writes.\\nArguments: path: string" in asked) is bool(more)
            # Whoever calls it in a wrong way is told all of it.
            assert [long in told for told in played.results] == [True, True]
            await played.ask("write it again")
            (again,) = [e for e in played.context.items if e.item == "tool:fake/write"]
            assert again.placement == "above"
            await played.verify()

    run(body())


# -- calling what is described ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("use_tool", {"name": "write", "arguments": {"path": "a"}}),
        ("use_tool", {"name": "write", "arguments": '{"path": "a"}'}),
        ("write", {"path": "a"}),
    ],
)
def test_a_described_tool_runs_through_use_tool_and_by_its_name(
    name: str, arguments: dict[str, Any]
) -> None:
    async def body() -> None:
        tools = [chosen("read"), chosen("write", parameters=CLOSED)]
        async with scene(*tools, tool_joins=0) as played:
            await played.ask("read it")
            played.plays(calling(("c1", name, arguments)), saying("It is written."))
            answer = await played.ask("write it")
            assert answer.text == "It is written."
            assert played.host.calls == [("write", {"path": "a"})]
            # On the wire the result belongs to what was called.
            await played.verify()
            cached = played.runner.session.envelope.cached.since(0)
            (result,) = [b for m in cached for b in m.blocks if isinstance(b, ToolResult)]
            assert result.name == name

    run(body())


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"name": "write", "arguments": {"path": 3}}, "The arguments do not fit the tool"),
        ({"name": "write", "arguments": {}}, "The arguments do not fit the tool"),
        ({"name": "write", "arguments": "{"}, "not valid JSON"),
        ({"name": "write", "arguments": "[]"}, "have to be a JSON object"),
        ({"name": "nothing", "arguments": {}}, "There is no tool 'nothing'"),
        ({"name": "paint", "arguments": {}}, "The tool 'paint' is not described yet"),
        ({"name": "use_tool", "arguments": {}}, "use_tool requires"),
        ({"arguments": {}}, "use_tool requires"),
        ({}, "use_tool requires"),
        ("{", "use_tool requires"),
        ("[1]", "use_tool requires"),
    ],
)
def test_a_call_through_use_tool_is_checked_as_any_call_is(
    arguments: dict[str, Any] | str, problem: str
) -> None:
    async def body() -> None:
        tools = [chosen("read"), chosen("write", parameters=PATH), chosen("paint")]
        async with scene(*tools, tool_joins=0) as played:
            await played.ask("read it")
            played.plays(calling(("c1", "use_tool", arguments)))
            await played.ask("write it")
            (told,) = played.results
            assert problem in told
            assert played.host.calls == []
            await played.require_sound()

    run(body())


def test_a_call_through_use_tool_waits_for_the_same_decision() -> None:
    async def body() -> None:
        tools = [chosen("read"), chosen("write", "required")]
        async with scene(*tools, tool_joins=0) as played:
            await played.ask("read it")
            inner = {"name": "write", "arguments": {"path": "a"}}
            played.plays(calling(("c1", "use_tool", inner), ("c2", "read", {})))
            answer = await played.ask("write it")
            assert answer.ending == "waiting"
            (wanted,) = answer.waiting_calls
            assert (wanted.call.id, wanted.call.name, wanted.tool.id) == (
                "c1", "write", "tool:fake/write",
            )  # fmt: skip
            # In a mixed turn the free calls run.
            assert played.host.called == ["read"]
            await played.restart()
            await played.agent.decide("c1", "allow_session")
            assert (await played.go_on()).ending == "answered"
            assert played.host.called == ["read", "write"]
            (decision,) = played.kept(DecisionEntry)
            assert decision.tool == "tool:fake/write"
            played.plays(calling(("c3", "use_tool", inner)))
            assert (await played.ask("write again")).ending == "answered"
            assert played.host.called == ["read", "write", "write"]
            await played.verify()

    run(body())


def test_a_denied_call_through_use_tool_says_so() -> None:
    async def body() -> None:
        tools = [chosen("read"), chosen("write", "required")]
        async with scene(*tools, tool_joins=0, approver=ApproverFake("deny")) as played:
            await played.ask("read it")
            played.plays(calling(("c1", "use_tool", {"name": "write", "arguments": {}})))
            await played.ask("write it")
            assert played.results == ["Tool call denied"]
            assert played.host.calls == []

    run(body())


def test_a_host_with_a_tool_called_use_tool_keeps_it_for_itself() -> None:
    async def body() -> None:
        own = replace(tool("use_tool", description="Uses a hammer."), include="always")
        async with scene(own, *ALL) as played:
            for name in NAMES:
                await played.ask(f"{name} it")
            # There is nobody to speak for others, so they join.
            assert listed(played) == ["use_tool", *NAMES]
            (first,) = [t for t in played.provider.bodies[-1]["tools"]
                        if t["function"]["name"] == "use_tool"]  # fmt: skip
            assert first["function"]["description"] == "Uses a hammer."
            given = {"name": "hammer", "arguments": {}}
            played.plays(calling(("c1", "use_tool", given)))
            await played.ask("Now?")
            assert played.host.calls == [("use_tool", given)]
            await played.verify()

    run(body())


# -- boundaries ------------------------------------------------------------------------------------


def test_at_a_boundary_what_was_called_joins_and_what_was_idle_leaves() -> None:
    async def body() -> None:
        async with scene(tool("clock"), *ALL, tool_joins=1) as played:
            await played.ask("read it")
            played.plays(calling(("c1", "write", {})), saying("Done."))
            await played.ask("write it")
            assert listed(played) == ["use_tool", "find_tools", "clock", "read", "write"]
            played.plays(
                calling(("c2", "use_tool", {"name": "send", "arguments": {}})), saying("Done.")
            )
            await played.ask("send it")
            await played.ask("paint it")
            assert listed(played) == ["use_tool", "find_tools", "clock", "read", "write"]
            assert described(played) == ["fake/paint"]
            played.clock.pass_by(301)
            await played.ask("sing it")
            # `read` was never called, `paint` only described.
            assert listed(played) == ["use_tool", "find_tools", "clock", "write", "sing", "send"]
            assert described(played) == []
            why = "tools new: sing, send; not chosen any more: read (301 s since the last request"
            assert why in broke(played)
            await played.verify()
            # In the list now, so its description may go: nothing of it is said to be lost.
            assert "tool:fake/send" not in [what for what, _ in left(played)]

    run(body())


def test_at_a_boundary_with_nothing_to_change_the_list_stays() -> None:
    async def body() -> None:
        async with scene(*ALL) as played:
            played.plays(calling(("c1", "read", {})), saying("Done."))
            await played.ask("read it")
            first = played.provider.bodies[-1]["tools"]
            played.clock.pass_by(301)
            await played.ask("Thanks!")
            assert played.provider.bodies[-1]["tools"] == first
            assert len(played.kept(TransformEntry)) >= 1

    run(body())


def test_joins_are_counted_from_the_journal() -> None:
    async def body() -> None:
        async with scene(*ALL) as played:
            await use_up_joins(played)
            await played.restart()
            await played.ask("cook it")
            assert (described(played), broke(played)) == (["fake/cook"], "")
            fork = await played.runner.session.fork("other")
            assert fork.state.tool_joins == 4
            await fork.close()

    run(body())


# -- exact and all ---------------------------------------------------------------------------------


def test_exact_offers_what_was_chosen_and_says_why_the_prefix_moved() -> None:
    async def body() -> None:
        async with scene(tool("clock"), *ALL, tool_policy="exact") as played:
            await played.ask("read it")
            assert listed(played) == ["clock", "read"]
            await played.ask("write it")
            assert listed(played) == ["clock", "write"]
            assert broke(played) == snapshot("tools new: write; not chosen any more: read")
            assert {t.name for t in played.context.tools} == {"read_result", "clock", "write"}
            await played.ask("write it again")
            assert broke(played) == ""
            await played.verify()

    run(body())


def test_exact_is_exact_also_where_a_list_could_be_restricted() -> None:
    async def body() -> None:
        async with scene(tool("clock"), *ALL, tool_policy="exact", target=RESTRICTS) as played:
            await played.ask("read it")
            await played.ask("write it")
            assert listed(played) == ["clock", "write"]
            assert broke(played) == "tools new: write; not chosen any more: read"
            assert played.context.allowed_tools is None
            await played.ask("Thanks!")
            assert listed(played) == ["clock"]
            await played.verify()

    run(body())


def test_a_kept_tool_that_is_gone_may_not_be_called_where_that_can_be_said() -> None:
    async def body() -> None:
        async with scene(tool("a"), target=RESTRICTS) as played:
            await played.ask("Q")
            played.host.tools = ()
            await played.ask("Q")
            assert (listed(played), broke(played)) == (["a"], "")
            assert played.context.allowed_tools == ()
            assert played.provider.bodies[-1]["tool_choice"] == "none"
            assert of_host(tool.name for tool in played.context.tools) == ["a"]
            assert left(played) == [("tool:fake/a", "removed")]

    run(body())


def test_all_offers_every_tool_but_those_to_be_added_by_hand_and_searches_for_none() -> None:
    async def body() -> None:
        index = IndexFake(ALIKE)
        tools = [tool("clock"), with_mode("hand", "manual"), *ALL]
        async with scene(*tools, tool_policy="all", index=index) as played:
            await played.ask("read it")
            assert listed(played) == ["clock", *NAMES]
            assert index.loaded == []
            assert {(t.include, t.kept) for t in played.context.tools} == {
                ("always", False), ("agent", False),
            }  # fmt: skip

    run(body())


# -- tools that come and go ------------------------------------------------------------------------


def test_a_tool_added_by_hand_joins_for_good_and_is_not_searched() -> None:
    async def body() -> None:
        index = IndexFake(ALIKE)
        async with scene(with_mode("hand", "manual"), *ALL[:2], index=index) as played:
            with pytest.raises(UsageError, match="there is no tool"):
                await played.runner.session.add("tool:fake/unknown")
            await played.ask("read it")
            assert await played.runner.session.add("tool:fake/hand")
            assert await played.runner.session.add("tool:fake/write")
            await played.ask("write it")
            assert listed(played) == ["use_tool", "find_tools", "read", "hand", "write"]
            tools = {t.name: (t.include, t.score) for t in played.context.tools}
            assert tools["hand"] == ("manual", None)
            assert tools["write"] == ("manual", None)
            assert index.loaded[-1] == ["tool:fake/read"]
            assert played.runner.session.state.tool_joins == 0
            await played.verify()

    run(body())


def test_a_tool_can_be_added_before_anything_is_asked() -> None:
    async def body() -> None:
        async with scene(with_mode("hand", "manual")) as played:
            assert await played.runner.session.add("tool:fake/hand")
            await played.ask("Hello")
            assert listed(played) == ["hand"]

    run(body())


def test_a_tool_added_by_hand_that_went_away_is_missing() -> None:
    async def body() -> None:
        async with scene(with_mode("hand", "manual"), tool("clock")) as played:
            await played.ask("Q")
            await played.runner.session.add("tool:fake/hand")
            await played.ask("Q")
            played.host.tools = [tool("clock")]
            await played.ask("Q")
            assert ("tool:fake/hand", "missing") in left(played)
            assert of_host(t.name for t in played.context.tools) == ["clock"]
            assert (await played.runner.session.items())[-1].missing

    run(body())


def test_a_described_tool_that_vanished_gets_an_error_for_its_calls() -> None:
    async def body() -> None:
        async with scene(*ALL[:2], tool_joins=0) as played:
            await played.ask("read it")
            await played.ask("write it")
            played.host.tools = ALL[:1]
            played.plays(calling(("c1", "use_tool", {"name": "write", "arguments": {}})))
            await played.ask("Once more")
            assert played.host.calls == []
            assert len(played.results) == 1
            await played.require_sound()

    run(body())


def test_a_described_tool_that_changed_is_described_anew_before_it_is_called() -> None:
    async def body() -> None:
        async with scene(*ALL[:2], tool_joins=0) as played:
            await played.ask("read it")
            await played.ask("write it")
            played.host.tools = [ALL[0], chosen("write", description="Writes twice.")]
            played.plays(calling(("c1", "use_tool", {"name": "write", "arguments": {}})))
            await played.ask("Once more")
            # What it says of itself now was never shown.
            assert played.host.calls == []
            played.plays(calling(("c2", "use_tool", {"name": "write", "arguments": {}})))
            await played.ask("write it")
            assert played.host.called == ["write"]
            assert "Writes twice." in str(played.provider.bodies[-1])
            await played.verify()

    run(body())


def test_a_described_tool_that_a_person_takes_out_is_not_run() -> None:
    async def body() -> None:
        async with scene(*ALL[:2], tool_joins=0) as played:
            await played.ask("read it")
            await played.ask("write it")
            assert await played.runner.session.remove("tool:fake/write")
            played.plays(calling(("c1", "use_tool", {"name": "write", "arguments": {}})))
            await played.ask("write it")
            assert played.host.calls == []
            assert described(played) == []
            await played.verify()

    run(body())


def test_a_listed_tool_that_a_person_takes_out_may_not_be_called_where_that_can_be_said() -> None:
    async def body() -> None:
        async with scene(tool("a"), tool("b"), target=RESTRICTS) as played:
            await played.ask("Q")
            await played.runner.session.remove("tool:fake/b")
            await played.ask("Q")
            assert (listed(played), broke(played)) == (["a", "b"], "")
            assert played.context.allowed_tools == ("read_result", "a")
            await played.runner.session.add("tool:fake/b")
            await played.ask("Q")
            assert broke(played) == ""
            assert not played.context.allowed_tools

    run(body())


# -- relations, expansion, search that fails -------------------------------------------------------


def test_related_tools_come_along() -> None:
    async def body() -> None:
        played = scene(*ALL, relations={"tool:fake/read": ["tool:fake/write"]})
        async with played:
            await played.ask("read it")
            assert listed(played) == ["use_tool", "find_tools", "read", "write"]
            (write,) = [t for t in played.context.tools if t.name == "write"]
            assert (write.origin, write.source, write.score) == (
                "relation", "tool:fake/read", None,
            )  # fmt: skip

    run(body())


def test_tools_expand_by_settings_of_their_own() -> None:
    async def body() -> None:
        alike = {"find": {"tool:fake/read": 0.8}, "Does read": {"tool:fake/write": 0.9}}
        search = SearchSettings(top_n=1, expansion_depth=1)
        async with scene(*ALL, index=IndexFake(alike), tool_search=search) as played:
            await played.ask("find it")
            origins = {t.name: (t.origin, t.source) for t in played.context.tools}
            assert origins == {
                "use_tool": ("", ""),
                "find_tools": ("", ""),
                "read_result": ("", ""),
                "read": ("search", ""),
                "write": ("expansion", "tool:fake/read"),
            }

    run(body())


def test_a_search_for_tools_that_fails_leaves_those_of_the_session() -> None:
    async def body() -> None:
        index = IndexFake(ALIKE)
        async with scene(tool("clock"), *ALL, index=index) as played:
            await played.ask("read it")
            index.fails = RuntimeError("no such table")
            answer = await played.ask("write it")
            assert answer.ending == "answered"
            assert listed(played) == ["use_tool", "find_tools", "clock", "read"]
            assert ["no such table" in warning for warning in played.context.warnings] == [True]
            await played.verify()

    run(body())


def test_tools_that_were_nearly_chosen_are_reported() -> None:
    async def body() -> None:
        alike = {"find": {f"tool:fake/{n}": 0.6 - i / 50 for i, n in enumerate(NAMES)}}
        async with scene(*ALL, index=IndexFake(alike), tool_search=SearchSettings()) as played:
            await played.ask("find it")
            names = of_host(t.name for t in played.context.tools)
            assert names == ["use_tool", "find_tools", *NAMES[:5]]
            assert left(played) == [(f"tool:fake/{n}", "ranked_lower") for n in NAMES[5:]]

    run(body())


def test_tools_for_which_there_is_no_room_are_left_out_with_their_size() -> None:
    async def body() -> None:
        wide = chosen("read", description="word " * 860)
        async with scene(wide, *ALL[1:], window=1000, output_reserve=100) as played:
            answer = await played.ask("read and write it")
            assert answer.ending == "answered"
            assert "write" in listed(played)
            assert ("tool:fake/read", "room_left") in left(played)

    run(body())


def test_a_description_is_no_attachment_and_has_no_part_in_their_limit() -> None:
    async def body() -> None:
        played = scene(*ALL[:2], tool_joins=0, attachment_limit=12)
        played.workspace.notes["a.md"] = "text"
        async with played:
            await played.ask("read it", attach=["a.md"])
            assert [e.label for e in played.context.items] == ["a.md"]
            await played.ask("write it", attach=["a.md"])
            assert sorted(e.label for e in played.context.items) == ["a.md", "fake/write"]

    run(body())


# -- in the middle of a turn -----------------------------------------------------------------------


def test_results_through_use_tool_survive_a_restart_between_calls() -> None:
    async def body() -> None:
        tools = [chosen("read"), chosen("write", "required"), chosen("send")]
        async with scene(*tools, tool_joins=0) as played:
            await played.ask("read it")
            played.plays(
                calling(
                    ("c1", "use_tool", {"name": "send", "arguments": {}}),
                    ("c2", "use_tool", {"name": "write", "arguments": {}}),
                )
            )
            played.host.outputs["send"] = ToolOutput(text="sent")
            assert (await played.ask("write and send it")).ending == "waiting"
            await played.restart()
            await played.agent.decide("c2", "deny")
            await played.go_on()
            assert played.results == ["sent", "Tool call denied"]
            assert played.host.called == ["send"]
            await played.require_sound()

    run(body())
