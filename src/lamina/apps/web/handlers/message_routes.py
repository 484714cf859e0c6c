"""The conversation: rows by index with cited passages, rows that contain given words, and tool
results.

Law: passages are the current text of notes, read through the one door into a folder.
"""

from functools import lru_cache, partial
from pathlib import Path

import anyio.to_thread

from lamina.adapters.files.linked_root import LinkedRoot
from lamina.adapters.files.paths import PathRefused
from lamina.apps.web.conversation.message_outline import Outline, cut_window
from lamina.apps.web.conversation.message_records import (
    FindQuery,
    FoundRow,
    FoundRows,
    MessageQuery,
    MessageWindow,
    ResultText,
)
from lamina.apps.web.conversation.message_rows import RowMaker, text_of_row
from lamina.apps.web.http_answers import not_found
from lamina.apps.web.routes import Call, Route
from lamina.core.audit.kept_results import find_result
from lamina.core.journal import Journal
from lamina.core.text.excerpt import brief
from lamina.engine.runners.answer import CitedSource
from lamina.errors import UsageError

LONGEST = 1_200
_MAX_BYTES = 4_000_000


def read_excerpt(folder: Path, source: CitedSource) -> str:
    """Return the lines that a source names; empty if unreadable, such as those of a web page."""
    if not source.start or "://" in source.path:
        return ""
    try:
        root = LinkedRoot(folder)
        status = root.status(folder / source.path)
        lines = _lines(str(folder), source.path, status.st_mtime_ns, status.st_size)
    except (OSError, ValueError, PathRefused):
        return ""
    text = "\n".join(lines[source.start - 1 : source.end]).strip()
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1].rstrip()}…"


@lru_cache(maxsize=64)
def _lines(folder: str, path: str, changed: int, size: int) -> tuple[str, ...]:  # noqa: ARG001
    """Return the lines of a file; size and time key the cache."""
    data = LinkedRoot(folder).read(Path(folder, path), _MAX_BYTES)
    return tuple(data.decode("utf-8", "replace").splitlines())


SESSION = "/api/workspaces/{workspace}/sessions/{session}"
_MAX_ROWS = 500
_AROUND = 80


async def show_messages(call: Call) -> MessageWindow:
    query: MessageQuery = call.query
    desk = call.desk
    journal, outline = await desk.read_outline(call.workspace, call.session)
    total = len(outline.rows)
    limit = max(1, min(query.limit, _MAX_ROWS))
    if query.around:
        place = outline.index_of(query.around)
        if place is None:
            raise not_found("entry", query.around, "it is not on the active path")
        first = max(0, min(place - limit // 2, total - limit))
    elif query.start is None:
        first = max(0, total - limit)
    else:
        start = query.start if query.start >= 0 else total + query.start
        first = max(0, min(start, total))
    opened = desk.find_open(call.workspace, call.session)
    maker = RowMaker(
        outline, journal.entries, desk.book,
        read_excerpt=partial(read_excerpt, desk.workspace(call.workspace)),
        timings=opened.timings if opened else {},
        seconds=opened.seconds if opened else {},
        is_running=bool(opened and opened.turns.running),
    )  # fmt: skip
    rows = maker.make(cut_window(outline, journal, first, min(total, first + limit)))
    return MessageWindow(rows=rows, first=first, total=total, leaf=journal.leaf)


async def find_rows(call: Call) -> FoundRows:
    query: FindQuery = call.query
    journal, outline = await call.desk.read_outline(call.workspace, call.session)
    words = query.q.casefold().strip()
    if not words:
        return FoundRows(rows=(), total=0)
    rows = tuple(outline.rows)
    return await anyio.to_thread.run_sync(_find, journal, outline, rows, words, query.limit)


def _find(
    journal: Journal, outline: Outline, rows: tuple[str, ...], words: str, limit: int
) -> FoundRows:
    found: list[FoundRow] = []
    total = 0
    for index, row in enumerate(rows):
        text = text_of_row(journal.entries[row])
        at = text.casefold().find(words)
        if at < 0:
            continue
        total += 1
        if len(found) < limit:
            start = max(0, at - _AROUND)
            piece = brief(text[start : at + len(words) + _AROUND])
            excerpt = f"{'…' if start else ''}{piece}"
            found.append(FoundRow(id=row, index=index, kind=outline.kinds[row], excerpt=excerpt))
    return FoundRows(rows=tuple(found), total=total)


async def show_result(call: Call) -> ResultText:
    journal = await call.desk.read_journal(call.workspace, call.session)
    what = call.path["call"]
    try:
        result = find_result(journal.entries.values(), what)
    except UsageError as error:
        raise not_found("result", what) from error
    text = result.text
    if result.digest:
        store = call.desk.stored(call.workspace, call.session).store
        text = (await store.get_blob(result.digest)).decode("utf-8", "replace")
    return ResultText(
        call=result.call_id, text=text, characters=len(text), is_error=result.is_error
    )


ROUTES = (
    Route(
        method="GET", path=f"{SESSION}/messages", handler=show_messages, query=MessageQuery,
        result=MessageWindow,
        summary="Returns rows of the active path; without `from` and `around`, the last ones.",
    ),
    Route(
        method="GET", path=f"{SESSION}/find", handler=find_rows, query=FindQuery,
        result=FoundRows, summary="Finds rows of the active path that contain given words.",
    ),
    Route(
        method="GET", path=f"{SESSION}/results/{{call}}", handler=show_result, result=ResultText,
        summary="Returns a tool's full result, including what was not sent.",
    ),
)  # fmt: skip
