"""Renders and reads the visible part of messages in a chat file: opening marks, text, context line.

Laws: nothing inside a message can begin another one or look like the hidden comment: such lines are
escaped with a backslash. A code fence or HTML comment that a message leaves open is closed, so that
it does not swallow the text after it; a CommonMark parser decides what is open. Between a message's
mark and its last lines, reading removes only what writing added. In a context line (`[Context:
Notes: a.md, b.md | URLs: ...]`) names are not escaped, so only known paths can distinguish a comma
in a name from one between names. Lamina's own files are read back exactly; in other files, lines
such as `# **user**: text` also begin messages, unless they are in code, and a heading above the
first answer is the first question. Both are reported.
"""

import re
from collections.abc import Sequence
from datetime import datetime, tzinfo
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.formats.imported_session import ImportProblem
from lamina.adapters.formats.markdown.markdown_chat import (
    ChatContext,
    ChatMessage,
    ChatReference,
    ChatRole,
    ToolMessage,
)
from lamina.core.notes.note_names import NoteNames
from lamina.core.text.pictures import mask_code
from lamina.core.values.item import (
    KIND_OF_SUFFIX,
    TRAITS,
    ItemKind,
    Shape,
    item_id,
    key_of,
    kind_of,
    suffix_of,
)
from lamina.core.values.message import ToolCall, ToolResult

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


_FENCE = re.compile(r"( {0,3})(`{3,}(?=[^`]*$)|~{3,})")
# Blocks that may continue past a blank line. All others end there.
_LASTING = re.compile(r"```|~~~|<[!?]|<(?:script|pre|style|textarea)\b", re.IGNORECASE)
# Start and end patterns of HTML that continues past a blank line.
_HTML_ENDS = (
    (re.compile(r"<!--"), "-->"),
    (re.compile(r"<\?"), "?>"),
    (re.compile(r"<!\[CDATA\["), "]]>"),
    (re.compile(r"<![a-z]", re.IGNORECASE), ">"),
    (re.compile(r"<script", re.IGNORECASE), "</script>"),
    (re.compile(r"<pre", re.IGNORECASE), "</pre>"),
    (re.compile(r"<style", re.IGNORECASE), "</style>"),
    (re.compile(r"<textarea", re.IGNORECASE), "</textarea>"),
)
_NEXT = "\n\nnext"


class BlockPadding(NamedTuple):
    """Text added around a message, so that an opening fence begins its line and open blocks are
    closed."""

    front: str = ""
    back: str = ""


# A single shared value, so that the comment can leave it out.
NO_PADDING = BlockPadding()


def block_padding(mark: str, text: str) -> BlockPadding:
    """Return the padding that `text` needs when it begins on the line of `mark`."""
    if not _LASTING.search(text):
        return NO_PADDING
    front = "\n" if _FENCE.match(text.split("\n", 1)[0]) else ""
    closing = _closing_line(f"{mark}{front}{text}")
    if not front and not closing:
        return NO_PADDING
    return BlockPadding(front, f"\n{closing}" if closing else "")


def _closing_line(text: str) -> str:
    """Return the line that closes the block left open by `text`; empty if there is none."""
    block = _parser().parse(text + _NEXT)[-1]
    if block.type == "fence" and block.map:
        # The next message would be inside the block.
        indent = _FENCE.match(text.split("\n")[block.map[0]])
        return f"{indent[1] if indent else ''}{block.markup}"
    if block.type == "html_block":
        begin = block.content.lstrip()
        return next((end for start, end in _HTML_ENDS if start.match(begin)), "")
    return ""


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


_SECTIONS = ("Notes", "URLs", "Web Tabs", "Tags", "Folders")
_SECTION_OF: dict[str, str] = {kind: traits.chat_section for kind, traits in TRAITS.items()}
# For sections with only one kind of item.
_KIND_OF: dict[str, ItemKind] = {
    "Web Tabs": "url",
    **{row.chat_section: kind for kind, row in TRAITS.items() if row.nature != "file"},
}

