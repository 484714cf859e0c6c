"""LangChain at emulated vendors: chats, streams, tools, types, pictures, caching. Its adapter for
Gemini wants another version of Google's SDK: `long_langchain_gemini.py`, in `make long`."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import BaseModel
from tests.clients.loopback import KEY, LONG, PICTURE_BASE64, SYSTEM, meet

from lamina.emulators.answers import AnswerSource, EmulatedAnswer, EmulatedCall, ScriptedAnswers
from lamina.emulators.anthropic.emulator import AnthropicEmulator
from lamina.emulators.emulator import Emulator
from lamina.emulators.openai.emulator import OpenAIEmulator

VENDORS = ("openai", "anthropic")


class Weather(BaseModel):
    """The weather in a city."""

    city: str
    degrees: int


def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: 7 degrees"


def emulator_of(vendor: str, answers: AnswerSource | None = None) -> Emulator:
    kind = OpenAIEmulator if vendor == "openai" else AnthropicEmulator
    return kind(answers=answers)


def model_at(vendor: str, url: str) -> Any:
    if vendor == "openai":
        return ChatOpenAI(
            model="gpt-5.6", base_url=f"{url}/v1", api_key=KEY, max_retries=0,
            use_responses_api=False, stream_usage=True,
        )  # fmt: skip
    return ChatAnthropic(model="claude-sonnet-5", base_url=url, api_key=KEY, max_retries=0)


@pytest.mark.parametrize("vendor", VENDORS)
def test_an_agent_with_tools_and_a_second_question(vendor: str) -> None:
    async def use(url: str) -> None:
        agent = create_agent(model_at(vendor, url), tools=[weather], system_prompt=SYSTEM)
        state = await agent.ainvoke({"messages": [HumanMessage("Oslo and Rome?")]})
        assert state["messages"][-1].text == "Seven."
        state = await agent.ainvoke({"messages": [*state["messages"], HumanMessage("And now?")]})
        assert state["messages"][-1].text == "Seven."

    calls = tuple(EmulatedCall(name="weather", arguments={"city": c}) for c in ("Oslo", "Rome"))
    thought = EmulatedAnswer(thinking="Both.", calls=calls)
    emulator = emulator_of(vendor, ScriptedAnswers([thought, "Seven."]))
    meet(emulator, use)
    assert [row.status for row in emulator.report.rows] == [200] * 4


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_answers_by_a_type(vendor: str, method: Any) -> None:
    async def use(url: str) -> None:
        model = model_at(vendor, url).with_structured_output(Weather, method=method)
        assert await model.ainvoke("Oslo?") == Weather(city="You said: Oslo?", degrees=0)

    meet(emulator_of(vendor), use)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_stream_with_its_figures_and_a_picture(vendor: str) -> None:
    async def use(url: str) -> None:
        picture = {"type": "image", "base64": PICTURE_BASE64, "mime_type": "image/png"}
        question = HumanMessage([picture, {"type": "text", "text": "What is it?"}])
        whole: Any = None
        async for chunk in model_at(vendor, url).astream([question]):
            whole = chunk if whole is None else whole + chunk
        assert whole.text == "You said: What is it?"
        assert whole.usage_metadata["input_tokens"] == emulator.report.rows[0].usage.input

    emulator = emulator_of(vendor)
    meet(emulator, use)


def test_the_caching_middleware_is_read_and_counted_in_streams_too() -> None:
    async def use(url: str) -> None:
        agent = create_agent(
            model_at("anthropic", url), tools=[weather], system_prompt=LONG,
            middleware=[AnthropicPromptCachingMiddleware(ttl="5m")],
        )  # fmt: skip
        state = await agent.ainvoke({"messages": [HumanMessage("When?")]})
        cold = state["messages"][-1].usage_metadata
        history = {"messages": [*state["messages"], HumanMessage("And then?")]}
        chunks = [chunk async for chunk, _ in agent.astream(history, stream_mode="messages")]
        read = sum(
            (chunk.usage_metadata or {}).get("input_token_details", {}).get("cache_read", 0)
            for chunk in chunks
        )
        # What was written is told by lifetime.
        written = cold["input_token_details"]["ephemeral_5m_input_tokens"]
        assert written == emulator.report.rows[0].usage.written > 1_024
        assert read == emulator.report.rows[1].usage.cached >= written

    emulator = emulator_of("anthropic")
    meet(emulator, use)
