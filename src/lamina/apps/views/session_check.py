"""Checks whether a session is intact, and writes a repaired copy of a damaged one."""

from contextlib import suppress
from time import monotonic
from typing import Any

from anyio.to_thread import run_sync
from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.providers.model_book import load_book
from lamina.apps.views.stored_sessions import StoredSession
from lamina.apps.wiring.first_snapshot import keep_snapshot
from lamina.apps.wiring.stores import find_repair_store
from lamina.core.audit.kept_results import blobs_of, whole_results
from lamina.core.audit.verification import (
    RequestCheck,
    UncoveredRequests,
    Verification,
    pictures_of,
    verify,
)
from lamina.core.codec import mint_id
from lamina.core.journal import Journal
from lamina.core.ports import JournalStore, TargetBook
from lamina.core.values.damage import Damage
from lamina.core.values.entry import SessionEntry
from lamina.errors import JournalError, LaminaError, UsageError

# Damage that shows only when entries are applied: the lines themselves are intact.
IN_THE_FOLD = (
    "not_applicable", "lost_results", "lost_reply", "lost_item", "lost_question",
)  # fmt: skip


class SessionCheck(Struct, frozen=True, kw_only=True):
    """Whether a session is intact, for a page: `rebuilt` of `requests` match what was sent to the
    byte; `wrong` counts the others that are known to differ."""

    session: str
    state: str
    sound: bool
    requests: int
    rebuilt: int
    wrong: tuple[RequestCheck, ...]
    uncovered: tuple[UncoveredRequests, ...]
    problems: tuple[str, ...]
    damage: tuple[Damage, ...]
    seconds: float


async def check_session(stored: StoredSession) -> Verification:
    """Rebuild every request of the session, and report everything wrong with its file."""
    return await _check(await stored.read(), stored, load_book())


async def check_stored(stored: StoredSession, book: TargetBook) -> SessionCheck:
    """Return the same check for a page."""
    began = monotonic()
    verification = await _check(await stored.read(), stored, book)
    checked = verification.checked
    return SessionCheck(
        session=stored.session,
        state=verification.state,
        sound=verification.sound,
        requests=len(checked),
        rebuilt=sum(check.is_rebuilt for check in checked),
        wrong=tuple(check for check in checked if check.problem),
        uncovered=verification.uncovered,
        problems=verification.problems,
        damage=verification.damage,
        seconds=round(monotonic() - began, 3),
    )


async def _check(journal: Journal, stored: StoredSession, book: TargetBook) -> Verification:
    verification = await run_sync(verify, journal, book)
    problems = list(verification.problems)
    for digest in sorted(pictures_of(journal.entries.values())):
        try:
            await stored.store.get_blob(digest)
        except LaminaError as error:
            problems.append(f"a picture is missing: {error}")
    for digest, owner in whole_results(journal.entries.values()).items():
        try:
            await stored.store.get_blob(digest)
        except LaminaError as error:
            problems.append(f"what was cut off the result of {owner} is missing: {error}")
    return replace(verification, problems=tuple(problems))


def describe_verification(verification: Verification) -> dict[str, Any]:
    return {
        "state": verification.state,
        "sound": verification.sound,
        "uncovered": verification.uncovered,
        "requests": verification.checked,
        "problems": verification.problems,
        "damage": verification.damage,
    }


class RepairedCopy(Struct, frozen=True, kw_only=True):
    """A copy of everything that could be read of a session."""

    place: str
    session: str
    entries: int
    damage: tuple[Damage, ...]
    # Whether it is in another store, because the session's own must not be written to.
    is_elsewhere: bool = False


async def write_repaired_copy(stored: StoredSession) -> RepairedCopy:
    """Write a repaired copy as a separate session beside the damaged one, which stays untouched.
    If its whole database is damaged, the copy becomes a file beside the database.

    Raises:
        UsageError: the session is intact, or nothing of it can be read.
        JournalError: the copy cannot be written.
    """
    journal = await stored.read()
    if not journal.damage:
        raise UsageError(f"nothing is wrong with {stored.place}: no copy was written")
    if journal.damage[0].kind == "bad_header" and len(journal.entries) == 1:
        raise UsageError(f"nothing of a session can be read in {stored.place}: no copy was written")
    header, *rest = journal.entries.values()
    assert isinstance(header, SessionEntry)
    store = await find_repair_store(stored.store)
    renamed = replace(
        header,
        session=await _free_id(store, stored.session),
        forked_from=stored.session,
        repaired_until=mint_id(journal.last),
    )
    if store is not stored.store:
        await _copy_blobs(journal, stored.store, store)
    try:
        copy = await store.create(renamed)
    except LaminaError as error:
        hint = "`lamina export --format jsonl --out FILE` writes what can be read to another place"
        raise JournalError(f"no repaired copy was written: {error}. {hint}") from error
    try:
        if rest:
            await copy.append(rest)
    finally:
        await copy.close()
    await keep_snapshot(store, renamed.session)
    return RepairedCopy(
        place=store.place(renamed.session),
        session=renamed.session,
        entries=len(journal.entries),
        damage=tuple(journal.damage),
        is_elsewhere=store is not stored.store,
    )


async def _copy_blobs(journal: Journal, source: JournalStore, target: JournalStore) -> None:
    """Copy what a journal refers to, as far as it can be read."""
    for digest in sorted(blobs_of(journal.entries.values())):
        with suppress(LaminaError):
            await target.put_blob(await source.get_blob(digest))


async def _free_id(store: JournalStore, session: str) -> str:
    for number in range(1, 1000):
        name = f"{session}.repaired{f'-{number}' if number > 1 else ''}"
        if not await store.has(name):
            return name
    raise UsageError(f"there are too many repaired copies of {session!r}")
