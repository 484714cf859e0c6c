"""The client against the emulator, through Anthropic's own SDK."""

import logging
import subprocess
import sys
from base64 import b64encode
from contextlib import aclosing
from typing import Any

import anyio
import pytest
from tests.adapters.providers.clients.anthropic_server import KEY, asking, body, hello
from tests.adapters.providers.strict import png

from lamina.adapters.providers.clients.retries import RetryPolicy
from lamina.core.values.message import Text, Thinking, ToolCall
from lamina.core.values.usage import Usage
from lamina.core.values.wire import CallPiece, Reply, ResentPiece, TextPiece, ThinkingPiece
from lamina.emulators.answers import EmulatedAnswer, EmulatedCall
from lamina.emulators.faults import FAULT_KINDS, EmulatedFault, FaultKind
from lamina.errors import KeyMissing, ProviderBusy, ProviderError, RequestTooLong

MARK = {"type": "ephemeral"}
LONG = "The quick brown fox jumps over the lazy dog. " * 200
CLOCK = {"name": "clock", "input_schema": {"type": "object", "properties": {}}}


# -- answers -------------------------------------------------------------------------------------


def test_thoughts_words_and_calls_come_in_order_and_the_reply_last() -> None:
    said = EmulatedAnswer(
        text="It is noon.",
        thinking="The sun is high.",
        calls=(EmulatedCall(name="clock", arguments={"zone": "Europe/Oslo", "exact": True}),),
    )

    async def main() -> None:
        async with asking(said) as it:
            pieces, error = await it.ask(body("When?", tools=[CLOCK]))
        assert error is None
        *spoken, reply = pieces
        assert isinstance(reply, Reply)
        assert [type(each) for each in spoken] == sorted(
            (type(each) for each in spoken), key=[ThinkingPiece, TextPiece, CallPiece].index
        )
        thought = [each.text for each in spoken if isinstance(each, ThinkingPiece)]
        words = [each.text for each in spoken if isinstance(each, TextPiece)]
        call = [each for each in spoken if isinstance(each, CallPiece)]
        assert thought == ["The", " sun", " is", " high."]
        assert words == ["It", " is", " noon."]
        assert (call[0].name, {piece.name for piece in call[1:]}) == ("clock", {""})
        assert "".join(piece.arguments for piece in call) == '{"zone":"Europe/Oslo","exact":true}'
        thinking, text, called = reply.blocks
        assert isinstance(thinking, Thinking)
        assert (thinking.text, bool(thinking.signature)) == ("The sun is high.", True)
        assert text == Text("It is noon.")
        assert isinstance(called, ToolCall)
        assert (called.name, called.arguments) == ("clock", '{"zone":"Europe/Oslo","exact":true}')
        assert (reply.stop, reply.complete, reply.model) == ("tool_use", True, "claude-sonnet-5")
        assert reply.id.startswith("msg_")

    anyio.run(main)


def test_eighteen_calls_at_once_go_round() -> None:
    calls = tuple(EmulatedCall(name="clock", arguments={"zone": number}) for number in range(18))

    async def main() -> None:
        async with asking(EmulatedAnswer(calls=calls), "All noon.") as it:
            reply = await it.reply(body("When?", tools=[CLOCK]))
            made = [block for block in reply.blocks if isinstance(block, ToolCall)]
            assert [call.arguments for call in made] == [f'{{"zone":{n}}}' for n in range(18)]
            assert len({call.id for call in made}) == 18
            used = [
                {"type": "tool_use", "id": call.id, "name": "clock", "input": {}} for call in made
            ]
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": "noon"} for call in made
            ]
            turns = [
                hello(),
                {"role": "assistant", "content": used},
                {"role": "user", "content": results},
            ]
            reply = await it.reply(body(*turns, tools=[CLOCK]))
            assert reply.blocks == (Text("All noon."),)

    anyio.run(main)


