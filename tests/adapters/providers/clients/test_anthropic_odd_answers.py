"""Answers that the API gives seldom, and servers in front of it never should."""

import json
from collections.abc import Mapping, Sequence
from email.utils import formatdate
from time import time
from typing import Any

import anyio
import pytest
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from tests.adapters.providers.clients.anthropic_server import HASTY, KEY, SONNET, body

from lamina.adapters.providers.clients.anthropic import AnthropicClient
from lamina.adapters.providers.clients.retries import RetryPolicy
from lamina.core.values.message import Text, ToolCall
from lamina.core.values.wire import CallPiece, Piece, Reply, TextPiece
from lamina.emulators.emulator import Emulator, serve_emulator
from lamina.errors import ProviderBusy, ProviderError, RequestTooLong

JSON = dict[str, Any]


class Canned(Emulator):
    """Answers in order, whatever it is asked; the last one again and again."""

    vendor = "anthropic"

    def __init__(self, *answers: Response) -> None:
        super().__init__()
        self.canned = answers
        self.asked = 0

    def routes(self) -> Sequence[Route]:
        return [Route("/v1/messages", self._answer, methods=["POST"])]

    async def _answer(self, request: Request) -> Response:
        self.asked += 1
        return self.canned[min(self.asked, len(self.canned)) - 1]


def events(*sent: JSON | str) -> Response:
    """A stream; what is a text is sent as the data of an event as it is."""
    said = [
        f"event: {each['type']}\ndata: {json.dumps(each)}\n\n"
        if isinstance(each, dict)
        else f"event: content_block_delta\ndata: {each}\n\n"
        for each in sent
    ]
    return Response("".join(said), media_type="text/event-stream")


START: JSON = {
    "type": "message_start",
    "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5",
        "content": [], "stop_reason": None, "usage": {"input_tokens": 9, "output_tokens": 1},
    },
}  # fmt: skip
STOP: JSON = {"type": "message_stop"}


def opening(block: JSON, index: int = 0) -> JSON:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int = 0, **fields: Any) -> JSON:
    return {"type": "content_block_delta", "index": index, "delta": fields}


def words(text: str) -> JSON:
    return delta(type="text_delta", text=text)


def ended(reason: str = "end_turn", **usage: int) -> JSON:
    return {
        "type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 7} | usage,
    }  # fmt: skip


def failure(kind: str, said: str = "Overloaded") -> JSON:
    return {"type": "error", "error": {"type": kind, "message": said}}


TEXT = opening({"type": "text", "text": ""})
YES = events(START, TEXT, words("Yes."), ended(), STOP)


def ask(
    *answers: Response, retry_policy: RetryPolicy = HASTY
) -> tuple[list[Piece], ProviderError | None, int]:
    """What came, what went wrong, and how often was asked."""

    async def main() -> tuple[list[Piece], ProviderError | None, int]:
        server = Canned(*answers)
        async with serve_emulator(server) as url:
            client = AnthropicClient(replace(SONNET, base_url=url), KEY, retry_policy, 5.0)
            pieces: list[Piece] = []
            error = None
            try:
                async for piece in client.stream(body()):
                    pieces.append(piece)  # noqa: PERF401 - what came is wanted if it fails, too
            except ProviderError as problem:
                error = problem
            await client.aclose()
        return pieces, error, server.asked

    return anyio.run(main)


def test_an_error_inside_a_stream_is_tried_again_before_the_first_word_only() -> None:
    overloaded = failure("overloaded_error")
    pieces, error, asked = ask(events(START, overloaded), YES)
    assert (error, asked, isinstance(pieces[-1], Reply)) == (None, 2, True)
    pieces, error, asked = ask(events(START, TEXT, words("Ye"), overloaded), YES)
    assert (pieces, asked, type(error)) == ([TextPiece("Ye")], 1, ProviderBusy)
    assert "(529)" in str(error)


