"""Money of a session: what is reserved, settled and refused, and what the errors say."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.fakes.book import SMALL
from tests.fakes.providers import ProviderFake, ProvidersFake, calling, saying, spoken
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, run, talk, words
from tests.fakes.store import StoreFailed
from tests.fakes.summarizer import FakeSummarizer
from tests.fakes.tools import ToolHostFake, tool

from lamina.adapters.stores.spend_file import SpendFile
from lamina.core.values.message import Text
from lamina.core.values.prices import FREE, flat_prices
from lamina.core.values.spend_limits import SpendEntry, SpendSum
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Reply, ResentPiece
from lamina.engine.runners.runner import AgentRunner, ChatRunner, PlanRunner
from lamina.engine.session.session import Session, core_of
from lamina.engine.session.turn import Turn
from lamina.errors import (
    ProviderBusy,
    ProviderError,
    RequestTooLong,
    SpendDeclined,
    SpendLedgerError,
    SpendLimit,
    UnknownPrice,
)

# Ten dollars a million tokens in, twenty out; an answer may have 1,000: two cents.
PRICED = replace(SMALL, model="priced", prices=flat_prices(10.0, 20.0, read=0.1))
CHEAP = replace(SMALL, model="cheap", prices=flat_prices(1.0, 2.0))
USAGE = Usage(input=100, output=10)
# What an answer of that usage costs.
COST = 0.0012


class RichWorld(World):
    """A world with prices, and an account in a file."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.book.put(PRICED)
        self.book.put(CHEAP)
        self.book.put(replace(SMALL, model="free", prices=FREE))
        self.ledger = SpendFile(folder / "spend.jsonl")

    async def open(self, session: str | None = None, **given: Any) -> Session:
        if session is None:
            given = {"target": PRICED.name} | given
        return await super().open(session, spend_ledger=self.ledger, **given)

    async def states(self) -> list[str]:
        return [entry.state for entry in (await self.ledger.read()).entries]

    async def entries(self) -> list[SpendEntry]:
        return list((await self.ledger.read()).entries)


def reply_of(usage: Usage = USAGE, *, complete: bool = True) -> Reply:
    return Reply(blocks=(Text("A"),), usage=usage, stop="stop", complete=complete)


# -- with a client of one's own ------------------------------------------------------------------


