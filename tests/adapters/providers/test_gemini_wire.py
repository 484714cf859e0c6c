"""What only Gemini's wire has: thought signatures, calls without ids, answers in several hops."""

from base64 import b64encode
from pathlib import Path

import anyio
import pytest
from tests.adapters.providers.strict import JSON
from tests.adapters.providers.vendors import anthropic, gemini, open_with

from lamina.adapters.providers.model_book import load_book
from lamina.adapters.providers.wires import gemini as wire
from lamina.core.layers import Assembler, Layout
from lamina.core.values.collections import Chain
from lamina.core.values.envelope import Envelope
from lamina.core.values.message import Message, Text, Thinking, ToolCall, ToolResult
from lamina.core.values.wire import WireRequest
from lamina.engine.session.turn import Turn

# Bytes whose base64 differs between the two alphabets.
SIGNATURE = b"\xff\xfe\xfd\xfb\xef"
SIGNED = b64encode(SIGNATURE).decode()


async def exchange(turn: Turn, reply: JSON) -> Turn:
    return await turn.commit(gemini.send(turn.request(), reply))


@pytest.mark.parametrize(
    "signature",
    [SIGNATURE, SIGNED, SIGNED.replace("+", "-").replace("/", "_"), SIGNED.rstrip("=")],
    ids=["bytes", "base64", "url-safe", "no padding"],
)
def test_a_signature_is_read_in_every_spelling(signature: str | bytes) -> None:
    call = {"functionCall": {"name": "clock", "id": "a"}, "thoughtSignature": signature}
    reply = wire.decode(gemini.saying([call], "STOP"))
    assert reply.blocks == (ToolCall(id="a", name="clock", signature=SIGNED),)


def test_a_signature_that_is_no_base64_is_dropped() -> None:
    call = {"functionCall": {"name": "clock", "id": "a"}, "thoughtSignature": "é?"}
    reply = wire.decode(gemini.saying([call], "STOP"))
    assert reply.blocks == (ToolCall(id="a", name="clock"),)


def test_signatures_go_back_on_the_parts_they_came_on(tmp_path: Path) -> None:
    async def main() -> None:
        session = await open_with(gemini, tmp_path)
        turn = await session.prepare("Oslo, and the time?")
        parts: list[JSON] = [
            {"text": "The user wants two things.", "thought": True},
            {"text": "Let me look.", "thoughtSignature": SIGNED},
            {
                "functionCall": {"name": "weather", "args": {"cityName": "Oslo"}},
                "thoughtSignature": SIGNED,
            },
            {"functionCall": {"name": "clock", "args": {}}},
            {"text": "", "thoughtSignature": SIGNED},
        ]
        turn = await exchange(turn, gemini.saying(parts, "STOP"))
        turn = await turn.resume({call.id: "noon" for call in turn.pending_calls})
        gemini.send(turn.request(), gemini.answer("Yes."))
        # The SDK writes the other alphabet. Thoughts nobody signed are not sent back.
        for part in parts:
            if "thoughtSignature" in part:
                part["thoughtSignature"] = SIGNED.replace("+", "-").replace("/", "_")
        assert gemini.server.seen["contents"][1] == {"role": "model", "parts": parts[1:]}

    anyio.run(main)


def test_a_streamed_thought_is_signed_by_the_part_behind_it() -> None:
    parts: list[JSON] = [
        {"text": "I wonder.", "thought": True},
        {"text": "", "thought": True, "thoughtSignature": SIGNED},
        {"text": "Yes."},
    ]
    reply = wire.decode(gemini.saying(parts, "STOP"))
    thought = Thinking(text="I wonder.", signature=SIGNED, provider="gemini")
    assert reply.blocks == (thought, Text("Yes."))


