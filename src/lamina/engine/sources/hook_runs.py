"""Runs the hooks of a turn in order, and checks every result before any is written."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lamina.core.assembly.request_draft import NOTHING_ADDED, Ephemera, Page
from lamina.core.assembly.request_report import read_attachments
from lamina.core.codec import canonical_bytes
from lamina.core.journal import (
    State,
    check_once,
    copy_for_request,
    open_patch,
    read_display,
    read_op,
    shorten_patch,
)
from lamina.core.layers import with_compiled_system
from lamina.core.values.entry import CustomEntry, RequestEntry
from lamina.core.values.envelope import Envelope, SystemParts
from lamina.core.values.item import Attachment
from lamina.core.values.message import Message, Text, Thinking, ToolCall, ToolDefinition, ToolResult
from lamina.core.values.patch import (
    CompactionApply,
    Display,
    MessagesCachedAppend,
    MessagesCachedReplace,
    MessagesUncachedAppend,
    OnceOps,
    OptionsSet,
    Patch,
    PatchOp,
    op_name,
)
from lamina.core.values.settings import Promotion, Target
from lamina.engine.record.layouts import Layouts
from lamina.engine.record.record import Record
from lamina.engine.sources.hooks import (
    ContextEvent,
    Drop,
    Hook,
    HookReason,
    Hooks,
    LateHooks,
    MessageEvent,
    TurnItem,
    call_hook,
    turn_items,
)
from lamina.errors import HookError, InvalidPatch, InvalidText, MessageDropped

T = TypeVar("T")
# The maximum size of a patch's display, in bytes of JSON.
MAX_DISPLAY = 65_536


class HookScene(Struct, frozen=True, kw_only=True):
    """The information that hooks receive at one moment of a turn, apart from its envelope: the
    message it is about, the target, and the items that apply. `foresee` returns the system prompt
    that a request from a page will have, including its own additions; without it, that of the page.
    Hooks that keep running are collected in `late`.
    """

    message: Message
    late: LateHooks
    target: str = ""
    items: tuple[TurnItem, ...] = ()
    foresee: Callable[[Page, Ephemera], SystemParts] | None = None


class HookedMessage(Struct, frozen=True, kw_only=True):
    """A message after hooks, with the hooks that changed it, and their errors."""

    message: Message
    changed_by: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


async def run_context_hooks(hooks: Hooks, reason: HookReason, page: Page, scene: HookScene) -> None:
    """Write the patches that the hooks of a boundary return, all or none of them. Each hook sees
    the changes of those before it; a patch that changes nothing is dropped.

    Raises:
        HookError: a hook failed, was too slow, or returned something that is not a patch.
        InvalidPatch: an op is wrong, or does not belong here.
    """
    trial = page.copy()
    for hook in hooks.for_context(reason):
        event = _event(reason, trial, trial.state.envelope, scene)
        patch, transformer = await _patch_of(hook, event, scene.late)
        if patch is None:
            continue
        before = trial.copy()
        with _naming(hook):
            for op in patch.ops:
                if isinstance(op, MessagesUncachedAppend):
                    problem = "only ephemeral hooks add text for one request"
                    raise InvalidPatch(op_name(op), problem)
                if isinstance(op, OptionsSet) and op.scope == "uncached":
                    problem = "only ephemeral hooks set options for one request"
                    raise InvalidPatch(op_name(op), problem)
            trial.transform(transformer, patch)
            _keep_waiting(before.state.envelope, trial.state.envelope, patch)
        if _same(trial.state, before.state):
            trial = before
    page.take(trial)


def _same(state: State, before: State) -> bool:
    """Return whether a patch changed nothing. Removing a tool before it was ever offered is a
    change, and so is a message that comes behind awaited results.
    """
    kept = (state.withdrawn, state.turn.behind_results)
    return state.envelope == before.envelope and kept == (
        before.withdrawn,
        before.turn.behind_results,
    )


async def run_ephemeral_hooks(hooks: Hooks, page: Page, scene: HookScene) -> Ephemera:
    """Return the changes by hooks to one request only; hooks work on a copy that is discarded."""
    ephemera = NOTHING_ADDED
    for hook in hooks.for_context("ephemeral"):
        local = ephemera.apply_to(page.state)
        envelope = copy_for_request(local).envelope
        event = _event("ephemeral", page, envelope, scene, ephemera)
        patch, transformer = await _patch_of(hook, event, scene.late)
        if patch is None:
            continue
        new: list[Message] = []
        with _naming(hook):
            for op in patch.ops:
                new += _sendable(op)
            once = _once(patch, transformer, local, envelope)
        if not new and not once:
            continue
        numbers = count(len(ephemera.messages))
        new = [replace(message, id=f"ephemeral:{next(numbers)}") for message in new]
        ephemera = Ephemera(
            messages=(*ephemera.messages, *new),
            patches=(*ephemera.patches, *once),
            hooks=(*ephemera.hooks, hook.name),
            displays=(*ephemera.displays, *([patch.display] if patch.display else [])),
        )
    return ephemera


def _once(patch: Patch, transformer: str, state: State, envelope: Envelope) -> tuple[OnceOps, ...]:
    """Return the checked changes of a patch to one request, apart from adding text behind it; empty
    if there are none.
    """
    rest = tuple(op for op in patch.ops if not isinstance(op, MessagesUncachedAppend))
    if not rest:
        return ()
    short = shorten_patch(Patch(ops=rest), envelope, state.requests.sent is not None)
    once = (OnceOps(transformer=transformer, ops=short.ops),)
    check_once(state, once[0])
    after = copy_for_request(replace(state, once=state.once + once)).envelope
    added = any(isinstance(op, MessagesCachedAppend) and op.messages for op in rest)
    if not added:
        _keep_waiting(envelope, after, patch)
    return once if added or after != envelope else ()


async def run_message_hooks(
    hooks: Hooks, state: State, scene: HookScene, max_seconds: float | None = None
) -> HookedMessage:
    """Return the message as hooks changed it, each within its limit or `max_seconds`.

    Raises:
        MessageDropped: it is a user's message and a hook dropped it.
    """
    message, changed_by, warnings = scene.message, list[str](), list[str]()
    in_force = replace(state.envelope, options=state.options)
    envelope = with_compiled_system(in_force, state)
    for hook in tuple(hooks.message_hooks):
        event = MessageEvent(
            session=state.session.session, message=message, envelope=envelope, items=scene.items
        )
        try:
            result = await call_hook(hook, event, scene.late, max_seconds)
            before, message = message, _read_message(hook, result, message)
        except MessageDropped:
            raise
        except HookError as error:
            warnings.append(f"{error}; the message stays as it was")
        else:
            changed_by += [hook.name] if message != before else []
    return HookedMessage(message=message, changed_by=tuple(changed_by), warnings=tuple(warnings))


def _event(
    reason: HookReason,
    page: Page,
    envelope: Envelope,
    scene: HookScene,
    ephemera: Ephemera = NOTHING_ADDED,
) -> ContextEvent:
    # Schemas are plain dicts, which a hook could change: it gets a copy.
    tools, listed = (
        msgspec.convert(msgspec.to_builtins(definitions), tuple[ToolDefinition, ...])
        for definitions in (envelope.tools, envelope.listed)
    )
    options = replace(page.state, envelope=envelope).options
    envelope = replace(envelope, tools=tools, listed=listed, options=options)
    envelope = with_compiled_system(envelope, page.state)
    if scene.foresee is not None:
        foreseen = scene.foresee(page, ephemera)
        system = SystemParts(envelope.system, lambda: foreseen.compiled)
        envelope = replace(envelope, system=system)
    return ContextEvent(
        reason=reason,
        session=page.state.session.session,
        target=scene.target,
        envelope=envelope,
        message=scene.message,
        items=scene.items,
    )


def _shown(result: object) -> str:
    # The class without its module: messages are stored in the journal, and modules may be moved.
    return f"the class {result.__name__}" if isinstance(result, type) else repr(result)


async def _patch_of(hook: Hook, event: ContextEvent, late: LateHooks) -> tuple[Patch | None, str]:
    """Return the patch that a hook returned, with its source; None if it changes nothing. All of it
    is converted again, so that its types are right and the hook has no reference to it.
    """
    result = await call_hook(hook, event, late)
    if result is None:
        return None, hook.name
    with _naming(hook):
        plain = open_patch(result)
    if plain is None:
        raise HookError(hook.name, f"returned {_shown(result)}, which is neither a patch nor None")
    ops: list[PatchOp] = []
    for value in plain.ops:
        if not isinstance(value, PatchOp | Mapping):
            raise HookError(hook.name, f"returned {_shown(value)}, which is not a patch operation")
        with _naming(hook):
            ops.append(read_op(value, event.envelope.cached))
    if not ops:
        return None, hook.name
    display = plain.display
    try:
        patch = Patch(ops=tuple(ops), display=_read_display(hook, display))
        canonical_bytes(patch)
    except (InvalidText, TypeError, RecursionError, msgspec.MsgspecError) as error:
        raise HookError(hook.name, f"returned a value that cannot be stored: {error}") from error
    return patch, plain.transformer or hook.name


def _read_display(hook: Hook, display: Any) -> Display | None:
    """Return the display of a patch, as it will be in the journal."""
    if not display:
        return None
    if isinstance(display, Mapping):
        with _naming(hook):
            display = read_display(display)
    data = canonical_bytes(_copy(display, Display))
    if len(data) > MAX_DISPLAY:
        problem = f"its display has {len(data):,} bytes, and at most {MAX_DISPLAY:,} are kept"
        raise HookError(hook.name, problem)
    return msgspec.json.decode(data, type=Display)


def _copy(value: Any, kind: type[T]) -> T:
    return msgspec.convert(msgspec.to_builtins(value), kind)


@contextlib.contextmanager
def _naming(hook: Hook) -> Iterator[None]:
    """Add the hook's name to errors about its ops."""
    try:
        yield
    except InvalidPatch as error:
        raise InvalidPatch(error.op, f"{error.problem} (hook {hook.name!r})") from error


