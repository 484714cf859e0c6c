"""An Anthropic server of a test's own, and clients that talk to it."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

from msgspec.structs import replace

from lamina.adapters.providers.clients.anthropic import AnthropicClient
from lamina.adapters.providers.clients.retries import RetryPolicy
from lamina.adapters.providers.model_book import load_book
from lamina.core.ports import Provider
from lamina.core.values.settings import Target
from lamina.core.values.wire import Piece, Reply
from lamina.emulators.answers import EmulatedAnswer, ScriptedAnswers
from lamina.emulators.anthropic.emulator import AnthropicEmulator
from lamina.emulators.emulator import serve_emulator
from lamina.emulators.faults import EmulatedFault
from lamina.errors import ProviderError

SONNET = load_book().find("anthropic:claude-sonnet-5")
# Of no form that keys are known by.
KEY = "correct-horse-battery-staple"
HASTY = RetryPolicy(attempts=3, first_wait_s=0.01, max_wait_s=0.2)


class Asking:
    """A server and a client. It is the providers of a session, too."""

    def __init__(
        self, server: AnthropicEmulator, url: str, retry_policy: RetryPolicy, timeout: float
    ):
        self.server = server
        self.url = url
        self._retry_policy = retry_policy
        self._timeout = timeout
        self._clients: dict[str, AnthropicClient] = {}

    def client(self, target: Target = SONNET, key: str = KEY) -> AnthropicClient:
        name = f"{target.name} {key}"
        if name not in self._clients:
            there = replace(target, base_url=self.url)
            self._clients[name] = AnthropicClient(there, key, self._retry_policy, self._timeout)
        return self._clients[name]

    async def provider(self, target: Target) -> Provider:
        return self.client(target)

    async def ask(self, body: Mapping[str, Any]) -> tuple[list[Piece], ProviderError | None]:
        """What came, and what went wrong."""
        pieces: list[Piece] = []
        try:
            async with aclosing(self.client().stream(body)) as stream:  # type: ignore[type-var]
                async for piece in stream:
                    pieces.append(piece)  # noqa: PERF401 - what came is wanted, too, if it fails
        except ProviderError as error:
            return pieces, error
        return pieces, None

    async def reply(self, body: Mapping[str, Any]) -> Reply:
        pieces, error = await self.ask(body)
        assert error is None, error
        assert isinstance(pieces[-1], Reply)
        return pieces[-1]

    async def close(self) -> None:
        for client in self._clients.values():
            await client.aclose()


@asynccontextmanager
async def asking(
    *said: EmulatedAnswer | str,
    faults: Iterable[EmulatedFault] = (),
    retry_policy: RetryPolicy = HASTY,
    within: float = 10.0,
) -> AsyncIterator[Asking]:
    """A server that says `said` in order, and again; without any it echoes."""
    server = AnthropicEmulator(answers=ScriptedAnswers(said) if said else None, faults=faults)
    async with serve_emulator(server) as url:
        found = Asking(server, url, retry_policy, within)
        try:
            yield found
        finally:
            await found.close()


def body(*messages: Any, **given: Any) -> dict[str, Any]:
    """A request; a text is the user's."""
    turns = [
        {"role": "user", "content": message} if isinstance(message, str) else message
        for message in messages
    ]
    made = {"model": "claude-sonnet-5", "max_tokens": 500, "messages": turns or [hello()]}
    return made | given


def hello() -> dict[str, Any]:
    return {"role": "user", "content": "Hello?"}
