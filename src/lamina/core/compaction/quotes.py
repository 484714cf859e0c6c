"""Text of a conversation as it may stand inside a summary.

Law: what is quoted cannot pass for the summary's own lines. It is one line behind a mark of ours,
or every one of its lines begins with `> `.
"""

from collections.abc import Callable

from lamina.core.text import escape_content
from lamina.core.values.message import Image, Message, Text

Count = Callable[[str], int]

LINE_WIDTH = 160
GAP = "[... shortened ...]"


def first_line(text: str, *, headings: bool = True) -> str:
    """The first line that says something, shortened. Without `headings`, one of them only counts
    if there is nothing else."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if any(map(str.isalnum, line))] or lines
    plain = telling if headings else [line for line in telling if not line.startswith("#")]
    return flatten(next(iter(plain or telling), ""))


def flatten(text: str, width: int = LINE_WIDTH) -> str:
    """`text` on one line, without the marks of a heading or quotation in front of it."""
    line = escape_content(" ".join(text.split()).lstrip("#> "))
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


def typed_text(message: Message) -> str:
    """The texts of a message, each on lines of its own."""
    return "\n".join(block.text for block in message.blocks if isinstance(block, Text))


def question_line(message: Message) -> str:
    """How a question begins."""
    has_image = any(isinstance(block, Image) for block in message.blocks)
    return first_line(typed_text(message)) or ("(an image)" if has_image else "")


def quote(text: str, *, flat: bool = False) -> str:
    """Every line behind `> `. With `flat`, what was quoted already is not quoted deeper."""
    lines = [line.rstrip() for line in text.strip("\r\n").splitlines()]
    if flat:
        lines = [line[1:].removeprefix(" ") if line.startswith(">") else line for line in lines]
    return "\n".join(f"> {line}" if line else ">" for line in lines)


def quote_within(text: str, limit: int, count: Count, *, flat: bool = False) -> str:
    """`text` quoted in at most `limit` tokens: its middle goes if need be, which is marked. Empty
    if nothing of it fits."""
    quotation = quote(text, flat=flat)
    size = count(quotation)
    if size <= limit:
        return quotation
    share = limit
    while share > 0:
        half = len(text) * share // size // 2
        if half <= 0:
            break
        head, tail = _whole_lines(text[:half], text[-half:])
        quotation = quote(f"{head}\n{GAP}\n{tail}", flat=flat)
        if count(quotation) <= limit:
            return quotation
        share -= max(1, share // 8)
    return ""


def _whole_lines(head: str, tail: str) -> tuple[str, str]:
    """Both without the line that was cut through, if that costs at most half of them."""
    end, start = head.rfind("\n"), tail.find("\n")
    head = head[:end] if end * 2 >= len(head) else head
    return head.rstrip(), (tail[start:] if 0 <= start * 2 <= len(tail) else tail).lstrip("\r\n")


def shorten(text: str, limit: int, count: Count) -> str:
    """`text` within `limit` tokens; its middle goes if need be, which is marked."""
    share = limit
    while (size := count(text)) > limit and share > 0:
        half = len(text) * share // size // 2
        head, tail = _whole_lines(text[:half], text[len(text) - half :])
        shorter = f"{head}\n{GAP}\n{tail}"
        if count(shorter) <= limit:
            return shorter
        share -= max(1, share // 8)
    return text if size <= limit else ""
