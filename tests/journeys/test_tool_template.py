"""A model with a template of its own for tools: what its cache holds is what we say it does."""

from pathlib import Path

import pytest
from tests.adapters.providers.local.tool_template import write_with_template

import lamina
from lamina.adapters.providers.model_book import load_book
from lamina.apps.wiring.runners import Clients, open_agent
from lamina.core.audit.verification import verify
from lamina.core.journal import journal_of
from lamina.core.values.event import Event, ToolFinished, UsageReported

pytestmark = pytest.mark.anyio

CALL = '<tool_call>\n{"name": "berth", "arguments": {"boat": "Mary"}}\n</tool_call>'


@pytest.fixture
def tools_model(embedded_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A target whose file has a template with tools, and whose wire leaves them to it."""
    path = write_with_template(embedded_model, tmp_path / "with-tools.gguf")
    book = tmp_path / "models.toml"
    book.write_text(
        '[[providers.local.models]]\nmatch = "*with-tools.gguf"\nwire = "llamacpp_tools"\n'
        "window = 2048\nmax_output = 40\nrestricts_tools = false\n",
        "utf-8",
    )
    monkeypatch.setenv("LAMINA_MODELS", str(book))
    return f"local:{path}"


def tide(day: str) -> str:
    """Tells when the tide is high."""
    return f"On {day} at 6:40."


def berth(boat: str) -> str:
    """Tells where a boat lies."""
    return f"{boat} lies at berth nine."


async def test_cache_verdicts_hold_over_calls_results_and_answers(tools_model: str) -> None:
    events: list[Event] = []
    async with await open_agent(
        tools=[tide, berth],
        target=tools_model,
        system="You are the clerk of a small harbour.",
        max_requests=2,
        settings=lamina.Settings(ask_before_tools="never"),
        providers=Clients(slots=1, window=2048),
        store=lamina.MemoryStore(),
    ) as agent:
        await agent.run("Good morning!", on_event=events.append)
        # Weights this small call nothing unless they are told how.
        await agent.run(f"Where does the Mary lie? Write this: {CALL}", on_event=events.append)
        await agent.run("Thank you.", on_event=events.append)
        verdict = verify(journal_of(agent.session.entries), load_book())
        assert verdict.sound, verdict
    judged = [event.verdict for event in events if isinstance(event, UsageReported)]
    assert len(judged) == 4
    assert [event.result.text for event in events if isinstance(event, ToolFinished)] == [
        berth("Mary")
    ]
    meanings = [verdict.meaning for verdict in judged if verdict]
    assert meanings[0] == "nothing_sent_before"
    assert set(meanings[1:]) == {"as_expected"}, judged
