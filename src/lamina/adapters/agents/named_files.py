"""Finds the files named in a command, and computes digests of their content.

Laws: words of a command are matched to files generously: one file too many only costs a person one
more question. Nothing is run, and nothing blocks. Files loaded by the named files are not included.
"""

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from lamina.adapters.files.paths import expand_home
from lamina.core.values.agent import NamedFile

MEGABYTE = 1_000_000
MAX_BYTES = 500 * MEGABYTE
MAX_FILES = 5_000
MAX_WORDS = 20_000
# Separators of words, even inside one argument: `--env-file=.env`, `sh -c "cd x && node y"`.
_BETWEEN = re.compile(r"[\s=:,;|&<>()'\"`]+")
_VARIABLE = re.compile(r"\$\{?\w*\}?|%\w+%")
# Suffixes that interpreters append to a name.
_SUFFIXES = (".js", ".mjs", ".cjs", ".ts", ".py", ".sh")
_ENTRIES = ("__main__.py", "main.py", "index.js", "index.mjs", "index.cjs", "index.ts")
_NODE = ("package.json", ".npmrc", "deno.json", "deno.jsonc", "bunfig.toml")
_PYTHON = ("pyproject.toml", "uv.toml", ".python-version")
_COMPOSE = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
# Files that a program reads by default.
_READS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("node", "npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx"), _NODE),
    **dict.fromkeys(("deno", "tsx", "ts-node"), _NODE),
    **dict.fromkeys(("uv", "uvx", "poetry", "pdm", "hatch", "pipx"), _PYTHON),
    **dict.fromkeys(("make", "gmake"), ("Makefile", "makefile", "GNUmakefile")),
    **dict.fromkeys(("docker", "docker-compose", "podman"), ("Dockerfile", *_COMPOSE)),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "cargo": ("Cargo.toml", "build.rs"),
    "go": ("go.mod",),
    "bundle": ("Gemfile",),
    "rake": ("Rakefile",),
    "composer": ("composer.json",),
    "direnv": (".envrc",),
    "mise": ("mise.toml", ".mise.toml"),
    "nix": ("flake.nix", "default.nix", "shell.nix"),
}
_PROJECT_FILES = tuple(dict.fromkeys(name for names in _READS.values() for name in names))
# Where programs look for a project's commands.
_COMMANDS = ("node_modules/.bin", ".venv/bin", "venv/bin", "vendor/bin")
# Files in a folder that are not run unless named explicitly.
_TEXTS = {
    ".md", ".markdown", ".txt", ".rst", ".adoc", ".org", ".csv", ".tsv", ".pdf", ".png", ".jpg",
    ".jpeg", ".gif", ".webp", ".svg", ".ico", ".mp3", ".mp4", ".wav", ".log", ".css", ".woff2",
}  # fmt: skip
_RUNNABLE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


class TooManyFiles(Exception):
    """The command names more files than can be checked."""


