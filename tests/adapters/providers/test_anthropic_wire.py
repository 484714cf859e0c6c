"""What only Anthropic's wire has: cache markers, signed thinking, a prefill."""

from itertools import pairwise
from pathlib import Path

import anyio
from tests.adapters.providers.strict import JSON
from tests.adapters.providers.strict_anthropic import sign
from tests.adapters.providers.vendors import anthropic, open_with

from lamina.core.values.envelope import Options
from lamina.core.values.message import Message, Text, ToolCall, ToolResult, ToolText
from lamina.core.values.patch import MessagesCachedReplace, MessagesUncachedAppend
from lamina.core.values.settings import Settings
from lamina.engine.session.turn import Turn

LONG = "The quick brown fox jumps over the lazy dog. " * 150  # past half the least that is cached
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": sign("Hm.")}
OMITTED = {"type": "thinking", "thinking": "", "signature": sign("")}
REDACTED = {"type": "redacted_thinking", "data": "c2VjcmV0"}


async def exchange(turn: Turn, reply: JSON) -> Turn:
    return await turn.commit(anthropic.send(turn.request(), reply))


def blocks_of(request: JSON) -> list[JSON]:
    """Every block in wire order, system first."""
    return [*request.get("system", ()), *(b for m in request["messages"] for b in m["content"])]


def marked_texts(request: JSON) -> list[str]:
    """The end of each marked block."""
    marked = [block for block in blocks_of(request) if "cache_control" in block]
    assert all(block["cache_control"] == {"type": "ephemeral"} for block in marked)
    return [
        str(block.get("text") or block.get("content") or block["type"])[-9:] for block in marked
    ]


def bare(blocks: list[JSON]) -> list[JSON]:
    return [{k: v for k, v in block.items() if k != "cache_control"} for block in blocks]


def cached_prefix(request: JSON) -> list[JSON]:
    """What the server keeps: all blocks up to the last marker."""
    blocks = blocks_of(request)
    last = max(i for i, block in enumerate(blocks) if "cache_control" in block)
    return bare(blocks[: last + 1])


def assert_keeps(before: JSON, after: JSON) -> None:
    kept = cached_prefix(before)
    assert bare(blocks_of(after))[: len(kept)] == kept


def test_markers_stand_at_the_ends_of_l1_l2_history_and_turn(tmp_path: Path) -> None:
    async def main() -> None:
        session = await open_with(anthropic, tmp_path, system=f"{LONG}End of L1", tools=())
        turn = await session.prepare("First question", attach=["api.md"])
        await exchange(turn, anthropic.answer("First answer"))
        await session.rebuild_library("test")
        turn = await session.prepare("Second one")
        assert marked_texts(turn.request()) == ["End of L1", "_context>", "st answer", "econd one"]
        turn = await exchange(turn, anthropic.answer("Second answer"))
        turn = await session.prepare("Third question", attach=["plan.png"])
        ends = ["End of L1", "_context>", "nd answer", " question"]
        assert marked_texts(turn.request()) == ends
        await exchange(turn, anthropic.answer("Third answer"))

    anyio.run(main)


def test_a_prompt_too_short_to_be_cached_has_no_markers(tmp_path: Path) -> None:
    async def main() -> None:
        session = await open_with(anthropic, tmp_path)
        turn = await session.prepare("Short?")
        assert marked_texts(turn.request()) == []

    anyio.run(main)


def test_what_was_marked_is_kept_through_calls_and_turns(tmp_path: Path) -> None:
    async def main() -> None:
        session = await open_with(anthropic, tmp_path, system=LONG)
        requests = []
        for question, attach in [("One?", ["api.md", "plan.png"]), ("Two?", []), ("Three?", [])]:
            turn = await session.prepare(question, attach=attach)
            requests.append(turn.request())
            calls: list[tuple[str, str, JSON]] = [
                (f"{question[:-1]}-{n}", "clock", {}) for n in range(3)
            ]
            content: list[JSON] = anthropic.calling(*calls)["content"]
            reply = anthropic.saying(
                [THOUGHT, {"type": "text", "text": "So."}, *content], "tool_use"
            )
            turn = await exchange(turn, reply)
            turn = await turn.resume({call: "noon" for call, _, _ in calls})
            requests.append(turn.request())
            await exchange(turn, anthropic.saying([THOUGHT], "end_turn"))
        for before, after in pairwise(requests):
            assert_keeps(before, after)
            assert len(cached_prefix(after)) > len(cached_prefix(before))

    anyio.run(main)


