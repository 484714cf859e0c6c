"""Sessions as files to give away, and files of others as sessions."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from lamina.errors import LaminaError
from lamina.faces.journal_log import describe_log
from lamina.faces.plain_text import format_json
from lamina.faces.stored_session import StoredSession
from lamina.formats.markdown.exporter import export_chat
from lamina.journal import path_to
from lamina.stores.file_names import file_stem
from lamina.wiring.importer import ImportReport, import_data

ExportForm = Literal["markdown", "jsonl", "json"]


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
        case "json":
            return name, f"{format_json(describe_log(journal))}\n".encode()


async def import_all(
    files: Iterable[Path], workspace: Path, session: str | None, target: str | None
) -> tuple[list[ImportReport], list[tuple[str, str]]]:
    """What was imported, and which files could not be, with why."""
    imported: list[ImportReport] = []
    failed: list[tuple[str, str]] = []
    for path in files:
        try:
            data, name = path.read_bytes(), path.name
            report = await import_data(
                data, name=name, session=session, workspace=workspace, target=target
            )
            imported.append(report)
        except LaminaError as error:
            failed.append((str(path), str(error)))
        except OSError as error:
            failed.append((str(path), f"cannot be read: {error.strerror or error}"))
    return imported, failed
