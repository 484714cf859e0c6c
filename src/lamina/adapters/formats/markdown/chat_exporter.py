"""Exports a session's path as a Markdown chat.

Law: an export shows the whole path, including messages that a compaction hid from the model.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, tzinfo
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.formats.markdown.chat_file import file_name, render_chat
from lamina.adapters.formats.markdown.markdown_chat import (
    ChatContext,
    ChatMessage,
    ChatReference,
    ChatRole,
    MarkdownChat,
    ToolMessage,
    fields_of_blocks,
)
from lamina.core.journal.fold import BRANCH_NOTICE
from lamina.core.text import label_of
from lamina.core.values.entry import (
    BranchSummaryEntry,
    CustomEntry,
    Entry,
    InfoEntry,
    MessageEntry,
    ModelEntry,
    PinEntry,
    ReplyEntry,
    RequestEntry,
    SessionEntry,
    SettingsEntry,
    TransformEntry,
)
from lamina.core.values.item import ITEM_KINDS, ItemId, kind_of
from lamina.core.values.message import Context
from lamina.core.values.patch import MessagesCachedAppend, Patch
from lamina.core.values.request import RequestContext
from lamina.engine.runners.answer import CitedSource
from lamina.engine.runners.citations import CITED, SEARCHED, add_recorded, with_footnotes

TAG = "copilot-conversation"
# The keys for data that only chat files have, and for the summary of a branch.
EXTRA = "markdown"
BRANCH = "branch_summary"


class ExportedChat(Struct, frozen=True, kw_only=True):
    name: str
    text: str
    chat: MarkdownChat


def export_chat(path: Iterable[Entry], *, tz: tzinfo = UTC) -> ExportedChat:
    """Export a session's active path, header first, as a file."""
    chat = chat_of(path)
    return ExportedChat(name=file_name(chat, tz=tz), text=render_chat(chat, tz=tz), chat=chat)


def chat_of(path: Iterable[Entry]) -> MarkdownChat:
    """Return the conversation along a path: every message, including those no longer sent."""
    entries = tuple(path)
    chat = _head_of(entries)
    messages = _messages_of(entries)
    if chat.epoch is None:
        times = (record.at for record in (*messages, *entries))
        start = next((at for at in times if at is not None), 0.0)
        chat = replace(chat, epoch=round(start * 1000))
    return replace(chat, messages=tuple(messages))


def _head_of(path: Sequence[Entry]) -> MarkdownChat:
    chat = MarkdownChat(tags=(TAG,))
    pins: dict[ItemId, ChatReference] = {}
    target = ""
    for entry in path:
        match entry:
            case SessionEntry(settings=settings):
                target = settings.target
                chat = _chat_before(entry) or chat
                pins = {reference.item: reference for reference in chat.pinned}
            case SettingsEntry(settings=settings):
                target = settings.target
            case RequestEntry() | ModelEntry():
                target = entry.target
            case InfoEntry(name=name):
                chat = replace(chat, topic=name)
            case PinEntry(item=item, version=version, pinned=is_pinned):
                pins.pop(item, None)
                if is_pinned:
                    pins[item] = ChatReference(item=item, version=version, pinned=True)
            case _:
                pass
    if target:
        provider, _, model = target.partition(":")
        chat = replace(chat, provider=provider, model=model)
    return replace(chat, pinned=tuple(pins.values()))


