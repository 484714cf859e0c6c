"""Notes and the items of their lists as rows of fields.

Law: nothing is read from files here; a row says what its note's record says. What a link means
depends on all notes, so rows belong to one set of notes (`QueryNotes`).
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lamina.core.notes.inline_fields import find_fields, find_shorthands
from lamina.core.notes.names import NOTE_SUFFIX
from lamina.core.notes.query.dates import find_date
from lamina.core.notes.query.field_values import MOST_DEEP, merge_fields, read_field, read_property
from lamina.core.notes.query.rows import LazyRow
from lamina.core.notes.query.values import PageLink
from lamina.core.notes.tags import find_tags
from lamina.core.values.note import ListItem, Note

_WIKILINK = re.compile(r"!?\[\[[^\[\]\n]+\]\]")

if TYPE_CHECKING:
    from lamina.core.notes.query.note_index import QueryNotes


def list_links(note: Note) -> list[tuple[str, tuple[str, ...]]]:
    """The links of a note as they are spelled, with their labels: those of its text, its embeds and
    its properties."""
    links = [(link, note.labels.get(link, ())) for link in note.links]
    links += [(f"![[{embed}]]", note.labels.get(embed, ())) for embed in note.embeds]
    links += [(link, ()) for value in note.properties.values() for link in _links_in(value)]
    return [link for link in links if not link[0].startswith("#")]


def _links_in(value: Any, deep: int = 0) -> list[str]:
    if isinstance(value, str):
        return _WIKILINK.findall(value) if "[[" in value else []
    if not isinstance(value, dict | list) or deep > MOST_DEEP:
        return []
    members = value.values() if isinstance(value, dict) else value
    return [link for member in members for link in _links_in(member, deep + 1)]


class Page:
    """A note of a set of notes."""

    def __init__(self, note: Note, notes: "QueryNotes") -> None:
        self.note, self.notes = note, notes
        self._row: LazyRow | None = None
        self._items: dict[int, Item] | None = None

    @property
    def path(self) -> str:
        return self.note.path

    @property
    def row(self) -> LazyRow:
        """Its fields, with `file` for what is known of its file."""
        if self._row is None:
            file = LazyRow(self, FILE_FIELDS, {}, ("file", self.path))
            fields = {**self._read_fields(), "file": file}
            self._row = LazyRow(self, {}, fields, ("note", self.path))
        return self._row

    @property
    def file(self) -> Mapping[str, Any]:
        file: Mapping[str, Any] = self.row["file"]
        return file

    @property
    def items(self) -> dict[int, "Item"]:
        """The items of its lists by line."""
        if self._items is None:
            self._items = {item.line: Item(item, self) for item in self.note.items}
            for item in self._items.values():
                if (above := self._items.get(item.item.parent)) is not None and above is not item:
                    above.children.append(item)
        return self._items

    def link(self, spelling: str, labels: tuple[str, ...] = ()) -> PageLink:
        """The link that stands in this note as `[[spelling]]`, with these labels."""
        return self.notes.make_link(spelling, self.path, labels)

    def read(self, text: str) -> Any:
        """The value of a field that stands in this note."""
        return read_field(text, self.link, self.notes.zone)

    def _read_fields(self) -> dict[str, Any]:
        zone = self.notes.zone
        pairs = [
            (name, read_property(value, self.link, zone))
            for name, value in self.note.properties.items()
        ]
        pairs += [(name, self.read(text)) for name, text in self.note.fields]
        for item in self.note.items:
            # What is said of a task is not said of its note.
            if item.status is None and "::" in item.text:
                pairs += [(name, self.read(text)) for name, text in _fields_of(item)]
        return merge_fields(pairs)


class Item:
    """An item of a list in a note; a task, if it has a status."""

    def __init__(self, item: ListItem, page: Page) -> None:
        self.item, self.page = item, page
        self.children: list[Item] = []
        self._row: LazyRow | None = None

    @property
    def is_task(self) -> bool:
        return self.item.status is not None

    @property
    def row(self) -> LazyRow:
        if self._row is None:
            pairs = [(name, self.page.read(text)) for name, text in _fields_of(self.item)]
            days = find_shorthands(self.item.text)
            pairs += [(name, self.page.read(text)) for name, text in days]
            fields = merge_fields(pairs)
            fields["annotated"] = bool(pairs)
            identity = ("item", self.page.path, self.item.line)
            self._row = LazyRow(self, ITEM_FIELDS, fields, identity)
        return self._row

    def is_done(self) -> bool:
        return self.item.status in ("x", "X")

    def is_all_done(self) -> bool:
        """Whether it is done, and every task below it."""
        tasks = (child for child in self.children if child.is_task)
        is_own = self.is_done() or not self.is_task
        return is_own and all(child.is_all_done() for child in tasks)


def _fields_of(item: ListItem) -> list[tuple[str, str]]:
    return find_fields(" ".join(item.text.split("\n")), whole_line=item.status is None)


# -- what there is to know of a file --------------------------------------------------------------


def _name(page: Page) -> str:
    return page.path.rsplit("/", 1)[-1].removesuffix(NOTE_SUFFIX)


def _day_of_time(moment: datetime | None) -> datetime | None:
    return moment and moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _tags(page: Page) -> tuple[str, ...]:
    """Every tag with those that it is nested in, the outermost first."""
    tags: dict[str, None] = {}
    for tag in page.note.tags:
        parts = tag.split("/")
        tags.update(dict.fromkeys("#" + "/".join(parts[: at + 1]) for at in range(len(parts))))
    return tuple(tags)


def _day(page: Page) -> datetime | None:
    """The day a note is about: by a field named `date` or `day`, or by its name."""
    for name, value in page.row.items():
        if name.lower() not in ("date", "day") or name == "file":
            continue
        first = value[0] if isinstance(value, tuple) and value else value
        if isinstance(first, datetime):
            return first
        if isinstance(first, PageLink) and (date := find_date(first.path)):
            return date
    return find_date(_name(page))


def _outlinks(page: Page) -> tuple[PageLink, ...]:
    links = (page.link(*link) for link in list_links(page.note))
    return tuple({(link.path, link.subpath): link for link in links}.values())


def _own_link(page: Page) -> PageLink:
    return PageLink(path=page.path)


FILE_FIELDS: dict[str, Callable[[Page], Any]] = {
    "path": lambda page: page.path,
    "name": _name,
    "folder": lambda page: page.path.rpartition("/")[0],
    "ext": lambda page: page.path.rpartition(".")[2],
    "link": _own_link,
    "size": lambda page: page.note.size,
    "ctime": lambda page: page.notes.moment(page.note.ctime),
    "cday": lambda page: _day_of_time(page.file["ctime"]),
    "mtime": lambda page: page.notes.moment(page.note.mtime),
    "mday": lambda page: _day_of_time(page.file["mtime"]),
    "tags": _tags,
    "etags": lambda page: tuple(f"#{tag}" for tag in page.note.tags),
    "aliases": lambda page: page.note.aliases,
    "inlinks": lambda page: page.notes.links_to(page.path),
    "outlinks": _outlinks,
    "lists": lambda page: tuple(item.row for item in page.items.values()),
    "tasks": lambda page: tuple(item.row for item in page.items.values() if item.is_task),
    "frontmatter": lambda page: page.note.properties,
    "day": _day,
    "starred": lambda _: False,
    # Lamina's own.
    "links": lambda page: page.note.links,
    "embeds": lambda page: page.note.embeds,
    "headings": lambda page: page.note.headings,
}


# -- what there is to know of an item --------------------------------------------------------------


def _section(item: Item) -> PageLink:
    heading = item.item.heading
    return PageLink(path=item.page.path, target="header" if heading else "file", subpath=heading)


def _closest_link(item: Item) -> PageLink:
    if item.item.block:
        return PageLink(path=item.page.path, target="block", subpath=item.item.block)
    return _section(item)


def _position(item: Item) -> dict[str, Any]:
    start, count = item.item.line, item.item.line_count
    return {"start": {"line": start}, "end": {"line": start + count - 1}}


def _item_links(item: Item) -> tuple[PageLink, ...]:
    return tuple(item.page.notes.find_links(item.item.text, item.page.path))


def _children(item: Item) -> tuple[LazyRow, ...]:
    return tuple(child.row for child in item.children)


ITEM_FIELDS: dict[str, Callable[[Item], Any]] = {
    "symbol": lambda item: item.item.marker,
    "text": lambda item: item.item.text,
    "visual": lambda item: item.item.text,
    "task": lambda item: item.is_task,
    "status": lambda item: item.item.status,
    "checked": lambda item: None if not item.is_task else item.item.status != " ",
    "completed": lambda item: None if not item.is_task else item.is_done(),
    "fullyCompleted": lambda item: None if not item.is_task else item.is_all_done(),
    "line": lambda item: item.item.line,
    "lineCount": lambda item: item.item.line_count,
    "path": lambda item: item.page.path,
    "section": _section,
    "header": _section,
    "link": _closest_link,
    "tags": lambda item: tuple(dict.fromkeys(f"#{tag}" for tag in find_tags(item.item.text))),
    "outlinks": _item_links,
    "children": _children,
    "subtasks": _children,
    "parent": lambda item: item.item.parent if item.item.parent >= 0 else None,
    "list": lambda item: item.item.line,
    "position": _position,
    "blockId": lambda item: item.item.block or None,
    "real": lambda item: item.is_task,
}


def item_of(row: Any) -> Item | None:
    """The item that a row is of, if it is one of an item."""
    owner = row.owner if isinstance(row, LazyRow) else None
    return owner if isinstance(owner, Item) else None
