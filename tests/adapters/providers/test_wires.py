"""One contract over the three wires: what a session prepares goes through the vendor's own SDK to
a server that is as strict as the vendor, and what comes back is committed."""

import json
from itertools import permutations
from pathlib import Path

import anyio
import pytest
from tests.adapters.providers.strict import JSON, Refused, Vendor, png
from tests.adapters.providers.strict_anthropic import check as check_anthropic
from tests.adapters.providers.strict_gemini import check as check_gemini
from tests.adapters.providers.strict_openai import check as check_openai
from tests.adapters.providers.vendors import (
    VENDORS,
    anthropic,
    each_vendor,
    gemini,
    open_with,
    openai,
)

from lamina.core.values.envelope import Options
from lamina.core.values.message import Message, Text, ToolCall
from lamina.core.values.patch import CompactionApply, MessagesUncachedAppend
from lamina.engine.session.turn import Turn


async def exchange(vendor: Vendor, turn: Turn, reply: JSON) -> Turn:
    return await turn.commit(vendor.send(turn.request(), reply))


@each_vendor
def test_a_turn_with_a_note_an_image_and_tools_runs_through_the_sdk(
    vendor: Vendor, tmp_path: Path
) -> None:
    async def main() -> None:
        session = await open_with(vendor, tmp_path)
        turn = await session.prepare("Is it warm in Oslo?", attach=["api.md", "plan.png"])
        request = turn.request()
        assert vendor.system_text(request).startswith("You are terse.")
        assert vendor.images(request) == [png()]
        sent = json.dumps(vendor.flatten(request))
        assert sent.count("GET /v2/cities lists cities.") == 1
        assert sent.index("GET /v2/cities") < sent.index("Is it warm in Oslo?")

        turn = await exchange(
            vendor, turn, vendor.calling(("call_1", "weather", {"cityName": "Oslo"}))
        )
        assert turn.pending_calls == (
            ToolCall(id="call_1", name="weather", arguments=turn.pending_calls[0].arguments),
        )
        assert json.loads(turn.pending_calls[0].arguments) == {"cityName": "Oslo"}
        turn = await turn.resume({"call_1": "-3 °C, snow"})
        assert "-3 °C, snow" in json.dumps(vendor.flatten(turn.request()), ensure_ascii=False)
        turn = await exchange(vendor, turn, vendor.answer("No: -3 °C."))
        assert (turn.answer, turn.pending_calls, turn.interrupted) == ("No: -3 °C.", (), False)

        turn = await session.prepare("And by the note?", attach=["api.md"])
        request = turn.request()
        assert json.dumps(vendor.flatten(request)).count("GET /v2/cities lists cities.") == 1
        assert vendor.images(request) == [png()]
        turn = await exchange(vendor, turn, vendor.answer("It lists cities."))
        assert turn.answer == "It lists cities."

    anyio.run(main)


@each_vendor
def test_parallel_calls_are_answered_by_id_in_any_order(vendor: Vendor, tmp_path: Path) -> None:
    async def main() -> None:
        session = await open_with(vendor, tmp_path)
        turn = await session.prepare("Oslo and Rome?")
        calls = [("a-1", "weather", {"cityName": "Oslo"}), ("b-2", "weather", {"cityName": "Rome"})]
        turn = await exchange(vendor, turn, vendor.calling(*calls, ("c-3", "clock", {})))
        assert [call.id for call in turn.pending_calls] == ["a-1", "b-2", "c-3"]
        turn = await turn.resume(
            [
                {"call_id": "c-3", "text": "noon"},
                {"call_id": "b-2", "text": "no such city", "is_error": True},
                {"call_id": "a-1", "text": "snow"},
            ]
        )
        results = [part for _, part in vendor.flatten(turn.request())][-3:]
        for result, (call, said) in zip(
            results, [("a-1", "snow"), ("b-2", "no such city"), ("c-3", "noon")], strict=True
        ):
            assert call in json.dumps(result)
            assert said in json.dumps(result)
        turn = await exchange(vendor, turn, vendor.answer("Snow, nothing, noon."))
        assert turn.answer == "Snow, nothing, noon."

    anyio.run(main)


