"""Gemini's client over the wire: what it gives, what it raises, and what it keeps to itself."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from time import monotonic
from typing import Any

import anyio
import pytest
from msgspec.structs import replace
from tests.adapters.providers.strict import png

from lamina.adapters.providers.clients.gemini import GeminiClient, connect
from lamina.adapters.providers.clients.retries import RetryPolicy
from lamina.adapters.providers.model_book import load_book
from lamina.core.values.message import Text, Thinking, ToolCall
from lamina.core.values.wire import CallPiece, Piece, Reply, TextPiece, ThinkingPiece
from lamina.emulators.answers import AnswerSource, EmulatedAnswer, EmulatedCall, ScriptedAnswers
from lamina.emulators.emulator import serve_emulator
from lamina.emulators.faults import EmulatedFault, FaultKind
from lamina.emulators.gemini.emulator import GeminiEmulator
from lamina.errors import KeyMissing, ProviderBusy, ProviderError, RequestTooLong

KEY = "a-key-that-no-pattern-knows"
MODEL = "gemini-3.1-flash"
QUICK = RetryPolicy(attempts=3, first_wait_s=0.01, max_wait_s=0.2)
HELLO: dict[str, Any] = {
    "model": MODEL,
    "contents": [{"role": "user", "parts": [{"text": "Hello?"}]}],
}


class Scene:
    """An emulator that is served, and a client of it."""

    def __init__(self, emulator: GeminiEmulator, address: str, client: GeminiClient) -> None:
        self.emulator = emulator
        self.address = address
        self.client = client

    async def ask(self, body: dict[str, Any] = HELLO) -> list[Piece]:
        return [piece async for piece in self.client.stream(body)]

    @property
    def statuses(self) -> list[int]:
        return [row.status for row in self.emulator.report.rows]


@asynccontextmanager
async def scene(
    *faults: EmulatedFault,
    answers: AnswerSource | None = None,
    model: str = MODEL,
    retry_policy: RetryPolicy = QUICK,
    silence_s: float = 20.0,
    now: Callable[[], float] = monotonic,
) -> AsyncIterator[Scene]:
    emulator = GeminiEmulator(answers=answers, faults=faults)
    async with serve_emulator(emulator) as address:
        target = replace(load_book().find(f"gemini:{model}"), base_url=address)
        async with connect(
            target, KEY, retry_policy=retry_policy, timeout=silence_s, now=now
        ) as client:
            yield Scene(emulator, address, client)


def said(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))


def reply_of(pieces: list[Piece]) -> Reply:
    assert isinstance(pieces[-1], Reply), pieces
    return pieces[-1]


# -- answers --------------------------------------------------------------------------------------


def test_words_come_one_after_the_other_and_last_the_whole_reply() -> None:
    async def main() -> None:
        async with scene(answers=ScriptedAnswers(["One two three."])) as world:
            pieces = await world.ask()
            assert pieces[:-1] == [TextPiece("One"), TextPiece(" two"), TextPiece(" three.")]
            reply = reply_of(pieces)
            assert reply.blocks == (Text("One two three."),)
            assert (reply.stop, reply.model, reply.complete) == ("STOP", MODEL, True)
            assert reply.id == "emulated-1"
            row = world.emulator.report.rows[0]
            assert reply.usage == row.usage
            assert reply.usage.input > 0
            assert reply.usage.output > 0

    anyio.run(main)


def test_thoughts_are_shown_apart_and_their_signature_is_kept() -> None:
    async def main() -> None:
        answer = EmulatedAnswer(text="Nine.", thinking="Three times three.")
        async with scene(answers=ScriptedAnswers([answer])) as world:
            config = {"thinking_config": {"thinking_level": "high", "include_thoughts": True}}
            pieces = await world.ask(HELLO | {"config": config})
            assert [type(piece) for piece in pieces] == [
                ThinkingPiece, ThinkingPiece, ThinkingPiece, TextPiece, Reply,
            ]  # fmt: skip
            thought, text, signed = reply_of(pieces).blocks
            assert thought == Thinking(text="Three times three.", provider="gemini")
            assert text == Text("Nine.")
            assert isinstance(signed, Thinking)
            assert signed.signature
            assert reply_of(pieces).usage.output == world.emulator.report.rows[0].usage.output

    anyio.run(main)


CALLS = tuple(EmulatedCall(name="look", arguments={"at": number}) for number in range(18))
TOOLS = [
    {
        "function_declarations": [
            {
                "name": "look",
                "description": "Looks.",
                "parameters_json_schema": {
                    "type": "object",
                    "properties": {"at": {"type": "integer"}},
                },
            }
        ]
    }
]


@pytest.mark.parametrize("model", ["gemini-2.5-flash", MODEL])
def test_eighteen_calls_at_once_go_there_and_their_results_back(model: str) -> None:
    async def main() -> None:
        answers = ScriptedAnswers([EmulatedAnswer(text="Let me look.", calls=CALLS), "Seen."])
        async with scene(answers=answers, model=model) as world:
            asked = HELLO | {"model": model, "config": {"tools": TOOLS}}
            pieces = await world.ask(asked)
            calls = [piece for piece in pieces if isinstance(piece, CallPiece)]
            assert [call.index for call in calls] == list(range(18))
            assert {call.name for call in calls} == {"look"}
            assert [call.arguments for call in calls][:2] == ['{"at":0}', '{"at":1}']
            kept = [block for block in reply_of(pieces).blocks if isinstance(block, ToolCall)]
            assert len({call.id for call in kept}) == 18
            assert bool(kept[0].signature) == (model == MODEL)
            back = await world.ask(asked | {"contents": answered(kept)})
            assert said(back) == "Seen."

    anyio.run(main)


def answered(calls: list[ToolCall]) -> list[dict[str, Any]]:
    """A conversation in which the calls have their results, as our encoder writes it."""
    parts: list[dict[str, Any]] = [{"text": "Let me look."}]
    results: list[dict[str, Any]] = []
    for number, call in enumerate(calls):
        own = {} if call.id.startswith("call-") else {"id": call.id}
        part: dict[str, Any] = {"function_call": {"name": "look", "args": {"at": number}} | own}
        parts.append(part | ({"thought_signature": call.signature} if call.signature else {}))
        response = {"name": "look", "response": {"output": "there"}} | own
        results.append({"function_response": response})
    return [
        HELLO["contents"][0],
        {"role": "model", "parts": parts},
        {"role": "user", "parts": results},
    ]


def test_an_answer_that_is_cut_at_its_limit_says_so() -> None:
    async def main() -> None:
        async with scene(answers=ScriptedAnswers(["one two three four five six seven"])) as world:
            reply = reply_of(await world.ask(HELLO | {"config": {"max_output_tokens": 3}}))
            assert (reply.stop, reply.complete) == ("MAX_TOKENS", True)
            assert reply.usage.output <= 3

    anyio.run(main)


def test_images_and_schemas_reach_the_api_and_tokens_are_counted_there() -> None:
    async def main() -> None:
        from base64 import b64encode

        picture = {"mime_type": "image/png", "data": b64encode(png()).decode()}
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        parts = [{"text": "What is this?"}, {"inline_data": picture}]
        body = HELLO | {
            "contents": [{"role": "user", "parts": parts}],
            "config": {
                "system_instruction": "Be brief and true.",
                "tools": TOOLS,
                "response_mime_type": "application/json",
                "response_json_schema": schema,
            },
        }
        async with scene(answers=ScriptedAnswers(['{"n": 9}'])) as world:
            reply = reply_of(await world.ask(body))
            assert reply.blocks == (Text('{"n": 9}'),)
            assert reply.usage.input > 258
            assert await world.client.count_tokens(body) == reply.usage.input
            assert (await world.client.count_tokens(HELLO) or 0) < 10

    anyio.run(main)


# -- faults ---------------------------------------------------------------------------------------


def test_what_may_pass_is_tried_again() -> None:
    refused: dict[FaultKind, int] = {"429": 429, "500": 500, "503": 503, "529": 503}
    refused |= {"throttle": 429}

    async def main() -> None:
        async with scene() as world:
            for kind, status in refused.items():
                world.emulator.report.rows.clear()
                world.emulator.faults.add(EmulatedFault(kind=kind, times=2))
                assert said(await world.ask()) == "You said: Hello?"
                assert world.statuses == [status, status, 200]
                world.emulator.faults.add(EmulatedFault(kind=kind, times=3))
                with pytest.raises(ProviderBusy):
                    await world.ask()
                assert world.statuses[3:] == [status] * 3

    anyio.run(main)


def test_what_is_no_answer_is_tried_again() -> None:
    kinds: tuple[FaultKind, ...] = ("html", "empty", "reset")

    async def main() -> None:
        async with scene() as world:
            for kind in kinds:
                world.emulator.faults.add(EmulatedFault(kind=kind, times=2))
                assert said(await world.ask()) == "You said: Hello?", kind
                world.emulator.faults.add(EmulatedFault(kind=kind, times=3))
                with pytest.raises(ProviderBusy):
                    await world.ask()

    anyio.run(main)


def test_it_waits_as_long_as_the_api_asks_for() -> None:
    async def main() -> None:
        async with scene(EmulatedFault(kind="429", retry_after=0.3)) as world:
            began = monotonic()
            await world.ask()
            assert monotonic() - began >= 0.3

    anyio.run(main)


def test_a_server_that_does_not_answer_is_not_waited_for_for_ever() -> None:
    async def main() -> None:
        async with scene(EmulatedFault(kind="hang", times=2), silence_s=0.2) as world:
            assert said(await world.ask()) == "You said: Hello?"
            assert world.emulator.abandoned_count == 2

    anyio.run(main)


@pytest.mark.parametrize(
    ("kind", "error"), [("overflow", RequestTooLong), ("401", KeyMissing)]
)  # fmt: skip
def test_what_will_not_pass_is_raised_at_once(kind: FaultKind, error: type[ProviderError]) -> None:
    async def main() -> None:
        async with scene(EmulatedFault(kind=kind, times=3)) as world:
            with pytest.raises(error):
                await world.ask()
            assert len(world.statuses) == 1

    anyio.run(main)


def test_a_request_over_the_window_is_too_long() -> None:
    async def main() -> None:
        emulator = GeminiEmulator(book=_Narrow())
        async with serve_emulator(emulator) as address:
            target = replace(load_book().find(f"gemini:{MODEL}"), base_url=address)
            async with connect(target, KEY, retry_policy=QUICK) as client:
                body = HELLO | {"contents": [{"role": "user", "parts": [{"text": "so " * 99}]}]}
                with pytest.raises(RequestTooLong, match=r"exceeds the maximum .* \(50\)"):
                    [piece async for piece in client.stream(body)]

    anyio.run(main)


class _Narrow:
    """The book, with windows of 50 tokens."""

    def __getattr__(self, name: str) -> Any:
        return getattr(load_book(), name)

    def find(self, name: str) -> Any:
        return replace(load_book().find(name), window=50)


@pytest.mark.parametrize("kind", ["cut", "silent"])
def test_an_answer_that_breaks_off_ends_without_a_reply(kind: FaultKind) -> None:
    async def main() -> None:
        async with scene(
            EmulatedFault(kind=kind), answers=ScriptedAnswers(["one two three four"])
        ) as world:
            pieces = await world.ask()
            assert said(pieces).startswith("one two")
            assert not any(isinstance(piece, Reply) for piece in pieces)
            assert isinstance((await world.ask())[-1], Reply)

    anyio.run(main)


def test_whoever_stops_reading_closes_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        faults = [EmulatedFault(kind="slow", times=2)]
        async with scene(*faults, answers=ScriptedAnswers(["one two three four"])) as world:
            async with aclosing(world.client.stream(HELLO)) as pieces:  # type: ignore[type-var]
                async for _ in pieces:
                    break
            await until(lambda: world.emulator.abandoned_count == 1)
            with anyio.move_on_after(0.5) as scope:
                await world.ask()
            assert scope.cancelled_caught
            await until(lambda: world.emulator.abandoned_count == 2)
            assert said(await world.ask()) == "one two three four"

    anyio.run(main)
    assert not caplog.records


async def until(claim: Callable[[], bool]) -> None:
    with anyio.fail_after(5):
        while not claim():  # noqa: ASYNC110 - the emulator tells in no other way
            await anyio.sleep(0.01)


def test_nobody_listening_is_a_provider_that_is_busy() -> None:
    async def main() -> None:
        target = replace(load_book().find(f"gemini:{MODEL}"), base_url="http://127.0.0.1:9")
        async with connect(target, KEY, retry_policy=QUICK) as client:
            with pytest.raises(ProviderBusy, match="ConnectError"):
                [piece async for piece in client.stream(HELLO)]

    anyio.run(main)


def test_a_request_that_is_wrong_is_refused_with_the_reason() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"model": "gpt-5"}, "is not found"),
        ({"contents": [{"role": "model", "parts": [{"text": "Hi."}]}]}, "alternate"),
        ({"config": {"temperature": 3.0}}, "temperature"),
        ({"config": {"no_such_option": 1}}, "SDK"),
    ]

    async def main() -> None:
        async with scene() as world:
            for body, problem in wrong:
                with pytest.raises(ProviderError, match=problem) as refused:
                    await world.ask(HELLO | body)
                assert not isinstance(refused.value, ProviderBusy)
            # Once each, and what the SDK refuses is not sent.
            assert len(world.statuses) == 3

    anyio.run(main)


def test_no_error_says_the_key() -> None:
    async def main() -> None:
        async with scene() as world:
            # The API repeats the one, the SDK the other.
            for body in ({"model": f"x-{KEY}"}, {"config": {"temperature": KEY}}):
                with pytest.raises(ProviderError) as refused:
                    await world.ask(HELLO | body)
                assert KEY not in str(refused.value)
            assert KEY not in repr(world.client)

    anyio.run(main)


def test_closing_one_answer_leaves_the_others_alone(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with scene(answers=ScriptedAnswers(["one two three four"])) as world:
            streams = [world.client.stream(HELLO) for _ in range(3)]
            heard = [[await anext(stream)] for stream in streams]
            await streams[1].aclose()  # type: ignore[attr-defined]
            for number in (0, 2):
                heard[number] += [piece async for piece in streams[number]]
                assert said(heard[number]) == "one two three four"
                reply_of(heard[number])

    anyio.run(main)
    assert not caplog.records


def answering(client: GeminiClient, answer: Callable[[Any], Any]) -> None:
    """Lets a client talk to a function instead of a server."""
    from httpx2 import AsyncClient, MockTransport

    client.sdk()._api_client._async_httpx_client = AsyncClient(transport=MockTransport(answer))


@pytest.mark.parametrize("status", [400, 413])
def test_a_refusal_without_a_word_is_an_overflow(status: int) -> None:
    from httpx2 import Response

    async def main() -> None:
        async with connect(load_book().find(f"gemini:{MODEL}"), KEY, retry_policy=QUICK) as client:
            answering(client, lambda _: Response(status))
            with pytest.raises(RequestTooLong):
                [piece async for piece in client.stream(HELLO)]

    anyio.run(main)


def test_a_blocked_prompt_is_told_with_its_reason() -> None:
    from httpx2 import Response

    async def main() -> None:
        async with connect(load_book().find(f"gemini:{MODEL}"), KEY, retry_policy=QUICK) as client:
            blocked = b'data: {"promptFeedback":{"blockReason":"SAFETY"}}\r\n\r\n'
            answering(client, lambda _: Response(200, content=blocked))
            with pytest.raises(ProviderError, match="the prompt was blocked: SAFETY"):
                [piece async for piece in client.stream(HELLO)]

    anyio.run(main)


def test_an_error_in_the_middle_of_an_answer_is_raised() -> None:
    from httpx2 import Response

    async def main() -> None:
        async with connect(load_book().find(f"gemini:{MODEL}"), KEY, retry_policy=QUICK) as client:
            said = b'data: {"candidates":[{"content":{"parts":[{"text":"It"}]}}]}\r\n\r\n'
            error = b'data: {"error":{"code":503,"message":"overloaded"}}\r\n\r\n'
            answering(client, lambda _: Response(200, content=said + error))
            stream = client.stream(HELLO)
            assert await anext(stream) == TextPiece("It")
            with pytest.raises(ProviderBusy, match="overloaded"):
                await anext(stream)

    anyio.run(main)


# -- long answers ---------------------------------------------------------------------------------


def test_an_answer_in_several_hops_is_one_answer() -> None:
    from httpx2 import Request, Response

    def hops() -> Iterator[bytes]:
        usage = b'"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":80,'
        head = b'data: {"responseId":"r","candidates":[{"content":{"parts":[{"text":'
        yield head + (
            b'"It was "}]},"finishReason":"CONTINUATION","continuationToken":"AAAA"}],'
            + usage + b'"candidatesTokenCount":5}}\r\n\r\n'
        )  # fmt: skip
        yield head + (
            b'"a night."}]},"finishReason":"STOP"}],'
            + usage
            + b'"candidatesTokenCount":7}}\r\n\r\n'
        )

    bodies: list[bytes] = []
    answers = hops()

    def answer(request: Request) -> Response:
        bodies.append(request.content)
        return Response(200, content=next(answers))

    async def main() -> None:
        client = connect(load_book().find(f"gemini:{MODEL}"), KEY, retry_policy=QUICK)
        answering(client, answer)
        pieces = [piece async for piece in client.stream(HELLO)]
        assert said(pieces) == "It was a night."
        reply = reply_of(pieces)
        assert reply.blocks == (Text("It was a night."),)
        assert (reply.usage.input, reply.usage.cached, reply.usage.output) == (100, 80, 12)
        assert b"continuationToken" in bodies[1]
        await client.aclose()

    anyio.run(main)
