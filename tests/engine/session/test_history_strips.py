"""Limits on history: a summarizer says what goes, and no strip forgets what an earlier one held,
as long as there is room for it: an extracted summary is never longer than `summary_tokens`."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.sessions import (
    World,
    all_text,
    boundaries,
    messages_of,
    reported,
    run,
    talk,
    words,
)
from tests.fakes.summarizer import (
    FakeSummarizer,
    compactions,
    require_paired,
    require_sound,
    summaries_in,
)

from lamina.core.audit.verification import verify
from lamina.core.ports import SummaryJob
from lamina.core.values.entry import TransformEntry
from lamina.core.values.patch import CompactionApply
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn

STRIP: dict[str, Any] = {"history": "strip", "strip_after_turns": 4, "strip_turns": 2}
# Enough for all the lines there are.
ROOMY: dict[str, Any] = {"summary_tokens": 4_000}
FAILURE = OSError("down")


def carry(job: SummaryJob) -> str:
    """What a good summarizer says: the facts of the earlier summary and of the messages."""
    lines = [job.previous, *(message.text for message in job.messages)]
    facts = [word for line in lines for word in line.split() if word.startswith("fact-")]
    return " ".join(["## Critical Context", *dict.fromkeys(facts)])


async def chat(session: Session, turns: int, size: int = 30) -> list[Turn]:
    return [
        await talk(session, f"fact-{number} {words(size)}", answer=f"Noted. {words(size)}")
        for number in range(turns)
    ]


def facts_in(turn: Turn) -> set[str]:
    return {word for word in all_text(turn).split() if word.startswith("fact-")}


def test_a_strip_asks_the_summarizer_and_sends_what_it_said() -> None:
    async def body() -> None:
        world, summarizer = World(), FakeSummarizer("## Goal\nThe harbour.")
        session = await world.open(**STRIP, summarizer=summarizer)
        turns = await chat(session, 6)
        assert summarizer.asked == 1
        stripped = turns[5]
        assert boundaries(stripped) == ["history"]
        assert [omission for _, omission in reported(stripped)] == ["history"]
        (summary,) = summaries_in(stripped)
        assert "## Goal\nThe harbour." in summary
        assert "Asked: fact-0" not in summary
        assert len(messages_of(stripped)) == 6
        # It is asked behind the bytes that were sent, and the cut has its reason.
        sent = messages_of(turns[4])
        assert summarizer.requests[0]["messages"][: len(sent) - 3] == sent[: len(sent) - 3]
        broke = stripped.context.agreement.broke
        assert broke is not None
        assert broke.reason == "history is over its limit"
        assert not compactions(stripped)
        await require_sound(world, session)

    run(body())


@pytest.mark.parametrize(
    "answers",
    [(carry,), (FAILURE,), (carry, FAILURE), (FAILURE, carry), (carry, FAILURE, carry, FAILURE)],
    ids=["answers", "fails", "fails later", "fails first", "fails at times"],
)
def test_later_strips_carry_what_earlier_ones_held(answers: tuple[Any, ...]) -> None:
    async def body() -> None:
        world, summarizer = World(), FakeSummarizer(*answers)
        session = await world.open(**STRIP, **ROOMY, summarizer=summarizer, window=8_000)
        turns = await chat(session, 16)
        assert summarizer.asked >= 4
        assert facts_in(turns[-1]) == {f"fact-{number}" for number in range(16)}
        await require_sound(world, session)

    run(body())


def test_without_a_summarizer_they_carry_it_too() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(**STRIP, **ROOMY, window=32_000)
        turns = await chat(session, 40)
        assert facts_in(turns[-1]) == {f"fact-{number}" for number in range(40)}
        await require_sound(world, session)

    run(body())


@pytest.mark.parametrize("most", [60, 250])
@pytest.mark.parametrize("limit", [STRIP, {"history_messages": 8}, {"history_tokens": 900}])
def test_an_extracted_summary_stays_within_its_tokens_strip_after_strip(
    limit: dict[str, Any], most: int
) -> None:
    async def body() -> None:
        session = await World().open(**limit, summary_tokens=most, window=32_000)
        turns = await chat(session, 60)
        stripped = [turn for turn in turns if "history" in boundaries(turn)]
        assert len(stripped) > 5
        for turn in stripped:
            (summary,) = summaries_in(turn)
            assert len(summary.split()) <= most
            # What began the conversation stays, and so does what went last.
            assert "Asked: fact-0 " in summary or most < 250
            latest = max(int(fact[5:]) for fact in facts_in(turn) if fact in summary)
            assert f"fact-{latest + 1}" in facts_in(turn)

    run(body())


@settings(max_examples=15)
@given(
    after=st.integers(1, 6),
    keep=st.integers(0, 3),
    failures=st.lists(st.booleans(), max_size=8),
    size=st.integers(5, 60),
)
def test_facts_of_early_turns_are_in_every_later_request(
    after: int, keep: int, failures: list[bool], size: int
) -> None:
    async def body() -> None:
        answers = [FAILURE if fails else carry for fails in failures] or [carry]
        world, summarizer = World(), FakeSummarizer(*answers)
        session = await world.open(
            history="strip", strip_after_turns=after, strip_turns=min(keep, after),
            summarizer=summarizer, window=8_000, **ROOMY,
        )  # fmt: skip
        for number, turn in enumerate(await chat(session, 18, size)):
            assert facts_in(turn) == {f"fact-{earlier}" for earlier in range(number + 1)}
            require_paired(turn)
        await require_sound(world, session)

    run(body())


def test_a_failure_is_told_and_the_summary_extracted() -> None:
    async def body() -> None:
        session = await World().open(**STRIP, summarizer=FakeSummarizer(FAILURE))
        turns = await chat(session, 6)
        assert boundaries(turns[5]) == ["history"]
        assert "Asked: fact-0" in summaries_in(turns[5])[0]
        assert turns[5].context.warnings == (
            "history is over its limit: the summarizer failed: OSError: down; the summary was "
            "extracted",
        )
        assert turns[4].context.warnings == ()

    run(body())


def test_a_limit_in_tokens_is_kept_whatever_the_summarizer_says() -> None:
    async def body() -> None:
        world = World()
        summarizer = FakeSummarizer(carry, words(400, "much"), FAILURE, carry)
        session = await world.open(history_tokens=300, summarizer=summarizer)
        for turn in await chat(session, 30, 10):
            earlier = messages_of(turn)[:-1]
            assert sum(len(str(message["content"]).split()) for message in earlier) <= 300
        assert summarizer.asked >= 3
        await require_sound(world, session)

    run(body())


def test_a_limit_of_no_messages_asks_nobody() -> None:
    async def body() -> None:
        summarizer = FakeSummarizer()
        session = await World().open(history_messages=0, summarizer=summarizer)
        turns = await chat(session, 4)
        assert len(messages_of(turns[-1])) == 1
        assert summarizer.asked == 0

    run(body())


def test_what_the_summarizer_said_is_recorded_and_replay_asks_nobody() -> None:
    async def body() -> None:
        world, summarizer = World(), FakeSummarizer(carry)
        session = await world.open("talk", **STRIP, summarizer=summarizer)
        before = (await chat(session, 6))[-1]
        ops = [
            op for entry in session.path if isinstance(entry, TransformEntry)
            for op in entry.patch.ops if isinstance(op, CompactionApply)
        ]  # fmt: skip
        assert "fact-0" in ops[0].summary
        await session.close()
        asked = summarizer.asked
        again = await world.open("talk")
        assert verify(await world.store.read("talk"), world.book).sound
        after = await again.prepare("And now?")
        assert messages_of(after)[: len(messages_of(before))] == messages_of(before)
        assert summarizer.asked == asked

    run(body())


def test_a_summary_is_kept_if_its_request_comes_to_nothing() -> None:
    async def body() -> None:
        world, summarizer = World(), FakeSummarizer(carry)
        session = await world.open("talk", **STRIP, summarizer=summarizer)
        await chat(session, 5)
        await session.prepare("Never sent.")
        await session.close()
        again = await world.open("talk", summarizer=summarizer)
        turn = await again.prepare("Asked anew.")
        assert summarizer.asked == 1
        assert facts_in(turn) == {f"fact-{number}" for number in range(5)}
        await require_sound(world, again)

    run(body())