@each_vendor
@pytest.mark.parametrize("is_error", [False, True])
def test_a_tool_may_say_nothing(vendor: Vendor, tmp_path: Path, is_error: bool) -> None:
    async def main() -> None:
        session = await open_with(vendor, tmp_path)
        turn = await session.prepare("What time is it?")
        turn = await exchange(vendor, turn, vendor.calling(("c-1", "clock", {})))
        turn = await turn.resume([{"call_id": "c-1", "text": " \n", "is_error": is_error}])
        turn = await exchange(vendor, turn, vendor.answer("I cannot tell."))
        assert turn.answer == "I cannot tell."

    anyio.run(main)


@each_vendor
def test_answers_without_words_leave_no_empty_message(vendor: Vendor, tmp_path: Path) -> None:
    async def main() -> None:
        session = await open_with(vendor, tmp_path)
        for said in (None, "", " \n\n "):
            turn = await session.prepare("Say something.")
            turn = await exchange(vendor, turn, vendor.answer(said))
            assert turn.answer.strip() == ""
        turn = await session.prepare("Anything?")
        asked = [part for role, part in vendor.flatten(turn.request()) if role == "user"]
        assert len(asked) == 4
        turn = await exchange(vendor, turn, vendor.answer("Yes."))
        assert turn.answer == "Yes."

    anyio.run(main)


@each_vendor
def test_a_summary_in_front_of_a_question_is_a_valid_request(
    vendor: Vendor, tmp_path: Path
) -> None:
    async def main() -> None:
        session = await open_with(vendor, tmp_path)
        for question in ("One?", "Two?"):
            turn = await session.prepare(question)
            await exchange(vendor, turn, vendor.answer("Yes."))
        cut = CompactionApply(first_kept=2, summary="They counted to one.", reason="test")
        await session.apply("test", cut)
        turn = await session.prepare("Three?")
        request = turn.request()
        spoken = [(role, json.dumps(part)) for role, part in vendor.flatten(request)]
        first = [role for role, _ in spoken].index("user")
        assert "They counted to one." in spoken[first][1]
        # Two texts, not one run into the other.
        assert "Two?" in spoken[first + 1][1]
        await exchange(vendor, turn, vendor.answer("Yes."))

    anyio.run(main)


@each_vendor
def test_an_uncached_message_behind_the_question_is_a_valid_request(
    vendor: Vendor, tmp_path: Path
) -> None:
    async def main() -> None:
        session = await open_with(vendor, tmp_path)
        hint = Message(role="user", blocks=(Text("It is noon."),), id="hint")
        await session.apply("test", MessagesUncachedAppend(messages=(hint,)))
        turn = await session.prepare("What time is it?")
        assert "It is noon." in json.dumps(vendor.flatten(turn.request())[-1])
        await exchange(vendor, turn, vendor.answer("Noon."))

    anyio.run(main)


@each_vendor
def test_a_request_is_plain_json_and_sending_it_leaves_it_alone(
    vendor: Vendor, tmp_path: Path
) -> None:
    async def main() -> None:
        session = await open_with(vendor, tmp_path)
        turn = await session.prepare("Look.", attach=["plan.png"])
        request = turn.request()
        before = json.dumps(request)
        vendor.send(request, vendor.answer("I see."))
        assert json.dumps(request) == before
        assert json.dumps(turn.request()) == before

    anyio.run(main)


@each_vendor
def test_whoever_changes_a_request_changes_no_other(vendor: Vendor, tmp_path: Path) -> None:
    async def main() -> None:
        schema = {"type": "object", "properties": {"city": {"type": "string"}}}
        session = await open_with(vendor, tmp_path, options=Options(schema=schema))
        first = await session.prepare("Hello.")
        await first.commit(vendor.answer("Hi."))
        turn = await session.prepare("Look.", attach=["plan.png"])
        request = turn.request()
        before = json.dumps(request)
        spoil(request)
        assert json.dumps(turn.request()) == before

    def spoil(value: object) -> None:
        if isinstance(value, dict):
            for each in value.values():
                spoil(each)
            value["spoilt"] = True
        elif isinstance(value, list):
            for each in value:
                spoil(each)
            value.append("spoilt")

    anyio.run(main)


