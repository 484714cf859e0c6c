"""Whole sessions against Gemini's emulator: its account and our ledger come to the same."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace
from tests.adapters.providers.strict import png
from tests.fakes.providers import ProvidersFake

from lamina.adapters.providers.clients.gemini import GeminiClient, connect
from lamina.adapters.providers.clients.retries import RetryPolicy
from lamina.adapters.providers.model_book import load_book
from lamina.adapters.providers.wires.gemini import requests_to_break_even
from lamina.adapters.stores.memory import MemoryStore
from lamina.adapters.stores.spend_file import SpendFile
from lamina.apps.wiring.clients import Clients
from lamina.apps.wiring.runners import open_agent, open_chat
from lamina.core.audit.session_totals import sum_totals, total_cost
from lamina.core.audit.verification import verify
from lamina.core.values.event import Event, UsageReported
from lamina.core.values.settings import Settings, Target
from lamina.core.values.usage import Usage
from lamina.emulators.answers import AnswerSource, EmulatedAnswer, EmulatedCall, ScriptedAnswers
from lamina.emulators.cost_report import CostRow
from lamina.emulators.emulator import MovableClock, serve_emulator
from lamina.emulators.gemini.emulator import GeminiEmulator
from lamina.engine.runners.answer import Answer
from lamina.engine.runners.runner import AgentRunner, ChatRunner

OLD = load_book().find("gemini:gemini-2.5-flash")
NEW = load_book().find("gemini:gemini-3.1-pro-preview")
QUICK = RetryPolicy(attempts=2, first_wait_s=0.01, max_wait_s=0.02)


def prose(seed: str, count: int) -> str:
    """So many different sentences."""
    return " ".join(
        f"The {seed} of pier {n} is {n * 7 % 31} metres deep at low water and never silts up."
        for n in range(count)
    )


class World:
    """An emulator, a client of it, a folder with notes, and one clock for all of them."""

    def __init__(self, folder: Path, target: Target, answers: AnswerSource | None) -> None:
        self.folder = folder
        self.target = target
        self.clock = MovableClock()
        self.emulator = GeminiEmulator(answers=answers, clock=self.clock)
        self.store = MemoryStore()
        self.reported: list[UsageReported] = []
        self.client: GeminiClient
        self.address = ""
        for number in range(12):
            text = f"# Pier {number}\n\n{prose(f'basin{number}', 40)}\n"
            (folder / f"pier{number}.md").write_text(text, "utf-8")
        (folder / "map.png").write_bytes(png())

    @asynccontextmanager
    async def served(self) -> AsyncIterator["World"]:
        async with serve_emulator(self.emulator) as self.address:
            target = replace(self.target, base_url=self.address)
            async with connect(
                target, "key", retry_policy=QUICK, now=self.clock.now
            ) as self.client:
                yield self

    def given(self, **settings: Any) -> dict[str, Any]:
        return {
            "providers": ProvidersFake(self.client),
            "target": self.target.name,
            "settings": Settings(target=self.target.name, **settings),
            "system": f"You know the port.\n\n{prose('quay', 180)}",
            "workspace": self.folder,
            "store": self.store,
            "clock": self.clock,
        }

    def saw(self, event: Event) -> None:
        if isinstance(event, UsageReported) and event.request != "cache":
            self.reported.append(event)

    async def ask(self, runner: ChatRunner, text: str, **given: Any) -> Answer:
        answer = await runner.run(text, on_event=self.saw, **given)
        assert answer.ending == "answered", answer
        return answer

    @property
    def bill(self) -> float:
        """What the vendor charges for everything up to now."""
        self.emulator.settle()
        return sum(row.cost or 0.0 for row in self.emulator.report.rows)

    @property
    def rows(self) -> list[CostRow]:
        """What was asked of the model."""
        return [row for row in self.emulator.report.rows if row.usage.output]

    def require_agreement(self, within: float = 0.01) -> None:
        """For every request, what the ledger expected is what the vendor's cache gave."""
        rows = self.rows
        assert len(rows) == len(self.reported)
        for row, report in zip(rows, self.reported, strict=True):
            assert report.usage == row.usage
            assert report.verdict is not None
            assert report.verdict.reported == row.usage.cached
            assert report.verdict.expected == pytest.approx(row.usage.cached, rel=within), (
                row.usage, report.verdict,
            )  # fmt: skip

    @property
    def share(self) -> float:
        """What was read from the cache, of all that was sent before and could have been."""
        rows = self.rows
        allowed = sum(before.usage.input for before in rows[:-1])
        return sum(row.usage.cached for row in rows) / allowed

    async def require_sound(self, session: str) -> None:
        verdict = verify(await self.store.read(session), load_book())
        assert verdict.sound, verdict


