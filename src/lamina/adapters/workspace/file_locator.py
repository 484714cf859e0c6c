"""Finds the file or folder named by a person or a note.

Laws: a name refers to at most one path, which is never guessed. The folder is listed at most once,
however many names are looked up.
"""

import stat
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import PurePosixPath

from msgspec import Struct

from lamina.adapters.files.paths import PathRefused, clean_path
from lamina.adapters.files.root import Root
from lamina.core.notes.note_names import NoteNames, list_paths
from lamina.core.values.item import kind_of_file
from lamina.core.values.note import Catalogue

_MAX_LISTED = 8


class FileLocation(Struct, frozen=True, kw_only=True):
    """The location of a file, and warnings about how it was found."""

    path: str
    anchor: str = ""
    warnings: tuple[str, ...] = ()


class FileLocator:
    """A finder of files below a root, used for one question. `look` returns the catalogue of notes,
    `names` their names; a plain path needs neither."""

    def __init__(
        self, root: Root, look: Callable[[], Catalogue], names: Callable[[Catalogue], NoteNames]
    ) -> None:
        self._root = root
        self._look = look
        self._names = names

    def is_file(self, path: str) -> bool:
        """Check whether there is a file at exactly this path; a person may name a hidden one."""
        return self._is(stat.S_ISREG, path)

    def is_folder(self, path: str) -> bool:
        return self._is(stat.S_ISDIR, path)

    def locate(
        self, name: str, *, anchor: str = "", beside: str = "", labels: Sequence[str] = ()
    ) -> FileLocation:
        """Return the single file that a name refers to, in the note `beside` or as written by a
        person; if there is none, the file that one of the link's labels refers to.

        Raises:
            PathRefused: the name refers to none, or to more than one.
        """
        is_folder = not beside and self.is_folder(name)
        if not beside:
            path = clean_path(name)
            if not is_folder and self._root.exists(path, hidden=True):
                # Even if it may not be opened: reading it reports the reason.
                return FileLocation(path=str(path), anchor=anchor)
        match = self._note_names.resolve(name, beside=beside or None)
        if match.path is None and not match.matches:
            match = self._file_names.resolve(name, beside=beside or None)
        if match.path is None and not match.matches:
            by_label = (self._note_names.resolve(label, beside=beside or None) for label in labels)
            match = next((other for other in by_label if other.path), match)
        if match.path is not None:
            warnings = (match.warning,) if match.warning else ()
            return FileLocation(path=match.path, anchor=anchor or match.anchor, warnings=warnings)
        if match.matches:
            names = list_paths(match.matches, _MAX_LISTED)
            # A person's name with a suffix is a path, and nothing exists there.
            is_path = not beside and name.endswith(PurePosixPath(match.matches[0]).suffix)
            if is_path or match.how == "missing":
                raise PathRefused(
                    "missing", f"{name!r} is not there; there are {names}: give its path"
                )
            raise PathRefused("ambiguous", f"{name!r} may mean any of {names}: give its path")
        if is_folder:
            raise PathRefused("missing", f"{name} is a folder, and no note has that name")
        raise PathRefused("missing", f"{name} does not exist in the workspace")

    def find_folder(self, name: str) -> str:
        """Return the single folder that a name refers to: as a path, else as its last part.

        Raises:
            PathRefused: the name refers to none, or to more than one.
        """
        path = clean_path(name)
        if self.is_folder(name):
            return str(path)
        if self._root.exists(path, hidden=True):
            raise PathRefused("refused", f"{path} is no folder")
        match = NoteNames(self._root.folders()).resolve(name)
        if match.path is not None:
            return match.path
        if match.matches:
            names = list_paths(match.matches, _MAX_LISTED)
            raise PathRefused("ambiguous", f"{name!r} may mean any of {names}")
        raise PathRefused("missing", f"there is no folder {name} in the workspace")

    def find_picture(self, name: str, beside: str) -> str | None:
        """Return the picture that a name in a note refers to, wherever it is.

        Raises:
            PathRefused: several pictures are equally near.
        """
        match = self._picture_names.resolve(name, beside=beside)
        if match.how == "ambiguous":
            names = list_paths(match.matches, _MAX_LISTED)
            raise PathRefused("ambiguous", f"it may be any of {names}: give its path")
        return match.path

    @cached_property
    def _note_names(self) -> NoteNames:
        return self._names(self._look())

    @cached_property
    def _file_names(self) -> NoteNames:
        """Return the names of all files except notes, collected only when needed."""
        return NoteNames(self._paths)

    @cached_property
    def _picture_names(self) -> NoteNames:
        return NoteNames(path for path in self._paths if kind_of_file(path) == "image")

    @cached_property
    def _paths(self) -> tuple[str, ...]:
        return tuple(file.path for file in self._root.walk())

    def _is(self, kind: Callable[[int], bool], path: str) -> bool:
        try:
            return kind(self._root.stat(path, hidden=True).st_mode)
        except PathRefused:
            return False
