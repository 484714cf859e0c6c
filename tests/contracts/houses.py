"""Four houses that answer: the embedded model, and three vendors emulated behind their own SDKs.

Law: a test speaks to all of them in the same way. What a vendor can be told to say or to do wrong,
the embedded model cannot: it answers as it does.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any

from msgspec.structs import replace
from tests.fakes.providers import ProvidersFake

from lamina.adapters.providers.clients.anthropic import connect as connect_anthropic
from lamina.adapters.providers.clients.gemini import connect as connect_gemini
from lamina.adapters.providers.clients.openai import connect as connect_openai
from lamina.adapters.providers.clients.retries import RetryPolicy
from lamina.adapters.providers.model_book import load_book
from lamina.apps.wiring.clients import Clients, ClosableProvider
from lamina.core.ports import Provider, Providers
from lamina.core.values.settings import Target
from lamina.core.values.wire import Piece
from lamina.emulators.answers import EchoAnswers, EmulatedAnswer, ScriptedAnswers
from lamina.emulators.anthropic.emulator import AnthropicEmulator
from lamina.emulators.cost_report import CostRow
from lamina.emulators.emulator import Emulator, serve_emulator
from lamina.emulators.faults import EmulatedFault, FaultKind, FaultQueue
from lamina.emulators.gemini.emulator import GeminiEmulator
from lamina.emulators.openai.emulator import OpenAIEmulator

LOCAL = "local"
TARGETS = {
    LOCAL: "local:smollm2-135m",
    "openai": "openai:gpt-5.6",
    "anthropic": "anthropic:claude-sonnet-5",
    "gemini": "gemini:gemini-3.1-flash",
}
HOUSES = tuple(TARGETS)
VENDORS = tuple(name for name in HOUSES if name != LOCAL)
KEY = "a-key-that-no-pattern-knows"
QUICK = RetryPolicy(attempts=3, first_wait_s=0.01, max_wait_s=0.1)
# What the embedded model is given: enough for these tests, and so little that it is soon full.
ROOM, CRAMPED = 4_096, 512

_EMULATED: dict[str, tuple[type[Emulator], str, Callable[..., Provider]]] = {
    "openai": (OpenAIEmulator, "/v1", connect_openai),
    "anthropic": (AnthropicEmulator, "", connect_anthropic),
    "gemini": (GeminiEmulator, "", connect_gemini),
}


class Listening:
    """A provider, and the bodies that it was given."""

    def __init__(self, provider: Provider, bodies: list[Mapping[str, Any]]) -> None:
        self._provider = provider
        self._bodies = bodies

    async def stream(self, body: Mapping[str, Any]) -> AsyncIterator[Piece]:
        self._bodies.append(body)
        async with aclosing(self._provider.stream(body)) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                yield piece


class House:
    """One of the four. `bodies` are the requests it was given, in the vendor's own form."""

    def __init__(self, name: str, providers: Providers, emulator: Emulator | None = None) -> None:
        self.name = name
        self.target = TARGETS[name]
        self.bodies: list[Mapping[str, Any]] = []
        self.emulator = emulator
        self._providers = providers
        self._rows = 0

    @property
    def scripted(self) -> bool:
        """Whether it says what it is told to."""
        return self.emulator is not None

    @property
    def known(self) -> Target:
        return load_book().find(self.target)

    @property
    def rows(self) -> list[CostRow]:
        """The emulator's own account of this test's requests."""
        return self.emulator.report.rows[self._rows :] if self.emulator else []

    def begin(self) -> None:
        """Nothing of the test before is left."""
        self.bodies.clear()
        if self.emulator:
            self.emulator.answers = EchoAnswers()
            self.emulator.faults = FaultQueue()
            self._rows = len(self.emulator.report.rows)

    def says(self, *said: EmulatedAnswer | str) -> None:
        if self.emulator:
            self.emulator.answers = ScriptedAnswers(said)

    def fails(self, kind: FaultKind, times: int = 1, skip: int = 0) -> None:
        if self.emulator:
            self.emulator.faults.add(
                EmulatedFault(kind=kind, times=times, skip=skip, retry_after=0.01)
            )

    def persona(self) -> str:
        """A system prompt that is long enough to be cached here."""
        line = "You are the clerk of a small harbour, and you answer in few words. "
        return line * (self.known.cache.minimum // 12 + 3)

    async def provider(self, target: Target) -> Provider:
        assert target.name == self.target, f"{target.name} is asked of {self.name}"
        return Listening(await self._providers.provider(target), self.bodies)


class Town:
    """All houses: the providers of a session that moves between them."""

    def __init__(self, houses: Mapping[str, House], cramped: House) -> None:
        self._houses = houses
        self._cramped = cramped

    def __getitem__(self, name: str) -> House:
        return self._houses[name]

    def __iter__(self) -> Iterator[House]:
        return iter(self._houses.values())

    def soon_full(self, name: str) -> House:
        """A house that can be brought to say that a request is too long."""
        return self._cramped if name == LOCAL else self._houses[name]

    async def provider(self, target: Target) -> Provider:
        return await self._houses[target.provider].provider(target)

    def begin(self) -> None:
        for house in (*self, self._cramped):
            house.begin()


@asynccontextmanager
async def settled() -> AsyncIterator[Town]:
    """The town, open: every emulator is served, and the embedded model is loaded when asked."""
    async with AsyncExitStack() as stack:
        houses = {LOCAL: House(LOCAL, Clients(slots=1, window=ROOM))}
        for name, (kind, path, connect) in _EMULATED.items():
            emulator = kind()
            url = await stack.enter_async_context(serve_emulator(emulator))
            target = replace(load_book().find(TARGETS[name]), base_url=url + path)
            client = connect(target, KEY, retry_policy=QUICK, timeout=10.0)
            assert isinstance(client, ClosableProvider)
            stack.push_async_callback(client.aclose)
            houses[name] = House(name, ProvidersFake(client), emulator)
        yield Town(houses, House(LOCAL, Clients(slots=1, window=CRAMPED)))
