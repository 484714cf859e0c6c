"""The vendors' own SDKs at the emulators: what people write with them works, as at the vendor."""

from base64 import b64encode
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from google import genai
from google.genai import types
from pydantic import BaseModel
from tests.adapters.workspace.test_pdf_text import make_pdf
from tests.clients.loopback import KEY, LONG, PICTURE, PICTURE_BASE64, SCHEMA, SYSTEM, meet

from lamina.emulators.answers import EmulatedAnswer, EmulatedCall, ScriptedAnswers
from lamina.emulators.anthropic.emulator import AnthropicEmulator
from lamina.emulators.gemini.emulator import GeminiEmulator
from lamina.emulators.openai.emulator import OpenAIEmulator

SONNET = "claude-sonnet-5"
# The form of a signature as Anthropic's own servers write them: base64, of some hundred bytes.
GENUINE = "ErUBCkYIBxgCIkDA" + "Zm9vYmFyYmF6cXV4" * 12
CALL = EmulatedAnswer(calls=(EmulatedCall(name="weather", arguments={"city": "Oslo"}),))


PDF_BASE64 = b64encode(make_pdf("High water at noon.")).decode()


class Weather(BaseModel):
    city: str
    degrees: int


def openai_at(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)


def anthropic_at(url: str) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0)


def gemini_at(url: str) -> Any:
    return genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=url))


# -- OpenAI --------------------------------------------------------------------------------------


def test_openai_parses_an_answer_by_a_model_class() -> None:
    async def use(url: str) -> None:
        completion = await openai_at(url).chat.completions.parse(
            model="gpt-5.6", messages=[{"role": "user", "content": "Oslo?"}],
            response_format=Weather,
        )  # fmt: skip
        parsed = completion.choices[0].message.parsed
        assert parsed == Weather(city="You said: Oslo?", degrees=0)

    meet(OpenAIEmulator(), use)


def test_openai_answers_json_only_where_somebody_says_so() -> None:
    async def use(url: str) -> None:
        client = openai_at(url)
        form: Any = {"type": "json_object"}
        with pytest.raises(openai.BadRequestError, match="must contain the word 'json'"):
            await client.chat.completions.create(
                model="gpt-5.6", messages=[{"role": "user", "content": "Oslo?"}],
                response_format=form,
            )  # fmt: skip
        completion = await client.chat.completions.create(
            model="gpt-5.6", messages=[{"role": "user", "content": "Oslo, as JSON?"}],
            response_format=form,
        )  # fmt: skip
        assert completion.choices[0].message.content == '{"answer":"You said: Oslo, as JSON?"}'

    meet(OpenAIEmulator(), use)


def test_openai_calls_the_tool_that_has_to_be_called() -> None:
    async def use(url: str) -> None:
        tool: Any = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
        completion = await openai_at(url).chat.completions.create(
            model="gpt-5.6",
            messages=[{"role": "user", "content": "Oslo?"}],
            tools=[tool],
            tool_choice="required",
        )
        calls = completion.choices[0].message.tool_calls
        assert calls is not None
        call = calls[0]
        assert call.type == "function"
        assert Weather.model_validate_json(call.function.arguments).degrees == 0

    meet(OpenAIEmulator(), use)


def test_openai_sees_pictures_and_streams_with_figures() -> None:
    async def use(url: str) -> None:
        parts: Any = [
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE_BASE64}"}},
            {"type": "text", "text": "What is it?"},
        ]
        words, usage = "", None
        async for chunk in await openai_at(url).chat.completions.create(
            model="gpt-5.6", messages=[{"role": "user", "content": parts}], stream=True,
            stream_options={"include_usage": True},
        ):  # fmt: skip
            words += "".join(choice.delta.content or "" for choice in chunk.choices)
            usage = chunk.usage or usage
        assert words == "You said: What is it?"
        assert usage is not None
        assert usage.prompt_tokens > 0

    meet(OpenAIEmulator(), use)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"reasoning_effort": "off"}, "Supported values are: 'none', 'minimal'"),
        ({"reasoning_effort": "heroic"}, "Invalid value: 'heroic'"),
        ({"temperature": 0.2}, "'temperature' does not support 0.2 with this model"),
        ({"top_p": 0.5}, "'top_p' does not support 0.5 with this model"),
    ],
)
def test_openai_refuses_what_models_that_reason_do_not_take(
    options: dict[str, Any], problem: str
) -> None:
    async def use(url: str) -> None:
        with pytest.raises(openai.BadRequestError, match=problem):
            await openai_at(url).chat.completions.create(
                model="gpt-5", messages=[{"role": "user", "content": "Hi"}], **options
            )

    meet(OpenAIEmulator(), use)


# -- Anthropic -----------------------------------------------------------------------------------


