"""Sessions as files to give away, and files of others as sessions."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from lamina.audit.request_rows import list_request_rows
from lamina.errors import LaminaError
from lamina.faces.journal_log import describe_log
from lamina.faces.plain_text import format_json
from lamina.faces.stored_session import StoredSession
from lamina.formats.agent_stores import SUFFIXES, files_under
from lamina.formats.json_fields import object_in, text_in
from lamina.formats.markdown.exporter import export_chat
from lamina.formats.opencode_store import is_database, read_database, read_storage
from lamina.journal import path_to
from lamina.providers.model_book import load_book
from lamina.stores.file_names import file_stem
from lamina.wiring.importer import ImportReport, import_data

ExportForm = Literal["markdown", "jsonl", "json", "requests"]


async def export_data(stored: StoredSession, form: ExportForm) -> tuple[str, bytes]:
    """A session as a file: its name and its bytes."""
    journal = await stored.read()
    name = f"{file_stem(stored.session)}.{form}"
    match form:
        case "markdown":
            chat = export_chat(path_to(journal.leaf, journal.entries))
            return chat.name, chat.text.encode()
        case "jsonl":
            # The lines as they are: what this version does not know goes along.
            return name, await stored.store.export(stored.session)
        case "requests":
            rows = list_request_rows(journal, load_book())
            lines = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
            return f"{file_stem(stored.session)}.requests.jsonl", lines
        case "json":
            return name, f"{format_json(describe_log(journal))}\n".encode()


class ImportSource(Struct, frozen=True, kw_only=True):
    """Something that can be imported as a session: a file, or a session of a store; or why it
    cannot be, as `problem`."""

    name: str
    path: Path
    # What it holds, where that is not the file itself.
    data: bytes | None = None
    problem: str = ""

    def read(self) -> bytes:
        return self.path.read_bytes() if self.data is None else self.data


def list_sources(paths: Sequence[Path]) -> list[ImportSource]:
    """What these files and folders hold, each session by itself."""
    sources: list[ImportSource] = []
    for path in paths:
        files = files_under(path) if path.is_dir() else [path]
        if not files:
            problem = f"no file in this folder ends in {' '.join(SUFFIXES)}"
            sources.append(ImportSource(name=path.name, path=path, problem=problem))
        for file in files:
            try:
                sources += _sources_in(file)
            except LaminaError as error:
                sources.append(ImportSource(name=file.name, path=file, problem=str(error)))
            except OSError as error:
                problem = f"cannot be read: {error.strerror or error}"
                sources.append(ImportSource(name=file.name, path=file, problem=problem))
    return sources


def _sources_in(path: Path) -> list[ImportSource]:
    if path.is_dir():
        documents = read_storage(path)
    else:
        with path.open("rb") as file:
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
    """What was imported, and which files could not be, with why."""
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
