"""Collects requests from many files by session, without duplicates, as input for the doctor.

Law: an unreadable file is reported and skipped, and does not affect the others.
"""

import io
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from anyio.to_thread import run_sync
from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.files.own_file import is_handed_over, open_regular_file, read_handed_over
from lamina.adapters.formats.agent_stores import files_under, find_stores, store_files
from lamina.core.journal import Journal
from lamina.core.ports.store import JournalStore
from lamina.doctor.observed_request import OWN, ObservedRequest
from lamina.doctor.requests.request_files import (
    RequestFile,
    read_request_bytes,
    read_request_file,
    read_request_folder,
)
from lamina.errors import LaminaError, UsageError

STDIN = "-"


class FileProblem(Struct, frozen=True, kw_only=True):
    """A file or line that could not be read."""

    file: str
    line: int | None
    what: str
    detail: str


class ReadFiles(Struct, frozen=True, kw_only=True):
    """The files that were examined."""

    files: int = 0
    bytes: int = 0
    # The number of files per program; "" counts files of unknown format.
    sources: dict[str, int] = {}
    # The contents before filtering by time or session.
    sessions: int = 0
    requests: int = 0
    newest: float | None = None
    # Files and folders given by name; if none, this machine is searched.
    paths: tuple[str, ...] = ()
    problems: tuple[FileProblem, ...] = ()
    problem_count: int = 0


Track = Callable[[Sequence[Path]], Iterable[Path]]


class StoredSession(Protocol):
    """A session as listed by a store."""

    @property
    def session(self) -> str: ...


class StoreListing(Protocol):
    """The sessions in one of Lamina's own stores, or the reason why it cannot be read."""

    @property
    def name(self) -> str: ...
    @property
    def store(self) -> JournalStore: ...
    @property
    def sessions(self) -> Sequence[StoredSession]: ...
    @property
    def problem(self) -> str: ...


ListStores = Callable[[], Awaitable[Sequence[StoreListing]]]


class RequestCollector:
    """A collection of requests from many files by session, each once."""

    def __init__(self, paths: Sequence[str] = ()) -> None:
        self._paths = tuple(paths)
        self._sessions: dict[str, list[ObservedRequest]] = {}
        self._homes: dict[str, str] = {}
        self._sources: dict[str, int] = {}
        self._problems: list[FileProblem] = []
        self._problem_count = self._files = self._bytes = 0

    def add_path(self, path: Path, name: str = "") -> None:
        """Read a file, or a folder that is read as a whole, under the name `name`."""
        try:
            if path.is_dir():
                file = read_request_folder(path)
            else:
                file = read_request_file(path, Path(name).stem)
                self._bytes += path.stat().st_size
                file = replace(file, path=name) if name else file
        except (OSError, MemoryError) as error:
            self._files += 1
            self.report_error(name or path, error)
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
                continue  # a resumed session repeats its earlier requests
            # It belongs with the request it continues, regardless of the session in its file.
            home = self._homes.get(request.parent, request.session) if request.parent else (
                request.session
            )  # fmt: skip
            self._homes[request.id] = home
            self._sessions.setdefault(home, []).append(request)

    def report(self, file: str, line: int | None, what: str, detail: str) -> None:
        self._problem_count += 1
        if len(self._problems) < 200:
            self._problems.append(FileProblem(file=file, line=line, what=what, detail=detail))

    def report_error(self, path: str | Path, error: OSError | MemoryError) -> None:
        reason = getattr(error, "strerror", None) or str(error)
        self.report(str(path), None, "unreadable", f"cannot be read: {reason}")

    @property
    def sessions(self) -> dict[str, list[ObservedRequest]]:
        return self._sessions

    def read_files(self) -> ReadFiles:
        requests = [request for found in self._sessions.values() for request in found]
        return ReadFiles(
            files=self._files,
            bytes=self._bytes,
            sources=dict(sorted(self._sources.items())),
            sessions=len(self._sessions),
            requests=len(requests),
            newest=max((r.at for r in requests if r.at is not None), default=None),
            paths=self._paths,
            problems=tuple(self._problems),
            problem_count=self._problem_count,
        )


class ReceivedFile(Struct, frozen=True, kw_only=True):
    """An uploaded file. Its name is only displayed; no file is opened under it."""

    name: str
    data: bytes


def collect_uploads(files: Sequence[ReceivedFile]) -> RequestCollector:
    """Return the requests in uploaded files. During reading, the files are in a temporary folder
    under neutral names."""
    collector = RequestCollector()
    with TemporaryDirectory(prefix="lamina-doctor-") as folder:
        for number, upload in enumerate(files, 1):
            place = Path(folder, f"file-{number}")
            place.write_bytes(upload.data)
            shown = upload.name.replace("\\", "/").rpartition("/")[2][:200] or f"file {number}"
            collector.add_path(place, shown)
    return collector


def collect_journal(journal: Journal, session: str) -> RequestCollector:
    """Return the requests of one of Lamina's own sessions."""
    from lamina.doctor.requests.own_requests import read_own_requests

    collector = RequestCollector()
    requests = tuple(read_own_requests(journal, session, session))
    collector.add(RequestFile(path=session, source=OWN, requests=requests))
    return collector


async def collect_machine(
    report: Callable[[int, int], None], list_stores: ListStores
) -> RequestCollector:
    """Collect everything that `collect` finds without paths. `report` receives the number of files
    read and the total; the caller may cancel between two files."""
    collector = RequestCollector()
    files = await run_sync(default_files)
    report(0, len(files))
    await _collect_own(collector, list_stores)
    for number, path in enumerate(files, 1):
        await run_sync(collector.add_path, path)
        report(number, len(files))
    return collector


def default_files() -> list[Path]:
    """Return the session files of other programs on this machine."""
    stores = find_stores(Path.home(), os.environ)
    return [path for store in stores for path in store_files(store)]


async def collect(paths: Sequence[str], track: Track, list_stores: ListStores) -> RequestCollector:
    """Collect the requests in these files and folders; without any, those of every known program on
    this machine and of Lamina's own sessions.

    Raises:
        UsageError: a path does not exist, or is neither a folder nor a file that can be read.
    """
    collector = RequestCollector(paths)
    files: list[Path] = []
    for name in paths:
        if name == STDIN:
            stream = io.BytesIO(sys.stdin.buffer.read())
            collector.add(read_request_bytes(stream, "stdin"))
            continue
        if is_handed_over(name):
            collector.add(read_request_bytes(io.BytesIO(read_handed_over(name)), "pipe"))
            continue
        files += _named_files(name, collector)
    if not paths:
        files = default_files()
        await _collect_own(collector, list_stores)
    for path in track(files):
        collector.add_path(path)
    return collector


def _named_files(name: str, collector: RequestCollector) -> list[Path]:
    place = Path(name)
    try:
        if not place.is_dir():
            open_regular_file(place).close()
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(
            f"{name!r} does not exist; name session files or folders, or none to search where "
            f"programs keep them"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{name!r} cannot be read: {reason}") from None

    def report(error: OSError) -> None:
        collector.report_error(error.filename or name, error)

    return files_under(place, on_error=report)


async def _collect_own(collector: RequestCollector, list_stores: ListStores) -> None:
    """Add Lamina's own sessions from all workspaces."""
    from lamina.doctor.requests.own_requests import read_own_requests

    for found in await list_stores():
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