def test_anthropic_runs_tools_by_the_sdks_own_runner() -> None:
    @anthropic.beta_async_tool
    async def weather(city: str) -> str:
        """The weather in a city.

        Args:
            city: Its name.
        """
        return f"{city}: 7 degrees"

    async def use(url: str) -> None:
        runner = anthropic_at(url).beta.messages.tool_runner(
            model=SONNET, max_tokens=1_000, tools=[weather],
            messages=[{"role": "user", "content": "Oslo?"}],
        )  # fmt: skip
        message = await runner.until_done()
        assert message.content[-1].text == "Seven."  # type: ignore[union-attr]

    emulator = AnthropicEmulator(answers=ScriptedAnswers([CALL, "Seven."]))
    meet(emulator, use)
    result = emulator.bodies[-1]["messages"][-1]["content"][0]
    assert (result["type"], result["content"]) == ("tool_result", "Oslo: 7 degrees")


def test_anthropic_says_all_figures_at_the_end_of_a_stream() -> None:
    async def use(url: str) -> None:
        client = anthropic_at(url)
        system: Any = [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}]
        deltas = []
        for _ in range(2):
            async with client.messages.stream(
                model=SONNET, max_tokens=100, system=system,
                messages=[{"role": "user", "content": "When?"}],
            ) as stream:  # fmt: skip
                deltas += [event async for event in stream if event.type == "message_delta"]
        cold, warm = (delta.usage for delta in deltas)
        assert cold.cache_creation_input_tokens == warm.cache_read_input_tokens
        assert (cold.cache_creation_input_tokens or 0) > 1_024
        assert (cold.cache_read_input_tokens, warm.cache_creation_input_tokens) == (0, 0)
        assert cold.input_tokens == warm.input_tokens
        assert (warm.input_tokens or 0) > 0

    meet(AnthropicEmulator(), use)


def test_anthropic_takes_documents_pictures_and_its_own_tools() -> None:
    async def use(url: str) -> None:
        pdf: Any = {"type": "base64", "media_type": "application/pdf", "data": PDF_BASE64}
        plain: Any = {"type": "text", "media_type": "text/plain", "data": "High water at noon."}
        picture: Any = {"type": "base64", "media_type": "image/png", "data": PICTURE_BASE64}
        message = await anthropic_at(url).messages.create(
            model=SONNET,
            max_tokens=100,
            messages=[
                {
                    "role": "user",
                    "content": [
                        {"type": "document", "source": pdf, "title": "Tides"},
                        {"type": "document", "source": plain, "citations": {"enabled": True}},
                        {"type": "image", "source": picture},
                        {"type": "text", "text": "When?"},
                    ],
                }
            ],
            tools=[
                {"type": "web_search_20250305", "name": "web_search", "max_uses": 2},
                {"type": "code_execution_20250825", "name": "code_execution"},
                {"type": "memory_20250818", "name": "memory"},
            ],
        )
        assert message.content[0].text == "You said: When?"  # type: ignore[union-attr]
        assert message.usage.input_tokens > 2_000

    meet(AnthropicEmulator(), use)


