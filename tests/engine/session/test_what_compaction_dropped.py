"""Nothing is lost by compacting: the journal has what went, and can be replayed without asking."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Struct
from tests.engine.session.conversations import (
    FIND,
    TONE,
    Ask,
    Conversation,
    Forget,
    Player,
    conversations,
    modest,
    standing_blocks,
)
from tests.fakes.book import FakeBook
from tests.fakes.clock import FakeClock
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, all_text, note, run, talk, words
from tests.fakes.summarizer import (
    NEVER,
    SAID,
    FakeSummarizer,
    compacting,
    require_paired,
    require_sound,
)

import lamina
from lamina.adapters.stores.jsonl import JsonlStore
from lamina.core.audit.verification import verify
from lamina.core.ports import SummaryJob
from lamina.core.values.item import Attachment
from lamina.core.values.message import Message, Text, ToolCall, ToolText
from lamina.core.values.settings import Settings
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn
from lamina.errors import BudgetError, WindowExceeded


async def chat(session: Session, turns: int, size: int = 30) -> Turn:
    for number in range(turns):
        turn = await talk(session, words(size, f"q{number}"), answer=words(size, f"r{number}"))
    return turn


# -- reading back --------------------------------------------------------------------------------


@pytest.mark.parametrize("summarizer", [None, FakeSummarizer(), FakeSummarizer(OSError("away"))])
def test_every_message_that_went_can_be_read_back_as_it_was(
    summarizer: FakeSummarizer | None,
) -> None:
    async def body() -> None:
        world = World()
        session = await compacting(summarizer, world)
        written: dict[str, Message] = {}

        def take() -> None:
            written.update({m.id: m for m in session.envelope.cached if m.id != "summary"})

        for number in range(40):
            extra = [note(f"n{number}.md", words(10, f"n{number}"))] if number % 5 == 0 else []
            turn = await session.prepare(words(30, f"q{number}"), attach=extra)
            if number % 3 == 0:
                turn = await turn.commit(openai_reply(None, calls=[(f"c{number}", "find")]))
                take()
                turn = await turn.resume({f"c{number}": words(20)})
            await turn.commit(openai_reply(words(30, f"r{number}")))
            take()
        gone = [
            m
            for compaction in session.compactions
            for m in compaction.messages
            if m.id != "summary"
        ]
        stays = [m for m in session.envelope.cached if m.id != "summary"]
        assert len(session.compactions) >= 2
        assert {m.id for m in gone} | {m.id for m in stays} == set(written)
        assert not {m.id for m in gone} & {m.id for m in stays}
        assert [(m.role, m.text, m.calls) for m in gone] == [
            (written[m.id].role, written[m.id].text, written[m.id].calls) for m in gone
        ]
        await require_sound(world, session)

    run(body())


def test_what_went_is_the_very_messages_with_what_was_attached_to_them() -> None:
    async def body() -> None:
        session = await compacting(FakeSummarizer())
        await talk(session, "Q", note("a.md", words(20)))
        await chat(session, 10)
        before = session.envelope.cached.since(0)
        done = await session.compact()
        (gone,) = session.compactions
        assert gone.messages == before[: done.messages]
        assert gone.messages[0].context is not None
        assert gone.summary == done.summary
        assert gone.reason == done.reason == "compaction (manual)"
        assert gone.by == "lamina.compaction"
        assert gone.entry in [entry.id for entry in session.path]

    run(body())


def test_each_compaction_lists_what_it_took_itself() -> None:
    async def body() -> None:
        session = await compacting(FakeSummarizer("One.", "Two.", "Three."))
        while len(session.compactions) < 3:
            await chat(session, 1)
        first, second, third = session.compactions
        assert "One." in first.summary
        assert first.messages[0].id != "summary"
        assert second.messages[0].text == first.summary
        assert third.messages[0].text == second.summary
        assert first.at <= second.at <= third.at

    run(body())


def test_a_compaction_on_a_branch_that_was_left_is_not_listed() -> None:
    async def body() -> None:
        world = World()
        session = await compacting(FakeSummarizer(), world)
        await chat(session, 10)
        leaf = session.state.leaf
        messages = session.envelope.cached.since(0)
        await session.compact()
        assert session.compactions
        await session.navigate(leaf)
        assert session.compactions == ()
        assert session.envelope.cached.since(0) == messages
        turn = await talk(session, "Q")
        assert words(30, "q0") in all_text(turn)
        await require_sound(world, session)

    run(body())


def test_a_fork_has_the_compactions_of_its_path() -> None:
    async def body() -> None:
        world = World()
        session = await compacting(FakeSummarizer(), world)
        await chat(session, 14)
        fork = await session.fork("copy")
        assert fork.compactions == session.compactions != ()
        turn, other = await session.prepare("Q"), await fork.prepare("Q")
        assert turn.request()["messages"] == other.request()["messages"]
        await require_sound(world, fork)

    run(body())


def test_a_session_of_files_opened_again_from_its_index_goes_on_the_same(tmp_path: Path) -> None:
    async def body() -> None:
        book, clock, store = FakeBook(), FakeClock(), JsonlStore(tmp_path)
        given: dict[str, Any] = {"book": book, "clock": clock, "store": store}
        settings = Settings(target="fake:small", window=6_000, output_reserve=500)
        session = await lamina.open_session(
            "s", settings=settings, summarizer=FakeSummarizer(), **given
        )
        await talk(session, "Q", note("a.md", words(20)))
        while len(session.compactions) < 5:
            await chat(session, 5, 150)
        await chat(session, 2, 150)
        state, gone = session.state, session.compactions
        await session.close()
        again = await lamina.open_session("s", **given)
        assert again.damage == ()
        assert again.state.envelope.cached.since(0) == state.envelope.cached.since(0)
        assert again.state.library.standing == state.library.standing
        assert (again.state.goal, again.state.turn.question) == (state.goal, state.turn.question)
        assert again.compactions == gone
        turn = await again.prepare("Next?", attach=[note("a.md", words(20))])
        assert turn.context.agreement.broke is None
        await turn.commit(openai_reply("A"))
        await again.close()
        assert verify(await store.read("s"), book).sound

    run(body())


def test_a_retry_after_an_overflow_lists_what_it_took() -> None:
    async def body() -> None:
        world = World()
        session = await compacting(FakeSummarizer(), world)
        await chat(session, 10)
        before = session.envelope.cached.since(0)
        await (await session.prepare("Q")).retry_smaller()
        (gone,) = session.compactions
        assert gone.reason == "compaction (overflow)"
        assert gone.messages == before[: len(gone.messages)]

    run(body())


# -- laws ----------------------------------------------------------------------------------------


def wordy(job: SummaryJob) -> str:
    return words(job.max_tokens)


ANSWERS = (SAID, words(30), wordy, words(5_000), "", " ", OSError("away"), NEVER, None, 7)


class Asking(Struct, frozen=True, kw_only=True):
    """A conversation, what its summarizer says, and which requests the provider refuses."""

    conversation: Conversation
    answers: tuple[int, ...]
    overflows: frozenset[int]
    keep: int | None = None


askings = st.builds(
    Asking,
    conversation=conversations,
    answers=st.lists(st.integers(0, len(ANSWERS) - 1), min_size=1, max_size=4).map(tuple),
    overflows=st.frozensets(st.integers(0, 12), max_size=3),
    keep=st.sampled_from([None, 40, 150]),
)


class Asker(Player):
    """Plays with a summarizer, and with a provider that refuses some requests as too long."""

    def __init__(self, asking: Asking) -> None:
        super().__init__(asking.conversation)
        self.summarizer = FakeSummarizer(*(ANSWERS[answer] for answer in asking.answers))
        self.asking = asking
        self.retried: set[str] = set()

    async def _open(self, session: str | None) -> None:
        given = self.given
        self.session = await self.world.open(
            session,
            system="You are a clerk.",
            tools=[FIND],
            always=[TONE] if given.rules else [],
            promotion=given.promotion,
            window=given.window,
            output_reserve=100,
            attachment_limit=given.attachment_limit,
            compaction_keep=self.asking.keep,
            compaction_summary=60,
            summary_timeout_s=0.001,
            summarizer=self.summarizer,
            **given.history,
        )

    async def _ask(self, ask: Ask) -> bool:
        self._asked += 1
        typed = words(ask.size, f"q{self._asked}")
        self.world.clock.pass_by(ask.pause)
        attach = [Attachment(item=self.item(path), priority=worth) for path, worth in ask.attach]
        texts = [ToolText(name="search", text=words(ask.tool_text))] if ask.tool_text else []
        try:
            turn = await self.session.prepare(
                typed, attach=attach, target=ask.target, tool_texts=texts
            )
        except BudgetError:
            return True
        always = {TONE.id} if self.given.rules else set()
        named = frozenset({a.item.id for a in attach} | self.pinned | always)
        self._note(turn, typed, named, resumed=False)
        again = await self._refused(turn)
        if again is None:
            return True
        if again is not turn:
            turn = again
            self._note(turn, typed, named, resumed=False)
        for change in ask.meanwhile:
            await self._change(change)
        if not ask.commit:
            return True
        turn = await self._restarted(turn, ask)
        for number, calls in enumerate(ask.loops):
            made = [f"c{self._asked}-{number}-{call}" for call in range(calls)]
            turn = await turn.commit(
                self._reply(turn, *(ToolCall(id=call, name="find") for call in made))
            )
            turn = await self._restarted(turn, ask)
            try:
                turn = await turn.resume({call: words(ask.result, "found") for call in made})
            except BudgetError:
                return False
            self._note(turn, typed, named, resumed=True)
            again = await self._refused(turn)
            if again is None:
                return False
            if again is not turn:
                turn = again
                self._note(turn, typed, named, resumed=True)
            turn = await self._restarted(turn, ask)
        if ask.leaves and ask.loops:
            return True
        await turn.commit(self._reply(turn, Text(words(ask.answer, f"r{self._asked}"))))
        return True

    async def _refused(self, turn: Turn) -> Turn | None:
        """The turn anew if the provider refuses it, itself if it does not or nothing helps, and
        None if the smaller one did not fit."""
        if len(self.moments) - 1 not in self.asking.overflows:
            return turn
        try:
            again = await turn.retry_smaller()
        except WindowExceeded:
            return turn if self.session.interrupted else None
        self.retried.add(again.id)
        return again


@modest
@given(askings)
def test_whatever_the_summarizer_does_requests_fit_pair_and_can_be_rebuilt(asking: Asking) -> None:
    async def body() -> None:
        player = Asker(asking)
        for moment in await player.play():
            prompt, fit = moment.turn.prompt, moment.turn.context.fit
            assert prompt.tokens * fit.calibration <= asking.conversation.window - 100
            require_paired(moment.turn)
            broke = moment.turn.context.agreement.broke
            assert broke is None or broke.reason.strip()
        await require_sound(player.world, player.session)
        again = await player.world.open(player.session.id)
        assert again.state == player.session.state
        assert again.compactions == player.session.compactions

    run(body())


@modest
@given(askings)
def test_whatever_the_summarizer_does_no_item_goes_without_a_report(asking: Asking) -> None:
    async def body() -> None:
        player = Asker(asking)
        for moment in await player.play():
            context = moment.turn.context
            out = {each.what for each in context.left_out}
            gone = set(moment.before.requests.sent_standing) - set(moment.after.library.standing)
            assert gone <= out
            present = {item.item: item.version for item in context.items}
            blocks = set(standing_blocks(moment.turn))
            assert {f"{item}@{version[:8]}" for item, version in present.items()} <= blocks
            if not moment.resumed and moment.turn.id not in player.retried:
                assert moment.attached <= set(present) | out

    run(body())


# Forgotten and attached again: it stands, and is said to be removed by request.
WANTED_AGAIN = Asking(
    conversation=Conversation(
        steps=(
            Ask(size=1, attach=(("a.md", 3),)),
            Forget("a.md"),
            Ask(size=1, attach=(("a.md", 3),)),
        ),
        promotion="eager",
    ),
    answers=(0,),
    overflows=frozenset(),
)


@modest
@given(askings)
@example(WANTED_AGAIN)
def test_whatever_the_summarizer_does_no_item_is_both_there_and_reported_as_removed(
    asking: Asking,
) -> None:
    async def body() -> None:
        player = Asker(asking)
        for moment in await player.play():
            context = moment.turn.context
            removed = {each.what for each in context.left_out if each.reason == "removed"}
            assert not removed & {item.item for item in context.items}

    run(body())


@modest
@given(askings)
def test_whatever_the_summarizer_does_pins_rules_and_the_question_stay(asking: Asking) -> None:
    async def body() -> None:
        player = Asker(asking)
        for moment in await player.play():
            text = all_text(moment.turn)
            items = {item.item for item in moment.turn.context.items}
            named = TONE.id in items
            assert ("Rules and references in force from here on:\n- tone" in text) == named
            # How much of a long question stays is tested elsewhere; its beginning does.
            assert moment.typed.split()[0] in text
            if not moment.resumed:
                assert moment.turn.id in player.retried or moment.pinned <= items
                said = [each.text for each in moment.turn.prompt if each.role == "user"]
                assert said[-1] == moment.typed

    run(body())


@modest
@given(askings)
def test_whatever_the_summarizer_does_what_went_from_history_is_reported(asking: Asking) -> None:
    async def body() -> None:
        player = Asker(asking)
        for moment in await player.play():
            if moment.last is None:
                continue
            before = {s.source for s in moment.last.turn.prompt if s.layer == "L4"}
            after = {s.source for s in moment.turn.prompt}
            lost = {each for each in before - after if each.startswith("message:0")}
            reasons = {each.reason for each in moment.turn.context.left_out}
            assert not lost or "history" in reasons, lost

    run(body())
