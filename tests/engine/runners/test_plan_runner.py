"""A plan, one batch of tools, one answer."""

import re
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from msgspec.structs import replace
from tests.engine.runners.scenes import Scene
from tests.engine.sources.note_scenes import PlanScene
from tests.fakes.index import IndexFake
from tests.fakes.providers import ProviderFake, calling, saying
from tests.fakes.renderers import WORDS
from tests.fakes.sessions import run
from tests.fakes.tools import CLOSED, PATH, ApproverFake, tool

from lamina.core.values.entry import (
    PLAN,
    PLANNED,
    DecisionEntry,
    EphemeralEntry,
    RequestEntry,
    TransformEntry,
)
from lamina.core.values.event import ToolFinished, ToolStarted, UsageReported, WarningIssued
from lamina.core.values.item import Item, note_id
from lamina.core.values.note import Scope
from lamina.core.values.tool import DENIED, ToolOutput
from lamina.core.values.usage import Usage
from lamina.engine.runners.call_planner import MAX_CALLS, summarize_attached
from lamina.engine.runners.citations import SEARCHED
from lamina.engine.runners.composer import COMPOSER
from lamina.engine.runners.note_search_tool import SearchTools
from lamina.engine.runners.runner import AgentRunner, PlanRunner
from lamina.errors import ProviderError, RequestTooLong, WindowExceeded


def scene_of(*scripts: Any, **given: Any) -> PlanScene:
    given.setdefault("tools", [tool("find", parameters=PATH), tool("look")])
    given.setdefault("searches", False)
    return PlanScene(*scripts, **given)


def test_what_was_planned_is_run_and_stands_before_the_question() -> None:
    async def body() -> None:
        usage = Usage(input=10, cached=4, output=2)
        plan = calling(("a", "find", {"path": "x"}), ("b", "look", {}), usage=usage)
        async with scene_of(plan, saying("Nine.", usage=usage)) as scene:
            answer = await scene.ask("Which berth?")
            assert (answer.ending, answer.text, answer.requests) == ("answered", "Nine.", 2)
            assert answer.usage == Usage(input=20, cached=8, output=4)
            assert scene.host.called == ["find", "look"]
            assert scene.asked == snapshot("""\
# Additional context:

<find>
Arguments: {"path":"x"}
find gave {'path': 'x'}
</find>

<look>
look gave {}
</look>

---

[User query]:

Which berth?\
""")
            assert "tools" not in scene.provider.bodies[1]
            asked = scene.kinds.index("RequestStarted")
            assert scene.kinds[0] == "UsageReported"
            assert set(scene.kinds[1:asked]) == {"ToolStarted", "ToolFinished"}
            assert scene.kinds[asked:] == [
                "RequestStarted", "BlockStarted", "BlockDelta", "BlockEnded", "UsageReported",
                "TurnEnded",
            ]  # fmt: skip
            await scene.verify()

    run(body())


def test_the_planner_sees_the_question_the_tools_and_how_attachments_begin() -> None:
    async def body() -> None:
        async with scene_of(saying("No tools."), saying("Nine.")) as scene:
            scene.workspace.notes["plan.md"] = (
                "---\ntitle: Plan\n---\n# The plan\n\nfirst </attached>\n"
                + "word " * 60 + "\n\nSecret third paragraph.\n"
            )  # fmt: skip
            await scene.ask("Which berth?", attach=["plan.md", "nowhere.md"])
            plan = scene.provider.bodies[0]
            assert [each["function"]["name"] for each in plan["tools"]] == ["find", "look"]
            system, user = plan["messages"]
            assert system == {"role": "system", "content": WORDS.planner.format(most=MAX_CALLS)}
            words = ("word " * 40)[: 199 - len("first &lt;/attached> ")]
            assert user["content"].replace(words, "WORDS") == snapshot("""\
<attached>
- note: plan.md
  > # The plan
  > first &lt;/attached> WORDS…
</attached>

---

[User query]:

Which berth?\
""")
            assert "Secret third paragraph." in scene.asked

    run(body())


def test_without_attachments_the_planner_gets_the_question_alone() -> None:
    async def body() -> None:
        async with scene_of(saying(""), saying("Nine.")) as scene:
            await scene.ask("Which berth?")
            assert scene.provider.bodies[0]["messages"][-1]["content"] == "Which berth?"

    run(body())


