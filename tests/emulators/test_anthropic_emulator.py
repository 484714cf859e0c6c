"""The emulated API refuses what the real one does, in its words, and says what things cost."""

from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import Any

import anthropic
import anyio
import httpx2
import pytest
from tests.adapters.providers.clients.anthropic_server import body, hello
from tests.adapters.providers.strict import png

from lamina.emulators.answers import EmulatedAnswer, EmulatedCall, ScriptedAnswers
from lamina.emulators.anthropic.emulator import AnthropicEmulator
from lamina.emulators.emulator import serve_emulator

JSON = dict[str, Any]
MARK = {"type": "ephemeral"}
LONG = "The quick brown fox jumps over the lazy dog. " * 200
CLOCK = {"name": "clock", "input_schema": {"type": "object", "properties": {}}}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "clock", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "noon"}


def run(use: Callable[[anthropic.AsyncAnthropic, AnthropicEmulator], Awaitable[None]]) -> None:
    async def main() -> None:
        server = AnthropicEmulator(answers=ScriptedAnswers(["Yes."]))
        async with (
            serve_emulator(server) as url,
            anthropic.AsyncAnthropic(
                api_key="key", base_url=url, max_retries=0, timeout=30.0
            ) as client,
        ):
            await use(client, server)

    anyio.run(main)


def said(role: str, *blocks: JSON) -> JSON:
    return {"role": role, "content": list(blocks)}


def text(words: str) -> JSON:
    return {"type": "text", "text": words}


def picture(media: str, data: bytes) -> JSON:
    source = {"type": "base64", "media_type": media, "data": b64encode(data).decode()}
    return {"type": "image", "source": source}


LATE = CLOCK | {"name": "late", "defer_loading": True}
NAMED = RESULT | {"content": [{"type": "tool_reference", "tool_name": "late"}]}


def naming(*tools: JSON, **given: Any) -> JSON:
    """A request whose last result names the tool `late`."""
    return body(hello(), said("assistant", CALL), said("user", NAMED), tools=list(tools), **given)


REFUSED: dict[str, tuple[JSON, str]] = {
    "deferred tools alone": (naming(LATE), "All tools cannot be deferred"),
    "a name without a definition": (naming(CLOCK), "Tool reference 'late' not found"),
    "a name of what is not deferred": (
        naming(CLOCK, CLOCK | {"name": "late"}), "Tool reference 'late' not found",
    ),
    "a deferred tool with a marker": (
        naming(CLOCK, LATE | {"cache_control": MARK}), "cannot have both defer_loading=true and",
    ),
    "a deferred tool for a model that loads none": (
        naming(CLOCK, LATE, model="claude-3-haiku-20240307"), "defer_loading is not supported",
    ),
    "the assistant first": (
        body(said("assistant", text("Hi"))), 'first message must use the "user" role',
    ),
    "another role": (body(said("system", text("Hi"))), "Input should be 'user' or 'assistant'"),
    "no messages": (body() | {"messages": []}, "at least one message is required"),
    "no content": (body(said("user")), "all messages must have non-empty content"),
    "empty text": (body(said("user", text(""))), "text content blocks must be non-empty"),
    "blank text": (body(said("user", text(" \n"))), "must contain non-whitespace text"),
    "a call without a result": (
        body(hello(), said("assistant", CALL), hello(), tools=[CLOCK]),
        "`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
    ),
    "a call at the end": (
        body(hello(), said("assistant", CALL), tools=[CLOCK]),
        "`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
    ),
    "a result without a call": (
        body(said("user", RESULT)), "unexpected `tool_use_id` found in `tool_result` blocks",
    ),
    "two results of a call": (
        body(hello(), said("assistant", CALL), said("user", RESULT, RESULT), tools=[CLOCK]),
        "each tool_use must have a single result",
    ),
    "words in front of a result": (
        body(hello(), said("assistant", CALL), said("user", text("So:"), RESULT), tools=[CLOCK]),
        "`tool_result` blocks must come first",
    ),
    "an id twice": (
        body(hello(), said("assistant", CALL, CALL), said("user", RESULT), tools=[CLOCK]),
        "`tool_use` ids must be unique",
    ),
    "an id that cannot be": (
        body(hello(), said("assistant", CALL | {"id": "a.b"}), said("user", RESULT)),
        "String should match pattern",
    ),
    "a call by the user": (body(said("user", CALL)), "Input tag 'tool_use' found"),
    "an error without words": (
        body(
            hello(), said("assistant", CALL),
            said("user", {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True}),
        ),
        "content cannot be empty if `is_error` is true",
    ),
    "a field nobody knows": (body(extra_body={"top_of_the_pops": 1}), "Extra inputs are not"),
    "a block's field nobody knows": (
        body(said("user", text("Hi") | {"mood": "good"})), "mood: Extra inputs are not permitted",
    ),
    "a picture of another type": (
        body(said("user", picture("image/tiff", png()))), "media_type: Input should be",
    ),
    "a picture that is none": (
        body(said("user", picture("image/png", b"GIF89a"))), "Could not process image",
    ),
    "white space at the end": (
        body(hello(), said("assistant", text("Well: "))), "cannot end with trailing whitespace",
    ),
    "too much to say": (body(max_tokens=128_001), "128001 > 128000, which is the maximum allowed"),
    "too hot": (body(extra_body={"temperature": 1.5}), "temperature: range: 0..1"),
    "an effort nobody makes": (
        body(output_config={"effort": "heroic"}), "output_config.effort: Input should be",
    ),
    "a tool's name": (
        body(tools=[CLOCK | {"name": "what time?"}]), "name: String should match pattern",
    ),
    "a tool twice": (body(tools=[CLOCK, CLOCK]), "Tool names must be unique"),
    "a schema that is none": (
        body(tools=[CLOCK | {"input_schema": {"type": "string"}}]), "Input should be 'object'",
    ),
    "a choice among no tools": (body(tool_choice={"type": "any"}), "only be specified with tools"),
    "another lifetime": (
        body(system=[text("Hi") | {"cache_control": MARK | {"ttl": "30m"}}]),
        "cache_control.ttl: Input should be '5m' or '1h'",
    ),
}  # fmt: skip


