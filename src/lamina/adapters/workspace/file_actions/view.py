"""How tools show files: headers, lines, names.

Law: whatever is cut says so, with how much is missing and how to get it.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from lamina.adapters.files.path_tree import PathStatus
from lamina.adapters.workspace.file_actions.trash import digest_of
from lamina.errors import UsageError

MOST_ENTRIES = 500
MOST_LINES = 1000
MOST_CHARACTERS = 50_000
LONGEST_LINE = 2000
# How much of a long line is shown before and after a match.
_BEFORE, _AFTER = 80, 240
HASH_LETTERS = 12
_NAMED = 5

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


# A text without what is not to be shown; every line stays where it is.
Hide = Callable[[str], str]


def as_it_is(text: str) -> str:
    return text


def has_control(name: str) -> bool:
    return _CONTROL.search(name) is not None


def show_name(name: str) -> str:
    """A name on one line, with control characters escaped."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", name)


def show_folder(entries: Sequence[PathStatus], unread: Sequence[str], *, whole_paths: bool) -> str:
    """What is in a folder, one entry per line."""
    lines = [_entry(entry, whole_paths) for entry in entries[:MOST_ENTRIES]]
    if rest := len(entries) - len(lines):
        lines.append(f"[{rest:,} more of {len(entries):,}; list a folder further down]")
    lines += [f"[not listed: {show_name(entry)}]" for entry in unread[:_NAMED]]
    if len(unread) > _NAMED:
        lines.append(f"[not listed: {len(unread) - _NAMED:,} more]")
    return "\n".join(lines) or ("(no files)" if whole_paths else "(an empty folder)")


def show_file(path: str, data: bytes, start: int, end: int | None, hide: Hide = as_it_is) -> str:
    """Lines of a file under a header with their numbers and the file's hash. `hide` takes out of
    the whole text what is not to be shown, and leaves its lines where they are.

    Raises:
        UsageError: it is not text, or has no such lines.
    """
    if not is_text(data):
        raise UsageError(f"{path} is not text ({len(data):,} bytes)")
    text = hide(data.decode("utf-8", "replace").removeprefix("\ufeff"))
    notes = [] if is_utf8(data) else ["not UTF-8; what cannot be read is shown as �"]
    if ends_in_crlf(text):
        text = text.replace("\r\n", "\n")
        notes.append("line ends are CRLF, which edit keeps")
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    else:
        notes.append("no line break at the end")
    if start < 1 or start > max(len(lines), 1) or (end is not None and end < start):
        raise UsageError(
            f"{path} has {plural(len(lines), 'line')}; there is no range from {start} to "
            f"{'the end' if end is None else end} in it"
        )
    last = len(lines) if end is None else min(end, len(lines))
    part = f"lines {start}-{last} of {len(lines):,}" if lines else "empty"
    hash = short_hash(digest_of(data))
    head = ", ".join([f"{show_name(path)}: {part}", f"hash {hash}", *notes])
    body = show_lines(lines[start - 1 : last], start, len(lines), "read on with start =")
    return f"{head}\n{body}" if lines else head


def show_lines(lines: Sequence[str], start: int, total: int, again: str) -> str:
    """Lines from number `start` on, as many as may be shown; `again` says how to get the rest."""
    texts: list[str] = []
    room = MOST_CHARACTERS
    for line in lines[:MOST_LINES]:
        text = cut_line(line)
        if texts and len(text) + 1 > room:
            break
        room -= len(text) + 1
        texts.append(text)
    rest = len(lines) - len(texts)
    if rest:
        texts.append(f"[{plural(rest, 'more line')} of {total:,}; {again} {start + len(texts)}]")
    return "\n".join(texts)


def cut_line(line: str) -> str:
    if len(line) <= LONGEST_LINE:
        return line
    return f"{line[:LONGEST_LINE]} [… {len(line) - LONGEST_LINE:,} more characters in this line]"


def cut_around(line: str, column: int) -> str:
    """The part of a line around `column`."""
    start = 0 if column <= _BEFORE else column - _BEFORE
    end = column + _AFTER
    if len(line) <= _BEFORE + _AFTER:
        return line
    return f"{'… ' if start else ''}{line[start:end]}{' …' if end < len(line) else ''}"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def short_hash(digest: str) -> str:
    return digest[:HASH_LETTERS]


def is_text(data: bytes) -> bool:
    return b"\0" not in data[:8192]


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def ends_in_crlf(text: str) -> bool:
    """Whether all line ends are CRLF, and there are some."""
    ends = text.count("\r\n")
    return ends > 0 and ends == text.count("\n")


def _entry(entry: PathStatus, whole_path: bool) -> str:
    name = show_name(entry.path if whole_path else PurePosixPath(entry.path).name)
    match entry.kind:
        case "file":
            return f"{name}  {entry.status.st_size:,}"
        case "folder":
            return f"{name}/"
        case "link":
            return f"{name}  (a link; links are not followed)"
        case "other":
            return f"{name}  (not a regular file)"
