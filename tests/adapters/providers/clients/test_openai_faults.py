"""What OpenAI and what stands in front of it may do, and what becomes of it."""

import logging
import time
import traceback
from contextlib import aclosing

import anyio
import pytest
from tests.adapters.providers.clients.openai_scene import (
    ASKED,
    KEY,
    QUICK,
    ask,
    ask_whole,
    emulated,
    fault,
    spoken,
)

from lamina.adapters.providers.clients.retries import RetryPolicy
from lamina.core.values.wire import Reply, TextPiece
from lamina.emulators.answers import ScriptedAnswers
from lamina.emulators.faults import EmulatedFault, FaultKind
from lamina.errors import KeyMissing, ProviderBusy, ProviderError, RequestTooLong

PATIENT = RetryPolicy(attempts=3, first_wait_s=0.01, max_wait_s=1.0)
LONG = ScriptedAnswers([" ".join(f"word{n}" for n in range(40))])


PASSING: tuple[FaultKind, ...] = (
    "429", "500", "503", "529", "throttle", "reset", "html", "empty",
)  # fmt: skip


def test_what_passes_is_tried_again() -> None:
    async def main() -> None:
        async with emulated() as (emulator, client):
            for number, kind in enumerate(PASSING):
                emulator.faults.add(EmulatedFault(kind=kind, times=2))
                assert (await ask_whole(client)).complete, kind
                assert emulator.request_count == 3 * (number + 1), kind

    anyio.run(main)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("429", r"openai cannot answer now \(429\): Rate limit reached for gpt-4o"),
        ("throttle", r"\(429\): Request too large .* tokens per min"),
        ("500", r"\(500\): The server had an error"),
        ("reset", "Server disconnected"),
        ("html", "no answer, but '<!doctype html>"),
        ("empty", "it answered nothing"),
    ],
)
def test_what_does_not_pass_is_busy_after_as_many_attempts_as_patience_has(
    kind: FaultKind, said: str
) -> None:
    async def main() -> None:
        async with emulated(faults=fault(kind, 9)) as (emulator, client):
            with pytest.raises(ProviderBusy, match=said):
                await ask(client)
            assert emulator.request_count == QUICK.attempts

    anyio.run(main)


def test_a_server_that_says_nothing_is_given_up() -> None:
    async def main() -> None:
        async with emulated(faults=fault("hang", 9), timeout=0.15) as (emulator, client):
            with pytest.raises(ProviderBusy, match="timed out"):
                await ask(client)
            assert emulator.request_count == QUICK.attempts

    anyio.run(main)


def test_one_waits_as_long_as_the_server_says() -> None:
    async def main() -> None:
        faults = [EmulatedFault(kind="429", times=2, retry_after=0.2)]
        async with emulated(faults=faults, retry_policy=PATIENT) as (emulator, client):
            began = time.monotonic()
            await ask_whole(client)
            assert time.monotonic() - began >= 0.4
            assert emulator.request_count == 3
        # Longer than the policy allows: whoever asked decides.
        faults = [EmulatedFault(kind="429", retry_after=5)]
        async with emulated(faults=faults, retry_policy=PATIENT) as (emulator, client):
            with pytest.raises(ProviderBusy) as caught:
                await ask(client)
            assert caught.value.retry_after == 5
            assert emulator.request_count == 1

    anyio.run(main)


@pytest.mark.parametrize(
    ("kind", "error", "said"),
    [
        ("overflow", RequestTooLong, "maximum context length is 128000 tokens"),
        ("401", KeyMissing, r"openai refused the key \(401\): Incorrect API key provided"),
    ],
)
def test_what_will_not_pass_is_said_at_once(
    kind: FaultKind, error: type[ProviderError], said: str
) -> None:
    async def main() -> None:
        async with emulated(faults=fault(kind, 9)) as (emulator, client):
            with pytest.raises(error, match=said):
                await ask(client)
            assert emulator.request_count == 1

    anyio.run(main)


def test_a_refusal_says_what_was_wrong() -> None:
    async def main() -> None:
        async with emulated() as (emulator, client):
            lonely = {"role": "tool", "tool_call_id": "x", "content": "?"}
            with pytest.raises(ProviderError, match="must be a response to a preceeding"):
                await ask(client, ASKED | {"messages": [lonely]})
            assert emulator.request_count == 1

    anyio.run(main)


@pytest.mark.parametrize("kind", ["silent", "cut"])
def test_what_breaks_off_with_something_said_is_no_whole_answer(kind: FaultKind) -> None:
    async def main() -> None:
        async with emulated(answers=LONG, faults=fault(kind)) as (emulator, client):
            pieces = await ask(client)
            assert spoken(pieces).startswith("word0 word1")
            assert not any(isinstance(piece, Reply) for piece in pieces)
            assert emulator.request_count == 1

    anyio.run(main)


@pytest.mark.parametrize("how", ["closed", "cancelled"])
def test_an_answer_that_nobody_wants_any_more_closes_the_connection(how: str) -> None:
    async def main() -> None:
        async with emulated(answers=LONG, faults=fault("slow")) as (emulator, client):
            heard = anyio.Event()

            async def listen() -> None:
                async with aclosing(client.stream(ASKED)) as pieces:  # type: ignore[type-var]
                    async for piece in pieces:
                        assert isinstance(piece, TextPiece)
                        heard.set()
                        if how == "closed":
                            break

            async with anyio.create_task_group() as group:
                group.start_soon(listen)
                await heard.wait()
                if how == "cancelled":
                    group.cancel_scope.cancel()
            with anyio.fail_after(5):
                while not emulator.abandoned_count:  # noqa: ASYNC110 - a server in the same loop
                    await anyio.sleep(0.01)
            assert emulator.abandoned_count == 1
            # The client is as good as before.
            assert (await ask_whole(client)).complete

    anyio.run(main)


@pytest.mark.parametrize("key", [KEY, "a-key-of-no-known-form-0123456789"])
def test_no_error_and_no_log_says_the_key(key: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    kinds: tuple[FaultKind, ...] = ("401", "429", "500", "reset", "html", "empty")

    async def main() -> None:
        async with emulated(key=key, retry_policy=RetryPolicy(attempts=1)) as (emulator, client):
            for kind in kinds:
                emulator.faults.add(EmulatedFault(kind=kind))
                with pytest.raises(ProviderError) as caught:
                    await ask(client)
                assert key not in "".join(traceback.format_exception(caught.value))
            assert key not in repr(client)

    anyio.run(main)
    assert "chat/completions" in caplog.text
    assert key not in caplog.text
