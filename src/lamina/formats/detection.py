"""Which format a file has, and its session.

Law: the content decides, not the name. Each object of the file votes for the formats it could be
of; the format with most votes reads the whole file.
"""

from collections.abc import Callable

from msgspec import Struct

from lamina.errors import UsageError
from lamina.formats.claude_code import import_claude_code, looks_like_claude_code
from lamina.formats.codex import import_codex, looks_like_codex
from lamina.formats.copilot_cli import import_copilot_cli, looks_like_copilot_cli
from lamina.formats.imported_session import ImportedSession
from lamina.formats.json_lines import JsonLine, JsonLinesFile, Object, parse_json, read_lines
from lamina.formats.opencode import import_opencode, looks_like_opencode
from lamina.formats.pi import import_pi, looks_like_pi
from lamina.formats.request_log import import_request_log, looks_like_request_log


class Format(Struct, frozen=True, kw_only=True):
    name: str
    looks: Callable[[Object], bool]
    read: Callable[[JsonLinesFile, str], ImportedSession]


FORMATS = (
    Format(name="OpenCode", looks=looks_like_opencode, read=import_opencode),
    Format(name="pi", looks=looks_like_pi, read=import_pi),
    Format(name="Claude Code", looks=looks_like_claude_code, read=import_claude_code),
    Format(name="Codex", looks=looks_like_codex, read=import_codex),
    Format(name="Copilot CLI", looks=looks_like_copilot_cli, read=import_copilot_cli),
    Format(name="request log", looks=looks_like_request_log, read=import_request_log),
)
# Enough to tell; a file of 100,000 lines is not looked at twice.
_VOTERS = 200


def import_session(data: bytes, *, name: str, session: str) -> ImportedSession:
    """The session in a file of another system, as entries of a session with the id `session`.

    Raises:
        UsageError: the content is of no format that is known; `name` is what the error calls it.
    """
    text = _read(data)
    lines = text.lines
    votes = {each.name: sum(each.looks(line.value) for line in lines[:_VOTERS]) for each in FORMATS}
    chosen = max(FORMATS, key=lambda each: votes[each.name])
    if not votes[chosen.name]:
        tried = ", ".join(each.name for each in FORMATS)
        seen = f"{len(lines)} JSON objects" if lines else "no JSON object"
        raise UsageError(
            f"{name!r} is not a session in a format that can be imported: {seen} in it, none of "
            f"them of these formats: {tried}. Give a session file of one of these"
        )
    return chosen.read(text, session)


def _read(data: bytes) -> JsonLinesFile:
    """A document over many lines is one object; everything else is read line by line."""
    head = data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith(b"{") and head[1:].lstrip(b" \t").startswith((b"\n", b"\r")):
        try:
            value, _ = parse_json(data.lstrip(b"\xef\xbb\xbf").strip())
        except ValueError:
            value = None
        if isinstance(value, dict):
            return JsonLinesFile(records=(JsonLine(number=1, value=value),), problems=())
    return read_lines(data)
