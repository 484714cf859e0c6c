"""A session and its turns, in the hands of someone with a client of their own and no event loop."""

import threading
from pathlib import Path

import anyio
import pytest
from tests.fakes.book import SMALL
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import words
from tests.fakes.summarizer import SAID
from tests.sync.scenes import fakes

import lamina
import lamina.sync
from lamina.core.ports import SummaryJob
from lamina.errors import LaminaError, SessionBusy, TurnStateError


def test_a_turn_is_prepared_sent_and_committed() -> None:
    with lamina.sync.open_session("talk", **fakes(system="Be brief.")) as session:
        turn = session.prepare("Which berth?")
        assert turn.request()["messages"][-1] == {"role": "user", "content": "Which berth?"}
        answered = turn.commit(openai_reply("Nine."))
        assert (answered.answer, answered.pending_calls) == ("Nine.", ())
        assert [entry.id for entry in session.path] == [entry.id for entry in session.entries]


def test_the_bytes_are_those_of_the_async_door() -> None:
    async def ask() -> list[object]:
        async with await lamina.open_session("talk", **fakes(system="Be brief.")) as session:
            first = await session.prepare("Which berth?")
            await first.commit(openai_reply("Nine."))
            second = await session.prepare("And then?")
            return [first.request(), second.request()]

    with lamina.sync.open_session("talk", **fakes(system="Be brief.")) as session:
        first = session.prepare("Which berth?")
        first.commit(openai_reply("Nine."))
        requests = [first.request(), session.prepare("And then?").request()]
    assert requests == anyio.run(ask)


def test_a_turn_that_was_left_is_taken_up_again() -> None:
    given = fakes()
    with lamina.sync.open_session("talk", **given) as session:
        session.prepare("Which berth?")
    with lamina.sync.open_session("talk", **given) as session:
        assert session.interrupted
        turn = session.current_turn()
        assert turn is not None
        turn.commit(openai_reply("Nine."))
        assert session.current_turn() is None


def test_errors_are_those_of_the_async_door() -> None:
    with lamina.sync.open_session(**fakes()) as session:
        turn = session.prepare("Which berth?")
        turn.commit(openai_reply("Nine."))
        with pytest.raises(TurnStateError, match="not open"):
            turn.commit(openai_reply("Nine."))


def test_a_block_that_is_left_by_an_error_closes_its_session(tmp_path: Path) -> None:
    store = lamina.JsonlStore(tmp_path)
    with (
        pytest.raises(ZeroDivisionError),
        lamina.sync.open_session("talk", **fakes(store=store)),
    ):
        raise ZeroDivisionError
    with lamina.sync.open_session("talk", **fakes(store=store)) as session:
        assert session.id == "talk"


def test_an_open_session_is_busy_for_others(tmp_path: Path) -> None:
    store = lamina.JsonlStore(tmp_path, wait=0.0)
    with lamina.sync.open_session("talk", **fakes(store=store)), pytest.raises(SessionBusy):
        lamina.sync.open_session("talk", **fakes(store=store))


def test_a_fork_needs_no_await_either() -> None:
    with lamina.sync.open_session(**fakes()) as session:
        session.prepare("Which berth?").commit(openai_reply("Nine."))
        with session.fork("other") as fork:
            assert isinstance(fork, lamina.sync.Session)
            assert fork.prepare("And then?").prompt.tokens > 0


def test_settings_are_changed_and_read() -> None:
    with lamina.sync.open_session(**fakes()) as session:
        assert session.update_settings(promotion="eager").promotion == "eager"
        assert session.settings.promotion == "eager"
        with pytest.raises(LaminaError):
            session.update_settings(promotion="never")  # type: ignore[arg-type]


def test_a_plain_function_sums_history_up_in_a_thread_of_its_own() -> None:
    threads: list[str] = []

    def sum_up(job: SummaryJob) -> str:
        threads.append(threading.current_thread().name)
        return SAID

    settings = lamina.Settings(target=SMALL.name, window=1_200, output_reserve=100)
    with lamina.sync.open_session(**fakes(summarizer=sum_up, settings=settings)) as session:
        for number in range(4):
            turn = session.prepare(f"Question {number}: " + words(100))
            turn.commit(openai_reply(words(100)))
        outcome = session.compact()
        assert (outcome.changed, outcome.by, outcome.problem) == (True, "model", "")
        assert session.compactions
    assert threads
    assert set(threads) == {"AnyIO worker thread"}