def _messages_of(path: Sequence[Entry]) -> list[ChatMessage]:
    messages: list[ChatMessage] = []
    # Messages added to history precede the next message that is not a result.
    added: list[ChatMessage] = []
    has_worth = True
    sources: tuple[CitedSource, ...] | None = None
    for entry in path:
        match entry:
            case CustomEntry(kind=kind, data=data) if kind in (SEARCHED, CITED):
                sources = add_recorded(sources, data)
            case MessageEntry(message=message) if message.role == "tool":
                if not messages:  # results of a missing answer
                    messages.append(ChatMessage(role="ai", at=entry.at))
                follower = ToolMessage(
                    id=entry.id, at=entry.at, blocks=message.blocks, extra=entry.extra
                )
                messages[-1] = replace(messages[-1], results=(*messages[-1].results, follower))
            case MessageEntry():
                last = _message_of(entry)
                if last.role != "ai":
                    sources = None
                elif sources and last.text and last.layout is None and not entry.message.calls:
                    # As displayed: numbered by first mention, with their sources.
                    last, sources = replace(last, text=with_footnotes(last.text, sources)), None
                messages += [*added, last]
                added = []
                has_worth = entry.message.role != "user"
            case TransformEntry(patch=patch):
                added += _added_by(entry, patch)
            case BranchSummaryEntry():
                messages.append(_summary_of(entry))
                has_worth = True
            case RequestEntry(context=context) if not has_worth:
                # A turn's first request records the worth of its attachments.
                messages[-1] = _with_worth(messages[-1], context)
                has_worth = True
            case ReplyEntry() if messages and messages[-1].role == "ai":
                messages[-1] = replace(messages[-1], usage=entry.usage, model=entry.model)
            case _:
                pass
    return messages + added


def _summary_of(entry: BranchSummaryEntry) -> ChatMessage:
    """Return another branch's summary, in the words that the model reads."""
    return ChatMessage(
        role="user",
        text=f"{BRANCH_NOTICE}\n\n{entry.summary}",
        at=entry.at,
        id=entry.id,
        extra={**entry.extra, BRANCH: entry.branch},
    )


def _added_by(entry: TransformEntry, patch: Patch) -> Iterator[ChatMessage]:
    """Yield messages that were added to history and are displayed."""
    for op in patch.ops:
        for message in op.messages if isinstance(op, MessagesCachedAppend) else ():
            if message.shown and message.text:
                role: ChatRole = "user" if message.role == "user" else "ai"
                yield ChatMessage(role=role, text=message.text, at=entry.at)


def _chat_before(entry: SessionEntry) -> MarkdownChat | None:
    """Return the file that the session was imported from, without its messages."""
    try:
        return msgspec.convert(entry.extra[EXTRA], MarkdownChat) if EXTRA in entry.extra else None
    except msgspec.ValidationError:
        return None


def _message_of(entry: MessageEntry) -> ChatMessage:
    message = entry.message
    extra = {name: value for name, value in entry.extra.items() if name != EXTRA}
    chat_message = ChatMessage(
        role="user" if message.role == "user" else "ai",
        at=entry.at,
        context=_context_of(message.context, entry.extra.get(EXTRA)),
        interrupted=entry.interrupted,
        id=entry.id,
        model=entry.model,
        usage=entry.usage,
        extra=extra,
    )
    return replace(chat_message, **fields_of_blocks(chat_message, message.blocks))


def _context_of(context: Context | None, before: Any) -> ChatContext:
    if context is None:
        try:
            return msgspec.convert(before or {}, ChatContext)
        except msgspec.ValidationError:
            return ChatContext()
    references = tuple(
        ChatReference(item=use.item, version=use.version, form=use.form, shape=use.shape)
        for use in context.uses
    )
    return ChatContext(references=references, absent=context.absent, in_force=context.in_force)


def _with_worth(message: ChatMessage, request: RequestContext) -> ChatMessage:
    """Add the request's details about the message's items, including those that did not fit."""
    context = message.context
    shapes = {reference.item: reference for reference in context.references}
    references: dict[ItemId, ChatReference] = dict(shapes)
    for use in request.items:
        before = shapes.get(use.item, ChatReference(item=use.item, version=use.version))
        references[use.item] = replace(
            before, priority=use.priority, essential=use.essential, pinned=use.pinned,
            include=use.include,
        )  # fmt: skip
    labels = {absent.label for absent in context.absent}
    for omission in request.left_out:
        item = ItemId(omission.what)
        if kind_of(item) in ITEM_KINDS and item not in references and label_of(item) in labels:
            references[item] = ChatReference(item=item, form="left_out")
    return replace(message, context=replace(context, references=tuple(references.values())))
