"""Running hooks: every result is checked before any is written."""

import contextlib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from contextvars import copy_context
from itertools import count
from threading import Thread
from typing import Any, TypeVar

import anyio
import anyio.from_thread
import msgspec
from anyio.lowlevel import current_token
from msgspec.structs import replace

from lamina.assembly.draft import NOTHING_ADDED, Ephemera
from lamina.assembly.page import Page
from lamina.codec import canonical_bytes, parse_op
from lamina.errors import HookError, InvalidPatch, InvalidText, MessageDropped
from lamina.journal import State
from lamina.sources.hooks import ContextEvent, Drop, Hook, HookReason, Hooks, MessageEvent
from lamina.values.envelope import Envelope
from lamina.values.message import Message, Text, Thinking, ToolCall, ToolDefinition, ToolResult
from lamina.values.patch import (
    CompactionApply,
    Display,
    MessagesCachedReplace,
    MessagesUncachedAppend,
    Patch,
    PatchOp,
    op_name,
)

T = TypeVar("T")


async def run_context_hooks(
    hooks: Hooks, reason: HookReason, page: Page, target: str, message: Message
) -> None:
    """Writes what the hooks of a boundary return, all of it or nothing. Each one sees what those
    before it changed; a patch that changes nothing is dropped.

    Raises:
        HookError: a hook failed, was too slow, or returned something that is not a patch.
        InvalidPatch: an op is wrong, or does not belong here.
    """
    trial = page.copy()
    for hook in hooks.for_context(reason):
        event = _event(reason, trial, trial.state.envelope, target, message)
        patch = await _patch_of(hook, event)
        if patch is None:
            continue
        before = trial.copy()
        with _naming(hook):
            for op in patch.ops:
                if isinstance(op, MessagesUncachedAppend):
                    problem = "text for one request only is added by ephemeral hooks"
                    raise InvalidPatch(op_name(op), problem)
            trial.transform(hook.name, patch)
            _keep_waiting(before.state.envelope, trial.state.envelope, patch)
        if _same(trial.state, before.state):
            trial = before
    page.take(trial)


def _same(state: State, before: State) -> bool:
    """Whether a patch changed nothing. A tool that is removed before it was ever offered is a
    change."""
    return state.envelope == before.envelope and state.withdrawn == before.withdrawn


async def run_ephemeral_hooks(hooks: Hooks, page: Page, target: str, message: Message) -> Ephemera:
    """What hooks add to one request only; they work on a copy that is thrown away.

    Raises:
        HookError, InvalidPatch: as above.
    """
    envelope = page.state.envelope
    ephemera = NOTHING_ADDED
    for hook in hooks.for_context("ephemeral"):
        local = replace(envelope, uncached=envelope.uncached + ephemera.messages)
        patch = await _patch_of(hook, _event("ephemeral", page, local, target, message))
        new: list[Message] = []
        for op in patch.ops if patch else ():
            with _naming(hook):
                new += _sendable(op)
        if not patch or not new:
            continue
        numbers = count(len(ephemera.messages))
        new = [replace(message, id=f"ephemeral:{next(numbers)}") for message in new]
        ephemera = Ephemera(
            messages=(*ephemera.messages, *new),
            hooks=(*ephemera.hooks, hook.name),
            displays=(*ephemera.displays, *([patch.display] if patch.display else [])),
        )
    return ephemera


async def run_message_hooks(
    hooks: Hooks, session: str, message: Message, envelope: Envelope
) -> tuple[Message, tuple[str, ...]]:
    """The message as hooks changed it, and what went wrong with them.

    Raises:
        MessageDropped: it is a user's message and a hook dropped it.
    """
    warnings: list[str] = []
    for hook in tuple(hooks.message_hooks):
        event = MessageEvent(session=session, message=message, envelope=envelope)
        try:
            message = _read_message(hook, await _call(hook, event), message)
        except MessageDropped:
            raise
        except HookError as error:
            warnings.append(f"{error}; the message stays as it was")
    return message, tuple(warnings)


async def _call(hook: Hook, event: ContextEvent | MessageEvent) -> Any:
    """What the hook returned. Generators are exhausted here, within its time limit."""
    with anyio.move_on_after(hook.timeout) as scope:
        try:
            if inspect.iscoroutinefunction(hook.handler):
                result = await hook.handler(event)
            else:
                result = await _call_in_thread(hook, event)
                if inspect.isawaitable(result):
                    result = await result
        except Exception as error:
            if not scope.cancel_called:
                raise HookError(hook.name, f"{type(error).__name__}: {error}") from error
    # Also if the hook swallowed the cancellation: a late result is not used.
    if scope.cancel_called:
        raise HookError(hook.name, f"took longer than its {hook.timeout:g} s")
    return result


async def _call_in_thread(hook: Hook, event: ContextEvent | MessageEvent) -> Any:
    """Calls a plain function in a thread of its own: one that hangs must not hold up everyone
    else, nor keep the process from ending."""
    token, finish = current_token(), anyio.Event()
    outcome: list[Any] = []

    def work() -> None:
        try:
            result = hook.handler(event)
            outcome.append((list(result) if isinstance(result, Iterator) else result, None))
        except Exception as error:  # noqa: BLE001 - raised where the hook is waited for
            outcome.append((None, error))
        # Nobody waits any more if the loop is gone.
        with contextlib.suppress(anyio.RunFinishedError):
            anyio.from_thread.run_sync(finish.set, token=token)

    # As in any thread that an application starts from here, its context comes along.
    Thread(target=copy_context().run, args=(work,), name=f"hook {hook.name}", daemon=True).start()
    await finish.wait()
    result, error = outcome[0]
    if error is not None:
        raise error
    return result


