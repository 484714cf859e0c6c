"""Determines the files that a conversation read and modified, from its tool calls and attachments.

Laws: only names and arguments of calls are used, never the text of results. Files that cannot be
determined are left out, without an error. A file that was modified is not listed as read.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from lamina.core.values.item import file_of
from lamina.core.values.message import Context, Message, ToolCall, ToolResult

Access = Literal["read", "modified"]
# The effect of a tool on a file; or its command decides, or it names files inside a patch, or moves
# them from one place to another.
Manner = Literal["read", "modified", "command", "patch", "move", "copy"]

_NAMES: dict[Manner, str] = {
    "read": """read read_file read_files read_text_file read_media_file read_multiple_files
        read_many_files read_note read_notebook notebook_read fs_read view view_file view_image cat
        head tail open open_file get_file get_file_contents get_file_content file_read load_file
        show_file""",
    "modified": """write write_file write_to_file write_note fs_write file_write save save_file
        create create_file create_note new_file put_file edit edit_file edit_note edit_notebook
        notebook_edit file_edit multi_edit multiedit str_replace string_replace replace
        replace_in_file replace_string_in_file search_replace search_and_replace
        insert insert_edit_into_file insert_in_file append append_file append_to_file
        create_or_update_file update_file modify_file
        delete delete_file remove remove_file rm unlink trash""",
    "command": "str_replace_based_edit_tool str_replace_editor text_editor editor",
    "patch": "apply_patch patch apply_diff",
    "move": "mv move move_file rename rename_file",
    "copy": "cp copy copy_file",
}
_MANNERS: dict[str, Manner] = {
    name: manner for manner, names in _NAMES.items() for name in names.split()
}
_READING_COMMANDS = {"view", "read", "open", "cat"}
_PATH_KEYS = (
    "path", "file_path", "filepath", "filename", "file_name", "file", "target_file",
    "notebook_path", "absolute_path", "relative_path", "relative_workspace_path",
)  # fmt: skip
_LIST_KEYS = ("paths", "file_paths", "files", "filenames")
_FROM_KEYS = ("source", "src", "from", "from_path", "source_path", "old_path", "old_name")
_TO_KEYS = (
    "destination", "dest", "dst", "to", "to_path", "target", "target_path", "destination_path",
    "new_path", "new_name",
)  # fmt: skip
_PATCH_KEYS = ("input", "patch", "patch_text", "diff")
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): *(\S.*?) *\r?$", re.M)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SPACES = re.compile(r"__+|[./:]")


class TouchedFiles(Struct, frozen=True, kw_only=True):
    """Paths in order of first appearance."""

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()


NO_FILES = TouchedFiles()


def touched_files(messages: Sequence[Message]) -> TouchedFiles:
    """Return the files that these messages read and modified. A call that failed did neither."""
    failed_calls = _failed_calls(messages)
    paths: dict[Access, dict[str, None]] = {"read": {}, "modified": {}}
    for place, message in enumerate(messages):
        for number, block in enumerate(message.blocks):
            match block:
                case ToolCall() if (place, number) not in failed_calls:
                    for access, path in _touched_by(block):
                        paths[access][path] = None
                case Context():
                    paths["read"].update(dict.fromkeys(_attached_by(block)))
                case _:
                    pass
    return _files_of(paths["read"], paths["modified"])


def merge_files(first: TouchedFiles, second: TouchedFiles) -> TouchedFiles:
    """Return the files of both, those of the first one first."""
    return _files_of((*first.read, *second.read), (*first.modified, *second.modified))


def _files_of(read: Iterable[str], modified: Iterable[str]) -> TouchedFiles:
    modified_paths = dict.fromkeys(modified)
    only_read = (path for path in dict.fromkeys(read) if path not in modified_paths)
    return TouchedFiles(read=tuple(only_read), modified=tuple(modified_paths))


def _failed_calls(messages: Sequence[Message]) -> set[tuple[int, int]]:
    """Return the places of calls whose result is an error; later calls may reuse an id."""
    waiting: dict[str, tuple[int, int]] = {}
    failed_calls = set()
    for place, message in enumerate(messages):
        for number, block in enumerate(message.blocks):
            match block:
                case ToolCall(id=call):
                    waiting[call] = (place, number)
                case ToolResult(call_id=call, is_error=is_error):
                    call_place = waiting.pop(call, None)
                    if call_place is not None and is_error:
                        failed_calls.add(call_place)
                case _:
                    pass
    return failed_calls


def _touched_by(call: ToolCall) -> Iterator[tuple[Access, str]]:
    manner = _manner_of(call.name)
    if manner is None:
        return
    try:
        arguments = msgspec.json.decode(call.arguments)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return
    if not isinstance(arguments, dict):
        return
    fields = {_snake(key): value for key, value in arguments.items()}
    match manner:
        case "command":
            manner = "read" if str(fields.get("command")) in _READING_COMMANDS else "modified"
        case "patch":
            for key in _PATCH_KEYS:
                if isinstance(fields.get(key), str):
                    yield from (("modified", _tidy(path)) for path in _PATCHED.findall(fields[key]))
            manner = "modified"
        case "move" | "copy":
            source: Access = "modified" if manner == "move" else "read"
            yield from ((source, path) for path in _paths(fields, (*_FROM_KEYS, *_PATH_KEYS)))
            yield from (("modified", path) for path in _paths(fields, _TO_KEYS))
            return
        case _:
            pass
    yield from ((manner, path) for path in _paths(fields, (*_PATH_KEYS, *_LIST_KEYS)))


def _manner_of(name: str) -> Manner | None:
    """Return the effect of a tool of this name, ignoring a server prefix."""
    if manner := _MANNERS.get(_snake(name)):
        return manner
    return _MANNERS.get(_snake(_SPACES.split(name)[-1]))


def _snake(name: str) -> str:
    return _HUMP.sub("_", name).replace("-", "_").lower()


def _paths(fields: dict[str, Any], keys: Iterable[str]) -> Iterator[str]:
    for key in keys:
        value = fields.get(key)
        for part in value if isinstance(value, list) else [value]:
            # Lists of files to read or edit contain paths, or records with a path.
            path = part.get("path", part.get("file_path")) if isinstance(part, dict) else part
            if isinstance(path, str) and _tidy(path):
                yield _tidy(path)


def _tidy(path: str) -> str:
    path = path.strip()
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    return path


def _attached_by(context: Context) -> Iterator[str]:
    return filter(None, (file_of(use.item) for use in context.uses))
