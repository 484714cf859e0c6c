"""What the notes of a workspace hold, and what is wrong with them."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio.to_thread

from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.apps.views.link_check import NoteProblem, check_links
from lamina.apps.wiring.workspaces import open_folder
from lamina.core.notes.names import NoteNames
from lamina.core.notes.query.cache import check_query
from lamina.core.notes.search_block.parser import parse_search
from lamina.core.notes.sections import heading_names
from lamina.core.values.note import Catalogue, Note, NoteQuery
from lamina.errors import QueryError


async def undo_change(folder: Path, change: str | None) -> str:
    """Takes back a change to files, and says what was taken back."""
    from lamina.adapters.workspace.file_actions.actions import FileActions

    async with open_notes(folder) as workspace:
        return await anyio.to_thread.run_sync(FileActions(workspace.root).undo, change)


def find_problems(catalogue: Catalogue, paths: tuple[str, ...]) -> list[NoteProblem]:
    """What is wrong with the notes, and which links were decided, by path."""
    names = NoteNames(paths, {note.path: note.aliases for note in catalogue.notes if note.aliases})
    problems = [
        NoteProblem(path=_path_of(text, paths), what="unreadable", detail=text)
        for text in catalogue.unreadable
    ]
    headings = {note.path: heading_names(note.headings) for note in catalogue.notes}
    for note in catalogue.notes:
        problems += [
            NoteProblem(path=note.path, what="frontmatter", detail=problem)
            for problem in note.problems
        ]
        problems += check_links(note, names, headings)
        problems += _wrong_queries(note)
    return problems


def _path_of(problem: str, paths: tuple[str, ...]) -> str:
    """The file that a problem is about: it begins with its path."""
    candidates = [path for path in paths if problem.startswith((f"{path} ", f"{path}:"))]
    return max(candidates, key=len, default=problem.partition(": ")[0])


def _wrong_queries(note: Note) -> list[NoteProblem]:
    return [
        NoteProblem(path=note.path, what=what, detail=detail)
        for query in note.queries
        for what, detail in _judge_query(query)
    ]


def _judge_query(query: NoteQuery) -> list[tuple[str, str]]:
    """What is wrong with a query, or why it is left out."""
    if query.kind == "script":
        name = query.text if query.text.startswith("$=") else "dataviewjs"
        return [("script", f"{name}: scripts of notes are not run; it is left out")]
    if query.kind != "search":
        return [("query", problem) for problem in check_query(query)]
    try:
        parse_search(query.text)
    except QueryError as error:
        return [("search", str(error))]
    return []


@asynccontextmanager
async def open_notes(folder: Path) -> AsyncIterator[FolderWorkspace]:
    workspace = open_folder(folder)
    try:
        yield workspace
    finally:
        await workspace.aclose()


def count_tags(catalogue: Catalogue) -> list[tuple[str, int]]:
    """Tags and how many notes have them, the most frequent first."""
    counts: Counter[str] = Counter()
    spellings: dict[str, str] = {}
    for tag in (tag for note in catalogue.notes for tag in note.tags):
        # `Draft` and `draft` are one tag, as it is spelled first.
        counts[spellings.setdefault(tag.casefold(), tag)] += 1
    return sorted(counts.items(), key=lambda count: (-count[1], count[0]))