def _keep_waiting(before: Envelope, after: Envelope, patch: Patch) -> None:
    """Check that calls whose results are about to come stay last, without new ones."""
    if _waiting(before) != _waiting(after):
        problem = "calls that wait for their results stay last, and no others can be put there"
        ops = (op for op in patch.ops if isinstance(op, MessagesCachedReplace | CompactionApply))
        raise InvalidPatch(op_name(next(ops, patch.ops[0])), problem)


def _waiting(envelope: Envelope) -> list[str]:
    return [call.id for call in envelope.cached[-1].calls] if len(envelope.cached) else []


def _sendable(op: PatchOp) -> list[Message]:
    if not isinstance(op, MessagesUncachedAppend):
        return []
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
        raise HookError(hook.name, f"returned {_shown(result)}, which is no message")
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
    """Return why a message cannot be stored as a hook changed it."""
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


# The blocks of a message, by role. Attachments are not passed to message hooks.
_BLOCKS: dict[str, tuple[type, ...]] = {
    "user": (Text,),
    "assistant": (Text, Thinking, ToolCall),
    "tool": (ToolResult,),
}


def _results(message: Message) -> list[tuple[str, str]]:
    blocks = message.blocks
    return [(block.call_id, block.name) for block in blocks if isinstance(block, ToolResult)]