def test_anthropic_takes_thoughts_and_searches_of_its_own_servers_back() -> None:
    async def use(url: str) -> None:
        answer: Any = [
            {"type": "thinking", "thinking": "They ask of Oslo.", "signature": GENUINE},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
             "input": {"query": "Oslo"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
            {"type": "text", "text": "Seven."},
        ]  # fmt: skip
        message = await anthropic_at(url).messages.create(
            model=SONNET,
            max_tokens=100,
            messages=[
                {"role": "user", "content": "Oslo?"},
                {"role": "assistant", "content": answer},
                {"role": "user", "content": "And now?"},
            ],
        )
        assert message.content[0].text == "You said: And now?"  # type: ignore[union-attr]

    meet(AnthropicEmulator(), use)


def test_anthropic_answers_without_a_thought_of_a_model_that_the_other_does_not_read() -> None:
    async def use(url: str) -> None:
        client = anthropic_at(url)
        first: Any = {"role": "user", "content": "Oslo?"}
        thinking: Any = {"type": "adaptive"}
        answer = await client.messages.create(
            model=SONNET, max_tokens=100, messages=[first], thinking=thinking
        )
        history: Any = [
            first,
            {"role": "assistant", "content": answer.content},
            {"role": "user", "content": "And?"},
        ]
        await client.messages.create(model=SONNET, max_tokens=100, messages=history)
        await client.messages.create(model="claude-opus-5", max_tokens=100, messages=history)
        place = "messages.1.content.0"
        same, other = emulator.thinking_checks[1:]
        assert (same.kept, dict(same.dropped)) == ((place,), {})
        assert (other.kept, dict(other.dropped)) == ((), {place: "model_binding_mismatch"})

    thought = EmulatedAnswer(thinking="They ask of Oslo.", text="Seven.")
    emulator = AnthropicEmulator(answers=ScriptedAnswers([thought]))
    meet(emulator, use)


def test_anthropic_parses_an_answer_by_a_model_class() -> None:
    async def use(url: str) -> None:
        message = await anthropic_at(url).messages.parse(
            model=SONNET, max_tokens=100, messages=[{"role": "user", "content": "Oslo?"}],
            output_format=Weather,
        )  # fmt: skip
        assert message.parsed_output == Weather(city="You said: Oslo?", degrees=0)

    meet(AnthropicEmulator(), use)


# -- Gemini --------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemini-3.1-pro"])
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("thinking", ["", "They say hello."])
def test_gemini_chats_go_on(model: str, streamed: bool, thinking: str) -> None:
    async def use(url: str) -> None:
        client = gemini_at(url)
        chat = client.aio.chats.create(model=model)
        for question in ("One?", "Two?", "Three?"):
            if streamed:
                chunks = [c async for c in await chat.send_message_stream(question)]
                answer = "".join(chunk.text or "" for chunk in chunks)
            else:
                response = await chat.send_message(question)
                answer = response.text
                assert len(response.candidates[0].content.parts) == 1
            assert answer == "Quite a few words."
        roles = [content.role for content in chat.get_history(curated=True)]
        assert roles.count("user") == 3
        assert set(roles) == {"user", "model"}

    answer = EmulatedAnswer(text="Quite a few words.", thinking=thinking)
    meet(GeminiEmulator(answers=ScriptedAnswers([answer])), use)


def test_gemini_calls_functions_by_itself() -> None:
    def weather(city: str) -> str:
        """The weather in a city."""
        return f"{city}: 7 degrees"

    async def use(url: str) -> None:
        client = gemini_at(url)
        chat = client.aio.chats.create(
            model="gemini-3.1-pro", config=types.GenerateContentConfig(tools=[weather])
        )
        assert (await chat.send_message("Oslo?")).text == "Seven."
        assert (await chat.send_message("And Rome?")).text == "Seven."

    meet(GeminiEmulator(answers=ScriptedAnswers([CALL, "Seven."])), use)


@pytest.mark.parametrize("form", [Weather, SCHEMA])
def test_gemini_answers_by_a_schema(form: Any) -> None:
    async def use(url: str) -> None:
        schema = {"response_schema": form} if form is Weather else {"response_json_schema": form}
        config = types.GenerateContentConfig(
            response_mime_type="application/json", system_instruction=SYSTEM, **schema
        )
        contents = [types.Part.from_bytes(data=PICTURE, mime_type="image/png"), "Oslo?"]
        client = gemini_at(url)
        response = await client.aio.models.generate_content(
            model="gemini-2.5-flash", contents=contents, config=config
        )
        assert Weather.model_validate_json(response.text).city == "You said: Oslo?"

    meet(GeminiEmulator(), use)


# -- what no vendor has ---------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["gpt-99", "gpt-5.6x"])
def test_openai_has_no_model_of_that_name(model: str) -> None:
    async def use(url: str) -> None:
        client = openai_at(url)
        with pytest.raises(openai.NotFoundError, match=f"The model `{model}` does not exist"):
            await client.chat.completions.create(
                model=model, messages=[{"role": "user", "content": "Hi"}]
            )
        with pytest.raises(openai.NotFoundError) as caught:
            await client.models.retrieve(model)
        assert caught.value.code == "model_not_found"

    meet(OpenAIEmulator(), use)


def test_anthropic_and_gemini_have_no_model_of_that_name() -> None:
    async def ask_anthropic(url: str) -> None:
        with pytest.raises(anthropic.NotFoundError, match="model: claude-nobody"):
            await anthropic_at(url).messages.create(
                model="claude-nobody", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
            )

    async def ask_gemini(url: str) -> None:
        client = gemini_at(url)
        with pytest.raises(genai.errors.ClientError, match="gemini-nobody is not found"):
            await client.aio.models.generate_content(model="gemini-nobody", contents="Hi")

    meet(AnthropicEmulator(), ask_anthropic)
    meet(GeminiEmulator(), ask_gemini)


def test_a_path_that_nobody_serves_is_refused_in_the_vendors_form() -> None:
    async def fetch(url: str, status: int = 404) -> Any:
        async with httpx2.AsyncClient() as client:
            answer = await client.post(f"{url}/v1/nothing")
            assert answer.status_code == status
            return answer.json()

    async def ask_openai(url: str) -> None:
        error = {"message": "Invalid URL (POST /v1/nothing)", "type": "invalid_request_error"}
        assert (await fetch(url))["error"].items() >= error.items()

    async def ask_anthropic(url: str) -> None:
        body = await fetch(url)
        assert body["type"] == "error"
        assert body["error"] == {"type": "not_found_error", "message": "Not Found"}

    async def ask_gemini(url: str) -> None:
        error = (await fetch(url))["error"]
        assert (error["code"], error["status"]) == (404, "NOT_FOUND")

    meet(OpenAIEmulator(), ask_openai)
    meet(AnthropicEmulator(), ask_anthropic)
    meet(GeminiEmulator(), ask_gemini)