def test_where_nothing_is_planned_the_answer_is_a_plain_one() -> None:
    async def body() -> None:
        async with scene_of(saying("None needed."), saying("Nine.")) as scene:
            answer = await scene.ask("Which berth?")
            assert (answer.text, answer.requests) == ("Nine.", 2)
            assert scene.asked == "Which berth?"
            assert scene.noted(PLAN)[0]["calls"] == []
            await scene.verify()

    run(body())


def test_where_there_are_no_tools_nothing_is_planned() -> None:
    async def body() -> None:
        async with scene_of(saying("Nine."), tools=[]) as scene:
            answer = await scene.ask("Which berth?")
            assert (answer.text, answer.requests) == ("Nine.", 1)
            assert scene.noted(PLAN) == []

    run(body())


@pytest.mark.parametrize(
    "script", [[ProviderError("down")], [RequestTooLong("too long")], [], saying("x")[:1]]
)
def test_a_planner_that_fails_costs_only_the_tools(script: Any) -> None:
    async def body() -> None:
        async with scene_of(script, saying("Nine.")) as scene:
            answer = await scene.ask("Which berth?")
            assert (answer.ending, answer.text, answer.requests) == ("answered", "Nine.", 2)
            assert answer.warnings[0].startswith("planning failed, so no tools are run: ")
            assert scene.noted("lamina.problem")[0]["where"] == "plan"
            assert scene.host.calls == []
            await scene.require_sound()

    run(body())


def test_a_plan_that_does_not_fit_the_window_is_not_asked_for() -> None:
    async def body() -> None:
        wordy = [tool(f"tool{n}", description="word " * 40) for n in range(10)]
        limits = {"window": 300, "output_reserve": 50}
        async with scene_of(saying("Nine."), tools=wordy, **limits) as scene:
            answer = await scene.ask("Which berth?")
            assert (answer.text, answer.requests) == ("Nine.", 1)
            assert "does not fit the window; offer fewer tools" in answer.warnings[0]

    run(body())


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("seek", "{}", "There is no tool 'seek'. Tools: find, look."),
        ("find", '{"path": ', "The arguments are not valid JSON"),
        ("find", "[1]", "The arguments have to be a JSON object."),
        ("find", '{"path": 1}', "The arguments do not fit the tool: `path`"),
        ("look", "{}", "the same call stands before it"),
    ],
)
def test_what_is_wrong_with_a_plan_is_told_and_not_run(
    name: str, arguments: str, problem: str
) -> None:
    async def body() -> None:
        plan = calling(("a", "look", {}), ("b", name, arguments))
        tools = [tool("find", parameters=CLOSED), tool("look")]
        # The second plan leaves out what was wrong.
        answers = [saying("Nine.")] if name == "look" else [saying(""), saying("Nine.")]
        async with scene_of(plan, *answers, tools=tools) as scene:
            answer = await scene.ask("Which berth?")
            assert answer.text == "Nine."
            assert scene.host.called == ["look"]
            assert problem in answer.warnings[0]
            (refused,) = scene.noted(PLAN)[0]["refused"]
            assert (refused["name"], refused["arguments"]) == (name, arguments)
            assert "<seek>" not in scene.asked

    run(body())


def test_a_plan_that_cannot_be_understood_gets_a_second_try_with_what_is_wrong() -> None:
    async def body() -> None:
        usage = Usage(input=10, output=2)
        first = calling(("a", "look", {}), ("b", "find", {"path": 1}), usage=usage)
        second = calling(("a", "look", {}), ("b", "find", {"path": "x"}), usage=usage)
        tools = [tool("find", parameters=CLOSED), tool("look")]
        async with scene_of(first, second, saying("Nine.", usage=usage), tools=tools) as scene:
            answer = await scene.ask("Which berth?")
            assert (answer.text, answer.requests, answer.usage.input) == ("Nine.", 3, 30)
            # What was right is run once, whatever the second plan says of it.
            assert sorted(scene.host.called) == ["find", "look"]
            again = scene.provider.bodies[1]
            told = again["messages"][-1]["content"]
            assert "The arguments do not fit the tool: `path`" in str(told)
            assert "- look {}" in str(told)
            # All that the first plan was asked with stands in front of it.
            assert again["tools"] == scene.provider.bodies[0]["tools"]
            plans = scene.noted(PLAN)
            assert [[call["name"] for call in plan["calls"]] for plan in plans] == [
                ["look"], ["find"],
            ]  # fmt: skip
            assert "; the plan is asked for again" in answer.warnings[0]
            await scene.verify()

    run(body())


