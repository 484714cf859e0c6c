"""Hooks: what an application adds to a turn.

Laws: a hook gets frozen values and returns what should change; None always means unchanged. A
context hook that fails stops the request, a message hook that fails is reported and the message
stays as it was. A hook that is too slow has failed.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeVar, overload

from msgspec import Struct

from lamina.errors import UsageError
from lamina.values.envelope import Envelope
from lamina.values.message import Message
from lamina.values.patch import Patch, PatchOp

HookReason = Literal["before_agent_start", "before_request", "ephemeral", "turn_end"]
REASONS: tuple[HookReason, ...] = ("before_agent_start", "before_request", "ephemeral", "turn_end")
TIMEOUT_S = 10.0

# What a context hook may return; ops as dicts are as a journal holds them.
HookResult = None | Patch | PatchOp | Iterable[PatchOp | Mapping[str, Any]]
Handler = TypeVar("Handler", bound=Callable[..., Any])


class Drop(Struct, frozen=True):
    """What a message hook returns to drop a user's message."""


class ContextEvent(Struct, frozen=True, kw_only=True):
    """What a context hook is given. `message` is the message about to be sent (a question or tool
    results), or the answer that ended the turn; it is not in the envelope's messages before it is
    sent."""

    reason: HookReason
    session: str
    target: str
    envelope: Envelope
    message: Message | None = None


class MessageEvent(Struct, frozen=True, kw_only=True):
    """What a message hook is given: a message that is complete and not kept yet."""

    session: str
    message: Message
    envelope: Envelope


class Hook(Struct, frozen=True, kw_only=True):
    """A registered handler."""

    name: str
    handler: Callable[..., Any]
    timeout: float
    reason: HookReason | None = None


class Hooks:
    """Handlers in the order of their registration. Sessions get a copy of what they are given, so
    that registering on one does not reach the others."""

    def __init__(self, *, timeout: float = TIMEOUT_S) -> None:
        self.timeout = timeout
        self.context_hooks: list[Hook] = []
        self.message_hooks: list[Hook] = []

    def copy(self) -> "Hooks":
        hooks = Hooks(timeout=self.timeout)
        hooks.context_hooks, hooks.message_hooks = (
            list(self.context_hooks),
            list(self.message_hooks),
        )
        return hooks

    def joined(self, other: "Hooks") -> "Hooks":
        """These hooks, then those of `other`."""
        hooks = self.copy()
        hooks.timeout = other.timeout
        hooks.context_hooks += other.context_hooks
        hooks.message_hooks += other.message_hooks
        return hooks

    def for_context(self, reason: HookReason) -> tuple[Hook, ...]:
        return tuple(hook for hook in self.context_hooks if hook.reason == reason)

    def for_messages(self) -> tuple[Hook, ...]:
        return tuple(self.message_hooks)

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
        the final answer (`turn_end`). It returns patch operations."""
        if reason not in REASONS:
            raise UsageError(f"a context hook has one of the reasons {REASONS}, not {reason!r}")

        def register(handler: Handler) -> Handler:
            self.context_hooks.append(self._hook(handler, name, timeout, reason))
            return handler

        return register(handler) if handler is not None else register

    @overload
    def message(self, handler: Handler) -> Handler: ...
    @overload
    def message(
        self, handler: None = None, *, name: str | None = None, timeout: float | None = None
    ) -> Callable[[Handler], Handler]: ...
    def message(
        self,
        handler: Handler | None = None,
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Handler | Callable[[Handler], Handler]:
        """Registers a hook on finalised messages. It returns the message to keep instead, None to
        leave it, or `Drop()` for a user's message that is not to be sent."""

        def register(handler: Handler) -> Handler:
            self.message_hooks.append(self._hook(handler, name, timeout))
            return handler

        return register(handler) if handler is not None else register

    def _hook(
        self,
        handler: Callable[..., Any],
        name: str | None,
        timeout: float | None,
        reason: HookReason | None = None,
    ) -> Hook:
        if not callable(handler):
            raise UsageError(f"a hook is a function, not {handler!r}; name its reason by keyword")
        limit = self.timeout if timeout is None else timeout
        if not limit > 0:
            raise UsageError(f"a hook's time limit is in seconds above 0, not {limit!r}")
        return Hook(name=name or _name_of(handler), handler=handler, timeout=limit, reason=reason)


def _name_of(handler: Callable[..., Any]) -> str:
    """A name that says where a hook comes from, the same in every process."""
    function = getattr(handler, "func", handler)  # a partial is named by what it calls
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"
