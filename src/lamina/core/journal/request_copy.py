"""Builds the envelope of one request, if it differs from the session's own.

Laws: changes for one request only apply to a copy; the session keeps its envelope. The copy is made
from the journal alone, so that the request can be rebuilt. Everything it moved has a reason, and so
has moving it back.
"""

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.journal.patch_effects import (
    append_messages,
    apply_op,
    brought_by,
    calls_wait,
    check_appended,
    check_reasons,
    require_contents,
)
from lamina.core.journal.reasons import RecordedReason, find_moved_parts, find_return
from lamina.core.journal.state import State
from lamina.core.text import label_of
from lamina.core.values.collections import Chain
from lamina.core.values.envelope import Envelope
from lamina.core.values.message import AbsentAttachment, Context, Message
from lamina.core.values.patch import (
    MessagesCachedAppend,
    MessagesCachedReplace,
    OnceOps,
    Patch,
    op_name,
    op_reason,
)

# The notice for the model about an item that a question names and this request does not contain.
NOT_IN_THIS_REQUEST = "not part of this request"


class RequestCopy(Struct, frozen=True, kw_only=True):
    """The source of a request: the envelope, and the start of its turn. `reasons` are for the parts
    moved for it, `returning` for those that move back with the next one."""

    envelope: Envelope
    start: int
    reasons: tuple[RecordedReason, ...] = ()
    returning: tuple[RecordedReason, ...] = ()


def copy_for_request(state: State) -> RequestCopy:
    """Return the copy from which the request of `state` is made.

    Raises:
        InvalidPatch: an operation for it cannot be applied.
    """
    envelope, start = state.envelope, state.turn.start
    if not state.once:
        return RequestCopy(envelope=envelope, start=start or 0)
    # Hooks saw everything before the message that the request is for.
    place = _place_of_message(envelope.cached, start)
    before = replace(envelope, cached=envelope.cached.until(place))
    own_start = start if start is not None and start < place else None
    copy, own_start, reasons, behind = _apply_once(before, own_start, state)
    returning: tuple[RecordedReason, ...] = ()
    if moved := find_return(copy, before):
        returning = tuple(
            RecordedReason(text=_describe_return(once), moved=moved, is_return=True)
            for once in state.once
        )
    messages = list(envelope.cached.since(place))
    if messages:
        messages[0] = _without_missing(messages[0], copy)
    cached = append_messages(copy.cached.extend(messages), behind)
    started = own_start if own_start is not None else len(copy.cached)
    return RequestCopy(
        envelope=replace(copy, cached=cached),
        start=started if start is not None else len(cached),
        reasons=tuple(reasons),
        returning=returning,
    )


def check_once(state: State, once: OnceOps) -> None:
    """Check operations for one request only.

    Raises:
        InvalidPatch: an operation lacks a reason, or lays something down whose content is missing.
    """
    check_reasons(Patch(ops=once.ops))
    require_contents(state, once.ops)


def _apply_once(
    envelope: Envelope, start: int | None, state: State
) -> tuple[Envelope, int | None, list[RecordedReason], tuple[Message, ...]]:
    """Return the envelope after the operations, and the messages that come after the request's own
    message: nothing may stand between calls and their results."""
    reasons: list[RecordedReason] = []
    behind: tuple[Message, ...] = ()
    sent = state.requests.sent is not None
    for once in state.once:
        for op in once.ops:
            before = envelope
            if isinstance(op, MessagesCachedAppend) and calls_wait(envelope):
                check_appended(op)
                behind += op.messages
                continue
            if isinstance(op, MessagesCachedReplace):
                # Messages pruned since then stay away.
                op = replace(op, kept=min(op.kept, len(envelope.cached)))
            envelope, start = apply_op(envelope, op, start, sent)
            if why := op_reason(op):
                text = f"{why} (for one request, by {once.transformer})"
                moved = find_moved_parts(before, envelope)
                reasons.append(RecordedReason(text=text, op=op_name(op), moved=moved))
    return envelope, start, reasons, behind


def _describe_return(once: OnceOps) -> str:
    why = "; ".join(filter(None, map(op_reason, once.ops))) or ", ".join(map(op_name, once.ops))
    return f"back from one request of {once.transformer}: {why}"


def _place_of_message(cached: Chain[Message], start: int | None) -> int:
    """Return the index of the message that a request is for: the last results of the current turn,
    or its question."""
    if start is None:
        return len(cached)
    for place in range(len(cached) - 1, start, -1):
        if cached[place].role == "tool":
            return place
    return start


def _without_missing(message: Message, copy: Envelope) -> Message:
    """Return the message with a notice for each item that it names and the copy does not
    contain."""
    context = message.context
    if context is None:
        return message
    there = {laid.item for laid in copy.library} | brought_by(copy.cached)
    gone = [use for use in context.uses if use.form == "named" and use.item not in there]
    if not gone:
        return message
    absent = tuple(AbsentAttachment(label=label_of(use.item), why=NOT_IN_THIS_REQUEST)
                   for use in gone)  # fmt: skip
    uses = tuple(use for use in context.uses if use not in gone)
    rest = replace(context, uses=uses, absent=context.absent + absent)
    blocks = tuple(rest if isinstance(block, Context) else block for block in message.blocks)
    return replace(message, blocks=blocks)