def test_what_the_api_refuses_is_refused_in_its_words() -> None:
    async def use(client: anthropic.AsyncAnthropic, server: AnthropicEmulator) -> None:
        for what, (request, words) in REFUSED.items():
            with pytest.raises(anthropic.BadRequestError) as caught:
                await client.messages.create(**request)
            assert words in str(caught.value), what
            assert caught.value.type == "invalid_request_error"
            assert caught.value.request_id
        assert {row.status for row in server.report.rows} == {400}
        assert server.cache_uses == []

    run(use)


def test_a_deferred_tool_is_counted_and_cached_where_a_result_names_it() -> None:
    more = LATE | {"name": "more", "description": LONG}
    front: Any = [text(LONG) | {"cache_control": MARK}]

    async def use(client: anthropic.AsyncAnthropic, server: AnthropicEmulator) -> None:
        async def ask(*tools: JSON) -> Any:
            usage = (await client.messages.create(**naming(*tools), system=front)).usage
            return usage.cache_read_input_tokens, usage.input_tokens

        assert (await ask(CLOCK, LATE))[0] == 0
        read, once = await ask(CLOCK, LATE)
        assert read > 0
        # What nobody names costs nothing and moves nothing; what is named costs its definition.
        assert await ask(CLOCK, LATE, more) == (read, once)
        again, longer = await ask(CLOCK, LATE | {"description": LONG})
        assert again == read
        assert longer > once + 1_000
        # One that is not deferred stands in front of it all.
        assert (await ask(CLOCK, LATE, CLOCK | {"name": "new"}))[0] == 0
        assert [row.status for row in server.report.rows] == [200] * 5

    run(use)


def test_what_the_api_takes_is_taken() -> None:
    async def use(client: anthropic.AsyncAnthropic, server: AnthropicEmulator) -> None:
        schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
        wanted = {"type": "json_schema", "schema": schema}
        for request in (
            body(hello(), hello()),  # taken as one
            body(hello(), said("assistant", CALL), said("user", RESULT, text("So?"))),
            body(hello(), said("assistant", text("Well:"))),
            body(said("user", picture("image/png", png()), text("What is it?"))),
            body(output_config={"effort": "high", "format": wanted}),
            body(tools=[CLOCK], tool_choice={"type": "none"}),
            body(cache_control={"type": "ephemeral", "ttl": "1h"}),
        ):  # fmt: skip
            assert (await client.messages.create(**request)).content[0].type == "text"
        assert len(server.cache_uses) == 7

    run(use)


