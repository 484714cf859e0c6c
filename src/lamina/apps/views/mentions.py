"""`@path`, `@rule:name` and `@ref:name` in a message: their meaning, their spelling, and the
paths that complete them.

Laws: a mention stays in the text as it was typed; what it names is attached as well, and a
rule or reference is added to the session. Looking up paths takes a bounded time however large
the folder is, and files near the top are found first.
"""

import os
import re
import time
from collections import deque
from pathlib import Path, PurePath

from msgspec import Struct

from lamina.adapters.files.paths import is_sayable
from lamina.core.assembly.inclusion import find_mentions as find_guides
from lamina.core.ports import WorkspaceSource
from lamina.core.values.item import ItemId, key_of, kind_of
from lamina.core.values.request import LeftOut
from lamina.engine.runners.composer import wants_composer

# After a space or an opening bracket only: an address like a@b.c mentions nothing.
_MENTION = re.compile(
    r'(?:^|(?<=[\s(\[{]))@(?:"([^"\n]+)"|(\[\[[^\n]+?\]\])|([^\s"]+))', re.MULTILINE
)
_UNFINISHED = re.compile(r'(?:^|(?<=[\s(\[{]))@(?:"([^"\n]*)|([^\s"]*))$')
# A rule or a reference, not a path; and one that is still being typed, also after a quote.
_GUIDE = re.compile(r"(?:rule|ref|reference):")
_UNFINISHED_GUIDE = re.compile(r'(?:^|(?<=[\s(\[{]))@((?:rule|ref|reference):)"([^"\n]*)$')
# Punctuation that may follow a path in a sentence.
_TRAILING = ".,;:!?)]}'…"


class Mentions(Struct, frozen=True, kw_only=True):
    """What a message attaches, which rules and references it adds, and mentions that match nothing
    attachable."""

    paths: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    guides: tuple[ItemId, ...] = ()


async def find_mentions(text: str, workspace: WorkspaceSource, root: Path) -> Mentions:
    """Return what the mentions of a message name. Something that looks like a path is attached
    even if it cannot be read: the request then says why it is left out."""
    paths: list[str] = []
    unknown: list[str] = []
    for match in _MENTION.finditer(text):
        quoted, link, bare = match.groups()
        quoted = quoted or link
        if bare and _GUIDE.match(bare):
            continue
        word = quoted or bare
        spellings = [word] if quoted else _spellings(word)
        for spelling in spellings:
            path = workspace_path(spelling, root)
            if not isinstance(await workspace.read(path, "attached"), LeftOut):
                break
        else:
            path = workspace_path(spellings[-1], root)
            if wants_composer(match[0]):
                continue
            if not (quoted or "/" in path or PurePath(path).suffix):
                unknown.append(spellings[-1])
                continue
        if path not in paths:
            paths.append(path)
    guides = find_guides(text)
    return Mentions(paths=tuple(paths), unknown=tuple(unknown), guides=guides)


def _spellings(word: str) -> list[str]:
    """Return a bare mention as it is, and without the punctuation that ends the sentence."""
    shorter = word.rstrip(_TRAILING)
    return [word, shorter] if shorter and shorter != word else [word]


def unfinished_mention(text: str) -> tuple[str, int] | None:
    """Return the mention being typed at the end of `text`: its text so far, and its length
    including the mark."""
    if match := _UNFINISHED_GUIDE.search(text):
        return f"{match[1]}{match[2]}", len(match[0])
    match = _UNFINISHED.search(text)
    if match is None:
        return None
    return match[1] or match[2] or "", len(match[0])


def mention(path: str) -> str:
    """Return a path written as a mention."""
    plain = not re.search(r'[\s"]', path) and path == path.rstrip(_TRAILING)
    return f"@{path}" if plain else f'@"{path}"'


def mention_guide(item: ItemId) -> str:
    """Return a rule or reference written as a mention."""
    kind, name = ("ref" if kind_of(item) == "reference" else kind_of(item)), key_of(item)
    plain = not re.search(r'[\s"]', name) and name == name.rstrip(_TRAILING + ">")
    return f"@{kind}:{name}" if plain else f'@{kind}:"{name}"'


def workspace_path(path: str, root: Path) -> str:
    """Return a path relative to the workspace, even if it was given as an absolute path."""
    place = Path(path).expanduser() if path.startswith("~/") else Path(path)
    if place.is_absolute():
        for base in (root.absolute(), root.resolve()):
            if place.is_relative_to(base):
                return place.relative_to(base).as_posix()
    return path


SKIPPED = {"node_modules", "__pycache__"}
MAX, SECONDS = 20_000, 0.5
# How long a scanned list may be reused.
FRESH_S = 3.0


def scan(root: Path, limit: int = MAX, seconds: float = SECONDS) -> list[str]:
    """Return the paths of files below `root`, folder by folder from the top, without hidden files,
    links, names that cannot be typed, and what cannot be scanned in time."""
    paths: list[str] = []
    waiting = deque([""])
    end = time.monotonic() + seconds
    count = 0
    while waiting:
        folder = waiting.popleft()
        try:
            entries = os.scandir(root / folder)
        except OSError:
            continue
        inner: list[str] = []
        files: list[str] = []
        with entries:
            for entry in entries:
                count += 1
                if count > limit or time.monotonic() > end:
                    waiting.clear()
                    break
                if entry.name.startswith(".") or entry.name in SKIPPED or entry.is_symlink():
                    continue
                if not is_sayable(entry.name):
                    continue
                path = f"{folder}/{entry.name}" if folder else entry.name
                (inner if entry.is_dir(follow_symlinks=False) else files).append(path)
        paths += sorted(files)
        if waiting or count <= limit:
            waiting += sorted(inner)
    return paths


def match(paths: list[str], wanted: str, limit: int = 50) -> list[str]:
    """Return the paths that contain `wanted`, ignoring case: first those whose name begins with
    it, then those whose name contains it."""
    needle = wanted.casefold()
    ranking: list[tuple[int, int, str]] = []
    for path in paths:
        whole = path.casefold()
        name = whole.rpartition("/")[2]
        if needle not in whole:
            continue
        rank = 0 if name.startswith(needle) else 1 if needle in name else 2
        ranking.append((rank, path.count("/"), path))
    return [path for *_, path in sorted(ranking)[:limit]]


class Paths:
    """The paths of one folder, scanned again when the list is stale."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._paths: list[str] = []
        self._at = float("-inf")

    def all(self) -> list[str]:
        """Return all paths as of the last scan."""
        if time.monotonic() - self._at > FRESH_S:
            self._paths = scan(self._root)
            self._at = time.monotonic()
        return self._paths

    def match(self, wanted: str) -> list[str]:
        return match(self.all(), wanted)
