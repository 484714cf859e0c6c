"""Which program left a file behind, and the requests in it.

Laws: the content decides, not the name. Whatever the file is, reading it raises nothing but what
the disk raises; a file of no known form says so.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from lamina.audit.doctor.observed import OWN, ObservedRequest
from lamina.errors import LaminaError
from lamina.formats.claude_code import looks_like_claude_code
from lamina.formats.codex import looks_like_codex
from lamina.formats.copilot_cli import looks_like_copilot_cli
from lamina.formats.gemini_sessions import looks_like_gemini
from lamina.formats.imported_session import ImportProblem
from lamina.formats.json_fields import Object, list_in
from lamina.formats.json_lines import JsonLine, parse_json, read_lines
from lamina.formats.opencode import looks_like_opencode
from lamina.formats.opencode_store import is_database, read_database
from lamina.formats.pi import looks_like_pi
from lamina.formats.requests import claude_code, codex, copilot_cli, gemini_cli, har, opencode, pi
from lamina.formats.requests.request_file import ReadProblems, RecordLines
from lamina.formats.requests.request_log import SOURCE as LOG
from lamina.formats.requests.request_log import LogReader, unwrap_line

# So many lines, and so much of them, tell what a file is.
_VOTERS, _HEAD = 20, 4 * 1024 * 1024
# What a line of a journal ends in, before its checksum.
_CHECKSUM = b',"sum":"'
# A document is read at once; a larger one is none of ours.
MAX_DOCUMENT = 512 * 1024 * 1024

_ReadStream = Callable[[BinaryIO, str, ReadProblems], list[ObservedRequest]]


class RequestFile(Struct, frozen=True, kw_only=True):
    """What a file holds. `source` is empty where nobody knows it."""

    path: str
    source: str = ""
    requests: tuple[ObservedRequest, ...] = ()
    problems: tuple[ImportProblem, ...] = ()
    # Of which the first are listed.
    problem_count: int = 0


_STREAMS: tuple[tuple[str, Callable[[Object], bool], _ReadStream], ...] = (
    (pi.SOURCE, looks_like_pi, pi.read_pi),
    (claude_code.SOURCE, looks_like_claude_code, claude_code.read_claude_code),
    (codex.SOURCE, looks_like_codex, codex.read_codex),
    (copilot_cli.SOURCE, looks_like_copilot_cli, copilot_cli.read_copilot_cli),
)


def read_request_file(path: Path, name: str = "") -> RequestFile:
    """The requests of one file. `name` is what its sessions are called where it names none.

    Raises:
        OSError: it cannot be read.
    """
    problems = ReadProblems()
    name = name or path.stem
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
        stream.seek(0)
        try:
            source, requests = _read(path, name, stream, head, problems)
        except LaminaError as error:
            problems.add(None, "unreadable", str(error))
            source, requests = "", []
    if source and not requests:
        problems.add(None, "no_usage", "a session whose file reports no usage")
    return RequestFile(
        path=str(path), source=source, requests=tuple(requests),
        problems=tuple(problems.reports), problem_count=problems.count,
    )  # fmt: skip


def read_request_bytes(stream: BinaryIO, name: str) -> RequestFile:
    """The requests of what is not a file, such as standard input."""
    problems = ReadProblems()
    head = stream.read(_HEAD)
    stream.seek(0)
    source, requests = _read(None, name, stream, head, problems)
    return RequestFile(
        path=name, source=source, requests=tuple(requests), problems=tuple(problems.reports),
        problem_count=problems.count,
    )  # fmt: skip


def _read(
    path: Path | None, name: str, stream: BinaryIO, head: bytes, problems: ReadProblems
) -> tuple[str, Sequence[ObservedRequest]]:
    if is_database(head):
        documents = read_database(path) if path else ()
        found = [r for document in documents for r in opencode.read_opencode(document, name)]
        return opencode.SOURCE, found
    lines = head.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if any(_CHECKSUM in line[-len(_CHECKSUM) - 12 :] for line in lines[:8]):
        # Loaded where there is a journal: most files are none.
        from lamina.audit.doctor.own_requests import read_own_requests
        from lamina.journal import read_journal
        from lamina.journal.lines import is_proven

        if any(is_proven(line) for line in lines[:8]):
            journal = read_journal(stream.read(), name)
            return OWN, [*read_own_requests(journal, name, name)]
    voters = _voters(lines)
    if not voters:
        return _read_document(stream, name, problems)
    votes = [sum(map(matches, voters)) for _, matches, _ in _STREAMS]
    others = [sum(map(matches, voters)) for matches in (looks_like_gemini, _is_logged)]
    best = max(*votes, *others)
    if best == 0:
        return _read_document(stream, name, problems)
    if best in votes:
        source, _, read = _STREAMS[votes.index(best)]
        return source, read(stream, name, problems)
    if others[0] == best:
        return gemini_cli.SOURCE, [*gemini_cli.read_gemini_cli(_json_lines(stream, problems), name)]
    reader = LogReader(name, problems)
    for number, value in RecordLines(stream, dict, problems):
        reader.add(number, value)
    return LOG, reader.requests


def _is_logged(value: Object) -> bool:
    return unwrap_line(value) is not None


def _voters(lines: Sequence[bytes]) -> list[Object]:
    found: list[Object] = []
    for line in lines[:_VOTERS]:
        try:
            value, _ = parse_json(line.strip())
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def _json_lines(stream: BinaryIO, problems: ReadProblems) -> list[JsonLine]:
    file = read_lines(stream.read(MAX_DOCUMENT))
    for problem in file.problems:
        problems.add(problem.line, problem.what, problem.detail)
    return list(file.lines)


def _read_document(
    stream: BinaryIO, name: str, problems: ReadProblems
) -> tuple[str, Sequence[ObservedRequest]]:
    """A file that is one JSON value over many lines, or nothing that is known."""
    data = stream.read(MAX_DOCUMENT + 1)
    if len(data) > MAX_DOCUMENT:
        problems.add(None, "too_large", "not lines of JSON, and too large for one document")
        return "", []
    try:
        value = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        problems.add(None, "unknown", "no file of a form that is known here")
        return "", []
    if isinstance(value, list):
        return _read_entries(value, name, problems)
    if not isinstance(value, dict):
        problems.add(None, "unknown", "one JSON value, and no object")
        return "", []
    line = JsonLine(number=1, index=0, value=value)
    if har.looks_like_har(value):
        reader = LogReader(name, ReadProblems(), har.SOURCE)
        for number, entry in har.har_lines(value):
            reader.add(number, entry)
        return har.SOURCE, reader.requests
    if looks_like_opencode(value):
        return opencode.SOURCE, [*opencode.read_opencode(value, name)]
    if looks_like_gemini(value) and list_in(value, "messages"):
        return gemini_cli.SOURCE, [*gemini_cli.read_gemini_cli([line], name)]
    if _is_logged(value):
        return _read_entries([value], name, problems)
    problems.add(None, "unknown", "no document of a form that is known here")
    return "", []


def _read_entries(
    values: Sequence[object], name: str, problems: ReadProblems
) -> tuple[str, Sequence[ObservedRequest]]:
    reader = LogReader(name, problems)
    for number, value in enumerate(values, 1):
        reader.add(number, value)
    return LOG if reader.requests else "", reader.requests
