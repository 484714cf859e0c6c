"""Splits a Markdown file into its frontmatter (head), between two `---` lines, and the text after
it.

Law: a head that is not valid YAML is read entry by entry, as far as possible; only unreadable
entries are lost, and never the text after the head.
"""

import re

from msgspec import Struct

from lamina.adapters.agents.fields import Field, ProblemList, UnreadableText, read_yaml, report_twin

_FENCE = "---"
_ENTRY = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?:[ \t]+(.*)|[ \t]*)$")
_MORE = re.compile(r"[ \t]+\S|-[ \t]|#")
# Quotes and comments in a line of invalid YAML.
_QUOTED = re.compile(r"""(["'])(.*)\1[ \t]*(?:[ \t]#.*)?""")
_PATTERNS = {"globs", "paths"}
# A head has few entries; anything longer is text.
_MAX_HEAD = 50_000


class MarkdownFile(Struct, frozen=True, kw_only=True):
    """A file's head and text; `has_head` is true if there is a head."""

    head: dict[str, Field] = {}
    body: str = ""
    line: int = 1
    has_head: bool = False


def read_markdown(text: str, path: str, problems: ProblemList) -> MarkdownFile:
    """Split a file into its head and text."""
    lines = text.split("\n")
    first = next((at for at, line in enumerate(lines) if line.strip()), None)
    if first is None or lines[first].rstrip() != _FENCE:
        return MarkdownFile(body=_trim(text), line=_first_line(lines, 0))
    if first:
        problems.warn(path, "empty lines stand before the head; it has to be at the top", 1)
    ends = (at for at in range(first + 1, len(lines)) if lines[at].rstrip() == _FENCE)
    end = next(ends, None)
    if end is None:
        return _unclosed(text, lines, first, path, problems)
    if _is_too_long(lines[first + 1 : end], path, problems, first + 1):
        return MarkdownFile(body=_trim(text), line=first + 1)
    head = _read_head(lines[first + 1 : end], path, problems, first + 2)
    return _page(head, lines, end + 1)


def _is_too_long(lines: list[str], path: str, problems: ProblemList, line: int) -> bool:
    size = sum(map(len, lines))
    if size > _MAX_HEAD:
        problem = f"the head has {size:,} characters, over the limit of {_MAX_HEAD:,}"
        problems.error(path, f"{problem}; it is taken for a part of the text", line)
    return size > _MAX_HEAD


def _page(head: dict[str, Field], lines: list[str], start: int) -> MarkdownFile:
    body = _trim("\n".join(lines[start:]))
    return MarkdownFile(head=head, body=body, line=_first_line(lines, start), has_head=True)


def _trim(text: str) -> str:
    return text.strip("\n").rstrip()


def _first_line(lines: list[str], start: int) -> int:
    numbers = (at for at in range(start, len(lines)) if lines[at].strip())
    return next(numbers, min(start, len(lines) - 1)) + 1


def _unclosed(
    text: str, lines: list[str], first: int, path: str, problems: ProblemList
) -> MarkdownFile:
    """Read the lines that look like entries as the head; if none do, treat everything as text."""
    end = first + 1
    while end < len(lines) and (_ENTRY.match(lines[end]) or _MORE.match(lines[end])):
        end += 1
    problem = f"the head that begins here has no end; a line {_FENCE!r} is missing"
    if end == first + 1:
        problems.error(path, f"{problem}, and all of the file is taken for its text", first + 1)
        return MarkdownFile(body=_trim(text), line=first + 1)
    if _is_too_long(lines[first + 1 : end], path, problems, first + 1):
        return MarkdownFile(body=_trim(text), line=first + 1)
    problems.error(path, f"{problem}; it was taken to end behind line {end}", first + 1)
    return _page(_read_head(lines[first + 1 : end], path, problems, first + 2), lines, end)


def _read_head(
    lines: list[str], path: str, problems: ProblemList, first_line: int
) -> dict[str, Field]:
    quiet = ProblemList()
    try:
        whole = read_yaml("\n".join(lines), path, quiet, first_line)
    except UnreadableText:
        return _entry_by_entry(lines, path, problems, first_line)
    for entry in quiet.all:
        problems.add(entry.path, entry.problem, entry.line, entry.level)
    if whole is None:
        return {}
    if not whole.is_object:
        problem = f"the head has to be entries like 'description: ...', not {whole.kind}"
        problems.error(path, problem, whole.line)
        return {}
    return whole.entries


def _entry_by_entry(
    lines: list[str], path: str, problems: ProblemList, first_line: int
) -> dict[str, Field]:
    entries: dict[str, Field] = {}
    for at, block in _blocks(lines):
        line = at + first_line
        match = _ENTRY.match(block[0])
        if match is None:
            if block[0].strip() and not block[0].lstrip().startswith("#"):
                problems.error(path, f"{block[0].strip()!r} is no entry like 'name: value'", line)
            continue
        name = match[1]
        report_twin(entries, name, path, problems, line)
        entries[name] = _read_block(name, block, path, problems, line)
    return entries


def _blocks(lines: list[str]) -> list[tuple[int, list[str]]]:
    """Group lines into entries: a first line and its continuation lines."""
    blocks: list[tuple[int, list[str]]] = []
    for at, line in enumerate(lines):
        goes_on = blocks and _ENTRY.match(blocks[-1][1][0]) and not _ENTRY.match(line)
        if goes_on and (_MORE.match(line) or not line.strip()):
            blocks[-1][1].append(line)
        else:
            blocks.append((at, [line]))
    return blocks


def _read_block(name: str, block: list[str], path: str, problems: ProblemList, line: int) -> Field:
    """Read a single entry; guess its meaning if the YAML is invalid."""
    text = "\n".join(block)
    problem = ""
    for attempt in (text, text.replace("\t", "  ")):
        try:
            whole = read_yaml(attempt, path, problems, line)
        except UnreadableText as error:
            problem = error.problem
            continue
        if whole is not None and name in whole.entries:
            if attempt != text:
                problems.warn(path, f"{name}: tabs are not YAML; they were read as spaces", line)
            return whole.entries[name]
    return _guess_field(name, block, problem, path, problems, line)


def _guess_field(
    name: str, block: list[str], problem: str, path: str, problems: ProblemList, line: int
) -> Field:
    match = _ENTRY.match(block[0])
    first = (match[2] if match and match[2] else "").strip()
    rest = [row.strip() for row in block[1:] if row.strip()]
    if rest and not first and all(row.startswith("-") for row in rest):
        items = tuple(
            Field(line=line + at, data=value, text=value)
            for at, row in enumerate(block[1:], start=1)
            if row.strip()
            for value in [_unquote(row.strip()[1:].strip())]
        )
        field = Field(line=line, data=[item.data for item in items], items=items)
        what = "the list"
    else:
        value = _unquote(" ".join((first, *rest)).strip())
        field = Field(line=line, data=value, text=value)
        what = repr(value if len(value) <= 60 else f"{value[:59]}…")
    if name in _PATTERNS and "alias" in problem:
        advice = "put it in quotes: what begins with * is no YAML"
    else:
        advice = f"put it in quotes ({problem})"
    problems.warn(path, f"{name}: {what} was read as it is meant; {advice}", line)
    return field


def _unquote(value: str) -> str:
    match = _QUOTED.fullmatch(value)
    return match[2] if match else value
