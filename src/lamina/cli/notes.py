"""`lamina notes`: what a workspace's notes hold, and what is wrong with them.

Law: notes are found here as a session finds them. Nothing in a note can steer the terminal.
"""

import shutil
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from rich.console import Console

from lamina.cli.note_hits import list_hits
from lamina.cli.notices import ConsoleNotices
from lamina.cli.terminal_text import one_line, visible
from lamina.faces.notes import NoteSearchOptions, count_tags, find_problems, open_notes
from lamina.faces.plain_text import format_json
from lamina.faces.session_opener import ensure_search, show_progress
from lamina.notes.query.cache import render_query
from lamina.sources.note_search import WorkspaceSearch
from lamina.wiring.index import open_index

WIDTH = 160


async def search_notes(
    folder: Path, options: NoteSearchOptions, as_json: bool, console: Console
) -> str:
    async with _open_search(folder, options.lexical, console) as search:
        result = await search.search(options.query, scope=options.scope, top=options.top)
    for warning in result.warnings:
        # With --lexical that is what was asked for.
        if not (options.lexical and "by their words alone" in warning):
            console.print(f"warning: {visible(warning)}", markup=False)
    if as_json:
        return format_json(result.hits)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    return list_hits(result, width)


async def index_notes(folder: Path, lexical: bool, console: Console) -> str:
    async with _open_search(folder, lexical, console) as search:
        ready = await search.prepare()
    for warning in ready.warnings:
        console.print(f"warning: {visible(warning)}", markup=False)
    count = ready.searched
    return f"{count:,} {'note is' if count == 1 else 'notes are'} ready to be searched"


async def query_notes(folder: Path, text: str) -> str:
    async with open_notes(folder) as workspace:
        return visible(render_query(text, (await workspace.catalogue()).notes, at=""))


async def list_tags(folder: Path, as_json: bool) -> str:
    async with open_notes(folder) as workspace:
        catalogue = await workspace.catalogue()
    tags = count_tags(catalogue)
    if as_json:
        return msgspec.json.encode([{"tag": tag, "notes": count} for tag, count in tags]).decode()
    if not tags:
        return f"no note of {len(catalogue.notes):,} has a tag"
    return "\n".join(f"{count:>6,}  #{visible(tag)}" for tag, count in tags)


async def check_notes(folder: Path, as_json: bool) -> tuple[str, bool]:
    """What is wrong, and whether nothing is."""
    async with open_notes(folder) as workspace:
        catalogue = await workspace.catalogue()
        paths = await workspace.paths()
    problems = find_problems(catalogue, paths)
    if as_json:
        return msgspec.json.encode(problems).decode(), not problems
    lines = [
        f"{visible(problem.path)}: {problem.what}: {one_line(problem.detail)}"
        for problem in problems
    ]
    count = len(catalogue.notes)
    kinds = Counter(problem.what for problem in problems)
    summary = ", ".join(f"{what} {number:,}" for what, number in kinds.most_common())
    lines.append(f"{count:,} notes: {summary}" if problems else f"{count:,} notes, nothing wrong")
    return "\n".join(lines), not problems


@asynccontextmanager
async def _open_search(
    folder: Path, lexical: bool, console: Console
) -> AsyncIterator[WorkspaceSearch]:
    notices = ConsoleNotices(console)
    if not lexical:
        await ensure_search(notices)
    index = open_index(lexical=lexical)
    try:
        async with open_notes(folder) as workspace:
            search = WorkspaceSearch(workspace, index)
            show_progress(search, notices)
            yield search
    finally:
        index.close()
