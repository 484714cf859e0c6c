"""Reads MCP servers from a file in the format shared by Claude Desktop, Cursor and VS Code.

Law: an invalid entry affects only its own server. Other programs' fields are ignored, ours are read
strictly, and anything that may be a secret is never shown.
"""

import math
import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from lamina.adapters.files.own_file import read_named_file
from lamina.adapters.files.paths import expand_home
from lamina.adapters.tools.result_limits import CALL_SECONDS
from lamina.core.values.item import Include
from lamina.core.values.tool import Permission, WithheldTool, translate_server_terms
from lamina.errors import UsageError

# `${NAME}`, `${env:NAME}` as in VS Code, `${NAME:-default}` as in a shell.
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_NAMED = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
# VS Code uses `servers`; all others use `mcpServers`.
_ROOTS = ("mcpServers", "servers")
_HTTP_KINDS = {"http", "streamable-http", "streamableHttp", "streamable_http"}
SSE = "sse"


class ServerToolConfig(Struct, frozen=True, kw_only=True):
    """A person's settings for one tool of a server."""

    permission: Permission | None = None
    include: Include | None = None
    disabled: bool = False


class ServerConfig(Struct, frozen=True, kw_only=True):
    """A server with all variables expanded: a command to run, or an address."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str = ""
    headers: dict[str, str] = {}
    # Whether it uses the older protocol, with separate addresses for events and posts.
    is_sse: bool = False
    timeout: float = CALL_SECONDS
    # Time limit for starting and listing the tools; None for the default.
    start_timeout: float | None = None
    permission: Permission = "required"
    include: Include = "always"
    tools: dict[str, ServerToolConfig] = {}

    def __repr__(self) -> str:
        # Arguments, environment, headers and addresses may contain secrets.
        return f"ServerConfig({self.name!r}, {'http' if self.url else self.command!r})"

    def permission_of(self, tool: str) -> Permission:
        own = self.tools.get(tool)
        return (own and own.permission) or self.permission

    def include_of(self, tool: str) -> Include:
        own = self.tools.get(tool)
        return (own and own.include) or self.include

    def is_disabled(self, tool: str) -> bool:
        own = self.tools.get(tool)
        return own is not None and own.disabled


class ServerList(Struct, frozen=True, kw_only=True):
    """A file's servers in order, and the entries that cannot be used."""

    servers: tuple[ServerConfig, ...] = ()
    problems: tuple[WithheldTool, ...] = ()


class _Entry(Struct, kw_only=True):
    """An entry as written; fields not listed here belong to other programs."""

    command: str | None = None
    args: list[str] = []
    env: dict[str, str] | None = None
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] | None = None
    type: str | None = None
    timeout: float | None = None
    disabled: bool = False
    permission: Permission = "required"
    include: Include = "always"
    tools: dict[str, ServerToolConfig] = {}


def read_servers(path: Path, environ: Mapping[str, str] | None = None) -> ServerList:
    """Return the servers listed in a file.

    Raises:
        UsageError: the file cannot be read, or lists no servers.
    """
    try:
        data = read_named_file(path)
    except UsageError as error:
        raise UsageError(
            f"the MCP configuration cannot be read: {error}; check the path, or create the file "
            f'with {{"mcpServers": {{}}}}'
        ) from error
    return parse_servers(data, path, os.environ if environ is None else environ)


def parse_servers(data: bytes, path: Path, environ: Mapping[str, str]) -> ServerList:
    """Return the servers listed in the bytes of the file at `path`.

    Raises:
        UsageError: the bytes list no servers.
    """
    return servers_from(_entries(data, path), path, environ)


def servers_from(
    entries: Mapping[str, Any], place: str | os.PathLike[str], environ: Mapping[str, str]
) -> ServerList:
    """Return the servers in an `mcpServers` object read from the file `place`."""
    path = Path(place)
    servers: list[ServerConfig] = []
    problems: list[WithheldTool] = []
    for name, entry in entries.items():
        try:
            server = _read_entry(name, entry, path, environ)
        except UsageError as error:
            what = name.strip() or "a server without a name"
            detail = f"{error} (in {str(path)!r})"
            problems.append(WithheldTool(what=what, reason="invalid", detail=detail))
        else:
            servers += [server] if server else []
    return ServerList(servers=tuple(servers), problems=tuple(problems))