_LINE = re.compile(r"\[Context: (.*)\]\s*")
_LABEL = re.compile(r"(?:^| \| )([A-Z][A-Za-z]*(?: [A-Z][A-Za-z]*)*): ?")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


def render_context(context: ChatContext) -> str:
    """Render a context as a line; empty if none of its references has a section."""
    sections = []
    for section in _SECTIONS:
        names = [key_of(ref.item) for ref in context.references if section_of(ref) == section]
        if names:
            sections.append(f"{section}: {', '.join(names)}")
    sections += context.other
    return f"[Context: {show_line(' | '.join(sections))}]" if sections else ""


def show_line(text: str) -> str:
    """Return `text` on one line."""
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def section_of(reference: ChatReference) -> str:
    """Return a reference's section; empty if it has none."""
    if reference.shape == "web_tab":
        return "Web Tabs"
    return _SECTION_OF.get(kind_of(reference.item), "")


def read_context(line: str, note_names: NoteNames) -> ChatContext | None:
    """Read a context line; None if `line` is not one."""
    match = _LINE.fullmatch(line)
    labels = list(_LABEL.finditer(match[1])) if match else []
    if not match or not labels or labels[0].start() or labels[0][1] not in _SECTIONS:
        return None
    references: list[ChatReference] = []
    other: list[str] = []
    ends = [label.start() for label in labels[1:]] + [len(match[1])]
    for label, end in zip(labels, ends, strict=True):
        section, names = label[1], match[1][label.end() : end]
        if section == "Notes":
            references += [_note(name) for name in note_names.split(names)]
        elif section in _SECTIONS:
            shape: Shape = "web_tab" if section == "Web Tabs" else "attached"
            references += [
                ChatReference(item=item_id(_KIND_OF[section], name), shape=shape)
                for name in names.split(", ")
                if name.strip()
            ]
        else:
            other.append(f"{section}: {names}")
    return ChatContext(references=tuple(references), other=tuple(other))


def merge_contexts(before: ChatContext, now: ChatContext) -> ChatContext:
    """Return `now`, read from an edited line, completed from `before`: details of the same
    references, and references that no line shows."""
    by_key = {(section_of(ref), key_of(ref.item)): ref for ref in before.references}
    references = [by_key.get((section_of(ref), key_of(ref.item)), ref) for ref in now.references]
    references += [ref for ref in before.references if not section_of(ref)]
    return replace(before, references=tuple(references), other=now.other)


def _note(name: str) -> ChatReference:
    # Without a known suffix it is the name of a note.
    kind = KIND_OF_SUFFIX.get(suffix_of(name.strip()), "note")
    return ChatReference(item=item_id(kind, name.strip()))


COMMENT_OPENS = "<!-- lamina-context:"
INTERRUPTED = "[Interrupted]"
# Maximum length at which the visible line shows a call's arguments and result.
SHOWN_CHARACTERS = 160

# The prefix with which editors make a line a heading.
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
    """A message read from its visible part alone, and its components."""

    message: ChatMessage
    body: str
    context: str = ""
    stamp: str = ""


def opening_role(line: str, *, as_heading: bool = False) -> ChatRole | None:
    """Return the role of the message that this line begins; None if it begins none. Some people
    turn these lines into headings: `# **user**: text`."""
    match = _MARK.match(line)
    if match is None or (line.startswith("#") and not as_heading):
        return None
    return "user" if match[1] == "user" else "ai"


def read_stamp(line: str) -> str | None:
    """Read a message's time from a line; None if it is not a time line."""
    match = _STAMP.fullmatch(line)
    return match[1] if match else None


def render_message(message: ChatMessage, tz: tzinfo) -> str:
    """Render the visible part of one message."""
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
    """Return the padding around a message's text, needed for blocks that the text leaves open."""
    return block_padding(_mark(message.role), _render_text(message))


