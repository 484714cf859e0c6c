"""Detects which program wrote a file, and reads its requests.

Laws: the content decides, not the name. Reading any file raises only disk errors; a file of unknown
format is reported as such.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct

from lamina.adapters.files.own_file import open_regular_file
from lamina.adapters.formats import claude_code, codex, copilot_cli, gemini_cli, opencode, pi
from lamina.adapters.formats.imported_session import ImportProblem
from lamina.adapters.formats.json_lines import (
    JsonLine,
    Object,
    list_in,
    parse_json,
    read_lines,
    readable_text,
    split_line,
)
from lamina.adapters.formats.opencode_store import is_database, read_database, read_storage
from lamina.adapters.formats.request_log import SOURCE as LOG
from lamina.adapters.formats.request_log import unwrap_line
from lamina.doctor.observed_request import OWN, ObservedRequest
from lamina.doctor.requests.logged_requests import HAR, LogReader, har_lines, looks_like_har
from lamina.doctor.requests.record_lines import ReadProblems, RecordLines
from lamina.doctor.requests.transcripts import (
    read_claude_code,
    read_codex,
    read_copilot_cli,
    read_gemini_cli,
    read_opencode,
    read_pi,
)
from lamina.errors import LaminaError

# The lines that identify a file, and the number of bytes read from them.
_VOTERS, _HEAD = 20, 4 * 1024 * 1024
# Limits on lines, objects and bytes of broken lines, if the first lines do not identify it.
_MAX_LINES, _MAX_VOTERS, _MAX_BROKEN = 1_000, 200, 1024 * 1024
# The end of a journal line, before its checksum.
_CHECKSUM = b',"sum":"'
# Documents are read at once; no known program writes larger ones.
MAX_DOCUMENT = 512 * 1024 * 1024


class RequestFile(Struct, frozen=True, kw_only=True):
    """The contents of a file. `source` is empty if unknown."""

    path: str
    source: str = ""
    requests: tuple[ObservedRequest, ...] = ()
    problems: tuple[ImportProblem, ...] = ()
    # `problems` lists only the first of them.
    problem_count: int = 0


class _LineForm(Struct, frozen=True, kw_only=True):
    """The format of a program that writes sessions line by line."""

    source: str
    matches: Callable[[Object], bool]
    read: Callable[[BinaryIO, str, ReadProblems], Sequence[ObservedRequest]]


def read_request_file(path: Path, name: str = "") -> RequestFile:
    """Read the requests in one file. `name` is the session name if the file has none.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    problems = ReadProblems()
    name = name or path.stem
    with open_regular_file(path) as stream:
        try:
            source, requests = _read(path, name, stream, problems)
        except LaminaError as error:
            problems.add(None, "unreadable", str(error))
            source, requests = "", []
    if source and not requests:
        problems.add(None, "no_usage", "the file reports no usage")
    return RequestFile(
        path=str(path), source=source, requests=tuple(requests),
        problems=tuple(problems.reports), problem_count=problems.count,
    )  # fmt: skip


def read_request_bytes(stream: BinaryIO, name: str) -> RequestFile:
    """Read the requests in a stream other than a file, such as standard input."""
    problems = ReadProblems()
    source, requests = _read(None, name, stream, problems)
    return RequestFile(
        path=name, source=source, requests=tuple(requests), problems=tuple(problems.reports),
        problem_count=problems.count,
    )  # fmt: skip


def read_request_folder(path: Path) -> RequestFile:
    """Read the requests in a folder that is read as a whole: OpenCode's older storage."""
    problems = ReadProblems()
    found = [r for d in read_storage(path) for r in read_opencode(d, "", problems)]
    return RequestFile(
        path=str(path), source=opencode.SOURCE, requests=tuple(found),
        problems=tuple(problems.reports), problem_count=problems.count,
    )  # fmt: skip


def _read(
    path: Path | None, name: str, stream: BinaryIO, problems: ReadProblems
) -> tuple[str, Sequence[ObservedRequest]]:
    head = stream.read(_HEAD)
    stream.seek(0)
    if is_database(head):
        documents = read_database(path) if path else ()
        found = [r for document in documents for r in read_opencode(document, name, problems)]
        return opencode.SOURCE, found
    lines = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", _MAX_LINES)[:_MAX_LINES]
    if _is_journal(lines):
        # Imported only here, because most files are not journals.
        from lamina.core.journal import read_journal
        from lamina.doctor.requests.own_requests import read_own_requests

        journal = read_journal(stream.read(), name)
        return OWN, [*read_own_requests(journal, name, name)]
    form = _elect(_whole_objects(lines[:_VOTERS]))
    if form is None:
        try:
            return _read_document(_parse_document(stream), name, problems)
        except _NoDocument as error:
            # Records may be concatenated, or follow other content.
            form = _elect(_scattered_objects(lines))
            if form is None:
                problems.add(None, error.what, error.detail)
                return "", []
            stream.seek(0)
    return form.source, form.read(stream, name, problems)


