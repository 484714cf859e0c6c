"""Deleting sessions, and what is deleted with them.

Law: exactly what a person was shown before agreeing is deleted, and nothing else. An open
session stays.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.files.cache_folder import slots_folder
from lamina.adapters.providers.local.model_catalogue import (
    LOCAL_MODELS,
    LOCAL_PREFIX,
    find_model_file,
)
from lamina.adapters.providers.local.slots import drop_slots
from lamina.apps.views.stored_sessions import StoredSession, find_session
from lamina.apps.wiring.stores import StoreListing, default_store, list_everywhere
from lamina.core.audit.session_totals import sum_totals
from lamina.core.values.totals import ListedSession, SessionTotals
from lamina.errors import LaminaError, ModelMissing, UsageError

_AGE = re.compile(r"(\d{1,6})([hdw])")
_SECONDS = {"h": 3_600, "d": 86_400, "w": 604_800}


class DeletableSession(Struct, frozen=True, kw_only=True):
    """A session that would be deleted, as shown to a person."""

    stored: StoredSession
    workspace: str = ""
    name: str = ""
    messages: int = 0
    bytes: int = 0
    # The targets used in it, some of which may run on this machine.
    targets: tuple[str, ...] = ()
    problem: str = ""


class SessionDeletion(Struct, frozen=True, kw_only=True):
    """The outcome for one session: the bytes of its journal, its own blobs, and the embedded
    model's memory of it; or why it still exists. Without a `session`, why a store was not
    searched."""

    session: str
    workspace: str = ""
    name: str = ""
    messages: int = 0
    bytes: int = 0
    blobs: int = 0
    slot_bytes: int = 0
    problem: str = ""


def read_age(text: str) -> float:
    """Convert an age such as `30d`, `12h` or `4w` to seconds.

    Raises:
        UsageError: the text is not an age.
    """
    if (age := _AGE.fullmatch(text.strip().lower())) is None:
        raise UsageError(f"{text!r} is not an age: write 12h, 30d or 4w")
    return int(age[1]) * _SECONDS[age[2]]


async def find_named(names: Sequence[str], workspace: Path) -> list[DeletableSession]:
    """Return the sessions that a person named, without duplicates.

    Raises:
        UnknownSession: a name matches no session, or several.
    """
    sessions = [await find_session(name, workspace, names_files=False) for name in names]
    found = {stored.place: stored for stored in sessions}
    return [await _look_at(stored) for stored in found.values()]


async def find_older(
    before: float, workspace: Path, everywhere: bool
) -> tuple[list[DeletableSession], list[SessionDeletion]]:
    """Return the sessions of a workspace, or of all, last written before `before`; and, for all,
    the stores that cannot be searched: their sessions are not deleted."""
    if everywhere:
        stores = await list_everywhere()
    else:
        own = default_store(workspace)
        stores = [StoreListing(name="", store=own, sessions=await own.list_sessions())]
    older = [
        _describe(StoredSession(listed.session, found.store), listed)
        for found in stores
        for listed in found.sessions
        # The date of an unreadable session may be unknown.
        if 0 < listed.written < before
    ]
    return older, [
        SessionDeletion(session="", workspace=found.name, problem=found.problem)
        for found in stores
        if found.problem
    ]


async def delete_all(sessions: Sequence[DeletableSession]) -> list[SessionDeletion]:
    """Delete the sessions; one that cannot be deleted stays whole."""
    return [await _delete(session) for session in sessions]


async def _delete(session: DeletableSession) -> SessionDeletion:
    stored = session.stored
    deletion = SessionDeletion(
        session=stored.session,
        workspace=session.workspace,
        name=session.name,
        messages=session.messages,
    )
    try:
        deleted = await stored.store.delete(stored.session)
    except LaminaError as error:
        return replace(deletion, problem=str(error))
    return replace(
        deletion,
        bytes=deleted.bytes,
        blobs=len(deleted.blobs),
        slot_bytes=drop_slots(slots_folder(), _model_files(session.targets), stored.session),
    )


async def _look_at(stored: StoredSession) -> DeletableSession:
    size = len(await stored.store.export(stored.session))
    listed = ListedSession(session=stored.session, bytes=size)
    try:
        totals = sum_totals(await stored.read())
    except LaminaError as error:
        return DeletableSession(stored=stored, bytes=size, problem=str(error))
    return _describe(stored, listed, totals)


def _describe(
    stored: StoredSession, listed: ListedSession, totals: SessionTotals | None = None
) -> DeletableSession:
    totals = totals or listed.totals or SessionTotals()
    return DeletableSession(
        stored=stored,
        workspace=totals.workspace,
        name=totals.name,
        messages=totals.messages,
        bytes=listed.bytes,
        targets=(*(paid.target for paid in totals.paid), *totals.unanswered.values()),
        problem=listed.problem,
    )


def _model_files(targets: Sequence[str]) -> list[Path]:
    """Return the model files on this machine that may have read a session."""
    names = [target for target in targets if target.startswith(LOCAL_PREFIX)]
    files = []
    for name in dict.fromkeys((*names, *LOCAL_MODELS)):
        try:
            files.append(find_model_file(name))
        except ModelMissing:
            continue
    return files
