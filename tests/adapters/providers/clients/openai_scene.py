"""An emulated OpenAI, and a client that is connected to it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

from msgspec.structs import replace

from lamina.adapters.providers.clients.openai import OpenAIClient, connect
from lamina.adapters.providers.clients.retries import RetryPolicy
from lamina.adapters.providers.model_book import load_book
from lamina.core.values.wire import CallPiece, Piece, Reply, TextPiece, ThinkingPiece
from lamina.emulators.answers import AnswerSource, ScriptedAnswers
from lamina.emulators.emulator import serve_emulator
from lamina.emulators.faults import EmulatedFault, FaultKind
from lamina.emulators.openai.emulator import OpenAIEmulator

KEY = "sk-test-0123456789abcdefghij"
QUICK = RetryPolicy(attempts=3, first_wait_s=0.01, max_wait_s=0.05)
ASKED = {"model": "gpt-4o", "messages": [{"role": "user", "content": "How are you today?"}]}


@asynccontextmanager
async def emulated(
    target: str = "openai:gpt-4o",
    *,
    answers: AnswerSource | None = None,
    retry_policy: RetryPolicy = QUICK,
    timeout: float = 5.0,  # noqa: ASYNC109 - of the client
    key: str = KEY,
    **given: Any,
) -> AsyncIterator[tuple[OpenAIEmulator, OpenAIClient]]:
    emulator = OpenAIEmulator(
        answers=answers or ScriptedAnswers(["I am well, thank you."]), **given
    )
    async with serve_emulator(emulator) as url:
        found = replace(load_book().find(target), base_url=f"{url}/v1")
        client = connect(found, key, retry_policy=retry_policy, timeout=timeout)
        try:
            yield emulator, client
        finally:
            await client.aclose()


def fault(kind: FaultKind, times: int = 1) -> list[EmulatedFault]:
    return [EmulatedFault(kind=kind, times=times)]


async def ask(client: OpenAIClient, body: Mapping[str, Any] = ASKED) -> list[Piece]:
    async with aclosing(client.stream(body)) as pieces:  # type: ignore[type-var]
        return [piece async for piece in pieces]


async def ask_whole(client: OpenAIClient, body: Mapping[str, Any] = ASKED) -> Reply:
    last = (await ask(client, body))[-1]
    assert isinstance(last, Reply)
    return last


def spoken(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))


def thought(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, ThinkingPiece))


def called(pieces: list[Piece]) -> dict[int, tuple[str, str]]:
    """The calls as they were streamed, by index: name and arguments."""
    calls: dict[int, tuple[str, str]] = {}
    for piece in pieces:
        if isinstance(piece, CallPiece):
            name, arguments = calls.get(piece.index, ("", ""))
            calls[piece.index] = (name + piece.name, arguments + piece.arguments)
    return calls