@each_vendor
def test_options_reach_the_wire(vendor: Vendor, tmp_path: Path) -> None:
    async def main() -> None:
        options = Options(temperature=0.5, max_tokens=77, reasoning="high")
        session = await open_with(vendor, tmp_path, options=options)
        turn = await session.prepare("Think.")
        vendor.send(turn.request(), vendor.answer("Yes."))

    anyio.run(main)
    seen = {
        openai.target: openai.server.seen,
        anthropic.target: anthropic.server.seen,
        gemini.target: gemini.server.seen,
    }[vendor.target]
    expected: dict[str, JSON] = {
        # A model that takes a temperature takes no effort, and the other way round.
        openai.target: {"temperature": 0.5, "max_completion_tokens": 77},
        anthropic.target: {"max_tokens": 77, "output_config": {"effort": "high"}},
        gemini.target: {
            "generationConfig": {
                "temperature": 0.5,
                "maxOutputTokens": 77,
                "thinkingConfig": {"thinking_budget": 24_576, "include_thoughts": True},
            }
        },
    }
    for name, value in expected[vendor.target].items():
        assert seen[name] == value


@pytest.mark.parametrize(
    ("first", "second"),
    list(permutations(VENDORS, 2)),
    ids=[f"{a.target}-{b.target}" for a, b in permutations(VENDORS, 2)],
)
def test_what_one_vendor_began_another_can_go_on_with(
    first: Vendor, second: Vendor, tmp_path: Path
) -> None:
    async def main() -> None:
        session = await open_with(first, tmp_path)
        for call in ("functions.weather:0", "call_2"):
            turn = await session.prepare("Oslo?", attach=["api.md", "plan.png"])
            turn = await exchange(
                first, turn, first.calling((call, "weather", {"cityName": "Oslo"}))
            )
            turn = await turn.resume({call: "snow"})
            await exchange(first, turn, first.answer("Snow."))
        turn = await session.prepare("Rome?", target=second.target)
        turn = await exchange(
            second, turn, second.calling(("call_3", "weather", {"cityName": "Rome"}))
        )
        turn = await turn.resume({"call_3": "sun"})
        turn = await exchange(second, turn, second.answer("Sun."))
        assert turn.answer == "Sun."

    anyio.run(main)


def _openai(*messages: JSON) -> JSON:
    return {"model": "m", "messages": list(messages)}


def _anthropic(*messages: tuple[str, list[JSON]]) -> JSON:
    listed = [{"role": role, "content": content} for role, content in messages]
    return {"model": "m", "max_tokens": 9, "messages": listed}


def _gemini(*contents: tuple[str, list[JSON]]) -> JSON:
    return {"contents": [{"role": role, "parts": parts} for role, parts in contents]}


_ASKED = {"type": "text", "text": "?"}
_USED = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
_MARKED = _ASKED | {"cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    ("check", "body", "problem"),
    [
        (check_openai, _openai({"role": "user", "content": ""}), "empty message"),
        (check_openai, _openai({"role": "tool", "tool_call_id": "x", "content": ""}), "follow"),
        (check_anthropic, _anthropic(("user", [{"type": "text", "text": "\n"}])), "whitespace"),
        (check_anthropic, _anthropic(("user", [_ASKED]), ("user", [_ASKED])), "alternate"),
        (check_anthropic, _anthropic(("user", [_ASKED]), ("assistant", [_USED])), "without"),
        (check_anthropic, _anthropic(("user", [_MARKED] * 5)), "maximum of 4"),
        (check_gemini, _gemini(("user", [{"text": ""}])), "without text"),
        (check_gemini, _gemini(("user", [{"text": "?"}]), ("user", [{"text": "?"}])), "alternate"),
    ],
)
def test_the_strict_servers_can_refuse(check: object, body: JSON, problem: str) -> None:
    assert callable(check)
    with pytest.raises(Refused, match=problem):
        check(body)
