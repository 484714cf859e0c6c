"""Names of notes, as a chat file spells them, to paths of a workspace.

Law: a name means one path or none. What is not found or not unique is said, never guessed.
"""

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from msgspec import Struct

NOTE_SUFFIX = ".md"


class Resolved(Struct, frozen=True, kw_only=True):
    """What a name means. `warning` is empty where it is found under just that path."""

    name: str
    path: str | None = None
    how: Literal["path", "stem", "missing", "ambiguous"] = "missing"
    matches: tuple[str, ...] = ()
    warning: str = ""


def resolve_note(name: str, paths: Sequence[str]) -> Resolved:
    """The path that `name` means: by full path, else by a stem that only one path has. Case and
    Unicode normal form are overlooked only where nothing matches exactly."""
    return Shelf(paths).resolve(name)


class Shelf:
    """Known paths, found by path and by stem."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = tuple(dict.fromkeys(paths))
        self._by_path = {path: (path,) for path in self._paths}
        self._by_stem = _group(self._paths, _stem)
        # How many separators one known name can hold: what a split has to look ahead.
        self._most_commas = max((path.count(", ") for path in self._paths), default=0)
        self._loose: tuple[dict[str, tuple[str, ...]], ...] | None = None

    def resolve(self, name: str) -> Resolved:
        spelled = (name, name + NOTE_SUFFIX)
        found: tuple[str, ...] = next(
            (self._by_path[each] for each in spelled if each in self._by_path), ()
        )
        if found:
            return Resolved(name=name, path=found[0], how="path", matches=found)
        found = self._by_stem.get(_stem(name), ()) if name else ()
        if not found and name:
            paths, stems = self._loosely()
            folded = [_fold(each) for each in spelled]
            found = next((paths[each] for each in folded if each in paths), ())
            found = found or stems.get(_fold(_stem(name)), ())
        match found:
            case ():
                warning = f"{name!r} is not in the workspace; it is left out"
                return Resolved(name=name, warning=warning)
            case (path,):
                warning = f"{name!r} is not there under that path; {path!r} is taken for it"
                if "/" not in name and _stem(name) == _stem(path):
                    warning = ""  # a bare name says no more than that
                return Resolved(name=name, path=path, how="stem", matches=found, warning=warning)
        listed = ", ".join(map(repr, found))
        warning = f"{name!r} may mean any of {listed}; it is left out: give its path"
        return Resolved(name=name, how="ambiguous", matches=found, warning=warning)

    def split(self, names: str) -> tuple[str, ...]:
        """The names in a list with commas between them; known names may hold commas."""
        pieces = names.split(", ")
        found: list[str] = []
        at = 0
        while at < len(pieces):
            step = 1
            for ahead in range(min(self._most_commas + 1, len(pieces) - at), 1, -1):
                if self._knows(", ".join(pieces[at : at + ahead])):
                    step = ahead
                    break
            found.append(", ".join(pieces[at : at + step]))
            at += step
        return tuple(name for name in found if name.strip())

    def _knows(self, name: str) -> bool:
        return name in self._by_path or _stem(name) in self._by_stem

    def _loosely(self) -> tuple[dict[str, tuple[str, ...]], ...]:
        if self._loose is None:
            stems = _group(self._paths, lambda path: _fold(_stem(path)))
            self._loose = (_group(self._paths, _fold), stems)
        return self._loose


def _group(paths: Sequence[str], key: Callable[[str], str]) -> dict[str, tuple[str, ...]]:
    grouped: dict[str, list[str]] = {}
    for path in paths:
        grouped.setdefault(key(path), []).append(path)
    return {each: tuple(same) for each, same in grouped.items()}


def _stem(path: str) -> str:
    return path.rsplit("/", 1)[-1].removesuffix(NOTE_SUFFIX)


def _fold(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
