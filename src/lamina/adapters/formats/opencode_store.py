"""Reads OpenCode's own storage: a SQLite file, or a folder of JSON files.

Laws: both are read as the documents that `opencode export` writes. The database is opened read-only
and never changed; a row that cannot be read is skipped and counted.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from lamina.adapters.files.own_file import open_regular_file
from lamina.adapters.formats.json_lines import Object, object_in, text_in
from lamina.errors import UsageError

MAGIC = b"SQLite format 3\x00"
_TABLES = {"session", "message", "part"}


def is_database(head: bytes) -> bool:
    return head.startswith(MAGIC)


def read_database(path: Path) -> Iterator[Object]:
    """Yield a database's sessions, one document each.

    Raises:
        UsageError: the file is not an OpenCode database, or cannot be read.
    """
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            yield from _sessions(database, path)
    except sqlite3.Error as error:
        raise UsageError(f"{str(path)!r} cannot be read as OpenCode's database: {error}") from error


def _sessions(database: sqlite3.Connection, path: Path) -> Iterator[Object]:
    names = {name for (name,) in database.execute("select name from sqlite_master")}
    if not names >= _TABLES:
        raise UsageError(
            f"{str(path)!r} is a SQLite file, but not OpenCode's: it lacks the tables "
            f"{', '.join(sorted(_TABLES - names))}. Use opencode.db"
        )
    database.row_factory = sqlite3.Row
    sessions = database.execute("select * from session order by id").fetchall()
    for row in sessions:
        info = _session_info(row)
        messages = database.execute(
            "select id, data from message where session_id = ? order by time_created, id",
            (row["id"],),
        ).fetchall()
        parts: dict[str, list[Object]] = {}
        for part in database.execute(
            "select id, message_id, data from part where session_id = ? order by id", (row["id"],)
        ):
            if (value := _decode(part["data"])) is not None:
                parts.setdefault(part["message_id"], []).append({"id": part["id"], **value})
        yield {
            "info": info,
            "messages": [
                {"info": {"id": message["id"], **value}, "parts": parts.get(message["id"], [])}
                for message in messages
                if (value := _decode(message["data"])) is not None
            ],
        }


def _session_info(row: sqlite3.Row) -> Object:
    fields = dict(row)
    names = {"parent_id": "parentID", "project_id": "projectID"}
    info = {names.get(key, key): value for key, value in fields.items() if value is not None}
    times = {"created": info.pop("time_created", None), "updated": info.pop("time_updated", None)}
    return {**info, "time": {key: value for key, value in times.items() if value is not None}}


def _decode(data: Any) -> Object | None:
    try:
        value = msgspec.json.decode(data if isinstance(data, bytes) else str(data))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def is_storage(folder: Path) -> bool:
    """Return whether a folder is OpenCode's file-based session storage."""
    return (folder / "message").is_dir() and (folder / "session").is_dir()


def read_storage(folder: Path) -> Iterator[Object]:
    """Yield the sessions in a storage folder, one document each."""
    for path in sorted((folder / "session").glob("*/*.json")):
        info = _read(path)
        if info is None:
            continue
        name = text_in(info, "id") or path.stem
        messages: list[Object] = []
        for message_path in sorted((folder / "message" / name).glob("*.json")):
            message = _read(message_path)
            if message is None:
                continue
            parts = sorted((folder / "part" / message_path.stem).glob("*.json"))
            values = [value for part in parts if (value := _read(part)) is not None]
            messages.append({"info": message, "parts": values})
        messages.sort(key=lambda m: _created(object_in(m, "info")))
        yield {"info": info, "messages": messages}


def _created(info: Object) -> float:
    created = object_in(info, "time").get("created")
    return created if isinstance(created, int | float) else 0


def _read(path: Path) -> Object | None:
    try:
        with open_regular_file(path) as file:
            return _decode(file.read())
    except OSError:
        return None
