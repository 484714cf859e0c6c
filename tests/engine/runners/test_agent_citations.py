"""An agent that searches: all searches of a turn share one numbering; the answer has its own."""

import json

from tests.engine.sources.note_scenes import NOTES, AgentNoteScene
from tests.fakes.providers import calling, saying
from tests.fakes.sessions import run
from tests.fakes.tools import tool

from lamina.adapters.formats.markdown.chat_exporter import export_chat
from lamina.apps.cli.footnotes import hold_until_final
from lamina.core.values.event import BlockDelta, Event, ToolFinished
from lamina.engine.runners.citations import SEARCHED

BERTHS = ("a", "localSearch", {"query": "berths north quay"})
FERRY = ("b", "localSearch", {"query": "When does the ferry Aurora sail at noon?"})
TRAINS = ("c", "localSearch", {"query": "trains platform"})
# One note has two headings of one name.
TWINS = NOTES | {"twins.md": "# Linux\n\n## Setup\n\nUse apt.\n\n# Mac\n\n## Setup\n\nUse brew.\n"}


def numbers_in(text: str) -> list[str]:
    """The catalogue of a block, a line each."""
    return [line for line in text.split("\n") if line.startswith("[^")]


def test_what_a_person_should_know_of_a_search_is_not_said_to_the_model() -> None:
    async def body() -> None:
        notes = {"sea/harbour.md": "The north quay has nine berths. Key: ghp_" + "aB3dE5fG7h" * 4}
        async with AgentNoteScene(calling(BERTHS), saying("Nine [^1]."), notes=notes) as scene:
            answer = await scene.ask("How many berths?")
            (berths,) = scene.results
            assert "nine berths" in berths
            assert answer.warnings == (
                "sea/harbour.md (lines 1-1): 1 secret (GitHub token), replaced before it is sent",
            )
            assert "replaced before it is sent" not in berths

    run(body())


def test_the_searches_of_a_turn_share_one_numbering() -> None:
    async def body() -> None:
        script = (calling(BERTHS), calling(FERRY, TRAINS), saying("Noon [^3]; nine [^1][^3]."))
        async with AgentNoteScene(*script) as scene:
            answer = await scene.ask("How many berths, and when?")
            berths, ferry, trains = scene.results
            assert numbers_in(berths) == [
                "[^1]: harbour > Berths > North (sea/harbour.md#North)",
                "[^2]: harbour > Berths > South (sea/harbour.md#South)",
            ]
            assert numbers_in(ferry)[0] == "[^3]: ferry log (sea/ferry log.md)"
            assert numbers_in(trains) == ["[^4]: trains (land/trains.md)"]
            assert answer.text == "Noon [^1]; nine [^2][^1]."
            assert [(each.number, each.link) for each in answer.sources] == [
                (1, "sea/ferry log.md"),
                (2, "sea/harbour.md#North"),
            ]
            assert answer.search_result is not None
            assert {hit.path for hit in answer.search_result.hits} == set(NOTES)
            # The question follows the documents, and the journal has the person's numbers.
            assert berths.endswith("[User query]:\n\nHow many berths, and when?")
            assert scene.history[-1] == ("assistant", answer.text)
            await scene.require_sound()

    run(body())


def test_a_source_that_is_found_again_keeps_its_number() -> None:
    async def body() -> None:
        again = ("d", "localSearch", {"query": "which quay has nine berths"})
        async with AgentNoteScene(calling(FERRY), calling(again), saying("Nine [^2].")) as scene:
            answer = await scene.ask("How many?")
            numbers = {line.split(": ")[0]: line for text in scene.results
                       for line in numbers_in(text)}  # fmt: skip
            assert len(numbers) == len(set(numbers.values()))
            assert [each.number for each in answer.sources] == [1]

    run(body())


def test_two_headings_of_one_name_that_two_searches_found_are_two_sources() -> None:
    async def body() -> None:
        script = (
            calling(("a", "localSearch", {"query": "apt"})),
            calling(("b", "localSearch", {"query": "brew"})),
            saying("apt [^1], brew [^2]."),
        )
        async with AgentNoteScene(*script, notes=TWINS) as scene:
            answer = await scene.ask("How is it set up?")
            links = [(each.number, each.link) for each in answer.sources]
            assert links == [(1, "twins.md#Setup"), (2, "twins.md#Mac#Setup")]

    run(body())


def test_sources_are_appended_only_if_the_model_cites_none() -> None:
    async def body() -> None:
        async with AgentNoteScene(calling(FERRY), saying("At noon.")) as scene:
            answer = await scene.ask("When?")
            assert answer.text.startswith("At noon.\n\n#### Sources\n\n[^1]: [[sea/ferry log.md]]")
            assert answer.sources[0].link == "sea/ferry log.md"
        async with AgentNoteScene(saying("Hello [^1].")) as scene:
            answer = await scene.ask("Hello?")
            assert (answer.text, answer.sources) == ("Hello [^1].", ())

    run(body())