def _event(
    reason: HookReason, page: Page, envelope: Envelope, target: str, message: Message
) -> ContextEvent:
    # Schemas are plain dicts, which a hook could change: it gets its own.
    tools, listed = (
        msgspec.convert(msgspec.to_builtins(definitions), tuple[ToolDefinition, ...])
        for definitions in (envelope.tools, envelope.listed)
    )
    return ContextEvent(
        reason=reason,
        session=page.state.session.session,
        target=target,
        envelope=replace(envelope, tools=tools, listed=listed),
        message=message,
    )


async def _patch_of(hook: Hook, event: ContextEvent) -> Patch | None:
    """What a hook returned as a patch; None if it changes nothing. Everything is converted anew,
    so that its types are right and the hook holds no reference to it."""
    result = await _call(hook, event)
    if result is None:
        return None
    display, values = (result.display, result.ops) if isinstance(result, Patch) else (None, result)
    if isinstance(result, PatchOp | Mapping):
        values = [result]
    if isinstance(values, str | bytes | type) or not isinstance(values, Iterable):
        raise HookError(hook.name, f"returned {result!r}, which is neither a patch nor None")
    ops: list[PatchOp] = []
    for value in values:
        if not isinstance(value, PatchOp | Mapping):
            raise HookError(hook.name, f"returned {value!r}, which is no patch operation")
        with _naming(hook):
            ops.append(read_op(value))
    if not ops:
        return None
    try:
        patch = Patch(ops=tuple(ops), display=_copy(display, Display) if display else None)
        canonical_bytes(patch)
    except (InvalidText, TypeError, msgspec.MsgspecError) as error:
        raise HookError(hook.name, f"returned what cannot be kept: {error}") from error
    return patch


def read_op(op: PatchOp | Mapping[str, Any]) -> PatchOp:
    """An op from outside, checked: its annotations alone prove nothing.

    Raises:
        InvalidPatch: it does not hold what it should.
    """
    if isinstance(op, Mapping):
        return parse_op(op)
    try:
        return parse_op(msgspec.to_builtins(op))
    except (TypeError, AttributeError) as error:
        raise InvalidPatch(op_name(op), str(error)) from error


def _copy(value: Any, kind: type[T]) -> T:
    return msgspec.convert(msgspec.to_builtins(value), kind)


@contextlib.contextmanager
def _naming(hook: Hook) -> Iterator[None]:
    """Adds the hook's name to errors about its ops."""
    try:
        yield
    except InvalidPatch as error:
        raise InvalidPatch(error.op, f"{error.problem} (hook {hook.name!r})") from error


def _keep_waiting(before: Envelope, after: Envelope, patch: Patch) -> None:
    """Calls whose results are about to come stay last, and no others are put there."""
    if _waiting(before) != _waiting(after):
        problem = "calls that wait for their results stay last, and no others can be put there"
        ops = (op for op in patch.ops if isinstance(op, MessagesCachedReplace | CompactionApply))
        raise InvalidPatch(op_name(next(ops, patch.ops[0])), problem)


def _waiting(envelope: Envelope) -> list[str]:
    return [call.id for call in envelope.cached[-1].calls] if len(envelope.cached) else []


def _sendable(op: PatchOp) -> list[Message]:
    if not isinstance(op, MessagesUncachedAppend):
        raise InvalidPatch(op_name(op), "an ephemeral hook can only append uncached messages")
    for message in op.messages:
        if message.role == "tool" or any(not isinstance(b, Text) for b in message.blocks):
            problem = "uncached messages hold text of a user or assistant"
            raise InvalidPatch(op_name(op), problem)
    return [message for message in op.messages if message.text.strip()]


def _read_message(hook: Hook, result: Any, message: Message) -> Message:
    if result is None:
        return message
    if isinstance(result, Drop):
        if message.role == "user":
            raise MessageDropped(hook.name, message.text)
        raise HookError(hook.name, f"a message of role {message.role!r} cannot be dropped")
    if not isinstance(result, Message):
        raise HookError(hook.name, f"returned {result!r}, which is no message")
    try:
        revision = replace(_copy(result, Message), id=message.id)
        canonical_bytes(revision)
    except (InvalidText, TypeError, AttributeError, msgspec.MsgspecError) as error:
        raise HookError(hook.name, f"returned what is no message: {error}") from error
    if revision.role != message.role:
        raise HookError(hook.name, f"a message of role {message.role!r} keeps it")
    if problem := _problem_with(revision, message):
        raise HookError(hook.name, problem)
    return revision


def _problem_with(revision: Message, message: Message) -> str:
    """Why a message cannot be kept as a hook changed it."""
    kinds = _BLOCKS[message.role]
    if odd := next((block for block in revision.blocks if not isinstance(block, kinds)), None):
        return f"a message of role {message.role!r} holds no {type(odd).__name__}"
    if _results(revision) != _results(message):
        return "results keep their calls and names"
    ids = [call.id for call in revision.calls]
    if len(set(ids)) != len(ids):
        return "two calls have one id"
    if not revision.text.strip() and not revision.calls and message.text.strip():
        return "emptied the message; a user's can be dropped"
    return ""


# What a message of each role is made of. Attachments are not for message hooks.
_BLOCKS: dict[str, tuple[type, ...]] = {
    "user": (Text,),
    "assistant": (Text, Thinking, ToolCall),
    "tool": (ToolResult,),
}


def _results(message: Message) -> list[tuple[str, str]]:
    blocks = message.blocks
    return [(block.call_id, block.name) for block in blocks if isinstance(block, ToolResult)]
