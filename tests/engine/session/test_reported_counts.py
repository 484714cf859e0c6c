"""What a provider says that a request took, against what was counted here.

Issue 16, B.9: an overflow that the provider swallowed is noticed; a server that misreports its
input never moves counts that are exact, and never lets a request over the window."""

import pytest
from tests.fakes.book import SMALL, FakeBook
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, run, talk, words
from tests.fakes.summarizer import (
    FakeSummarizer,
    compacting,
    compactions,
    require_sound,
    summaries_in,
)

from lamina.adapters.providers.model_book import load_book
from lamina.core.values.entry import ReplyEntry
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn

WINDOW = 1_200


class ExactBook(FakeBook):
    """Its counts are those of the provider."""

    def __init__(self) -> None:
        super().__init__()
        self.words.exact = True


async def answered(session: Session, text: str, *, input: int) -> Turn:
    turn = await session.prepare(text)
    return await turn.commit(openai_reply(words(30, "r"), input=input))


# -- an overflow that nobody mentions --------------------------------------------------------------


@pytest.mark.parametrize("book", [FakeBook, ExactBook])
def test_a_history_that_we_count_as_small_is_compacted_if_it_fills_the_window_of_its_provider(
    book: type[FakeBook],
) -> None:
    async def body() -> None:
        world = World()
        world.book = book()
        session = await compacting(FakeSummarizer(), world)
        for number in range(4):
            await talk(session, words(30, f"q{number}"), answer=words(30, f"r{number}"))
        await answered(session, words(30, "last"), input=WINDOW + 1)
        after = await session.prepare("And now?")
        assert after.prompt.tokens < WINDOW / 3
        assert compactions(after) == ["compaction (overflow)"]
        assert after.context.fit.calibration == 1.0 or book is FakeBook

    run(body())


@pytest.mark.parametrize("summarizer", [None, FakeSummarizer()])
def test_an_overflow_that_was_swallowed_is_told_and_history_is_compacted(
    summarizer: FakeSummarizer | None,
) -> None:
    async def body() -> None:
        world = World()
        session = await compacting(summarizer, world)
        for number in range(6):
            await talk(session, words(30, f"q{number}"), answer=words(30, f"r{number}"))
        turn = await answered(session, words(30, "last"), input=WINDOW + 1)
        (told,) = (warning for warning in turn.warnings if "answered it" in warning)
        assert "1,201 tokens of a window of 1,200" in told
        (reply,) = [e for e in session.entries if isinstance(e, ReplyEntry) and e.warnings]
        assert reply.warnings == (told,)
        after = await session.prepare("And now?")
        assert compactions(after) == ["compaction (overflow)"]
        assert len(summaries_in(after)) == 1
        assert after.prompt.tokens < turn.prompt.tokens
        await require_sound(world, session)

    run(body())


def test_it_is_noticed_between_the_calls_of_a_turn_and_after_a_restart() -> None:
    async def body() -> None:
        world = World()
        session = await compacting(None, world)
        for number in range(6):
            await talk(session, words(30, f"q{number}"), answer=words(30, f"r{number}"))
        turn = await session.prepare("Find it.")
        turn = await turn.commit(openai_reply(None, calls=[("c1", "find")], input=WINDOW + 1))
        session = await compacting(None, world, session=session.id)
        again = await session.current_turn()
        assert again is not None
        step = await again.resume({"c1": "found"})
        assert compactions(step) == ["compaction (overflow)"]
        assert "Find it." in str(step.request())

    run(body())


def test_who_says_so_of_the_smaller_request_too_is_not_believed_twice() -> None:
    async def body() -> None:
        session = await compacting(None, World())
        for number in range(6):
            await talk(session, words(30, f"q{number}"), answer=words(30, f"r{number}"))
        boundaries = []
        for number in range(8):
            turn = await answered(session, words(30, f"s{number}"), input=WINDOW + 1)
            boundaries.append(compactions(turn))
        # Each is followed by a request of which the same is said, and nothing is done about it.
        assert boundaries[:3] == [[], ["compaction (overflow)"], []]
        assert sum(map(len, boundaries)) <= 4

    run(body())


def test_with_compaction_off_an_overflow_is_told_and_nothing_is_compacted() -> None:
    async def body() -> None:
        session = await compacting(None, World(), compaction="off")
        for number in range(6):
            await talk(session, words(30, f"q{number}"), answer=words(30, f"r{number}"))
        turn = await answered(session, "Q", input=WINDOW + 1)
        assert any("of a window of 1,200" in warning for warning in turn.warnings)
        assert not compactions(await session.prepare("And now?"))

    run(body())


# -- who misreports ------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.9, 1.5, 2.9, 40.0])
def test_a_count_that_is_exact_is_moved_by_nobody(share: float) -> None:
    async def body() -> None:
        world = World()
        world.book = ExactBook()
        session = await world.open(window=3_000, compaction="off")
        for number in range(8):
            turn = await session.prepare(words(100, f"q{number}"))
            assert turn.context.fit.calibration == 1.0
            assert turn.entry.calibration == 1.0
            reported = round(turn.prompt.tokens * share)
            await turn.commit(openai_reply(words(50), input=reported))

    run(body())


@pytest.mark.parametrize("share", [0.001, 0.3, 0.5, 0.55, 0.8])
def test_who_reports_too_little_is_not_sent_more_than_fits(share: float) -> None:
    """40,899 tokens went into 32,000, and 5,752 into 3,000."""

    async def body() -> None:
        session = await World().open(window=3_000, output_reserve=500)
        for number in range(40):
            turn = await session.prepare(words(150, f"q{number}"))
            assert turn.prompt.tokens <= 2_500
            reported = max(1, round(turn.prompt.tokens * share))
            await turn.commit(openai_reply(words(150, f"r{number}"), input=reported))

    run(body())


def test_too_little_does_not_undo_what_was_learnt_of_a_larger_count() -> None:
    async def body() -> None:
        session = await World().open()
        for _ in range(2):
            turn = await session.prepare(words(200))
            await turn.commit(openai_reply("A", input=round(turn.prompt.tokens * 1.5)))
        for _ in range(3):
            turn = await session.prepare(words(200))
            assert turn.context.fit.calibration == pytest.approx(1.5, abs=0.01)
            await turn.commit(openai_reply("A", input=turn.prompt.tokens // 10))

    run(body())


def test_a_figure_beyond_belief_is_told_once() -> None:
    async def body() -> None:
        session = await World().open()
        turns = [await answered(session, words(2_000), input=20) for _ in range(2)]
        (told,) = turns[0].warnings
        assert "reports 20 tokens where 2,0" in told
        assert turns[1].warnings == ()
        # A server may add some to every request, which is much to a small one.
        other = await World().open()
        assert (await answered(other, "Hi", input=400)).warnings == ()

    run(body())


def test_for_which_targets_counts_are_exact() -> None:
    """Those of OpenAI, whose encodings are known; elsewhere they are estimates."""
    book = load_book()
    exact = {name: book.counter(book.find(name)).exact for name in (
        "openai:gpt-4o", "openai:gpt-5", "anthropic:claude-sonnet-4-5", "gemini:gemini-2.5-pro",
        "compatible:some-model",
    )}  # fmt: skip
    assert [name for name, known in exact.items() if known] == ["openai:gpt-4o", "openai:gpt-5"]
    assert SMALL.exact_tokens is False