def test_a_number_that_no_source_has_is_reported() -> None:
    async def body() -> None:
        async with AgentNoteScene(calling(TRAINS), saying("Four [^1][^9].")) as scene:
            answer = await scene.ask("Where?")
            assert "the answer cites [^9], and no source has that number" in answer.warnings

    run(body())


def test_a_turn_that_waited_for_approval_in_another_process_keeps_its_numbers() -> None:
    async def body() -> None:
        script = (
            calling(BERTHS),
            calling(("x", "ask", {}), FERRY),
            saying("Noon [^3], nine [^1]."),
        )
        async with AgentNoteScene(*script, tools=[tool("ask", "required")]) as scene:
            assert (await scene.ask("How many, and when?")).ending == "waiting"
            await scene.restart()
            await scene.agent.decide("x", "allow_once")
            answer = await scene.go_on()
            assert answer.text == "Noon [^1], nine [^2]."
            assert [each.link for each in answer.sources] == [
                "sea/ferry log.md",
                "sea/harbour.md#North",
            ]
            await scene.require_sound()

    run(body())


def test_a_search_after_a_restart_goes_on_with_the_numbers() -> None:
    async def body() -> None:
        script = (calling(BERTHS, ("x", "ask", {})), calling(TRAINS), saying("Four [^3]."))
        async with AgentNoteScene(*script, tools=[tool("ask", "required")]) as scene:
            await scene.ask("Where?")
            await scene.restart()
            await scene.agent.decide("x", "deny")
            answer = await scene.go_on()
            assert numbers_in(scene.results[-1]) == ["[^3]: trains (land/trains.md)"]
            assert [(each.number, each.link) for each in answer.sources] == [(1, "land/trains.md")]

    run(body())


def test_the_next_question_begins_with_one_again() -> None:
    async def body() -> None:
        script = (calling(BERTHS), saying("Nine [^1]."), calling(TRAINS), saying("Four [^1]."))
        async with AgentNoteScene(*script) as scene:
            await scene.ask("How many?")
            answer = await scene.ask("Where?")
            assert [(each.number, each.link) for each in answer.sources] == [(1, "land/trains.md")]

    run(body())


def test_a_message_that_steers_keeps_the_numbers_of_what_was_found() -> None:
    async def body() -> None:
        script = (calling(BERTHS), saying("Nine [^1]."))
        async with AgentNoteScene(*script) as scene:

            async def steer(event: Event, number: int) -> None:
                if isinstance(event, ToolFinished):
                    await scene.agent.send_message("Only of the north quay.")

            scene.on_event = steer
            answer = await scene.ask("How many?")
            assert [(each.number, each.link) for each in answer.sources] == [
                (1, "sea/harbour.md#North")
            ]
            chat = export_chat(scene.runner.session.path).text
            assert "Nine [^1].\n\n[^1]: [[sea/harbour.md#North]]" in chat

    run(body())


def test_what_is_shown_while_it_comes_is_what_is_given_in_the_end() -> None:
    async def body() -> None:
        script = (
            calling(BERTHS, text="Let me see."), calling(FERRY, text="And the ferry."),
            saying("Noon [^3]; nine [^1]."),
        )  # fmt: skip
        async with AgentNoteScene(*script) as scene:
            heard: list[Event] = []
            answer = await scene.runner.run(
                "How many?", on_event=hold_until_final(heard.append, scene.runner)
            )
            words = "".join(each.text for each in heard if isinstance(each, BlockDelta))
            berths, ferry = (json.dumps(call[2], separators=(",", ":")) for call in (BERTHS, FERRY))
            assert words == f"Let me see.{berths}And the ferry.{ferry}{answer.text}"

    run(body())


def test_every_search_is_written_down_with_what_it_was_for() -> None:
    async def body() -> None:
        async with AgentNoteScene(calling(BERTHS), calling(BERTHS), saying("Nine [^1].")) as scene:
            await scene.ask("How many?")
            first, second = scene.noted(SEARCHED)
            assert first["query"] == "berths north quay"
            assert [each["number"] for each in first["sources"]] == [1, 2]
            assert second["sources"] == []
            assert [each["source"] for each in second["hits"]] == [1, 2]

    run(body())


def test_an_exported_chat_has_the_answer_as_the_person_got_it() -> None:
    async def body() -> None:
        script = (calling(BERTHS, text="See."), calling(FERRY, text="More."), saying("Noon [^3]."))
        async with AgentNoteScene(*script) as scene:
            await scene.ask("When?")
            chat = export_chat(scene.runner.session.path).text
            assert "Noon [^1].\n\n[^1]: [[sea/ferry log.md]]" in chat
            assert "#### Sources" not in chat

    run(body())
