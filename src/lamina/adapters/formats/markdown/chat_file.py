"""Renders and parses whole chat files in the format that Obsidian Copilot reads and writes:
frontmatter, messages, hidden comment.

Laws: `parse_chat(render_chat(chat))` is `chat`, to the character, whatever its strings. The visible
part is the original format; one hidden comment contains what that cannot express. If a person
edited the visible part, the edit wins. A file without the comment is read by the format's own
rules, and ambiguities are reported. Unknown frontmatter keys are kept as they are and written back:
this is not a YAML reader, it supports only the few styles in which the format's own keys occur. No
file is opened here.
"""

import math
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, tzinfo
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.formats.imported_session import ImportProblem
from lamina.adapters.formats.markdown.chat_messages import (
    block_padding,
    escape,
    find_marks,
    opening_role,
    read_message,
    render_message,
    show_moment,
    unescape,
)
from lamina.adapters.formats.markdown.hidden_comment import (
    COMMENT,
    CommentRecord,
    HiddenComment,
    differing_fields,
    pair_records,
    part_digest,
    read_comment,
    record_message,
    render_comment,
    restore_message,
)
from lamina.adapters.formats.markdown.markdown_chat import ChatMessage, ChatRole, MarkdownChat
from lamina.core.codec import canonical_bytes, mend_text, require_text
from lamina.core.notes.note_names import NoteNames
from lamina.errors import UsageError

FENCE = "---"

_KEY = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+|(?=\n)|\Z)")
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_PLAIN_TAG = re.compile(r"[^\W\d][\w/-]*")
# Line breaks in YAML that JSON does not escape.
_YAML_BREAKS = {ord(character): f"\\u{ord(character):04x}" for character in "\x7f\x85\u2028\u2029"}


def render_frontmatter(chat: MarkdownChat) -> str:
    """Render the frontmatter, including its fences. Values that it cannot express are left out."""
    lines = [FENCE]
    if chat.epoch is not None:
        lines.append(f"epoch: {chat.epoch}")
    if chat.model or chat.provider:
        lines.append(f"modelKey: {_quote(f'{chat.model}|{chat.provider}')}")
    if chat.topic:
        lines.append(f"topic: {_quote(chat.topic)}")
    if chat.accessed is not None:
        lines.append(f"lastAccessedAt: {chat.accessed}")
    if chat.tags:
        lines.append("tags:")
        lines += [f"  - {tag if _PLAIN_TAG.fullmatch(tag) else _quote(tag)}" for tag in chat.tags]
    lines += [block for block in chat.frontmatter if _stands_alone(block)]
    return "\n".join([*lines, FENCE])


def find_frontmatter(lines: Sequence[str]) -> int:
    """Return the number of lines in the frontmatter, including its fences; 0 if there is none."""
    if not lines or lines[0].rstrip() != FENCE:
        return 0
    for number, line in enumerate(lines[1:], start=2):
        if line.rstrip() == FENCE:
            return number
        if opening_role(line):
            break  # never closed: the next fence would be a rule inside a message
    return 0


def read_frontmatter(
    lines: Sequence[str], first: int = 2
) -> tuple[dict[str, Any], list[ImportProblem]]:
    """Read the fields of a `MarkdownChat` from frontmatter lines, without the fences. `first` is
    the number of the first line in the file."""
    fields: dict[str, Any] = {}
    other_blocks: list[str] = []
    problems: list[ImportProblem] = []
    for number, block in _blocks(lines, first):
        match = _KEY.match(block)
        if match is None:
            detail = f"not a frontmatter key: {block.splitlines()[0][:80]!r}; kept as it stands"
            problems.append(ImportProblem(what="frontmatter", detail=detail, line=number))
            other_blocks.append(block)
            continue
        values = _read_known(match[1], block[match.end() :])
        if values is None and match[1] in _KNOWN:
            detail = f"{match[1]!r} has a value that cannot be read; kept as it stands"
            problems.append(ImportProblem(what="frontmatter", detail=detail, line=number))
        if values is None:
            other_blocks.append(block)
            continue
        if fields.keys() & values.keys():
            detail = f"{match[1]!r} occurs twice; the last one counts"
            problems.append(ImportProblem(what="frontmatter", detail=detail, line=number))
        fields.update(values)
    if other_blocks:
        fields["frontmatter"] = tuple(other_blocks)
    return fields, problems


