"""The tree of a folder as text for a model.

Laws: it is never longer than a page. Where something is left out, how much that is stands in its
place: a large folder shows its first names and counts the others by kind, and a tree that is too
long is shown less deep.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from lamina.adapters.workspace.file_actions.view import plural, show_name

DEPTH, MOST_DEPTH = 3, 20
# Names of files, and of folders, that one folder shows; and lines of the whole.
MOST_NAMES = 40
MOST_LINES = 400
# Kinds of files that are told apart where files are counted.
MOST_KINDS = 5
# A folder can hold more than anybody would look through.
MOST_FILES = 200_000
_INDENT = "  "


class _Folder:
    def __init__(self) -> None:
        self.folders: dict[str, _Folder] = {}
        self.files: list[str] = []
        # How many files there are in it and below.
        self.total = 0

    def below(self, parts: Iterable[str]) -> Iterator["_Folder"]:
        """This folder, and those on the way to one below it."""
        folder = self
        yield folder
        for part in parts:
            folder = folder.folders.setdefault(part, _Folder())
            yield folder


def show_tree(start: str, folders: Iterable[str], files: Iterable[str], depth: int) -> str:
    """The tree below `start`, of whole paths, `depth` folders deep."""
    tree, is_cut = _plant(start, folders, files)
    for level in range(depth, 0, -1):
        lines = [f"{show_name(start or '.')}/ ({_describe(tree)})", *_draw(tree, level, _INDENT)]
        if len(lines) <= MOST_LINES or level == 1:
            break
    if level < depth:
        lines.append(
            f"[shown {plural(level, 'level')} deep: more would be too long; name a folder]"
        )
    if is_cut:
        lines.append(f"[there are more than {MOST_FILES:,} files; the others are not counted]")
    return "\n".join(lines)


def _plant(start: str, folders: Iterable[str], files: Iterable[str]) -> tuple[_Folder, bool]:
    """The tree of paths, and whether there are more files than are looked at."""
    tree, skip = _Folder(), len(PurePosixPath(start).parts)
    for path in folders:
        for _ in tree.below(PurePosixPath(path).parts[skip:]):
            pass
    for number, path in enumerate(files):
        if number == MOST_FILES:
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
    for name in names[:MOST_NAMES]:
        below = folder.folders[name]
        yield f"{indent}{show_name(name)}/ ({_describe(below)})"
        yield from _draw(below, depth - 1, indent + _INDENT)
    if hidden := names[MOST_NAMES:]:
        count = sum(folder.folders[name].total for name in hidden)
        yield f"{indent}[{plural(len(hidden), 'more folder')} with {plural(count, 'file')}]"
    files = sorted(folder.files)
    for name in files[:MOST_NAMES]:
        yield f"{indent}{show_name(name)}"
    if rest := files[MOST_NAMES:]:
        yield f"{indent}[{plural(len(rest), 'more file')}: {_count_kinds(rest)}]"


def _describe(folder: _Folder) -> str:
    return plural(folder.total, "file") if folder.total else "empty"


def _count_kinds(names: Iterable[str]) -> str:
    kinds = Counter(PurePosixPath(name).suffix.lower()[1:] or "no suffix" for name in names)
    parts = [f"{count:,} {show_name(kind)}" for kind, count in kinds.most_common(MOST_KINDS)]
    others = len(kinds) - MOST_KINDS
    return ", ".join([*parts, plural(others, "other kind")] if others > 0 else parts)
