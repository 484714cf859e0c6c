"""An emulated vendor whose answers wait in the middle for as long as a test wants."""

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from starlette.requests import Request

from lamina.emulators.answers import EmulatedAnswer, EmulatedRequest
from lamina.emulators.emulator import serve_emulator
from lamina.emulators.faults import FaultKind
from lamina.emulators.openai.emulator import OpenAIEmulator

MODEL = "openai:gpt-5"
Answering = Callable[[EmulatedRequest], EmulatedAnswer | str]


class Script:
    """Answers in order; after the last one, or without any, the question comes back."""

    def __init__(self) -> None:
        self.answers: list[EmulatedAnswer | str | Answering] = []

    async def answer(self, request: EmulatedRequest) -> EmulatedAnswer:
        answer = self.answers.pop(0) if self.answers else f"You said: {request.question[-200:]}"
        if callable(answer):
            answer = answer(request)
        return EmulatedAnswer(text=answer) if isinstance(answer, str) else answer


class HeldEmulator(OpenAIEmulator):
    """With `hold_after` N, a streamed answer stops behind its N-th piece until it is released. With
    `rate` R, R pieces come in a second."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.hold_after: int | None = None
        self.rate: float | None = None
        self.held = threading.Event()
        self._released = anyio.Event()

    def hold(self, after: int) -> None:
        self.hold_after = after
        self.held.clear()
        self._released = anyio.Event()

    def release(self) -> None:
        self.hold_after = None
        self._released.set()

    async def _stream(
        self, request: Request, chunks: list[bytes], kind: FaultKind | None
    ) -> AsyncIterator[bytes]:
        start = anyio.current_time()
        number = 0
        async for chunk in super()._stream(request, chunks, kind):
            yield chunk
            number += 1
            if self.rate is not None:
                await anyio.sleep_until(start + number / self.rate)
            if self.hold_after is not None:
                self.hold_after -= 1
                if self.hold_after < 0:
                    self.held.set()
                    await self._released.wait()


class Vendor:
    """The emulator on a thread of its own; a test calls it from any other."""

    def __init__(self) -> None:
        self.script = Script()
        self._stack = ExitStack()
        self.portal: BlockingPortal = self._stack.enter_context(start_blocking_portal())
        self.emulator: HeldEmulator = self.portal.call(self._make)
        serving: AbstractContextManager[str] = self.portal.wrap_async_context_manager(
            serve_emulator(self.emulator)
        )
        self.url = self._stack.enter_context(serving)

    async def _make(self) -> HeldEmulator:
        return HeldEmulator(answers=self.script)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_KEY": "sk-test",
            "LAMINA_TARGET": MODEL,
        }

    def says(self, *answers: EmulatedAnswer | str | Answering) -> None:
        """What it answers next, and after that."""
        self.script.answers += answers

    def hold(self, after: int = 2) -> None:
        """The next answers stop behind this many pieces."""
        self.portal.call(self.emulator.hold, after)

    def wait_until_held(self) -> None:
        assert self.emulator.held.wait(60), "no answer came to the point where it should wait"

    def release(self) -> None:
        self.portal.call(self.emulator.release)

    def pace(self, rate: float | None) -> None:
        """How many pieces come in a second; None: as fast as can be."""
        self.emulator.rate = rate

    def close(self) -> None:
        self.release()
        self._stack.close()