@pytest.mark.parametrize(
    ("kind", "said", "raised"),
    [
        ("rate_limit_error", "too many tokens per minute", ProviderBusy),
        ("api_error", "Internal server error", ProviderBusy),
        ("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", RequestTooLong),
        ("invalid_request_error", "messages: no", ProviderError),
    ],
)
def test_an_error_inside_a_stream_is_what_it_says(
    kind: str, said: str, raised: type[ProviderError]
) -> None:
    _, error, _ = ask(events(START, failure(kind, said)), retry_policy=RetryPolicy(attempts=1))
    assert type(error) is raised


def test_an_answer_that_ran_into_the_end_of_the_window_is_an_overflow() -> None:
    full = events(START, TEXT, words("And th"), ended("model_context_window_exceeded"), STOP)
    pieces, error, asked = ask(full)
    assert (pieces, asked, type(error)) == ([TextPiece("And th")], 1, RequestTooLong)


@pytest.mark.parametrize("status", [400, 413])
def test_a_refusal_without_a_word_is_an_overflow(status: int) -> None:
    _, error, asked = ask(Response(b"", status))
    assert (type(error), asked) == (RequestTooLong, 1)


def test_a_refusal_that_is_no_json_is_shown() -> None:
    _, error, asked = ask(Response("no such route", 404))
    assert (type(error), asked) == (ProviderError, 1)
    assert "no such route" in str(error)


def test_data_that_cannot_be_read_breaks_an_answer_off() -> None:
    pieces, error, _ = ask(events(START, TEXT, words("Ye"), "{not json"))
    assert (pieces, type(error)) == ([TextPiece("Ye")], ProviderBusy)
    assert "cannot be read" in str(error)


def test_events_and_blocks_that_nobody_knows_are_passed_over() -> None:
    pieces, error, _ = ask(
        events(
            START, {"type": "weather_report"}, opening({"type": "hologram"}),
            delta(type="hologram_delta"), delta(7, type="text_delta", text="lost"),
            opening({"type": "text", "text": "Y"}, 1), delta(1, type="text_delta", text="es."),
            ended(), STOP,
        )
    )  # fmt: skip
    assert error is None
    assert pieces[:-1] == [TextPiece("Y"), TextPiece("es.")]
    assert isinstance(pieces[-1], Reply)
    assert pieces[-1].blocks == (Text("Yes."),)


def test_arguments_that_are_no_json_are_kept_as_the_model_wrote_them() -> None:
    call = opening({"type": "tool_use", "id": "toolu_1", "name": "clock", "input": {}})
    written = delta(type="input_json_delta", partial_json='{"zone": "Os')
    pieces, error, _ = ask(events(START, call, written, ended("max_tokens"), STOP))
    assert error is None
    *spoken, reply = pieces
    assert spoken == [
        CallPiece(index=0, name="clock"), CallPiece(index=0, arguments='{"zone": "Os'),
    ]  # fmt: skip
    assert isinstance(reply, Reply)
    called = reply.blocks[0]
    assert isinstance(called, ToolCall)
    assert json.loads(called.arguments) == {"_raw": '{"zone": "Os'}


def test_totals_at_the_end_go_before_those_of_the_beginning() -> None:
    pieces, _, _ = ask(
        events(START, TEXT, words("Yes."), ended(input_tokens=20, cache_read_input_tokens=5), STOP)
    )
    reply = pieces[-1]
    assert isinstance(reply, Reply)
    assert (reply.usage.input, reply.usage.cached, reply.usage.output) == (25, 5, 7)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "90"}, (90.0, 90.0)),
        ({"retry-after-ms": "90500", "retry-after": "1"}, (90.5, 90.5)),
        # Far ahead: it is worked out when the tests are collected, long before it is read.
        ({"retry-after": formatdate(time() + 90_000, usegmt=True)}, (80_000.0, 90_000.0)),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_how_long_to_wait_is_said_in_three_ways(
    headers: Mapping[str, str], wait: tuple[float, float] | None
) -> None:
    busy = Response(json.dumps(failure("rate_limit_error")), 429, headers=dict(headers))
    _, error, _ = ask(busy, retry_policy=RetryPolicy(attempts=1))
    assert isinstance(error, ProviderBusy)
    if wait is None:
        assert error.retry_after is None
    else:
        assert error.retry_after is not None
        assert wait[0] <= error.retry_after <= wait[1]