DROPPED = "lamina.dropped"
# How long a hook may take for the stored part of a stopped answer: a person is waiting for it.
HURRY_S = 1.0


class TurnFrame(Struct, frozen=True, kw_only=True):
    """Everything that applies to a whole turn: its target, its layout, and its items."""

    target: Target
    promotion: Promotion
    attachments: tuple[Attachment, ...] = ()


class TurnHooks:
    """Runs the hooks of one session."""

    def __init__(self, record: Record, layouts: Layouts, hooks: Hooks) -> None:
        self._record = record
        self._layouts = layouts
        self._hooks = hooks
        self._late = LateHooks()

    def report_late(self) -> tuple[str, ...]:
        """Return warnings about hooks that run past their limit, once each."""
        return self._late.report()

    async def on_context(
        self,
        reason: HookReason,
        page: Page,
        frame: TurnFrame,
        message: Message,
        foresee: Callable[[Page, Ephemera], SystemParts] | None = None,
    ) -> None:
        """Let hooks change the context on `page`; `foresee` returns the request's system prompt."""
        if self._hooks.for_context(reason):
            scene = self._scene(frame, message, foresee)
            await run_context_hooks(self._hooks, reason, page, scene)

    async def on_end(self, page: Page, request: RequestEntry, answer: Message) -> None:
        """Let hooks change the context once a turn is over."""
        if self._hooks.for_context("turn_end"):
            await self.on_context("turn_end", page, self._frame_of(request, page.state), answer)

    async def for_request(
        self,
        page: Page,
        frame: TurnFrame,
        message: Message,
        foresee: Callable[[Page, Ephemera], SystemParts] | None = None,
    ) -> Ephemera:
        """Return the changes by hooks to one request only."""
        if not self._hooks.for_context("ephemeral"):
            return NOTHING_ADDED
        return await run_ephemeral_hooks(self._hooks, page, self._scene(frame, message, foresee))

    async def on_message(self, message: Message, state: State, frame: TurnFrame) -> HookedMessage:
        """Return a finalised message as hooks leave it."""
        if not self._hooks.message_hooks:
            return HookedMessage(message=message)
        return await run_message_hooks(self._hooks, state, self._scene(frame, message))

    async def on_reply(
        self, message: Message, state: State, request: RequestEntry | None, *, hurry: bool = False
    ) -> HookedMessage:
        """Return the answer to a request, or the results of its calls, as hooks leave it; None if
        the request is unknown. With `hurry`, a hook gets little time.
        """
        if not self._hooks.message_hooks:
            return HookedMessage(message=message)
        scene = HookScene(message=message, late=self._late)
        if request is not None:
            scene = self._scene(self._frame_of(request, state), message)
        return await run_message_hooks(self._hooks, state, scene, HURRY_S if hurry else None)

    async def on_question(self, page: Page, frame: TurnFrame, text: str) -> HookedMessage:
        """Return a question as hooks leave it.

        Raises:
            MessageDropped: a hook dropped it, which is written down.
        """
        message = Message(role="user", blocks=(Text(text),))
        try:
            return await self.on_message(message, page.state, frame)
        except MessageDropped as drop:
            # Nothing disappears silently: the journal records what was dropped and by which hook.
            data = {"hook": drop.hook, "text": drop.text}
            await self._record.write(CustomEntry, kind=DROPPED, data=data)
            raise

    def _frame_of(self, request: RequestEntry, state: State) -> TurnFrame:
        out = {item.item for item in request.context.items if item.placement == "left_out"}
        attachments = read_attachments(request.context, state.library.items)
        return TurnFrame(
            target=self._layouts.book.find(request.target),
            promotion=request.promotion,
            attachments=tuple(a for a in attachments if a.item.id not in out),
        )

    def _scene(
        self,
        frame: TurnFrame,
        message: Message,
        foresee: Callable[[Page, Ephemera], SystemParts] | None = None,
    ) -> HookScene:
        # The same counts with which the request is planned, each made once.
        assembler = self._layouts.assembler_for(frame.target, frame.promotion)
        items = turn_items(frame.attachments, assembler.item_tokens)
        return HookScene(
            message=message,
            target=frame.target.name,
            items=items,
            late=self._late,
            foresee=foresee,
        )