_KNOWN = ("epoch", "modelKey", "topic", "tags", "lastAccessedAt")


def _read_known(key: str, value: str) -> dict[str, Any] | None:
    """Read the fields that one of the format's own keys sets; None for other keys or values."""
    match key:
        case "epoch" | "lastAccessedAt":
            number = _scalar(value)
            if not _NUMBER.fullmatch(number):
                return None
            return {"epoch" if key == "epoch" else "accessed": int(number)}
        case "modelKey":
            model, bar, provider = _scalar(value).rpartition("|")
            return {"model": model if bar else provider, "provider": provider if bar else ""}
        case "topic":
            return {"topic": _scalar(value)}
        case "tags":
            return {"tags": _tags(value)}
    return None


def _blocks(lines: Sequence[str], first: int) -> Iterator[tuple[int, str]]:
    """Yield each key with its lines, and the number of its first line."""
    block_lines: list[str] = []
    at = first
    for number, line in enumerate(lines, start=first):
        belongs = not line.strip() or line[0] in " \t" or line.startswith(("- ", "#"))
        if block_lines and not belongs:
            yield at, "\n".join(block_lines).rstrip()
            block_lines = []
        if block_lines or line.strip():
            at = at if block_lines else number
            block_lines.append(line)
    if block_lines:
        yield at, "\n".join(block_lines).rstrip()


def _stands_alone(block: str) -> bool:
    """Return whether a raw block, once written, is read back unchanged."""
    lines = block.split("\n")
    if escape(block) != block or any(line.rstrip() == FENCE for line in lines):
        return False
    return read_frontmatter(lines)[0] == {"frontmatter": (block,)}


def _scalar(value: str) -> str:
    text = value.strip()
    lines = [line.strip() for line in text.split("\n")]
    if lines[0] in ("|", "|-", ">", ">-"):
        return ("\n" if lines[0][0] == "|" else " ").join(lines[1:])
    text = " ".join(lines)
    if len(text) > 1 and text[0] == text[-1] == '"':
        try:
            return msgspec.json.decode(text.encode(), type=str)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return text[1:-1]  # quotes inside quotes: the format's own writer does not escape them
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return text


def _tags(value: str) -> tuple[str, ...]:
    text = value.strip()
    if text.startswith("[") and text.endswith("]"):
        tags = text[1:-1].split(",")
    elif text.startswith("-"):
        lines = [line.strip() for line in text.split("\n")]
        tags = [line[1:] if line.startswith("-") else line for line in lines]
    else:
        tags = text.split(",")
    return tuple(filter(None, map(_scalar, tags)))


def _quote(text: str) -> str:
    return canonical_bytes(text).decode().translate(_YAML_BREAKS)


NAME_BYTES = 100
UNTITLED = "Untitled_Chat"
TITLE_WORDS = 10

_UNSAFE = re.compile(r"[/\\:*?\"<>|#^\[\]\x00-\x1f\x7f-\x9f\s\ufffd]+")
# Not shown in the visible head, so edits there do not affect them.
_HIDDEN_HEAD = ("pinned",)


class ParsedChat(Struct, frozen=True, kw_only=True):
    """A chat, the problems found in its file, and the first line of each message."""

    chat: MarkdownChat
    problems: tuple[ImportProblem, ...]
    lines: tuple[int, ...]


