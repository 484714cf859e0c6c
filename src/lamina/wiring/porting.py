"""Sessions in from other systems, and out as Markdown.

Law: what is imported is a session like any other; what could not be taken as it was is reported,
and the file it came from is not touched.
"""

import os
from collections.abc import Sequence
from datetime import UTC, tzinfo
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from lamina.engine.session import Session
from lamina.errors import LaminaError, UsageError
from lamina.formats import Problem, import_session
from lamina.formats.markdown_chat import ExportedChat, ImportedChat, import_chat
from lamina.formats.markdown_chat import export_chat as export_entries
from lamina.journal import read_journal
from lamina.journal.lines import is_proven
from lamina.ports import JournalStore
from lamina.providers.book import DEFAULT_TARGET
from lamina.values.entry import Entry, SessionEntry
from lamina.wiring.opening import default_store, open_session
from lamina.workspace.folder import FolderWorkspace


class Ported(Struct, frozen=True, kw_only=True):
    """What an import came to."""

    session: str
    source: str
    entries: int
    problems: tuple[Problem, ...] = ()
    # Paths that were attached, and are now in the library with their present content.
    laid: tuple[str, ...] = ()


def export_chat(session: Session, *, tz: tzinfo = UTC) -> ExportedChat:
    """The session's active path as a Markdown chat, with a name for its file."""
    return export_entries(session.path, tz=tz)


async def import_data(
    data: bytes,
    *,
    name: str,
    session: str | None = None,
    workspace: str | os.PathLike[str] | None = None,
    store: JournalStore | None = None,
    target: str | None = None,
    tz: tzinfo = UTC,
) -> Ported:
    """Makes a session of the content of a file: a Markdown chat, a journal of Lamina's own, or a
    session or request log of another system. `name` is the file's, `session` the id it gets.

    Raises:
        UsageError: it is none of these, or there is a session of that id.
    """
    store = store or default_store(workspace)
    chosen = session or _id_of(name, data)
    if await store.has(chosen):
        raise UsageError(f"there is a session {chosen!r} already; give another id")
    if _is_own(data):
        journal = read_journal(data, chosen)
        damage = [Problem(line=d.line, what=d.kind, detail=d.detail) for d in journal.damage]
        entries = tuple(journal.entries.values())
        return await _keep(store, chosen, "lamina", entries, damage, target)
    if _is_chat(name, data):
        return await _import_chat(data, name, chosen, workspace, store, target, tz)
    found = import_session(data, name=name, session=chosen)
    for blob in found.blobs:
        await store.put_blob(blob)
    header = found.entries[0]
    source = header.source if isinstance(header, SessionEntry) else ""
    return await _keep(store, chosen, source, found.entries, found.problems, target)


async def _import_chat(
    data: bytes,
    name: str,
    session: str,
    workspace: str | os.PathLike[str] | None,
    store: JournalStore,
    target: str | None,
    tz: tzinfo,
) -> Ported:
    text = data.decode("utf-8", "replace")
    paths = await FolderWorkspace(workspace or ".").paths()
    chat = import_chat(text, name=name, session=session, paths=paths, tz=tz)
    ported = await _keep(store, session, "markdown", chat.entries, chat.problems, target)
    opened = await open_session(session, workspace=workspace, store=store)
    try:
        laid, problems = await _lay_again(opened, chat)
    finally:
        await opened.close()
    return replace(ported, laid=laid, problems=(*ported.problems, *problems))


async def _lay_again(
    session: Session, chat: ImportedChat
) -> tuple[tuple[str, ...], tuple[Problem, ...]]:
    """Puts what was attached back into the library, as it is now."""
    wanted = {each.item: each for each in chat.reattach if each.message}
    missing = await session.lay(each.wanted for each in wanted.values())
    problems = [Problem(line=None, what=each.reason, detail=each.detail) for each in missing]
    for each in chat.reattach:
        if not each.message:
            try:
                await session.pin(each.wanted)
            except LaminaError as error:
                problems.append(Problem(line=None, what="missing", detail=str(error)))
    return tuple(laid.item for laid in session.envelope.library), tuple(problems)


async def _keep(
    store: JournalStore,
    session: str,
    source: str,
    entries: Sequence[Entry],
    problems: Sequence[Problem],
    target: str | None,
) -> Ported:
    header, *rest = entries
    assert isinstance(header, SessionEntry)
    settings = header.settings
    # A session says whom it talks to; what the file says of that comes behind the header.
    chosen = target or settings.target or os.environ.get("LAMINA_TARGET") or DEFAULT_TARGET
    header = replace(header, session=session, settings=replace(settings, target=chosen))
    opened = await store.create(header)
    try:
        if rest:
            await opened.append(rest)
    finally:
        await opened.close()
    return Ported(session=session, source=source, entries=len(entries), problems=tuple(problems))


def _id_of(name: str, data: bytes) -> str:
    """An id for an import: the file's name, and enough of its content to tell two apart."""
    stem = os.path.basename(name).rsplit(".", 1)[0].strip() or "imported"
    return f"{stem[:60]}-{sha256(data).hexdigest()[:8]}"


def _is_own(data: bytes) -> bool:
    return any(is_proven(line) for line in data.split(b"\n", 8)[:8])


def _is_chat(name: str, data: bytes) -> bool:
    head = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    return name.lower().endswith((".md", ".markdown")) or head.startswith((b"**user**:", b"---"))
