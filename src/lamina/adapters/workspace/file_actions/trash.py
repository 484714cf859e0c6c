"""The record of changes to a workspace, with the previous content.

Law: a deed is recorded before it is done, and removed content is saved first; so whatever happens
in between, nothing is lost and every change can be found. The list is an append-only file of JSON
lines; a damaged line is reported and affects nothing else.
"""

import hashlib
import time
from pathlib import PurePosixPath
from secrets import token_hex
from typing import Literal

import msgspec
from msgspec import Struct

from lamina.adapters.files.paths import MEBIBYTE, OtherDisk, PathRefused
from lamina.adapters.files.root import MAX_FILE_BYTES, Root
from lamina.errors import UsageError

TRASH_FOLDER = PurePosixPath(".lamina/trash")
# The size limit of a copy: files are moved, and copied only to a trash on another disk.
MAX_COPIED_BYTES = 512 * MEBIBYTE
_MAX_LIST_BYTES = 256 * MEBIBYTE


DeedKind = Literal["write", "edit", "touch", "mv", "rm", "undo", "failed"]


class Deed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change. `before` and `after` are the sha256 of the old and new content, empty if there is
    none; `kept` is the old content's name in the trash; `folders` were created for it. An undo or a
    failure is `about` another deed."""

    id: str
    do: DeedKind
    at: float
    path: str = ""
    target: str = ""
    before: str = ""
    after: str = ""
    kept: str = ""
    is_folder: bool = False
    folders: tuple[str, ...] = ()
    about: str = ""


class Trash:
    """The trash of a workspace: inside it, or in a separate folder."""

    def __init__(self, root: Root, folder: Root | None = None) -> None:
        self._root = root
        self._home = folder or root
        self._base = PurePosixPath() if folder else TRASH_FOLDER

    def deeds(self) -> tuple[tuple[Deed, ...], tuple[str, ...]]:
        """Return all deeds in order, and the problems of the list."""
        try:
            data, _ = self._home.read(self._list, _MAX_LIST_BYTES, hidden=True)
        except PathRefused as refusal:
            if refusal.reason == "missing":
                return (), ()
            raise UsageError(f"the list of changes cannot be read: {refusal.detail}") from None
        deeds: list[Deed] = []
        problems: list[str] = []
        for number, line in enumerate(data.split(b"\n"), 1):
            if not line:
                continue
            try:
                deeds.append(msgspec.json.decode(line, type=Deed))
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                problems.append(f"line {number} of {self._list} is damaged and was skipped")
        return tuple(deeds), tuple(problems)

    def record(self, deed: Deed) -> None:
        self._prepare()
        self._home.append(self._list, msgspec.json.encode(deed) + b"\n", hidden=True)

    def keep(self, name: str, data: bytes) -> None:
        """Save a copy."""
        self._prepare()
        self._home.write(self._file(name), data, replace=False, hidden=True)

    def take(self, path: PurePosixPath, name: str) -> None:
        """Move a file of the workspace into the trash."""
        self._prepare()
        try:
            self._root.rename(path, self._file(name), into=self._home, hidden=True)
        except OtherDisk:
            data, _ = self._root.read(path, MAX_COPIED_BYTES)
            self._home.write(self._file(name), data, replace=False, hidden=True)
            self._root.remove(path)

    def give_back(self, name: str, path: PurePosixPath) -> None:
        """Move a file out of the trash to where it was."""
        try:
            self._home.rename(self._file(name), path, into=self._root, hidden=True)
        except OtherDisk:
            data, _ = self._home.read(self._file(name), MAX_COPIED_BYTES, hidden=True)
            self._root.write(path, data, replace=False)
            self._home.remove(self._file(name), hidden=True)

    def has(self, name: str) -> bool:
        return self._home.exists(self._file(name), hidden=True)

    def content(self, name: str, digest: str) -> bytes:
        """Return the saved content if it is undamaged."""
        data, _ = self._home.read(self._file(name), hidden=True)
        if digest_of(data) != digest:
            raise PathRefused("unreadable", f"{self._file(name)} is damaged: it has another digest")
        return data

    def path_of(self, name: str) -> str:
        return str(self._home.path / self._file(name))

    @property
    def _list(self) -> PurePosixPath:
        return self._base / "changes.jsonl"

    def _file(self, name: str) -> PurePosixPath:
        return self._base / "kept" / name

    def _prepare(self) -> None:
        new_folders = self._home.make_folder(self._base / "kept", hidden=True)
        if new_folders and self._base.parts and not self._home.exists(self._ignore, hidden=True):
            # Lamina's own files do not belong in a repository.
            self._home.write(self._ignore, b"*\n", replace=True, hidden=True)

    @property
    def _ignore(self) -> PurePosixPath:
        return self._base / ".gitignore"


def new_deed(do: DeedKind) -> Deed:
    return Deed(id=token_hex(4), do=do, at=round(time.time(), 3))


def digest_of(data: bytes | None) -> str:
    """Return the sha256 of the data; empty if there is none."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def content_digest(root: Root, path: PurePosixPath) -> str:
    """Return the digest of a file; empty if it does not exist, its size if it is too large to
    read."""
    try:
        status = root.stat(path)
        if status.st_size > MAX_FILE_BYTES:
            return f"{status.st_size} bytes"
        return digest_of(root.read(path)[0])
    except PathRefused as refusal:
        if refusal.reason == "missing":
            return ""
        raise
