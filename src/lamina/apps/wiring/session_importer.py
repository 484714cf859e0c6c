"""Imports sessions from other tools, Markdown chats and journals.

Law: an imported session is like any other; anything that could not be imported unchanged is
reported, and the source file is not touched.
"""

import os
from base64 import b64decode
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, tzinfo
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.formats.detection import import_session
from lamina.adapters.formats.imported_session import ImportProblem
from lamina.adapters.formats.markdown.chat_importer import ImportedChat, import_chat
from lamina.adapters.providers.model_book import DEFAULT_TARGET, load_book
from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.apps.wiring.first_snapshot import keep_snapshot
from lamina.apps.wiring.sessions import open_session
from lamina.apps.wiring.stores import choose_store
from lamina.core.audit.kept_results import whole_results
from lamina.core.audit.verification import pictures_of
from lamina.core.codec import mint_id
from lamina.core.journal import read_journal
from lamina.core.journal.lines import is_proven
from lamina.core.ports import JournalStore
from lamina.core.values.entry import BLOB, CustomEntry, Entry, LeaveEntry, ModelEntry, SessionEntry
from lamina.core.values.item import key_of
from lamina.engine.session.session import Session
from lamina.errors import LaminaError, UnknownTarget, UsageError


class ImportReport(Struct, frozen=True, kw_only=True):
    """The outcome of an import."""

    session: str
    source: str
    entries: int
    problems: tuple[ImportProblem, ...] = ()
    # Attached paths that are now in the library with their current content.
    laid: tuple[str, ...] = ()


async def import_data(
    data: bytes,
    *,
    name: str,
    session: str | None = None,
    workspace: str | os.PathLike[str] | None = None,
    store: JournalStore | None = None,
    target: str | None = None,
    tz: tzinfo = UTC,
) -> ImportReport:
    """Create a session from the content of a file: a Markdown chat, one of Lamina's own journals,
    or a session or request log of another tool. `name` is the file's name, `session` the new id.

    Raises:
        UsageError: it is none of these, or a session with that id exists.
    """
    if target is not None:
        load_book().find(target)
    folder = FolderWorkspace(workspace or ".")
    store = choose_store(store, workspace)
    session = session or _id_of(name, data)
    if await store.has(session):
        raise UsageError(
            f"session {session!r} exists already, perhaps from the same file; look at it with "
            f"`lamina log`, or choose another id"
        )
    report = await _import(data, name, session, folder, store, target, tz)
    await keep_snapshot(store, session)
    return report


async def _import(
    data: bytes,
    name: str,
    session: str,
    folder: FolderWorkspace,
    store: JournalStore,
    target: str | None,
    tz: tzinfo,
) -> ImportReport:
    if _is_own(data):
        journal = read_journal(data, session)
        problems = [
            ImportProblem(line=d.line, what=d.kind, detail=d.detail) for d in journal.damage
        ]
        entries = await _take_blobs(store, tuple(journal.entries.values()))
        problems += await _missing_blobs(store, entries)
        return await _keep(store, session, "lamina", entries, problems, target)
    if _is_chat(name, data):
        return await _import_chat(data, name, session, folder, store, target, tz)
    conversion = import_session(data, name=name, session=session)
    for blob in conversion.blobs:
        await store.put_blob(blob)
    header = conversion.entries[0]
    source = header.source if isinstance(header, SessionEntry) else ""
    return await _keep(store, session, source, conversion.entries, conversion.problems, target)


async def _import_chat(
    data: bytes,
    name: str,
    session: str,
    workspace: FolderWorkspace,
    store: JournalStore,
    target: str | None,
    tz: tzinfo,
) -> ImportReport:
    text = data.decode("utf-8", "replace")
    chat = import_chat(text, name=name, session=session, paths=await workspace.paths(), tz=tz)
    if not chat.chat.messages:
        raise UsageError(f"{name!r} is Markdown, but not a chat: no line begins with **user**:")
    entries = list(chat.entries)
    if chat.chat.messages[-1].role == "user":
        # An unanswered question stays; the next question begins another turn.
        last = entries[-1]
        entries.append(LeaveEntry(id=mint_id(len(entries)), parent=last.id, at=last.at))
    report = await _keep(
        store, session, "markdown", entries, chat.problems, target or _model_of(chat)
    )
    opened = await open_session(session, workspace=workspace, store=store)
    try:
        library, problems = await _lay_again(opened, chat)
    finally:
        await opened.close()
    return replace(report, laid=library, problems=(*report.problems, *problems))


