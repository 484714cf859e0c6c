"""Files of skills, read when a model asks for them.

Law: no path leads out of a skill's folder, neither by its parts nor by links. A file that is not
text, or too long, is refused with a reason.
"""

import stat
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Any

import anyio.to_thread

from lamina.adapters.files.linked_root import LinkedRoot
from lamina.adapters.files.paths import LeadsOut, PathRefused
from lamina.adapters.tools.offered_tool import NO_SERVER, offer_tool
from lamina.adapters.tools.result_limits import cut_output, fail
from lamina.core.values.agent import Skill
from lamina.core.values.tool import OfferedTool, ToolOutput, Toolset
from lamina.errors import UsageError

READ_SKILL_FILE = "read_skill_file"
MAX_BYTES = 10_000_000
_MAX_LISTED = 200
_DESCRIPTION = (
    "Reads a file of a skill, by its path inside the skill's folder. The path of a folder, as '.', "
    "lists the files in it."
)


class _FileRefused(Exception):
    """The reason why a file is not read."""


class SkillTools:
    """One tool for the files of all skills. It reads only what a person put there, so it needs no
    permission. `root` is the folder through which they are opened; by default each skill's own."""

    def __init__(self, skills: Sequence[Skill], root: str | None = None) -> None:
        self._folders = {skill.name: Path(skill.folder) for skill in skills}
        # Skills that only people may choose are not named to the model, but their files can be read
        # once added by hand.
        self._hides_some = not all(skill.model_invocable for skill in skills)
        self._root = root

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
            text = await anyio.to_thread.run_sync(_read, self._root, self._folders[skill], path)
        except _FileRefused as refused:
            return fail(f"{path!r} of the skill {skill!r} {refused}")
        except (PathRefused, UsageError) as refusal:
            return fail(f"{path!r} of the skill {skill!r} cannot be read: {refusal}")
        return cut_output(text)

    def _offered(self) -> OfferedTool:
        schema = {
            "type": "object",
            "properties": {
                "skill": {"type": "string"}
                if self._hides_some
                else {"type": "string", "enum": sorted(self._folders)},
                "path": {"type": "string", "description": "As references/forms.md."},
            },
            "required": ["skill", "path"],
            "additionalProperties": False,
        }
        tool = offer_tool(NO_SERVER, READ_SKILL_FILE, _DESCRIPTION, schema, "free")
        assert isinstance(tool, OfferedTool)
        return tool


def _read(place: str | None, folder: Path, path: str) -> str:
    root = LinkedRoot(place or folder)
    target = _resolve_path(root, folder, path)
    status = root.status(target)
    if stat.S_ISDIR(status.st_mode):
        return _list_folder(root, folder, target)
    if not stat.S_ISREG(status.st_mode):
        raise _FileRefused("is not a regular file")
    if status.st_size > MAX_BYTES:
        limit = f"{MAX_BYTES // 1_000_000} MB"
        raise _FileRefused(f"has {status.st_size:,} bytes, over the limit of {limit}")
    data = root.read(target, MAX_BYTES)
    if b"\0" in data:
        raise _FileRefused("is not text")
    return data.decode("utf-8-sig", "replace")


def _resolve_path(root: LinkedRoot, folder: Path, path: str) -> Path:
    """Return the file that a path leads to, with links followed, if it is inside the folder."""
    relative = PurePosixPath(path.replace("\\", "/"))
    has_drive = ":" in (relative.parts[0] if relative.parts else "")
    if relative.is_absolute() or ".." in relative.parts or "\0" in path or has_drive:
        raise _FileRefused("is no path inside of its folder")
    try:
        real = root.real_path(folder / relative)
        is_inside = real.is_relative_to(root.real_path(folder))
    except LeadsOut:
        is_inside = False
    if not is_inside:
        raise _FileRefused("leads out of its folder and is not read")
    # No links from here on: a path that becomes one now is refused.
    target = root.path / real
    if not root.is_there(target):
        near = get_close_matches(str(relative), _list_files(root, folder), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "; the path '.' lists what there is"
        raise _FileRefused(f"does not exist{hint}")
    return target


def _list_files(root: LinkedRoot, folder: Path) -> list[str]:
    """Return the files in a folder and below, by their paths from there, without hidden ones."""
    paths: list[str] = []
    folders = [PurePosixPath()]
    while folders and len(paths) <= _MAX_LISTED:
        here = folders.pop()
        inner: list[PurePosixPath] = []
        for name, status in root.entries(folder / here):
            if name.startswith("."):
                continue
            if stat.S_ISDIR(status.st_mode):
                inner.append(here / name)
            else:
                paths.append(str(here / name))
        folders += reversed(inner)
    return paths


def _list_folder(root: LinkedRoot, folder: Path, target: Path) -> str:
    files = _list_files(root, target)
    inside = root.real_path(target).relative_to(root.real_path(folder))
    paths = [str(inside / file) for file in files[:_MAX_LISTED]]
    more = ["…"] if len(files) > _MAX_LISTED else []
    return "\n".join((*paths, *more)) or "(no files)"
