"""OpenAI through its own SDK: what is streamed, and what it amounts to."""

import json
from base64 import b64encode
from typing import Any

import anyio
import pytest
from tests.adapters.providers.clients.openai_scene import (
    ASKED,
    KEY,
    ask,
    ask_whole,
    called,
    emulated,
    spoken,
    thought,
)
from tests.adapters.providers.strict import png

from lamina.adapters.providers.clients.openai import connect
from lamina.adapters.providers.model_book import load_book
from lamina.core.values.message import Text, Thinking, ToolCall
from lamina.core.values.usage import Usage
from lamina.core.values.wire import CallPiece, Reply, TextPiece, ThinkingPiece
from lamina.emulators.answers import EmulatedAnswer, EmulatedCall, ScriptedAnswers
from lamina.emulators.openai.emulator import Quirk
from lamina.errors import KeyMissing, ProviderError

JSON = dict[str, Any]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
    for name in ("weather", "clock")
]


def test_an_answer_comes_word_by_word_and_then_whole() -> None:
    async def main() -> None:
        async with emulated() as (emulator, client):
            pieces = await ask(client)
            streamed = {"stream": True, "stream_options": {"include_usage": True}}
            assert emulator.bodies == [ASKED | streamed]
            *words, reply = pieces
            assert all(isinstance(piece, TextPiece) for piece in words)
            assert len(words) == 5
            assert spoken(pieces) == "I am well, thank you."
            assert isinstance(reply, Reply)
            assert reply.blocks == (Text("I am well, thank you."),)
            assert (reply.stop, reply.complete, reply.model) == ("stop", True, "gpt-4o")
            assert reply.id.startswith("chatcmpl-")
            assert await client.count_tokens(ASKED) is None

    anyio.run(main)


def test_usage_is_told_with_what_was_cached_in_it() -> None:
    long = {"role": "system", "content": "word " * 2_000}
    body = ASKED | {"messages": [long, *ASKED["messages"]]}

    async def main() -> None:
        async with emulated() as (emulator, client):
            first = await ask_whole(client, body)
            second = await ask_whole(client, body)
            assert first.usage.cached == 0
            assert second.usage.cached == 1_920
            assert second.usage.input == first.usage.input > 2_000
            assert second.usage.output > 0
            assert second.usage.cache_reported
            assert [row.usage for row in emulator.report.rows] == [first.usage, second.usage]

    anyio.run(main)


def test_writes_are_told_of_models_that_charge_for_them() -> None:
    part = {"type": "text", "text": "word " * 2_000}
    marked = part | {"prompt_cache_breakpoint": {"mode": "explicit"}}
    body = {
        "model": "gpt-5.6",
        "messages": [{"role": "system", "content": [marked]}, *ASKED["messages"]],
        "prompt_cache_options": {"mode": "explicit", "ttl": "30m"},
    }

    async def main() -> None:
        async with emulated("openai:gpt-5.6") as (_, client):
            first = (await ask_whole(client, body)).usage
            second = (await ask_whole(client, body)).usage
            assert first.written == second.cached > 2_000
            assert (first.cached, second.written) == (0, 0)

    anyio.run(main)


def test_calls_are_streamed_in_parts_and_eighteen_go_there_and_back() -> None:
    said = EmulatedAnswer(
        text="Let me look.",
        calls=tuple(
            EmulatedCall(name="weather", arguments={"city": f"Town number {n}"}) for n in range(18)
        ),
    )

    async def main() -> None:
        async with emulated(answers=ScriptedAnswers([said, "All dry."])) as (_, client):
            body = ASKED | {"tools": TOOLS}
            pieces = await ask(client, body)
            assert sum(isinstance(piece, CallPiece) for piece in pieces) > 36
            reply = pieces[-1]
            assert isinstance(reply, Reply)
            assert reply.stop == "tool_calls"
            first, *calls = reply.blocks
            assert first == Text("Let me look.")
            assert (
                len(calls) == len({call.id for call in calls if isinstance(call, ToolCall)}) == 18
            )
            assert called(pieces) == {
                index: (call.name, call.arguments)
                for index, call in enumerate(calls)
                if isinstance(call, ToolCall)
            }
            assert json.loads(called(pieces)[17][1]) == {"city": "Town number 17"}
            sent = [sent_again(call) for call in calls if isinstance(call, ToolCall)]
            results = [{"role": "tool", "tool_call_id": c["id"], "content": "dry"} for c in sent]
            assistant = {"role": "assistant", "content": "Let me look.", "tool_calls": sent}
            body |= {"messages": [*ASKED["messages"], assistant, *results]}
            assert (await ask_whole(client, body)).blocks == (Text("All dry."),)

    anyio.run(main)


