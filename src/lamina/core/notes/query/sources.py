"""Which notes a query begins with: what stands behind FROM.

Law: a source chooses among the notes that the workspace has; it opens nothing.
"""

from collections.abc import Callable, Iterable
from typing import assert_never

from lamina.core.notes.names import NOTE_SUFFIX, is_in_folder, split_link, tag_matches
from lamina.core.notes.query.note_index import QueryNotes
from lamina.core.notes.query.pages import Page
from lamina.core.notes.query.syntax import (
    CsvSource,
    FolderSource,
    LinkSource,
    QuerySource,
    SourceNegation,
    SourceOperations,
    TagSource,
)
from lamina.core.notes.query.value_order import fold_case
from lamina.core.values.note import Note
from lamina.errors import QueryError

_Test = Callable[[Page], bool]


class SourceFilter:
    """Chooses notes for a query in the note `at`; `warnings` says what was not clear."""

    def __init__(self, notes: QueryNotes, at: str) -> None:
        self._notes, self._at = notes, at
        self.warnings: list[str] = []

    def choose(self, source: QuerySource | None) -> list[Page]:
        """The notes of a source in the order of their paths; all, if there is none."""
        if source is None:
            return self._notes.pages
        return list(filter(self._test(source), self._notes.pages))

    def _test(self, source: QuerySource) -> _Test:
        match source:
            case TagSource(tag):
                return lambda page: any(tag_matches(own, tag) for own in page.note.tags)
            case FolderSource(folder):
                paths = (folder, folder + NOTE_SUFFIX)
                return lambda page: is_in_folder(page.path, folder) or page.path in paths
            case LinkSource(name, is_outgoing):
                return self._outgoing(name) if is_outgoing else self._incoming(name)
            case CsvSource(path):
                raise QueryError(1, 1, f"csv({path!r}) is not offered; attach the table itself")
            case SourceNegation(part):
                test_part = self._test(part)
                return lambda page: not test_part(page)
            case SourceOperations(first, rest):
                return self._join(self._test(first), [(sign, self._test(p)) for sign, p in rest])
            case _:
                assert_never(source)

    def _join(self, first: _Test, rest: list[tuple[str, _Test]]) -> _Test:
        def test(page: Page) -> bool:
            is_chosen = first(page)
            for sign, test_part in rest:
                is_chosen = (
                    (is_chosen and test_part(page))
                    if sign == "and"
                    else (is_chosen or test_part(page))
                )
            return is_chosen

        return test

    def _find_path(self, name: str) -> str | None:
        """The note that a link in FROM means."""
        link = split_link(name)
        if not link.name:
            return self._at
        resolution = self._notes.resolve(link.name, self._at)
        if resolution.path is None and resolution.how == "ambiguous":
            dots = ("…",) if len(resolution.matches) > 5 else ()
            listing = ", ".join((*resolution.matches[:5], *dots))
            self.warnings.append(
                f"[[{name}]] may mean any of {listing}; links spelled like it were taken"
            )
        return resolution.path

    def _incoming(self, name: str) -> _Test:
        """By the note that a link means. A name that means no note is compared as it is spelled."""
        path = self._find_path(name)
        if path is None:
            stems = _stems(name)
            return lambda page: any(
                not stems.isdisjoint(_stems(link)) for link in _links_near(page.note, stems)
            )
        sources = {link.path for link in self._notes.links_to(path)}
        return lambda page: page.path in sources

    def _outgoing(self, name: str) -> _Test:
        path = self._find_path(name)
        page = None if path is None else self._notes.page(path)
        targets = set() if page is None else {link.path for link in page.file["outlinks"]}
        return lambda other: other.path in targets


def _links_near(note: Note, names: set[str]) -> Iterable[str]:
    """Targets of links and embeds that hold one of the names; not links within the note."""
    for link in note.links + note.embeds:
        spelling = fold_case(link)
        if not spelling.startswith("#") and any(name in spelling for name in names):
            yield link


def _stems(link: str) -> set[str]:
    """The last part of a link's target, with `#` as part of the name and without."""
    return {
        fold_case(spelling).rsplit("/", 1)[-1].removesuffix(NOTE_SUFFIX).strip()
        for spelling in (link, split_link(link).name)
    }
