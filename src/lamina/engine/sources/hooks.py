"""Defines hooks: what an application adds to a turn, what its hooks receive, and how one is called.

Laws: a hook gets frozen values and returns its changes; None always means unchanged. A context hook
that fails stops the request; a message hook that fails is reported and the message stays as it was.
A hook that is too slow has failed: anything it returns after its limit, or after the turn was
stopped, is not used. An async hook is then cancelled. A plain function runs in a thread of its own,
which cannot be ended from outside: it is warned through its event's signal, and reported if it
keeps running.
"""

import contextlib
import inspect
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from threading import Thread
from typing import Any, Literal, TypeVar, overload

import anyio
import anyio.from_thread
from anyio.lowlevel import current_token
from msgspec import Struct, field

from lamina.core.values.envelope import Envelope
from lamina.core.values.item import Attachment, Include, Item, ItemId, ItemKind
from lamina.core.values.message import Message
from lamina.engine.logger import log_hook_ended, log_hook_left
from lamina.errors import HookError, UsageError

HookReason = Literal["before_agent_start", "before_request", "ephemeral", "turn_end"]


class TurnItem(Struct, frozen=True, kw_only=True):
    """An item that applies to a turn, as hooks see it. `text` is its content as the model and the
    journal get it, without the wrapper; `tokens` is its size including the wrapper. `include` is
    how it was included (`manual` if a person attached it); `score`, `origin` and `source` describe
    how it was found and from what.
    """

    id: ItemId
    kind: ItemKind
    version: str
    text: str
    tokens: int
    title: str = ""
    include: Include = "manual"
    score: float | None = None
    origin: str = ""
    source: str = ""
    priority: int
    essential: bool = False


def turn_items(
    attachments: Iterable[Attachment], count: Callable[[Item], int]
) -> tuple[TurnItem, ...]:
    """Return the items that apply to a turn, for hooks."""
    return tuple(
        TurnItem(
            id=attachment.item.id,
            kind=attachment.item.kind,
            version=attachment.item.version,
            text=attachment.item.content,
            tokens=count(attachment.item),
            title=attachment.item.title,
            include=attachment.provenance.include,
            score=attachment.provenance.score,
            origin=attachment.provenance.origin,
            source=attachment.provenance.source,
            priority=attachment.priority,
            essential=attachment.is_essential,
        )
        for attachment in attachments
    )


class CancelSignal:
    """A signal that a hook's result is no longer awaited: its time limit has passed, or the turn
    was stopped. Async hooks are cancelled automatically; a plain function must check, and can wait
    for the signal instead of sleeping.
    """

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def cancelled(self) -> bool:
        """Whether the hook should give up; its return value is no longer used."""
        return self._event.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for that many seconds, or until the hook should give up; return whether it
        should.
        """
        return self._event.wait(seconds)

    def cancel(self) -> None:
        """Cancel the hook; called by the session."""
        self._event.set()


class ContextEvent(Struct, frozen=True, kw_only=True):
    """The input of a context hook. `message` is the message about to be sent (a question or tool
    results), or the answer that ended the turn; it is not in the envelope's messages before it is
    sent. `items` is what applies to the turn, with its text: everything attached, pinned and always
    included, and from `before_request` on also what was chosen for the question.
    """

    reason: HookReason
    session: str
    target: str
    envelope: Envelope
    message: Message | None = None
    items: tuple[TurnItem, ...] = ()
    signal: CancelSignal = field(default_factory=CancelSignal)


class MessageEvent(Struct, frozen=True, kw_only=True):
    """The input of a message hook: a message that is complete and not yet written. `items` is what
    applies to its turn, with its text; for a question that is everything attached, pinned and
    always included, because the rest is chosen by the question's text.
    """

    session: str
    message: Message
    envelope: Envelope
    items: tuple[TurnItem, ...] = ()
    signal: CancelSignal = field(default_factory=CancelSignal)


REASONS: tuple[HookReason, ...] = ("before_agent_start", "before_request", "ephemeral", "turn_end")
TIMEOUT_S = 10.0

Handler = TypeVar("Handler", bound=Callable[..., Any])


class Drop(Struct, frozen=True):
    """The return value of a message hook that drops a user's message."""


