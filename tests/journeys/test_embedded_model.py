"""The embedded model at work: its own refusal of what is too long, tools, and being stopped."""

import re
import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.fakes.replies import openai_reply

import lamina
from lamina.adapters.providers.model_book import load_book
from lamina.apps.wiring.runners import Clients, open_agent, open_chat, open_qa
from lamina.core.audit.verification import verify
from lamina.core.journal import journal_of
from lamina.core.values.event import (
    BlockDelta,
    Event,
    PromptProgress,
    RequestRetried,
    ToolFinished,
    ToolStarted,
    UsageReported,
)
from lamina.core.values.message import ToolCall
from lamina.core.values.tool import Decision, OfferedTool

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def short_answers(tmp_path: Path, model_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "models.toml"
    path.write_text("[providers.local]\nmax_output = 40\n")
    monkeypatch.setenv("LAMINA_MODELS", str(path))


async def require_sound(chat: lamina.ChatRunner | lamina.QaRunner) -> None:
    verdict = verify(journal_of(chat.session.entries), load_book())
    assert verdict.sound, verdict


async def test_what_the_model_refuses_as_too_long_is_compacted_and_asked_again() -> None:
    # The session believes in 8,192 tokens; the model was given 700.
    events: list[Event] = []
    async with await open_chat(
        system="You keep the log of a harbour.",
        providers=Clients(slots=1, window=700),
        store=lamina.MemoryStore(),
        settings=lamina.Settings(compaction_keep=200, compaction_summary=150),
    ) as chat:
        for number in range(5):
            boats = ", ".join(f"boat {number}{each} came in at {each}:30" for each in range(12))
            answer = await chat.run(f"Note that {boats}. Say yes.", on_event=events.append)
            assert answer.ending == "answered"
        assert any(isinstance(event, RequestRetried) for event in events)
        assert chat.session.compactions
        await require_sound(chat)


class Yes:
    def __init__(self) -> None:
        self.asked: list[ToolCall] = []

    async def decide(self, call: ToolCall, tool: OfferedTool) -> Decision:
        self.asked.append(call)
        return "allow_session"


async def test_a_model_without_tools_of_its_own_calls_ours() -> None:
    def weather(city: str) -> str:
        """Tells the weather in a city."""
        return f"It rains in {city}, 12 degrees."

    approver = Yes()
    events: list[Event] = []
    async with await open_agent(
        tools=[weather],
        approver=approver,
        max_requests=4,
        providers=Clients(slots=1, window=2048),
        store=lamina.MemoryStore(),
    ) as agent:
        answer = await agent.run("What is the weather in Oslo?", on_event=events.append)
        ran = [event.result for event in events if isinstance(event, ToolFinished)]
        called = [event.call for event in events if isinstance(event, ToolStarted)]
        # Whatever a small model makes of it: what it calls is whole, and every call has its result.
        assert called
        assert called[0].name == "weather"
        assert [result.call_id for result in ran] == [call.id for call in called]
        assert approver.asked == called[:1]
        assert answer.ending in ("answered", "limit")
        assert (await agent.run("Thank you.")).ending in ("answered", "limit")


async def test_the_model_does_not_go_on_with_the_persons_next_message() -> None:
    frame = "---\n\n[User query]:\n\n"
    async with await open_chat(
        providers=Clients(slots=1, window=2048), store=lamina.MemoryStore()
    ) as chat:
        # An answer that did, as older sessions have them: a small model does as it did before.
        turn = await chat.session.prepare(f"{frame}Hi")
        await turn.commit(openai_reply(f"Hello.\n\n{frame}Hi\n\nHello.\n\n{frame}Hi"))
        events: list[Event] = []
        answer = await chat.run(f"{frame}Hi", on_event=events.append)
        streamed = [event.text for event in events if isinstance(event, BlockDelta)]
        assert answer.text.strip() == "Hello."
        assert "".join(streamed).strip() == "Hello."
        # What was not kept is not expected in the cache, either.
        later: list[Event] = []
        await chat.run("And?", on_event=later.append)
        (verdict,) = [event.verdict for event in later if isinstance(event, UsageReported)]
        assert verdict is not None
        assert verdict.meaning == "as_expected"
        await require_sound(chat)


async def test_reading_can_be_stopped_and_the_session_goes_on() -> None:
    async with await open_chat(
        providers=Clients(slots=1, window=8192), store=lamina.MemoryStore()
    ) as chat:
        long = " ".join(f"Berth {number} is {number} metres long." for number in range(350))

        def stop(event: Event) -> None:
            if isinstance(event, PromptProgress):
                chat.abort()

        stopped = await chat.run(long, on_event=stop)
        assert (stopped.ending, stopped.text) == ("aborted", "")
        assert chat.session.interrupted
        with anyio.fail_after(60):
            assert (await chat.run("Say hello.")).ending == "answered"
        await require_sound(chat)


async def test_a_model_by_its_path(embedded_model: Path, tmp_path: Path) -> None:
    mine = tmp_path / "my own.gguf"
    shutil.copy(embedded_model, mine)
    options: dict[str, Any] = {"store": lamina.MemoryStore(), "target": f"local:{mine}"}
    async with await open_chat(providers=Clients(slots=1, window=1024), **options) as chat:
        answer = await chat.run("Say hello.")
        assert answer.text
        assert answer.usage.input


# How the grammar lets an answer begin that needs no mark.
UNKNOWN = re.compile(
    r"I (do not|don't) know|I'm sorry|Sorry|There is no (information|mention)"
    r"|The ((provided|given|search) )?(passages|notes|documents|text) do(es)? not"
)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
async def test_a_model_that_would_not_cite_is_held_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, temperature: float
) -> None:
    own = tmp_path / "own-models.toml"
    own.write_text("[providers.local]\nmax_output = 120\n")
    monkeypatch.setenv("LAMINA_MODELS", str(own))
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "quay.md").write_text("# Quay\n\nThe north quay has nine berths for ferries.\n")
    (notes / "ferry.md").write_text("# Ferry\n\nThe ferry leaves the north quay at six.\n")
    async with await open_qa(
        workspace=notes,
        providers=Clients(slots=1, window=2048),
        store=lamina.MemoryStore(),
        settings=lamina.Settings(temperature=temperature),
    ) as qa:
        answer = await qa.run("How many berths does the north quay have?")
        assert answer.turn is not None
        text = answer.turn.answer
        numbers = {int(number) for number in re.findall(r"\[\^(\d+)\]", text)}
        assert numbers <= {1, 2}
        # It comes to its end behind a mark, or says that it does not know, unless it is cut: for
        # its length, or going in circles. A drawn answer may be cut before its first mark.
        if answer.turn.stop_reason == "stop":
            assert text.rstrip(".!?").endswith("]") or UNKNOWN.match(text), text
        if temperature == 0.0:
            assert numbers, text
        assert {source.path for source in answer.sources} <= {"quay.md", "ferry.md"}
        await require_sound(qa)