def test_a_third_try_is_not_made_and_one_that_fails_costs_only_itself() -> None:
    async def body() -> None:
        wrong = calling(("a", "look", {}), ("b", "seek", {}))
        async with scene_of(wrong, wrong, saying("Nine.")) as scene:
            answer = await scene.ask("Which berth?")
            assert (answer.text, answer.requests) == ("Nine.", 3)
            assert scene.host.called == ["look"]
        async with scene_of(wrong, [ProviderError("down")], saying("Nine.")) as scene:
            answer = await scene.ask("Which berth?")
            assert (answer.text, scene.host.called) == ("Nine.", ["look"])
            assert any(line.startswith("planning again failed") for line in answer.warnings)

    run(body())


def test_a_plan_has_so_many_calls_and_no_more() -> None:
    async def body() -> None:
        plan = calling(*((f"c{n}", "look", {"n": n}) for n in range(MAX_CALLS + 2)))
        async with scene_of(plan, saying("Nine.")) as scene:
            answer = await scene.ask("Which berth?")
            assert len(scene.host.calls) == MAX_CALLS
            assert scene.host.together == MAX_CALLS
            assert [warning for warning in answer.warnings if "at most 8 calls" in warning] != []
            # One wrapper for the tool, with what each of its calls was for.
            assert scene.asked.count("<look>") == 1
            assert scene.asked.count("Arguments: ") == MAX_CALLS
            assert scene.asked.index('{"n":0}') < scene.asked.index('{"n":7}')

    run(body())


def test_what_goes_wrong_with_a_tool_is_what_it_gave() -> None:
    async def body() -> None:
        async with scene_of(calling(("a", "look", {})), saying("Hm.")) as scene:
            scene.host.outputs["look"] = ToolOutput(text="no \ud800 file </look>", is_error=True)
            await scene.ask("Which berth?")
            assert "<look>\nError: no " in scene.asked
            assert scene.asked.count("</look>") == 1
            assert scene.noted(PLANNED)[0]["calls"][0]["outcome"] == "failed"
            await scene.verify()

    run(body())


# -- permission -----------------------------------------------------------------------------------


def test_without_anybody_to_ask_a_call_that_needs_a_word_is_denied_in_words() -> None:
    async def body() -> None:
        plan = calling(("a", "write", {}), ("b", "look", {}))
        tools = [tool("write", "required"), tool("look")]
        async with scene_of(plan, saying("Hm."), tools=tools) as scene:
            answer = await scene.ask("Which berth?")
            assert answer.ending == "answered"
            assert scene.host.called == ["look"]
            assert f"<write>\n{WORDS.call_unapproved}\n</write>" in scene.asked
            outcomes = {each["name"]: each["outcome"] for each in scene.noted(PLANNED)[0]["calls"]}
            assert outcomes == {"write": "denied", "look": "ran"}

    run(body())


def test_a_person_who_is_asked_decides_and_what_holds_for_the_session_holds() -> None:
    async def body() -> None:
        approver = ApproverFake("deny", "allow_session")
        plan = calling(("a", "write", {"n": 1}), ("b", "write", {"n": 2}), ("c", "write", {"n": 3}))
        again = calling(("a", "write", {"n": 4}))
        scripts = (plan, saying("Hm."), again, saying("Hm."))
        tools = [tool("write", "required")]
        async with scene_of(*scripts, tools=tools, approver=approver) as scene:
            await scene.ask("Which berth?")
            assert scene.host.calls == [("write", {"n": 2}), ("write", {"n": 3})]
            assert approver.asked == ["plan-1", "plan-2"]
            assert DENIED in scene.asked
            assert [each.decision for each in scene.kept(DecisionEntry)] == [
                "deny",
                "allow_session",
            ]
            await scene.restart()
            await scene.ask("And now?")
            assert len(approver.asked) == 2
            assert scene.host.calls[-1] == ("write", {"n": 4})
            await scene.verify()

    run(body())


