"""The requests of many files, each once, by session: what the doctor looks at.

Law: a file that cannot be read is named and passed over, and costs the others nothing.
"""

import io
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from lamina.audit.doctor.observed import OWN, ObservedRequest
from lamina.errors import LaminaError, UsageError
from lamina.formats.agent_stores import files_under, find_stores, store_files
from lamina.formats.opencode_store import read_storage
from lamina.formats.requests import opencode
from lamina.formats.requests.source_file import RequestFile, read_request_bytes, read_request_file

STDIN = "-"


class FileProblem(Struct, frozen=True, kw_only=True):
    """What could not be read, and where."""

    file: str
    line: int | None
    what: str
    detail: str


class ReadFiles(Struct, frozen=True, kw_only=True):
    """What was looked at."""

    files: int = 0
    bytes: int = 0
    # Files of each program, by its name; those of no known form are under "".
    sources: dict[str, int] = {}
    problems: tuple[FileProblem, ...] = ()
    problem_count: int = 0


Track = Callable[[Sequence[Path]], Iterable[Path]]


class RequestCollector:
    """The requests of many files, each once, by session."""

    def __init__(self) -> None:
        self._sessions: dict[str, list[ObservedRequest]] = {}
        self._homes: dict[str, str] = {}
        self._sources: dict[str, int] = {}
        self._problems: list[FileProblem] = []
        self._problem_count = self._files = self._bytes = 0

    def add_path(self, path: Path) -> None:
        """Reads a file, or a folder that is read as a whole."""
        try:
            if path.is_dir():
                found = [r for d in read_storage(path) for r in opencode.read_opencode(d, "")]
                file = RequestFile(path=str(path), source=opencode.SOURCE, requests=tuple(found))
            else:
                self._bytes += path.stat().st_size
                file = read_request_file(path)
        except (OSError, MemoryError) as error:
            self._files += 1
            reason = getattr(error, "strerror", None) or str(error)
            self.report(str(path), None, "unreadable", f"cannot be read: {reason}")
            return
        self.add(file)

    def add(self, file: RequestFile) -> None:
        self._files += 1
        self._sources[file.source] = self._sources.get(file.source, 0) + 1
        for problem in file.problems:
            self.report(file.path, problem.line, problem.what, problem.detail)
        self._problem_count += file.problem_count - len(file.problems)
        for request in file.requests:
            if request.id in self._homes:
                continue  # a session that was resumed repeats what came before
            # It belongs with the request that it goes on from, whatever its file calls itself.
            home = self._homes.get(request.parent, request.session) if request.parent else (
                request.session
            )  # fmt: skip
            self._homes[request.id] = home
            self._sessions.setdefault(home, []).append(request)

    def report(self, file: str, line: int | None, what: str, detail: str) -> None:
        self._problem_count += 1
        if len(self._problems) < 200:
            self._problems.append(FileProblem(file=file, line=line, what=what, detail=detail))

    @property
    def sessions(self) -> dict[str, list[ObservedRequest]]:
        return self._sessions

    def read_files(self) -> ReadFiles:
        return ReadFiles(
            files=self._files,
            bytes=self._bytes,
            sources=dict(sorted(self._sources.items())),
            problems=tuple(self._problems),
            problem_count=self._problem_count,
        )


def default_files() -> list[Path]:
    """The sessions that other programs keep on this machine."""
    stores = find_stores(Path.home(), os.environ)
    return [path for store in stores for path in store_files(store)]


async def collect(paths: Sequence[str], track: Track) -> RequestCollector:
    """The requests of these files and folders; without any, of every program on this machine that
    is known here, and of Lamina's own sessions.

    Raises:
        UsageError: a path does not exist.
    """
    collector = RequestCollector()
    files: list[Path] = []
    for name in paths:
        if name == STDIN:
            stream = io.BytesIO(sys.stdin.buffer.read())
            collector.add(read_request_bytes(stream, "stdin"))
            continue
        files += _named_files(name)
    if not paths:
        files = default_files()
        await _collect_own(collector)
    for path in track(files):
        collector.add_path(path)
    return collector


def _named_files(name: str) -> list[Path]:
    place = Path(name)
    if not place.exists():
        raise UsageError(
            f"{name!r} does not exist; give files or folders of sessions, or none to look where "
            f"programs keep them"
        )
    return files_under(place)


async def _collect_own(collector: RequestCollector) -> None:
    """Adds the sessions that Lamina keeps, of every workspace."""
    from lamina.audit.doctor.own_requests import read_own_requests
    from lamina.wiring.stores import list_everywhere

    for found in await list_everywhere():
        if found.problem:
            collector.report(found.name, None, "unreadable", found.problem)
        for listed in found.sessions:
            name = f"{found.name}/{listed.session}"
            try:
                journal = await found.store.read(listed.session)
            except LaminaError as error:
                collector.report(name, None, "unreadable", str(error))
                continue
            requests = tuple(read_own_requests(journal, listed.session, name))
            collector.add(RequestFile(path=name, source=OWN, requests=requests))
