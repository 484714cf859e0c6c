"""Finds the session files of other programs on this machine.

Laws: only existing files are listed, and none is opened: the code that opens a file checks that it
is a regular file. Links to folders are not followed. A program's own environment variables for its
folder take precedence over the default location.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from lamina.adapters.formats.opencode_store import is_storage

# Extensions of files that may contain requests.
SUFFIXES = (".jsonl", ".json", ".har", ".db", ".ndjson", ".log")
# Store folders that contain no sessions.
_SKIPPED = (
    "node_modules", ".git", ".obsidian", ".trash", "blobs", "todos", "shell-snapshots",
    "file-history", "memory",
)  # fmt: skip

OnError = Callable[[OSError], None]


class AgentStore(Struct, frozen=True, kw_only=True):
    """A program and the folder, or file, where it keeps sessions."""

    program: str
    place: Path
    pattern: str


def find_stores(home: Path, environment: Mapping[str, str]) -> list[AgentStore]:
    """Find the stores on this machine."""
    config = environment.get("XDG_CONFIG_HOME") or str(home / ".config")
    data = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share")
    claude = environment.get("CLAUDE_CONFIG_DIR")
    claude_homes = [Path(claude)] if claude else [home / ".claude", Path(config) / "claude"]
    codex = Path(environment.get("CODEX_HOME") or home / ".codex")
    places = [
        *(("Claude Code", folder / "projects", "**/*.jsonl") for folder in claude_homes),
        ("Codex", codex / "sessions", "**/rollout-*.jsonl"),
        ("Codex", codex / "archived_sessions", "**/rollout-*.jsonl"),
        ("pi", home / ".pi" / "agent" / "sessions", "**/*.jsonl"),
        ("OpenCode", data / "opencode" / "opencode.db", ""),
        ("OpenCode", data / "opencode" / "storage", ""),
        ("Copilot CLI", home / ".copilot" / "session-state", "**/*.jsonl"),
        ("Gemini CLI", home / ".gemini" / "tmp", "*/chats/**/session-*.json*"),
    ]
    return [
        AgentStore(program=program, place=place, pattern=pattern)
        for program, place, pattern in places
        if place.exists()
    ]


def store_files(store: AgentStore) -> list[Path]:
    """List the files of a store by name; a folder that is read as a whole counts as one."""
    if not store.pattern or store.place.is_file():
        return [store.place]
    return sorted(path for path in store.place.glob(store.pattern) if path.is_file())


def files_under(
    place: Path, suffixes: tuple[str, ...] = SUFFIXES, on_error: OnError | None = None
) -> list[Path]:
    """List the files that may contain requests, in a folder and its subfolders; an OpenCode storage
    folder is read as a whole. `on_error` is called for folders that cannot be listed."""
    if not place.is_dir():
        return [place]
    return sorted(_walk(place, suffixes, on_error))


def _walk(folder: Path, suffixes: tuple[str, ...], on_error: OnError | None) -> Iterator[Path]:
    if is_storage(folder):
        yield folder
        return
    for parent, folders, names in os.walk(folder, onerror=on_error):
        here = Path(parent)
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in list(folders):
            if is_storage(here / name):
                folders.remove(name)
                yield here / name
        for name in names:
            if name.lower().endswith(suffixes):
                yield here / name
