"""One message in the visible form, and what reading that form by its own rules gives.

Law: nothing inside a message can begin another one or pass for the hidden comment: the visible
form puts a backslash in front of it. A code fence or an HTML comment that a message leaves open is
closed, so that what follows is neither. Reading strips nothing between a message's mark and its
last lines except what was put there for that purpose.
"""

import re
from collections.abc import Sequence
from datetime import datetime, tzinfo

from msgspec import Struct

from lamina.adapters.formats.markdown.chat import ChatContext, ChatMessage, ChatRole, ToolMessage
from lamina.adapters.formats.markdown.context_line import read_context, render_context, show_line
from lamina.adapters.formats.markdown.open_blocks import NO_PADDING, BlockPadding, block_padding
from lamina.core.notes.names import NoteNames
from lamina.core.values.message import ToolCall, ToolResult

COMMENT_OPENS = "<!-- lamina-context:"
INTERRUPTED = "[Interrupted]"
# How much of a call's arguments and of its result stands in the line that people read.
SHOWN_CHARACTERS = 160

# What an editor puts in front of a line to make a heading of it.
HEADING = re.compile(r"#{1,6} +(?=\S)")
_OPENS = r"\*\*(?:user|ai)\*\*:(?: |$)"
_MARK = re.compile(r"(?:#{1,6} +)?\*\*(user|ai)\*\*:(?: |(?=\n)|\Z)")
_COLLIDES = re.compile(rf"^(?=\\*(?:{_OPENS}|{COMMENT_OPENS}))", re.MULTILINE)
_ESCAPED = re.compile(rf"^\\(?=\\*(?:{_OPENS}|{COMMENT_OPENS}))", re.MULTILINE)
_STAMP = re.compile(r"\[Timestamp: (.*)\]\s*")
_MOMENT = re.compile(
    r"([0-9]{4})[/-]([0-9]{1,2})[/-]([0-9]{1,2})[ T]([0-9]{1,2}):([0-9]{2}):([0-9]{2})"
)
_THINK = re.compile(r"\A\s*+<think>\n?(.+?)\n?</think>\n{0,2}", re.DOTALL)


class VisibleMessage(Struct, frozen=True, kw_only=True):
    """A message by its visible form alone, and the parts it was read from."""

    message: ChatMessage
    body: str
    context: str = ""
    stamp: str = ""


def opening_role(line: str, *, as_heading: bool = False) -> ChatRole | None:
    """The role whose message this line begins; None if it begins none. People have their editors
    make headings of these lines: `# **user**: text`."""
    match = _MARK.match(line)
    if match is None or (line.startswith("#") and not as_heading):
        return None
    return "user" if match[1] == "user" else "ai"


def read_stamp(line: str) -> str | None:
    """What a line says of the time of a message; None if it does not."""
    match = _STAMP.fullmatch(line)
    return match[1] if match else None


def render_message(message: ChatMessage, tz: tzinfo) -> str:
    """The visible form of one message."""
    text, padding = _render_text(message), padding_of(message)
    raw = message.extra.get("timestamp")
    stamp = show_moment(message.at, tz) or (show_line(raw) if isinstance(raw, str) else "")
    lines = [
        padding.front + text + padding.back + render_tail(message),
        render_context(message.context),
        f"[Timestamp: {stamp}]" if stamp else "",
    ]
    return _mark(message.role) + "\n".join([lines[0], *filter(None, lines[1:])])


def padding_of(message: ChatMessage) -> BlockPadding:
    """What stands around the text of a message for the sake of blocks that it leaves open."""
    return block_padding(_mark(message.role), _render_text(message))


def _render_text(message: ChatMessage) -> str:
    thinking = f"<think>\n{message.thinking}\n</think>\n\n" if message.thinking else ""
    return escape(thinking + message.text)


def _mark(role: ChatRole) -> str:
    return f"**{role}**: "


def render_tail(message: ChatMessage) -> str:
    """The lines behind the text that say what is not text: calls, and that it was interrupted."""
    lines = [_call_line(call, message.results) for call in message.calls]
    if message.interrupted:
        lines.append(INTERRUPTED)
    return "".join(f"\n{line}" for line in lines)


def escape(text: str) -> str:
    """Text that can stand in the visible body: one kind of line break, nothing that collides."""
    return _COLLIDES.sub(r"\\", text.replace("\r\n", "\n").replace("\r", "\n"))


def unescape(text: str) -> str:
    return _ESCAPED.sub("", text)


def read_message(
    chunk: str,
    role: ChatRole,
    *,
    tz: tzinfo,
    note_names: NoteNames,
    tail: str | None = None,
    padding: BlockPadding = NO_PADDING,
) -> VisibleMessage:
    """What `chunk` says by the format's own rules. `tail` is given for what Lamina wrote: the
    lines behind the text, and that markers inside it are escaped; `padding` is around it."""
    mark = _MARK.match(chunk) or HEADING.match(chunk)
    lines = chunk[mark.end() if mark else 0 :].split("\n")
    while len(lines) > 1 and not lines[-1].strip():
        lines.pop()
    stamp = context_line = ""
    context = ChatContext()
    if len(lines) > 1 and (line_stamp := read_stamp(lines[-1])) is not None:
        stamp = line_stamp
        lines.pop()
    line_context = read_context(lines[-1], note_names) if len(lines) > 1 else None
    if line_context is not None:
        context, context_line = line_context, lines.pop().rstrip()
    body = text = "\n".join(lines)
    if tail is not None:
        text = text.removesuffix(tail).removesuffix(padding.back).removeprefix(padding.front)
        text = unescape(text)
    thinking = ""
    think_match = _THINK.match(text) if role == "ai" else None
    if think_match:
        thinking, text = think_match[1], text[think_match.end() :]
    at = read_moment(stamp, tz)
    extra = {"timestamp": stamp} if at is None and stamp not in ("", "Unknown time") else {}
    message = ChatMessage(
        role=role, text=text, at=at, context=context, thinking=thinking, extra=extra
    )
    return VisibleMessage(message=message, body=body, context=context_line, stamp=stamp)


def show_moment(at: float | None, tz: tzinfo) -> str:
    """A time as the format writes it; empty if no calendar has it."""
    if at is None:
        return ""
    try:
        moment = datetime.fromtimestamp(at, tz)
    except (ValueError, OverflowError, OSError):
        return ""
    # Not strftime: it writes years before 1000 as the platform likes.
    return (
        f"{moment.year:04}/{moment.month:02}/{moment.day:02} "
        f"{moment.hour:02}:{moment.minute:02}:{moment.second:02}"
    )


def read_moment(text: str, tz: tzinfo) -> float | None:
    match = _MOMENT.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.groups())
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=tz).timestamp()
    except (ValueError, OverflowError):
        return None


def _call_line(call: ToolCall, messages: Sequence[ToolMessage]) -> str:
    blocks = (block for message in messages for block in message.blocks)
    results = (block for block in blocks if isinstance(block, ToolResult))
    text = next((result.text for result in results if result.call_id == call.id), None)
    ending = "" if text is None else f" -> {_brief(text)}"
    return f"[Tool: {_brief(call.name)} {_brief(call.arguments)}{ending}]"


def _brief(text: str) -> str:
    brief = show_line(" ".join(text[: 4 * SHOWN_CHARACTERS].split()))
    return brief if len(brief) <= SHOWN_CHARACTERS else brief[: SHOWN_CHARACTERS - 1] + "…"
