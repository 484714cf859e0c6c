"""Imports a chat file as session entries.

Law: an import writes no items, since their contents are not in the file: it lists the items to
attach again, in their current versions.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.formats.call_pairs import missing_results
from lamina.adapters.formats.imported_session import ImportProblem
from lamina.adapters.formats.markdown.chat_exporter import BRANCH, EXTRA
from lamina.adapters.formats.markdown.chat_file import epoch_seconds, read_chat
from lamina.adapters.formats.markdown.markdown_chat import (
    ChatMessage,
    ChatReference,
    MarkdownChat,
    ToolMessage,
    blocks_of,
)
from lamina.core.journal.fold import BRANCH_NOTICE
from lamina.core.notes.note_names import NoteNames
from lamina.core.values.entry import (
    BranchSummaryEntry,
    Entry,
    InfoEntry,
    MessageEntry,
    SessionEntry,
)
from lamina.core.values.item import (
    FILE_KINDS,
    PART_KINDS,
    AttachmentSpec,
    ItemId,
    item_id,
    key_of,
    kind_of,
    reference_to,
    url_id,
)
from lamina.core.values.message import Block, Image, Message, Role, ToolResult

SOURCE = "markdown"

_PART = re.compile(r"(.*)(#[^#/]*)", re.DOTALL)
_NAME = re.compile(r"(.*)@([0-9]{8}_[0-9]{6})(?:\.md)?", re.DOTALL)


class Reattachment(Struct, frozen=True, kw_only=True):
    """An item to attach again, in its current version. `message` is the entry that the item applied
    to; empty for pinned items. `reference` is the item as recorded in the chat, under its former
    id."""

    message: str
    item: ItemId
    reference: ChatReference

    @property
    def spec(self) -> AttachmentSpec:
        return AttachmentSpec(
            what=reference_to(self.item) or self.item,
            priority=self.reference.priority,
            essential=self.reference.essential,
            shape=self.reference.shape,
        )


class ImportedChat(Struct, frozen=True, kw_only=True):
    entries: tuple[Entry, ...]
    problems: tuple[ImportProblem, ...]
    reattachments: tuple[Reattachment, ...]
    chat: MarkdownChat


def import_chat(
    text: str, *, name: str, session: str, paths: Sequence[str], tz: tzinfo = UTC
) -> ImportedChat:
    """Import the chat in `text` as a session that continues where the chat ended.

    `name` is the file's name; its notes are looked up among the workspace's `paths`.

    Raises:
        UsageError: the text contains a lone surrogate.
    """
    note_names = NoteNames(paths)
    parsed_chat = read_chat(text, tz=tz, note_names=note_names)
    chat = _with_name(parsed_chat.chat, name, tz)
    writer = _Writer(chat, session)
    finder = _Finder(note_names)
    for line, message in zip(parsed_chat.lines, chat.messages, strict=True):
        entry = writer.write(message, line)
        for reference in message.context.references:
            finder.find(reference, entry, line)
    for reference in chat.pinned:
        finder.find(reference, "", None)
    return ImportedChat(
        entries=tuple(writer.entries),
        problems=(*parsed_chat.problems, *writer.problems, *finder.problems),
        reattachments=tuple(finder.reattachments),
        chat=chat,
    )


def _with_name(chat: MarkdownChat, name: str, tz: tzinfo) -> MarkdownChat:
    """Return the chat, with missing fields filled in from its file name."""
    match = _NAME.fullmatch(name.rsplit("/", 1)[-1])
    if chat.epoch is None and match:
        try:
            moment = datetime.strptime(match[2], "%Y%m%d_%H%M%S").replace(tzinfo=tz)
            chat = replace(chat, epoch=round(moment.timestamp() * 1000))
        except (ValueError, OverflowError):
            pass
    if not chat.topic and match:
        chat = replace(chat, topic=match[1].replace("_", " ").strip())
    return chat


class _Writer:
    """Writes entries one after another, with sequential ids."""

    def __init__(self, chat: MarkdownChat, session: str) -> None:
        times = (message.at for message in chat.messages)
        first = next((at for at in times if at is not None), None)
        self._at = first if first is not None else epoch_seconds(chat.epoch) or 0.0
        self.problems: list[ImportProblem] = []
        self.entries: list[Entry] = []
        head = msgspec.to_builtins(replace(chat, messages=()))
        self.entries.append(
            SessionEntry(**self._place(None), session=session, source=SOURCE, extra={EXTRA: head})
        )
        if chat.topic:
            self.entries.append(InfoEntry(**self._place(None), name=chat.topic))

    def write(self, message: ChatMessage, line: int) -> str:
        """Append a message with its results; return the id of its entry."""
        place = self._place(message.at)
        branch = message.extra.get(BRANCH)
        if isinstance(branch, str) and message.text.startswith(f"{BRANCH_NOTICE}\n\n"):
            summary = message.text[len(BRANCH_NOTICE) + 2 :]
            extra = {name: value for name, value in message.extra.items() if name != BRANCH}
            entry = BranchSummaryEntry(**place, branch=branch, summary=summary, extra=extra)
            self.entries.append(entry)
            return entry.id
        context = msgspec.to_builtins(message.context)
        extra = {**message.extra, EXTRA: context} if context else message.extra
        blocks = self._without_pictures(blocks_of(message), line)
        role: Role = "user" if message.role == "user" else "assistant"
        self.entries.append(
            MessageEntry(
                **place, message=Message(role=role, blocks=blocks, id=place["id"]), extra=extra,
                interrupted=message.interrupted, usage=message.usage, model=message.model,
            )
        )  # fmt: skip
        waiting = {call.id: call.name for call in message.calls}
        for result in message.results:
            blocks = self._without_pictures(result.blocks, line)
            self._add_results(blocks, result)
            for block in blocks:
                if isinstance(block, ToolResult):
                    waiting.pop(block.call_id, None)
        if waiting:
            # A session cannot continue while calls wait for results that will never come.
            self._add_results(missing_results(waiting), ToolMessage(at=message.at))
            detail = f"no result of {', '.join(waiting.values())} is in the file; this is said so"
            self.problems.append(ImportProblem(line=line, what="no_result", detail=detail))
        return str(place["id"])

    def _add_results(self, blocks: tuple[Block, ...], tool_message: ToolMessage) -> None:
        place = self._place(tool_message.at)
        message = Message(role="tool", blocks=blocks, id=place["id"])
        self.entries.append(MessageEntry(**place, message=message, extra=tool_message.extra))

    def _without_pictures(self, blocks: tuple[Block, ...], line: int) -> tuple[Block, ...]:
        other_blocks = tuple(block for block in blocks if not isinstance(block, Image))
        if len(other_blocks) != len(blocks):
            detail = f"{len(blocks) - len(other_blocks)} of its pictures are not in the file"
            self.problems.append(ImportProblem(line=line, what="picture", detail=detail))
        return other_blocks

    def _place(self, at: float | None) -> dict[str, Any]:
        if at is not None:
            self._at = at
        number = len(self.entries)
        parent = f"{number - 1:06x}" if number else None
        return {"id": f"{number:06x}", "parent": parent, "at": self._at}


class _Finder:
    """Looks up references in the current workspace."""

    def __init__(self, note_names: NoteNames) -> None:
        self._note_names = note_names
        self._warnings: set[str] = set()
        self.reattachments: list[Reattachment] = []
        self.problems: list[ImportProblem] = []

    def find(self, reference: ChatReference, message: str, line: int | None) -> None:
        item = self._look_up(reference.item, line, exact=bool(reference.version))
        if item is not None:
            self.reattachments.append(Reattachment(message=message, item=item, reference=reference))

    def _look_up(self, item: ItemId, line: int | None, *, exact: bool) -> ItemId | None:
        """Look up an item. With `exact`, its whole path is known, not only its visible name."""
        kind, key = kind_of(item), key_of(item)
        part = ""
        if kind == "url":
            return url_id(key)
        if kind in PART_KINDS:
            match = _PART.fullmatch(key)
            key, part = (match[1], match[2]) if match else (key, "")
        elif kind not in FILE_KINDS:
            return item
        resolution = self._note_names.resolve(key)
        if exact and resolution.path not in (None, key) and not resolution.warning:
            warning = f"{key!r} is not there under that path; {resolution.path!r} is taken for it"
            resolution = replace(resolution, warning=warning)
        if resolution.warning and resolution.warning not in self._warnings:
            self._warnings.add(resolution.warning)
            what = "moved" if resolution.path else resolution.how
            self.problems.append(ImportProblem(line=line, what=what, detail=resolution.warning))
        if resolution.path is None:
            return None
        return item_id(kind, f"{resolution.path}{part}")