@pytest.mark.parametrize("target", [OLD, NEW], ids=["2.5", "3.x"])
def test_a_session_of_twelve_turns_is_cached_as_the_rules_allow(
    tmp_path: Path, target: Target
) -> None:
    async def main() -> None:
        async with World(tmp_path, target, None).served() as world:
            async with await open_chat("talk", **world.given()) as chat:
                for turn in range(12):
                    attach = [f"pier{turn}.md"] if turn % 3 == 0 else []
                    attach += ["pier0.md"] if turn == 7 else []
                    await world.ask(chat, f"What of pier {turn}?", attach=attach)
            world.require_agreement()
            meanings = [reported.verdict.meaning for reported in world.reported if reported.verdict]
            assert meanings[0] == "nothing_sent_before"
            assert set(meanings[1:]) == {"as_expected"}
            assert world.share > 0.99
            await world.require_sound("talk")

    anyio.run(main)


def test_an_agent_with_eighteen_calls_at_once_keeps_its_prefix(tmp_path: Path) -> None:
    def depth(pier: int) -> str:
        """How deep it is at a pier."""
        return prose(f"depth{pier}", 3)

    async def main() -> None:
        calls = tuple(EmulatedCall(name="depth", arguments={"pier": n}) for n in range(18))
        answers = ScriptedAnswers(
            [EmulatedAnswer(calls=calls, thinking="All of them."), "Deep enough."]
        )
        async with World(tmp_path, NEW, answers).served() as world:
            given = world.given(ask_before_tools="never")
            async with await open_agent("talk", tools=[depth], **given) as agent:
                assert isinstance(agent, AgentRunner)
                for turn in range(3):
                    await world.ask(agent, f"How deep is it, {turn}?", attach=["pier1.md"])
            assert len(world.rows) == 6
            # What surrounds a call and its result on the wire is an estimate of ours.
            world.require_agreement(within=0.03)
            await world.require_sound("talk")

    anyio.run(main)