def render_chat(chat: MarkdownChat, *, tz: tzinfo = UTC) -> str:
    """Render a chat as a file, with times in the zone `tz`.

    Raises:
        UsageError: a string contains a lone surrogate, or a value cannot be written.
    """
    for message in chat.messages:
        times = (message.at, *(result.at for result in message.results))
        if any(at is not None and not math.isfinite(at) for at in times):
            raise UsageError(f"message {message.id!r} has a time that is not a number of seconds")
    head = _render_head(chat)
    chunks = [render_message(message, tz) for message in chat.messages]
    comment = HiddenComment(
        head=CommentRecord(digest=part_digest(head), fields=_head_fields(chat, head)),
        messages=tuple(
            record_message(message, chunk, tz)
            for message, chunk in zip(chat.messages, chunks, strict=True)
        ),
    )
    # Before the first message: the original program skips that part, but would read a comment after
    # the last answer as part of the answer.
    text = "\n\n".join([head, render_comment(comment), *chunks]) + "\n"
    return require_text(text, "the chat")


def parse_chat(
    text: str, *, tz: tzinfo = UTC, paths: Sequence[str] = ()
) -> tuple[MarkdownChat, tuple[ImportProblem, ...]]:
    """Parse the chat in a file, and report the problems found.

    `tz` is the zone of times for which the comment gives none; `paths` distinguish a comma in a
    note's name from one between two names.

    Raises:
        UsageError: the text contains a lone surrogate.
    """
    parsed_chat = read_chat(text, tz=tz, note_names=NoteNames(paths))
    return parsed_chat.chat, parsed_chat.problems


def holds_chat(data: bytes) -> bool:
    """Return whether a Markdown file is a chat, that is, contains any message."""
    text = data.decode("utf-8", "replace")
    return bool(read_chat(text, tz=UTC, note_names=NoteNames(())).chat.messages)


def read_chat(text: str, *, tz: tzinfo, note_names: NoteNames) -> ParsedChat:
    """Like `parse_chat`, but with note names prepared for repeated lookup."""
    text = require_text(text, "the file").removeprefix("\ufeff").replace("\r\n", "\n")
    comment, text, problems = _take_comment(text)
    lines = text.split("\n")
    start = find_frontmatter(lines)
    records = comment.messages if comment else ()
    marks, heading_problems = find_marks(lines, start, None if comment is None else len(records))
    ends = [*marks, len(lines)]
    head, head_problems = _read_head("\n".join(lines[: ends[0]]), comment)
    problems += [*head_problems, *heading_problems]
    chunks = [
        (role, "\n".join(lines[mark:end]).rstrip("\n"))
        for (mark, role), end in zip(marks.items(), ends[1:], strict=True)
    ]
    pairs = pair_records(chunks, records)
    messages: list[ChatMessage] = []
    for mark, (role, chunk), index in zip(marks, chunks, pairs, strict=True):
        record = None if index is None else records[index]
        message, remarks = _read_message(chunk, role, record, tz, note_names)
        messages.append(message)
        problems += [
            ImportProblem(line=mark + 1, what=what, detail=detail) for what, detail in remarks
        ]
    for index in sorted(set(range(len(records))) - set(pairs)):
        detail = f"the {records[index].role} message that was number {index + 1} was removed"
        problems.append(ImportProblem(line=None, what="removed", detail=detail))
    if not messages:
        detail = "no line begins with '**user**: ' or '**ai**: ', so there are no messages"
        problems.append(ImportProblem(line=None, what="no_messages", detail=detail))
    chat = replace(head, messages=tuple(messages))
    return ParsedChat(chat=chat, problems=tuple(problems), lines=tuple(mark + 1 for mark in marks))


def file_name(chat: MarkdownChat, *, tz: tzinfo = UTC) -> str:
    """Return `<topic>@YYYYMMDD_HHMMSS.md`, at most 100 bytes; without a topic, use the first words
    typed."""
    question = next((message.text for message in chat.messages if message.role == "user"), "")
    title = chat.topic.strip() or " ".join(question[:1_000].split()[:TITLE_WORDS])
    # Names that begin with a dot are hidden files.
    title = _UNSAFE.sub("_", mend_text(title)).strip("_. ")
    moment = show_moment(epoch_seconds(chat.epoch), tz) or show_moment(0, tz)
    suffix = f"@{moment.replace('/', '').replace(':', '').replace(' ', '_')}.md"
    room = NAME_BYTES - len(suffix)
    title = title.encode()[:room].decode("utf-8", "ignore").rstrip("_. ")
    return (title or UNTITLED) + suffix


