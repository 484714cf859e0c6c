"""The notes and files of a workspace: searched, read, checked, completed and indexed."""

from collections.abc import Callable
from functools import partial

from anyio.to_thread import run_sync
from msgspec import Struct, field

from lamina.adapters.workspace.picture_files import ACCEPTED_TYPES, kind_of_picture
from lamina.apps.views.installed_models import why_words_alone
from lamina.apps.web.completions import Completions
from lamina.apps.web.http_answers import refuse_paths
from lamina.apps.web.http_bodies import RequestQuery, SentFile
from lamina.apps.web.jobs import JobProgress, JobStarted, Report
from lamina.apps.web.note_page import NoteCheck, NoteHits, NotePage, NoteShelf
from lamina.apps.web.routes import Call, Route
from lamina.apps.web.searches import report_from_any_thread
from lamina.core.notes.scopes import make_scope
from lamina.core.values.agent import Guide

WORKSPACE = "/api/workspaces/{workspace}"
# Larger pictures are not shown in a page.
MAX_FILE = 20 * 1024 * 1024


class IndexedNotes(Struct, frozen=True, kw_only=True):
    """The result of indexing; `by_words` says why there are no vectors, if so."""

    notes: int
    by_words: str
    warnings: tuple[str, ...]


class NoteSearch(RequestQuery, frozen=True, kw_only=True):
    """A search. `in` (a folder), `tag` and `since` (a day) limit it. Without `q` the notes that
    changed last are listed. `words` searches without meaning."""

    q: str = ""
    folder: str = field(default="", name="in")
    tag: str = ""
    since: str = ""
    limit: int = 20
    words: bool = False


class CompletionQuery(RequestQuery, frozen=True, kw_only=True):
    """The text after the `@` so far; `agent` adds its rules and references."""

    q: str = ""
    agent: str = ""
    limit: int = 30


async def search_notes(call: Call) -> NoteHits:
    query: NoteSearch = call.query
    # Empty fields do not limit the search.
    scope = make_scope(query.folder.strip() or (), query.tag.strip() or (), query.since or None)
    shelf = await _shelf(call)
    if not query.q.strip():
        return await shelf.latest(scope, query.limit)
    why = "as requested" if query.words else why_words_alone()
    index = await run_sync(partial(call.desk.searches.index, words=bool(why)))
    return await shelf.search(query.q, scope, query.limit, index, why)


async def show_note(call: Call) -> NotePage:
    shelf = await _shelf(call)
    with refuse_paths("note"):
        return await shelf.page(call.path["path"])


async def check_notes(call: Call) -> NoteCheck:
    return await (await _shelf(call)).check()


async def complete(call: Call) -> Completions:
    query: CompletionQuery = call.query
    guides: tuple[Guide, ...] = ()
    if query.agent:
        folder = call.desk.workspace(call.workspace)
        guides = await call.desk.searches.guides(folder, query.agent)
    items = await (await _shelf(call)).complete(query.q, guides, query.limit)
    return Completions(query=query.q, items=items)


async def index_notes(call: Call) -> JobStarted:
    shelf = await _shelf(call)
    why = why_words_alone()
    index = await run_sync(partial(call.desk.searches.index, words=bool(why)))

    async def work(report: Report) -> IndexedNotes:
        result = await shelf.prepare(
            index, _reporter(report, "reading notes"), _reporter(report, "indexing passages")
        )
        return IndexedNotes(notes=result.searched, by_words=why, warnings=result.warnings)

    return call.desk.jobs.start(f"index {call.workspace}", work).started


def _reporter(report: Report, text: str) -> Callable[[int, int], None]:
    def report_step(done: int, total: int) -> None:
        report_from_any_thread(report, JobProgress(text=text, done=done, total=total))

    return report_step


async def send_file(call: Call) -> SentFile:
    shelf = await _shelf(call)
    with refuse_paths("file"):
        data = await shelf.bytes_of(call.path["path"], MAX_FILE)
    media_type = kind_of_picture(data)
    # Other files are downloaded and never run in the page, including pictures with scripts.
    is_picture = media_type in ACCEPTED_TYPES
    return SentFile(
        data=data,
        media_type=media_type if is_picture else "application/octet-stream",
        name=call.path["path"].rpartition("/")[2],
        inline=is_picture,
        headers={"x-content-type-options": "nosniff", "cache-control": "private, no-cache"},
    )


async def _shelf(call: Call) -> NoteShelf:
    return await call.desk.searches.shelf(call.desk.workspace(call.workspace))


ROUTES = (
    Route(
        method="GET", path=f"{WORKSPACE}/notes", handler=search_notes, result=NoteHits,
        query=NoteSearch, summary="Finds matching passages in notes, with scores.",
    ),
    Route(
        method="GET", path=f"{WORKSPACE}/notes/{{path:path}}", handler=show_note, result=NotePage,
        summary="Returns a note with its headings, links and backlinks.",
    ),
    Route(
        method="GET", path=f"{WORKSPACE}/notes-check", handler=check_notes, result=NoteCheck,
        summary="Checks the notes for broken links and other problems.",
    ),
    Route(
        method="GET", path=f"{WORKSPACE}/complete", handler=complete, result=Completions,
        query=CompletionQuery, summary="Completes an @ mention.",
    ),
    Route(
        method="POST", path=f"{WORKSPACE}/index", handler=index_notes, result=JobStarted,
        status=202, summary="Indexes all notes for search by meaning, as a job.",
    ),
    Route(
        method="GET", path=f"{WORKSPACE}/files/{{path:path}}", handler=send_file, result=bytes,
        form="file", summary="Returns a file; pictures are shown, other files downloaded.",
    ),
)  # fmt: skip
