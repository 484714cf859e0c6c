"""Files of skills, read when a model asks for them.

Law: no path leads out of a skill's folder, neither by its parts nor by links. What is not text, or
too long, is refused with a reason.
"""

import os
import stat
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Any

import anyio.to_thread

from lamina.tools.limits import cut_output, fail
from lamina.tools.offered_tool import NO_SERVER, offer_tool
from lamina.values.agent import Skill
from lamina.values.tool import OfferedTool, ToolOutput, Toolset

READ_SKILL_FILE = "read_skill_file"
MOST_BYTES = 10_000_000
_MOST_LISTED = 200
_DESCRIPTION = (
    "Reads a file of a skill, by its path inside the skill's folder. The path of a folder, as '.', "
    "lists the files in it."
)


class _FileRefused(Exception):
    """Why a file is not read."""


class SkillTools:
    """One tool for the files of all skills. It reads only what a person put there, so it needs no
    permission."""

    def __init__(self, skills: Sequence[Skill]) -> None:
        self._folders = {skill.name: Path(skill.folder) for skill in skills}

    async def toolset(self) -> Toolset:
        return Toolset(tools=(self._offered(),) if self._folders else ())

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        if name != READ_SKILL_FILE:
            return fail(f"There is no tool {name!r} of skills")
        skill, path = arguments.get("skill"), arguments.get("path")
        if not isinstance(skill, str) or not isinstance(path, str):
            return fail("'skill' and 'path' have to be texts")
        if skill not in self._folders:
            near = get_close_matches(skill, self._folders, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(self._folders)}"
            return fail(f"There is no skill {skill!r}; {hint}")
        try:
            text = await anyio.to_thread.run_sync(_read, self._folders[skill], path)
        except _FileRefused as refused:
            return fail(f"{path!r} of the skill {skill!r} {refused}")
        except OSError as error:
            return fail(f"{path!r} of the skill {skill!r} cannot be read: {error.strerror}")
        return cut_output(text)

    def _offered(self) -> OfferedTool:
        schema = {
            "type": "object",
            "properties": {
                "skill": {"type": "string", "enum": sorted(self._folders)},
                "path": {"type": "string", "description": "As references/forms.md."},
            },
            "required": ["skill", "path"],
            "additionalProperties": False,
        }
        tool = offer_tool(NO_SERVER, READ_SKILL_FILE, _DESCRIPTION, schema, "free")
        assert isinstance(tool, OfferedTool)
        return tool


def _read(folder: Path, path: str) -> str:
    target = _resolve_path(folder, path)
    if target.is_dir():
        return _list_folder(folder, target)
    # The last part is never followed: it was not a link when it was checked.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with os.fdopen(os.open(target, flags | getattr(os, "O_BINARY", 0)), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise _FileRefused("is not a file")
        if status.st_size > MOST_BYTES:
            limit = f"{MOST_BYTES // 1_000_000} MB"
            raise _FileRefused(f"has {status.st_size:,} bytes, over the limit of {limit}")
        data = file.read(MOST_BYTES)
    if b"\0" in data:
        raise _FileRefused("is not text")
    return data.decode("utf-8-sig", "replace")


def _resolve_path(folder: Path, path: str) -> Path:
    """The file that a path leads to, with links followed, if it is inside the folder."""
    relative = PurePosixPath(path.replace("\\", "/"))
    has_drive = ":" in (relative.parts[0] if relative.parts else "")
    if relative.is_absolute() or ".." in relative.parts or "\0" in path or has_drive:
        raise _FileRefused("is no path inside of its folder")
    root = os.path.realpath(folder)
    target = Path(os.path.realpath(os.path.join(root, relative)))
    if not target.is_relative_to(root):
        raise _FileRefused("leads out of its folder and is not read")
    if not target.exists():
        near = get_close_matches(str(relative), _list_files(Path(root)), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "; the path '.' lists what there is"
        raise _FileRefused(f"does not exist{hint}")
    return target


def _list_files(folder: Path) -> list[str]:
    paths: list[str] = []
    for place, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
        for name in sorted(names):
            if len(paths) > _MOST_LISTED:
                return paths
            if not name.startswith("."):
                paths.append((Path(place) / name).relative_to(folder).as_posix())
    return paths


def _list_folder(folder: Path, target: Path) -> str:
    files = _list_files(target)
    inside = target.relative_to(os.path.realpath(folder))
    paths = [(PurePosixPath(inside.as_posix()) / file).as_posix() for file in files[:_MOST_LISTED]]
    more = ["…"] if len(files) > _MOST_LISTED else []
    return "\n".join((*paths, *more)) or "(no files)"
