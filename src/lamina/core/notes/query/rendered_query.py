"""Runs and renders queries in notes: a language that lists notes, their tasks and their contents.

    TABLE status, due AS "Due" FROM #project AND "work" WHERE status != "done" SORT due LIMIT 20

docs/queries.md describes the whole language. Law: pure. The same query over the same notes at the
same time returns the same text, so that what was sent stays the same until a note or, where a query
asks for it, the day changes.
"""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import Literal

from msgspec import Struct

from lamina.core.notes.query.compiler import Compiler
from lamina.core.notes.query.evaluator import NO_TIME, evaluate_expression, run_query
from lamina.core.notes.query.note_index import QueryNotes
from lamina.core.notes.query.parser import parse_expression, parse_query
from lamina.core.notes.query.query_markdown import render_result, show_value
from lamina.core.notes.query.work_limit import WorkLimit
from lamina.core.values.note import Note, NoteQuery
from lamina.errors import QueryError

Clock = Literal["any", "day", "minute"]


class RenderedQuery(Struct, frozen=True):
    """The text of a result and its validity: always, for a day or for a minute."""

    text: str
    clock: Clock = "any"


def render_query(
    text: str,
    notes: Sequence[Note],
    at: str,
    now: datetime = NO_TIME,
    zone: tzinfo | None = UTC,
) -> str:
    """Render the result of a query in the note `at` as Markdown.

    Raises:
        QueryError: it is not a valid query; with line and column.
    """
    return run_block(text, QueryNotes(notes, zone), at, now).text


def run_block(text: str, notes: QueryNotes, at: str, now: datetime) -> RenderedQuery:
    """Return the result of a query block in the note `at`.

    Raises:
        QueryError: it is not a valid query, or has no result.
    """
    result = run_query(parse_query(text), notes, at=at, now=now)
    return RenderedQuery(render_result(result), result.clock)


def run_inline(text: str, notes: QueryNotes, at: str, now: datetime) -> RenderedQuery:
    """Return the values of the inline queries in the note `at`, one per line; a failed one is
    replaced by its problem.

    Raises:
        QueryError: not one of them has a value.
    """
    compiler = Compiler(notes, at, now, WorkLimit())
    lines: list[str] = []
    errors: list[QueryError] = []
    for query in text.split("\n"):
        try:
            value = show_value(evaluate_expression(parse_expression(query), compiler))
        except QueryError as error:
            errors.append(error)
            value = f"(left out: {error})"
        lines.append(f"- `{query}`: {value}" if value else f"- `{query}`")
    if len(errors) == len(lines):
        raise errors[0]
    return RenderedQuery("\n".join(lines), compiler.clock)


def check_query(query: NoteQuery) -> list[str]:
    """Return the problems with a query, without running it."""
    problems: list[str] = []
    for text in query.text.split("\n") if query.kind == "inline" else (query.text,):
        try:
            (parse_expression if query.kind == "inline" else parse_query)(text)
        except QueryError as error:
            spelling = f"`{text}`: " if query.kind == "inline" else ""
            problems.append(f"{spelling}{error}")
    return problems


def digest_notes(notes: Sequence[Note]) -> bytes:
    """Return a digest of everything that can affect a query: each note's path, bytes and times."""
    digest = hashlib.sha256()
    for note in notes:
        stamp = f"{note.path}\0{note.digest}\0{note.ctime!r}\0{note.mtime!r}\n"
        digest.update(stamp.encode("utf-8", "surrogatepass"))
    return digest.digest()


def stamp_of(clock: Clock, now: datetime) -> str:
    """Return the time stamp that must match for a result to stay valid."""
    return {"any": "", "day": now.date().isoformat(), "minute": now.isoformat(" ", "minutes")}[
        clock
    ]


class QueryCache:
    """A cache of query results, valid as long as no note changes and, for those that depend on the
    day or time, until the next one.

    The key consists of the query's text, the path of its note and the digest of all notes: any note
    can change a result, not just the one with the query. If the notes are the same tuple as last
    time, they are not digested again. The least recently used results are dropped first. Not
    thread-safe."""

    def __init__(self, max_characters: int = 4_000_000, zone: tzinfo | None = UTC) -> None:
        self._max_characters = max_characters
        self._zone = zone
        self._size = 0
        self._results: dict[tuple[str, str, bytes], tuple[RenderedQuery, str]] = {}
        self._notes = QueryNotes((), zone)
        self._digest = digest_notes(())

    def text(self, query: NoteQuery, notes: tuple[Note, ...], at: str, now: datetime) -> str:
        """Return the result of a query in the note `at`, computed once.

        Raises:
            QueryError: it is not a valid query; with line and column.
        """
        if notes is not self._notes.notes:
            self._notes, self._digest = QueryNotes(notes, self._zone), digest_notes(notes)
        key = (query.key, at, self._digest)
        known = self._results.pop(key, None)
        if known is not None:
            self._size -= _count_characters(key, known[0].text)
        if known is None or known[1] != stamp_of(known[0].clock, now):
            run = run_inline if query.kind == "inline" else run_block
            result = run(query.text, self._notes, at, now)
            known = (result, stamp_of(result.clock, now))
        self._results[key] = known
        self._size += _count_characters(key, known[0].text)
        while self._size > self._max_characters and self._results:
            oldest = next(iter(self._results))
            self._size -= _count_characters(oldest, self._results.pop(oldest)[0].text)
        return known[0].text


def _count_characters(key: tuple[str, str, bytes], text: str) -> int:
    return len(key[0]) + len(key[1]) + len(text)
