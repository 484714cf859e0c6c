"""Calling one hook, within its time limit.

Laws: what a hook returns after its limit, or after the turn was stopped, is not used. An async hook
is cancelled then. A plain function runs in a thread of its own, which nothing can end from outside:
it is told through its event's signal, and one that runs on is told of.
"""

import contextlib
import inspect
import traceback
from collections.abc import Iterator
from contextvars import copy_context
from threading import Thread
from typing import Any

import anyio
import anyio.from_thread
from anyio.lowlevel import current_token

from lamina.engine.logger import tell_hook_ended, tell_hook_left
from lamina.engine.sources.hook_events import ContextEvent, MessageEvent
from lamina.engine.sources.hooks import Hook
from lamina.errors import HookError


class HookThread:
    """The run of a plain function in its thread, as the event loop sees it."""

    def __init__(self, hook: str, session: str) -> None:
        self.hook = hook
        self._session = session
        self._began = anyio.current_time()
        self._ended: float | None = None
        self._is_left = False

    @property
    def seconds(self) -> float:
        """How long it has run, or ran."""
        return (anyio.current_time() if self._ended is None else self._ended) - self._began

    @property
    def is_running(self) -> bool:
        return self._ended is None

    def end(self) -> None:
        """The function returned, or failed."""
        self._ended = anyio.current_time()
        if self._is_left:
            tell_hook_ended(self._session, self.hook, self.seconds)

    def leave(self) -> None:
        """Nobody waits for it any more."""
        self._is_left = True
        tell_hook_left(self._session, self.hook, self.seconds)


class LateHooks:
    """Plain functions of one session that nobody waits for any more. A person is told of each: that
    it runs on, and for how long it did."""

    def __init__(self) -> None:
        self._untold: list[HookThread] = []
        self._told: list[HookThread] = []

    def add(self, thread: HookThread) -> None:
        self._untold.append(thread)

    def tell(self) -> tuple[str, ...]:
        """What is to be said now, once each."""
        notices: list[str] = []
        for thread in self._untold:
            if thread.is_running:
                self._told.append(thread)
                notices.append(
                    f"hook {thread.hook!r} still runs, {thread.seconds:.1f} s after it was called; "
                    f"nobody waits for it any more, and what it returns is not used"
                )
        over = [thread for thread in (*self._untold, *self._told) if not thread.is_running]
        notices += [
            f"hook {thread.hook!r} ran on for {thread.seconds:.1f} s while nobody waited for it; "
            f"what it returned was not used"
            for thread in over
        ]
        self._untold = []
        self._told = [thread for thread in self._told if thread not in over]
        return tuple(notices)


async def call_hook(
    hook: Hook, event: ContextEvent | MessageEvent, late: LateHooks, most: float | None = None
) -> Any:
    """What the hook returned, within its time limit or `most` seconds. Generators are exhausted
    here.

    Raises:
        HookError: it failed, or was too slow.
    """
    limit = hook.timeout if most is None else min(most, hook.timeout)
    with anyio.move_on_after(limit) as scope:
        try:
            if inspect.iscoroutinefunction(hook.handler):
                result = await hook.handler(event)
            else:
                result = await _call_in_thread(hook, event, late)
                if inspect.isawaitable(result):
                    result = await result
        except anyio.get_cancelled_exc_class():
            # For what it may have begun elsewhere.
            event.signal.cancel()
            raise
        except Exception as error:
            if not scope.cancel_called:
                place = line_of(error, hook.file)
                raise HookError(hook.name, f"{type(error).__name__}: {error}{place}") from error
    # Also if the hook swallowed the cancellation: a late result is not used.
    if scope.cancel_called:
        raise HookError(hook.name, f"took longer than its {limit:g} s")
    return result


async def _call_in_thread(hook: Hook, event: ContextEvent | MessageEvent, late: LateHooks) -> Any:
    """Calls a plain function in a thread of its own: one that hangs must not hold up everyone
    else, nor keep the process from ending."""
    token, finished = current_token(), anyio.Event()
    outcome: list[Any] = []
    thread = HookThread(hook.name, event.session)

    def work() -> None:
        try:
            result = hook.handler(event)
            outcome.append((list(result) if isinstance(result, Iterator) else result, None))
        except BaseException as error:  # noqa: BLE001 - raised where the hook is waited for
            outcome.append((None, error))
        # Nobody waits any more if the loop is gone.
        with contextlib.suppress(anyio.RunFinishedError):
            anyio.from_thread.run_sync(finish, token=token)

    def finish() -> None:
        thread.end()
        finished.set()

    # As in any thread that an application starts from here, its context comes along.
    Thread(target=copy_context().run, args=(work,), name=f"hook {hook.name}", daemon=True).start()
    try:
        await finished.wait()
    except anyio.get_cancelled_exc_class():
        if thread.is_running:
            thread.leave()
            late.add(thread)
        raise
    result, error = outcome[0]
    if error is not None:
        # What ends a process ends none from here.
        raise error if isinstance(error, Exception) else RuntimeError(repr(error))
    return result


def line_of(error: BaseException, file: str) -> str:
    """Where in a file of hooks something went wrong; empty if it did so elsewhere."""
    number = error.lineno if isinstance(error, SyntaxError) and error.filename == file else None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == file:
            number = line
    return f" (line {number} of {file!r})" if file and number else ""