def epoch_seconds(epoch: int | None) -> float | None:
    try:
        return None if epoch is None else epoch / 1000
    except OverflowError:
        return None  # outside the calendar's range


def _render_head(chat: MarkdownChat) -> str:
    preamble = escape(chat.preamble)
    preamble += block_padding("", preamble).back
    front = render_frontmatter(chat)
    return f"{front}\n\n{preamble}" if preamble.strip("\n") else front


def _head_fields(chat: MarkdownChat, head: str) -> dict[str, Any]:
    visible_chat, _ = _see_head(head, is_ours=True)
    return differing_fields(replace(chat, messages=()), visible_chat)


def _see_head(head: str, *, is_ours: bool) -> tuple[MarkdownChat, list[ImportProblem]]:
    """Read the text before the first message, without the comment."""
    lines = head.split("\n")
    end = find_frontmatter(lines)
    fields, problems = read_frontmatter(lines[1 : end - 1]) if end else ({}, [])
    preamble = "\n".join(lines[end:]).strip("\n")
    chat = MarkdownChat(**fields, preamble=unescape(preamble) if is_ours else preamble)
    if preamble.strip():
        first = next(n for n in range(end, len(lines)) if lines[n].strip())
        detail = "text before the first message belongs to none; it is kept"
        problems.append(ImportProblem(line=first + 1, what="preamble", detail=detail))
    return chat, problems


def _read_head(
    head: str, comment: HiddenComment | None
) -> tuple[MarkdownChat, list[ImportProblem]]:
    chat, problems = _see_head(head, is_ours=comment is not None)
    if comment is None:
        return chat, problems
    is_same = comment.head.digest == part_digest(head)
    fields = {
        name: field
        for name, field in comment.head.fields.items()
        if name != "messages" and (is_same or name in _HIDDEN_HEAD)
    }
    try:
        restored_chat = msgspec.convert({**msgspec.to_builtins(chat), **fields}, MarkdownChat)
    except (msgspec.ValidationError, RecursionError) as error:
        detail = f"what the comment says of the chat cannot be used: {error}"
        return chat, [*problems, ImportProblem(line=None, what="comment", detail=detail)]
    return restored_chat, [] if is_same else problems


def _read_message(
    chunk: str, role: ChatRole, record: CommentRecord | None, tz: tzinfo, note_names: NoteNames
) -> tuple[ChatMessage, list[tuple[str, str]]]:
    """Read one message, and its problems."""
    notes: list[tuple[str, str]] = []
    if record is not None:
        try:
            restoration = restore_message(record, chunk, role, tz, note_names)
        except UsageError as error:
            notes.append(("comment", str(error)))
        else:
            return restoration.message, [("edited", text) for text in restoration.edits]
    message = read_message(chunk, role, tz=tz, note_names=note_names).message
    if "timestamp" in message.extra:
        notes.append(("timestamp", f"{message.extra['timestamp']!r} is no time; kept as it stands"))
    notes += [("context", f"unknown context {text!r}; kept") for text in message.context.other]
    return message, notes


def _take_comment(text: str) -> tuple[HiddenComment | None, str, list[ImportProblem]]:
    """Return the comment, and the text with the comment's lines blanked. If there are several, the
    last one counts."""
    comment: HiddenComment | None = None
    problems: list[ImportProblem] = []
    pieces: list[str] = []
    end, line = 0, 1
    for match in COMMENT.finditer(text):
        line += text.count("\n", end, match.start())
        try:
            candidate = read_comment(match[1])
        except UsageError as error:
            detail = f"the hidden comment is left out, and the file read without it: {error}"
            problems.append(ImportProblem(line=line, what="comment", detail=detail))
        else:
            if comment is not None:
                detail = "there is more than one hidden comment; the last one counts"
                problems.append(ImportProblem(line=line, what="comment", detail=detail))
            comment = candidate
        pieces += [text[end : match.start()], "\n" * match[0].count("\n")]
        end = match.end()
        line += match[0].count("\n")
    return comment, "".join(pieces) + text[end:], problems
