"""The one event loop that all calls of `lamina.sync` run in, in a thread of its own.

Laws: a process has one loop, which starts with its first call and ends with the process; a forked
child starts its own. Interrupting a thread that waits for a call also stops the call, and the
thread continues once the call has cleaned up. While it waits, the thread runs the callbacks of its
call that belong there. This module does not depend on sessions.
"""

import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import partial
from inspect import isawaitable
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

import anyio
import anyio.to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

from lamina.errors import UsageError

R = TypeVar("R")
T = TypeVar("T")


class Closable(Protocol):
    """Anything that is closed if its caller can no longer receive it."""

    async def close(self) -> None: ...


C = TypeVar("C", bound=Closable)

# The thread that runs the loop, and anyio's name for worker threads that end with a loop.
_KEEPER, _WORKER = "lamina.sync", "AnyIO worker thread"
# Where waiting cannot be interrupted, it is done in short steps.
_PATIENCE = 0.1 if sys.platform == "win32" else None


class Portal:
    """The loop of one process, and the way into it."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._ready: Future[BlockingPortal] = Future()
        # Not a daemon: the threads that work for the loop would keep the process from ending.
        threading.Thread(target=self._keep, name=_KEEPER).start()
        self._blocking = self._ready.result()
        self._loop_thread = self._blocking.call(threading.get_ident)

    @property
    def is_foreign(self) -> bool:
        """Whether the loop is in another process, from which this one was forked."""
        return self.process != os.getpid()

    def start(self, function: Callable[[], Any]) -> None:
        """Starts a function in the loop; it sees the context variables of this thread.

        Raises:
            UsageError: the loop has ended, or this is its own thread.
        """
        if self.is_foreign:
            raise UsageError(
                "this was opened before the process forked, and its loop does not exist here; "
                "open it again in this process"
            )
        if threading.get_ident() == self._loop_thread:
            raise UsageError(
                "lamina.sync cannot be called in its own loop, where it would wait for itself; in "
                "an async hook or tool, use `lamina` and `await`, or make it a plain function"
            )
        try:
            self._blocking.start_task_soon(function)
        except RuntimeError as error:
            raise UsageError("the program is ending, and lamina.sync has ended with it") from error

    def run(self, function: Callable[[], Awaitable[R]]) -> R:
        """Runs a coroutine function in the loop and waits for it."""
        call = PortalCall(self, function)
        with call.stopped_by_errors():
            call.start()
            call.finish()
        return call.result()

    def open(self, function: Callable[[], Awaitable[C]]) -> C:
        """Like `run`, for calls that close something: an interruption leaves nothing open."""
        call = PortalCall(self, function)
        try:
            with call.stopped_by_errors():
                call.start()
                call.finish()
            return call.result()
        except BaseException:
            if call.has_result:
                self.close(call.result().close)
            raise

    def read(self, function: Callable[[], R]) -> R:
        """Runs a plain function in the loop, where nothing else runs at the same time."""

        async def read() -> R:
            return function()

        return self.run(read)

    def close(self, function: Callable[[], Awaitable[None]]) -> None:
        """Like `run`, for calls that an interruption should not leave half done. What another
        process opened is left to that process."""

        async def close() -> None:
            with anyio.CancelScope(shield=True):
                await function()

        if not self.is_foreign:
            self.run(close)

    def _keep(self) -> None:
        try:
            with start_blocking_portal(name="lamina.sync loop") as portal:
                self._ready.set_result(portal)
                _await_other_threads()
                with suppress(RuntimeError):
                    portal.call(portal.stop, True)
        except BaseException as error:  # noqa: BLE001 - raised where the portal is wanted
            if not self._ready.done():
                self._ready.set_exception(error)


def _await_other_threads() -> None:
    """Waits until the program is over: its main thread and all other threads it started."""
    threading.main_thread().join()
    for thread in iter(_find_other_thread, None):
        thread.join()


def _find_other_thread() -> threading.Thread | None:
    threads = (thread for thread in threading.enumerate() if not thread.daemon)
    return next((t for t in threads if t.is_alive() and t.name not in (_KEEPER, _WORKER)), None)


class PortalCall(Generic[R]):
    """A coroutine in the loop, and the thread that waits for it."""

    def __init__(self, portal: Portal, function: Callable[[], Awaitable[R]]) -> None:
        self._portal = portal
        self._function = function
        self._scope: anyio.CancelScope | None = None
        self._is_stopped = False
        self._inbox: SimpleQueue[Errand | Arrival | None] = SimpleQueue()
        self._outcome: Future[R] = Future()

    @property
    def is_done(self) -> bool:
        return self._outcome.done()

    @property
    def has_result(self) -> bool:
        return self.is_done and self._outcome.exception() is None

    def start(self) -> None:
        self._portal.start(self._run)

    def wait(self) -> "Arrival | None":
        """The next value that the call yields; None when it has ended. Runs errands while it
        waits."""
        while isinstance(message := self._take(), Errand):
            self._run_errand(message)
        if message is None:
            self._inbox.put(None)  # for the next caller that waits
        return message

    def finish(self) -> None:
        """Waits until the call has ended."""
        while self.wait() is not None:
            pass

    def result(self) -> R:
        return self._outcome.result()

    @contextmanager
    def stopped_by_errors(self) -> Iterator[None]:
        """Stops the call if the block is left by an error, and waits until it has cleaned up; a
        second interruption leaves at once."""
        try:
            yield
        except BaseException:
            if not self.is_done:
                self._portal.start(self._stop)
                self.finish()
            raise

    # -- in the loop -----------------------------------------------------------------------------

    def give(self, value: Any) -> None:
        """Passes a value to the thread before the call ends."""
        self._inbox.put(Arrival(value))

    async def run_in_thread(self, function: Callable[[], Any]) -> Any:
        """Runs a function in the thread that waits, and returns its result."""
        errand = Errand(function)
        self._inbox.put(errand)
        try:
            await errand.finished.wait()
        finally:
            errand.is_void = True
        if errand.error is not None:
            raise errand.error
        return errand.value

    async def _run(self) -> None:
        if self._is_stopped:
            return
        _CALL.set(self)
        try:
            with anyio.CancelScope() as self._scope:
                self._outcome.set_result(await self._function())
        except anyio.get_cancelled_exc_class():
            raise  # the loop is ending
        # Nothing may escape into the shared loop.
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            self._outcome.set_exception(error)
        finally:
            self._end()

    def _stop(self) -> None:
        self._is_stopped = True
        if self._scope is not None:
            self._scope.cancel()
        else:
            self._end()

    def _end(self) -> None:
        if not self._outcome.done():
            self._outcome.set_exception(UsageError("the call was stopped: the program ends"))
        self._inbox.put(None)

    # -- in the thread ---------------------------------------------------------------------------

    def _take(self) -> "Errand | Arrival | None":
        while True:
            with suppress(Empty):
                return self._inbox.get(timeout=_PATIENCE)

    def _run_errand(self, errand: "Errand") -> None:
        if errand.is_void:
            return
        try:
            errand.value = errand.function()
        except Exception as error:  # noqa: BLE001 - raised where the loop waits for it
            errand.error = error
        self._portal.start(errand.finished.set)


class Errand:
    """A function to be run in the thread that waits for a call."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.finished = anyio.Event()
        self.value: Any = None
        self.error: Exception | None = None
        # The thread has stopped waiting.
        self.is_void = False


