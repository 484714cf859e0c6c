"""From names of notes and files, as people spell them in chats and links, to paths.

Law: a name means one path or none. What is not found or not unique is reported, never guessed.
Building the names takes time in proportion to the paths; looking one up does not.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Literal

from msgspec import Struct

NOTE_SUFFIX = ".md"
# The most matches that a warning lists.
_MOST_LISTED = 10
_WIKILINK = re.compile(r"!?\[\[([^\n]*)\]\]")
_BLOCK = re.compile(r"\^[A-Za-z0-9-]++\Z")


class Link(Struct, frozen=True, kw_only=True):
    """A link in its parts, as `[[name#anchor|label]]`. The anchor is a heading (`Setup#Linux`
    for one below another) or `^block`."""

    name: str
    anchor: str = ""
    label: str = ""


class ResolvedName(Struct, frozen=True, kw_only=True):
    """What a name means. `warning` is empty if it was found under exactly that name; `anchor` is
    the heading or block behind it."""

    name: str
    path: str | None = None
    how: Literal["path", "relative", "stem", "alias", "missing", "ambiguous"] = "missing"
    matches: tuple[str, ...] = ()
    anchor: str = ""
    warning: str = ""


def split_link(text: str) -> Link:
    """The parts of a link, with or without its brackets: `[[name#heading|label]]`."""
    text = text.strip()
    inside = _WIKILINK.fullmatch(text)
    target, _, label = (inside[1] if inside else text).partition("|")
    # In a table, the bar before a label is escaped.
    name, mark, anchor = target.removesuffix("\\").partition("#")
    if inside and not mark and (block := _BLOCK.search(name)) and block.start():
        name, anchor = name[: block.start()], block[0]
    return Link(name=name.strip(), anchor=anchor.strip(), label=label.strip())


def tag_matches(tag: str, wanted: str) -> bool:
    """Whether a tag is the wanted one or nested in it: `project` wants `Project/x`, too."""
    have, want = (name.removeprefix("#").strip("/").casefold() for name in (tag, wanted))
    return bool(want) and (have == want or have.startswith(want + "/"))


def is_in_folder(path: str, folder: str) -> bool:
    """Whether a path is in a folder or below it; every path is in the root, `""` or `"/"`."""
    inside = folder.removeprefix("./").strip("/")
    return inside in ("", ".") or path.startswith(inside + "/")


_Match = tuple[Literal["path", "relative", "stem", "alias"], tuple[str, ...]]


class _Names:
    """Paths and aliases in one spelling, exact or folded; indexed on first use."""

    def __init__(
        self,
        paths: Sequence[str],
        aliases: Mapping[str, Iterable[str]],
        spell: Callable[[str], str],
    ) -> None:
        self._paths, self._aliases, self._spell = paths, aliases, spell

    @cached_property
    def by_path(self) -> dict[str, tuple[str, ...]]:
        return _group((self._spell(path), path) for path in self._paths)

    @cached_property
    def by_stem(self) -> dict[str, tuple[str, ...]]:
        return _group(
            (_stem(spelling), path) for spelling, paths in self.by_path.items() for path in paths
        )

    @cached_property
    def by_alias(self) -> dict[str, tuple[str, ...]]:
        paths = set(self._paths)
        return _group(
            (self._spell(name.strip()), path)
            for path, names in self._aliases.items()
            for name in names
            if path in paths
        )

    def find(self, name: str, beside: str | None) -> _Match | None:
        """Full path, then from the note's folder, then a stem, then an alias."""
        name = self._spell(name)
        if not name:
            return None
        if paths := self._at(name) or self._at(name.removeprefix("/")):
            return "path", paths
        full_path = _join(self._spell(beside or ""), name)
        if full_path is not None and (paths := self._at(full_path)):
            return "path" if beside is None else "relative", paths
        if paths := self.by_stem.get(_stem(name), ()):
            return "stem", self._nearest(name, paths)
        if paths := self.by_alias.get(name, ()):
            return "alias", paths
        return None

    def _at(self, path: str) -> tuple[str, ...]:
        return self.by_path.get(path) or self.by_path.get(path + NOTE_SUFFIX, ())

    def _nearest(self, name: str, paths: tuple[str, ...]) -> tuple[str, ...]:
        """`x/b` is the end of `q/x/b.md`, not of `y/b.md`."""
        if "/" not in name or len(paths) == 1:
            return paths
        end = "/" + name.strip("/").removesuffix(NOTE_SUFFIX)
        ends = (self._spell(path).removesuffix(NOTE_SUFFIX).endswith(end) for path in paths)
        return tuple(path for path, is_end in zip(paths, ends, strict=True) if is_end) or paths