def _entries(data: bytes, path: Path) -> dict[str, Any]:
    try:
        # Editors on Windows add a byte order mark.
        whole = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            f"{str(path)!r} is not JSON: {_place(data, str(error))}; fix it there (comments and "
            f"trailing commas are not JSON)"
        ) from error
    root = next((key for key in _ROOTS if isinstance(whole, dict) and key in whole), None)
    if root is None or not isinstance(whole[root], dict):
        raise UsageError(
            f"{str(path)!r} names no MCP servers: it has to be an object with 'mcpServers', itself "
            f'an object, as {{"mcpServers": {{"time": {{"command": "mcp-server-time"}}}}}}'
        )
    return cast(dict[str, Any], whole[root])


def _place(data: bytes, problem: str) -> str:
    """Return the problem with a line number instead of the decoder's byte offset."""
    position = re.search(r"\(byte (\d+)\)", problem)
    if not position:
        return problem
    before = data[: int(position[1])]
    line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
    return f"{problem[: position.start()].strip()} at line {line}, column {column}"


def _read_entry(name: str, raw: Any, path: Path, environ: Mapping[str, str]) -> ServerConfig | None:
    if not name.strip():
        raise UsageError("a server needs a name")
    terms = translate_server_terms(raw) if isinstance(raw, dict) else raw
    try:
        entry = msgspec.convert(terms, _Entry)
    except msgspec.ValidationError as error:
        raise UsageError(f"the entry is not of the right form: {error}") from error
    if entry.disabled:
        return None
    _check_entry(entry)
    fill = partial(_fill, environ)
    cwd = fill(entry.cwd, "cwd") if entry.cwd else None
    return ServerConfig(
        name=name,
        command=fill(entry.command or "", "command"),
        args=tuple(fill(arg, "args") for arg in entry.args),
        env={key: fill(text, f"env.{key}") for key, text in (entry.env or {}).items()},
        # Relative to the file, not to the folder in which Lamina was started.
        cwd=str(path.parent / expand_home(cwd)) if cwd else None,
        url=fill(entry.url or "", "url"),
        headers={key: fill(text, f"headers.{key}") for key, text in (entry.headers or {}).items()},
        is_sse=entry.type == SSE,
        timeout=CALL_SECONDS if entry.timeout is None else entry.timeout,
        start_timeout=entry.timeout,
        permission=entry.permission,
        include=entry.include,
        tools=entry.tools,
    )


def _check_entry(entry: _Entry) -> None:
    if bool(entry.command) == bool(entry.url):
        both = "both a 'command' and a 'url'" if entry.command else "neither 'command' nor 'url'"
        raise UsageError(
            f"the entry has {both}; a server is started with one or reached at the other"
        )
    if entry.url and entry.type not in (None, SSE, *_HTTP_KINDS):
        raise UsageError(
            f"its type is {entry.type!r}, and only streamable HTTP and SSE are spoken here; give "
            f"the address at which it speaks that (often ending in /mcp) with type 'http'"
        )
    if entry.timeout is not None and not (entry.timeout > 0 and math.isfinite(entry.timeout)):
        raise UsageError(f"'timeout' is a number of seconds above 0, not {entry.timeout!r}")


def _fill(environ: Mapping[str, str], text: str, field: str) -> str:
    def value(match: re.Match[str]) -> str:
        variable = _NAMED.fullmatch(match[1])
        if variable is None:
            raise UsageError(
                f"{match[0]} in {field!r} is nothing that Lamina knows; write the value itself, or "
                f"${{NAME}} for a variable of the environment"
            )
        name, default = variable.groups()
        filling = environ.get(name, default)
        if filling is None:
            raise UsageError(
                f"the variable {name} that {field!r} asks for is not set; export {name}=..., or "
                f"write ${{{name}:-}} if it may be empty"
            )
        return filling

    return _VARIABLE.sub(value, text)