def test_a_thought_goes_back_as_it_came_and_one_that_was_touched_is_refused() -> None:
    async def main() -> None:
        async with asking(EmulatedAnswer(text="Yes.", thinking="Hm, so.")) as it:
            reply = await it.reply(body())
            thought = reply.blocks[0]
            assert isinstance(thought, Thinking)
            block = {"type": "thinking", "thinking": thought.text, "signature": thought.signature}
            said = {"role": "assistant", "content": [block, {"type": "text", "text": "Yes."}]}
            await it.reply(body(hello(), said, hello()))
            block["thinking"] = "Hm, no."
            _, error = await it.ask(body(hello(), said, hello()))
            assert "Invalid `signature` in `thinking` block" in str(error)

    anyio.run(main)


def test_a_picture_is_seen() -> None:
    data = b64encode(png(600, 500)).decode()
    source = {"type": "base64", "media_type": "image/png", "data": data}
    turn = {"role": "user", "content": [{"type": "image", "source": source}]}

    async def main() -> None:
        async with asking("A grey rectangle.") as it:
            reply = await it.reply(body(turn))
            assert reply.usage.input == 600 * 500 // 750 + 3

    anyio.run(main)


def test_usage_is_normalised_input_includes_what_was_cached() -> None:
    def marked(**control: Any) -> dict[str, Any]:
        system = [{"type": "text", "text": LONG, "cache_control": MARK | control}]
        return body(system=system)

    async def main() -> None:
        async with asking("Yes.") as it:
            first = (await it.reply(marked())).usage
            again = (await it.reply(marked())).usage
            it.server.clock.move(301)
            hour = (await it.reply(marked(ttl="1h"))).usage
        assert first.written > 1_024
        assert (first.cached, first.written_long, first.output) == (0, 0, 2)
        assert again == Usage(input=first.input, cached=first.written, output=first.output)
        assert (hour.written, hour.written_long) == (first.written, first.written)

    anyio.run(main)


def test_what_came_between_the_request_and_its_cache_is_in_the_reply() -> None:
    async def main() -> None:
        async with asking("Yes.") as it:
            system = [{"type": "text", "text": LONG, "cache_control": MARK}]
            first = await it.reply(body(system=system, diagnostics={"previous_message_id": None}))
            previous = {"previous_message_id": first.id}
            same = await it.reply(body(system=system, diagnostics=previous))
            system = [{"type": "text", "text": f"{LONG}!", "cache_control": MARK}]
            other = await it.reply(body(system=system, diagnostics=previous))
        assert (first.missed, same.missed) == ("", "")
        assert other.missed == f"system_changed, about {first.usage.written:,} tokens"

    anyio.run(main)


def test_an_answer_cut_at_its_limit_says_so() -> None:
    async def main() -> None:
        async with asking("One two three four five six.") as it:
            reply = await it.reply(body(max_tokens=4))
            assert (reply.stop, reply.complete) == ("max_tokens", True)
            assert reply.blocks == (Text("One two three four"),)

    anyio.run(main)


def test_tokens_are_counted_where_anthropic_counts_them() -> None:
    async def main() -> None:
        async with asking("Yes.") as it:
            request = body(
                "How long is this?", system=LONG, tools=[CLOCK], extra_body={"temperature": 0.5},
                diagnostics={"previous_message_id": None}, model="claude-haiku-4-5",
            )  # fmt: skip
            counted = await it.client().count_tokens(request)
            reply = await it.reply(request)
            assert counted == reply.usage.input
            with pytest.raises(ProviderError, match="first message must use"):
                await it.client().count_tokens(body({"role": "assistant", "content": "Hi"}))

    anyio.run(main)


# -- faults --------------------------------------------------------------------------------------

