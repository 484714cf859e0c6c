"""Compaction as the original documents have it: behaviours 30 and 31, by number."""

from typing import Any

import pytest
from tests.engine.runners.scenes import Scene
from tests.fakes.providers import calling, saying
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, library_of, note, run, talk, words
from tests.fakes.summarizer import FakeSummarizer, compacting, compactions, require_paired
from tests.fakes.tools import tool

from lamina import attach
from lamina.core.compaction.compaction_plan import is_compaction_due, keep_limit, reserve_limit
from lamina.core.values.entry import RequestEntry
from lamina.core.values.settings import Settings
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn
from lamina.errors import RequestTooLong, WindowExceeded

SECTIONS = (
    "## Goal", "## Constraints & Preferences", "## Progress", "### Done", "### In Progress",
    "### Blocked", "## Key Decisions", "## Next Steps", "## Critical Context",
)  # fmt: skip
TOO_LONG = RequestTooLong("4,100 tokens are over 4,096", 4_100, 4_096)
LIMITS: dict[str, Any] = {"window": 2_000, "output_reserve": 100}


async def chat(session: Session, turns: int = 12, size: int = 30) -> Turn:
    for number in range(turns):
        turn = await talk(session, words(size, f"q{number}"), answer=words(size, f"r{number}"))
    return turn


# -- 30 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "reserve", "keep"),
    [(200_000, 16_384, 20_000), (32_768, 8_192, 10_922), (1_200, 300, 400)],
)
def test_30_by_default_it_reserves_a_quarter_and_keeps_a_third_with_a_ceiling(
    window: int, reserve: int, keep: int
) -> None:
    settings = Settings()
    assert reserve_limit(settings, window) == reserve
    assert keep_limit(settings, window) == keep
    assert not is_compaction_due(window - reserve, settings, window)
    assert is_compaction_due(window - reserve + 1, settings, window)


def test_30_a_library_that_is_too_large_drops_what_is_neither_pinned_nor_essential() -> None:
    async def body() -> None:
        world = World({"pin.md": words(60)})
        session = await compacting(FakeSummarizer(), world, window=3_000)
        await session.pin("pin.md")
        await talk(session, "Q", attach(note("must.md", words(60)), essential=True))
        await talk(session, "Q", attach(note("low.md", words(150)), priority=8))
        await talk(session, "Q", note("old.md", words(150)))
        await talk(session, "Q", note("new.md", words(150)))
        await talk(session, "Q", note("old.md", words(150)))
        await chat(session)
        await session.update_settings(window=600)
        done = await session.compact()
        gone = [report.what for report in done.reports if report.reason == "removed"]
        # By priority, then least recently named; and all of it is said.
        assert gone[:2] == ["note:low.md", "note:new.md"]
        assert {"pin.md", "must.md"} <= set(library_of(session))

    run(body())


def test_30_it_never_cuts_between_a_call_and_its_result_and_a_cut_turn_is_summarised() -> None:
    async def body() -> None:
        summarizer = FakeSummarizer()
        session = await compacting(summarizer)
        turn = await session.prepare("Find all berths.")
        for number in range(12):
            call = f"c{number}"
            waiting = await turn.commit(openai_reply(None, calls=[(call, "find")]))
            turn = await waiting.resume({call: words(90, f"found{number}")})
            require_paired(turn)
        assert summarizer.asked
        # The turn that is under way was cut, and its question is part of what is summarised.
        assert "Find all berths." in str(summarizer.requests[0])

    run(body())


def test_30_a_summary_has_its_sections_and_lists_files_that_were_read_and_modified() -> None:
    async def body() -> None:
        session = await compacting(None, window=3_000)
        for number, name in enumerate(("read_file", "write_file")):
            turn = await session.prepare(f"Please do step {number}.")
            call = (f"c{number}", name)
            reply = openai_reply(None, calls=[call])
            function = reply["choices"][0]["message"]["tool_calls"][0]["function"]
            function["arguments"] = f'{{"path": "src/{name}.py"}}'
            turn = await (await turn.commit(reply)).resume({f"c{number}": "done"})
            await turn.commit(openai_reply("Done."))
        await chat(session)
        await session.update_settings(compaction_keep=100)
        await session.compact()
        summary = session.envelope.cached[0].text
        places = [summary.index(section) for section in SECTIONS]
        assert places == sorted(places)
        read, _, modified = summary.partition("## Files modified")
        assert "src/read_file.py" in read
        assert "src/write_file.py" in modified

    run(body())


def test_30_a_second_compaction_carries_what_the_first_one_kept() -> None:
    async def body() -> None:
        summarizer = FakeSummarizer("## Goal\nThe harbour plan of 1912.", "## Goal\nStill that.")
        session = await compacting(summarizer)
        await chat(session, 30)
        assert summarizer.asked >= 2
        assert "The harbour plan of 1912." in str(summarizer.requests[1])

    run(body())


# -- 31 -------------------------------------------------------------------------------------------


async def fill(scene: Scene) -> None:
    for number in range(12):
        scene.plays(saying(words(60, f"a{number}")))
        await scene.ask(words(40, f"q{number}"))


def test_31_on_overflow_it_compacts_and_retries_once_per_user_message() -> None:
    async def body() -> None:
        async with Scene(summarizer=FakeSummarizer(), **LIMITS) as scene:
            await fill(scene)
            scene.plays([TOO_LONG], saying("Nine."))
            answer = await scene.ask("Which berth?")
            assert answer.text == "Nine."
            # The message that failed is on no path any more, and the question is there once.
            assert [text for _, text in scene.history].count("Which berth?") == 1
            scene.plays([TOO_LONG], [TOO_LONG])
            with pytest.raises(WindowExceeded):
                await scene.ask("And which ferry?")

    run(body())


def test_31_over_the_threshold_it_compacts_without_a_retry() -> None:
    async def body() -> None:
        session = await compacting(FakeSummarizer())
        reasons = []
        for number in range(14):
            turn = await session.prepare(words(30, f"q{number}"))
            reasons += compactions(turn)
            await turn.commit(openai_reply(words(30)))
        assert reasons == ["compaction (threshold)"]
        requests = [entry for entry in session.entries if isinstance(entry, RequestEntry)]
        assert len(requests) == 14
        assert not any(request.retry for request in requests)

    run(body())


def test_31_it_also_runs_between_tool_calls() -> None:
    async def body() -> None:
        summarizer = FakeSummarizer()
        async with Scene(summarizer=summarizer, tools=[tool("find")], **LIMITS) as scene:
            await fill(scene)
            scene.plays(calling(("c", "find", {})), [TOO_LONG], saying("Nine."))
            asked = summarizer.asked
            assert (await scene.ask("Find it.")).text == "Nine."
            assert summarizer.asked > asked
            assert scene.results == ["find gave {}"]

    run(body())
