"""`lamina verify` and `lamina repair`: whether a session is sound, and a copy of what is left."""

import os
from pathlib import Path

import msgspec
from msgspec.structs import replace

from lamina.audit.verification import Verification, pictures_of, verify
from lamina.errors import LaminaError, UsageError
from lamina.faces.stored_session import StoredSession
from lamina.journal.lines import write_lines
from lamina.providers.model_book import load_book
from lamina.stores.disk import sync_file, sync_folder
from lamina.stores.jsonl import SUFFIX, session_of
from lamina.values.entry import SessionEntry

# Damage that shows when entries are applied: the lines themselves are sound.
IN_THE_FOLD = (
    "not_applicable", "lost_results", "lost_reply", "lost_item", "lost_question",
)  # fmt: skip


async def check_session(found: StoredSession) -> Verification:
    """Every request of the session rebuilt, and everything that is wrong with its file."""
    journal = await found.read()
    verdict = verify(journal, load_book())
    problems = list(verdict.problems)
    for digest in sorted(pictures_of(journal.entries.values())):
        try:
            await found.store.get_blob(digest)
        except LaminaError as error:
            problems.append(f"a picture is missing: {error}")
    return replace(verdict, problems=tuple(problems))


def render_verdict(verdict: Verification) -> str:
    wrong = [check for check in verdict.checked if check.problem]
    right = len(verdict.checked) - len(wrong)
    lines = [f"{right:,} of {len(verdict.checked):,} requests rebuilt byte for byte."]
    lines += [f"- request {check.request} ({check.target}): {check.problem}" for check in wrong]
    lines += [f"- {problem}" for problem in verdict.problems]
    lines += [f"- {damage.kind}: {damage}" for damage in verdict.damage]
    if any(damage.kind not in IN_THE_FOLD for damage in verdict.damage):
        lines.append("`lamina repair` writes a copy of all that can be read.")
    elif verdict.damage:
        lines.append("What is lost is lost: the session goes on without it.")
    elif verdict.sound:
        lines.append("The session is sound.")
    return "\n".join(lines)


def describe_verdict(verdict: Verification) -> str:
    described = {
        "sound": verdict.sound,
        "requests": verdict.checked,
        "problems": verdict.problems,
        "damage": verdict.damage,
    }
    return msgspec.json.format(msgspec.json.encode(described), indent=2).decode()


async def write_repaired_copy(found: StoredSession) -> str:
    """Writes a repaired copy beside the session's file, and says what is in it. The file itself is
    not touched.

    Raises:
        UsageError: nothing is wrong with it, or the copy cannot be written.
    """
    journal = await found.read()
    if not journal.damage:
        raise UsageError(f"nothing is wrong with {found.path}: no copy was written")
    if journal.damage[0].kind == "bad_header" and len(journal.entries) == 1:
        raise UsageError(f"nothing of a session can be read in {found.path}: no copy was written")
    place = _free_name(found.path)
    header, *rest = journal.entries.values()
    assert isinstance(header, SessionEntry)
    renamed = replace(header, session=session_of(place), forked_from=found.session)
    try:
        write_new_file(place, write_lines([renamed, *rest], -1))
    except OSError as error:
        raise UsageError(f"the copy {place} cannot be written: {error}") from error
    lines = [f"- {damage.kind}: {damage}" for damage in journal.damage]
    return "\n".join(
        [
            f"{place}: {len(journal.entries):,} entries, as session {renamed.session!r}.",
            f"{found.path} is as it was. What was wrong with it:",
            *lines,
        ]
    )


def _free_name(path: Path) -> Path:
    stem = path.name.removesuffix(SUFFIX)
    for number in range(1, 1000):
        place = path.with_name(f"{stem}.repaired{f'-{number}' if number > 1 else ''}{SUFFIX}")
        if not place.exists():
            return place
    raise UsageError(f"there are too many repaired copies beside {path}")


def write_new_file(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        sync_file(file.fileno())
    sync_folder(path.parent)
