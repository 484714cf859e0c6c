"""Running hooks: every result is checked before any is written."""

import inspect
from collections.abc import Mapping
from typing import Any

import anyio
import anyio.to_thread
from msgspec.structs import replace

from lamina.codec import parse_op, require_text
from lamina.engine.hooks import ContextEvent, Drop, Hook, Hooks, MessageEvent, Reason
from lamina.engine.writing import Pen
from lamina.errors import HookError, InvalidPatch, LaminaError, MessageDropped
from lamina.values.envelope import Envelope
from lamina.values.message import Message, Text, ToolResult
from lamina.values.patch import MessagesUncachedAppend, Patch, PatchOp, op_name


async def run_context_hooks(
    hooks: Hooks, reason: Reason, pen: Pen, *, target: str, message: Message | None
) -> None:
    """Writes what the hooks of a boundary return, all of it or nothing. Each one sees what those
    before it changed.

    Raises:
        HookError: a hook failed, was too slow, or returned something that is no patch.
        InvalidPatch: an op is wrong, or does not belong here.
    """
    page = pen.copy()
    for hook in hooks.for_context(reason):
        event = _event(reason, page, page.state.envelope, target, message)
        patch = _read_patch(hook, await _call(hook, event))
        if patch is not None:
            _refuse_uncached(hook, patch)
            page.transform(hook.name, patch)
    pen.take(page)


async def run_ephemeral_hooks(
    hooks: Hooks, pen: Pen, *, target: str, message: Message
) -> tuple[Message, ...]:
    """What hooks add to one request only. They work on a copy that is not kept.

    Raises:
        HookError, InvalidPatch: as above.
    """
    envelope = pen.state.envelope
    added: tuple[Message, ...] = ()
    for hook in hooks.for_context("ephemeral"):
        local = replace(envelope, uncached=envelope.uncached + added)
        patch = _read_patch(
            hook, await _call(hook, _event("ephemeral", pen, local, target, message))
        )
        for op in patch.ops if patch else ():
            if not isinstance(op, MessagesUncachedAppend):
                problem = f"hook {hook.name!r}: an ephemeral hook can only append uncached messages"
                raise InvalidPatch(op_name(op), problem)
            added += _sendable(hook, op)
    return tuple(replace(each, id=f"ephemeral:{index}") for index, each in enumerate(added))


async def run_message_hooks(
    hooks: Hooks, session: str, message: Message, envelope: Envelope
) -> tuple[Message, tuple[str, ...]]:
    """The message as hooks want it kept, and what went wrong with them.

    Raises:
        MessageDropped: it is a user's message and a hook dropped it.
    """
    warnings: list[str] = []
    for hook in hooks.for_messages():
        event = MessageEvent(session=session, message=message, envelope=envelope)
        try:
            message = _read_message(hook, await _call(hook, event), message)
        except MessageDropped:
            raise
        except HookError as error:
            warnings.append(f"{error}; the message stays as it was")
    return message, tuple(warnings)


async def _call(hook: Hook, event: ContextEvent | MessageEvent) -> Any:
    with anyio.move_on_after(hook.timeout) as scope:
        try:
            if inspect.iscoroutinefunction(hook.handler):
                return await hook.handler(event)
            # In a thread: one that hangs must not hold up everyone else, nor its own time limit.
            result = await anyio.to_thread.run_sync(hook.handler, event, abandon_on_cancel=True)
            return await result if inspect.isawaitable(result) else result
        except Exception as error:
            raise HookError(hook.name, f"{type(error).__name__}: {error}") from error
    assert scope.cancelled_caught
    raise HookError(hook.name, f"took longer than its {hook.timeout:g} s")


def _event(
    reason: Reason, pen: Pen, envelope: Envelope, target: str, message: Message | None
) -> ContextEvent:
    session = pen.state.session.session
    return ContextEvent(
        reason=reason, session=session, target=target, envelope=envelope, message=message
    )


def _read_patch(hook: Hook, result: Any) -> Patch | None:
    """What a hook returned as a patch; None if it changes nothing."""
    if result is None:
        return None
    if isinstance(result, Patch):
        return result if result.ops else None
    listed = [result] if isinstance(result, PatchOp | Mapping) else result
    if isinstance(listed, str | bytes) or not hasattr(listed, "__iter__"):
        raise HookError(hook.name, f"returned {result!r}, which is neither a patch nor None")
    ops: list[PatchOp] = []
    for each in listed:
        if isinstance(each, Mapping):
            ops.append(parse_op(each))
        elif isinstance(each, PatchOp):
            ops.append(each)
        else:
            raise HookError(hook.name, f"returned {each!r}, which is no patch operation")
    return Patch(ops=tuple(ops)) if ops else None


def _refuse_uncached(hook: Hook, patch: Patch) -> None:
    for op in patch.ops:
        if isinstance(op, MessagesUncachedAppend):
            problem = f"hook {hook.name!r}: text for one request only is added in ephemeral hooks"
            raise InvalidPatch(op_name(op), problem)


def _sendable(hook: Hook, op: MessagesUncachedAppend) -> tuple[Message, ...]:
    for message in op.messages:
        if message.role == "tool" or any(not isinstance(b, Text) for b in message.blocks):
            problem = f"hook {hook.name!r}: uncached messages hold text of a user or assistant"
            raise InvalidPatch(op_name(op), problem)
        require_text(message.text, f"a message of hook {hook.name!r}")
    return op.messages


def _read_message(hook: Hook, result: Any, message: Message) -> Message:
    if result is None:
        return message
    if isinstance(result, Drop):
        if message.role == "user":
            raise MessageDropped(hook.name, "dropped the message; nothing is sent")
        raise HookError(hook.name, f"a message of role {message.role!r} cannot be dropped")
    if not isinstance(result, Message):
        raise HookError(hook.name, f"returned {result!r}, which is no message")
    if result.role != message.role or _results(result) != _results(message):
        raise HookError(hook.name, "a message keeps its role, and results keep their calls")
    if result.role == "user" and any(not isinstance(block, Text) for block in result.blocks):
        raise HookError(hook.name, "a user's message is text; attach the rest")
    try:
        require_text(result.text, "the message")
    except LaminaError as error:
        raise HookError(hook.name, str(error)) from error
    return replace(result, id=message.id)


def _results(message: Message) -> list[str]:
    return [block.call_id for block in message.blocks if isinstance(block, ToolResult)]
