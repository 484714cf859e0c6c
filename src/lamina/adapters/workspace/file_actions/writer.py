"""Makes changes to the files of a workspace, each of which can be undone.

Law: nothing is lost. Removed content is saved first, and the deed is recorded before it is done;
one that failed is marked as failed.
"""

import contextlib
import itertools
import os
import re
from collections.abc import Callable
from pathlib import PurePosixPath

from msgspec.structs import replace

from lamina.adapters.files.paths import PathRefused
from lamina.adapters.files.root import Root
from lamina.adapters.workspace.file_actions.trash import (
    Deed,
    DeedKind,
    Trash,
    content_digest,
    digest_of,
    new_deed,
)
from lamina.adapters.workspace.file_actions.undo import find_deed, take_back
from lamina.adapters.workspace.file_actions.view import HASH_LETTERS, short_hash
from lamina.errors import UsageError

_HASH = re.compile(r"[0-9a-f]{8,64}")


class FileWriter:
    """Writes in one root. `on_change` is called with every path that changed."""

    def __init__(self, root: Root, trash: Trash, on_change: Callable[[str], None]) -> None:
        self._root = root
        self._trash = trash
        self._on_change = on_change
        # Digests of files as last seen, which protect a file even if a call passes no hash.
        self._digests: dict[PurePosixPath, str] = {}

    def note_seen(self, path: PurePosixPath, data: bytes) -> None:
        """Remember the content of a file when it was read."""
        self._digests[path] = digest_of(data)

    def check_fresh(self, path: PurePosixPath, data: bytes | None, read_hash: str | None) -> None:
        """Refuse a file that changed since it was read; without a hash, the last read counts."""
        if read_hash and not _HASH.fullmatch(read_hash):
            raise UsageError(
                f"read_hash {read_hash!r} is not a hash; give the one that read told, "
                f"{HASH_LETTERS} letters and digits, or leave it out"
            )
        if data is None and not read_hash:
            return
        digest = digest_of(data)
        last_digest = read_hash or self._digests.get(path, digest)
        if data is None or not digest.startswith(last_digest):
            now = "it is gone" if data is None else f"its hash is {short_hash(digest)}"
            raise UsageError(
                f"{path} changed since it was read ({now}, not {short_hash(last_digest)}); nothing "
                f"was changed: read it again first"
            )

    def put(self, do: DeedKind, path: PurePosixPath, old: bytes | None, data: bytes) -> Deed:
        deed = replace(
            new_deed(do),
            path=str(path),
            before=digest_of(old),
            after=digest_of(data),
            folders=() if old is not None else self._missing_folders(path),
        )
        if old is not None:
            deed = replace(deed, kept=deed.id)
            self._keep_first(lambda: self._trash.keep(deed.kept, old))

        def put() -> None:
            self._root.make_folder(path.parent)
            expected = None if old is None else deed.before
            self._root.write(path, data, replace=old is not None, expected=expected)

        self._do(deed, put)
        self._digests[path] = deed.after
        self._on_change(str(path))
        return deed

    def touch(self, path: PurePosixPath) -> None:
        """Mark an existing file as changed now."""
        self._root.touch(path)
        self._on_change(str(path))

    def move(self, old: PurePosixPath, new: PurePosixPath, *, is_folder: bool) -> Deed:
        deed = replace(
            new_deed("mv"),
            path=str(old),
            target=str(new),
            after="" if is_folder else content_digest(self._root, old),
            is_folder=is_folder,
            folders=self._missing_folders(new),
        )
        self._do(deed, lambda: self._move(old, new))
        return deed

    def remove(self, path: PurePosixPath, *, is_folder: bool) -> Deed:
        """Move a file to the trash, or remove an empty folder."""
        deed = replace(new_deed("rm"), path=str(path), is_folder=is_folder)
        if is_folder:
            self._do(deed, lambda: self._root.remove(path))
        else:
            deed = replace(deed, kept=deed.id)
            self._do(deed, lambda: self._trash.take(path, deed.kept))
        self._digests.pop(path, None)
        self._on_change(str(path))
        return deed

    def undo(self, id: str | None) -> tuple[str, tuple[str, ...]]:
        """Undo a deed; return what was done, and the problems of the list of deeds."""
        deeds, problems = self._trash.deeds()
        deed = find_deed(deeds, id)
        message = take_back(self._root, self._trash, deed)
        for path in filter(None, (deed.path, deed.target)):
            self._forget(PurePosixPath(path))
            self._on_change(path)
        return message, problems

    def is_same(self, old: PurePosixPath, new: PurePosixPath) -> bool:
        return old.parent == new.parent and os.path.samestat(
            self._root.stat(old), self._root.stat(new)
        )

    def _do(self, deed: Deed, act: Callable[[], None]) -> None:
        self._keep_first(lambda: self._trash.record(deed))
        try:
            act()
        except BaseException:
            with contextlib.suppress(PathRefused):
                self._trash.record(replace(new_deed("failed"), about=deed.id))
            raise

    def _keep_first(self, act: Callable[[], None]) -> None:
        try:
            act()
        except PathRefused as refusal:
            raise UsageError(
                f"what a change takes away cannot be kept ({refusal.detail}); nothing was changed"
            ) from None

    def _move(self, old: PurePosixPath, new: PurePosixPath) -> None:
        self._root.make_folder(new.parent)
        self._root.rename(old, new)
        for path in [path for path in self._digests if path == old or old in path.parents]:
            self._digests[new / path.relative_to(old)] = self._digests.pop(path)
        self._on_change(str(old))
        self._on_change(str(new))

    def _missing_folders(self, path: PurePosixPath) -> tuple[str, ...]:
        folders = [parent for parent in reversed(path.parents) if parent.parts]
        there = itertools.takewhile(self._root.exists, folders)
        return tuple(str(folder) for folder in folders[len(list(there)) :])

    def _forget(self, path: PurePosixPath) -> None:
        for known in [known for known in self._digests if known == path or path in known.parents]:
            del self._digests[known]