def test_a_picture_is_counted_otherwise_and_the_cache_is_found_all_the_same(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with World(tmp_path, NEW, None).served() as world:
            async with await open_chat("talk", **world.given()) as chat:
                for attach in ([], ["map.png"], []):
                    await world.ask(chat, "What do you see?", attach=attach)
            world.require_agreement(within=0.05)
            assert world.rows[1].usage.input - world.rows[0].usage.input > 258
            await world.require_sound("talk")

    anyio.run(main)


# -- caches made by hand --------------------------------------------------------------------------

NEEDED = requests_to_break_even(NEW) or 0
HUGE = prose("harbour", 600)


async def talk(world: World, chat: ChatRunner, count: int, since: int = 0) -> None:
    for turn in range(since, since + count):
        await world.ask(chat, f"What of pier {turn}?")


def test_an_explicit_cache_is_made_once_it_pays_and_read_from_then_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with World(tmp_path, NEW, None).served() as world:
            given = world.given(explicit_cache=True) | {"system": HUGE}
            async with await open_chat("talk", **given) as chat:
                await talk(world, chat, NEEDED + 1)
                # Enough answers are there; the next request with this key makes it.
                assert not any(row.usage.explicit for row in world.rows)
                await talk(world, chat, 6, NEEDED + 1)
            used = [row.usage for row in world.rows if row.usage.explicit]
            assert len(used) == 6
            assert {usage.cached for usage in used} == {used[0].explicit}
            assert used[0].explicit > 4096
            world.require_agreement()
            assert all(
                reported.verdict and reported.verdict.meaning == "as_expected"
                for reported in world.reported[2:]
            )
            world.clock.move(1800.0)
            held = len(world.emulator.cache.list_contents(owner(), world.clock.now()))
            assert held == 1
            await world.client.aclose()
            assert not world.emulator.cache.list_contents(owner(), world.clock.now())
            world.emulator.settle()
            storage = [r for r in world.emulator.report.rows if r.missed.startswith("storage")]
            # Half an hour at 4.50 dollars per million tokens and hour.
            paid = used[0].explicit * 4.5 * 0.5 / 1_000_000
            assert [row.cost for row in storage] == [pytest.approx(paid, rel=0.02)]
            await world.require_sound("talk")

    anyio.run(main)


def owner() -> str:
    from hashlib import sha256

    return sha256(b"key").hexdigest()


def test_an_explicit_cache_is_renewed_before_it_ends(tmp_path: Path) -> None:
    async def main() -> None:
        async with World(tmp_path, NEW, None).served() as world:
            given = world.given(explicit_cache=True) | {"system": HUGE}
            async with await open_chat("talk", **given) as chat:
                await talk(world, chat, NEEDED + 2)
                for turn in range(6):
                    world.clock.move(1500.0)
                    await talk(world, chat, 1, 100 + turn)
            used = [row.usage for row in world.rows if row.usage.explicit]
            assert len(used) == 7
            made = [r for r in world.emulator.report.rows if r.missed.startswith("made")]
            assert len(made) == 1

    anyio.run(main)


def test_a_cache_that_is_gone_costs_no_turn_and_is_made_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with World(tmp_path, NEW, None).served() as world:
            given = world.given(explicit_cache=True) | {"system": HUGE}
            async with await open_chat("talk", **given) as chat:
                await talk(world, chat, NEEDED + 2)
                assert world.rows[-1].usage.explicit
                cache = world.emulator.cache
                for held in cache.list_contents(owner(), world.clock.now()):
                    cache.delete(held, world.clock.now())
                await talk(world, chat, 1, 50)
                assert world.rows[-1].usage.explicit == 0
                assert world.emulator.report.rows[-2].status == 403
                verdict = world.reported[-1].verdict
                assert verdict is not None
                await talk(world, chat, 1, 60)
                assert world.rows[-1].usage.explicit
            await world.require_sound("talk")

    anyio.run(main)


def test_another_front_has_a_cache_of_its_own_and_the_old_one_is_deleted(tmp_path: Path) -> None:
    async def main() -> None:
        async with World(tmp_path, NEW, None).served() as world:
            given = world.given(explicit_cache=True) | {"system": HUGE}
            async with await open_chat("talk", **given) as chat:
                await talk(world, chat, NEEDED + 2)
                first = world.emulator.cache.list_contents(owner(), world.clock.now())
                await chat.session.set_system("system", f"{HUGE} More.", reason="more is known")
                await talk(world, chat, 2, 50)
                second = world.emulator.cache.list_contents(owner(), world.clock.now())
            assert len(first) == len(second) == 1
            assert first[0].name != second[0].name
            assert second[0].tokens > first[0].tokens

    anyio.run(main)


def test_without_the_setting_and_for_short_fronts_there_are_no_caches(tmp_path: Path) -> None:
    async def main() -> None:
        for settings, system in ({}, HUGE), ({"explicit_cache": True}, "You know the port."):
            async with World(tmp_path, NEW, None).served() as world:
                given = world.given(**settings) | {"system": system}
                async with await open_chat("talk", **given) as chat:
                    await talk(world, chat, NEEDED + 3)
                assert not any(row.missed.startswith("made") for row in world.emulator.report.rows)

    anyio.run(main)


def test_the_account_comes_to_what_the_vendor_charges_caches_and_their_storage_included(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with World(tmp_path, NEW, None).served() as world:
            given = world.given(explicit_cache=True) | {"system": HUGE}
            account = SpendFile(tmp_path / "spend.jsonl")
            async with await open_chat("talk", spend_ledger=account, **given) as chat:
                costs = []
                for turn in range(NEEDED + 3):
                    answer = await world.ask(chat, f"What of pier {turn}?")
                    costs.append(answer.cost)
                explicit = world.rows[-1].usage.explicit
                assert answer.usage.explicit == explicit > 4096
                standing = await chat.session.spending()
                # Creating it is paid for; storing it for an hour is reserved.
                assert standing.session.spent == pytest.approx(world.bill, abs=5e-5)
                assert standing.session.spent == pytest.approx(sum(cost or 0.0 for cost in costs))
                assert standing.session.reserved > explicit * 4.5 / 1_000_000
                for turn in range(3):
                    # It is renewed on the way.
                    world.clock.move(1500.0)
                    await world.ask(chat, f"And pier {turn}?")
                await world.client.release_session("talk")
            standing = await account.standing("talk", account.day_of(world.clock.now()))
            assert standing.session.spent == pytest.approx(world.bill, abs=5e-5)
            assert standing.session.reserved == 0
            assert standing.session.spent > explicit * 4.5 / 1_000_000
            totals = sum_totals(await world.store.read("talk"))
            assert total_cost(totals, load_book()).dollars == pytest.approx(world.bill, abs=5e-5)
            made = [entry for entry in (await account.read()).entries if entry.purpose == "cache"]
            assert [entry.usage for entry in made] == [Usage(input=explicit)]

    anyio.run(main)


def test_a_cache_that_could_pass_a_limit_is_not_created_and_the_question_is_answered(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with World(tmp_path, NEW, None).served() as world:
            given = world.given(explicit_cache=True, spend_session=0.12, max_tokens=100)
            given |= {"system": HUGE}
            account = SpendFile(tmp_path / "spend.jsonl")
            async with await open_chat("talk", spend_ledger=account, **given) as chat:
                warnings: list[str] = []
                for turn in range(NEEDED + 3):
                    warnings += (await world.ask(chat, f"What of pier {turn}?")).warnings
                assert not any(r.missed.startswith("made") for r in world.emulator.report.rows)
                assert len([w for w in warnings if "explicit cache was not created" in w]) == 1
                standing = await chat.session.spending()
                assert standing.session.spent == pytest.approx(world.bill, abs=5e-5)
                assert standing.session.reserved == 0

    anyio.run(main)


def test_a_cache_that_is_left_behind_stays_reserved_for_its_lifetime(tmp_path: Path) -> None:
    async def main() -> None:
        async with World(tmp_path, NEW, None).served() as world:
            given = world.given(explicit_cache=True) | {"system": HUGE}
            account = SpendFile(tmp_path / "spend.jsonl")
            async with await open_chat("talk", spend_ledger=account, **given) as chat:
                await talk(world, chat, NEEDED + 2)
                # The client is not told that the session ends, as if its process had died.
            waiting = [e for e in (await account.read()).entries if e.state == "open"]
            assert [entry.purpose for entry in waiting] == ["storage"]

    anyio.run(main)


class BookAt:
    """The book, with Gemini at an address."""

    def __init__(self, address: str) -> None:
        self._address = address

    def __getattr__(self, name: str) -> Any:
        return getattr(load_book(), name)

    def find(self, name: str) -> Target:
        return replace(load_book().find(name), base_url=self._address)


def test_a_chat_that_is_closed_leaves_no_cache_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "key")

    async def main() -> None:
        async with World(tmp_path, NEW, None).served() as world:
            given = world.given(explicit_cache=True) | {"system": HUGE}
            given |= {"providers": Clients(), "book": BookAt(world.address)}
            async with await open_chat("talk", **given) as chat:
                await talk(world, chat, NEEDED + 2)
                assert len(world.emulator.cache.list_contents(owner(), world.clock.now())) == 1
            assert not world.emulator.cache.list_contents(owner(), world.clock.now())
            world.require_agreement()

    anyio.run(main)
