"""Problems in the notes of a workspace: broken links, headings and queries, and ambiguous link
names; also its tags, and undoing a change to files.
"""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio.to_thread
from msgspec import Struct

from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.apps.wiring.folders import open_folder
from lamina.core.notes.note_names import NOTE_SUFFIX, NoteNames, ResolvedName, list_paths
from lamina.core.notes.obsidian_search import parse_search
from lamina.core.notes.query.rendered_query import check_query
from lamina.core.notes.sections import heading_names, is_heading_anchor
from lamina.core.values.note import Catalogue, Note, NoteQuery
from lamina.errors import QueryError

_MAX_LISTED = 3


class NoteProblem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem in a note; or, with `meaning` set, a link that was decided: several files have its
    name, and `meaning` is the nearest. `candidates` lists all of them."""

    path: str
    what: str
    detail: str
    meaning: str = ""
    nearness: str = ""
    candidates: tuple[str, ...] = ()

    @property
    def is_decided(self) -> bool:
        return bool(self.meaning)


def check_links(
    note: Note, names: NoteNames, headings: Mapping[str, frozenset[str]]
) -> Iterator[NoteProblem]:
    """Yield the links, embeds and pictures of a note that are broken or ambiguous."""
    for link in dict.fromkeys((*note.links, *note.embeds)):
        target = names.resolve_link(link, note.labels.get(link, ()), note.path)
        if problem := _judge(note.path, "link", link, target):
            yield problem
        own = headings.get(target.path or "")
        if own is not None and not is_heading_anchor(target.anchor, own):
            detail = f"{link!r}: {target.path} has no heading {target.anchor!r}"
            yield NoteProblem(path=note.path, what="broken heading", detail=detail)
    for picture in note.pictures:
        target = names.resolve(picture, note.path)
        # A picture whose path names its folder is only looked up there.
        is_elsewhere = target.how == "stem" and bool(target.warning)
        if is_elsewhere:
            target = ResolvedName(name=picture, warning=f"{picture!r} is not in the workspace")
        if problem := _judge(note.path, "picture", picture, target):
            yield problem


def count_nearness(problems: Iterable[NoteProblem]) -> dict[str, int]:
    """Return how many links were decided by each measure of nearness."""
    counts: dict[str, int] = {}
    for problem in problems:
        if problem.is_decided:
            counts[problem.nearness] = counts.get(problem.nearness, 0) + 1
    return counts


def _judge(path: str, kind: str, link: str, target: ResolvedName) -> NoteProblem | None:
    if target.path is None:
        what = "ambiguous" if target.how == "ambiguous" else "broken"
        detail = target.warning.replace("; it is left out", "")
        return NoteProblem(
            path=path, what=f"{what} {kind}", detail=detail, candidates=target.matches
        )
    # A full path, or a path with suffix from the note's folder, is never ambiguous.
    is_exact = target.how in ("path", "relative") and link.lower().endswith(NOTE_SUFFIX)
    if not target.nearness or is_exact:
        return None
    others = [match for match in target.matches if match != target.path]
    where = _WHERE[target.nearness]
    detail = f"{link!r} is {target.path} ({where}), not {list_paths(others, _MAX_LISTED)}"
    return NoteProblem(
        path=path,
        what=f"decided {kind}",
        detail=detail,
        meaning=target.path,
        nearness=target.nearness,
        candidates=target.matches,
    )


_WHERE = {
    "root": "in the root",
    "same folder": "in the same folder",
    "below": "below its folder",
    "same top folder": "in the same top folder",
    "fewest folders": "in the fewest folders",
}


async def undo_change(folder: Path, change: str | None) -> str:
    """Undo a change to files, and return what was undone."""
    from lamina.adapters.workspace.file_actions.actions import FileActions

    async with open_notes(folder) as workspace:
        return await anyio.to_thread.run_sync(FileActions(workspace.root).undo, change)


def find_problems(catalogue: Catalogue, paths: tuple[str, ...]) -> list[NoteProblem]:
    """Return the problems in the notes, and the links that were decided, by path."""
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
    """Return the file that a problem describes: the problem begins with its path."""
    candidates = [path for path in paths if problem.startswith((f"{path} ", f"{path}:"))]
    return max(candidates, key=len, default=problem.partition(": ")[0])


def _wrong_queries(note: Note) -> list[NoteProblem]:
    return [
        NoteProblem(path=note.path, what=what, detail=detail)
        for query in note.queries
        for what, detail in _judge_query(query)
    ]


def _judge_query(query: NoteQuery) -> list[tuple[str, str]]:
    """Return the problems of a query, or why it is left out."""
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
    """Return tags with the number of notes that have them, most frequent first."""
    counts: Counter[str] = Counter()
    spellings: dict[str, str] = {}
    for tag in (tag for note in catalogue.notes for tag in note.tags):
        # `Draft` and `draft` are one tag; its first spelling is shown.
        counts[spellings.setdefault(tag.casefold(), tag)] += 1
    return sorted(counts.items(), key=lambda count: (-count[1], count[0]))
