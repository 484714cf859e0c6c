"""How tools show files: headers, lines, names, and the tree of a folder.

Laws: every cut is reported, with how much is missing and how to get it. A tree is never longer than
a page: a large folder shows its first names and counts the others by kind, and a tree that is too
long is shown less deep.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from lamina.adapters.files.root import PathStatus
from lamina.adapters.workspace.file_actions.trash import digest_of
from lamina.errors import UsageError

MAX_ENTRIES = 500
MAX_LINES = 1000
MAX_CHARACTERS = 50_000
LONGEST_LINE = 2000
# How much of a long line is shown before and after a match.
_BEFORE, _AFTER = 80, 240
HASH_LETTERS = 12
_NAMED = 5

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


# Returns a text without the parts that must not be shown; every line stays where it is.
Hide = Callable[[str], str]


def as_it_is(text: str) -> str:
    return text


def has_control(name: str) -> bool:
    return _CONTROL.search(name) is not None


def show_name(name: str) -> str:
    """Return a name on one line, with control characters escaped."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", name)


def show_folder(entries: Sequence[PathStatus], unread: Sequence[str], *, whole_paths: bool) -> str:
    """Return the content of a folder, one entry per line."""
    lines = [_entry(entry, whole_paths) for entry in entries[:MAX_ENTRIES]]
    if rest := len(entries) - len(lines):
        lines.append(f"[{rest:,} more of {len(entries):,}; list a folder further down]")
    lines += [f"[not listed: {show_name(entry)}]" for entry in unread[:_NAMED]]
    if len(unread) > _NAMED:
        lines.append(f"[not listed: {len(unread) - _NAMED:,} more]")
    return "\n".join(lines) or ("(no files)" if whole_paths else "(an empty folder)")


def show_file(path: str, data: bytes, start: int, end: int | None, hide: Hide = as_it_is) -> str:
    """Return lines of a file under a header with their numbers and the file's hash. `hide` removes
    parts of the whole text that must not be shown, and leaves its lines where they are.

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
    """Return lines from number `start` on, as many as may be shown; `again` says how to get the
    rest."""
    texts: list[str] = []
    room = MAX_CHARACTERS
    for line in lines[:MAX_LINES]:
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
    """Return the part of a line around `column`."""
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
    """Return whether the text has line ends and all are CRLF."""
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


DEPTH, MAX_DEPTH = 3, 20
# The most names of files and of folders shown per folder, and the most lines in all.
MAX_NAMES = 40
MAX_TREE_LINES = 400
# How many kinds of files are counted separately.
MAX_KINDS = 5
# A folder can contain more files than are worth counting.
MAX_FILES = 200_000
_INDENT = "  "


class _Folder:
    def __init__(self) -> None:
        self.folders: dict[str, _Folder] = {}
        self.files: list[str] = []
        # The number of files in it and below.
        self.total = 0

    def below(self, parts: Iterable[str]) -> Iterator["_Folder"]:
        """Yield this folder, and those on the way to one below it."""
        folder = self
        yield folder
        for part in parts:
            folder = folder.folders.setdefault(part, _Folder())
            yield folder


def show_tree(start: str, folders: Iterable[str], files: Iterable[str], depth: int) -> str:
    """Return the tree below `start`, from full paths, `depth` folders deep."""
    tree, is_cut = _plant(start, folders, files)
    for level in range(depth, 0, -1):
        lines = [f"{show_name(start or '.')}/ ({_describe(tree)})", *_draw(tree, level, _INDENT)]
        if len(lines) <= MAX_TREE_LINES or level == 1:
            break
    if level < depth:
        lines.append(
            f"[shown {plural(level, 'level')} deep: more would be too long; name a folder]"
        )
    if is_cut:
        lines.append(f"[there are more than {MAX_FILES:,} files; the others are not counted]")
    return "\n".join(lines)


def _plant(start: str, folders: Iterable[str], files: Iterable[str]) -> tuple[_Folder, bool]:
    """Return the tree of paths, and whether there are more files than are counted."""
    tree, skip = _Folder(), len(PurePosixPath(start).parts)
    for path in folders:
        for _ in tree.below(PurePosixPath(path).parts[skip:]):
            pass
    for number, path in enumerate(files):
        if number == MAX_FILES:
            return tree, True
        *above, name = PurePosixPath(path).parts[skip:]
        for folder in tree.below(above):
            folder.total += 1
        folder.files.append(name)
    return tree, False


def _draw(folder: _Folder, depth: int, indent: str) -> Iterator[str]:
    if depth == 0:
        return
    names = sorted(folder.folders)
    for name in names[:MAX_NAMES]:
        below = folder.folders[name]
        yield f"{indent}{show_name(name)}/ ({_describe(below)})"
        yield from _draw(below, depth - 1, indent + _INDENT)
    if hidden := names[MAX_NAMES:]:
        count = sum(folder.folders[name].total for name in hidden)
        yield f"{indent}[{plural(len(hidden), 'more folder')} with {plural(count, 'file')}]"
    files = sorted(folder.files)
    for name in files[:MAX_NAMES]:
        yield f"{indent}{show_name(name)}"
    if rest := files[MAX_NAMES:]:
        yield f"{indent}[{plural(len(rest), 'more file')}: {_count_kinds(rest)}]"


def _describe(folder: _Folder) -> str:
    return plural(folder.total, "file") if folder.total else "empty"


def _count_kinds(names: Iterable[str]) -> str:
    kinds = Counter(PurePosixPath(name).suffix.lower()[1:] or "no suffix" for name in names)
    parts = [f"{count:,} {show_name(kind)}" for kind, count in kinds.most_common(MAX_KINDS)]
    others = len(kinds) - MAX_KINDS
    return ", ".join([*parts, plural(others, "other kind")] if others > 0 else parts)
