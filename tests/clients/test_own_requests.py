"""What Lamina prepares, sent through the vendors' own SDKs: nothing in it is refused, and what is
left out is told."""

from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types
from tests.adapters.formats.samples import cc_part, cc_said, lines, outcome, use
from tests.clients.loopback import KEY, meet

from lamina.adapters.stores.memory import MemoryStore
from lamina.apps.wiring.session_importer import import_data
from lamina.apps.wiring.sessions import open_session
from lamina.core.values.envelope import Options
from lamina.emulators.answers import EmulatedAnswer, ScriptedAnswers
from lamina.emulators.anthropic.emulator import AnthropicEmulator
from lamina.emulators.emulator import Emulator
from lamina.emulators.gemini.emulator import GeminiEmulator
from lamina.emulators.openai.emulator import OpenAIEmulator
from lamina.engine.session.turn import Turn

TARGETS = ("openai:gpt-5", "anthropic:claude-sonnet-5", "gemini:gemini-3.1-pro-preview")
# A session of pi in which thinking was switched off.
PI = lines(
    {"type": "session", "version": 3, "id": "s", "timestamp": "2026-11-01T10:00:00Z", "cwd": "/"},
    {"type": "thinking_level_change", "id": "a", "parentId": None,
     "timestamp": "2026-11-01T10:00:01Z", "thinkingLevel": "off"},
    {"type": "message", "id": "b", "parentId": "a", "timestamp": "2026-11-01T10:00:02Z",
     "message": {"role": "user", "content": "Hello?"}},
    {"type": "message", "id": "c", "parentId": "b", "timestamp": "2026-11-01T10:00:03Z",
     "message": {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]}},
)  # fmt: skip
# A session of Claude Code in which the second of two tools was done first.
CLAUDE = lines(
    cc_said("q1", None, "Both?"),
    cc_part("a1", "q1", "msg_1", use("t1", command="one"), use("t2", command="two")),
    cc_said("r2", "a1", [outcome("t2", "two")]),
    cc_said("r1", "r2", [outcome("t1", "one")]),
    cc_part("a2", "r1", "msg_2", {"type": "text", "text": "Both."}),
)


def emulator_of(target: str) -> Emulator:
    kinds: dict[str, type[Emulator]] = {
        "openai": OpenAIEmulator, "anthropic": AnthropicEmulator, "gemini": GeminiEmulator,
    }  # fmt: skip
    return kinds[target.partition(":")[0]]()


async def send(turn: Turn, url: str) -> Turn:
    """Sends a request as a person with a client of their own does."""
    request = turn.request()
    match turn.target.partition(":")[0]:
        case "openai":
            chat = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)
            return await turn.commit(await chat.chat.completions.create(**request))
        case "anthropic":
            claude = anthropic.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0)
            return await turn.commit(await claude.messages.create(**request))
        case _:
            gemini = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=url))
            return await turn.commit(await gemini.aio.models.generate_content(**request))


@pytest.mark.parametrize("target", TARGETS)
def test_thinking_that_was_off_in_pi_is_no_option_anywhere(target: str) -> None:
    async def ask(url: str) -> None:
        store = MemoryStore()
        report = await import_data(PI, name="pi.jsonl", session="s", store=store)
        async with await open_session(report.session, store=store, target=target) as session:
            turn = await session.prepare("And now?")
            assert turn.options.reasoning == "off"
            assert (await send(turn, url)).answer == "You said: And now?"
            assert turn.warnings == ()

    meet(emulator_of(target), ask)


@pytest.mark.parametrize(
    ("target", "untaken"),
    [
        ("openai:gpt-5", ["temperature", "top_p"]),
        ("openai:gpt-4o", []),
        ("anthropic:claude-sonnet-5", ["temperature", "top_p"]),
        ("anthropic:claude-haiku-4-5", ["top_p"]),
        ("gemini:gemini-3.1-pro-preview", []),
    ],
)
def test_what_a_vendor_refuses_is_left_out_and_told(target: str, untaken: list[str]) -> None:
    async def ask(url: str) -> None:
        options = Options(temperature=0.5, top_p=0.9)
        async with await open_session(store=MemoryStore(), target=target, options=options) as own:
            turn = await own.prepare("Hello?")
            await send(turn, url)
            assert len(turn.warnings) == len(untaken)
            for name, warning in zip(untaken, turn.warnings, strict=True):
                assert name in warning
                assert "not sent" in warning

    meet(emulator_of(target), ask)


@pytest.mark.parametrize("target", TARGETS)
def test_results_that_came_in_another_order_are_taken_everywhere(target: str) -> None:
    async def ask(url: str) -> None:
        store = MemoryStore()
        report = await import_data(CLAUDE, name="claude.jsonl", session="s", store=store)
        assert report.problems == ()
        async with await open_session(report.session, store=store, target=target) as session:
            assert (await send(await session.prepare("Why?"), url)).answer == "You said: Why?"

    meet(emulator_of(target), ask)


def test_thinking_does_not_follow_to_another_model() -> None:
    async def ask(url: str) -> None:
        sonnet, opus = "anthropic:claude-sonnet-5", "anthropic:claude-opus-5"
        async with await open_session(store=MemoryStore(), target=sonnet) as session:
            await send(await session.prepare("One?"), url)
            again = await session.prepare("Two?")
            assert "thinking" in kinds(again)
            await send(again, url)
            moved = await session.prepare("Three?", target=opus)
            assert "thinking" not in kinds(moved)
            await send(moved, url)
            back = await session.prepare("Four?", target=sonnet)
            assert "thinking" in kinds(back)
            await send(back, url)

    def kinds(turn: Turn) -> set[str]:
        messages: list[dict[str, Any]] = turn.request()["messages"]
        return {block["type"] for message in messages for block in message["content"]}

    answer = EmulatedAnswer(thinking="They count.", text="Indeed.")
    meet(AnthropicEmulator(answers=ScriptedAnswers([answer])), ask)


@pytest.mark.parametrize("model", ["fable-5-1", "opus-5-5", "sonnet-5-5", "haiku-5-5"])
@pytest.mark.parametrize("created", ["2026-08-30", "2026-08-31"])
def test_a_model_that_binds_its_thinking_gets_all_of_it_back_and_drops_none(
    model: str, created: str
) -> None:
    async def ask(url: str) -> None:
        target = f"anthropic:claude-{model}"
        options = Options(temperature=0.5, reasoning="low", schema={"type": "object"})
        async with await open_session(
            store=MemoryStore(), target=target, system="Be terse.", options=options
        ) as session:
            for number in range(3):
                await send(await session.prepare(f"Question {number}?"), url)

    answer = EmulatedAnswer(
        thinking="They ask.", text="{}", then=EmulatedAnswer(thinking="Indeed.", text="Truly.")
    )
    emulator = AnthropicEmulator(answers=ScriptedAnswers([answer]), account_since=created)
    meet(emulator, ask)
    last = emulator.thinking_checks[-1]
    assert last.kept == tuple(f"messages.{m}.content.{b}" for m in (1, 3) for b in (0, 2))
    assert last.transformations() == []
