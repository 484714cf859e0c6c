"""`lamina notes`: what a workspace's notes hold, and what is wrong with them.

Law: what is found here is found as a session finds it. Nothing of a note can steer the terminal.
"""

import shutil
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio.to_thread
import msgspec
from msgspec import Struct
from rich.console import Console

from lamina.cli.hits import list_hits
from lamina.cli.index_progress import attach_progress
from lamina.cli.models import ensure_model
from lamina.cli.terminal_text import one_line, visible
from lamina.errors import ModelMissing, QueryError
from lamina.notes.names import NoteNames
from lamina.notes.query.cache import render_query
from lamina.notes.query.parser import parse_query
from lamina.notes.sections import heading_names, is_heading_anchor
from lamina.sources.note_search import WorkspaceSearch
from lamina.values.note import Catalogue, Note, NoteSearchResult, Scope
from lamina.wiring.index import EMBEDDING_MODEL, can_embed, open_index
from lamina.wiring.workspaces import open_workspace
from lamina.workspace.folder import FolderWorkspace

WIDTH = 160


class NoteSearchOptions(Struct, frozen=True, kw_only=True):
    """What is looked for, and where."""

    query: str
    scope: Scope
    top: int
    lexical: bool


class NoteProblem(Struct, frozen=True, kw_only=True):
    """Something that is wrong with a note."""

    path: str
    what: str
    detail: str


async def search_notes(
    folder: Path, wanted: NoteSearchOptions, as_json: bool, console: Console
) -> str:
    async with _searching(folder, wanted.lexical, console) as search:
        found = await search.search(wanted.query, scope=wanted.scope, top=wanted.top)
    for warning in found.warnings:
        # Whoever asks for words alone need not be told.
        if not (wanted.lexical and "by their words alone" in warning):
            console.print(f"warning: {visible(warning)}", markup=False)
    return _as_json(found) if as_json else _show(found)


async def index_notes(folder: Path, lexical: bool, console: Console) -> str:
    async with _searching(folder, lexical, console) as search:
        ready = await search.prepare()
    for warning in ready.warnings:
        console.print(f"warning: {visible(warning)}", markup=False)
    return f"{ready.searched:,} notes are ready to be searched"


async def query_notes(folder: Path, text: str) -> str:
    async with _opened(folder) as workspace:
        return visible(render_query(text, (await workspace.catalogue()).notes, at=""))


async def undo_change(folder: Path, change: str | None) -> str:
    """What was taken back, in words."""
    from lamina.workspace.file_actions.actions import FileActions

    async with _opened(folder) as workspace:
        return visible(await anyio.to_thread.run_sync(FileActions(workspace.root).undo, change))


async def list_tags(folder: Path, as_json: bool) -> str:
    async with _opened(folder) as workspace:
        catalogue = await workspace.catalogue()
    counts: Counter[str] = Counter()
    spelled: dict[str, str] = {}
    for tag in (tag for note in catalogue.notes for tag in note.tags):
        # `Draft` and `draft` are one tag, as it is spelled first.
        counts[spelled.setdefault(tag.casefold(), tag)] += 1
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    if as_json:
        return msgspec.json.encode([{"tag": t, "notes": n} for t, n in ordered]).decode()
    if not ordered:
        return f"no note of {len(catalogue.notes):,} has a tag"
    return "\n".join(f"{count:>6,}  #{visible(tag)}" for tag, count in ordered)


async def check_notes(folder: Path, as_json: bool) -> tuple[str, bool]:
    """What is wrong, and whether nothing is."""
    async with _opened(folder) as workspace:
        catalogue = await workspace.catalogue()
        paths = await workspace.paths()
    wrong = find_problems(catalogue, paths)
    if as_json:
        return msgspec.json.encode(wrong).decode(), not wrong
    lines = [
        f"{visible(problem.path)}: {problem.what}: {one_line(problem.detail)}" for problem in wrong
    ]
    count = len(catalogue.notes)
    kinds = Counter(problem.what for problem in wrong)
    said = ", ".join(f"{what} {number:,}" for what, number in kinds.most_common())
    lines.append(f"{count:,} notes: {said}" if wrong else f"{count:,} notes, nothing wrong")
    return "\n".join(lines), not wrong


def find_problems(catalogue: Catalogue, paths: tuple[str, ...]) -> list[NoteProblem]:
    """What is wrong with the notes, by path."""
    shelf = NoteNames(paths, {note.path: note.aliases for note in catalogue.notes if note.aliases})
    wrong = [
        NoteProblem(path=_path_of(each, paths), what="unreadable", detail=each)
        for each in catalogue.unreadable
    ]
    headings = {note.path: heading_names(note.headings) for note in catalogue.notes}
    for note in catalogue.notes:
        wrong += [
            NoteProblem(path=note.path, what="frontmatter", detail=problem)
            for problem in note.problems
        ]
        wrong += _wrong_links(note, shelf, headings)
        wrong += _wrong_queries(note)
    return wrong


def _path_of(told: str, paths: tuple[str, ...]) -> str:
    """Which file it is that something is told of: it begins with its path."""
    named = [path for path in paths if told.startswith((f"{path} ", f"{path}:"))]
    return max(named, key=len, default=told.partition(": ")[0])


def _wrong_links(
    note: Note, shelf: NoteNames, headings: Mapping[str, frozenset[str]]
) -> list[NoteProblem]:
    wrong = []
    for link in dict.fromkeys((*note.links, *note.embeds)):
        found = shelf.resolve(link, beside=note.path)
        if found.path is None:
            what = "ambiguous link" if found.matches else "broken link"
            detail = found.warning.replace("; it is left out", "")
            wrong.append(NoteProblem(path=note.path, what=what, detail=detail))
        elif found.path in headings and not is_heading_anchor(found.anchor, headings[found.path]):
            detail = f"{link!r}: {found.path} has no heading {found.anchor!r}"
            wrong.append(NoteProblem(path=note.path, what="broken heading", detail=detail))
    return wrong


def _wrong_queries(note: Note) -> list[NoteProblem]:
    wrong = []
    for query in note.queries:
        try:
            parse_query(query)
        except QueryError as error:
            wrong.append(NoteProblem(path=note.path, what="query", detail=str(error)))
    return wrong


@asynccontextmanager
async def _opened(folder: Path) -> AsyncIterator[FolderWorkspace]:
    workspace = open_workspace(folder)
    try:
        yield workspace
    finally:
        await workspace.aclose()


@asynccontextmanager
async def _searching(
    folder: Path, lexical: bool, console: Console
) -> AsyncIterator[WorkspaceSearch]:
    if not lexical and can_embed():
        try:
            await ensure_model(EMBEDDING_MODEL, console)
        except ModelMissing as error:
            console.print(f"search goes by words alone: {error}", markup=False)
    index = open_index(lexical=lexical)
    try:
        async with _opened(folder) as workspace:
            search = WorkspaceSearch(workspace, index)
            attach_progress(search, console)
            yield search
    finally:
        index.close()


def _as_json(found: NoteSearchResult) -> str:
    return msgspec.json.format(msgspec.json.encode(found.hits), indent=2).decode()


def _show(found: NoteSearchResult) -> str:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    return "\n".join(list_hits(found, width))
