"""Finds what an agent claims beyond its texts, shows it to a person, and records the folders that
they trust.

Laws: the same data, read once, is digested, shown and used. Texts are not claims, since they are
read whoever wrote them; nor are settings stricter than the default. Trust applies to exact content:
any change ends it.
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

# Values that loosen a person's protection. Settings that only a person may change are never read
# from a file.
LOOSE_SETTINGS: Mapping[str, tuple[Any, ...]] = {"ask_before_tools": ("never",)}
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
# The number of a server's files that are listed individually.
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
    """Return the claims of an agent at a real path. `own_models` run on this machine and come from
    no folder; `files` are those named by its commands when started in `start`."""
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
        lines.append(
            f"model: your questions are sent to {show_text(settings.get('target') or model)}"
        )
    if "ask_before_tools" in settings:
        lines.append("ask_before_tools: never, so tools run without asking you")
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
    """Return the agent fields to replace in order to remove its claims."""
    settings = {
        name: value for name, value in agent.settings.items() if name not in claims.settings
    }
    return {
        "servers": {},
        "settings": settings,
        "model": "" if claims.model else agent.model,
    }


def show_text(value: Any) -> str:
    """Return untrusted text on one line, with every character made visible."""
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
            # The whole command is shown; keys passed to it are not stored a second time.
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
    """The trust records in a file that several processes may share."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = SharedFile(
            path, _TrustFile, "trust records", "be asked about every folder again"
        )

    def find(self, place: str) -> TrustRecord | None:
        """Return the trust record for a real path.

        Raises:
            UsageError: the file cannot be read.
        """
        return self._file.read().folders.get(place)

    def records(self) -> dict[str, TrustRecord]:
        """Return all trust records by real path.

        Raises:
            UsageError: the file cannot be read.
        """
        return self._file.read().folders

    def record(self, claims: Claims, at: float) -> None:
        """Record that a person trusts this content, replacing any earlier record for its path.

        Raises:
            UsageError: its exact content cannot be known, or the file cannot be used.
        """
        if claims.problem:
            raise UsageError(f"{claims.place!r} cannot be trusted permanently: {claims.problem}")
        with self._file.locked():
            book = self._file.read()
            book.folders[claims.place] = TrustRecord(
                digest=claims.digest, lines=claims.lines, at=at
            )
            self._file.write(book)

    def revoke(self, place: str) -> bool:
        """Remove the trust record for a real path; return whether there was one.

        Raises:
            UsageError: the file cannot be used.
        """
        with self._file.locked():
            book = self._file.read()
            if book.folders.pop(place, None) is None:
                return False
            self._file.write(book)
            return True
