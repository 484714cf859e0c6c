"""Query blocks: a small language that lists notes by their properties.

    TABLE status, due AS "Due" FROM #project AND "work" WHERE status != "done" SORT due LIMIT 20

docs/queries.md describes all of it. Law: pure. The same query over the same notes gives the same
text, so that what was sent stays the same until a note changes.
"""

import hashlib
from collections.abc import Sequence

from lamina.notes.query.evaluator import run_query
from lamina.notes.query.parser import parse_query
from lamina.notes.query.renderer import render_result
from lamina.values.note import Note


def render_query(text: str, notes: Sequence[Note], at: str) -> str:
    """The result of the query in the note `at`, as Markdown.

    Raises:
        QueryError: it is not a valid query; with line and column.
    """
    return render_result(run_query(parse_query(text), notes, at=at))


def digest_notes(notes: Sequence[Note]) -> bytes:
    """A digest of everything a query can depend on: each note's path, bytes and times."""
    digest = hashlib.sha256()
    for note in notes:
        stamp = f"{note.path}\0{note.digest}\0{note.ctime!r}\0{note.mtime!r}\n"
        digest.update(stamp.encode("utf-8", "surrogatepass"))
    return digest.digest()


class QueryCache:
    """Results of queries, for as long as no note changes.

    The key is the query's text, the path of its note and the digest of all notes: any note can
    change a result, not just the one with the query. If the notes are the same tuple as last
    time, they are not digested again. The least recently used results are dropped first. For one
    thread at a time."""

    def __init__(self, most_characters: int = 4_000_000) -> None:
        self._most = most_characters
        self._size = 0
        self._texts: dict[tuple[str, str, bytes], str] = {}
        self._notes: tuple[Note, ...] = ()
        self._digest = digest_notes(())

    def text(self, query: str, notes: tuple[Note, ...], at: str) -> str:
        """Like `render_query`, but computed once.

        Raises:
            QueryError: it is not a valid query; with line and column.
        """
        if notes is not self._notes:
            self._notes, self._digest = notes, digest_notes(notes)
        key = (query, at, self._digest)
        text = self._texts.pop(key, None)
        if text is None:
            text = render_query(query, notes, at)
            self._size += _count_characters(key, text)
        self._texts[key] = text
        while self._size > self._most and self._texts:
            oldest = next(iter(self._texts))
            self._size -= _count_characters(oldest, self._texts.pop(oldest))
        return text


def _count_characters(key: tuple[str, str, bytes], text: str) -> int:
    return len(key[0]) + len(key[1]) + len(text)
