"""Pydantic AI at emulated vendors: default requests, tools, streams, types, pictures, caching."""

from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, NativeOutput
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
from tests.clients.loopback import KEY, LONG, PICTURE, SYSTEM, meet

from lamina.emulators.answers import AnswerSource, EmulatedAnswer, EmulatedCall, ScriptedAnswers
from lamina.emulators.anthropic.emulator import AnthropicEmulator
from lamina.emulators.emulator import Emulator
from lamina.emulators.gemini.emulator import GeminiEmulator
from lamina.emulators.openai.emulator import OpenAIEmulator

VENDORS = ("openai", "anthropic", "gemini")


class Weather(BaseModel):
    city: str
    degrees: int


def emulator_of(vendor: str, answers: AnswerSource | None = None) -> Emulator:
    kinds: dict[str, type[Emulator]] = {
        "openai": OpenAIEmulator, "anthropic": AnthropicEmulator, "gemini": GeminiEmulator,
    }  # fmt: skip
    return kinds[vendor](answers=answers)


def model_at(vendor: str, url: str) -> Any:
    match vendor:
        case "openai":
            provider: Any = OpenAIProvider(base_url=f"{url}/v1", api_key=KEY)
            return OpenAIChatModel("gpt-5.6", provider=provider)
        case "anthropic":
            provider = AnthropicProvider(base_url=url, api_key=KEY)
            return AnthropicModel("claude-sonnet-5", provider=provider)
        case _:
            provider = GoogleProvider(base_url=url, api_key=KEY)
            return GoogleModel("gemini-3.1-pro", provider=provider)


def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: 7 degrees"


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_chat_with_tools_and_a_second_question(vendor: str) -> None:
    calls = tuple(EmulatedCall(name="weather", arguments={"city": c}) for c in ("Oslo", "Rome"))
    thought = EmulatedAnswer(thinking="Both.", calls=calls)

    async def use(url: str) -> None:
        agent = Agent(model_at(vendor, url), instructions=SYSTEM, tools=[weather])
        first = await agent.run("Oslo and Rome?")
        assert first.output == "Seven."
        second = await agent.run("And now?", message_history=first.all_messages())
        assert second.output == "Seven."

    emulator = emulator_of(vendor, ScriptedAnswers([thought, "Seven."]))
    meet(emulator, use)
    assert [row.status for row in emulator.report.rows] == [200] * 4


@pytest.mark.parametrize("vendor", VENDORS)
def test_answers_by_a_type_through_a_tool_and_by_the_vendors_own_means(vendor: str) -> None:
    async def use(url: str) -> None:
        for output in (Weather, NativeOutput(Weather)):
            agent: Any = Agent(model_at(vendor, url), output_type=output)
            result = await agent.run("Oslo?")
            assert result.output == Weather(city="You said: Oslo?", degrees=0)

    meet(emulator_of(vendor), use)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_stream_and_a_picture(vendor: str) -> None:
    async def use(url: str) -> None:
        agent = Agent(model_at(vendor, url), instructions=SYSTEM)
        picture = BinaryContent(PICTURE, media_type="image/png")
        async with agent.run_stream([picture, "What is it?"]) as run:
            words = [piece async for piece in run.stream_text(delta=True)]
        assert "".join(words) == "You said: What is it?"
        assert run.usage.input_tokens > 0

    meet(emulator_of(vendor), use)


def test_caching_at_anthropic_is_read_and_counted() -> None:
    async def use(url: str) -> None:
        settings = AnthropicModelSettings(
            anthropic_cache_instructions=True,
            anthropic_cache_tool_definitions=True,
            anthropic_cache_messages=True,
        )
        agent = Agent(
            model_at("anthropic", url), instructions=LONG, tools=[weather], model_settings=settings
        )
        cold = await agent.run("When?")
        async with agent.run_stream("And then?", message_history=cold.all_messages()) as warm:
            await warm.get_output()
        assert cold.usage.cache_write_tokens > 1_024
        assert warm.usage.cache_read_tokens >= cold.usage.cache_write_tokens

    meet(emulator_of("anthropic"), use)
