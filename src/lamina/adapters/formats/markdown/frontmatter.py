"""The head of a chat file: frontmatter, and whatever stands before the first message.

Law: keys that Lamina does not know are kept as they stand and written back. This is not a YAML
reader: it knows the few shapes in which the format's own keys occur, and leaves the rest alone.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from lamina.adapters.formats.imported_session import ImportProblem
from lamina.adapters.formats.markdown.chat import MarkdownChat
from lamina.adapters.formats.markdown.message import escape, opening_role
from lamina.core.codec import canonical_bytes

FENCE = "---"

_KEY = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+|(?=\n)|\Z)")
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_PLAIN_TAG = re.compile(r"[^\W\d][\w/-]*")
# Line breaks to YAML that JSON leaves as they are.
_YAML_BREAKS = {ord(character): f"\\u{ord(character):04x}" for character in "\x7f\x85\u2028\u2029"}


def render_frontmatter(chat: MarkdownChat) -> str:
    """The frontmatter, fences included. What it cannot express is left out."""
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
    """How many lines the frontmatter takes, fences included; 0 if there is none."""
    if not lines or lines[0].rstrip() != FENCE:
        return 0
    for number, line in enumerate(lines[1:], start=2):
        if line.rstrip() == FENCE:
            return number
        if opening_role(line):
            break  # never closed: the next fence would be a rule inside some message
    return 0


def read_frontmatter(
    lines: Sequence[str], first: int = 2
) -> tuple[dict[str, Any], list[ImportProblem]]:
    """The fields of a `MarkdownChat` that these lines, without their fences, set. `first` is the
    number of the first line in the file."""
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
    """The fields that one of the format's own keys sets; None if it is not such a key or value."""
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
    """A key with the lines that belong to it, and the number of its line."""
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
    """Whether a raw block, written out, is read back as just itself."""
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