def sent_again(call: ToolCall) -> JSON:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def test_thoughts_of_other_servers_are_told_apart_from_words() -> None:
    said = EmulatedAnswer(text="Yes.", thinking="They want a yes.")

    async def main() -> None:
        async with emulated("compatible:qwen3:8b", answers=ScriptedAnswers([said]), key="") as (
            _,
            client,
        ):
            pieces = await ask(client, ASKED | {"model": "qwen3:8b"})
            assert thought(pieces) == "They want a yes."
            assert isinstance(pieces[0], ThinkingPiece)
            reply = pieces[-1]
            assert isinstance(reply, Reply)
            thinking = Thinking(text="They want a yes.", provider="openai")
            assert reply.blocks == (thinking, Text("Yes."))
            # OpenAI itself says nothing of them, but counts them.
        async with emulated(answers=ScriptedAnswers([said])) as (_, client):
            reply = await ask_whole(client)
            assert reply.blocks == (Text("Yes."),)
            assert reply.usage.output > 4

    anyio.run(main)


def test_pictures_are_sent() -> None:
    url = f"data:image/png;base64,{b64encode(png(900, 600)).decode()}"
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    body = ASKED | {"messages": [{"role": "user", "content": parts}]}

    async def main() -> None:
        async with emulated() as (_, client):
            reply = await ask_whole(client, body)
            # A base and four tiles.
            assert 765 < reply.usage.input < 800

    anyio.run(main)


def test_a_limit_of_tokens_ends_an_answer_in_its_own_word() -> None:
    async def main() -> None:
        async with emulated() as (_, client):
            reply = await ask_whole(client, ASKED | {"max_completion_tokens": 3})
            assert (reply.stop, reply.complete) == ("length", True)
            assert (reply.blocks, reply.usage.output) == ((Text("I am"),), 3)

    anyio.run(main)


@pytest.mark.parametrize(
    ("quirks", "usage"),
    [
        (["no_usage"], Usage(cache_reported=False)),
        (["no_stream_options"], Usage(cache_reported=False)),
        (["object_arguments", "no_ids"], None),
        (["ignores_stream"], None),
        (["ignores_stream", "object_arguments", "no_ids", "no_usage"], Usage(cache_reported=False)),
    ],
    ids=lambda given: "-".join(given) if isinstance(given, list) else "",
)
def test_servers_that_speak_the_wire_in_their_own_way(
    quirks: list[Quirk], usage: Usage | None
) -> None:
    said = EmulatedAnswer(
        text="Let me look.",
        calls=(
            EmulatedCall(name="weather", arguments={"city": "Oslo"}),
            EmulatedCall(name="clock"),
        ),
    )

    async def main() -> None:
        async with emulated(
            "compatible:any", answers=ScriptedAnswers([said]), quirks=quirks, key=""
        ) as (
            emulator,
            client,
        ):
            body = ASKED | {"model": "any", "tools": TOOLS}
            for _ in range(2):
                pieces = await ask(client, body)
                reply = pieces[-1]
                assert isinstance(reply, Reply)
                text, first, second = reply.blocks
                assert text == Text("Let me look.")
                assert isinstance(first, ToolCall)
                assert isinstance(second, ToolCall)
                assert (first.name, first.arguments) == ("weather", '{"city":"Oslo"}')
                assert (second.name, second.arguments) == ("clock", "{}")
                assert first.id != second.id
                assert first.id
                assert spoken(pieces) == "Let me look."
                assert [name for name, _ in called(pieces).values()] == ["weather", "clock"]
                assert reply.usage == usage or (usage is None and reply.usage.input > 0)
            # What a server does not know is asked for once.
            assert emulator.request_count == (3 if "no_stream_options" in quirks else 2)

    anyio.run(main)


def test_a_client_needs_an_address_or_a_key() -> None:
    with pytest.raises(ProviderError, match="where is the server of 'compatible:any'"):
        connect(load_book().find("compatible:any"), "")
    with pytest.raises(KeyMissing, match="no key for 'openai:gpt-4o': set OPENAI_API_KEY"):
        connect(load_book().find("openai:gpt-4o"), "")


def test_other_servers_are_told_nothing_of_who_one_is_at_openai(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, KEY)
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "mine-alone")

    async def main() -> None:
        async with emulated("compatible:any", key="") as (emulator, client):
            assert (await ask_whole(client, ASKED | {"model": "any"})).complete
            said = repr(emulator.headers)
            assert "127.0.0.1" in said
            assert KEY not in said
            assert "mine-alone" not in said

    anyio.run(main)


def test_one_client_serves_one_event_loop_after_another() -> None:
    async def main(client: Any = None) -> Any:
        async with emulated() as (_, fresh):
            client = client or fresh
            client._target = fresh._target
            assert (await ask_whole(client)).complete
            await client.aclose()
            return client

    anyio.run(main, anyio.run(main))
