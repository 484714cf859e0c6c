"""What comes back: the SDK's objects and plain bodies, whole, cut short, odd and unreadable."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.adapters.providers.strict import JSON, Vendor
from tests.adapters.providers.strict_anthropic import sign
from tests.adapters.providers.vendors import anthropic, each_vendor, gemini, open_with, openai

from lamina.adapters.providers.model_book import load_book
from lamina.adapters.providers.wires import anthropic as anthropic_wire
from lamina.adapters.providers.wires import gemini as gemini_wire
from lamina.adapters.providers.wires import openai as openai_wire
from lamina.core.values.message import Text, Thinking, ToolCall
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Reply
from lamina.engine.session.turn import Turn
from lamina.errors import ReplyError

MINIMAL: dict[str, JSON] = {
    openai.target: {"model": "m", "messages": [{"role": "user", "content": "?"}]},
    anthropic.target: {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "?"}]}],
    },
    gemini.target: {"model": "m", "contents": [{"role": "user", "parts": [{"text": "?"}]}]},
}
CALLS: tuple[tuple[str, str, JSON], ...] = (
    ("a", "weather", {"cityName": "Oslo", "deep": {"dayOfWeek": 1}}),
    ("b", "clock", {}),
)


def decode(vendor: Vendor, body: Any) -> Reply:
    book = load_book()
    return book.wire(book.find(vendor.target)).decode(body)


def decode_both_ways(vendor: Vendor, body: JSON) -> Reply:
    """The body as it is and through the SDK, which must not differ."""
    plain = decode(vendor, deepcopy(body))
    assert decode(vendor, vendor.send(MINIMAL[vendor.target], body)) == plain
    return plain


async def prepared(vendor: Vendor, folder: Path) -> Turn:
    return await (await open_with(vendor, folder)).prepare("Well?")


@each_vendor
def test_an_answer_is_read_with_what_it_cost(vendor: Vendor) -> None:
    reply = decode_both_ways(vendor, vendor.answer("Yes."))
    assert reply.blocks == (Text("Yes."),)
    assert reply.complete
    written = 150 if vendor is anthropic else 0
    assert reply.usage == Usage(input=1000, cached=800, written=written, output=20)
    assert reply.model


@each_vendor
def test_calls_keep_the_names_of_their_arguments(vendor: Vendor) -> None:
    reply = decode_both_ways(vendor, vendor.calling(*CALLS))
    calls = [block for block in reply.blocks if isinstance(block, ToolCall)]
    assert [(call.id, call.name) for call in calls] == [("a", "weather"), ("b", "clock")]
    assert "cityName" in calls[0].arguments
    assert "dayOfWeek" in calls[0].arguments
    assert calls[1].arguments == "{}"
    assert len(reply.blocks) == 2


@each_vendor
def test_an_answer_without_words_is_an_answer(vendor: Vendor) -> None:
    for body in (vendor.answer(None), vendor.answer("")):
        reply = decode_both_ways(vendor, body)
        assert "".join(b.text for b in reply.blocks if isinstance(b, Text)) == ""
        assert reply.complete


@each_vendor
def test_a_reply_without_a_finish_reason_is_kept_as_interrupted(
    vendor: Vendor, tmp_path: Path
) -> None:
    body = vendor.answer("It was a dark and", stop=None)
    decode_both_ways(vendor, body)

    async def main() -> None:
        turn = await prepared(vendor, tmp_path)
        turn = await turn.commit(vendor.send(turn.request(), body))
        assert turn.interrupted
        assert turn.answer == "It was a dark and"

    anyio.run(main)


@each_vendor
def test_lone_surrogates_in_a_reply_are_mended(vendor: Vendor, tmp_path: Path) -> None:
    async def main() -> None:
        turn = await prepared(vendor, tmp_path)
        body = vendor.calling(("a", "weather", {"cityName": "Os\ud83dlo"}))
        turn = await turn.commit(vendor.send(turn.request(), body))
        turn = await turn.resume({"a": "snow \udc00"})
        turn = await turn.commit(vendor.send(turn.request(), vendor.answer("half \ud83d a face")))
        assert turn.answer.startswith("half \ufffd")
        assert turn.answer.encode()

    anyio.run(main)


@each_vendor
def test_a_reply_that_cannot_be_read_leaves_the_turn_open(vendor: Vendor, tmp_path: Path) -> None:
    unreadable: list[Any] = [
        None, [], ["x"], 7, "<html>Bad gateway</html>", b"<html>", {}, object(),
        {"choices": []}, {"choices": [{}]}, {"choices": [{"message": None}]}, {"choices": 3},
        {"content": "x"}, {"content": ["x"]}, {"content": [{"type": "tool_use", "id": "a"}]},
        {"candidates": []}, {"candidates": ["x"]}, {"candidates": None},
        {"candidates": [{"content": {"parts": [{"functionCall": {}}]}}]},
        {"choices": [{"message": {"content": 7}}]}, {"content": [{"type": "text", "text": 7}]},
    ]  # fmt: skip

    async def main() -> None:
        turn = await prepared(vendor, tmp_path)
        for reply in unreadable:
            with pytest.raises(ReplyError, match="pass the SDK's response object"):
                await turn.commit(reply)
        turn = await turn.commit(vendor.answer("Here."))
        assert turn.answer == "Here."

    anyio.run(main)


@pytest.mark.parametrize("vendor", [openai, anthropic], ids=["openai", "anthropic"])
def test_a_page_of_a_proxy_is_said_to_be_one(vendor: Vendor) -> None:
    # These two SDKs hand out an HTML page of status 200 as a string.
    page = vendor.send(MINIMAL[vendor.target], b"<html>Sign in to the network</html>")
    with pytest.raises(ReplyError, match="it begins with '<html>Sign in"):
        decode(vendor, page)


@each_vendor
@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": 400, "type": "exceed_context_size_error", "message": "too long"}},
        {"type": "error", "error": {"type": "overloaded_error", "message": "too long"}},
        {"error": "too long"},
    ],
)
def test_a_vendors_error_is_quoted(vendor: Vendor, body: JSON) -> None:
    with pytest.raises(ReplyError, match="the provider reports an error: too long"):
        decode(vendor, body)


def _with(body: JSON, change: Callable[[JSON], object]) -> JSON:
    changed = deepcopy(body)
    change(changed)
    return changed


def test_refusals_say_so_in_the_vendors_own_word() -> None:
    refused = _with(
        openai.answer(None),
        lambda body: body["choices"][0]["message"].update(refusal="I can't help with that."),
    )
    reply = decode_both_ways(openai, refused)
    assert (reply.blocks, reply.stop) == ((Text("I can't help with that."),), "stop")

    details = {"type": "refusal", "category": "bio", "explanation": None}
    refused = anthropic.answer(None, stop="refusal") | {"stop_details": details}
    reply = decode_both_ways(anthropic, refused)
    assert (reply.blocks, reply.stop) == ((Text(""),), "refusal")

    reply = decode_both_ways(gemini, gemini.answer(None, stop="SAFETY"))
    assert (reply.blocks, reply.stop) == ((Text(""),), "SAFETY")

    blocked = {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 9},
    }
    for body in (blocked, gemini.send(MINIMAL[gemini.target], blocked)):
        with pytest.raises(ReplyError, match="the prompt was blocked: PROHIBITED_CONTENT"):
            decode(gemini, body)


@pytest.mark.parametrize(
    ("wire", "usage", "expected"),
    [
        (openai_wire, None, Usage(cache_reported=False)),
        (openai_wire, {"prompt_tokens": 9}, Usage(input=9, cache_reported=False)),
        (
            openai_wire,
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": None},
            Usage(input=9, output=2, cache_reported=False),
        ),
        (
            openai_wire,
            {
                "prompt_tokens": 2000,
                "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 1900},
            },
            Usage(input=2000, written=1900, output=2),
        ),
        (anthropic_wire, None, Usage(cache_reported=False)),
        (
            anthropic_wire,
            {"input_tokens": 9, "output_tokens": 2},
            Usage(input=9, output=2, cache_reported=False),
        ),
        (
            anthropic_wire,
            {"input_tokens": 9, "output_tokens": 2, "cache_read_input_tokens": 0},
            Usage(input=9, output=2),
        ),
        (gemini_wire, None, Usage(cache_reported=False)),
        # Gemini leaves out what is zero.
        (
            gemini_wire,
            {"promptTokenCount": 9, "candidatesTokenCount": 2},
            Usage(input=9, output=2),
        ),
    ],
)
def test_usage_has_one_form(wire: Any, usage: JSON | None, expected: Usage) -> None:
    vendors: dict[Any, tuple[Vendor, str]] = {
        openai_wire: (openai, "usage"),
        anthropic_wire: (anthropic, "usage"),
        gemini_wire: (gemini, "usageMetadata"),
    }
    vendor, key = vendors[wire]
    body = vendor.answer("Yes.")
    if usage is None:
        del body[key]
    else:
        body[key] = usage
    assert wire.decode(body).usage == expected
    if usage is None or wire is gemini_wire:
        assert decode_both_ways(vendor, body).usage == expected


def test_openai_likes_are_read_for_what_they_mean() -> None:
    body = _with(
        openai.calling(("", "weather", {"cityName": "Oslo"}), ("", "clock", {})),
        lambda body: body["choices"][0]["message"].update(
            content=[{"type": "text", "text": "Let me "}, {"type": "text", "text": "look."}],
            reasoning_content="The user asks for Oslo.",
        ),
    )
    body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = {"cityName": "Oslo"}
    reply = openai_wire.decode(body)
    thought, said, first, second = reply.blocks
    assert thought == Thinking(text="The user asks for Oslo.", provider="openai")
    assert said == Text("Let me look.")
    assert isinstance(first, ToolCall)
    assert isinstance(second, ToolCall)
    assert first.arguments == '{"cityName":"Oslo"}'
    # No ids: they get some, each its own, the same whenever the reply is read.
    assert first.id
    assert second.id
    assert first.id != second.id
    assert openai_wire.decode(body) == reply


def test_thinking_is_read_with_its_signature() -> None:
    body = anthropic.saying(
        [
            {"type": "thinking", "thinking": "Hm.", "signature": sign("Hm.")},
            {"type": "redacted_thinking", "data": "c2VjcmV0"},
            {"type": "text", "text": "Yes."},
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        ],
        "end_turn",
    )
    assert decode_both_ways(anthropic, body).blocks == (
        Thinking(text="Hm.", signature=sign("Hm."), provider="anthropic"),
        Thinking(redacted="c2VjcmV0", provider="anthropic"),
        Text("Yes."),
    )