class Arrival:
    """A value that a call passes to its thread before it ends."""

    def __init__(self, value: Any) -> None:
        self.value = value


class HeldContext(Generic[R]):
    """An async context manager in `with`: one task in the loop enters it, keeps it open and leaves
    it. If it yields an async iterator, `items` reads that."""

    def __init__(
        self, portal: Portal, manager: Callable[[], AbstractAsyncContextManager[R]]
    ) -> None:
        self._portal = portal
        self._manager = manager
        self._left: anyio.Event | None = None
        self._call = PortalCall(portal, self._hold)

    def __enter__(self) -> R:
        with self._call.stopped_by_errors():
            self._call.start()
            arrival = self._call.wait()
        if arrival is None:
            self._call.result()
        assert arrival is not None
        value: R = arrival.value
        return value

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._left is None or self._portal.is_foreign:
            return
        try:
            self._leave(self._left)
        except BaseException:
            # Closing continues in any case; a second interruption leaves at once.
            self._leave(self._left)
            raise
        # The caller has to see the error that ended the block.
        with suppress(Exception) if error is not None else nullcontext():
            self._call.result()

    def _leave(self, left: anyio.Event) -> None:
        if not self._call.is_done:
            self._portal.start(left.set)
        self._call.finish()

    def items(self, source: AsyncIterator[T]) -> Iterator[T]:
        """The items of an async iterator, requested one at a time."""

        async def pull() -> None:
            found: tuple[T, ...] = ()
            try:
                found = (await anext(source),)
            except (StopAsyncIteration, anyio.ClosedResourceError):
                pass
            finally:
                self._call.give(found)

        while not self._call.is_done:
            self._portal.start(pull)
            arrival = self._call.wait()
            if arrival is None or not arrival.value:
                return
            yield arrival.value[0]

    async def _hold(self) -> None:
        self._left = anyio.Event()
        async with self._manager() as value:
            self._call.give(value)
            await self._left.wait()


_CALL: ContextVar[PortalCall[Any] | None] = ContextVar("lamina_sync_call", default=None)


async def call_back(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function of the caller's: run in the thread that waits for the current call,
    or in a worker thread if none waits. If it returns an awaitable, the loop awaits that."""
    call, bound = _CALL.get(), partial(function, *arguments)
    if call is None or call.is_done:
        result = await anyio.to_thread.run_sync(bound, abandon_on_cancel=True)
    else:
        result = await call.run_in_thread(bound)
    return await result if isawaitable(result) else result


_lock = threading.Lock()
_portal: Portal | None = None


def portal() -> Portal:
    """The portal of this process."""
    global _portal
    with _lock:
        if _portal is None:
            _portal = Portal()
        return _portal


def _forget_portal() -> None:
    """Resets the portal in a forked child, which has none of its parent's threads."""
    global _lock, _portal
    _lock, _portal = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_portal)