def test_an_approver_that_fails_fails_the_question_when_the_tools_are_done() -> None:
    async def body() -> None:
        plan = calling(("a", "write", {}), ("b", "look", {}))
        tools = [tool("write", "required"), tool("look")]
        approver = ApproverFake(RuntimeError("no terminal"))
        async with scene_of(plan, tools=tools, approver=approver) as scene:
            with pytest.raises(RuntimeError, match="no terminal"):
                await scene.ask("Which berth?")
            assert [each["name"] for each in scene.noted(PLANNED)[0]["calls"]] == ["look"]
            await scene.require_sound()

    run(body())


# -- laws -----------------------------------------------------------------------------------------


def test_a_plan_writes_nothing_to_the_envelope() -> None:
    async def body() -> None:
        release = anyio.Event()
        async with scene_of(saying("x"), saying("One."), [release]) as scene:
            await scene.ask("First?")
            envelope = scene.runner.session.envelope
            async with anyio.create_task_group() as group:
                group.start_soon(scene.ask, "Second?")
                await scene.provider.waits.wait()
                assert scene.runner.session.envelope == envelope
                scene.runner.abort()
            assert scene.runner.session.envelope == envelope
            assert scene.kept(TransformEntry) == []
            assert len(scene.kept(RequestEntry)) == 1

    run(body())


@pytest.mark.parametrize("promotion", ["lazy", "eager"])
def test_results_are_gone_with_the_next_turn_and_the_prefix_stays(promotion: str) -> None:
    async def body() -> None:
        plans = [calling((f"c{n}", "find", {"path": f"p{n}"})) for n in range(3)]
        scripts = [step for plan in plans for step in (plan, saying("Said."))]
        async with scene_of(*scripts, promotion=promotion) as scene:
            scene.workspace.notes["plan.md"] = "The harbour plan."
            for at in range(3):
                await scene.ask(f"Question {at}?", attach=["plan.md"])
                body = str(scene.provider.bodies[-1])
                assert body.count("<find>") == 1
                assert body.count(f"p{at}") >= 1
                assert f"p{at - 1}" not in body
                for earlier in range(at + 1):
                    assert body.count(f"Question {earlier}?") == 1
                if promotion == "lazy":
                    assert scene.context.agreement.broke is None
            await scene.verify()

    run(body())


def test_tools_that_stand_from_other_turns_stay_where_they_are() -> None:
    async def body() -> None:
        async with Scene(saying("One."), tools=[tool("find")]) as before:
            await before.ask("First?")
            listed = before.provider.bodies[0]["tools"]
            await before.runner.__aexit__()
            scene = scene_of(calling(("a", "look", {})), saying("Two."), store=before.store)
            async with scene:
                await scene.ask("Second?")
                assert scene.provider.bodies[1]["tools"] == listed
                assert scene.context.agreement.broke is None
                assert scene.host.called == ["look"]

    run(body())


def test_an_answer_that_calls_is_told_once_that_it_is_the_last() -> None:
    async def body() -> None:
        async with Scene(saying("One."), tools=[tool("find")]) as before:
            await before.ask("First?")
            await before.runner.__aexit__()
            scripts = (saying(""), calling(("a", "find", {})), saying("Two."))
            async with scene_of(*scripts, store=before.store) as scene:
                answer = await scene.ask("Second?")
                assert (answer.ending, answer.text) == ("answered", "Two.")
                assert scene.results == [WORDS.calls_over]
                assert scene.host.calls == []
                assert "the answer called find, which was not run" in answer.warnings
                scene.plays(saying(""), calling(("b", "find", {})), calling(("c", "find", {})))
                answer = await scene.ask("Third?")
                assert answer.ending == "called"
                scene.plays(saying(""), saying("Four."))
                assert (await scene.ask("Fourth?")).text == "Four."
                await scene.verify()

    run(body())


