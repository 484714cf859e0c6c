"""Streams of servers that only nearly speak OpenAI's wire, byte for byte."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from tests.adapters.providers.clients.openai_scene import ASKED, QUICK, ask, spoken, thought

from lamina.adapters.providers.clients.openai import OpenAIClient, connect
from lamina.adapters.providers.model_book import load_book
from lamina.core.values.message import Text, ToolCall
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Reply
from lamina.emulators.emulator import Emulator, serve_emulator
from lamina.errors import ProviderBusy, ProviderError, RequestTooLong

JSON = dict[str, Any]


class Canned(Emulator):
    """Answers every request with the same bytes, until it is given others."""

    vendor = "canned"

    def __init__(self) -> None:
        super().__init__()
        self.give(b"")

    def give(self, content: bytes, media_type: str = "text/event-stream") -> None:
        self._content = content
        self._media_type = media_type
        self.asked = 0

    def routes(self) -> Sequence[Route]:
        return [Route("/v1/chat/completions", self._answer, methods=["POST"])]

    async def _answer(self, request: Request) -> Response:
        self.asked += 1
        return Response(self._content, media_type=self._media_type)


@asynccontextmanager
async def canned() -> AsyncIterator[tuple[Canned, OpenAIClient]]:
    server = Canned()
    async with serve_emulator(server) as url:
        target = replace(load_book().find("compatible:any"), base_url=f"{url}/v1")
        client = connect(target, "", retry_policy=QUICK, timeout=5)
        try:
            yield server, client
        finally:
            await client.aclose()


def events(*chunks: JSON | str, done: bool = True) -> bytes:
    lines = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
    ended = [*lines, "[DONE]"] if done else lines
    return "".join(f"data: {line}\n\n" for line in ended).encode()


def delta(finish: str | None = None, **said: Any) -> JSON:
    return {"id": "x", "choices": [{"index": 0, "delta": said, "finish_reason": finish}]}


def call(name: str | None = None, arguments: Any = None, **fields: Any) -> JSON:
    return delta(tool_calls=[{"function": {"name": name, "arguments": arguments}} | fields])


HELLO = (delta(role="assistant", content="Hello"), delta(content=" there"))
END = delta("stop")


MEANT = [
    events(*HELLO, END),
    # No terminator behind the reason, no space behind the colon, other line ends, comments.
    events(*HELLO, END, done=False),
    events(*HELLO, END).replace(b"data: ", b"data:"),
    b": ping\r\n\r\n" + events(*HELLO, END).replace(b"\n", b"\r\n"),
    # The last words come with the reason; chunks without choices or without a delta.
    events(HELLO[0], delta("stop", content=" there")),
    events({"choices": []}, {"choices": None}, {"choices": [{"delta": None}]}, *HELLO, END),
    events(*HELLO, END | {"choices": [{"delta": None, "finish_reason": "stop"}]}),
]


def test_what_was_meant_is_understood() -> None:
    async def main() -> None:
        async with canned() as (server, client):
            for content in MEANT:
                server.give(content)
                pieces = await ask(client)
                assert spoken(pieces) == "Hello there", content
                reply = pieces[-1]
                assert isinstance(reply, Reply), content
                assert (reply.blocks, reply.stop) == ((Text("Hello there"),), "stop")
                assert reply.usage == Usage(cache_reported=False)

    anyio.run(main)


def test_usage_may_come_with_every_chunk_and_the_last_one_counts() -> None:
    def used(chunk: JSON, output: int) -> JSON:
        return chunk | {"usage": {"prompt_tokens": 9, "completion_tokens": output}}

    async def main() -> None:
        chunks = [used(chunk, at) for at, chunk in enumerate((*HELLO, END))]
        async with canned() as (server, client):
            server.give(events(*chunks))
            reply = (await ask(client))[-1]
            assert isinstance(reply, Reply)
            assert reply.usage == Usage(input=9, output=2, cache_reported=False)

    anyio.run(main)


CALLS: list[list[JSON]] = [
    [call("a", '{"n":', index=0, id="1"), call(None, " 1}", index=0), call("b", "", index=1)],
    # Nothing is numbered.
    [call("a", '{"n":', id="1"), call(None, " 1}"), call("b", None)],
    # Whole calls at once, as objects; two in one chunk.
    [call("a", {"n": 1}, index=0), call("b", {}, index=1)],
    [
        delta(
            tool_calls=[
                {"function": {"name": "a", "arguments": '{"n": 1}'}},
                {"function": {"name": "b", "arguments": "{}"}},
            ]
        )
    ],
    # The name again with every part.
    [
        call("a", '{"n"', index=0, id="1"),
        call("a", ": 1}", index=0, id="1"),
        call("b", "{}", index=1, id="2"),
    ],
    # One after the other, but mixed up.
    [call("a", "", index=0), call("b", "", index=1), call(None, '{"n": 1}', index=0)],
]


def test_calls_are_put_together() -> None:
    async def main() -> None:
        async with canned() as (server, client):
            for chunks in CALLS:
                server.give(events(*chunks, delta("tool_calls")))
                reply = (await ask(client))[-1]
                assert isinstance(reply, Reply), chunks
                calls = [block for block in reply.blocks if isinstance(block, ToolCall)]
                read = [(each.name, json.loads(each.arguments)) for each in calls]
                assert read == [("a", {"n": 1}), ("b", {})], chunks
                assert len({each.id for each in calls}) == len(reply.blocks) == 2

    anyio.run(main)


def test_thoughts_have_two_names_and_refusals_are_words() -> None:
    chunks = [delta(reasoning="Hm. "), delta(reasoning_content="No."), delta(refusal="I won't.")]

    async def main() -> None:
        async with canned() as (server, client):
            server.give(events(*chunks, END))
            pieces = await ask(client)
            assert thought(pieces) == "Hm. No."
            assert spoken(pieces) == "I won't."

    anyio.run(main)


TOO_LONG = {"message": "the request exceeds the available context size", "code": 400}
FULL = {"error": TOO_LONG}
BUSY = {"error": {"message": "upstream is overloaded", "code": 502}}


NOT_MEANT: list[tuple[bytes, str, type[ProviderError], str, int]] = [
    (events(BUSY), "text/event-stream", ProviderBusy, r"\(502\): upstream is over", 3),
    (events(FULL), "text/event-stream", RequestTooLong, "available context size", 1),
    (events(*HELLO, BUSY), "text/event-stream", ProviderBusy, "upstream is over", 1),
    (events("{]"), "text/event-stream", ProviderBusy, "JSONDecodeError", 3),
    (b"data: \xff\n\n", "text/event-stream", ProviderBusy, "UnicodeDecodeError", 3),
    (events(delta(role="assistant")), "text/event-stream", ProviderBusy, "nothing", 3),
    (json.dumps(BUSY).encode(), "application/json", ProviderBusy, "upstream is over", 3),
    (json.dumps(FULL).encode(), "application/json", RequestTooLong, "context size", 1),
    (b"", "application/json", ProviderBusy, "it answered nothing", 3),
    (b"Service degraded", "text/plain", ProviderBusy, "Service degraded", 3),
]


def test_what_cannot_be_understood_is_an_error_of_the_provider() -> None:
    async def main() -> None:
        async with canned() as (server, client):
            for content, media_type, error, said, asked in NOT_MEANT:
                server.give(content, media_type)
                with pytest.raises(error, match=said):
                    await ask(client, ASKED)
                assert server.asked == asked, content

    anyio.run(main)


def test_a_chunk_that_is_cut_off_ends_what_was_said() -> None:
    async def main() -> None:
        content = events(*HELLO, done=False) + b'data: {"choices": [{"de'
        async with canned() as (server, client):
            server.give(content)
            pieces = await ask(client)
            assert spoken(pieces) == "Hello there"
            assert not any(isinstance(piece, Reply) for piece in pieces)
            assert server.asked == 1

    anyio.run(main)
