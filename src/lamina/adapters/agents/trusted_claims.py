"""What an agent wants to count beyond its texts, how a person is shown it, and the book of the
folders that a person trusts.

Laws: what was read once is what is digested, shown and used. Texts are no claims: they are read,
whoever wrote them; nor is a setting that is stricter than the default. Trust is in something as
it is: what differs from what was trusted is not trusted.
"""

import hashlib
import json
import shlex
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from lamina.adapters.files.shared_file import SharedFile
from lamina.core.text.characters import is_visible
from lamina.core.text.secrets import find_secrets, redact
from lamina.core.values.agent import Agent, Claims, NamedFile, TrustRecord
from lamina.errors import UsageError

# Values that loosen what keeps a person safe. What only a person may say is never read from a file.
LOOSE_SETTINGS: Mapping[str, tuple[Any, ...]] = {"ask_before_tools": ("never",)}
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
# How many files of a server are shown one by one.
_MAX_SHOWN = 20


def find_claims(
    agent: Agent,
    place: str,
    *,
    own_models: Container[str],
    files: Sequence[NamedFile] = (),
    start: str = "",
    problem: str = "",
) -> Claims:
    """The claims of an agent at a real path. `own_models` are asked on this machine and come from
    nobody's folder; `files` are those that its commands name when they are started in `start`."""
    servers = {
        name: entry for name, entry in agent.servers.items() if entry.get("disabled") is not True
    }
    settings = {
        name: value
        for name, value in agent.settings.items()
        if value in LOOSE_SETTINGS.get(name, ()) or (name == "target" and value not in own_models)
    }
    model = "" if agent.model in own_models else agent.model
    whole = {
        "place": place,
        "servers": servers,
        "settings": settings,
        "model": model,
        "files": [(file.server, file.path, file.digest) for file in files],
    }
    text = json.dumps(whole, sort_keys=True, default=str)
    lines = [line for name in servers for line in _server_lines(name, servers[name], files, start)]
    if model or "target" in settings:
        lines.append(f"model: {show_text(settings.get('target') or model)} is sent what you ask")
    if "ask_before_tools" in settings:
        lines.append("ask_before_tools: never, so that tools run without asking you")
    return Claims(
        place=place,
        digest=hashlib.sha256(text.encode()).hexdigest(),
        servers=servers,
        settings=settings,
        model=model,
        files=tuple(files),
        lines=tuple(lines),
        problem=problem,
    )


def without_claims(agent: Agent, claims: Claims) -> dict[str, Any]:
    """The fields of an agent in which its claims do not count."""
    settings = {
        name: value for name, value in agent.settings.items() if name not in claims.settings
    }
    return {
        "servers": {},
        "settings": settings,
        "model": "" if claims.model else agent.model,
    }


def show_text(value: Any) -> str:
    """A text of others on one line, with everything in it to be seen."""
    return "".join(
        character if character == " " or _is_plain(character) else _escape(character)
        for character in str(value)
    )


def _server_lines(
    name: str, entry: Mapping[str, Any], files: Sequence[NamedFile], start: str
) -> list[str]:
    lines = [f"server {show_text(name)}"]
    if entry.get("url"):
        lines.append(f"  connects to {show_text(entry['url'])}")
    if entry.get("command"):
        words = (entry["command"], *_list(entry.get("args")))
        lines.append(f"  runs {' '.join(show_text(shlex.quote(str(word))) for word in words)}")
        lines.append(f"  in {show_text(entry.get('cwd') or start)}")
    for what, key in (("with", "env"), ("header", "headers")):
        terms = entry.get(key)
        for variable, value in terms.items() if isinstance(terms, Mapping) else ():
            # What runs is shown whole; keys that are handed over are not kept a second time.
            text = f"{variable}={value}"
            lines.append(f"  {what} {show_text(redact(text, find_secrets(text)))}")
    tools = entry.get("tools")
    terms = tools if isinstance(tools, Mapping) else {}
    own = [tool for tool, term in terms.items() if term.get("permission") == "free"]
    if entry.get("permission") == "free":
        asked = [tool for tool, term in terms.items() if term.get("permission") == "required"]
        but = f" but {', '.join(map(show_text, asked))}" if asked else ""
        lines.append(f"  runs every tool{but} without asking you")
    elif own:
        lines.append(f"  runs {', '.join(map(show_text, own))} without asking you")
    mine = [file for file in files if file.server == name]
    lines += [f"  file {show_text(file.path)} {_brief(file.digest)}" for file in mine[:_MAX_SHOWN]]
    if rest := mine[_MAX_SHOWN:]:
        digest = hashlib.sha256("".join(file.digest for file in rest).encode()).hexdigest()
        lines.append(f"  and {len(rest):,} files more {_brief(digest)}")
    return lines


def _brief(digest: str) -> str:
    return digest if digest.startswith("(") else f"({digest[:12]})"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_plain(character: str) -> bool:
    return is_visible(character) and not character.isspace() and character.isprintable()


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return _ESCAPES.get(character, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class _TrustFile(Struct, kw_only=True):
    version: int = 1
    # By real path.
    folders: dict[str, TrustRecord] = {}


class TrustBook:
    """The records in one file, which several processes may share."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = SharedFile(path, _TrustFile, "records of trust", "be asked about every folder")

    def find(self, place: str) -> TrustRecord | None:
        """What was trusted at a real path.

        Raises:
            UsageError: the file cannot be read.
        """
        return self._file.read().folders.get(place)

    def records(self) -> dict[str, TrustRecord]:
        """All that is trusted, by real path.

        Raises:
            UsageError: the file cannot be read.
        """
        return self._file.read().folders

    def record(self, claims: Claims, at: float) -> None:
        """Remembers that a person trusts this, in place of what they trusted there before.

        Raises:
            UsageError: it cannot be known as it is, or the file cannot be used.
        """
        if claims.problem:
            raise UsageError(f"{claims.place!r} cannot be trusted for good: {claims.problem}")
        with self._file.locked():
            book = self._file.read()
            book.folders[claims.place] = TrustRecord(
                digest=claims.digest, lines=claims.lines, at=at
            )
            self._file.write(book)

    def revoke(self, place: str) -> bool:
        """Forgets what was trusted at a real path; whether there was anything.

        Raises:
            UsageError: the file cannot be used.
        """
        with self._file.locked():
            book = self._file.read()
            if book.folders.pop(place, None) is None:
                return False
            self._file.write(book)
            return True
