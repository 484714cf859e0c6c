"""When an explicit cache is planned, and that a client makes, renews and deletes it by the plan."""

from typing import Any

import anyio
import pytest
from msgspec.structs import replace
from tests.fakes.clock import FakeClock

import lamina
from lamina.adapters.providers.clients.gemini_caches import ExplicitCaches
from lamina.adapters.providers.model_book import load_book
from lamina.adapters.providers.wires import gemini as wire
from lamina.adapters.providers.wires.gemini import PLAN_FIELD, TTL_S, requests_to_break_even
from lamina.adapters.stores.memory import MemoryStore
from lamina.core.values.envelope import Options
from lamina.core.values.prices import FREE
from lamina.core.values.settings import Settings
from lamina.errors import InvalidSetting, ProviderBusy, ProviderError

PRO = load_book().find("gemini:gemini-3.1-pro-preview")
FIRST = load_book().find("gemini:gemini-2.0-flash")
LONG = "The quay is deep enough for any ship that ever came here. " * 500


def test_a_cache_earns_itself_back_after_so_many_requests() -> None:
    # Filling it costs 2.00 dollars a million, an hour 4.50; each request saves 90% of 2.00.
    assert requests_to_break_even(PRO) == 4
    # Long prompts cost twice as much, and storage does not.
    assert requests_to_break_even(PRO, 200_001) == 3
    # 0.10 and 1.00 dollars against 75% of 0.10.
    assert requests_to_break_even(FIRST) == 15
    assert requests_to_break_even(replace(PRO, prices=FREE)) is None
    assert requests_to_break_even(replace(PRO, prices=None)) is None


async def plans(system: str, turns: int, *, answer: str = "Yes.", **settings: Any) -> list[Any]:
    """What is planned for each request of a session."""
    found = []
    given = Settings(target=PRO.name, **settings)
    store = MemoryStore()
    session = await lamina.open_session("talk", system=system, settings=given, store=store)
    for number in range(turns):
        turn = await session.prepare(f"Question {number}?")
        found.append(turn.request().get(PLAN_FIELD))
        parts = [{"text": answer}]
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
        await turn.commit({"candidates": [candidate]})
    return found


def test_a_cache_is_planned_once_the_session_is_as_long_as_it_takes() -> None:
    found = anyio.run(lambda: plans(LONG, 9, explicit_cache=True))
    assert [plan is not None for plan in found] == [False] * 4 + [True] * 5
    assert found[-1]["session"] == "talk"
    assert found[-1]["tokens"] > 4096
    assert len({plan["key"] for plan in found if plan}) == 1


@pytest.mark.parametrize(
    ("system", "answer", "settings"),
    [
        (LONG, "Yes.", {}),
        ("You know the port.", "Yes.", {"explicit_cache": True}),
        (LONG, LONG, {"explicit_cache": True}),
    ],
    ids=["not wanted", "below the minimum", "less than what stands behind it"],
)
def test_no_cache_is_planned_where_it_does_not_pay(
    system: str, answer: str, settings: dict[str, Any]
) -> None:
    found = anyio.run(lambda: plans(system, 9, answer=answer, **settings))
    assert found == [None] * 9


def test_the_key_is_that_of_the_session_and_its_front() -> None:
    async def keys() -> list[str]:
        found = await plans(LONG, 8, explicit_cache=True)
        found += await plans(f"{LONG} More.", 8, explicit_cache=True)
        return [plan["key"] for plan in found if plan]

    assert len(set(anyio.run(keys))) == 2


def test_the_setting_is_a_yes_or_a_no() -> None:
    with pytest.raises(InvalidSetting, match="explicit_cache='on'"):
        Settings(explicit_cache="on")  # type: ignore[arg-type]


def test_a_request_without_a_plan_is_for_any_client() -> None:
    async def main() -> None:
        settings = Settings(target=PRO.name, explicit_cache=True)
        session = await lamina.open_session(
            "talk", system=LONG, settings=settings, store=MemoryStore()
        )
        turn = await session.prepare("Hello?")
        assert set(turn.request()) == {"model", "contents", "config"}

    anyio.run(main)