class NoteNames:
    """Known paths, found by path, by stem and by the aliases of notes."""

    def __init__(
        self, paths: Iterable[str], aliases: Mapping[str, Iterable[str]] | None = None
    ) -> None:
        self._paths = tuple(dict.fromkeys(paths))
        self._exact = _Names(self._paths, aliases or {}, str)
        self._loose = _Names(self._paths, aliases or {}, _fold)

    def resolve(self, name: str, beside: str | None = None) -> ResolvedName:
        """The path that `name` means, as a bare name, a path or a link; seen from the note
        `beside`, where one is given. A file that is called like a link goes first; case and
        Unicode normal form are ignored only where nothing matches exactly."""
        link = split_link(name)
        if not link.name and link.anchor and beside in self._exact.by_path:
            return _judge_paths(name, link.anchor, "path", (beside,))
        for names in (self._exact, self._loose):
            for spelling, anchor in ((name, ""), (link.name, link.anchor)):
                if match := names.find(spelling, beside):
                    how, paths = match
                    # Under another spelling it is not the path that was given.
                    is_exact = names is self._exact or how == "alias"
                    return _judge_paths(name, anchor, how if is_exact else "stem", paths)
        warning = f"{name!r} is not in the workspace; it is left out"
        return ResolvedName(name=name, anchor=link.anchor, warning=warning)

    def split(self, names: str) -> tuple[str, ...]:
        """The names in a comma-separated list; known names may contain commas."""
        pieces = names.split(", ")
        parts: list[str] = []
        at = 0
        while at < len(pieces):
            step = 1
            for ahead in range(min(self._most_commas + 1, len(pieces) - at), 1, -1):
                if self._knows(", ".join(pieces[at : at + ahead])):
                    step = ahead
                    break
            parts.append(", ".join(pieces[at : at + step]))
            at += step
        return tuple(name for name in parts if name.strip())

    @cached_property
    def _most_commas(self) -> int:
        """The most separators in a known name: how far a split has to look ahead."""
        return max((path.count(", ") for path in self._paths), default=0)

    def _knows(self, name: str) -> bool:
        return name in self._exact.by_path or _stem(name) in self._exact.by_stem


def _judge_paths(
    name: str,
    anchor: str,
    how: Literal["path", "relative", "stem", "alias"],
    paths: tuple[str, ...],
) -> ResolvedName:
    if len(paths) > 1:
        listing = ", ".join(map(repr, paths[:_MOST_LISTED]))
        if len(paths) > _MOST_LISTED:
            listing += f" and {len(paths) - _MOST_LISTED:,} more"
        warning = f"{name!r} may mean any of {listing}; it is left out: give its path"
        return ResolvedName(
            name=name, how="ambiguous", matches=paths, anchor=anchor, warning=warning
        )
    warning = ""
    if how == "stem" and not _is_bare(name, paths[0]):
        warning = f"{name!r} is not there under that path; {paths[0]!r} is taken for it"
    return ResolvedName(
        name=name, path=paths[0], how=how, matches=paths, anchor=anchor, warning=warning
    )


def _is_bare(name: str, path: str) -> bool:
    """Whether a name is just the stem of a path."""
    return any(
        "/" not in spelling and _stem(spelling) == _stem(path)
        for spelling in (name, split_link(name).name)
    )


def _join(beside: str, name: str) -> str | None:
    """`name` as seen from the folder of `beside`; None where it leads out of the workspace."""
    parts = beside.split("/")[:-1]
    for part in name.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _group(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    groups: dict[str, tuple[str, ...] | list[str]] = {}
    for key, path in pairs:
        same = groups.setdefault(key, (path,))
        if same[-1] == path:
            continue
        if isinstance(same, list):
            same.append(path)
        else:
            groups[key] = [*same, path]
    return {key: tuple(same) for key, same in groups.items()}


def _stem(path: str) -> str:
    return path.rsplit("/", 1)[-1].removesuffix(NOTE_SUFFIX)


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