# What a fault that happens once comes to: what is raised, after how many attempts.
ONCE: dict[FaultKind, tuple[type[ProviderError] | None, int]] = {
    "429": (None, 2),
    "500": (None, 2),
    "503": (None, 2),
    "529": (None, 2),
    "401": (KeyMissing, 1),
    "overflow": (RequestTooLong, 1),
    "throttle": (None, 2),
    "html": (None, 2),
    "empty": (None, 2),
    "cut": (ProviderBusy, 1),
    "silent": (None, 1),
    "slow": (None, 1),
    "hang": (None, 2),
    "reset": (None, 2),
}


@pytest.mark.parametrize("kind", FAULT_KINDS)
def test_a_fault_is_told_apart_and_tried_again_where_that_helps(kind: FaultKind) -> None:
    raised, attempts = ONCE[kind]
    words = "Yes." if kind == "slow" else "One two three four five six seven eight."
    within = 0.3 if kind == "hang" else 10.0

    async def main() -> None:
        async with asking(words, faults=[EmulatedFault(kind=kind)], within=within) as it:
            pieces, error = await it.ask(body())
            assert type(error) is (raised or type(None)), error
            assert len(it.server.bodies) == attempts
            whole = bool(pieces) and isinstance(pieces[-1], Reply)
            assert whole == (raised is None and kind != "silent")
            if kind in ("cut", "silent"):
                # What came is given on; the runner keeps it.
                assert pieces[:2] == [TextPiece("One"), TextPiece(" two")]
                assert len(pieces) < 8

    anyio.run(main)


def test_patience_ends() -> None:
    kinds: list[FaultKind] = ["429", "500", "529", "throttle", "html", "empty", "reset"]

    async def main() -> None:
        faults = [EmulatedFault(kind=kind, times=3) for kind in kinds]
        async with asking("Yes.", faults=faults) as it:
            for number, kind in enumerate(kinds, 1):
                pieces, error = await it.ask(body())
                # Where nobody knows what became of it, whoever pays is told before each resend.
                is_lost = kind in ("html", "empty", "reset")
                assert [type(piece) for piece in pieces] == [ResentPiece] * (2 * is_lost), kind
                assert type(error) is ProviderBusy, kind
                assert error.is_refusal is not is_lost, kind
                assert len(it.server.bodies) == 3 * number

    anyio.run(main)


def test_an_answer_that_ends_before_its_first_word_is_asked_for_again() -> None:
    async def main() -> None:
        # Half of an answer of one word is none.
        async with asking(
            "Yes.", faults=[EmulatedFault(kind="silent"), EmulatedFault(kind="cut")]
        ) as it:
            reply = await it.reply(body())
            assert reply.blocks == (Text("Yes."),)
            assert len(it.server.bodies) == 3

    anyio.run(main)


def test_no_attempt_comes_before_the_moment_that_the_server_named() -> None:
    async def main() -> None:
        fault = EmulatedFault(kind="429", times=2, retry_after=0.15)
        async with asking("Yes.", faults=[fault]) as it:
            await it.reply(body(system="Import the SDK."))
            it.server.faults.add(fault)
            began = anyio.current_time()
            await it.reply(body())
            assert anyio.current_time() - began >= 0.3

    anyio.run(main)


def test_a_server_that_asks_for_more_than_patience_is_not_waited_for() -> None:
    async def main() -> None:
        faults = [EmulatedFault(kind="429", retry_after=60.0)]
        async with asking("Yes.", faults=faults) as it:
            _, error = await it.ask(body())
            assert isinstance(error, ProviderBusy)
            assert error.retry_after == 60.0
            assert len(it.server.bodies) == 1

    anyio.run(main)


def test_throttling_that_speaks_of_tokens_is_no_overflow_and_an_overflow_no_throttling() -> None:
    async def main() -> None:
        retry_policy = RetryPolicy(attempts=1)
        faults = [EmulatedFault(kind="throttle"), EmulatedFault(kind="overflow")]
        async with asking("Yes.", faults=faults, retry_policy=retry_policy) as it:
            _, throttled = await it.ask(body())
            _, overflow = await it.ask(body())
            assert type(throttled) is ProviderBusy
            assert "tokens per minute" in str(throttled)
            assert type(overflow) is RequestTooLong
            assert "prompt is too long: 1001234 tokens > 1000000 maximum" in str(overflow)

    anyio.run(main)