def test_levels_of_thought_are_budgets_before_the_third_generation() -> None:
    async def main() -> None:
        seen = []
        for target in (PRO.name, FIRST.name):
            session = await lamina.open_session(
                target=target, options=Options(reasoning="low"), store=MemoryStore()
            )
            turn = await session.prepare("Hello?")
            seen.append(turn.request()["config"]["thinking_config"])
        assert seen == [
            {"thinking_level": "low", "include_thoughts": True},
            {"thinking_budget": 1024, "include_thoughts": True},
        ]
        assert wire.decode({"candidates": [{"finishReason": "STOP"}], "responseId": "r"}).id == "r"

    anyio.run(main)


# -- the client's side ----------------------------------------------------------------------------


class CacheCallsFake:
    """Caches on no server; `fails` is raised by the next calls."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.fails: list[Exception] = []
        self.config: dict[str, Any] = {}

    def _say(self, what: str) -> None:
        self.said.append(what)
        if self.fails:
            raise self.fails.pop(0)

    async def create(self, config: dict[str, Any]) -> tuple[str, int]:
        self.config = config
        self._say("create")
        return f"cachedContents/{len(self.said)}", 5000

    async def renew(self, name: str) -> None:
        self._say("renew")

    async def delete(self, name: str) -> None:
        self._say(f"delete {name}")


class Caches:
    """Caches by hand, with a clock of their own."""

    def __init__(self) -> None:
        self.calls = CacheCallsFake()
        self.clock = FakeClock()
        self.caches = ExplicitCaches(self.calls, self.clock.now)

    async def use(self, key: str = "a", session: str = "talk") -> str | None:
        plan = {"session": session, "key": key, "tokens": 5000}
        config = {"system_instruction": "Be brief.", "tools": [], "temperature": 0.5}
        cached = await self.caches.use(plan, config)
        return cached.name if cached else None


def test_a_cache_is_made_with_the_second_request_of_its_key_and_then_used() -> None:
    async def main() -> None:
        caches = Caches()
        assert [await caches.use() for _ in range(3)] == [None, *["cachedContents/1"] * 2]
        assert caches.calls.said == ["create"]
        assert caches.calls.config["ttl"] == "3600s"
        assert set(caches.calls.config) == {"system_instruction", "tools", "ttl", "display_name"}

    anyio.run(main)


def test_a_cache_is_renewed_when_less_than_a_third_of_its_life_is_left() -> None:
    async def main() -> None:
        caches = Caches()
        await caches.use()
        await caches.use()
        for seconds, said in ((TTL_S * 0.6, 1), (TTL_S * 0.1, 2), (TTL_S * 0.6, 2)):
            caches.clock.time += seconds
            assert await caches.use() == "cachedContents/1"
            assert len(caches.calls.said) == said

    anyio.run(main)


def test_a_cache_past_its_life_is_made_again_and_not_deleted() -> None:
    async def main() -> None:
        caches = Caches()
        await caches.use()
        await caches.use()
        caches.clock.time += TTL_S + 1
        assert await caches.use() == "cachedContents/2"
        assert caches.calls.said == ["create", "create"]

    anyio.run(main)


def test_another_key_deletes_the_cache_of_the_one_before_and_closing_deletes_all() -> None:
    async def main() -> None:
        caches = Caches()
        for key in ("a", "a", "b", "b"):
            await caches.use(key)
        assert caches.calls.said == ["create", "delete cachedContents/1", "create"]
        for _ in range(2):
            await caches.use("c", "other")
        await caches.caches.close()
        assert caches.calls.said[-2:] == ["delete cachedContents/3", "delete cachedContents/4"]

    anyio.run(main)


def test_what_goes_wrong_with_a_cache_costs_no_request() -> None:
    async def main() -> None:
        caches = Caches()
        await caches.use()
        caches.calls.fails = [ProviderBusy("later"), ProviderError("too small")]
        # Busy: it is tried again. Refused: it is not, until there is something else to keep.
        assert [await caches.use() for _ in range(4)] == [None] * 4
        assert caches.calls.said == ["create", "create"]
        await caches.use("b")
        assert await caches.use("b") is not None
        caches.clock.time += TTL_S * 0.9
        caches.calls.fails = [ProviderBusy("later")]
        assert await caches.use("b") == "cachedContents/3"
        caches.calls.fails = [ProviderError("gone")]
        assert await caches.use("b") == "cachedContents/6"
        caches.calls.fails = [ProviderError("gone")]
        await caches.caches.close()

    anyio.run(main)