def test_keys_models_and_versions_are_asked_for() -> None:
    async def use(client: anthropic.AsyncAnthropic, server: AnthropicEmulator) -> None:
        with pytest.raises(anthropic.NotFoundError, match="model: gpt-6"):
            await client.messages.create(**body(model="gpt-6"))
        url = str(client.base_url)
        async with httpx2.AsyncClient(base_url=url, trust_env=False) as bare:
            answer = await bare.post("/v1/messages", json=body())
            assert (answer.status_code, answer.json()["error"]) == (
                401,
                {"type": "authentication_error", "message": "x-api-key header is required"},
            )
            answer = await bare.post("/v1/messages", json=body(), headers={"x-api-key": "key"})
            assert "anthropic-version: header is required" in answer.text
            headers = {"x-api-key": "key", "anthropic-version": "2026-10-21"}
            answer = await bare.post("/v1/messages", content=b"{", headers=headers)
            assert (answer.status_code, "valid JSON" in answer.text) == (400, True)
        found = [model.id async for model in client.models.list()]
        assert "claude-opus-5" in found
        assert (await client.models.retrieve("claude-sonnet-5")).id == "claude-sonnet-5"

    run(use)


def test_a_stream_and_a_message_say_the_same() -> None:
    async def use(client: anthropic.AsyncAnthropic, server: AnthropicEmulator) -> None:
        calls = (EmulatedCall(name="clock", arguments={"zones": ["Oslo", "Rome"]}),)
        server.answers = ScriptedAnswers(
            [EmulatedAnswer(text="Well, well.", thinking="Hm, so.", calls=calls)]
        )
        request = body(tools=[CLOCK], system=[text(LONG) | {"cache_control": MARK}])
        whole = await client.messages.create(**request)
        async with client.messages.stream(**request) as stream:
            streamed = await stream.get_final_message()
        blocks = [
            [block.model_dump(exclude={"id", "parsed_output"}) for block in message.content]
            for message in (whole, streamed)
        ]
        assert blocks[0] == blocks[1]
        assert (whole.stop_reason, streamed.stop_reason) == ("tool_use", "tool_use")
        assert whole.usage.cache_creation_input_tokens == streamed.usage.cache_read_input_tokens
        assert whole.usage.output_tokens == streamed.usage.output_tokens

    run(use)


def test_an_entry_can_be_read_only_once_the_first_answer_begins() -> None:
    class Waiting:
        """Says nothing before it may."""

        def __init__(self) -> None:
            self.asked = anyio.Event()
            self.may = anyio.Event()

        async def answer(self, asked: Any) -> EmulatedAnswer:
            self.asked.set()
            await self.may.wait()
            return EmulatedAnswer(text="Yes.")

    async def use(client: anthropic.AsyncAnthropic, server: AnthropicEmulator) -> None:
        request = body(system=[text(LONG) | {"cache_control": MARK}])
        server.answers = waiting = Waiting()
        read: list[int | None] = []

        async def ask() -> None:
            answer = await client.messages.create(**request)
            read.append(answer.usage.cache_read_input_tokens)

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await waiting.asked.wait()
            waiting.asked = anyio.Event()
            group.start_soon(ask)
            await waiting.asked.wait()
            waiting.may.set()
        await ask()
        assert read[:2] == [0, 0]
        assert (read[2] or 0) > 1_024
        assert [row.missed for row in server.report.rows] == [
            "nothing was sent before", "still being written", "",
        ]  # fmt: skip

    run(use)


def test_the_report_says_what_was_paid_and_what_was_missed() -> None:
    async def use(client: anthropic.AsyncAnthropic, server: AnthropicEmulator) -> None:
        def request(ttl: str) -> JSON:
            return body(system=[text(LONG) | {"cache_control": {"type": "ephemeral", "ttl": ttl}}])

        for ttl in ("5m", "5m"):
            await client.messages.create(**request(ttl))
        server.clock.move(301)
        await client.messages.create(**request("1h"))
        first, again, hour = server.report.rows
        size = first.usage.written
        fresh = (first.usage.input - size) * 2.0 + first.usage.output * 10.0
        assert first.cost == pytest.approx((fresh + size * 1.25 * 2.0) / 1e6)
        assert again.cost == pytest.approx((fresh + size * 0.1 * 2.0) / 1e6)
        assert hour.cost == pytest.approx((fresh + size * 2.0 * 2.0) / 1e6)
        assert again.missed == ""
        assert hour.missed.startswith("expired ")

    run(use)
