"""Resolves names of notes and files, as spelled in chats and links, to paths.

Laws: a name resolves to one path or none. A missing or ambiguous name is reported, never guessed.
In a note, a name shared by several files resolves to the nearest one, as in Obsidian: the one in
the note's own folder, else below it, else in the same top folder, else in the fewest folders. If
two are equally near, or the note is unknown, the name stays ambiguous. Building the index takes
time proportional to the number of paths; a lookup does not.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

NOTE_SUFFIX = ".md"
# The maximum number of matches listed in a warning.
_MAX_LISTED = 10
_WIKILINK = re.compile(r"!?\[\[([^\n]*)\]\]")
_BLOCK = re.compile(r"\^[A-Za-z0-9-]++\Z")
# Dendron's links into another vault: `dendron://vault/note`.
_OTHER_VAULT = "dendron://"
# Up to this many paths are examined on every lookup.
_FEW = 16
# Sorts after all paths with the same prefix.
_LAST = "\U0010ffff"

# The reason why one of several files with the same name is the nearest.
Nearness = Literal["", "root", "same folder", "below", "same top folder", "fewest folders"]
_How = Literal["path", "relative", "stem", "nearest", "alias", "missing"]


class Link(Struct, frozen=True, kw_only=True):
    """The parts of a link: `[[name#anchor|label]]`. The anchor is a heading (`Setup#Linux` for
    nested headings) or `^block`. In Dendron the label comes first, so it may be a name."""

    name: str
    anchor: str = ""
    label: str = ""


class ResolvedName(Struct, frozen=True, kw_only=True):
    """The result of resolving a name. `warning` is empty for exact matches; `anchor` is the heading
    or block after the name. `matches` lists all candidates; if there are several, `nearness` gives
    the reason why `path` is the nearest."""

    name: str
    path: str | None = None
    how: Literal["path", "relative", "stem", "nearest", "alias", "missing", "ambiguous"] = "missing"
    matches: tuple[str, ...] = ()
    nearness: Nearness = ""
    anchor: str = ""
    warning: str = ""


def split_link(text: str) -> Link:
    """Return the parts of a link, with or without brackets: `[[name#heading|label]]`."""
    text = text.strip()
    inside = _WIKILINK.fullmatch(text)
    target, _, label = (inside[1] if inside else text).partition("|")
    # In a table, the bar before a label is escaped.
    name, mark, anchor = target.removesuffix("\\").partition("#")
    if inside and not mark and (block := _BLOCK.search(name)) and block.start():
        name, anchor = name[: block.start()], block[0]
    name = name.strip().removeprefix(_OTHER_VAULT)
    return Link(name=name, anchor=anchor.strip(), label=label.strip())


def tag_matches(tag: str, wanted: str) -> bool:
    """Return whether a tag is the wanted one or nested in it: `project` also matches
    `Project/x`."""
    have, want = (name.removeprefix("#").strip("/").casefold() for name in (tag, wanted))
    return bool(want) and (have == want or have.startswith(want + "/"))


def is_in_folder(path: str, folder: str) -> bool:
    """Return whether a path is in a folder or its subfolders; every path is in the root, `""` or
    `"/"`."""
    inside = folder.removeprefix("./").strip("/")
    return inside in ("", ".") or path.startswith(inside + "/")


class _Match(Struct, frozen=True):
    """The match for a name: one path, or several equal candidates. `namesakes` lists all files with
    that name. Missing: files with that name exist only in other folders."""

    how: _How
    paths: tuple[str, ...]
    namesakes: tuple[str, ...] = ()
    nearness: Nearness = ""


class _Names:
    """Paths and aliases in one spelling, exact or folded; indexed on first use."""

    def __init__(
        self,
        paths: Sequence[str],
        aliases: Mapping[str, Iterable[str]],
        spell: Callable[[str], str],
    ) -> None:
        self._paths, self._aliases, self._spell = paths, aliases, spell
        # The nearest paths by path suffix and folder.
        self._nearest: dict[tuple[str, str], tuple[str, ...]] = {}
        self._sorted: dict[str, list[tuple[str, str]]] = {}

    @cached_property
    def by_path(self) -> dict[str, tuple[str, ...]]:
        return _group((self._spell(path), path) for path in self._paths)

    @cached_property
    def _by_file(self) -> dict[str, tuple[str, ...]]:
        return self._group_by_end(1)

    @cached_property
    def _by_place(self) -> dict[str, tuple[str, ...]]:
        """Paths by their last folder and file name."""
        return self._group_by_end(2)

    @cached_property
    def _by_alias(self) -> dict[str, tuple[str, ...]]:
        paths = set(self._paths)
        return _group(
            (self._spell(name.strip()), path)
            for path, names in self._aliases.items()
            for name in names
            if path in paths
        )

    def find_path(self, name: str, beside: str | None) -> _Match | None:
        """Find by the full path, else by the path relative to the folder of the note `beside`."""
        name = self._spell(name)
        if not name:
            return None
        if paths := self._at(name) or (self._at(name[1:]) if name[0] == "/" else ()):
            return _Match("path", paths, self._namesakes(name, beside), "root")
        return self.find_beside(name, beside or "")

    def find_beside(self, name: str, beside: str) -> _Match | None:
        """Find by the path relative to the folder of the note `beside`."""
        name = self._spell(name)
        full_path = _join(self._spell(beside), name)
        if full_path is None or not (paths := self._at(full_path)):
            return None
        how: _How = "relative" if beside else "path"
        return _Match(how, paths, self._namesakes(name, beside), "same folder")

    def find_end(self, name: str) -> tuple[str, tuple[str, ...]]:
        """Return a path suffix and the paths that end in it; if there are none, an empty suffix and
        the paths with the same file name: `x/b` is a suffix of `q/x/b.md`, not of `y/b.md`."""
        name = self._spell(name).strip("/")
        folder, _, file = name.rpartition("/")
        paths = self._named(file) if file else ()
        if not folder or not paths:
            return file, paths
        place = f"{folder.rpartition('/')[2]}/{file}"
        candidates = self._by_place.get(place) or self._by_place.get(place + NOTE_SUFFIX, ())
        ends = tuple(path for path in candidates if _is_end(name, self._spell(path)))
        return (name, ends) if ends else ("", paths)

    def find_nearest(self, name: str, beside: str) -> _Match | None:
        """Find by path suffix, nearest to the note `beside`."""
        end, paths = self.find_end(name)
        if not end and len(paths) > 1:
            # The name includes a folder that does not match: nearness would prove nothing.
            return _Match("missing", paths)
        if len(paths) < 2:
            return _Match("stem", paths) if paths else None
        folder = self._spell(beside).rpartition("/")[0]
        places: dict[str, Nearness] = {"": "fewest folders"}
        places |= {folder.partition("/")[0]: "same top folder", folder: "below"} if folder else {}
        for place, nearness in reversed(places.items()):
            if nearest := self._inside(end, paths, place):
                return _Match("nearest", nearest, paths, nearness)
        return None

    def find_alias(self, name: str) -> _Match | None:
        paths = self._by_alias.get(self._spell(name), ())
        return _Match("alias", paths) if paths else None

    def knows(self, name: str) -> bool:
        """Return whether a file with that path or name exists."""
        return name in self.by_path or bool(self._named(name.rpartition("/")[2]))

    def _at(self, path: str) -> tuple[str, ...]:
        return self.by_path.get(path) or self.by_path.get(path + NOTE_SUFFIX, ())

    def _named(self, file: str) -> tuple[str, ...]:
        return self._by_file.get(file) or self._by_file.get(file + NOTE_SUFFIX, ())

    def _namesakes(self, name: str, beside: str | None) -> tuple[str, ...]:
        """Return all files with a bare name used in a note."""
        return self._named(name) if beside and "/" not in name else ()

    def _inside(self, end: str, paths: tuple[str, ...], folder: str) -> tuple[str, ...]:
        """Return the paths among `paths` (which end in `end`) that are in a folder or its
        subfolders, at the smallest depth. Large results are cached, so that a path is examined only
        once per folder that contains it, regardless of the number of links."""
        spelled = self._sorted.get(end)
        if spelled is None:
            spelled = self._sorted[end] = sorted((self._spell(path), path) for path in paths)
        start = folder + "/" if folder else ""
        first = bisect_left(spelled, (start,))
        last = bisect_left(spelled, (start + _LAST,), first)
        if last - first <= _FEW:
            return _least_deep([path for _, path in spelled[first:last]])
        if (end, folder) not in self._nearest:
            nearest = _least_deep([path for _, path in spelled[first:last]])
            self._nearest[end, folder] = nearest
        return self._nearest[end, folder]

    def _group_by_end(self, parts: int) -> dict[str, tuple[str, ...]]:
        """Group paths by their last parts."""
        return _group(
            ("/".join(spelling.rsplit("/", parts)[-parts:]), path)
            for spelling, paths in self.by_path.items()
            for path in paths
        )


class NoteNames:
    """Known paths, found by path, by stem and by note alias."""

    def __init__(
        self, paths: Iterable[str], aliases: Mapping[str, Iterable[str]] | None = None
    ) -> None:
        self._paths = tuple(dict.fromkeys(paths))
        self._exact = _Names(self._paths, aliases or {}, str)
        self._loose = _Names(self._paths, aliases or {}, _fold)

    def resolve(self, name: str, beside: str | None = None) -> ResolvedName:
        """Resolve a bare name, a path or a link to a path, relative to the note `beside` if given.
        A file that is named like a link takes precedence. If the name in a link matches nothing but
        its label does, the label is the name, as in Dendron: `[[text|name]]`."""
        link = split_link(name)
        if not link.name and link.anchor and beside in self._exact.by_path:
            return _judge(name, link.anchor, _Match("path", (beside,)))
        find = self._find_from if beside else self._find
        for spelling, anchor in ((name, ""), (link.name, link.anchor)):
            if match := find(spelling, beside or ""):
                is_spelled = _is_spelled(spelling, match.paths[0], is_seen=bool(beside))
                # The name of another vault does not reveal its location.
                is_spelled = is_spelled or _OTHER_VAULT in name
                return _judge(name, anchor, match, is_spelled=is_spelled)
        if link.label:
            meaning = self.resolve(link.label, beside)
            if meaning.path is not None:
                return replace(meaning, name=name)
        warning = f"{name!r} is not in the workspace; it is left out"
        return ResolvedName(name=name, anchor=link.anchor, warning=warning)

    def resolve_link(self, target: str, labels: Iterable[str], beside: str) -> ResolvedName:
        """Resolve a link in the note `beside`; if its target matches nothing, one of its labels
        may, as in `[[text|name]]`."""
        meaning = self.resolve(target, beside)
        if meaning.how != "missing" or meaning.matches:
            return meaning
        others = (self.resolve(label, beside) for label in labels)
        return next((other for other in others if other.path is not None), meaning)

    def _find(self, name: str, _: str) -> _Match | None:
        """Find a name given by a person. Case and Unicode normalization are ignored only if nothing
        matches exactly."""
        for names in (self._exact, self._loose):
            if match := names.find_path(name, None):
                # In another spelling it is not the given path.
                return match if names is self._exact else replace(match, how="stem")
            if paths := names.find_end(name)[1]:
                return _Match("stem", paths)
        return self._exact.find_alias(name) or self._loose.find_alias(name)

    def _find_from(self, name: str, beside: str) -> _Match | None:
        """Find a name used in a note: a file beside it, a path, else the nearest file with that
        path suffix. If two are equally near, the one with exactly this spelling wins."""
        if name and "/" not in name and "/" in beside:
            # A bare name is also the path of a file in the root; the note's own folder is nearer.
            for names in (self._exact, self._loose):
                if match := names.find_beside(name, beside):
                    return match
        for names in (self._exact, self._loose):
            if match := names.find_path(name, beside):
                return match
        match = self._loose.find_nearest(name, beside)
        if match is None:
            return self._exact.find_alias(name) or self._loose.find_alias(name)
        if len(match.paths) > 1:
            same = self._exact.find_end(name)[1]
            if 0 < len(same) < len(match.namesakes):
                spelled = tuple(set(match.paths).intersection(same))
                match = replace(match, paths=spelled) if len(spelled) == 1 else match
        return match

    def split(self, names: str) -> tuple[str, ...]:
        """Split a comma-separated list of names; known names may contain commas."""
        pieces = names.split(", ")
        parts: list[str] = []
        at = 0
        while at < len(pieces):
            step = 1
            for ahead in range(min(self._most_commas + 1, len(pieces) - at), 1, -1):
                if self._exact.knows(", ".join(pieces[at : at + ahead])):
                    step = ahead
                    break
            parts.append(", ".join(pieces[at : at + step]))
            at += step
        return tuple(name for name in parts if name.strip())

    @cached_property
    def _most_commas(self) -> int:
        """Return the maximum number of separators in a known name, which limits the lookahead when
        splitting."""
        return max((path.count(", ") for path in self._paths), default=0)


def list_paths(paths: Sequence[str], most: int = _MAX_LISTED) -> str:
    """Format paths for a sentence: the first ones, and the number of the others."""
    listing = ", ".join(map(repr, paths[:most]))
    return f"{listing} and {len(paths) - most:,} more" if len(paths) > most else listing


def _judge(name: str, anchor: str, match: _Match, *, is_spelled: bool = True) -> ResolvedName:
    """Convert the match for a name to a result."""
    if match.how == "missing":
        listing = list_paths(match.paths)
        warning = f"{name!r} is not there; it is left out: there are {listing}"
        return ResolvedName(name=name, matches=match.paths, anchor=anchor, warning=warning)
    if len(match.paths) > 1:
        listing = list_paths(match.paths)
        warning = f"{name!r} may mean any of {listing}; it is left out: give its path"
        return ResolvedName(
            name=name, how="ambiguous", matches=match.paths, anchor=anchor, warning=warning
        )
    path = match.paths[0]
    warning = ""
    if match.how == "stem" and not is_spelled:
        warning = f"{name!r} is not there under that path; {path!r} is taken for it"
    has_namesakes = len(match.namesakes) > 1
    return ResolvedName(
        name=name,
        path=path,
        how=match.how,
        matches=match.namesakes if has_namesakes else match.paths,
        nearness=match.nearness if has_namesakes else "",
        anchor=anchor,
        warning=warning,
    )


def _is_spelled(name: str, path: str, *, is_seen: bool) -> bool:
    """Return whether a path matches a name as spelled: by its file name for a person, by its suffix
    in a note."""
    if is_seen:
        return _is_end(_fold(name).strip("/"), _fold(path))
    return "/" not in name and _is_end(name, path)


def _is_end(name: str, path: str) -> bool:
    """Return whether a path ends in a name; the note suffix is optional."""
    end = "/" + name.removesuffix(NOTE_SUFFIX)
    return f"/{path}".removesuffix(NOTE_SUFFIX).endswith(end)


def _least_deep(paths: list[str]) -> tuple[str, ...]:
    if len(paths) < 2:
        return tuple(paths)
    depths = [path.count("/") for path in paths]
    least = min(depths)
    return tuple(path for path, depth in zip(paths, depths, strict=True) if depth == least)


def _join(beside: str, name: str) -> str | None:
    """Return the path of `name` relative to the folder of `beside`; None if it leads out of the
    workspace."""
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


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
