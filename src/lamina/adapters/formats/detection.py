"""Detects the format of a file and imports its session.

Law: the content decides, not the name. Each object of the file votes for the formats it could
belong to; the format with the most votes reads the whole file.
"""

from collections.abc import Callable

from msgspec import Struct

from lamina.adapters.formats.claude_code import import_claude_code, looks_like_claude_code
from lamina.adapters.formats.codex import import_codex, looks_like_codex
from lamina.adapters.formats.copilot_cli import import_copilot_cli, looks_like_copilot_cli
from lamina.adapters.formats.gemini_cli import import_gemini_cli, looks_like_gemini
from lamina.adapters.formats.imported_session import ImportedSession
from lamina.adapters.formats.json_lines import (
    JsonLine,
    JsonLinesFile,
    Object,
    parse_json,
    read_lines,
)
from lamina.adapters.formats.opencode import import_opencode, looks_like_opencode
from lamina.adapters.formats.pi import import_pi, looks_like_pi
from lamina.adapters.formats.request_log import import_request_log, looks_like_request_log
from lamina.errors import UsageError


class _Format(Struct, frozen=True, kw_only=True):
    name: str
    matches: Callable[[Object], bool]
    import_file: Callable[[JsonLinesFile, str], ImportedSession]


_FORMATS = (
    _Format(name="OpenCode", matches=looks_like_opencode, import_file=import_opencode),
    _Format(name="pi", matches=looks_like_pi, import_file=import_pi),
    _Format(name="Claude Code", matches=looks_like_claude_code, import_file=import_claude_code),
    _Format(name="Codex", matches=looks_like_codex, import_file=import_codex),
    _Format(name="Copilot CLI", matches=looks_like_copilot_cli, import_file=import_copilot_cli),
    _Format(name="Gemini CLI", matches=looks_like_gemini, import_file=import_gemini_cli),
    _Format(name="request log", matches=looks_like_request_log, import_file=import_request_log),
)
# Enough for detection; a file of 100,000 lines is not read twice.
_VOTERS = 200


def import_session(data: bytes, *, name: str, session: str) -> ImportedSession:
    """Import the session in another program's file, as entries of a session with id `session`.

    Raises:
        UsageError: the content has no known format; `name` is used for the file in the message.
    """
    file = _read_file(data)
    objects = [line.value for line in file.lines[:_VOTERS]]
    votes = [sum(map(format_.matches, objects)) for format_ in _FORMATS]
    if not any(votes):
        names = ", ".join(format_.name for format_ in _FORMATS)
        content = f"{len(file.lines)} JSON objects" if objects else "no JSON object"
        raise UsageError(
            f"{name!r} is not a session in a known format (it contains {content}). "
            f"Use a session file of one of these: {names}"
        )
    return _FORMATS[votes.index(max(votes))].import_file(file, session)


def _read_file(data: bytes) -> JsonLinesFile:
    """Read a multi-line document as one object, and everything else line by line."""
    head = data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith(b"{") and head[1:].lstrip(b" \t").startswith((b"\n", b"\r")):
        try:
            value, _ = parse_json(data.lstrip(b"\xef\xbb\xbf").strip())
        except ValueError:
            value = None
        if isinstance(value, dict):
            return JsonLinesFile(records=(JsonLine(number=1, index=0, value=value),), problems=())
    return read_lines(data)
