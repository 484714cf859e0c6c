"""The files of an agent, read and changed through a single guarded door.

Laws: nothing outside the agent's own folder is opened, by whatever name, and only files that an
agent consists of are opened at all. A file is replaced whole, and only if it is unchanged since
it was read; the rest stays byte for byte.
"""

import stat
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path, PurePosixPath
from re import fullmatch
from typing import Literal

from msgspec import Struct

from lamina.adapters.agents.agent_reader import LoadedAgent, load_agent, open_door
from lamina.adapters.agents.agent_yaml import AGENT_FILES
from lamina.adapters.agents.disk import MEGABYTE
from lamina.adapters.agents.fields import UnreadableText
from lamina.adapters.agents.settings_edit import set_value
from lamina.adapters.files.paths import PathRefused, clean_path, is_hidden
from lamina.adapters.files.root import Root
from lamina.adapters.providers.tokens import EncodingCounter
from lamina.apps.wiring.agent_finder import bringer_of
from lamina.core.values.agent import Guide
from lamina.core.values.item import Include
from lamina.errors import UsageError

AgentFileKind = Literal[
    "agent", "persona", "rule", "reference", "memory", "servers", "skill", "other"
]
# Tokens are estimated with this model, whichever model answers in the end.
ENCODING = "o200k_base"
# More than anyone writes by hand.
MAX_BYTES = 2 * MEGABYTE
_NAMED: dict[str, AgentFileKind] = {
    **dict.fromkeys(AGENT_FILES, "agent"), "persona.md": "persona", "memory.md": "memory",
    "mcp.json": "servers",
}  # fmt: skip
_FOLDERS: dict[str, AgentFileKind] = {
    "rules": "rule", "references": "reference", "skills": "skill", "projects": "other",
}  # fmt: skip
_FENCE = "---"


class AgentFile(Struct, frozen=True, kw_only=True):
    """A text file of an agent; `etag` is the sha256 of its bytes."""

    path: str
    text: str
    etag: str
    bytes: int
    tokens: int


class AgentFileRow(Struct, frozen=True, kw_only=True):
    """A file of an agent's folder; `kind` says what an agent reads it as."""

    path: str
    bytes: int
    kind: AgentFileKind