def test_the_marker_stands_before_what_is_gone_next_turn(tmp_path: Path) -> None:
    async def main() -> None:
        session = await open_with(anthropic, tmp_path, system=LONG)
        turn = await session.prepare(
            "Which?", attach=["api.md"], tool_texts=[ToolText(name="search", text="3 hits")]
        )
        first = turn.request()
        assert marked_texts(first)[-1] == "_context>"
        await exchange(turn, anthropic.answer("The first."))
        turn = await session.prepare("Sure?")
        second = turn.request()
        assert_keeps(first, second)
        assert "3 hits" not in str(second)
        await exchange(turn, anthropic.answer("Yes."))

    anyio.run(main)


def test_eager_history_is_marked_at_its_end(tmp_path: Path) -> None:
    async def main() -> None:
        settings = Settings(promotion="eager")
        session = await open_with(anthropic, tmp_path, system=LONG, settings=settings)
        turn = await session.prepare("One?", attach=["api.md"])
        said = [{"type": "text", "text": "Just so."}, REDACTED]
        await exchange(turn, anthropic.saying(said, "end_turn"))
        turn = await session.prepare("Two?", attach=["api.md"])
        # Thinking takes no marker: the text in front of it has it.
        assert marked_texts(turn.request())[-1] == "Just so."
        await exchange(turn, anthropic.answer("Yes."))

    anyio.run(main)


def test_signed_thinking_goes_back_as_it_came(tmp_path: Path) -> None:
    async def main() -> None:
        session = await open_with(anthropic, tmp_path, system=LONG)
        turn = await session.prepare("What time is it?")
        said: list[JSON] = [
            THOUGHT, REDACTED, {"type": "text", "text": "Let me look."}, OMITTED,
            {"type": "tool_use", "id": "toolu_1", "name": "clock", "input": {"b": 1, "a": [2.0]}},
        ]  # fmt: skip
        turn = await exchange(turn, anthropic.saying(said, "tool_use"))
        turn = await turn.resume({"toolu_1": "noon"})
        assert turn.request()["messages"][1] == {"role": "assistant", "content": said}
        await exchange(turn, anthropic.answer("Noon."))
        turn = await session.prepare("And now?")
        assert turn.request()["messages"][1] == {"role": "assistant", "content": said}
        await exchange(turn, anthropic.answer("Still noon."))

    anyio.run(main)


def test_thinking_without_a_signature_is_not_sent(tmp_path: Path) -> None:
    async def main() -> None:
        session = await open_with(anthropic, tmp_path)
        turn = await session.prepare("Well?")
        cut = {"type": "thinking", "thinking": "I was cut o", "signature": ""}
        turn = await exchange(turn, anthropic.saying([cut], None))
        assert turn.interrupted
        turn = await session.prepare("Go on.")
        assert "cut o" not in str(turn.request())
        await exchange(turn, anthropic.answer("Yes."))

    anyio.run(main)


def test_a_prefill_does_not_end_with_white_space(tmp_path: Path) -> None:
    async def main() -> None:
        session = await open_with(anthropic, tmp_path)
        opening = Message(role="assistant", blocks=(Text("The answer is: \n"),), id="opening")
        await session.apply("test", MessagesUncachedAppend(messages=(opening,)))
        turn = await session.prepare("Well?")
        assert turn.request()["messages"][-1]["content"][-1]["text"] == "The answer is:"
        await exchange(turn, anthropic.answer("42"))

    anyio.run(main)


def test_arguments_that_are_no_object_are_wrapped(tmp_path: Path) -> None:
    async def main() -> None:
        session = await open_with(anthropic, tmp_path)
        messages: list[Message] = []
        for number, arguments in enumerate(['{"cityName": "Os', "[1]", '"\\ud83d"', ""]):
            call = ToolCall(id=f"c-{number}", name="clock", arguments=arguments)
            result = ToolResult(call_id=call.id, name="clock", text="noon")
            messages += [
                Message(role="user", blocks=(Text("?"),), id=f"u{number}"),
                Message(role="assistant", blocks=(call,), id=f"a{number}"),
                Message(role="tool", blocks=(result,), id=f"t{number}"),
                Message(role="assistant", blocks=(Text("noon"),), id=f"b{number}"),
            ]
        await session.apply("test", MessagesCachedReplace(messages=tuple(messages), reason="test"))
        turn = await session.prepare("Well?")
        used = [b["input"] for b in blocks_of(turn.request()) if b["type"] == "tool_use"]
        assert used == [{"_raw": '{"cityName": "Os'}, {"_raw": [1]}, {"_raw": '"\\ud83d"'}, {}]
        await exchange(turn, anthropic.answer("Yes."))

    anyio.run(main)


