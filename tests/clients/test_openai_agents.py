"""The OpenAI Agents SDK, with its chat-completions model, at emulated vendors."""

from typing import Any

import openai
import pytest
from agents import Agent, ModelSettings, Runner, function_tool, set_tracing_disabled
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from pydantic import BaseModel
from tests.clients.loopback import KEY, LONG, PICTURE_BASE64, SYSTEM, meet

from lamina.emulators.answers import EmulatedAnswer, EmulatedCall, ScriptedAnswers
from lamina.emulators.openai.emulator import OpenAIEmulator

MODELS = ("gpt-4o", "gpt-5.6")


class Weather(BaseModel):
    city: str
    degrees: int


def look_up_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: 7 degrees"


weather = function_tool(look_up_weather, name_override="weather")


def agent_at(url: str, model: str, **options: Any) -> Agent[Any]:
    set_tracing_disabled(True)
    client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)
    chat = OpenAIChatCompletionsModel(model=model, openai_client=client)
    return Agent(name="Harbour", model=chat, **({"instructions": SYSTEM} | options))


@pytest.mark.parametrize("model", MODELS)
def test_a_chat_with_tools_and_a_second_question(model: str) -> None:
    async def use(url: str) -> None:
        agent = agent_at(url, model, tools=[weather])
        first = await Runner.run(agent, "Oslo?")
        assert first.final_output == "Seven."
        question: Any = {"role": "user", "content": "And Rome?"}
        second = await Runner.run(agent, [*first.to_input_list(), question])
        assert second.final_output == "Seven."

    calls = (
        EmulatedCall(name="weather", arguments={"city": "Oslo"}),
        EmulatedCall(name="weather", arguments={"city": "Rome"}),
    )
    answers = ScriptedAnswers([EmulatedAnswer(calls=calls), "Seven."])
    emulator = OpenAIEmulator(answers=answers)
    meet(emulator, use)
    assert [row.status for row in emulator.report.rows] == [200] * 4


@pytest.mark.parametrize("model", MODELS)
def test_an_answer_by_a_type(model: str) -> None:
    async def use(url: str) -> None:
        result = await Runner.run(agent_at(url, model, output_type=Weather), "Oslo?")
        assert result.final_output == Weather(city="You said: Oslo?", degrees=0)

    meet(OpenAIEmulator(), use)


def test_a_stream_and_a_picture() -> None:
    async def use(url: str) -> None:
        url_of_picture = f"data:image/png;base64,{PICTURE_BASE64}"
        content: Any = [
            {"type": "input_image", "image_url": url_of_picture, "detail": "auto"},
            {"type": "input_text", "text": "What is it?"},
        ]
        question: Any = {"role": "user", "content": content}
        result = Runner.run_streamed(agent_at(url, "gpt-5.6"), [question])
        kinds = {event.type async for event in result.stream_events()}
        assert "raw_response_event" in kinds
        assert result.final_output == "You said: What is it?"

    meet(OpenAIEmulator(), use)


def test_what_is_read_from_the_cache_is_told() -> None:
    async def use(url: str) -> None:
        settings = ModelSettings(include_usage=True)
        agent = agent_at(url, "gpt-4o", instructions=LONG, model_settings=settings)
        cold, warm = [await Runner.run(agent, "When?") for _ in range(2)]
        read = [
            run.context_wrapper.usage.input_tokens_details.cached_tokens for run in (cold, warm)
        ]
        assert read[0] == 0
        assert read[1] > 1_024

    meet(OpenAIEmulator(), use)