class AgentFiles:
    """The files of the agent at `place`, a folder or a file of a workspace or the user. Every
    method raises `PathRefused` for a path that it does not open."""

    def __init__(self, place: Path, workspace: Path) -> None:
        self._place = place
        self._within = bringer_of(place, workspace)
        self._door = open_door(place, self._within)
        self._root = Root(self._door.path)
        self.is_folder = stat.S_ISDIR(self._door.status(place).st_mode)
        self._folder = place if self.is_folder else place.parent

    def load(self) -> LoadedAgent:
        """Return the agent as it is now.

        Raises:
            UsageError: it no longer exists.
        """
        return load_agent(self._place, self._within)

    def files(self, loaded: LoadedAgent) -> Iterator[AgentFileRow]:
        """Yield the files the agent was read from, and other files of its kinds in the folder."""
        names = {self._inside(Path(path)) for path in loaded.stamps}
        for name in sorted(name for name in names if name):
            try:
                status = self._door.status(self._folder / name)
                self._real(name)
            except PathRefused:
                continue
            if stat.S_ISREG(status.st_mode):
                yield AgentFileRow(
                    path=name, bytes=status.st_size, kind=_kind_of(PurePosixPath(name))
                )

    def file_of(self, guide: Guide) -> tuple[str, int | None]:
        """Return the path of a guide's file in the agent's folder, and its line; empty if it is
        elsewhere."""
        found = fullmatch(r"(?s)(.*?)(?::(\d+))?", guide.place)
        assert found is not None
        return self._inside(Path(found[1])), int(found[2]) if found[2] else None

    def read(self, path: str, loaded: LoadedAgent | None = None) -> AgentFile:
        name = self._allowed(path, loaded)
        data, _ = self._root.read(self._real(name), MAX_BYTES, hidden=True)
        return _file(name, data)

    def write(self, path: str, text: str, etag: str) -> AgentFile:
        """Replace a file that still has this etag, or with an empty etag create a new one.

        Raises:
            FileChanged: it has changed since.
            PathTaken: it already exists.
        """
        name = self._allowed(path, None)
        data = text.encode("utf-8", "strict")
        if len(data) > MAX_BYTES:
            raise PathRefused("refused", f"{name} would have more than {MAX_BYTES:,} bytes")
        real = self._real(name)
        if etag:
            self._root.write(real, data, replace=True, expected=etag, hidden=True)
        else:
            self._root.make_folder(real.parent, hidden=True)
            self._root.write(real, data, replace=False, hidden=True)
        return _file(name, data)

    def delete(self, path: str, etag: str) -> None:
        """Remove the file of a rule or a reference that still has this etag.

        Raises:
            UsageError: it is not the file of a rule or a reference.
            FileChanged: it has changed since.
        """
        loaded = self.load()
        name = self._allowed(path, loaded)
        if name not in {self.file_of(guide)[0] for guide in loaded.agent.guides}:
            raise UsageError(f"{name!r} is not the file of a rule or a reference; not deleted")
        real = self._real(name)
        data, _ = self._root.read(real, MAX_BYTES, hidden=True)
        if sha256(data).hexdigest() != etag:
            # The door compares once more right before it writes, and reports what is wrong.
            self._root.write(real, data, replace=True, expected=etag or "0", hidden=True)
        self._root.remove(real, hidden=True)

    def change_include(self, item: str, include: Include, etag: str) -> None:
        """Set in the file of a rule or a reference when it is part of requests.

        Raises:
            UsageError: there is no such item, or its file cannot express this.
            FileChanged: the file does not match `etag`, if one is given.
        """
        guide = next((guide for guide in self.load().agent.guides if guide.id == item), None)
        if guide is None:
            raise UsageError(f"the agent has no rule or reference {item!r}")
        name, _ = self.file_of(guide)
        if not name or PurePosixPath(name).suffix not in (".md", ".mdt"):
            raise UsageError(
                f"{guide.place or item} has a format that cannot be changed here; edit the file"
            )
        before = self.read(name)
        try:
            text = set_include(before.text, include)
        except UnreadableText as error:
            raise UsageError(f"{name} cannot be changed: {error.problem}") from None
        after = self.write(name, text, etag or before.etag)
        now = next((guide for guide in self.load().agent.guides if guide.id == item), None)
        if now is None or now.include != include:
            self.write(name, before.text, after.etag)
            raise UsageError(
                f"{name} defines elsewhere when {item} is part of requests; edit the file"
            )

    def _allowed(self, path: str, loaded: LoadedAgent | None) -> str:
        """Return a path that may be opened: the agent was read from it, or reads such files."""
        clean = clean_path(path)
        name = str(clean)
        if not self.is_folder and name != self._place.name:
            raise PathRefused("missing", f"{name} is not a file of this agent")
        is_own_form = any(self._door.is_there(self._folder / file) for file in AGENT_FILES)
        is_expected = name in _NAMED or (
            len(clean.parts) > 1 and clean.parts[0] in _FOLDERS and clean.suffix == ".md"
        )
        if is_own_form and is_expected and not is_hidden(clean):
            return name
        stamps = (loaded or self.load()).stamps
        if not any(self._inside(Path(known)) == name for known in stamps):
            raise PathRefused("missing", f"{name} is not a file that this agent reads")
        return name

    def _real(self, name: str) -> PurePosixPath:
        """Return a file's path below the door; never outside the agent's folder."""
        real = self._door.real_path(self._folder / name)
        if not real.is_relative_to(self._door.real_path(self._folder)):
            raise PathRefused("refused", f"{name} leads out of the agent's folder")
        return real

    def _inside(self, path: Path) -> str:
        try:
            name = path.relative_to(self._folder).as_posix()
        except ValueError:
            return ""
        return "" if name == "." else name


def set_include(text: str, include: Include) -> str:
    """Set in a Markdown text's head when it is part of requests; the rest stays as it is.

    Raises:
        UnreadableText: its head cannot be changed.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    rest = text[len(mark) :]
    newline = "\r\n" if "\r\n" in rest else "\n"
    lines = rest.splitlines(keepends=True)
    if not lines or lines[0].rstrip() != _FENCE:
        head = f"{_FENCE}{newline}include: {include}{newline}{_FENCE}{newline}"
        return f"{mark}{head}{rest}"
    end = next((at for at, line in enumerate(lines) if at and line.rstrip() == _FENCE), None)
    if end is None:
        raise UnreadableText("its head is not closed", 1)
    head = set_value("".join(lines[1:end]), ("include",), include)
    return f"{mark}{lines[0]}{head}{''.join(lines[end:])}"


def _kind_of(path: PurePosixPath) -> AgentFileKind:
    if str(path) in _NAMED:
        return _NAMED[str(path)]
    if path.name == "SKILL.md":
        return "skill"
    return _FOLDERS.get(path.parts[0], "other")


def _file(name: str, data: bytes) -> AgentFile:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise PathRefused("unreadable", f"{name} is not UTF-8; convert it first") from None
    return AgentFile(
        path=name,
        text=text,
        etag=sha256(data).hexdigest(),
        bytes=len(data),
        tokens=EncodingCounter(ENCODING).count(text),
    )
