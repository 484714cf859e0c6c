"""What a model may do in a workspace: look, search, change, and take a change back.

Law: nothing is lost. A change that is not clear, or that was made for a file as it no longer is,
changes nothing; what a change takes away is kept first; and everything goes through the root, so
nothing outside it is ever touched. The docstrings are what a model is told.
"""

import contextlib
import functools
import itertools
import os
import re
import stat
import threading
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Concatenate, ParamSpec, TypeVar

from msgspec.structs import replace

from lamina.errors import UsageError
from lamina.workspace.file_actions import grep
from lamina.workspace.file_actions.grep import GrepSearch
from lamina.workspace.file_actions.line_finder import PATTERN_SECONDS
from lamina.workspace.file_actions.persona import WORKSPACE_PERSONA
from lamina.workspace.file_actions.text_edit import edit_text, say_lines
from lamina.workspace.file_actions.trash import (
    Deed,
    DeedKind,
    Trash,
    content_digest,
    digest_of,
    new_deed,
)
from lamina.workspace.file_actions.undo import find_deed, take_back
from lamina.workspace.file_actions.view import (
    HASH_LETTERS,
    has_control,
    is_text,
    is_utf8,
    plural,
    short_hash,
    show_file,
    show_folder,
    show_name,
)
from lamina.workspace.paths import FileChanged, PathRefused, clean_path, is_hidden
from lamina.workspace.root import MAX_FILE_BYTES, Root

__all__ = ["WORKSPACE_PERSONA", "FileActions"]

_HASH = re.compile(r"[0-9a-f]{8,64}")

P = ParamSpec("P")
R = TypeVar("R")


