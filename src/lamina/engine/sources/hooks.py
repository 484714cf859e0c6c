"""Hooks: what an application adds to a turn.

Laws: a hook gets frozen values and returns what should change; None always means unchanged. A
context hook that fails stops the request, a message hook that fails is reported and the message
stays as it was. A hook that is too slow has failed.
"""

from collections.abc import Callable
from typing import Any, TypeVar, overload

from msgspec import Struct

from lamina.engine.sources.hook_events import ContextEvent as ContextEvent
from lamina.engine.sources.hook_events import HookReason as HookReason
from lamina.engine.sources.hook_events import MessageEvent as MessageEvent
from lamina.errors import UsageError

REASONS: tuple[HookReason, ...] = ("before_agent_start", "before_request", "ephemeral", "turn_end")
TIMEOUT_S = 10.0

Handler = TypeVar("Handler", bound=Callable[..., Any])


class Drop(Struct, frozen=True):
    """What a message hook returns to drop a user's message."""


class Hook(Struct, frozen=True, kw_only=True):
    """A registered handler."""

    name: str
    handler: Callable[..., Any]
    timeout: float
    reason: HookReason | None = None
    changes_answers: bool = False
    # The file that it was loaded from, if it was.
    file: str = ""


class Hooks:
    """What an application adds to turns: handlers, in order of registration. A session copies the
    hooks it is given, so that registering on one session does not reach another."""

    def __init__(self, *, timeout: float = TIMEOUT_S) -> None:
        self.timeout = timeout
        self.context_hooks: list[Hook] = []
        self.message_hooks: list[Hook] = []

    def copy(self) -> "Hooks":
        """The same hooks, to which others can be added without touching these."""
        return Hooks().joined(self)

    def joined(self, other: "Hooks") -> "Hooks":
        """These hooks, then those of `other`."""
        hooks = Hooks(timeout=other.timeout)
        hooks.context_hooks += self.context_hooks + other.context_hooks
        hooks.message_hooks += self.message_hooks + other.message_hooks
        return hooks

    def for_context(self, reason: HookReason) -> tuple[Hook, ...]:
        """The context hooks that run for a reason, in order."""
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
        """Registers a hook on the context: before every request, for one request only
        (`ephemeral`), once when a runner takes up a question (`before_agent_start`), or once after
        the final answer (`turn_end`). It returns None, a patch, or one or more patch operations,
        which may be dicts as a journal holds them."""
        if reason not in REASONS:
            raise UsageError(f"a context hook has one of the reasons {REASONS}, not {reason!r}")
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
        """Registers a hook on finalised messages. It returns the message to keep instead, None to
        leave it, or `Drop()` for a user's message that is not to be sent. Runners tell an answer
        while it comes in; with `changes_answers` they hold it back until the hook has seen it, so
        that nobody is told anything else than what is kept. Without, a change is told afterwards
        (`AnswerChanged`)."""
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
                problem = f"a hook is a function, not {handler!r}; name its reason by keyword"
                raise UsageError(problem)
            limit = self.timeout if timeout is None else timeout
            if not limit > 0:
                raise UsageError(f"a hook's time limit is in seconds above 0, not {limit!r}")
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
    """A name that says where a hook comes from, the same in every process."""
    function = getattr(handler, "func", handler)  # a partial is named by what it calls
    owner = function if hasattr(function, "__qualname__") else type(function)
    return f"{owner.__module__}.{owner.__qualname__}"