def test_a_request_over_the_window_is_refused_as_too_long() -> None:
    async def main() -> None:
        async with asking("Yes.") as it:
            _, error = await it.ask(body(" one" * 170_000, model="claude-haiku-4-5"))
            assert type(error) is RequestTooLong

    anyio.run(main)


def test_a_server_that_is_not_there_is_busy() -> None:
    async def main() -> None:
        async with asking("Yes.") as it:
            it.url = "http://127.0.0.1:9"
            _, error = await it.ask(body())
            assert type(error) is ProviderBusy
            assert "no connection" in str(error)

    anyio.run(main)


# -- stopping ------------------------------------------------------------------------------------


async def _until_dropped(it: Any) -> None:
    with anyio.fail_after(5):
        while not it.server.abandoned_count:  # noqa: ASYNC110 - it tells in no other way
            await anyio.sleep(0.01)


def test_closing_the_iterator_closes_the_connection() -> None:
    async def main() -> None:
        async with asking("One two three four.", faults=[EmulatedFault(kind="slow")]) as it:
            async with aclosing(it.client().stream(body())) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    assert piece == TextPiece("One")
                    break
            await _until_dropped(it)

    anyio.run(main)


@pytest.mark.parametrize("kind", ["slow", "hang"])
def test_a_cancellation_closes_the_connection(kind: FaultKind) -> None:
    async def main() -> None:
        async with asking("One two three four.", faults=[EmulatedFault(kind=kind)]) as it:
            with anyio.move_on_after(0.5) as scope:
                await it.ask(body())
            assert scope.cancelled_caught
            await _until_dropped(it)
            # The client is as good as before.
            assert (await it.reply(body())).complete

    anyio.run(main)


# -- keys ----------------------------------------------------------------------------------------


def test_no_key_is_in_any_message_or_log(caplog: pytest.LogCaptureFixture) -> None:
    kinds = [kind for kind in FAULT_KINDS if kind not in ("slow", "hang")]

    async def main() -> list[str]:
        said = []
        faults = [EmulatedFault(kind=kind) for kind in kinds]
        with caplog.at_level(logging.DEBUG):
            async with asking("Yes.", faults=faults, retry_policy=RetryPolicy(attempts=1)) as it:
                for _ in kinds:
                    _, error = await it.ask(body())
                    said.append(f"{error} {error!r} {error and error.__cause__}")
        return said

    said = anyio.run(main)
    assert len(said) == len(kinds)
    assert KEY not in "".join(said)
    assert caplog.text
    assert KEY not in caplog.text


def test_a_server_that_repeats_the_key_does_not_get_it_into_a_message() -> None:
    async def main() -> None:
        async with asking("Yes.") as it:
            _, error = await it.ask(body(model=f"claude-{KEY}", max_tokens=9**9))
            assert "claude-…" in str(error)
            assert KEY not in str(error)

    anyio.run(main)


def test_without_a_key_the_server_says_so() -> None:
    async def main() -> None:
        async with asking("Yes.") as it:
            client = it.client(key="")
            with pytest.raises(ProviderError):
                async for _ in client.stream(body()):
                    pass

    anyio.run(main)


def test_nothing_is_imported_before_something_is_asked() -> None:
    script = (
        "import sys\n"
        "from lamina.adapters.providers.model_book import load_book\n"
        "from lamina.adapters.providers.clients.anthropic import connect\n"
        "connect(load_book().find('anthropic:claude-sonnet-5'), 'key')\n"
        "print(*sorted({'anthropic', 'httpx2', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