def _is_journal(lines: Sequence[bytes]) -> bool:
    sealed = [line for line in lines if _CHECKSUM in line[-len(_CHECKSUM) - 12 :]]
    if not sealed:
        return False
    from lamina.core.journal.lines import is_proven

    return any(is_proven(line) for line in sealed[:8])


def _elect(voters: Sequence[Object]) -> _LineForm | None:
    """Return the format whose lines resemble these objects; None if none does."""
    votes = [sum(map(form.matches, voters)) for form in _LINE_FORMS]
    best = max(votes)
    return _LINE_FORMS[votes.index(best)] if best else None


def _is_logged(value: Object) -> bool:
    return unwrap_line(value) is not None


def _whole_objects(lines: Iterable[bytes]) -> list[Object]:
    return [value for line in lines if (value := _parse_object(line.strip())) is not None]


def _parse_object(text: bytes) -> Object | None:
    try:
        value, _ = parse_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _scattered_objects(lines: Iterable[bytes]) -> list[Object]:
    """Return the objects in lines that may each contain none, one or several."""
    found: list[Object] = []
    room = _MAX_BROKEN
    for line in lines:
        if len(found) >= _MAX_VOTERS:
            break
        if (value := _parse_object(line.strip())) is not None:
            found.append(value)
        elif room > 0 and b"{" in line:
            text = readable_text(line[:room])
            room -= len(line)
            pieces = [piece for piece in split_line(text, ()) if piece.is_object]
            found += _whole_objects(p.text.encode() for p in pieces[: _MAX_VOTERS - len(found)])
    return found


def _read_gemini(stream: BinaryIO, name: str, problems: ReadProblems) -> list[ObservedRequest]:
    file = read_lines(stream.read(MAX_DOCUMENT))
    for problem in file.problems:
        problems.add(problem.line, problem.what, problem.detail)
    return [*read_gemini_cli(file.lines, name, problems)]


def _read_log(stream: BinaryIO, name: str, problems: ReadProblems) -> list[ObservedRequest]:
    reader = LogReader(name, problems)
    for number, value in RecordLines(stream, dict, problems):
        reader.add(number, value)
    return reader.requests


# Formats that match other objects too easily come last.
_LINE_FORMS = (
    _LineForm(source=pi.SOURCE, matches=pi.looks_like_pi, read=read_pi),
    _LineForm(
        source=claude_code.SOURCE, matches=claude_code.looks_like_claude_code, read=read_claude_code
    ),
    _LineForm(source=codex.SOURCE, matches=codex.looks_like_codex, read=read_codex),
    _LineForm(
        source=copilot_cli.SOURCE, matches=copilot_cli.looks_like_copilot_cli, read=read_copilot_cli
    ),
    _LineForm(source=gemini_cli.SOURCE, matches=gemini_cli.looks_like_gemini, read=_read_gemini),
    _LineForm(source=LOG, matches=_is_logged, read=_read_log),
)


class _NoDocument(Exception):
    """Raised if a file is not one JSON value."""

    def __init__(self, what: str, detail: str) -> None:
        super().__init__(detail)
        self.what, self.detail = what, detail


def _parse_document(stream: BinaryIO) -> Any:
    """Parse a file that consists of one JSON value, over any number of lines.

    Raises:
        _NoDocument: it is not one.
    """
    data = stream.read(MAX_DOCUMENT + 1)
    if len(data) > MAX_DOCUMENT:
        raise _NoDocument("too_large", "not lines of JSON, and too large for one document")
    try:
        return msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise _NoDocument("unknown", "not a known file format") from None


def _read_document(
    value: Any, name: str, problems: ReadProblems
) -> tuple[str, Sequence[ObservedRequest]]:
    if isinstance(value, list):
        return _read_entries(value, name, problems)
    if not isinstance(value, dict):
        problems.add(None, "unknown", "a single JSON value that is not an object")
        return "", []
    line = JsonLine(number=1, index=0, value=value)
    if looks_like_har(value):
        reader = LogReader(name, problems, HAR, reports_others=False)
        for number, entry in har_lines(value, problems):
            reader.add(number, entry)
        return HAR, reader.requests
    if opencode.looks_like_opencode(value):
        return opencode.SOURCE, [*read_opencode(value, name, problems)]
    if gemini_cli.looks_like_gemini(value) and list_in(value, "messages"):
        return gemini_cli.SOURCE, [*read_gemini_cli([line], name, problems)]
    if _is_logged(value):
        return _read_entries([value], name, problems)
    problems.add(None, "unknown", "not a known document format")
    return "", []


def _read_entries(
    values: Sequence[object], name: str, problems: ReadProblems
) -> tuple[str, Sequence[ObservedRequest]]:
    reader = LogReader(name, problems)
    for number, value in enumerate(values, 1):
        reader.add(number, value)
    return LOG if reader.requests else "", reader.requests