class NamedFiles:
    """The files of a server whose command starts in `start`. A file named by its full path belongs
    to the machine unless it is below one of `roots`."""

    def __init__(self, server: str, start: Path, roots: Sequence[Path]) -> None:
        self._server = server
        self._start = start
        self._roots = tuple(os.path.realpath(root) for root in (start, *roots))
        self._digests: dict[str, str] = {}
        self._folders: set[str] = set()
        self._bytes = 0

    def read(self, command: str, args: Sequence[str], env: Iterable[str]) -> tuple[NamedFile, ...]:
        """Return all named files with their digests.

        Raises:
            TooManyFiles: the files are too many or too large.
        """
        words = tuple(dict.fromkeys(_words((command, *args, *env))))
        if len(words) > MAX_WORDS:
            raise TooManyFiles(f"its commands have more than {MAX_WORDS:,} words")
        for word in words:
            self._add_word(word, self._start)
        for module in _modules(args):
            self._add_word(module.partition(".")[0], self._start)
        for program in words:
            for name in _READS.get(Path(program).name, ()):
                self._add_project_file(name, words)
        return tuple(
            NamedFile(server=self._server, path=path, digest=digest)
            for path, digest in sorted(self._digests.items())
        )

    def _add_word(self, word: str, folder: Path) -> None:
        plain = _VARIABLE.sub("", word)
        candidates = (word, plain, plain.lstrip("/\\"), *(f"{word}{end}" for end in _SUFFIXES))
        for candidate in dict.fromkeys(candidates):
            self._add(candidate, folder)
        if word not in (".", "..") and os.path.basename(word) == word:
            for commands in _COMMANDS:
                self._add(f"{commands}/{word}", folder)

    def _add(self, name: str, folder: Path) -> None:
        if not name or "\0" in name or len(name) > 4096:
            return
        path = os.path.normpath(folder / expand_home(name))
        if os.path.isabs(expand_home(name)) and not self._is_brought(path):
            return
        if os.path.isdir(path):
            self._add_folder(path)
        elif os.path.lexists(path):
            self._add_file(path)

    def _is_brought(self, path: str) -> bool:
        """Check whether a path is below a root, as written or with links followed."""
        ways = (path, os.path.realpath(path))
        return any(Path(way).is_relative_to(root) for root in self._roots for way in ways)

    def _add_project_file(self, name: str, words: Sequence[str]) -> None:
        """Add the closest file with that name, searching from the start folder up to the roots."""
        for folder in (self._start, *self._start.parents):
            if not self._is_brought(str(folder)):
                return
            if (path := folder / name).is_file():
                self._add_file(str(path))
                if name == "package.json":
                    self._add_scripts(path, words)
                return

    def _add_scripts(self, path: Path, words: Sequence[str]) -> None:
        """Add the files named in the package scripts that are run."""
        package = _read_package(path)
        scripts = package.get("scripts")
        names = {f"{before}{word}" for word in words for before in ("", "pre", "post")}
        if isinstance(scripts, dict):
            texts = [text for name, text in scripts.items() if name in names]
            for word in _words(text for text in texts if isinstance(text, str)):
                self._add_word(word, path.parent)

    def _add_folder(self, path: str) -> None:
        real = os.path.realpath(path)
        if any(Path(root).is_relative_to(real) for root in self._roots):
            # Adding every file would be too much: add only the entry points for running the folder.
            self._add_entries(Path(path))
            return
        if real in self._folders:
            return
        self._folders.add(real)
        try:
            entries = sorted(os.scandir(path), key=lambda entry: entry.name)
        except OSError as error:
            self._digests[path] = _unreadable(error)
            return
        for entry in entries:
            if entry.is_dir():
                if entry.name != ".git":
                    self._add_folder(entry.path)
            elif not _is_left_out(entry):
                self._add_file(entry.path)

    def _add_entries(self, folder: Path) -> None:
        for name in (*_PROJECT_FILES, *_ENTRIES):
            if (folder / name).is_file():
                self._add_file(str(folder / name))
        package = _read_package(folder / "package.json")
        commands = package.get("bin")
        mains = commands.values() if isinstance(commands, dict) else (commands,)
        for main in (package.get("main"), package.get("module"), *mains):
            if isinstance(main, str):
                self._add_word(main, folder)

    def _add_file(self, path: str) -> None:
        if path in self._digests:
            return
        if len(self._digests) >= MAX_FILES:
            raise TooManyFiles(f"its commands name more than {MAX_FILES:,} files")
        self._digests[path] = self._digest(path)

    def _digest(self, path: str) -> str:
        digest = hashlib.sha256()
        try:
            with _open_file(path) as file:
                while chunk := file.read(MEGABYTE):
                    self._bytes += len(chunk)
                    if self._bytes > MAX_BYTES:
                        limit = f"{MAX_BYTES // MEGABYTE} MB"
                        raise TooManyFiles(f"its commands name files of more than {limit}")
                    digest.update(chunk)
        except OSError as error:
            return _unreadable(error)
        return digest.hexdigest()


def _open_file(path: str) -> BinaryIO:
    """Open a file for reading.

    Raises:
        OSError: it is not a file, or cannot be read.
    """
    # A pipe, for example, would block.
    file = os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a file")
    return file


def _unreadable(error: OSError) -> str:
    return f"({error.strerror or 'unreadable'})"


def _words(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield text
        yield from filter(None, _BETWEEN.split(text))


def _modules(args: Sequence[str]) -> Iterator[str]:
    """Yield the modules given to `python -m`."""
    for place, arg in enumerate(args):
        if arg == "-m" and place + 1 < len(args):
            yield args[place + 1]
        elif arg.startswith("-m") and arg[2:].replace(".", "").isidentifier():
            yield arg[2:]


def _read_package(path: Path) -> dict[str, object]:
    try:
        with _open_file(str(path)) as file:
            package = json.loads(file.read(MEGABYTE))
    except (OSError, ValueError, RecursionError):
        return {}
    return package if isinstance(package, dict) else {}


def _is_left_out(entry: os.DirEntry[str]) -> bool:
    """Check whether a file in a folder is a text, a picture, or bytecode that Python writes itself
    and checks against its source."""
    suffix = os.path.splitext(entry.name)[1].lower()
    try:
        if suffix == ".pyc" and Path(entry.path).parent.name == "__pycache__":
            with _open_file(entry.path) as file:
                # PEP 552: 1 means an unchecked hash.
                return int.from_bytes(file.read(8)[4:], "little") != 1
        return suffix in _TEXTS and not entry.stat().st_mode & _RUNNABLE
    except OSError:
        return False
