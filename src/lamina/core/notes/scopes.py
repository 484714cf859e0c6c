"""Builds search scopes from folders, tags and days (as strings or dates).

Law: anything that is not a folder, tag or date is reported as an error; it never means everywhere.
"""

from collections.abc import Iterable
from datetime import date, datetime, time

from lamina.core.values.note import Scope
from lamina.errors import UsageError

# A time: as a string (2026-11-17, 2026-11-17T09:30:00), as a date, or in seconds since the epoch.
Moment = str | date | float


def make_scope(
    folder: str | Iterable[str] = (),
    tag: str | Iterable[str] = (),
    since: Moment | None = None,
    until: Moment | None = None,
) -> Scope:
    """Return a scope of notes in any of the folders, with any of the tags, changed from `since` to
    before `until`.

    Raises:
        UsageError: a folder or a tag is blank or not text, or a time is not a time.
    """
    return Scope(
        folders=tuple(_read_folder(name) for name in _listed(folder, "folder")),
        tags=tuple(_read_tag(name) for name in _listed(tag, "tag")),
        since=read_moment(since),
        until=read_moment(until),
    )


def read_moment(moment: Moment | None) -> float | None:
    """Return a time in seconds since the epoch; a day starts at local midnight.

    Raises:
        UsageError: it is not a time.
    """
    try:
        match moment:
            case None:
                return None
            case str():
                return datetime.fromisoformat(moment.strip()).timestamp()
            case datetime():
                return moment.timestamp()
            case date():
                return datetime.combine(moment, time()).timestamp()
            case bool():
                raise ValueError("neither a day nor a number")
            case _:
                return datetime.fromtimestamp(moment).timestamp()
    except (TypeError, ValueError, OverflowError, OSError):
        raise UsageError(
            f"{moment!r} is not a date: use 2026-11-17, or 2026-11-17T09:30:00 for a time"
        ) from None


def _listed(names: object, what: str) -> tuple[str, ...]:
    listed = (names,) if isinstance(names, str) else names
    if isinstance(listed, Iterable) and not isinstance(listed, bytes):
        texts = tuple(listed)
        if all(isinstance(name, str) for name in texts):
            return texts
        names = next(name for name in texts if not isinstance(name, str))
    raise UsageError(f"{names!r} is not a {what}: pass a string or several strings")


def _read_folder(name: str) -> str:
    if not name.strip():
        raise UsageError(f"{name!r} is not a folder: pass its path in the workspace")
    return name.rstrip("/") or "/"


def _read_tag(name: str) -> str:
    tag = name.strip().removeprefix("#")
    if not tag.strip():
        raise UsageError(f"{name!r} is not a tag: pass a name, with or without #")
    return tag
