"""`lamina export` and `lamina import`."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import anyio
import msgspec
from rich.console import Console
from rich.progress import Progress

from lamina.cli.verdict import write_new_file
from lamina.errors import LaminaError, UsageError
from lamina.faces.journal_log import describe_log
from lamina.faces.plain_text import format_json
from lamina.faces.stored_session import StoredSession
from lamina.formats.markdown.exporter import export_chat
from lamina.journal import path_to
from lamina.wiring.importer import ImportReport, import_data

SHOWN = 20


async def export_session(
    found: StoredSession, form: Literal["markdown", "jsonl", "json"], out: str | None
) -> str:
    """What the command prints: the session, or where it went. `out` is a folder, if there is one or
    if it ends as one; it is made then, and the file in it has a name of its own.

    Raises:
        UsageError: the file is there already, or cannot be written.
    """
    journal = await found.read()
    name = f"{found.path.stem}.{form}"
    if form == "markdown":
        chat = export_chat(path_to(journal.leaf, journal.entries))
        name, data = chat.name, chat.text.encode()
    elif form == "jsonl":
        # The file as it is: what this version does not know goes along.
        data = found.path.read_bytes()
    else:
        data = f"{format_json(describe_log(journal))}\n".encode()
    if out is None:
        return data.decode("utf-8", "surrogateescape")
    place = Path(out)
    try:
        if await _is_folder(out):
            place /= name
        write_new_file(place, data)
    except FileExistsError:
        raise UsageError(f"{place} is there already; nothing was written") from None
    except OSError as error:
        raise UsageError(f"{place} cannot be written: {error}") from error
    return f"{place}: {len(data):,} bytes"


async def _is_folder(out: str) -> bool:
    """Whether a folder is meant; one that is not there yet is made."""
    folder = anyio.Path(out)
    if os.path.basename(out) in ("", ".", "..") and not await folder.is_dir():
        if await folder.exists():
            raise UsageError(f"{folder} is a file and no folder; nothing was written")
        await folder.mkdir(parents=True)
    return await folder.is_dir()


async def import_files(
    files: Sequence[Path], workspace: Path, session: str | None, target: str | None, as_json: bool
) -> tuple[str, bool]:
    """What the command prints, and whether a file could not be imported."""
    done: list[ImportReport] = []
    failed: list[tuple[str, str]] = []
    quiet = len(files) < 2 or not sys.stderr.isatty()
    with Progress(transient=True, disable=quiet, console=Console(stderr=True)) as progress:
        for path in progress.track(files, description="importing"):
            try:
                data = path.read_bytes()
                done.append(
                    await import_data(
                        data, name=path.name, session=session, workspace=workspace, target=target
                    )
                )
            except LaminaError as error:
                failed.append((str(path), str(error)))
            except OSError as error:
                failed.append((str(path), f"cannot be read: {error.strerror or error}"))
    if as_json:
        described = {"imported": done, "failed": [{"file": f, "problem": p} for f, p in failed]}
        return msgspec.json.format(msgspec.json.encode(described), indent=2).decode(), bool(failed)
    lines = [line for report in done for line in _report(report)]
    lines += [f"{path}: {problem}" for path, problem in failed]
    return "\n".join(lines), bool(failed)


def _report(ported: ImportReport) -> list[str]:
    lines = [f"{ported.session}: {ported.entries:,} entries from {ported.source}"]
    if ported.laid:
        lines.append(f"  in the library as they are now: {', '.join(ported.laid)}")
    for problem in ported.problems[:SHOWN]:
        place = f"line {problem.line}: " if problem.line else ""
        lines.append(f"  {place}{problem.what}: {problem.detail}")
    if len(ported.problems) > SHOWN:
        rest = len(ported.problems) - SHOWN
        lines.append(f"  and {rest:,} more; --json lists all of them")
    return lines
