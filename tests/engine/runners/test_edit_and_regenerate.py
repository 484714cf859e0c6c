"""Every runner asks a question otherwise and an answer again, and runs nothing twice for it."""

import pytest
from tests.engine.runners.scenes import Scene
from tests.engine.sources.note_scenes import PlanScene, QaScene
from tests.fakes.book import OTHER
from tests.fakes.providers import Script, calling, saying
from tests.fakes.sessions import run
from tests.fakes.tools import PATH, tool

from lamina.core.values.entry import MessageEntry
from lamina.core.values.event import Event, RequestStarted
from lamina.engine.record.branch import page_at
from lamina.engine.runners.composer import COMPOSER
from lamina.engine.runners.runner import Answer
from lamina.engine.session.session import core_of
from lamina.errors import LaminaError, ProviderError, UsageError


def question(scene: Scene, text: str) -> str:
    return [
        entry.id
        for entry in scene.runner.session.entries
        if isinstance(entry, MessageEntry) and entry.message.text == text
    ][-1]


async def edit(scene: Scene, before: str, text: str) -> Answer:
    return await scene.runner.edit(question(scene, before), text)


def test_a_chat_asks_a_question_otherwise_and_an_answer_again() -> None:
    async def body() -> None:
        scripts = saying("A1"), saying("A2"), saying("A1b"), saying("A1c")
        async with Scene(*scripts, chat=True) as scene:
            scene.workspace.notes["a.md"] = "AAA"
            await scene.ask("Q1", attach=["a.md"])
            await scene.ask("Q2")
            assert (await edit(scene, "Q1", "Q1b")).text == "A1b"
            assert scene.history == [("user", "Q1b"), ("assistant", "A1b")]
            assert "AAA" in str(scene.provider.bodies[-1]["messages"][-1])
            assert (await scene.runner.regenerate()).text == "A1c"
            assert scene.provider.bodies[-1] == scene.provider.bodies[-2]
            assert scene.history == [("user", "Q1b"), ("assistant", "A1c")]
            await scene.require_sound()

    run(body())


def test_an_agents_last_answer_is_asked_for_without_running_its_tools_again() -> None:
    async def body() -> None:
        script = calling(("a", "find", {"path": "x"})), saying("Nine."), saying("Nine berths.")
        async with Scene(*script, tools=[tool("find", parameters=PATH)]) as scene:
            await scene.ask("Which berth?")
            answer = await scene.runner.regenerate()
            assert (answer.text, answer.requests) == ("Nine berths.", 1)
            assert scene.host.called == ["find"]
            assert scene.provider.bodies[2] == scene.provider.bodies[1]
            await scene.require_sound()

    run(body())


def test_an_answer_in_the_middle_may_call_other_tools() -> None:
    async def body() -> None:
        script = (
            calling(("a", "find", {"path": "x"})), saying("Nine."),
            calling(("b", "look", {"path": "y"})), saying("Ten."),
        )  # fmt: skip
        tools = [tool("find", parameters=PATH), tool("look", parameters=PATH)]
        async with Scene(*script, tools=tools) as scene:
            await scene.ask("Which berth?")
            first = next(entry for entry in scene.kept(MessageEntry) if entry.message.calls)
            await scene.restart()
            answer = await scene.runner.regenerate(first.id)
            assert answer.text == "Ten."
            assert scene.host.called == ["find", "look"]
            assert scene.provider.bodies[2] == scene.provider.bodies[0]
            await scene.require_sound()

    run(body())


def test_an_agents_question_is_asked_otherwise_while_calls_wait() -> None:
    async def body() -> None:
        script = calling(("a", "find", {"path": "x"})), saying("Never mind.")
        guarded = tool("find", parameters=PATH, permission="required")
        async with Scene(*script, tools=[guarded]) as scene:
            answer = await scene.ask("Q1")
            assert answer.ending == "waiting"
            left_at = scene.runner.session.state.leaf
            assert (await edit(scene, "Q1", "Q1b")).text == "Never mind."
            assert scene.host.called == []
            await scene.runner.session.navigate(left_at)
            assert [call.id for call in scene.runner.session.pending_calls] == ["a"]

    run(body())


def test_an_answer_from_notes_rests_on_the_same_passages() -> None:
    async def body() -> None:
        scripts = saying("Nine [^1]."), saying("It has nine [^1]."), saying("Four [^1].")
        async with QaScene(*scripts) as scene:
            first = await scene.ask("How many berths does the north quay have?")
            scene.source.notes.clear()
            again = await scene.runner.regenerate()
            assert again.text == "It has nine [^1]."
            assert again.sources == first.sources
            assert scene.provider.bodies[1] == scene.provider.bodies[0]
            await scene.restart()
            scene.source.notes["land/trains.md"] = "Trains leave from platform four.\n"
            other = await edit(
                scene, "How many berths does the north quay have?", "Where do trains leave?"
            )
            assert [source.path for source in other.sources] == ["land/trains.md"]
            assert "berths" not in scene.asked
            await scene.verify()

    run(body())