async def _lay_again(
    session: Session, chat: ImportedChat
) -> tuple[tuple[str, ...], tuple[ImportProblem, ...]]:
    """Put attachments back into the library, in their current version."""
    notes = {note.item: note for note in chat.reattachments if note.message}
    pins = [note.spec for note in chat.reattachments if not note.message]
    problems = [
        ImportProblem(line=None, what=omission.reason, detail=omission.detail)
        for omission in await session.preload(note.spec for note in notes.values())
    ]
    versions = {item.item: item.version for item in session.envelope.library}
    for item, note in notes.items():
        version = note.reference.version
        if version and versions.get(item) not in (None, version):
            detail = f"{key_of(item)!r} is not as it was; its present content is taken"
            problems.append(ImportProblem(line=None, what="changed", detail=detail))
    for spec in pins:
        try:
            await session.pin(spec)
        except LaminaError as error:
            problems.append(ImportProblem(line=None, what="missing", detail=str(error)))
    return tuple(item.item for item in session.envelope.library), tuple(problems)


async def _keep(
    store: JournalStore,
    session: str,
    source: str,
    entries: Sequence[Entry],
    problems: Sequence[ImportProblem],
    target: str | None,
) -> ImportReport:
    header, *rest = entries
    assert isinstance(header, SessionEntry)
    settings = header.settings
    # A session's header needs a target; what the file says about it comes later.
    model = target or settings.target or os.environ.get("LAMINA_TARGET") or DEFAULT_TARGET
    header = replace(header, session=session, settings=replace(settings, target=model))
    if target is not None and rest:
        # A requested target takes precedence over the file.
        last = max(int(entry.id, 16) for entry in entries)
        place = {"id": mint_id(last + 1), "parent": rest[-1].id, "at": rest[-1].at}
        rest.append(ModelEntry(target=target, **place))  # type: ignore[arg-type]
    opened = await store.create(header)
    try:
        if rest:
            await opened.append(rest)
    finally:
        await opened.close()
    return ImportReport(
        session=session, source=source, entries=len(entries), problems=tuple(problems)
    )


async def _take_blobs(store: JournalStore, entries: Sequence[Entry]) -> Sequence[Entry]:
    """Move the blobs in an export into the store, and return the entries without them."""
    end = len(entries)
    for index, entry in enumerate(entries):
        match entry:
            case CustomEntry(kind=kind, data={"base64": str() as text}) if kind == BLOB:
                # Invalid base64 counts as missing, and is reported as such.
                with suppress(ValueError):
                    await store.put_blob(b64decode(text, validate=True))
                end = min(end, index)
            case _:
                # Other entries follow them: then they stay where they are.
                end = len(entries)
    return entries[:end]


async def _missing_blobs(store: JournalStore, entries: Sequence[Entry]) -> list[ImportProblem]:
    """The blobs that the entries refer to and the store lacks: a journal does not contain them."""
    pictures, results = pictures_of(entries), whole_results(entries)
    known = await store.known_blobs({*pictures, *results})
    problems = []
    for digest in sorted(pictures):
        if digest not in known:
            detail = (
                f"the bytes of picture {digest[:12]} are not here, and the model is told so; "
                f"copy them from blobs/"
            )
            problems.append(ImportProblem(line=None, what="picture", detail=detail))
    for digest, owner in results.items():
        if digest not in known:
            detail = f"what was cut off the result of {owner} is not here; copy it from blobs/"
            problems.append(
                ImportProblem(line=None, what="result", detail=f"{digest[:12]}: {detail}")
            )
    return problems


def _model_of(chat: ImportedChat) -> str | None:
    """The target of a chat, if its provider is known here."""
    name = f"{chat.chat.provider}:{chat.chat.model}"
    try:
        return load_book().find(name).name if chat.chat.model else None
    except UnknownTarget:
        return None


def _id_of(name: str, data: bytes) -> str:
    """An id for an import: the file's name, and enough of a digest to tell two files apart."""
    stem = os.path.basename(name).rsplit(".", 1)[0].strip() or "imported"
    return f"{stem[:60]}-{sha256(data).hexdigest()[:8]}"


def _is_own(data: bytes) -> bool:
    return any(is_proven(line) for line in data.split(b"\n", 8)[:8])


def _is_chat(name: str, data: bytes) -> bool:
    head = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    return name.lower().endswith((".md", ".markdown")) or head.startswith((b"**user**:", b"---"))