def _render_text(message: ChatMessage) -> str:
    thinking = f"<think>\n{message.thinking}\n</think>\n\n" if message.thinking else ""
    return escape(thinking + message.text)


def _mark(role: ChatRole) -> str:
    return f"**{role}**: "


def render_tail(message: ChatMessage) -> str:
    """Render the lines after the text: calls, and whether the message was interrupted."""
    lines = [_call_line(call, message.results) for call in message.calls]
    if message.interrupted:
        lines.append(INTERRUPTED)
    return "".join(f"\n{line}" for line in lines)


def escape(text: str) -> str:
    """Escape text for the visible body: one kind of line break, no lines that collide with the
    format."""
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
    """Read `chunk` by the format's own rules. In Lamina's own files, markers in the text are
    escaped; there, `tail` is the lines after the text and `padding` the text around it."""
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
    """Format a time as the chat format does; empty if outside the calendar's range."""
    if at is None:
        return ""
    try:
        moment = datetime.fromtimestamp(at, tz)
    except (ValueError, OverflowError, OSError):
        return ""
    # Not strftime: its output for years before 1000 depends on the platform.
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


# A chat's file name, which some editors insert above its text.
_FILE_NAME = re.compile(r".*@[0-9]{8}_[0-9]{6}\s*")


def find_marks(
    lines: Sequence[str], start: int, recorded: int | None
) -> tuple[dict[int, ChatRole], list[ImportProblem]]:
    """Find where messages begin from the line `start` on, their roles, and any problems. `recorded`
    is the number of messages in the hidden comment; None without a comment."""
    marks = {n: role for n in range(start, len(lines)) if (role := opening_role(lines[n]))}
    if recorded is not None and len(marks) >= recorded:
        return marks, []
    problems = []
    headings = _find_headings(lines, start)
    if headings:
        marks = dict(sorted((marks | headings).items()))
        many = "1 message begins" if len(headings) == 1 else f"{len(headings):,} messages begin"
        detail = f"{many} with a heading, as '# **user**: text'; read as messages"
        problems.append(ImportProblem(line=min(headings) + 1, what="heading", detail=detail))
    question = _find_question(lines, start, marks) if recorded is None else None
    if question is not None:
        marks = {question: "user", **marks}
        detail = "the heading above the first answer is read as its question"
        problems.append(ImportProblem(line=question + 1, what="heading", detail=detail))
    return marks, problems


def _find_headings(lines: Sequence[str], start: int) -> dict[int, ChatRole]:
    roles = {
        number: role
        for number, line in enumerate(lines[start:], start)
        if line.startswith("#") and (role := opening_role(line, as_heading=True))
    }
    if not roles:
        return {}
    plain_lines = mask_code("\n".join(lines[start:]))[0].split("\n")
    # Code that an answer leaves open ends with that answer, whose last line is its time.
    return {
        number: role
        for number, role in roles.items()
        if plain_lines[number - start].startswith("#") or _follows_stamp(lines, number)
    }


def _follows_stamp(lines: Sequence[str], number: int) -> bool:
    before = (line for line in reversed(lines[max(0, number - 3) : number]) if line.strip())
    return read_stamp(next(before, "")) is not None


def _find_question(lines: Sequence[str], start: int, marks: dict[int, ChatRole]) -> int | None:
    """Return the line of a question that lost its mark: a heading above the first answer, or text
    that ends with a message's time."""
    first = min(marks, default=len(lines))
    if marks.get(first) != "ai":
        return None
    texts = [number for number in range(start, first) if lines[number].strip()]
    while texts and HEADING.match(lines[texts[0]]) and _FILE_NAME.fullmatch(lines[texts[0]]):
        texts = texts[1:]
    if not texts:
        return None
    is_stamped = read_stamp(lines[texts[-1]]) is not None
    return texts[0] if is_stamped or HEADING.match(lines[texts[0]]) else None
