"""The question before a costly act, and the limits of the environment."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.fakes.book import SMALL
from tests.fakes.providers import ProviderFake, ProvidersFake, saying
from tests.fakes.sessions import World, run, words

from lamina.adapters.stores.spend_file import SpendFile
from lamina.apps.views.spending_report import ask_before_rewrites
from lamina.apps.wiring.spending_account import limits_of_environment
from lamina.core.values.prices import flat_prices
from lamina.core.values.spend_limits import SpendLimits
from lamina.core.values.usage import Usage
from lamina.engine.runners.runner import ChatRunner
from lamina.errors import InvalidSetting, SpendDeclined

# A thousand tokens more than a cache of them costs a dollar.
DEAR = replace(SMALL, model="dear", prices=flat_prices(1_100.0, 1.0, read=1 / 11))
USAGE = Usage(input=1_000, output=3)


def test_a_person_is_asked_above_the_price_and_nobody_else(tmp_path: Path) -> None:
    async def body() -> None:
        world = World()
        world.book.put(DEAR)
        ledger = SpendFile(tmp_path / "spend.jsonl")
        session = await world.open(target=DEAR.name, spend_ledger=ledger, ask_above_cost=0.9)
        provider = ProviderFake(*[saying("A", usage=USAGE) for _ in range(9)])
        runner = ChatRunner(session, ProvidersFake(provider))
        questions: list[str] = []
        answers = [False, True]

        async def ask(text: str) -> bool:
            questions.append(text)
            return answers.pop(0)

        ask_before_rewrites(session, ask)
        await runner.run(words(1_000))
        await runner.run("warm")
        assert questions == []
        world.clock.pass_by(1_000)
        with pytest.raises(SpendDeclined, match="not sent") as raised:
            await runner.run("cold")
        assert raised.value.price == pytest.approx(1.0, abs=0.1)
        assert len(provider.bodies) == 2
        assert "cache has expired (1000 s since the last request" in questions[0]
        assert "tokens must be written to the cache again, which costs about $1.0" in questions[0]
        await runner.resume()
        assert len(questions) == 2
        assert len(provider.bodies) == 3
        # Where nobody can be asked, it is not sent, and the way out is named.
        ask_before_rewrites(session, None)
        world.clock.pass_by(1_000)
        with pytest.raises(SpendDeclined, match="--yes sends it"):
            await runner.run("cold again")
        await session.update_settings(ask_above_cost=None)
        await runner.resume()
        assert len(provider.bodies) == 4

    run(body())


def test_the_environment_says_limits_in_dollars(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not limits_of_environment()
    monkeypatch.setenv("LAMINA_SPEND_DAY", "$5")
    monkeypatch.setenv("LAMINA_SPEND_TURN", "0.10")
    assert limits_of_environment() == SpendLimits(day=5.0, turn=0.1)
    for wrong in ("five", "-1", "inf", "nan"):
        monkeypatch.setenv("LAMINA_SPEND_SESSION", wrong)
        with pytest.raises(InvalidSetting, match="LAMINA_SPEND_SESSION"):
            limits_of_environment()