def test_calls_without_ids_are_told_apart(tmp_path: Path) -> None:
    async def main() -> None:
        session = await open_with(gemini, tmp_path)
        seen: set[str] = set()
        for number in (1, 2):
            turn = await session.prepare("Time?")
            calls: list[JSON] = [{"functionCall": {"name": "clock", "args": {}}}] * 2
            reply = gemini.saying(calls, "STOP") | {"responseId": f"r-{number}"}
            turn = await exchange(turn, reply)
            seen |= {call.id for call in turn.pending_calls}
            turn = await turn.resume({call.id: "noon" for call in turn.pending_calls})
            responses = turn.request()["contents"][-1]["parts"]
            expected = {"name": "clock", "response": {"output": "noon"}}
            assert responses == [{"function_response": expected}] * 2
            await exchange(turn, gemini.answer("Noon."))
        assert len(seen) == 4
        # Another vendor wants ids, each its own.
        turn = await session.prepare("And now?", target=anthropic.target)
        await turn.commit(anthropic.send(turn.request(), anthropic.answer("Noon.")))

    anyio.run(main)


def test_an_answer_in_several_hops_counts_its_prompt_once() -> None:
    """The SDK follows `CONTINUATION` by itself and adds up the usage of its requests."""

    from google import genai
    from httpx2 import Client, MockTransport, Response

    first = gemini.saying([{"text": "It was "}], "CONTINUATION")
    first["candidates"][0]["continuationToken"] = SIGNED
    hops = [first, gemini.saying([{"text": "a night."}], "STOP")]
    transport = MockTransport(lambda _: Response(200, json=hops.pop(0)))
    options = genai.types.HttpOptions(httpx_client=Client(transport=transport))
    client = genai.Client(api_key="test", http_options=options)
    reply = wire.decode(client.models.generate_content(model="m", contents="Tell me."))
    assert "".join(block.text for block in reply.blocks if isinstance(block, Text)) == (
        "It was a night."
    )
    assert (reply.usage.input, reply.usage.cached, reply.usage.output) == (1000, 800, 40)
    assert reply.complete


def test_a_failed_tool_is_told_apart_from_one_that_spoke(tmp_path: Path) -> None:
    async def main() -> None:
        session = await open_with(gemini, tmp_path)
        turn = await session.prepare("Time?")
        turn = await exchange(turn, gemini.calling(("a", "clock", {})))
        turn = await turn.resume([{"call_id": "a", "text": "stopped", "is_error": True}])
        expected = {"name": "clock", "id": "a", "response": {"error": "stopped"}}
        assert turn.request()["contents"][-1]["parts"] == [{"function_response": expected}]
        await exchange(turn, gemini.answer("I cannot tell."))

    anyio.run(main)


def test_results_go_out_in_the_order_of_the_calls(tmp_path: Path) -> None:
    """Older records have them as tools were done, and Gemini takes no other order."""
    calls = tuple(ToolCall(id=f"c{n}", name=f"tool_{n}") for n in range(3))
    results = tuple(ToolResult(call_id=f"c{n}", name=f"tool_{n}", text=f"r{n}") for n in (2, 0, 1))
    envelope = Envelope(
        cached=Chain(
            [
                Message(role="user", blocks=(Text("Go."),), id="1"),
                Message(role="assistant", blocks=calls, id="2"),
                Message(role="tool", blocks=results[:1], id="3"),
                Message(role="tool", blocks=results[1:], id="4"),
                Message(role="user", blocks=(Text("And?"),), id="5"),
            ]
        )
    )
    target = load_book().find("gemini:gemini-3.1-pro")
    prompt = Assembler(len, Layout(wire="gemini")).assemble(envelope, {}, 4)
    body = wire.encode(WireRequest(prompt=prompt, target=target))
    parts = body["contents"][2]["parts"]
    assert [part["function_response"]["id"] for part in parts[:3]] == ["c0", "c1", "c2"]
    assert parts[3:] == [{"text": "And?"}]
    gemini.send(body, gemini.answer("Done."))