def _told(
    method: Callable[Concatenate["FileActions", P], R],
) -> Callable[Concatenate["FileActions", P], R]:
    """What the root refuses is told as an error."""

    @functools.wraps(method)
    def wrapped(self: "FileActions", /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except FileChanged as refusal:
            raise UsageError(f"{refusal.detail}; nothing was changed: read it again") from None
        except PathRefused as refusal:
            raise UsageError(refusal.detail) from None

    return wrapped


def _changes(
    method: Callable[Concatenate["FileActions", P], R],
) -> Callable[Concatenate["FileActions", P], R]:
    """One change at a time; a model may call several tools at once."""

    @functools.wraps(method)
    def wrapped(self: "FileActions", /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._lock:
            return method(self, *args, **kwargs)

    return _told(wrapped)


class FileActions:
    """The tools on one root. `trash` is a folder in which removed and replaced files are kept; if
    none is given, `.lamina/trash` in the root. `on_change` is told every path that changed.
    `seconds` is how long a regular expression may take."""

    def __init__(
        self,
        root: Root,
        *,
        trash: str | os.PathLike[str] | None = None,
        on_change: Callable[[str], None] | None = None,
        seconds: float = PATTERN_SECONDS,
    ) -> None:
        self._root = root
        if trash is not None:
            try:
                os.makedirs(trash, exist_ok=True)
            except OSError as error:
                raise UsageError(f"trash {os.fspath(trash)!r} cannot be made: {error}") from error
        self._trash = Trash(root, None if trash is None else Root(trash))
        self._on_change = on_change or (lambda _: None)
        self._seconds = seconds
        # What was last seen of each file, so that a forgotten hash protects all the same.
        self._seen: dict[PurePosixPath, str] = {}
        self._lock = threading.Lock()

    @_told
    def ls(self, path: str = "", recursive: bool = False) -> str:
        """Lists what is in a folder: folders end with a slash, files have their size in bytes.
        Hidden files are not listed.

        Args:
            path: The folder, relative to the workspace; leave it out for the workspace itself.
            recursive: Whether to list all files in the folders below, too.
        """
        if not stat.S_ISDIR(self._root.stat(path).st_mode):
            raise UsageError(f"{path} is a file; read it, or list the folder that it is in")
        unread: list[str] = []
        found = tuple(self._root.walk(path, unread)) if recursive else self._root.list(path)
        return show_folder(found, unread, whole_paths=recursive)

    @_told
    def read(self, path: str, start: int = 1, end: int | None = None) -> str:
        """Reads a text file, or some of its lines. The first line of the result tells which lines
        these are and the file's hash, which edit and write take as read_hash; the file's own text
        follows exactly as it is.

        Args:
            path: The file, relative to the workspace.
            start: The first line to read, counted from 1.
            end: The last line to read; leave it out to read on to the end.
        """
        wanted = self._path(path)
        data, _ = self._root.read(wanted)
        shown = show_file(str(wanted), data, start, end)
        self._seen[wanted] = digest_of(data)
        return shown

    @_changes
    def write(
        self, path: str, content: str, overwrite: bool = False, read_hash: str | None = None
    ) -> str:
        """Writes a whole text file; folders on the way are made. A file that exists is only
        replaced with overwrite=true. To change a part of a file, use edit.

        Args:
            path: The file, relative to the workspace.
            content: All that the file is to hold.
            overwrite: Whether a file that exists may be replaced.
            read_hash: The hash that read gave for the file. If the file holds something else by
                now, nothing is written.
        """
        wanted = self._new_path(path)
        data = _encoded(content, "the content")
        if len(data) > MAX_FILE_BYTES:
            raise UsageError(
                f"the content has {len(data):,} bytes; at most {MAX_FILE_BYTES:,} may be"
            )
        old = self._content(wanted)
        if old is not None and not overwrite:
            raise UsageError(
                f"{wanted} exists already ({len(old):,} bytes); use edit to change a part of it, "
                f"or overwrite=true to replace all of it"
            )
        self._check_fresh(wanted, old, read_hash)
        if old == data:
            return f"{show_name(str(wanted))} holds exactly that already; nothing was changed"
        deed = self._put("write", wanted, old, data)
        what = "made" if old is None else "replaced"
        return f"{what} {self._say(wanted, data, deed)}"

    @_changes
    def edit(
        self,
        path: str,
        old: str,
        new: str,
        replace_all: bool = False,
        read_hash: str | None = None,
    ) -> str:
        """Replaces a piece of text in a file by another; everything else stays as it is. The old
        text has to be in the file exactly once, or replace_all has to be true. Read the file first.

        Args:
            path: The file, relative to the workspace.
            old: The text to replace, exactly as it stands in the file; with lines around it if it
                would not be unique.
            new: The text to put there; empty to take the old text out.
            replace_all: Whether to replace it wherever it is in the file.
            read_hash: The hash that read gave for the file. If the file holds something else by
                now, nothing is changed.
        """
        wanted = self._path(path)
        data, _ = self._root.read(wanted)
        _encoded(old, "the old text")
        _encoded(new, "the new text")
        if not is_text(data) or not is_utf8(data):
            raise UsageError(f"{wanted} is not UTF-8 text and is not edited")
        self._check_fresh(wanted, data, read_hash)
        edited = edit_text(str(wanted), data.decode(), old, new, replace_all=replace_all)
        result = edited.text.encode()
        if len(result) > MAX_FILE_BYTES:
            raise UsageError(
                f"{wanted} would have {len(result):,} bytes; the limit is {MAX_FILE_BYTES:,}"
            )
        deed = self._put("edit", wanted, data, result)
        where = f"{plural(edited.count, 'place')}, first in {say_lines(edited.lines)}"
        return f"edited {self._say(wanted, result, deed)} ({where})"

    @_changes
    def touch(self, path: str) -> str:
        """Makes an empty file, or marks a file that exists as changed now.

        Args:
            path: The file, relative to the workspace.
        """
        wanted = self._new_path(path)
        if self._root.exists(wanted):
            self._root.touch(wanted)
            self._on_change(str(wanted))
            return f"{show_name(str(wanted))} is marked as changed now; what it holds is the same"
        deed = self._put("touch", wanted, None, b"")
        return f"made {self._say(wanted, b'', deed)}"

    @_changes
    def mv(self, source: str, target: str) -> str:
        """Moves or renames a file or a folder; folders on the way are made. Nothing may be at the
        new path yet.

        Args:
            source: What to move, relative to the workspace.
            target: Its whole new path, relative to the workspace, with its name.
        """
        old, new = self._path(source), self._new_path(target, may_be_folder=True)
        is_folder = stat.S_ISDIR(self._root.stat(old).st_mode)
        if old == new or old in new.parents:
            raise UsageError(f"{old} cannot be moved into itself ({new})")
        if self._root.exists(new) and not self._is_same(old, new):
            raise UsageError(
                f"{new} exists already; nothing was moved: give the whole new path, with a name "
                f"that is free"
            )
        deed = replace(
            new_deed("mv"),
            path=str(old),
            target=str(new),
            after="" if is_folder else content_digest(self._root, old),
            is_folder=is_folder,
            folders=self._missing_folders(new),
        )
        self._do(deed, lambda: self._move(old, new))
        return f"moved {show_name(str(old))} to {show_name(str(new))}; undo id {deed.id}"

    @_changes
    def rm(self, path: str) -> str:
        """Removes a file, or a folder that is empty. It is kept aside, and undo brings it back.

        Args:
            path: The file or the empty folder, relative to the workspace.
        """
        wanted = self._path(path)
        is_folder = stat.S_ISDIR(self._root.stat(wanted).st_mode)
        deed = replace(new_deed("rm"), path=str(wanted), is_folder=is_folder)
        if not is_folder:
            deed = replace(deed, kept=deed.id)
            self._do(deed, lambda: self._trash.take(wanted, deed.kept))
        else:
            inside = self._root.list(wanted, hidden=True)
            if inside:
                count = "1 entry" if len(inside) == 1 else f"{len(inside):,} entries"
                raise UsageError(
                    f"{wanted} is not empty ({count}, hidden ones included); nothing was removed: "
                    f"remove or move what is in it first"
                )
            self._do(deed, lambda: self._root.remove(wanted))
        self._seen.pop(wanted, None)
        self._on_change(str(wanted))
        return f"removed {show_name(str(wanted))}; undo id {deed.id}"

    @_told
    def grep(
        self,
        pattern: str,
        path: str = "",
        glob: str = "",
        regex: bool = False,
        ignore_case: bool = True,
        context: int = 0,
        limit: int = 100,
    ) -> str:
        """Finds lines in text files. Each is given as path:line: text. Case is ignored unless
        ignore_case=false.

        Args:
            pattern: What to find within a line: plain text, or with regex=true a regular
                expression as Python has them.
            path: A folder to search in, with all below it, or one file; leave it out for the whole
                workspace.
            glob: Only files whose path matches, as *.md or notes/**/*.py.
            regex: Whether the pattern is a regular expression.
            ignore_case: Whether upper and lower case are the same.
            context: How many lines to show before and after each.
            limit: How many lines that match to show; the others are counted.
        """
        search = GrepSearch(pattern, regex, ignore_case, context, limit, self._seconds)
        return grep.grep_files(self._root, search, path, glob)

    @_changes
    def undo(self, id: str | None = None) -> str:
        """Takes back a change that write, edit, touch, mv or rm made: the last one that was not
        taken back yet, or one by its undo id. A file that was changed since is left as it is.

        Args:
            id: The undo id of the change; leave it out for the last one.
        """
        deeds, problems = self._trash.deeds()
        deed = find_deed(deeds, id)
        said = take_back(self._root, self._trash, deed)
        for path in filter(None, (deed.path, deed.target)):
            self._forget(PurePosixPath(path))
            self._on_change(path)
        return "\n".join([said, *(f"[{problem}]" for problem in problems[:5])])

    def _path(self, path: str) -> PurePosixPath:
        wanted = clean_path(path)
        if is_hidden(wanted):
            raise UsageError(f"{path!r} is hidden; hidden files and folders are left alone")
        return wanted

    def _new_path(self, path: str, *, may_be_folder: bool = False) -> PurePosixPath:
        wanted = self._path(path)
        if path.endswith("/") and not may_be_folder:
            raise UsageError(f"{path!r} is the name of a folder; give the name of a file")
        if has_control(path):
            raise UsageError(f"{path!r} has a line break or another control character in it")
        return wanted

    def _content(self, path: PurePosixPath) -> bytes | None:
        try:
            return self._root.read(path)[0]
        except PathRefused as refusal:
            if refusal.reason == "missing":
                return None
            raise

    def _check_fresh(self, path: PurePosixPath, data: bytes | None, read_hash: str | None) -> None:
        """That the file is what was read of it; what was read last counts if nothing is said."""
        if read_hash and not _HASH.fullmatch(read_hash):
            raise UsageError(
                f"read_hash {read_hash!r} is not a hash; give the one that read told, "
                f"{HASH_LETTERS} letters and digits, or leave it out"
            )
        if data is None and not read_hash:
            return
        digest = digest_of(data)
        expected = read_hash or self._seen.get(path, digest)
        if data is None or not digest.startswith(expected):
            now = "it is gone" if data is None else f"its hash is {short_hash(digest)}"
            raise UsageError(
                f"{path} changed since it was read ({now}, not {short_hash(expected)}); nothing "
                f"was changed: read it again first"
            )

    def _put(self, do: DeedKind, path: PurePosixPath, old: bytes | None, data: bytes) -> Deed:
        deed = replace(
            new_deed(do),
            path=str(path),
            before=digest_of(old),
            after=digest_of(data),
            folders=() if old is not None else self._missing_folders(path),
        )
        if old is not None:
            deed = replace(deed, kept=deed.id)
            self._keeping(lambda: self._trash.keep(deed.kept, old))

        def put() -> None:
            self._root.make_folder(path.parent)
            expected = None if old is None else deed.before
            self._root.write(path, data, replace=old is not None, expected=expected)

        self._do(deed, put)
        self._seen[path] = deed.after
        self._on_change(str(path))
        return deed

    def _do(self, deed: Deed, act: Callable[[], None]) -> None:
        self._keeping(lambda: self._trash.record(deed))
        try:
            act()
        except BaseException:
            with contextlib.suppress(PathRefused):
                self._trash.record(replace(new_deed("failed"), about=deed.id))
            raise

    def _keeping(self, act: Callable[[], None]) -> None:
        try:
            act()
        except PathRefused as refusal:
            raise UsageError(
                f"what a change takes away cannot be kept ({refusal.detail}); nothing was changed"
            ) from None

    def _move(self, old: PurePosixPath, new: PurePosixPath) -> None:
        self._root.make_folder(new.parent)
        self._root.rename(old, new)
        for path in [path for path in self._seen if path == old or old in path.parents]:
            self._seen[new / path.relative_to(old)] = self._seen.pop(path)
        self._on_change(str(old))
        self._on_change(str(new))

    def _is_same(self, old: PurePosixPath, new: PurePosixPath) -> bool:
        return old.parent == new.parent and os.path.samestat(
            self._root.stat(old), self._root.stat(new)
        )

    def _missing_folders(self, path: PurePosixPath) -> tuple[str, ...]:
        folders = [parent for parent in reversed(path.parents) if parent.parts]
        there = itertools.takewhile(self._root.exists, folders)
        return tuple(str(folder) for folder in folders[len(list(there)) :])

    def _forget(self, path: PurePosixPath) -> None:
        for each in [each for each in self._seen if each == path or path in each.parents]:
            del self._seen[each]

    def _say(self, path: PurePosixPath, data: bytes, deed: Deed) -> str:
        return (
            f"{show_name(str(path))}: {plural(len(data), 'byte')}, hash {short_hash(deed.after)}; "
            f"undo id {deed.id}"
        )


def _encoded(text: str, what: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{what} has half a character at {error.start}, which no file can hold; leave it out"
        ) from None
    if b"\0" in data:
        raise UsageError(f"{what} has a NUL character in it; text files hold none")
    return data