@settings(deadline=None, max_examples=30)
@given(
    window=st.integers(400, 3_000),
    sizes=st.lists(st.integers(0, 1_500), min_size=1, max_size=5),
    attached=st.integers(0, 300),
)
def test_what_tools_give_is_never_what_makes_a_question_fail(
    window: int, sizes: list[int], attached: int
) -> None:
    async def body() -> None:
        tools = [tool(f"t{n}") for n in range(len(sizes))]
        plan = calling(*((f"c{n}", f"t{n}", {}) for n in range(len(sizes))))
        limits = {"window": window, "output_reserve": 10}
        async with scene_of(plan, saying("Said."), tools=tools, **limits) as scene:
            scene.workspace.notes["plan.md"] = "plan " * attached + "."
            for n, size in enumerate(sizes):
                scene.host.outputs[f"t{n}"] = ToolOutput(text=f"start{n} " + "word " * size)
            answer = await scene.ask("Q", attach=["plan.md"])
            assert answer.text == "Said."
            assert scene.context.fit.tokens <= window - 10
            whole = sum(sizes) + 20 * len(sizes)
            if whole + attached + 100 < 0.4 * (window - 10):
                assert all(f"start{n} " in scene.asked for n in range(len(sizes)))
                assert answer.warnings == ()
            await scene.verify()

    run(body())


# -- the search -----------------------------------------------------------------------------------


def test_every_search_of_a_plan_has_a_block_of_its_own_with_its_time() -> None:
    async def body() -> None:
        plan = calling(
            ("a", "localSearch", {"query": "north quay berths", "until": "2031-01-01"}),
            ("b", "localSearch", {"query": "north quay berths", "folders": ["sea"]}),
            ("c", "localSearch", {"query": "north quay berths", "timeRange": "1990"}),
        )
        async with scene_of(plan, saying("Nine [^1]."), searches=True) as scene:
            answer = await scene.ask("Berths?")
            openings = re.findall("<localSearch.*>", scene.asked)
            assert openings == [
                '<localSearch timeRange="before 2031-01-01">',
                "<localSearch>",
                '<localSearch timeRange="1990">',
            ]
            blocks = re.findall("<localSearch.*?</localSearch>", scene.asked, re.DOTALL)
            assert all("<search_instruction>" in block for block in blocks)
            assert ["No documents were found." in block for block in blocks] == [False, False, True]
            assert "no note is of that time (1990), so nothing was searched" in blocks[2]
            # What both found has one number.
            for block in blocks[:2]:
                assert "[^1]: harbour > Berths > North (sea/harbour.md#North)" in block
            assert [source.link for source in answer.sources] == ["sea/harbour.md#North"]
            await scene.verify()

    run(body())


def test_what_has_no_room_is_taken_from_the_search_that_found_most() -> None:
    async def body() -> None:
        plan = calling(
            ("a", "localSearch", {"query": "north quay berths ferry trains platform"}),
            (
                "b",
                "localSearch",
                {"query": "from which platform trains leave", "folders": ["land"]},
            ),
        )
        async with scene_of(plan, saying("Four [^1]."), searches=True, window=800) as scene:
            answer = await scene.ask("Berths and trains?")
            assert scene.asked.count("<localSearch>") == 2
            assert scene.asked.count("<path>land/trains.md</path>") >= 1
            assert any("passages that were found" in warning for warning in answer.warnings)

    run(body())


def test_searches_of_one_plan_share_one_numbering() -> None:
    async def body() -> None:
        plan = calling(
            ("a", "localSearch", {"query": "berths of the north quay"}),
            ("b", "look", {}),
            ("c", "localSearch", {"query": "from which platform trains leave"}),
        )
        said = "Platform four [^3], nine berths [^1]."
        async with scene_of(plan, saying(said), searches=True) as scene:
            answer = await scene.ask("Berths and trains?")
            tools = [body["function"]["name"] for body in scene.provider.bodies[0]["tools"]]
            assert tools == ["localSearch", "find", "look"]
            assert scene.asked.count("<localSearch>") == 2
            assert scene.asked.count("<source_catalogue>") == 2
            assert "<look>" in scene.asked
            assert answer.text == "Platform four [^1], nine berths [^2]."
            assert [source.link for source in answer.sources] == [
                "land/trains.md", "sea/harbour.md#North",
            ]  # fmt: skip
            assert answer.turn is not None
            assert scene.noted(SEARCHED)[0]["request"] == answer.turn.id
            await scene.verify()

    run(body())


def test_without_a_search_footnotes_are_the_models_own() -> None:
    async def body() -> None:
        async with scene_of(saying(""), saying("Nine [^3]."), searches=True) as scene:
            answer = await scene.ask("Berths?")
            assert (answer.text, answer.sources, answer.warnings) == ("Nine [^3].", (), ())
            assert answer.search_result is None

    run(body())


