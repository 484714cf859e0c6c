"""An emulated OpenAI, asked through OpenAI's own SDK: what it refuses, and what it keeps."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import openai
import pytest

from lamina.emulators.answers import EmulatedAnswer, EmulatedCall, ScriptedAnswers
from lamina.emulators.emulator import serve_emulator
from lamina.emulators.openai.emulator import OpenAIEmulator

JSON = dict[str, Any]
USER: JSON = {"role": "user", "content": "What time is it?"}
TOOL: JSON = {
    "type": "function",
    "function": {"name": "clock", "parameters": {"type": "object", "properties": {}}},
}
CALLING: JSON = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
    ],
}
RESULT: JSON = {"role": "tool", "tool_call_id": "c", "content": "noon"}
MARKED: JSON = {"type": "text", "text": "Hi", "prompt_cache_breakpoint": {"mode": "explicit"}}


@asynccontextmanager
async def served(**given: Any) -> AsyncIterator[tuple[OpenAIEmulator, openai.AsyncOpenAI, str]]:
    emulator = OpenAIEmulator(**given)
    async with serve_emulator(emulator) as url:
        client = openai.AsyncOpenAI(api_key="sk-test", base_url=f"{url}/v1", max_retries=0)
        async with client:
            yield emulator, client, url


async def create(client: openai.AsyncOpenAI, body: JSON) -> Any:
    asking: Any = client.chat.completions.create
    return await asking(**body)


def body(*messages: JSON, model: str = "gpt-4o", **fields: Any) -> JSON:
    return {"model": model, "messages": list(messages), **fields}


REFUSED: list[tuple[JSON, str, str | None]] = [
    (body(), "empty array", "empty_array"),
    (body({"role": "judge", "content": "x"}), "Invalid value: 'judge'", "invalid_value"),
    (body({"role": "user", "content": None}), "expected a string, got null", None),
    (body({"role": "user", "content": []}), "expected a string", None),
    (body({"role": "assistant", "content": None}), "expected a string, got null", None),
    (body(USER, RESULT), "must be a response to a preceeding message", None),
    (body(USER, CALLING), "did not have response messages: c", None),
    (body(USER, CALLING, USER), "did not have response messages: c", None),
    (body(USER, CALLING, RESULT, RESULT), "must be a response", None),
    (body(USER, CALLING | {"tool_calls": []}), "empty array", "empty_array"),
    (body({"role": "system", "content": [{"type": "image_url"}]}, USER), "'image_url'", None),
    (
        body({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}),
        "unsupported image",
        "invalid_image_format",
    ),
    (body(USER, tools=[]), "Invalid 'tools'", "empty_array"),
    (body(USER, tools=[TOOL | {"function": {"name": "a b"}}]), "does not match pattern", None),
    (
        body(USER, tools=[TOOL | {"function": {"name": "a", "parameters": {"type": "string"}}}]),
        "Invalid schema for function 'a'",
        "invalid_function_parameters",
    ),
    (body(USER, tool_choice="auto"), "only allowed when 'tools' are specified", None),
    (
        body(
            USER,
            tools=[TOOL],
            tool_choice={
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "auto",
                    "tools": [{"type": "function", "function": {"name": "other"}}],
                },
            },
        ),
        "Tool choice 'other' not found",
        None,
    ),
    (body(USER, extra_body={"surprise": 1}), "Unrecognized request argument supplied: surpr", None),
    (body(USER, stream_options={"include_usage": True}), "only allowed when 'stream'", None),
    (body(USER, temperature=3), "decimal above maximum", "decimal_above_max_value"),
    (body(USER, max_completion_tokens=99_999_999), "max_tokens is too large", "invalid_value"),
    (body(USER, model="gpt-5", max_tokens=9), "Use 'max_compl", "unsupported_parameter"),
    (body(USER, prompt_cache_key="k" * 65), "string too long", "string_above_max_length"),
    (
        body(USER, prompt_cache_options={"mode": "explicit"}),
        "'prompt_cache_options' is not supported with this model",
        "unsupported_parameter",
    ),
    (
        body({"role": "user", "content": [MARKED]}),
        "'prompt_cache_breakpoint' is not supported",
        "unsupported_parameter",
    ),
    (
        body(USER, {"role": "assistant", "content": [MARKED]}, USER, model="gpt-5.6"),
        "'prompt_cache_breakpoint' is not supported",
        "unsupported_parameter",
    ),
    (
        body(USER, model="gpt-5.6", prompt_cache_options={"ttl": "12h"}),
        "ttl '30m'",
        "invalid_value",
    ),
    (
        body({"role": "user", "content": "word " * 8_300}, model="gpt-4"),
        "maximum context length is 8192 tokens. However, your messages resulted in 83",
        "context_length_exceeded",
    ),
]  # fmt: skip


def test_what_openai_refuses_is_refused_in_its_words() -> None:
    async def main() -> None:
        async with served() as (emulator, client, _):
            for request, said, code in REFUSED:
                with pytest.raises(openai.BadRequestError) as caught:
                    await create(client, request)
                error: Any = caught.value.body
                assert said in error["message"]
                assert error["type"] == "invalid_request_error"
                assert code is None or error["code"] == code
            assert {row.status for row in emulator.report.rows} == {400}
            assert emulator.report.rows[-1].cost == 0

    anyio.run(main)


def test_what_is_right_is_answered() -> None:
    accepted = [
        body(USER),
        body({"role": "developer", "content": "Hm."}, USER, {"role": "system", "content": "!"}),
        body(USER, USER),
        body(USER, CALLING, RESULT, tools=[TOOL]),
        body({"role": "user", "content": [MARKED]}, model="gpt-5.6"),
        body(USER, model="o3", max_completion_tokens=9, reasoning_effort="low"),
        body({"role": "user", "content": "In JSON."}, response_format={"type": "json_object"}),
        # Servers that only speak the wire do not mind what they do not know.
        body(USER, model="qwen3", extra_body={"surprise": 1}, max_tokens=9),
    ]  # fmt: skip

    async def main() -> None:
        async with served() as (_, client, _):
            for request in accepted:
                reply = await create(client, request)
                assert reply.choices[0].finish_reason in ("stop", "length")
                assert reply.usage.total_tokens > reply.usage.prompt_tokens

    anyio.run(main)


def test_a_key_is_wanted_for_openais_models_only() -> None:
    async def main() -> None:
        async with served() as (_, client, _):
            mute = client.with_options(default_headers={"Authorization": ""})
            with pytest.raises(openai.AuthenticationError, match="didn't provide an API key"):
                await create(mute, body(USER))
            assert (await create(mute, body(USER, model="llama"))).choices

    anyio.run(main)


def test_the_sdks_own_helper_reads_the_stream() -> None:
    said = EmulatedAnswer(
        text="Let me see what time it is.",
        calls=(EmulatedCall(name="clock", arguments={"zone": "Europe/Oslo"}),),
    )

    async def main() -> None:
        async with served(answers=ScriptedAnswers([said])) as (_, client, _):
            asking: Any = client.chat.completions.stream
            options = {"include_usage": True}
            async with asking(**body(USER, tools=[TOOL]), stream_options=options) as stream:
                kinds = [event.type async for event in stream]
                final = await stream.get_final_completion()
            assert "content.delta" in kinds
            assert "tool_calls.function.arguments.done" in kinds
            message = final.choices[0].message
            assert message.content == said.text
            assert json.loads(message.tool_calls[0].function.arguments) == {"zone": "Europe/Oslo"}
            assert final.choices[0].finish_reason == "tool_calls"
            assert final.usage.prompt_tokens > 0

    anyio.run(main)


def test_time_passes_as_it_is_told_and_the_report_says_what_was_paid() -> None:
    long = body({"role": "system", "content": "word " * 2_000}, USER, prompt_cache_key="k")

    async def main() -> None:
        async with served() as (_, client, url), httpx2.AsyncClient(base_url=url) as control:
            await create(client, long)
            await create(client, long)
            await control.post("/emulator/clock", json={"move": 301})
            await create(client, long)
            report = (await control.get("/report")).json()
            assert [row["usage"].get("cached", 0) for row in report["rows"]] == [0, 1_920, 0]
            missed = [row["missed"] for row in report["rows"]]
            assert missed == ["nothing_sent_before", "", "expired"]
            # Half price for what was read.
            saved = report["total"]["uncached_cost"] - report["total"]["cost"]
            assert saved == pytest.approx(1_920 * 2.5e-6 / 2)
            assert (await client.models.list()).data[0].id == "gpt-4o"
            assert (await client.models.retrieve("vllm/any")).id == "vllm/any"

    anyio.run(main)
