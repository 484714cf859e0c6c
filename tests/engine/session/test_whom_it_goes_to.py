"""Issue 16, A.2: what a person names for a question is who is asked, always."""

from typing import Any

import pytest
from tests.fakes.book import OTHER, SMALL, THINKER
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, all_text, run, talk, words
from tests.fakes.summarizer import FakeSummarizer

import lamina
from lamina.core.values.entry import ModelEntry, RequestEntry
from lamina.core.values.settings import Settings
from lamina.engine.session.session import Session
from lamina.errors import UnknownTarget


async def reopen(world: World, **given: Any) -> Session:
    return await lamina.open_session(
        "s", store=world.store, book=world.book, clock=world.clock, workspace=world.workspace,
        **given,
    )  # fmt: skip


NAMED: list[dict[str, Any]] = [
    {"target": SMALL.name},
    {"settings": Settings(target=SMALL.name)},
    {"target": SMALL.name, "settings": Settings(target=OTHER.name)},
]


@pytest.mark.parametrize("given", NAMED, ids=["argument", "settings", "both"])
@pytest.mark.parametrize("how", ["change", "import", "opening"])
def test_a_target_that_is_named_again_is_who_is_asked(given: dict[str, Any], how: str) -> None:
    """The header's own target, too, however the session came to talk to another one."""

    async def body() -> None:
        world = World()
        session = await world.open("s")
        await talk(session, "Q1")
        match how:
            case "change":
                await session.update_settings(target=OTHER.name)
            case "import":
                await session._record.write(ModelEntry, target=OTHER.name)
            case _:
                await reopen(world, target=OTHER.name)
        again = await reopen(world, **given)
        assert again.settings.target == SMALL.name
        turn = await again.prepare("Q2")
        assert turn.context.target == SMALL.name
        await turn.commit(openai_reply("A"))
        # It holds from then on.
        assert (await reopen(world)).settings.target == SMALL.name

    run(body())


def test_naming_whom_the_session_talks_to_writes_nothing() -> None:
    async def body() -> None:
        world = World()
        session = await world.open("s")
        await session.update_settings(target=OTHER.name)
        again = await reopen(world, target=OTHER.name)
        assert again.entries == session.entries

    run(body())


def test_a_default_for_new_sessions_moves_none_that_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAMINA_TARGET", OTHER.name)

    async def body() -> None:
        world = World()
        await world.open("s")
        assert (await reopen(world)).settings.target == SMALL.name
        assert (await reopen(world, settings=Settings(window=900))).settings.target == SMALL.name

    run(body())


def test_an_unknown_target_is_refused_and_changes_nothing() -> None:
    async def body() -> None:
        world = World()
        session = await world.open("s")
        for given in ({"target": "no:such"}, {"settings": Settings(target="no:such", window=9)}):
            with pytest.raises(UnknownTarget):
                await reopen(world, **given)
        with pytest.raises(UnknownTarget):
            await session.prepare("Q", target="no:such")
        assert (await reopen(world)).entries == session.entries

    run(body())


# -- a turn that was left in the middle ------------------------------------------------------------


@pytest.mark.parametrize("how", ["opening", "same as the session", "change", "argument"])
def test_an_open_question_goes_to_whoever_was_named_since(how: str) -> None:
    async def body() -> None:
        world = World({"a.md": "AAA"})
        session = await world.open("s", system="S")
        await talk(session, "Q1")
        # Once, for this question only.
        first = OTHER.name if how == "same as the session" else SMALL.name
        named = SMALL.name if how == "same as the session" else THINKER.name
        await session.prepare("Q2", attach=["a.md"], target=first)
        target: str | None = None
        if how == "change":
            await session.update_settings(target=named)
        elif how == "argument":
            target = named
        else:
            session = await reopen(world, target=named)
        turn = await session.current_turn(target=target)
        assert turn is not None
        assert turn.context.target == turn.target == named
        assert [item.label for item in turn.context.items] == ["a.md"]
        assert all_text(turn).count("Q2") == 1
        # Made anew once, and not again.
        again = await session.current_turn()
        assert again is not None
        assert again.id == turn.id

    run(body())


def test_an_open_question_stays_with_whom_it_was_for_if_nobody_else_is_named() -> None:
    async def body() -> None:
        world = World()
        session = await world.open("s")
        first = await session.prepare("Q", target=OTHER.name)
        await session.update_settings(window=5_000)
        again = await reopen(world, settings=Settings(window=6_000))
        turn = await again.current_turn()
        assert turn is not None
        assert (turn.id, turn.context.target) == (first.id, OTHER.name)

    run(body())


def test_results_go_to_whoever_was_named_since_the_call() -> None:
    async def body() -> None:
        world = World()
        session = await world.open("s")
        turn = await session.prepare("Q")
        await turn.commit(openai_reply(None, calls=[("c1", "find")]))
        again = await reopen(world, target=OTHER.name)
        left = await again.current_turn()
        assert left is not None
        turn = await left.resume({"c1": "found"})
        assert turn.context.target == OTHER.name
        # And so does a request with results that was never answered.
        third = await reopen(world, target=SMALL.name)
        left = await third.current_turn()
        assert left is not None
        assert left.context.target == SMALL.name
        assert "found" in all_text(left)
        await left.commit(openai_reply("A"))
        assert [e.target for e in third.path if isinstance(e, RequestEntry)] == [SMALL.name] * 2

    run(body())


# -- summaries -------------------------------------------------------------------------------------


def test_a_summary_is_asked_of_whoever_is_named_for_the_question() -> None:
    """Also the one after the answer."""

    async def body() -> None:
        world = World()
        summarizer = FakeSummarizer()
        session = await world.open("s", window=600, output_reserve=50, summarizer=summarizer)
        for number in range(8):
            turn = await session.prepare(f"Q{number} {words(60)}", target=OTHER.name)
            await turn.commit(openai_reply(words(60)))
        assert summarizer.jobs
        assert {job.target.name for job in summarizer.jobs} == {OTHER.name}

    run(body())
