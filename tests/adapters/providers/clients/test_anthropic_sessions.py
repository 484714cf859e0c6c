"""Whole sessions against the emulator: its account of the cache and Lamina's own agree."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.adapters.providers.clients.anthropic_server import Asking, asking
from tests.adapters.providers.strict import png

from lamina.adapters.providers.model_book import load_book
from lamina.adapters.providers.wires import anthropic
from lamina.apps.wiring.runners import open_agent
from lamina.core.audit.rebuilt_request import rebuild_request, wire_request
from lamina.core.audit.requests import list_requests
from lamina.core.journal import journal_of
from lamina.core.values.entry import ReplyEntry, RequestEntry
from lamina.core.values.event import Event, UsageReported
from lamina.core.values.settings import Settings
from lamina.emulators.answers import EmulatedAnswer, EmulatedCall
from lamina.emulators.faults import EmulatedFault
from lamina.engine.runners.runner import AgentRunner
from lamina.engine.session.session import core_of
from lamina.errors import ProviderError

SYSTEM = "You are the master of a small harbour, and terse. " * 130
NOTES = 8
BOOK = load_book()


def weather(city: str) -> str:
    """The weather in a city."""
    return f"In {city} it snows, and the wind comes from the north-east. " * 12


def calling(count: int, words: str = "Let me look.", thinking: str = "") -> EmulatedAnswer:
    calls = [EmulatedCall(name="weather", arguments={"city": f"City {n}"}) for n in range(count)]
    return EmulatedAnswer(text=words, thinking=thinking, calls=tuple(calls))


def answer(number: int) -> EmulatedAnswer:
    return EmulatedAnswer(text=f"Answer {number}: " + "it is so because of the tide. " * 20)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(NOTES):
        lines = (f"Berth {n} of pier {number} takes {n * 7} tons.\n" for n in range(90))
        (tmp_path / f"pier{number}.md").write_text(f"# Pier {number}\n" + "".join(lines))
    (tmp_path / "map.png").write_bytes(png(300, 200))
    return tmp_path


class Talk:
    """An agent, and what was reported of its requests."""

    def __init__(self, it: Asking, agent: AgentRunner) -> None:
        self.it = it
        self.agent = agent
        self.reported: list[UsageReported] = []

    async def ask(self, text: str, *attach: str, after: float = 20.0) -> None:
        self.it.server.clock.move(after)
        await self.agent.run(text, attach=attach, on_event=self._seen)

    def _seen(self, event: Event) -> None:
        if isinstance(event, UsageReported):
            self.reported.append(event)

    @property
    def meanings(self) -> list[str]:
        return [reported.verdict.meaning for reported in self.reported if reported.verdict]

    def require_agreement(self) -> None:
        """What was expected is what was reported, and that is what the server's account says."""
        for said, account in zip(self.reported, self.it.server.cache_uses, strict=True):
            assert said.verdict
            assert said.usage == account.usage(said.usage.output)
            expected, read = said.verdict.expected, account.read
            assert abs(expected - read) <= 0.01 * max(expected, read), (said, account.missed)
        for body in self.it.server.bodies:
            assert len(markers(body)) <= 4

    @property
    def share(self) -> float:
        """What was read, of what the rules allow to be read."""
        accounts = self.it.server.cache_uses
        return sum(account.read for account in accounts) / sum(
            account.reachable for account in accounts
        )


def markers(body: dict[str, Any]) -> list[Any]:
    blocks = [
        *body.get("tools", ()), *body.get("system", ()),
        *(block for message in body["messages"] for block in message["content"]),
    ]  # fmt: skip
    return [block["cache_control"] for block in blocks if "cache_control" in block]


@asynccontextmanager
async def talking(folder: Path, *said: EmulatedAnswer, **given: Any) -> AsyncIterator[Talk]:
    settings = Settings(ask_before_tools="never", **given.pop("settings", {}))
    async with asking(*said, faults=given.pop("faults", ())) as it:
        agent = await open_agent(
            providers=it, tools=[weather], target="anthropic:claude-sonnet-5", workspace=folder,
            clock=it.server.clock, system=SYSTEM, settings=settings, **given,
        )  # fmt: skip
        # The server is new: what was sent to another one is not in its cache.
        core_of(agent.session).turns.prefixes.shared = None
        async with agent:
            yield Talk(it, agent)


def test_twelve_turns_with_notes_and_tools_read_all_that_the_rules_allow(folder: Path) -> None:
    said: list[EmulatedAnswer] = []
    for number in range(12):
        if number in (2, 5, 9):
            said.append(calling(18 if number == 5 else 2, thinking="I should look."))
        said.append(answer(number))

    async def main() -> None:
        async with talking(folder, *said) as talk:
            for number in range(12):
                attach = [f"pier{number // 2}.md"] if number % 2 == 0 else []
                await talk.ask(f"Question {number}?", *attach, *(["map.png"] if not number else []))
            talk.require_agreement()
            assert talk.meanings == ["nothing_sent_before", *["as_expected"] * 14]
            assert talk.share == 1.0
            total = sum(reported.usage.cached for reported in talk.reported)
            assert total / sum(reported.usage.input for reported in talk.reported) > 0.85

    anyio.run(main)


