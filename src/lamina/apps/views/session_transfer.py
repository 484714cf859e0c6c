"""Exports sessions as files, and imports other programs' files as sessions."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from lamina.adapters.files.own_file import is_handed_over, open_regular_file, read_handed_over
from lamina.adapters.formats.agent_stores import SUFFIXES, files_under
from lamina.adapters.formats.json_lines import object_in, text_in
from lamina.adapters.formats.markdown.chat_exporter import export_chat
from lamina.adapters.formats.markdown.chat_file import holds_chat
from lamina.adapters.formats.opencode_store import is_database, read_database, read_storage
from lamina.adapters.providers.model_book import load_book
from lamina.adapters.stores.session_file import file_stem
from lamina.apps.views.journal_log import describe_log
from lamina.apps.views.plain_text import format_json
from lamina.apps.views.stored_sessions import StoredSession
from lamina.apps.wiring.session_importer import ImportReport, import_data
from lamina.core.audit.kept_results import blobs_of
from lamina.core.audit.request_rows import list_request_rows
from lamina.core.codec import mint_id
from lamina.core.journal import Journal, path_to
from lamina.core.journal.lines import write_lines
from lamina.core.values.entry import BLOB, CustomEntry, Entry
from lamina.errors import LaminaError

# Suffixes of Markdown files; a folder may contain chats and other Markdown.
MARKDOWN = (".md", ".markdown")
ExportForm = Literal["markdown", "jsonl", "json", "requests"]


async def export_data(stored: StoredSession, form: ExportForm) -> tuple[str, bytes]:
    """Return a session as a file: its name and its bytes."""
    journal = await stored.read()
    name = f"{file_stem(stored.session)}.{form}"
    match form:
        case "markdown":
            chat = export_chat(path_to(journal.leaf, journal.entries))
            return chat.name, chat.text.encode()
        case "jsonl":
            # The lines unchanged, including entries unknown to this version.
            lines = await stored.store.export(stored.session)
            return name, lines + await _blob_lines(stored, journal, is_cut=lines[-1:] != b"\n")
        case "requests":
            rows = list_request_rows(journal, load_book())
            data = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
            return f"{file_stem(stored.session)}.requests.jsonl", data
        case "json":
            return name, f"{format_json(describe_log(journal))}\n".encode()


async def _blob_lines(stored: StoredSession, journal: Journal, *, is_cut: bool) -> bytes:
    """Return a journal's blobs as custom entries after its own: pictures, and results kept in full.
    Every version can read such entries, and an import extracts them."""
    entries: list[Entry] = []
    for digest in sorted(blobs_of(journal.entries.values())):
        with suppress(LaminaError):
            blob = await stored.store.get_blob(digest)
            entries.append(
                CustomEntry(
                    id=mint_id(journal.last + 1 + len(entries)),
                    parent=entries[-1].id if entries else journal.leaf,
                    at=journal.entries[journal.leaf].at,
                    kind=BLOB,
                    data={"digest": digest, "base64": b64encode(blob).decode()},
                )
            )
    if not entries:
        return b""
    return b"\n" * is_cut + write_lines(entries, journal.last)


class ImportSource(Struct, frozen=True, kw_only=True):
    """Something that can be imported as a session: a file, or a session of a store; or why it
    cannot be, as `problem`."""

    name: str
    path: Path
    # Its content, if that is not the file itself.
    data: bytes | None = None
    problem: str = ""

    def read(self) -> bytes:
        if self.data is not None:
            return self.data
        with open_regular_file(self.path) as file:
            return file.read()


class ImportSources(Struct, frozen=True, kw_only=True):
    """The sessions found in files and folders, one source each. `passed_over` counts Markdown
    files in folders that are notes rather than chats."""

    sources: tuple[ImportSource, ...]
    passed_over: int = 0


def list_sources(paths: Sequence[Path]) -> ImportSources:
    """Find the sessions in these files and folders."""
    sources: list[ImportSource] = []
    passed_over = 0
    for path in paths:
        if not path.is_dir():
            sources += _try_sources(path)
            continue
        found, notes = _sources_under(path)
        if not found:
            found = [ImportSource(name=path.name, path=path, problem=_explain_nothing_found(notes))]
        sources += found
        passed_over += notes
    return ImportSources(sources=tuple(sources), passed_over=passed_over)


def _sources_under(folder: Path) -> tuple[list[ImportSource], int]:
    """Return the sessions in a folder, and how many of its Markdown files are not chats."""
    sources: list[ImportSource] = []
    passed_over = 0

    def report(error: OSError) -> None:
        sources.append(_unreadable(Path(error.filename or folder), error))

    for file in files_under(folder, (*SUFFIXES, *MARKDOWN), on_error=report):
        found = _try_sources(file)
        if file.suffix.lower() in MARKDOWN and not _may_be_chat(found):
            passed_over += 1
            continue
        sources += found
    return sources, passed_over


def _may_be_chat(sources: Sequence[ImportSource]) -> bool:
    """Return whether a Markdown file is a chat, or could not be read."""
    try:
        return any(source.problem or holds_chat(source.read()) for source in sources)
    except OSError:
        return True


def _explain_nothing_found(notes: int) -> str:
    problem = f"no file in this folder ends in {' '.join(SUFFIXES)}"
    if not notes:
        return f"{problem} or is a Markdown chat"
    files = "its Markdown file is not a chat" if notes == 1 else (
        f"none of its {notes:,} Markdown files is a chat"
    )  # fmt: skip
    return f"{problem}, and {files}"


def _try_sources(path: Path) -> list[ImportSource]:
    """Return the sessions in a file, or why it cannot be read."""
    try:
        return _sources_in(path)
    except LaminaError as error:
        return [ImportSource(name=path.name, path=path, problem=str(error))]
    except OSError as error:
        return [_unreadable(path, error)]


def _unreadable(path: Path, error: OSError) -> ImportSource:
    problem = f"cannot be read: {error.strerror or error}"
    return ImportSource(name=path.name, path=path, problem=problem)


def _sources_in(path: Path) -> list[ImportSource]:
    if is_handed_over(path):
        return [ImportSource(name="pipe", path=path, data=read_handed_over(path))]
    if path.is_dir():
        documents = read_storage(path)
    else:
        with open_regular_file(path) as file:
            head = file.read(16)
        if not is_database(head):
            return [ImportSource(name=path.name, path=path)]
        documents = read_database(path)
    return [
        ImportSource(
            name=f"{text_in(object_in(document, 'info'), 'id') or path.stem}.json",
            path=path,
            data=msgspec.json.encode(document),
        )
        for document in documents
    ]


async def import_all(
    sources: Iterable[ImportSource], workspace: Path, session: str | None, target: str | None
) -> tuple[list[ImportReport], list[tuple[str, str]]]:
    """Import all sources; return the sessions, and the files that failed with the reason."""
    imported: list[ImportReport] = []
    failed: list[tuple[str, str]] = []
    for source in sources:
        label = str(source.path) if source.data is None else f"{source.path}: {source.name}"
        if source.problem:
            failed.append((label, source.problem))
            continue
        try:
            data = source.read()
            report = await import_data(
                data, name=source.name, session=session, workspace=workspace, target=target
            )
            imported.append(report)
        except LaminaError as error:
            failed.append((label, str(error)))
        except OSError as error:
            failed.append((label, f"cannot be read: {error.strerror or error}"))
    return imported, failed
