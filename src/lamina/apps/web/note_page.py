"""The notes of one folder as pages show them: searched, read, checked and completed, from a shelf
that stays open.

Laws: unchanged files are not read again. Nothing outside the folder is opened; hidden files are
treated as missing.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import PurePosixPath

import anyio
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync
from msgspec import Struct, convert

from lamina.adapters.files.paths import PathRefused
from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.apps.views.background_fill import FillPause
from lamina.apps.views.note_problems import NoteProblem, find_problems
from lamina.apps.web.completions import Completion, CompletionList
from lamina.core.notes.frontmatter import split_frontmatter
from lamina.core.notes.note_names import NoteNames
from lamina.core.notes.note_outline import read_outline
from lamina.core.notes.note_reader import decode_note
from lamina.core.ports import Index, Progress
from lamina.core.values.agent import Guide
from lamina.core.values.note import Catalogue, Hit, Note, NoteSearchResult, Scope
from lamina.engine.sources.note_search import WorkspaceSearch, is_in_scope


class NoteHeading(Struct, frozen=True, kw_only=True):
    """A heading; `line` counts from 1."""

    level: int
    text: str
    line: int


class NoteLink(Struct, frozen=True, kw_only=True):
    """A link as written, and the file it leads to; without `path` it is broken, and `problem` says
    why."""

    link: str
    path: str
    anchor: str
    is_embed: bool
    problem: str


class BackLink(Struct, frozen=True, kw_only=True):
    """A note that links to another one."""

    path: str
    title: str


class NotePage(Struct, frozen=True, kw_only=True):
    """A note with the text of its file; `is_note` is False for other text files."""

    path: str
    title: str
    text: str
    etag: str
    bytes: int
    mtime: float
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    headings: tuple[NoteHeading, ...]
    links: tuple[NoteLink, ...]
    backlinks: tuple[BackLink, ...]
    problems: tuple[str, ...]
    is_note: bool


class NoteHit(Struct, frozen=True, kw_only=True):
    """A passage found by search. `place` attaches just these lines; `score` is None if it was found
    by words."""

    path: str
    title: str
    heading: str
    place: str
    start: int
    end: int
    text: str
    score: float | None
    mtime: float


class NoteHits(Struct, frozen=True, kw_only=True):
    """Search results. `method` is meaning and words, or words alone with the reason."""

    query: str
    method: str
    by_meaning: bool
    searched: int
    late: int
    hits: tuple[NoteHit, ...]
    warnings: tuple[str, ...]


class NoteCheck(Struct, frozen=True, kw_only=True):
    """The problems in the notes of a workspace; `decided` are ambiguous links that were resolved
    to the nearest file."""

    notes: int
    problems: tuple[NoteProblem, ...]
    decided: tuple[NoteProblem, ...]
    counts: dict[str, int]


# How long a search in a page waits for new notes to be embedded.
PATIENCE_S = 1.0
# Longer texts are not notes that people read.
MAX_TEXT = 4 * 1024 * 1024
MAX_HITS = 200


class NoteShelf:
    """A folder whose notes are shown. Values derived from its catalogue are cached until that
    changes."""

    def __init__(
        self,
        workspace: FolderWorkspace,
        tasks: TaskGroup | None = None,
        pause: FillPause | None = None,
    ) -> None:
        """With `tasks`, passages missing from the index are embedded there, except in a `pause`."""
        self._workspace = workspace
        self._tasks = tasks
        self._pause = pause or FillPause()
        self._fills: list[anyio.CancelScope] = []
        self._searches: dict[int, tuple[Index, WorkspaceSearch]] = {}
        self._completions = CompletionList(workspace)
        self._links: _LinkTable | None = None

    async def aclose(self) -> None:
        self.forget_searches()
        await self._workspace.aclose()

    def forget_searches(self) -> None:
        """Forget searches whose index was closed, so that the next one is used."""
        self._searches.clear()
        for scope in self._fills:
            scope.cancel()
        self._fills.clear()

    def _search(self, index: Index) -> WorkspaceSearch:
        known = self._searches.get(id(index))
        if known is None or known[0] is not index:
            known = (index, WorkspaceSearch(self._workspace, index, patience=PATIENCE_S))
            self._searches[id(index)] = known
            if self._tasks is not None:
                self._tasks.start_soon(self._fill, known[1])
        return known[1]

    async def _fill(self, search: WorkspaceSearch) -> None:
        with anyio.CancelScope() as scope:
            self._fills.append(scope)
            await self._pause.fill(search)

    async def search(
        self, query: str, scope: Scope, limit: int, index: Index, why_words: str
    ) -> NoteHits:
        """Return matching passages, best first. `why_words` says why meaning is not used."""
        top = max(1, min(limit, MAX_HITS))
        result = await self._search(index).search(query, scope=scope, top=top)
        return _hits(query, result, _shown(result.hits), why_words)

    async def latest(self, scope: Scope, limit: int) -> NoteHits:
        """Return the notes that changed last, each with its first passage."""
        catalogue = await self._workspace.catalogue()
        notes = [note for note in catalogue.notes if is_in_scope(note, scope)]
        notes.sort(key=lambda note: (-note.mtime, note.path))
        shown = notes[: max(1, min(limit, MAX_HITS))]
        firsts = [(note.path, note.passages[0]) for note in shown if note.passages]
        excerpts = await self._workspace.excerpts(firsts)
        pairs = zip(firsts, excerpts, strict=True)
        texts = {path: excerpt.text for (path, _), excerpt in pairs if excerpt}
        result = NoteSearchResult(searched=len(notes))
        return _hits("", result, [_opening(note, texts.get(note.path, "")) for note in shown], "")

    async def prepare(
        self, index: Index, reading: Progress, indexing: Progress
    ) -> NoteSearchResult:
        """Prepare all notes for search, however long that takes."""
        search = WorkspaceSearch(self._workspace, index, patience=None)
        search.reading, search.indexing = reading, indexing
        result = await search.prepare()
        await self._completions.prepare()
        return result

    async def page(self, path: str) -> NotePage:
        """Return a note, or another text file.

        Raises:
            PathRefused: it is missing, hidden, not text, or outside the folder.
        """
        data, status = await run_sync(self._workspace.root.read, path, MAX_TEXT)
        if b"\0" in data[:8192]:
            raise PathRefused("unreadable", f"{path} is not a text file")
        text, problems = decode_note(data)
        table = await self._table()
        clean = str(PurePosixPath(path))
        note = table.notes.get(clean)
        return NotePage(
            path=clean,
            title=note.title if note else PurePosixPath(clean).name,
            text=text,
            etag=sha256(data).hexdigest(),
            bytes=len(data),
            mtime=status.st_mtime,
            tags=note.tags if note else (),
            aliases=note.aliases if note else (),
            headings=tuple(_headings(text)) if note else (),
            links=table.links.get(clean, ()),
            backlinks=table.backlinks.get(clean, ()),
            problems=note.problems if note else problems,
            is_note=note is not None,
        )

    async def check(self) -> NoteCheck:
        """Return the problems in the notes."""
        catalogue = await self._workspace.catalogue()
        paths = await self._workspace.paths()
        findings = await run_sync(find_problems, catalogue, paths)
        counts: dict[str, int] = {}
        for finding in findings:
            counts[finding.what] = counts.get(finding.what, 0) + 1
        return NoteCheck(
            notes=len(catalogue.notes),
            problems=tuple(finding for finding in findings if not finding.is_decided),
            decided=tuple(finding for finding in findings if finding.is_decided),
            counts=counts,
        )

    async def complete(
        self, text: str, guides: Sequence[Guide], limit: int
    ) -> tuple[Completion, ...]:
        """Return what can follow an `@`."""
        return await self._completions.match(text, guides, max(1, min(limit, MAX_HITS)))

    async def bytes_of(self, path: str, limit: int) -> bytes:
        """Return a file's bytes.

        Raises:
            PathRefused: it is missing, hidden, too large, or outside the folder.
        """
        data, _ = await run_sync(self._workspace.root.read, path, limit)
        return data

    async def _table(self) -> "_LinkTable":
        catalogue = await self._workspace.catalogue()
        if self._links is None or self._links.catalogue is not catalogue:
            paths = await self._workspace.paths()
            self._links = await run_sync(_LinkTable, catalogue, paths)
        return self._links


class _LinkTable:
    """Where the links of all notes lead, and which notes link to each."""

    def __init__(self, catalogue: Catalogue, paths: Sequence[str]) -> None:
        self.catalogue = catalogue
        self.notes = {note.path: note for note in catalogue.notes}
        aliases = {note.path: note.aliases for note in catalogue.notes if note.aliases}
        names = NoteNames(paths, aliases)
        self.links = {note.path: tuple(_links(note, names)) for note in catalogue.notes}
        sources: dict[str, dict[str, BackLink]] = {}
        for note in catalogue.notes:
            for link in self.links[note.path]:
                if link.path and link.path != note.path:
                    own = sources.setdefault(link.path, {})
                    own[note.path] = BackLink(path=note.path, title=note.title)
        self.backlinks = {path: tuple(own.values()) for path, own in sources.items()}


def _links(note: Note, names: NoteNames) -> Iterable[NoteLink]:
    embeds = {*note.embeds, *note.pictures}
    for link in dict.fromkeys((*note.links, *note.embeds, *note.pictures)):
        target = names.resolve_link(link, note.labels.get(link, ()), note.path)
        yield NoteLink(
            link=link,
            path=target.path or "",
            anchor=target.anchor,
            is_embed=link in embeds,
            problem="" if target.path else target.warning.replace("; it is left out", ""),
        )


def _headings(text: str) -> Iterable[NoteHeading]:
    _, body, first = split_frontmatter(text)
    for heading in read_outline(body.split("\n")).headings:
        yield NoteHeading(level=heading.level, text=heading.text, line=first + heading.line)


def _shown(hits: Sequence[Hit]) -> list[NoteHit]:
    return convert(hits, list[NoteHit], from_attributes=True)


def _opening(note: Note, text: str) -> NoteHit:
    first = note.passages[0] if note.passages else None
    return NoteHit(
        path=note.path,
        title=note.title,
        heading=first.heading if first else "",
        place=note.path,
        start=first.start if first else 1,
        end=first.end if first else 1,
        text=text,
        score=None,
        mtime=note.mtime,
    )


def _hits(
    query: str, result: NoteSearchResult, hits: Sequence[NoteHit], why_words: str
) -> NoteHits:
    by_meaning = any(hit.score is not None for hit in hits)
    return NoteHits(
        query=query,
        method=f"by words alone: {why_words}" if why_words else result.method,
        by_meaning=by_meaning,
        searched=result.searched,
        late=result.late,
        hits=tuple(hits),
        warnings=result.warnings,
    )