def test_a_pause_beyond_the_lifetime_is_a_boundary_and_the_hour_outlives_it(folder: Path) -> None:
    async def main(ttl: str) -> list[str]:
        async with talking(folder, answer(1), settings={"cache_ttl": ttl}) as talk:
            await talk.ask("One?", "pier1.md")
            await talk.ask("Two?", "pier2.md")
            await talk.ask("Three?", after=1_000.0)
            await talk.ask("Four?")
            await talk.ask("Five?", after=3_700.0)
            talk.require_agreement()
            marks = [mark for body in talk.it.server.bodies for mark in markers(body)]
            assert {mark.get("ttl", "5m") for mark in marks} == {ttl}
            boundaries = [
                [boundary.kind for boundary in entry.context.boundaries]
                for entry in talk.agent.session.entries
                if isinstance(entry, RequestEntry)
            ]
            expired = ["expired"] if ttl == "5m" else []
            assert boundaries[2:] == [expired, [], ["expired"]]
            for said in talk.reported:
                kept_long = said.usage.written if ttl == "1h" else 0
                assert said.usage.written_long == kept_long
            return talk.meanings[2:]

    assert anyio.run(main, "5m") == ["lifetime_passed", "as_expected", "lifetime_passed"]
    assert anyio.run(main, "1h") == ["as_expected", "as_expected", "lifetime_passed"]


def test_a_broken_prefix_is_said_by_the_provider_and_kept_with_the_reply(folder: Path) -> None:
    async def main() -> None:
        async with talking(folder, answer(1)) as talk:
            await talk.ask("One?", "pier1.md")
            await talk.ask("Two?")
            session = talk.agent.session
            name = session.envelope.system[0].name
            await session.set_system(name, f"{SYSTEM} Be kind.", reason="they were sad")
            await talk.ask("Three?")
            replies = [e for e in talk.agent.session.entries if isinstance(e, ReplyEntry)]
            asked = [body["diagnostics"]["previous_message_id"] for body in talk.it.server.bodies]
            assert asked == [None, replies[0].provider_id, replies[1].provider_id]
            assert [reply.missed.partition(",")[0] for reply in replies] == [
                "",
                "",
                "system_changed",
            ]
            verdict = replies[2].verdict
            assert verdict
            assert verdict.meaning == "prefix_moved"
            assert "the provider says: system_changed, about" in verdict.detail

    anyio.run(main)


def test_an_answer_that_was_cut_is_kept_and_the_session_goes_on(folder: Path) -> None:
    async def main() -> None:
        faults = [EmulatedFault(kind="cut", skip=1), EmulatedFault(kind="silent", skip=1)]
        async with talking(folder, answer(1), faults=faults) as talk:
            await talk.ask("One?")
            with pytest.raises(ProviderError, match="the connection broke"):
                await talk.ask("Two?")
            await talk.ask("Three?")
            with pytest.raises(ProviderError, match="what came of it is kept"):
                await talk.ask("Four?")
            await talk.ask("Five?")
            roles = [(m.role, m.text[:8]) for m in talk.agent.session.envelope.cached.since(0)]
            assert [role for role, _ in roles] == ["user", "assistant"] * 5
            assert {text for role, text in roles if role == "assistant"} == {"Answer 1"}

    anyio.run(main)


def test_an_overflow_is_answered_by_a_compaction_whose_request_reads_the_cache(
    folder: Path,
) -> None:
    async def main() -> None:
        faults = [EmulatedFault(kind="overflow", skip=5)]
        settings = {"compaction_keep": 2_500, "compaction_summary": 200}
        long = EmulatedAnswer(text="It is so because of the tide, which comes and goes. " * 150)
        async with talking(folder, long, faults=faults, settings=settings) as talk:
            for number in range(5):
                await talk.ask(f"Question {number}?")
            await talk.ask("And now?")
            summary = talk.it.server.bodies[6]
            assert "summar" in str(summary["messages"][-1]).lower()
            assert "diagnostics" not in summary
            account = talk.it.server.cache_uses[5]
            assert account.read > 0.9 * account.reachable > 2_000
            assert talk.meanings[-1] == "prefix_moved"

    anyio.run(main)


def test_a_recorded_request_is_rebuilt_as_it_was_sent(folder: Path) -> None:
    async def main() -> None:
        async with talking(folder, answer(1), settings={"cache_ttl": "1h"}) as talk:
            await talk.ask("One?", "pier1.md")
            await talk.ask("Two?")
            await talk.agent.session.set_system("mood", "Be kind.", reason="they were sad")
            await talk.ask("Three?", after=4_000.0)
            journal = journal_of(talk.agent.session.entries)
            requests = list_requests(journal)
            for listed, sent in zip(requests.listed, talk.it.server.bodies, strict=True):
                recorded = rebuild_request(journal, requests, listed, BOOK)
                again = anthropic.encode(wire_request(recorded, BOOK, {}))
                assert again | {"stream": True} == sent

    anyio.run(main)