def test_the_hour_stands_on_every_marker(tmp_path: Path) -> None:
    async def main() -> None:
        settings = Settings(cache_ttl="1h")
        session = await open_with(anthropic, tmp_path, system=LONG, settings=settings)
        turn = await session.prepare("One?", attach=["api.md"])
        marks = [b["cache_control"] for b in blocks_of(turn.request()) if "cache_control" in b]
        assert marks == [{"type": "ephemeral", "ttl": "1h"}] * 2
        await exchange(turn, anthropic.answer("Yes."))

    anyio.run(main)


def test_a_marker_stays_where_the_last_request_ended_if_no_other_would_reach_it(
    tmp_path: Path,
) -> None:
    """With 18 calls at once the end of the results is 37 blocks away, where runs are not counted
    once."""

    async def main() -> None:
        session = await open_with(anthropic, tmp_path, system=f"{LONG}End of L1")
        turn = await session.prepare("First question")
        await exchange(turn, anthropic.answer("First answer"))
        turn = await session.prepare("Second one")
        before = turn.request()
        calls: list[tuple[str, str, JSON]] = [(f"c-{n}", "clock", {}) for n in range(18)]
        turn = await exchange(turn, anthropic.calling(*calls))
        turn = await turn.resume({call: f"noon of {call}" for call, _, _ in calls})
        after = turn.request()
        assert marked_texts(before) == ["End of L1", "st answer", "econd one"]
        assert marked_texts(after) == ["End of L1", "st answer", "econd one", "n of c-17"]
        # The next step is near again.
        turn = await exchange(turn, anthropic.calling(("d-1", "clock", {})))
        turn = await turn.resume({"d-1": "it is one"})
        assert marked_texts(turn.request()) == ["End of L1", "st answer", "it is one"]
        await exchange(turn, anthropic.answer("Done."))

    anyio.run(main)


def test_with_a_library_four_markers_are_enough_for_eighteen_calls(tmp_path: Path) -> None:
    async def main() -> None:
        session = await open_with(anthropic, tmp_path, system=f"{LONG}End of L1")
        turn = await session.prepare("First question", attach=["api.md"])
        await exchange(turn, anthropic.answer("First answer"))
        await session.rebuild_library("test")
        turn = await session.prepare("Second one")
        calls: list[tuple[str, str, JSON]] = [(f"c-{n}", "clock", {}) for n in range(18)]
        turn = await exchange(turn, anthropic.calling(*calls))
        turn = await turn.resume({call: f"noon of {call}" for call, _, _ in calls})
        ends = ["End of L1", "_context>", "econd one", "n of c-17"]
        assert marked_texts(turn.request()) == ends
        await exchange(turn, anthropic.answer("Done."))

    anyio.run(main)


def test_the_last_answer_is_named_so_that_the_provider_says_what_changed(tmp_path: Path) -> None:
    async def main() -> None:
        session = await open_with(anthropic, tmp_path)
        turn = await session.prepare("One?")
        assert turn.request()["diagnostics"] == {"previous_message_id": None}
        reason = {"type": "tools_changed", "cache_missed_input_tokens": 5_000}
        reply = anthropic.answer("Yes.") | {"diagnostics": {"cache_miss_reason": reason}}
        turn = await exchange(turn, reply | {"id": "msg_one"})
        assert turn.verdict
        assert "the provider says: tools_changed, about 5,000 tokens" in turn.verdict.detail
        turn = await session.prepare("Two?")
        assert turn.request()["diagnostics"] == {"previous_message_id": "msg_one"}
        await exchange(turn, anthropic.answer("Yes.") | {"diagnostics": {}})
        # Another vendor's id means nothing to this one, nor this one's to another.
        turn = await session.prepare("Three?", target="openai:gpt-4o")
        assert "diagnostics" not in turn.request()
        reply = {"choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}]}
        await turn.commit(reply)
        turn = await session.prepare("Four?", target=anthropic.target)
        assert turn.request()["diagnostics"] == {"previous_message_id": None}

    anyio.run(main)


def test_a_schema_reaches_the_wire(tmp_path: Path) -> None:
    async def main() -> None:
        schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
        options = Options(reasoning="low", schema=schema)
        session = await open_with(anthropic, tmp_path, options=options)
        turn = await session.prepare("Well?")
        wanted = {"type": "json_schema", "schema": schema}
        assert turn.request()["output_config"] == {"effort": "low", "format": wanted}
        await exchange(turn, anthropic.answer('{"answer": "yes"}'))

    anyio.run(main)