def test_a_planned_answer_is_asked_for_with_what_the_tools_gave() -> None:
    async def body() -> None:
        plan = calling(("a", "find", {"path": "x"}))
        script = plan, saying("Nine."), saying("Nine!"), plan, saying("Ten.")
        tools = [tool("find", parameters=PATH)]
        async with PlanScene(*script, tools=tools, searches=False) as scene:
            await scene.ask("Which berth?")
            again = await scene.runner.regenerate()
            assert (again.text, again.requests) == ("Nine!", 1)
            assert scene.host.called == ["find"]
            assert scene.provider.bodies[2] == scene.provider.bodies[1]
            other = await edit(scene, "Which berth?", "Which other berth?")
            assert other.text == "Ten."
            assert scene.host.called == ["find", "find"]
            assert scene.history == [("user", "Which other berth?"), ("assistant", "Ten.")]
            await scene.verify()

    run(body())


def test_another_model_answers_if_it_is_named() -> None:
    async def body() -> None:
        async with Scene(saying("A1"), saying("A1b"), saying("A1c"), chat=True) as scene:
            scene.book.put(OTHER)
            await scene.ask("Q1")
            await scene.runner.regenerate(target=OTHER.name)
            assert scene.context.target == OTHER.name
            await scene.runner.edit(question(scene, "Q1"), "Q1c", target=OTHER.name)
            assert scene.context.target == OTHER.name

    run(body())


def test_instructions_that_the_old_question_asked_for_are_not_taken_over() -> None:
    async def body() -> None:
        async with Scene(saying("A1"), saying("A1b"), chat=True) as scene:
            await scene.ask("@composer change it")
            assert COMPOSER.content in scene.provider.bodies[-1]["messages"][-1]["content"]
            await edit(scene, "@composer change it", "Tell me of it")
            assert scene.provider.bodies[-1]["messages"][-1]["content"] == "Tell me of it"

    run(body())


def test_what_cannot_be_asked_leaves_the_session_where_it_was() -> None:
    async def body() -> None:
        async with Scene(saying("A1"), [ProviderError("down")], saying("A1c"), chat=True) as scene:
            await scene.ask("Q1")
            before = scene.history
            for wrong in ("nothing", scene.runner.session.state.leaf):
                with pytest.raises(LaminaError):
                    await scene.runner.edit(wrong, "Q")
            with pytest.raises(UsageError):
                await scene.runner.edit(question(scene, "Q1"), "   ")
            assert scene.history == before
            # What was sent and failed is left open on its own branch.
            with pytest.raises(ProviderError):
                await scene.runner.regenerate()
            assert (await scene.go_on()).text == "A1c"
            await scene.require_sound()

    run(body())


# -- without an answer ---------------------------------------------------------------------------

TWICE = [("user", "Q1"), ("assistant", "A1"), ("user", "Q2"), ("assistant", "A2")]
REFUSED = ProviderError("400: no")


def last_asked(scene: Scene) -> list[tuple[str, str]]:
    """The messages of the last request, without the system prompt."""
    messages = scene.provider.bodies[-1]["messages"]
    return [(m["role"], m["content"]) for m in messages if m["role"] != "system"]


def test_a_question_after_an_answer_that_could_not_be_had_again_comes_behind_the_old_answer() -> (
    None
):
    async def body() -> None:
        scripts = saying("A1"), saying("A2"), [REFUSED], saying("A3")
        async with Scene(*scripts, chat=True) as scene:
            await scene.ask("Q1")
            await scene.ask("Q2")
            with pytest.raises(ProviderError):
                await scene.runner.regenerate()
            answer = await scene.ask("Q3")
            assert last_asked(scene) == [*TWICE, ("user", "Q3")]
            assert scene.history == [*TWICE, ("user", "Q3"), ("assistant", "A3")]
            assert answer.turn is not None
            assert answer.turn.context.agreement.broke is None
            await scene.require_sound()

    run(body())


def test_a_question_after_an_edit_without_an_answer_comes_behind_the_old_answer() -> None:
    async def body() -> None:
        scripts = saying("A1"), saying("A2"), [REFUSED], saying("A3")
        async with Scene(*scripts, chat=True) as scene:
            await scene.ask("Q1")
            await scene.ask("Q2")
            with pytest.raises(ProviderError):
                await edit(scene, "Q1", "Q1b")
            await scene.restart()
            await scene.ask("Q3")
            assert scene.history == [*TWICE, ("user", "Q3"), ("assistant", "A3")]
            await scene.require_sound()

    run(body())


