"""Undoes changes to a workspace.

Law: a change is undone only where everything is still as the change left it; later changes stay,
and content that the undo itself removes is saved. A change that never happened, or was already
reverted by hand, counts as undone.
"""

import contextlib
from collections.abc import Sequence
from pathlib import PurePosixPath

from msgspec.structs import replace

from lamina.adapters.files.paths import PathRefused, clean_path, is_hidden
from lamina.adapters.files.root import Root
from lamina.adapters.workspace.file_actions.trash import Deed, Trash, content_digest, new_deed
from lamina.adapters.workspace.file_actions.view import show_name
from lamina.errors import UsageError


def find_deed(deeds: Sequence[Deed], id: str | None) -> Deed:
    """Return the deed with this id, or the last one that was not undone.

    Raises:
        UsageError: the deed does not exist, or was already undone.
    """
    over = {deed.about: deed.do for deed in deeds if deed.about}
    if id is None:
        for deed in reversed(deeds):
            if not deed.about and deed.id not in over:
                return deed
        raise UsageError("there is nothing to undo: no change was made that was not taken back")
    for deed in reversed(deeds):
        if deed.id == id and deed.about:
            raise UsageError(f"{id!r} is itself an undo, which is not taken back")
        if deed.id == id and id in over:
            why = "was undone already" if over[id] == "undo" else "failed and changed nothing"
            raise UsageError(f"the change {id!r} {why}")
        if deed.id == id:
            return deed
    raise UsageError(f"there is no change {id!r}; give the undo id that the change told")


def take_back(root: Root, trash: Trash, deed: Deed) -> str:
    """Undo a deed, record that, and return what was done.

    Raises:
        UsageError: a file was changed since; everything stays as it is.
    """
    for folder in filter(None, (deed.path, deed.target, *deed.folders)):
        # Other programs may write in the folder of the list.
        if is_hidden(clean_path(folder)):
            raise UsageError(f"the change {deed.id!r} is not ours: it names {folder!r}")
    record = replace(new_deed("undo"), about=deed.id, path=deed.path)
    match deed.do:
        case "mv":
            message = _move_back(root, deed)
        case "rm":
            message = _bring_back(root, trash, deed)
        case _:
            message, record = _put_back(root, trash, deed, record)
    trash.record(record)
    return message


def _put_back(root: Root, trash: Trash, deed: Deed, record: Deed) -> tuple[str, Deed]:
    path, name = PurePosixPath(deed.path), show_name(deed.path)
    now = content_digest(root, path)
    if now == deed.before:
        return f"{name} is already as it was before", record
    if now != deed.after:
        hint = f"; what it held before is kept in {trash.path_of(deed.kept)}" if deed.kept else ""
        what = "was removed or moved" if not now else "was changed"
        raise UsageError(f"{name} {what} since and is left as it is; nothing was undone{hint}")
    record = replace(record, kept=record.id)
    if not deed.kept:
        trash.take(path, record.kept)
        _remove_folders(root, deed)
        return f"undone: {name}, which was made, is gone again", record
    content = trash.content(deed.kept, deed.before)
    trash.keep(record.kept, root.read(path)[0])
    root.write(path, content, replace=True, expected=deed.after)
    return f"undone: {name} holds again what it held before", record


def _bring_back(root: Root, trash: Trash, deed: Deed) -> str:
    path, name = PurePosixPath(deed.path), show_name(deed.path)
    is_kept = bool(deed.kept) and trash.has(deed.kept)
    if root.exists(path):
        if not is_kept:
            return f"{name} is there already"
        raise UsageError(
            f"something else is at {name} by now and is left as it is; nothing was undone; what "
            f"was removed is kept in {trash.path_of(deed.kept)}"
        )
    if deed.is_folder:
        root.make_folder(path)
        return f"undone: the empty folder {name} is there again"
    if not is_kept:
        raise UsageError(f"{name} is no longer in the trash ({trash.path_of(deed.kept)})")
    root.make_folder(path.parent)
    trash.give_back(deed.kept, path)
    return f"undone: {name} is there again"


def _move_back(root: Root, deed: Deed) -> str:
    path, target = PurePosixPath(deed.path), PurePosixPath(deed.target)
    old, new = show_name(deed.path), show_name(deed.target)
    if not root.exists(target):
        if root.exists(path):
            return f"{old} is already where it was before"
        raise UsageError(f"{new} was removed or moved since; nothing was undone")
    if not deed.is_folder and content_digest(root, target) != deed.after:
        raise UsageError(f"{new} was changed since and is left where it is; nothing was undone")
    root.make_folder(path.parent)
    try:
        root.rename(target, path)
    except PathRefused as refusal:
        raise UsageError(f"nothing was undone: {refusal.detail}") from None
    _remove_folders(root, deed)
    return f"undone: {new} is {old} again"


def _remove_folders(root: Root, deed: Deed) -> None:
    """Remove folders that were created for it and are empty."""
    for folder in reversed(deed.folders):
        with contextlib.suppress(PathRefused):
            root.remove(folder)
