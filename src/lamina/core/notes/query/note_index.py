"""Indexes all notes that queries run over, with resolved links and backlinks.

Laws: everything is computed when a query first needs it, and kept as long as the notes are the
same. Nothing depends on a clock.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from lamina.core.notes.note_names import NoteNames, ResolvedName, split_link
from lamina.core.notes.query.operators import moment_of
from lamina.core.notes.query.rows import Page, list_links
from lamina.core.notes.query.values import PageLink
from lamina.core.values.note import Note

_WIKILINK = re.compile(r"(!?)\[\[([^\[\]\n]*)\]\]")
MAX_RESOLVED = 200_000


class QueryNotes:
    """A set of notes; times are shown in `zone`, or in the machine's zone if None."""

    def __init__(self, notes: Sequence[Note], zone: tzinfo | None = UTC) -> None:
        self.notes = notes
        self.zone = zone
        self._pages: dict[str, Page] = {}
        self._resolved: dict[tuple[str, str], ResolvedName] = {}

    @cached_property
    def pages(self) -> list[Page]:
        """Return all notes, ordered by path."""
        pages = [Page(note, self) for note in sorted(self.notes, key=lambda note: note.path)]
        self._pages = {page.path: page for page in pages}
        return pages

    def page(self, path: str) -> Page | None:
        return self._pages.get(path) if self.pages else None

    @cached_property
    def names(self) -> NoteNames:
        aliases = {note.path: note.aliases for note in self.notes if note.aliases}
        return NoteNames((note.path for note in self.notes), aliases)

    def resolve(self, name: str, beside: str) -> ResolvedName:
        """Resolve the name in a link in the note `beside`, once per name."""
        key = (name, beside)
        resolution = self._resolved.get(key)
        if resolution is None:
            if len(self._resolved) >= MAX_RESOLVED:
                self._resolved.clear()
            resolution = self._resolved[key] = self.names.resolve(name, beside=beside)
        return resolution

    def make_link(self, spelling: str, beside: str, labels: Iterable[str] = ()) -> PageLink:
        """Return the link for `[[spelling]]` in the note `beside`; brackets are optional. If its
        name matches nothing and one of its labels does, that label is the name, as in Dendron."""
        is_embed = spelling.startswith("!")
        link = split_link(spelling)
        path: str | None = beside
        if link.name:
            path = self.resolve(link.name, beside).path
        for label in (link.label, *labels) if path is None else ():
            named = split_link(label)
            if named.name and (path := self.resolve(named.name, beside).path) is not None:
                link = replace(named, label=link.name)
                break
        # The start of a range.
        start = link.anchor.partition(":#")[0]
        anchor = start.rpartition("#")[2].strip() or start
        is_block = anchor.startswith("^")
        return PageLink(
            path=link.name if path is None else path,
            target="block" if is_block else "header" if anchor else "file",
            subpath=anchor.removeprefix("^"),
            display=link.label,
            is_embed=is_embed,
        )

    def find_links(self, text: str, beside: str) -> Iterator[PageLink]:
        """Yield the links in a string from the note `beside`."""
        for match in _WIKILINK.finditer(text):
            yield self.make_link(match[0], beside)

    @cached_property
    def _inlinks(self) -> Mapping[str, tuple[PageLink, ...]]:
        links: dict[str, dict[str, None]] = {}
        for page in self.pages:
            for link in list_links(page.note):
                path = page.link(*link).path
                if path in self._pages:
                    links.setdefault(path, {})[page.path] = None
        return {
            path: tuple(PageLink(path=source) for source in sources)
            for path, sources in links.items()
        }

    def links_to(self, path: str) -> tuple[PageLink, ...]:
        """Return links to the notes that link to or embed a note."""
        return self._inlinks.get(path, ())

    def moment(self, seconds: float) -> datetime | None:
        """Return a file's time, to the second, in the zone in which times are shown."""
        if self.zone is UTC:
            return moment_of(seconds)
        try:
            return datetime.fromtimestamp(int(seconds), self.zone).replace(tzinfo=None)
        except (ValueError, OverflowError, OSError):
            return None

    def row_of(self, link: PageLink) -> Mapping[str, Any] | None:
        page = self.page(link.path)
        return None if page is None else page.row