def test_an_answer_stopped_before_its_first_word_leaves_the_old_one_and_can_be_resumed() -> None:
    async def body() -> None:
        stopped: Script = []
        scripts = saying("A1"), saying("A2"), stopped, saying("A2b"), stopped, saying("A3")
        async with Scene(*scripts, chat=True) as scene:

            def stop(event: Event) -> None:
                if isinstance(event, RequestStarted):
                    scene.runner.abort()

            await scene.ask("Q1")
            await scene.ask("Q2")
            answer = await scene.runner.regenerate(on_event=stop)
            assert (answer.ending, answer.text) == ("aborted", "")
            assert (await scene.go_on()).text == "A2b"
            await scene.runner.regenerate(on_event=stop)
            await scene.runner.session.update_settings(temperature=0.5)
            await scene.ask("Q3")
            kept = [("user", "Q1"), ("assistant", "A1"), ("user", "Q2"), ("assistant", "A2b")]
            assert last_asked(scene) == [*kept, ("user", "Q3")]
            assert scene.provider.bodies[-1]["temperature"] == 0.5
            await scene.require_sound()

    run(body())


def test_several_failures_in_a_row_leave_the_session_where_it_was() -> None:
    async def body() -> None:
        scripts = saying("A1"), saying("A2"), [REFUSED], [REFUSED], [REFUSED], saying("A3")
        async with Scene(*scripts, chat=True) as scene:
            await scene.ask("Q1")
            await scene.ask("Q2")
            for _ in range(2):
                with pytest.raises(ProviderError):
                    await scene.runner.regenerate()
            with pytest.raises(ProviderError):
                await edit(scene, "Q2", "Q2b")
            await scene.ask("Q3")
            assert scene.history == [*TWICE, ("user", "Q3"), ("assistant", "A3")]
            await scene.require_sound()

    run(body())


def test_a_process_that_ends_on_the_way_to_an_edited_question_leaves_the_session_where_it_was() -> (
    None
):
    async def body() -> None:
        async with Scene(saying("A1"), saying("A2"), saying("A3"), chat=True) as scene:
            await scene.ask("Q1")
            await scene.ask("Q2")
            core = core_of(scene.runner.session)
            page = page_at(
                core.record, core.layouts, core.record.path(core.record.state.leaf)[0].id
            )
            await core.record.keep(page.written, page.state)
            await scene.restart()
            await scene.runner.session.add_message("By the way.")
            await scene.ask("Q3")
            assert last_asked(scene) == [*TWICE, ("user", "By the way."), ("user", "Q3")]
            await scene.require_sound()

    run(body())


def test_whoever_goes_elsewhere_after_a_failure_goes_on_there() -> None:
    async def body() -> None:
        scripts = saying("A1"), saying("A2"), [REFUSED], saying("A2b")
        async with Scene(*scripts, chat=True) as scene:
            await scene.ask("Q1")
            await scene.ask("Q2")
            with pytest.raises(ProviderError):
                await scene.runner.regenerate()
            await scene.runner.session.navigate(question(scene, "Q2"))
            await scene.ask("Q2b")
            assert scene.history == [*TWICE[:2], ("user", "Q2b"), ("assistant", "A2b")]

    run(body())


def test_calls_that_wait_are_dropped_by_a_new_question_with_a_warning() -> None:
    async def body() -> None:
        script = calling(("a", "find", {"path": "x"})), saying("Fine."), saying("Yes.")
        guarded = tool("find", parameters=PATH, permission="required")
        async with Scene(*script, tools=[guarded]) as scene:
            assert (await scene.ask("Q1")).ending == "waiting"
            answer = await scene.ask("Q2")
            warning = "these calls were waiting, and a new question dropped them: find"
            assert warning in answer.warnings
            assert warning in scene.context.warnings
            assert warning not in (await scene.ask("Q3")).warnings

    run(body())


def test_calls_that_wait_are_found_again_after_a_failure_in_their_place() -> None:
    async def body() -> None:
        script = calling(("a", "find", {"path": "x"})), [REFUSED], saying("Fine.")
        guarded = tool("find", parameters=PATH, permission="required")
        async with Scene(*script, tools=[guarded]) as scene:
            await scene.ask("Q1")
            with pytest.raises(ProviderError):
                await scene.runner.regenerate()
            answer = await scene.ask("Q2")
            assert any(warning.endswith("dropped them: find") for warning in answer.warnings)
            assert [role for role, _ in scene.history] == [
                "user", "assistant", "tool", "user", "assistant",
            ]  # fmt: skip
            await scene.require_sound()

    run(body())