def test_a_search_goes_no_further_than_its_scope() -> None:
    async def body() -> None:
        plan = calling(("a", "localSearch", {"query": "trains, berths", "folders": ["land"]}))
        running = {"scope": Scope(folders=("sea",))}
        async with scene_of(plan, saying("Hm."), searches=True, running=running) as scene:
            answer = await scene.ask("Trains?")
            assert answer.search_result is not None
            assert {hit.path for hit in answer.search_result.hits} == {"sea/harbour.md"}

    run(body())


def test_an_agent_that_searches_reads_the_question_behind_the_documents() -> None:
    async def body() -> None:
        question = "How many berths does the north quay have?"
        scene = PlanScene(calling(("a", "localSearch", {"query": "north quay berths"})))
        tools = SearchTools(scene.search, now=scene.clock.now)
        scene.host = tools  # type: ignore[assignment]
        async with scene:
            agent = AgentRunner(scene.runner.session, scene.providers, tools)
            assert (await agent.run(question)).ending == "answered"
            (result,) = scene.results
            assert "nine berths" in result
            assert result.endswith(f"</citation_rules>\n\n---\n\n[User query]:\n\n{question}")

    run(body())


# -- which tools ----------------------------------------------------------------------------------


def test_tools_that_are_chosen_by_search_are_offered_if_they_fit() -> None:
    async def body() -> None:
        tools = [replace(tool(name), include="agent") for name in ("find", "look")]
        index = IndexFake({"berth": {"tool:fake/find": 0.9}})
        given: dict[str, Any] = {"tools": tools, "index": index, "whole_pool_tokens": 0}
        async with scene_of(saying(""), saying("x"), **given) as scene:
            await scene.ask("Which berth?")
            offered = scene.provider.bodies[0]["tools"]
            assert [each["function"]["name"] for each in offered] == ["find"]
            assert "tools" not in scene.provider.bodies[1]

    run(body())


def test_a_plan_may_call_every_tool_of_a_small_pool() -> None:
    async def body() -> None:
        tools = [replace(tool(name), include="agent") for name in ("find", "look")]
        plan = calling(("a", "look", {}))
        async with scene_of(plan, saying("x"), tools=tools) as scene:
            await scene.ask("Which berth?")
            offered = scene.provider.bodies[0]["tools"]
            assert [each["function"]["name"] for each in offered] == ["find", "look"]
            assert scene.host.calls == [("look", {})]

    run(body())


def test_what_a_person_took_out_is_not_planned_with() -> None:
    async def body() -> None:
        async with scene_of(calling(("a", "find", {"path": "x"})), saying("x")) as scene:
            await scene.runner.session.remove("tool:fake/find")
            await scene.ask("Which berth?")
            assert scene.host.calls == []

    run(body())


# -- what goes wrong on the way -------------------------------------------------------------------


def test_a_turn_that_is_stopped_while_tools_run_says_what_ran() -> None:
    async def body() -> None:
        plan = calling(("a", "look", {}), ("b", "find", {"path": "x"}))
        async with scene_of(plan) as scene:
            scene.host.held["find"] = anyio.Event()
            done = anyio.Event()
            scene.on_event = lambda event, number: (
                done.set() if isinstance(event, ToolFinished) else None
            )
            async with anyio.create_task_group() as group:

                async def stop() -> None:
                    await done.wait()
                    await scene.host.waits.wait()
                    assert scene.runner.abort()

                group.start_soon(stop)
                answer = await scene.ask("Which berth?")
            assert answer.ending == "aborted"
            outcomes = {each["name"]: each["outcome"] for each in scene.noted(PLANNED)[0]["calls"]}
            assert outcomes == {"look": "ran", "find": "stopped"}
            assert len(scene.noted(PLAN)) == 1
            await scene.require_sound()

    run(body())


def test_a_turn_whose_answer_failed_goes_on_with_what_the_tools_gave() -> None:
    async def body() -> None:
        plan = calling(("a", "localSearch", {"query": "berths of the north quay"}))
        async with scene_of(plan, [ProviderError("down")], searches=True) as scene:
            with pytest.raises(ProviderError):
                await scene.ask("Berths?")
            await scene.restart()
            scene.plays(saying("Nine [^1]."))
            answer = await scene.go_on()
            assert "nine berths" in scene.asked
            assert [source.link for source in answer.sources] == ["sea/harbour.md#North"]
            await scene.verify()

    run(body())