def test_prepare_reserves_the_upper_price_and_commit_settles_it(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        session = await world.open(spend_day=1.0)
        turn = await session.prepare("Q")
        cost = turn.cost_range
        assert cost is not None
        assert 0 < cost.low < 0.02 < cost.high
        held = await session.spending()
        assert held.day == SpendSum(reserved=round(cost.high, 9), waiting=1)
        assert held.limits.day == 1.0
        await turn.commit(reply_of())
        after = await session.spending()
        assert after.day == after.session == after.turn == SpendSum(spent=COST)

    run(body())


def test_a_limit_refuses_before_anything_is_written(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        session = await world.open(spend_turn=0.01)
        entries = session.entries
        with pytest.raises(SpendLimit) as raised:
            await session.prepare("Q")
        error = raised.value
        assert (error.code, error.scope, error.limit) == ("spend_limit", "turn", 0.01)
        assert (error.spent, error.reserved) == (0.0, 0.0)
        assert error.high is not None
        assert error.high > 0.02
        assert session.entries == entries
        assert await world.entries() == []
        assert "nothing was sent" in str(error)

    run(body())


def test_the_advice_is_worked_out_from_the_request(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        world.workspace.notes["long.md"] = words(2_000)
        session = await world.open(spend_session=0.035)
        with pytest.raises(SpendLimit) as raised:
            await session.prepare("Q", attach=["long.md"])
        (answer, attached, limit) = raised.value.advice
        assert "long.md is $0.02" in attached or "long.md is $0.01" in attached, attached
        assert limit == "raise the limit (spend_session)"
        # An answer as long as it says fits, and one word more does not.
        assert answer.startswith("an answer of at most ")
        await session.update_settings(max_tokens=int(answer.split("max_tokens=")[1].split(";")[0]))
        turn = await session.prepare("Q", attach=["long.md"])
        await turn.release()

    world_has_names = RichWorld(tmp_path / "other")
    names = lambda: [PRICED.name, CHEAP.name]  # noqa: E731
    world_has_names.book.names = names  # type: ignore[attr-defined]

    async def with_others() -> None:
        session = await world_has_names.open(spend_turn=0.01)
        with pytest.raises(SpendLimit, match="fake:cheap would cost at most"):
            await session.prepare("Q")

    run(with_others())
    run(body())


def test_what_waits_is_named_and_can_be_cleared(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        session = await world.open(spend_day=0.03)
        await session.prepare("Q")
        with pytest.raises(SpendLimit, match=r"reserved for an answer that has not come") as raised:
            await session.prepare("Q2")
        assert raised.value.reserved > 0.02
        assert any("tomorrow" in advice for advice in raised.value.advice)
        (entry,) = await world.entries()
        await world.ledger.free([entry.id], 1.0, "person")
        await session.prepare("Q2")

    run(body())


def test_limits_hold_across_sessions_and_openings(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        first = await world.open(spend_day=0.05)
        await first.prepare("Q")
        second = await world.open(spend_day=0.05)
        await second.prepare("Q")
        third = await world.open(spend_day=0.05)
        with pytest.raises(SpendLimit):
            await third.prepare("Q")
        world.clock.pass_by(86_400.0)
        await third.prepare("Q")

    run(body())


def test_a_session_has_its_own_limit_over_all_its_openings(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        session = await world.open(spend_session=0.03)
        for _ in range(3):
            turn = await session.prepare("Q")
            await turn.commit(reply_of(Usage(input=100, output=120)))
        await session.close()
        again = await world.open(session.id)
        with pytest.raises(SpendLimit, match="the limit for this session"):
            await again.prepare("Q")
        assert (await (await world.open()).spending()).session == SpendSum()

    run(body())


def test_a_turn_is_all_of_its_requests_and_a_new_one_begins_anew(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        session = await world.open(spend_turn=0.05)
        turn = await session.prepare("Q")
        calls = openai_reply(None, calls=[("c", "find")], input=100)
        calls["usage"]["completion_tokens"] = 1_000
        turn = await turn.commit(calls)
        turn = await turn.resume({"c": "found"})
        calls["choices"][0]["message"]["tool_calls"][0]["id"] = "d"
        turn = await turn.commit(calls)
        with pytest.raises(SpendLimit, match="the limit for one turn"):
            await turn.resume({"d": "found"})
        await session.abandon_turn()
        await session.prepare("another question")

    run(body())


def test_a_price_that_nobody_knows_is_refused_under_a_limit_unless_a_setting_lets_it(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        session = await world.open(target=SMALL.name, spend_day=1.0)
        with pytest.raises(UnknownPrice, match="LAMINA_MODELS") as raised:
            await session.prepare("Q")
        assert raised.value.code == "unknown_price"
        await session.update_settings(spend_unknown="allow")
        turn = await session.prepare("Q")
        assert turn.cost_range is None
        await turn.commit(reply_of())
        assert (await session.spending()).day == SpendSum(unpriced=1)

    run(body())


def test_a_model_that_costs_nothing_passes_any_limit(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        session = await world.open(target="fake:free", spend_day=0.0)
        turn = await session.prepare("Q")
        await turn.commit(openai_reply())
        assert (await session.spending()).day == SpendSum()

    run(body())


def test_without_a_limit_nothing_is_reserved_and_each_answer_is_written_down(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        session = await world.open()
        turn = await session.prepare("Q")
        assert await world.entries() == []
        await turn.commit(reply_of())
        (entry,) = await world.entries()
        assert (entry.state, entry.cost, entry.target) == ("settled", COST, PRICED.name)
        assert (entry.session, entry.usage) == (session.id, USAGE)

    run(body())


def test_an_account_that_cannot_be_written_is_news_without_a_limit_and_an_error_with_one(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        (tmp_path / "spend.jsonl").mkdir()
        session = await world.open()
        await talk(session)
        turn = await session.prepare("Q")
        assert [text for text in turn.warnings if "not written down" in text]
        await session.update_settings(spend_day=1.0)
        with pytest.raises(SpendLedgerError):
            await session.prepare("Q")

    run(body())


def test_an_answer_without_usage_counts_its_upper_price(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        session = await world.open(spend_day=1.0)
        turn = await session.prepare("Q")
        await turn.commit(openai_reply())
        day = (await session.spending()).day
        assert turn.cost_range is not None
        assert day == SpendSum(assumed=round(turn.cost_range.high, 9))

    run(body())


def test_a_request_that_could_not_be_written_reserves_nothing(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        session = await world.open(spend_day=1.0)
        world.store.failing = True
        with pytest.raises(StoreFailed):
            await session.prepare("Q")
        assert await world.states() == ["released"]

    run(body())


def test_what_was_not_sent_can_be_released_and_what_is_sent_again_reserved(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        session = await world.open(spend_day=1.0)
        turn = await session.prepare("Q")
        await turn.release()
        await turn.release()
        assert await world.states() == ["released"]
        await turn.reserve()
        await turn.reserve()
        await turn.commit(reply_of())
        # The first of the two may have been charged for: a person decides.
        assert await world.states() == ["released", "open", "settled"]

    run(body())


def test_a_turn_that_is_taken_up_after_a_restart_is_reserved_once_more(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        session = await world.open(spend_day=1.0)
        await session.prepare("Q")
        await session.close()
        again = await world.open(session.id)
        turn = await again.current_turn()
        assert turn is not None
        assert await again.current_turn() is not None
        assert await world.states() == ["open", "open"]
        await turn.commit(reply_of())
        assert await world.states() == ["open", "settled"]

    run(body())


def test_ceilings_of_the_environment_hold_for_every_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        session = await world.open(spend_day=5.0)
        assert (await session.spending()).limits.day == 0.01
        with pytest.raises(SpendLimit):
            await session.prepare("Q")

    monkeypatch.setenv("LAMINA_SPEND_DAY", "$0.01")
    run(body())


# -- through a runner ----------------------------------------------------------------------------


def runner_of(session: Session, *scripts: Any) -> tuple[ChatRunner, ProviderFake]:
    provider = ProviderFake(*scripts)
    return ChatRunner(session, ProvidersFake(provider)), provider


def test_a_run_settles_its_answer_by_the_usage(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        runner, _ = runner_of(await world.open(spend_day=1.0), saying("A", usage=USAGE))
        await runner.run("Q")
        assert [(entry.state, entry.cost) for entry in await world.entries()] == [("settled", COST)]

    run(body())


def test_a_refusal_frees_what_was_reserved_and_silence_does_not(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        refused = ProviderBusy("529")
        refused.is_refusal = True
        lost = ProviderError("the connection broke")
        session = await world.open(spend_day=1.0)
        runner, _ = runner_of(session, [refused], [lost], saying("A", usage=USAGE))
        with pytest.raises(ProviderBusy):
            await runner.run("Q")
        assert await world.states() == ["released"]
        with pytest.raises(ProviderError):
            await runner.resume()
        assert await world.states() == ["released", "open"]
        await runner.resume()
        assert await world.states() == ["released", "open", "settled"]

    run(body())


def test_a_client_that_sends_again_reserves_again(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        script = [ResentPiece("no connection"), *saying("A", usage=USAGE)]
        runner, _ = runner_of(await world.open(spend_day=1.0), script)
        await runner.run("Q")
        assert await world.states() == ["open", "settled"]

    run(body())


def test_a_client_that_sends_again_is_stopped_by_a_limit(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        script = [ResentPiece("no connection"), *saying("A", usage=USAGE)]
        runner, provider = runner_of(await world.open(spend_day=0.03), script)
        with pytest.raises(SpendLimit):
            await runner.run("Q")
        assert provider.closed == 1
        assert await world.states() == ["open"]

    run(body())


def test_an_answer_that_broke_off_without_usage_stays_reserved(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        runner, _ = runner_of(await world.open(spend_day=1.0), spoken("half an"))
        with pytest.raises(ProviderError):
            await runner.run("Q")
        assert await world.states() == ["open"]

    run(body())


def test_a_request_that_was_too_long_and_its_smaller_twin_are_two_bills(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        session = await world.open(spend_day=1.0, compaction_keep=50, compaction_summary=100)
        for _ in range(4):
            await (await session.prepare(words(300))).commit(reply_of())
        too_long = RequestTooLong("it stopped at the end of the window")
        runner, _ = runner_of(session, [too_long], saying("A", usage=USAGE))
        await runner.run(words(300))
        # Nobody said that it was turned down: it may be charged for.
        assert (await world.states())[4:] == ["open", "settled"]

    run(body())


def test_every_request_of_an_agent_is_settled(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        session = await world.open(spend_day=1.0)
        provider = ProviderFake(
            calling(("a", "look", {}), ("b", "look", {}), usage=USAGE), saying("A", usage=USAGE)
        )
        runner = AgentRunner(session, ProvidersFake(provider), ToolHostFake(tool("look")))
        await runner.run("Q")
        assert await world.states() == ["settled", "settled"]
        spent = await session.spending()
        assert spent.turn == spent.session == SpendSum(spent=2 * COST)

    run(body())


def test_a_preview_leaves_nothing_reserved_and_resuming_it_reserves(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        runner, _ = runner_of(await world.open(spend_day=1.0), saying("A", usage=USAGE))
        await runner.preview("Q")
        assert await world.states() == ["released"]
        await runner.resume()
        assert await world.states() == ["released", "settled"]

    run(body())


def test_a_gate_that_says_no_sends_nothing_and_keeps_the_question(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        session = await world.open(spend_day=1.0)
        runner, provider = runner_of(session, saying("A", usage=USAGE))

        async def decline(turn: Turn) -> None:
            raise SpendDeclined("no", 1.0)

        core_of(session).ask_before_sending(decline)
        with pytest.raises(SpendDeclined):
            await runner.run("Q")
        assert provider.bodies == []
        assert session.interrupted
        assert await world.states() == ["released"]
        core_of(session).ask_before_sending(None)
        await runner.resume()
        assert await world.states() == ["released", "settled"]

    run(body())


def test_a_plan_is_paid_for_as_part_of_its_turn_and_stopped_by_a_limit(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        session = await world.open(spend_turn=1.0)
        provider = ProviderFake(
            calling(("a", "look", {}), usage=USAGE), saying("A", usage=USAGE)
        )  # fmt: skip
        runner = PlanRunner(session, ProvidersFake(provider), ToolHostFake(tool("look")))
        await runner.run("Q")
        purposes = [(entry.purpose, entry.state) for entry in await world.entries()]
        assert purposes == [("plan", "settled"), ("answer", "settled")]
        assert (await session.spending()).turn == SpendSum(spent=2 * COST)
        await session.update_settings(spend_turn=0.01)
        with pytest.raises(SpendLimit):
            await runner.run("Q2")
        assert len(provider.bodies) == 2

    run(body())


# -- besides answers -----------------------------------------------------------------------------


def test_a_summary_is_paid_for_like_an_answer_and_extracted_where_it_is_too_dear(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        summary = Reply(blocks=(Text("They talked."),), usage=USAGE, stop="stop")
        summarizer = FakeSummarizer(summary)
        session = await world.open(
            spend_session=1.0, summarizer=summarizer, compaction_keep=50, compaction_summary=100
        )
        for _ in range(3):
            await (await session.prepare(words(300))).commit(reply_of())
        outcome = await session.compact()
        assert (outcome.by, outcome.problem) == ("model", ""), outcome
        assert [entry.purpose for entry in await world.entries()] == [*["answer"] * 3, "summary"]
        assert (await world.states())[-1] == "settled"
        for _ in range(3):
            await (await session.prepare(words(300))).commit(reply_of())
        await session.update_settings(spend_session=0.01)
        outcome = await session.compact()
        assert outcome.by == "extract"
        assert "the limit for this session is" in outcome.problem

    run(body())


def test_what_a_cache_had_and_is_written_again_has_a_price(tmp_path: Path) -> None:
    async def body() -> None:
        world = RichWorld(tmp_path)
        session = await world.open()
        turn = await session.prepare(words(1_000))
        assert turn.rewrite is None
        await turn.commit(reply_of())
        turn = await session.prepare("still warm")
        assert turn.rewrite is None
        await turn.commit(reply_of())
        world.clock.pass_by(400.0)
        turn = await session.prepare("after a pause")
        assert turn.rewrite is not None
        assert turn.rewrite.kind == "expired"
        # A thousand tokens at ten dollars a million instead of one.
        assert turn.rewrite.price == pytest.approx(turn.rewrite.tokens * 9e-6)
        assert 1_000 <= turn.rewrite.tokens <= 1_100
        await turn.commit(reply_of())
        turn = await session.prepare("another model", target=CHEAP.name)
        assert turn.rewrite is not None
        assert turn.rewrite.kind == "model_change"
        await turn.commit(reply_of())
        assert core_of(session).turns.spending.limits.day is None

    run(body())
