"""Renders and reads the hidden comment, which preserves everything that the visible part would
lose.

Laws: unedited visible parts are restored exactly; if a person edited a part, the edit wins. Nothing
in the comment can close it.
"""

import re
from collections import defaultdict, deque
from collections.abc import Sequence
from datetime import tzinfo
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.formats.markdown.chat_messages import (
    COMMENT_OPENS,
    NO_PADDING,
    BlockPadding,
    VisibleMessage,
    merge_contexts,
    padding_of,
    read_message,
    render_context,
    render_tail,
    show_moment,
)
from lamina.adapters.formats.markdown.markdown_chat import ChatMessage, ChatRole
from lamina.core.codec import canonical_bytes, digest_texts
from lamina.core.notes.note_names import NoteNames
from lamina.errors import UsageError

VERSION = 1
# Records are written and read without known paths, so that both sides see the same.
NO_PATHS = NoteNames(())

COMMENT = re.compile(
    # The format's own program reads the comment as text and appends its time stamp.
    rf"^{COMMENT_OPENS} (\{{.*\}}) -->[ \t]*$(?:\n\[Timestamp: Unknown time\][ \t]*$)?",
    re.MULTILINE,
)
# Fields in the visible body, which a person may have edited.
_OF_THE_TEXT = ("text", "thinking", "layout")
_OF_THE_TAIL = ("calls", "results", "interrupted")


class CommentRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A record of one part of the file: digests of it as written, and the fields that it does not
    show."""

    digest: str
    role: ChatRole = "user"
    body: str = ""
    fields: dict[str, Any] = {}
    # Padding around the text.
    fencing: BlockPadding = NO_PADDING


class HiddenComment(Struct, frozen=True, kw_only=True):
    v: int = VERSION
    head: CommentRecord
    messages: tuple[CommentRecord, ...] = ()


class RestoredMessage(Struct, frozen=True, kw_only=True):
    """A message restored from its record and its visible part, and how a person edited it."""

    message: ChatMessage
    edits: tuple[str, ...] = ()


def render_comment(comment: HiddenComment) -> str:
    """Render the comment on one line.

    Raises:
        UsageError: a value cannot be expressed in JSON.
    """
    try:
        data = canonical_bytes(comment).decode()
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise UsageError(f"the chat holds a value that cannot be written: {error}") from error
    # All of these occur only inside strings, where an escape is equivalent.
    for risky in ("--", "<", ">", "**"):
        data = data.replace(risky, "".join(f"\\u{ord(character):04x}" for character in risky))
    return f"{COMMENT_OPENS} {data} -->"


def read_comment(data: str) -> HiddenComment:
    """Read a comment.

    Raises:
        UsageError: the comment is damaged, or written by a later version.
    """
    try:
        comment = msgspec.json.decode(data.encode(), type=HiddenComment)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UsageError(f"it cannot be read: {error}") from error
    if comment.v != VERSION:
        raise UsageError(f"it is of version {comment.v}, and only version {VERSION} is known")
    return comment


def part_digest(text: str) -> str:
    return digest_texts([text.strip("\n")])[:16]


def differing_fields(value: Struct, base: Struct, *always: str) -> dict[str, Any]:
    """Return the fields in which `value` differs from `base`, and those kept `always`.

    Raises:
        UsageError: a value cannot be expressed in JSON.
    """
    try:
        fields, base_fields = msgspec.to_builtins(value), msgspec.to_builtins(base)
    except (TypeError, RecursionError) as error:
        raise UsageError(f"the chat holds a value that cannot be written: {error}") from error
    return {
        name: field
        for name, field in fields.items()
        if field != base_fields[name] or (name in always and field not in (None, {}))
    }


def record_message(message: ChatMessage, chunk: str, tz: tzinfo) -> CommentRecord:
    """Return the record needed to restore `message` from `chunk`."""
    tail, padding = render_tail(message), padding_of(message)
    view = read_message(chunk, message.role, tz=tz, note_names=NO_PATHS, tail=tail, padding=padding)
    # The reader may be in another time zone and have other paths.
    fields = differing_fields(message, view.message, "at", "context")
    digest, body = part_digest(chunk), part_digest(view.body)
    return CommentRecord(
        digest=digest, role=message.role, body=body, fields=fields, fencing=padding
    )


def pair_records(
    chunks: Sequence[tuple[ChatRole, str]], records: Sequence[CommentRecord]
) -> list[int | None]:
    """Pair every message in the file with its record, or None if it has none."""
    same: defaultdict[str, deque[int]] = defaultdict(deque)
    for index, record in enumerate(records):
        same[record.digest].append(index)
    pairs: list[int | None] = []
    for _, chunk in chunks:
        waiting = same.get(part_digest(chunk))
        pairs.append(waiting.popleft() if waiting else None)
    free = set(range(len(records))) - {pair for pair in pairs if pair is not None}

    def take(at: int, index: int | None) -> None:
        # An edited message is identified by its neighbours.
        if pairs[at] is None and index in free and records[index].role == chunks[at][0]:
            pairs[at] = index
            free.discard(index)

    for at in range(len(chunks)):
        before = -1 if at == 0 else pairs[at - 1]
        take(at, None if before is None else before + 1)
    for at in reversed(range(len(chunks))):
        after = len(records) if at + 1 == len(chunks) else pairs[at + 1]
        take(at, None if after is None else after - 1)
    return pairs


def restore_message(
    record: CommentRecord, chunk: str, role: ChatRole, tz: tzinfo, note_names: NoteNames
) -> RestoredMessage:
    """Restore the message written as `chunk`, including a person's edits.

    Raises:
        UsageError: the record is not valid.
    """
    original = _apply(ChatMessage(role=role), record.fields)
    tail, padding = render_tail(original), record.fencing
    if record.digest == part_digest(chunk) and record.role == role:
        view = read_message(chunk, role, tz=tz, note_names=NO_PATHS, tail=tail, padding=padding)
        return RestoredMessage(message=_apply(view.message, record.fields))
    # Use the currently known paths: no record distinguishes names from commas in an edited line.
    view = read_message(chunk, role, tz=tz, note_names=note_names, tail=tail, padding=padding)
    return _restore_edited(record, original, view, tail, tz)


def _restore_edited(
    record: CommentRecord, original: ChatMessage, view: VisibleMessage, tail: str, tz: tzinfo
) -> RestoredMessage:
    fields = {k: v for k, v in record.fields.items() if k not in ("role", "at", "context")}
    edits = []
    if record.body != part_digest(view.body):
        edits.append("its text was edited")
        lost_fields: tuple[str, ...] = _OF_THE_TEXT
        if not view.body.endswith(tail):
            edits.append("its tool lines are not as they were; its calls are left out")
            lost_fields += _OF_THE_TAIL
        fields = {name: field for name, field in fields.items() if name not in lost_fields}
    fields["extra"] = {**view.message.extra, **original.extra}
    message = _apply(view.message, fields)
    if not view.stamp or view.stamp == show_moment(original.at, tz):
        message = replace(message, at=original.at)
    else:
        edits.append("its time was edited")
    if view.context == render_context(original.context):
        message = replace(message, context=original.context)
    else:
        edits.append("its context was edited")
        message = replace(message, context=merge_contexts(original.context, view.message.context))
    return RestoredMessage(message=message, edits=tuple(edits) or ("it was edited",))


def _apply(base: ChatMessage, fields: dict[str, Any]) -> ChatMessage:
    values = {**msgspec.to_builtins(base), **fields, "role": base.role}
    try:
        return msgspec.convert(values, ChatMessage)
    except (msgspec.ValidationError, RecursionError) as error:
        raise UsageError(f"its record cannot be used: {error}") from error