class Hook(Struct, frozen=True, kw_only=True):
    """A registered handler."""

    name: str
    handler: Callable[..., Any]
    timeout: float
    reason: HookReason | None = None
    changes_answers: bool = False
    # The file from which it was loaded, if any.
    file: str = ""


class Hooks:
    """The hooks that an application adds to turns: handlers, in order of registration. A session
    copies the hooks it receives, so that registering on one session does not affect another.
    """

    def __init__(self, *, timeout: float = TIMEOUT_S) -> None:
        self.timeout = timeout
        self.context_hooks: list[Hook] = []
        self.message_hooks: list[Hook] = []

    def copy(self) -> "Hooks":
        """Return a copy of the hooks, to which others can be added without changing these."""
        return Hooks().joined(self)

    def joined(self, other: "Hooks") -> "Hooks":
        """Return these hooks, followed by those of `other`."""
        hooks = Hooks(timeout=other.timeout)
        hooks.context_hooks += self.context_hooks + other.context_hooks
        hooks.message_hooks += self.message_hooks + other.message_hooks
        return hooks

    def for_context(self, reason: HookReason) -> tuple[Hook, ...]:
        """Return the context hooks that run for a reason, in order."""
        return tuple(hook for hook in self.context_hooks if hook.reason == reason)

    @property
    def answer_changers(self) -> tuple[str, ...]:
        """The message hooks that declared that they change answers."""
        return tuple(hook.name for hook in self.message_hooks if hook.changes_answers)

    @overload
    def context(self, handler: Handler) -> Handler: ...
    @overload
    def context(
        self,
        handler: None = None,
        *,
        reason: HookReason = ...,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Callable[[Handler], Handler]: ...
    def context(
        self,
        handler: Handler | None = None,
        *,
        reason: HookReason = "before_request",
        name: str | None = None,
        timeout: float | None = None,
    ) -> Handler | Callable[[Handler], Handler]:
        """Register a hook on the context: before every request, for one request only (`ephemeral`),
        once when a runner starts a question (`before_agent_start`), or once after the final answer
        (`turn_end`). It returns None, a patch, or one or more patch operations, which may be dicts
        in journal format.
        """
        if reason not in REASONS:
            raise UsageError(f"unknown reason {reason!r} for a context hook; use one of {REASONS}")
        return self._register(self.context_hooks, handler, name, timeout, reason)

    @overload
    def message(self, handler: Handler) -> Handler: ...
    @overload
    def message(
        self,
        handler: None = None,
        *,
        name: str | None = None,
        timeout: float | None = None,
        changes_answers: bool = False,
    ) -> Callable[[Handler], Handler]: ...
    def message(
        self,
        handler: Handler | None = None,
        *,
        name: str | None = None,
        timeout: float | None = None,
        changes_answers: bool = False,
    ) -> Handler | Callable[[Handler], Handler]:
        """Register a hook on finalised messages. It returns a replacement message, None to leave
        the message unchanged, or `Drop()` for a user's message that is not to be sent. Runners
        report an answer while it arrives; with `changes_answers`, they hold it back until the hook
        has seen it, so that listeners only get what is stored. Without it, a change is reported
        afterwards (`AnswerChanged`).
        """
        return self._register(
            self.message_hooks, handler, name, timeout, changes_answers=changes_answers
        )

    def _register(
        self,
        hooks: list[Hook],
        handler: Handler | None,
        name: str | None,
        timeout: float | None,
        reason: HookReason | None = None,
        *,
        changes_answers: bool = False,
    ) -> Handler | Callable[[Handler], Handler]:
        def register(handler: Handler) -> Handler:
            if not callable(handler):
                problem = f"a hook must be a function, not {handler!r}; pass its reason by keyword"
                raise UsageError(problem)
            limit = self.timeout if timeout is None else timeout
            if not limit > 0:
                raise UsageError(f"a hook's time limit must be above 0 seconds, not {limit!r}")
            label = name or _name_of(handler)
            hooks.append(
                Hook(
                    name=label,
                    handler=handler,
                    timeout=limit,
                    reason=reason,
                    changes_answers=changes_answers,
                )
            )
            return handler

        return register(handler) if handler is not None else register


def _name_of(handler: Callable[..., Any]) -> str:
    """Return a name that shows where a hook comes from, the same in every process."""
    function = getattr(handler, "func", handler)  # a partial is named by what it calls
    owner = function if hasattr(function, "__qualname__") else type(function)
    return f"{owner.__module__}.{owner.__qualname__}"


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
        """Record that the function returned, or failed."""
        self._ended = anyio.current_time()
        if self._is_left:
            log_hook_ended(self._session, self.hook, self.seconds)

    def leave(self) -> None:
        """Record that its result is no longer awaited."""
        self._is_left = True
        log_hook_left(self._session, self.hook, self.seconds)


class LateHooks:
    """Plain functions of one session whose results are no longer awaited. Each is reported to a
    person: that it is still running, and later how long it ran.
    """

    def __init__(self) -> None:
        self._unreported: list[HookThread] = []
        self._reported: list[HookThread] = []

    def add(self, thread: HookThread) -> None:
        self._unreported.append(thread)

    def report(self) -> tuple[str, ...]:
        """Return the reports that are due now, once each."""
        notices: list[str] = []
        for thread in self._unreported:
            if thread.is_running:
                self._reported.append(thread)
                notices.append(
                    f"hook {thread.hook!r} still runs, {thread.seconds:.1f} s after it was called; "
                    f"nobody waits for it any more, and what it returns is not used"
                )
        over = [thread for thread in (*self._unreported, *self._reported) if not thread.is_running]
        notices += [
            f"hook {thread.hook!r} ran on for {thread.seconds:.1f} s while nobody waited for it; "
            f"what it returned was not used"
            for thread in over
        ]
        self._unreported = []
        self._reported = [thread for thread in self._reported if thread not in over]
        return tuple(notices)


async def call_hook(
    hook: Hook,
    event: ContextEvent | MessageEvent,
    late: LateHooks,
    max_seconds: float | None = None,
) -> Any:
    """Return the hook's return value, within its time limit or `max_seconds`. Generators are
    exhausted here.

    Raises:
        HookError: it failed, or was too slow.
    """
    limit = hook.timeout if max_seconds is None else min(max_seconds, hook.timeout)
    with anyio.move_on_after(limit) as scope:
        try:
            if inspect.iscoroutinefunction(hook.handler):
                result = await hook.handler(event)
            else:
                result = await _call_in_thread(hook, event, late)
                if inspect.isawaitable(result):
                    result = await result
        except anyio.get_cancelled_exc_class():
            # For anything it may have started elsewhere.
            event.signal.cancel()
            raise
        except Exception as error:
            if not scope.cancel_called:
                place = line_of(error, hook.file)
                raise HookError(hook.name, f"{type(error).__name__}: {error}{place}") from error
    # Even if the hook swallowed the cancellation: a late result is not used.
    if scope.cancel_called:
        raise HookError(hook.name, f"took longer than its {limit:g} s")
    return result


async def _call_in_thread(hook: Hook, event: ContextEvent | MessageEvent, late: LateHooks) -> Any:
    """Call a plain function in a thread of its own: one that hangs must not block everyone else,
    nor keep the process from ending.
    """
    token, finished = current_token(), anyio.Event()
    outcome: list[Any] = []
    thread = HookThread(hook.name, event.session)

    def work() -> None:
        try:
            result = hook.handler(event)
            outcome.append((list(result) if isinstance(result, Iterator) else result, None))
        except BaseException as error:  # noqa: BLE001 - raised where the hook is waited for
            outcome.append((None, error))
        # If the event loop is gone, nothing is waiting any more.
        with contextlib.suppress(anyio.RunFinishedError):
            anyio.from_thread.run_sync(finish, token=token)

    def finish() -> None:
        thread.end()
        finished.set()

    # Like any thread that an application starts from here, it inherits the context.
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
        # Errors that end a process do not end one from here.
        raise error if isinstance(error, Exception) else RuntimeError(repr(error))
    return result


def line_of(error: BaseException, file: str) -> str:
    """Return the line of a hook file in which an error was raised; empty if it was raised
    elsewhere.
    """
    number = error.lineno if isinstance(error, SyntaxError) and error.filename == file else None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == file:
            number = line
    return f" (line {number} of {file!r})" if file and number else ""