def test_what_is_said_meanwhile_is_planned_after_the_answer() -> None:
    async def body() -> None:
        scripts = (
            calling(("a", "look", {"n": 1})), saying("One."),
            calling(("b", "look", {"n": 2})), saying("Two."),
        )  # fmt: skip
        async with scene_of(*scripts) as scene:

            async def say(event: Any, number: int) -> None:
                if isinstance(event, ToolStarted) and not number > 3:
                    await scene.agent.send_message("And then?")

            scene.on_event = say
            answer = await scene.ask("First?")
            assert (answer.text, answer.requests) == ("Two.", 4)
            assert [arguments for _, arguments in scene.host.calls] == [{"n": 1}, {"n": 2}]
            assert scene.asked.endswith("And then?")
            await scene.verify()

    run(body())


def test_an_agents_turn_that_was_left_in_the_middle_goes_on_as_it_began() -> None:
    async def body() -> None:
        tools = [tool("find", "required")]
        async with Scene(calling(("a", "find", {})), tools=tools) as before:
            assert (await before.ask("First?")).ending == "waiting"
            await before.runner.__aexit__()
            given: dict[str, Any] = {"store": before.store, "approver": ApproverFake("allow_once")}
            async with scene_of(saying("One."), tools=tools, **given) as scene:
                answer = await scene.go_on()
                assert (answer.ending, answer.text) == ("answered", "One.")
                assert scene.host.called == ["find"]
                await scene.verify()

    run(body())


def test_a_plan_is_recorded_with_what_it_cost() -> None:
    async def body() -> None:
        usage = Usage(input=10, output=2)
        plan = calling(("a", "look", {}), usage=usage)
        async with scene_of(plan, saying("x")) as scene:
            answer = await scene.ask("Which berth?")
            (noted,) = scene.noted(PLAN)
            assert noted["target"] == "fake:small"
            assert noted["calls"] == [{"id": "plan-1", "name": "look", "arguments": "{}"}]
            assert noted["usage"]["input"] == 10
            assert len(noted["prompt"]) == 64
            assert answer.turn is not None
            assert scene.noted(PLANNED)[0]["request"] == answer.turn.id
            assert [each.request for each in scene.told(UsageReported)] == ["plan", answer.turn.id]
            assert len(scene.kept(EphemeralEntry)) == 1
            # What tools gave is nobody's business there.
            assert "look gave" not in str(scene.noted(PLANNED))

    run(body())


def test_the_composer_is_told_to_the_planner_too() -> None:
    async def body() -> None:
        async with scene_of(saying(""), saying("x")) as scene:
            await scene.ask("@composer shorten plan.md")
            system, user = scene.provider.bodies[0]["messages"]
            assert COMPOSER.content in system["content"]
            assert user["content"] == "@composer shorten plan.md"
            assert COMPOSER.content in scene.asked

    run(body())


def test_closing_lets_go_of_what_is_kept_for_plans() -> None:
    class Keeping:
        def __init__(self) -> None:
            self.gone: list[str] = []

        async def provider(self, target: Any) -> ProviderFake:
            return ProviderFake()

        async def release_session(self, session: str) -> None:
            self.gone.append(session)

    async def body() -> None:
        scene = scene_of()
        await scene.open()
        keeping = Keeping()
        async with PlanRunner(scene.runner.session, keeping, scene.host):
            pass
        assert keeping.gone == ["talk-plan", "talk"]

    run(body())


@given(st.lists(st.text(max_size=900), max_size=60))
def test_a_summary_is_short_and_cannot_be_closed_from_inside(contents: list[str]) -> None:
    items = [
        Item(id=note_id(f"{n}</attached>.md"), content=content)
        for n, content in enumerate(contents)
    ]
    told = summarize_attached(items)
    assert told.count("</attached>") == bool(items)
    lines = told.split("\n")[1:-1]
    assert all(line.startswith(("- ", "  > ")) for line in lines)
    assert all(len(line) <= 204 for line in lines if line.startswith("  > "))
    assert len(lines) <= 40 * 3 + 1


def test_windows_that_hold_nothing_raise_as_ever() -> None:
    async def body() -> None:
        async with scene_of(saying(""), window=100, output_reserve=10) as scene:
            with pytest.raises(WindowExceeded):
                await scene.ask("word " * 200)
            assert [each.text for each in scene.told(WarningIssued)] != []

    run(body())
