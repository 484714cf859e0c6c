"""Represents notes, list items and groups as rows of fields, for the input and output of queries.

Laws: a field is computed on first access, and once. A name is looked up as spelled, or else
ignoring case. The text of a field may be a number, a date, a span, a link, a list of these, or
text: any text is a value. Nothing is read from files here; a row reflects the record of its note.
Resolving a link depends on all notes, so rows belong to one set of notes (`NoteSet`).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, tzinfo
from typing import Any, Literal, Protocol, TypeVar

from msgspec import Struct

from lamina.core.notes.note_names import NOTE_SUFFIX
from lamina.core.notes.query.dates import find_date, read_date, read_span
from lamina.core.notes.query.operators import fold_case
from lamina.core.notes.query.syntax import Shape
from lamina.core.notes.query.values import PageLink, tidy
from lamina.core.notes.tags_and_fields import find_fields, find_shorthands, find_tags
from lamina.core.values.note import ListItem, Note

_Owner = TypeVar("_Owner")


class LazyRow(Mapping[str, Any]):
    """A row whose fields may be computed on access, by a rule per name."""

    __slots__ = ("_folded", "_known", "_rules", "identity", "owner")

    def __init__(
        self,
        owner: _Owner,
        rules: Mapping[str, Callable[[_Owner], Any]],
        known: dict[str, Any],
        identity: tuple[str | int, ...],
    ) -> None:
        self.owner: Any = owner
        # Rows of the same thing are equal, which is determined without computing them.
        self.identity = identity
        self._rules: Mapping[str, Callable[[Any], Any]] = rules
        self._known = known
        self._folded: dict[str, str] | None = None

    def __getitem__(self, name: str) -> Any:
        if name in self._known:
            return self._known[name]
        value = self._known[name] = self._rules[name](self.owner)
        return value

    def __iter__(self) -> Iterator[str]:
        yield from self._known
        yield from (name for name in self._rules if name not in self._known)

    def __len__(self) -> int:
        return len(self._known.keys() | self._rules.keys())

    def __contains__(self, name: object) -> bool:
        return name in self._known or name in self._rules

    def find(self, name: str) -> Any:
        if name in self:
            return self[name]
        if self._folded is None:
            self._folded = {fold_case(own): own for own in reversed(list(self))}
        own = self._folded.get(fold_case(name))
        return None if own is None else self[own]


class OverlaidRow(Mapping[str, Any]):
    """A row with some fields in front of it: those of FLATTEN, the arguments of a function, or a
    task in front of its note."""

    __slots__ = ("base", "front")

    def __init__(self, front: Mapping[str, Any], base: Mapping[str, Any]) -> None:
        self.front, self.base = front, base

    def __getitem__(self, name: str) -> Any:
        return self.front[name] if name in self.front else self.base[name]

    def __iter__(self) -> Iterator[str]:
        yield from self.front
        yield from (name for name in self.base if name not in self.front)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self.front or name in self.base


def find_field(row: Mapping[str, Any], name: str) -> Any:
    """Return a field by its name, or else ignoring case; null if there is none."""
    while isinstance(row, OverlaidRow):
        if name in row.front:
            return row.front[name]
        if isinstance(row.front, LazyRow) and (value := row.front.find(name)) is not None:
            return value
        row = row.base
    if isinstance(row, LazyRow):
        return row.find(name)
    if name in row:
        return row[name]
    folded = fold_case(name)
    return next((value for key, value in row.items() if fold_case(str(key)) == folded), None)


MakeLink = Callable[[str], PageLink]
MAX_MEMBERS = 1_000
# Deeper parts of a property are null.
MAX_DEEP = 20
_LINK = re.compile(r"(!?)\[\[([^\[\]\n]*)\]\]")
_NUMBER = re.compile(r"-?[0-9]{1,300}(?:\.[0-9]{1,300})?")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL)
_TAG = re.compile(r"#[^\s'!\"#$%&()*+,.:;<=>?@^`{|}~\[\]\\]+")
# Separators between list members.
_COMMA = re.compile(r"\s*,\s*")
_MEMBER = re.compile(
    r"""!?\[\[[^\[\]\n]*\]\]|"(?:[^"\\]|\\.)*+"|[^,"\[\]]+""", re.DOTALL
)  # fmt: skip
_WORDS = {"true": True, "false": False, "True": True, "False": False, "null": None}


def read_field(text: str, make_link: MakeLink, zone: tzinfo | None) -> Any:
    """Return the value of an inline field; an empty field is null."""
    text = text.strip()
    if not text:
        return None
    is_known, value = _read_one(text, make_link, zone)
    if is_known:
        return value
    if "," in text:
        members = _read_members(text, make_link, zone)
        if members is not None:
            return members
    return text


def _read_members(text: str, make_link: MakeLink, zone: tzinfo | None) -> tuple[Any, ...] | None:
    """Return the members of a list, each of which must have the format of a value; None if it is
    plain text."""
    members: list[Any] = []
    at = 0
    while at < len(text):
        match = _MEMBER.match(text, at)
        is_known, value = _read_one(match[0].strip(), make_link, zone) if match else (False, None)
        comma = _COMMA.match(text, match.end()) if match else None
        if not is_known or match is None or (comma is None and match.end() < len(text)):
            return None
        members.append(value)
        if len(members) > MAX_MEMBERS:
            return None
        at = comma.end() if comma else len(text)
    return tuple(members)


def _read_one(text: str, make_link: MakeLink, zone: tzinfo | None) -> tuple[bool, Any]:
    """Return whether a string is more than plain text and, if so, its value."""
    first = text[:1]
    if first.isdigit() or first == "-":
        if (date := read_date(text, zone)) is not None:
            return True, date
        if _NUMBER.fullmatch(text):
            return True, tidy(float(text) if "." in text else int(text))
        span = read_span(text)
        return span is not None, span
    if first in "![" and _LINK.fullmatch(text):
        return True, make_link(text)
    if first == '"' and (string := _STRING.fullmatch(text)):
        return True, string[1].replace('\\"', '"').replace("\\\\", "\\")
    if first == "#" and _TAG.fullmatch(text):
        return True, text
    return (True, _WORDS[text]) if text in _WORDS else (False, None)


def read_property(value: Any, make_link: MakeLink, zone: tzinfo | None, deep: int = 0) -> Any:
    """Return a frontmatter value, in which strings may be dates, spans or links."""
    if deep > MAX_DEEP:
        return None
    match value:
        case str():
            first = value[:1]
            if first.isdigit() or first == "-":
                date = read_date(value, zone)
                return date if date is not None else read_span(value) or value
            if first in ("!", "[") and _LINK.fullmatch(value):
                return make_link(value)
            return value
        case dict():
            return {
                str(name): read_property(inner, make_link, zone, deep + 1)
                for name, inner in value.items()
            }
        case list() | tuple():
            return tuple(read_property(inner, make_link, zone, deep + 1) for inner in value)
        case int():
            return value if isinstance(value, bool) else tidy(value)
    return value


def sanitize_name(name: str) -> str:
    """Return a field name as queries can write it: lower case, hyphens for spaces."""
    spelling = re.sub(r"\s+", "-", name)
    # Symbols and emoji come after the arrows.
    return "".join(c for c in spelling if c.isalnum() or c in "_-" or c > "\u2190").lower()


def merge_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return fields by name, and by the name that queries can write. Repeated fields become a list
    of their values."""
    groups: dict[str, list[Any]] = {}
    for name, value in pairs:
        groups.setdefault(name, []).append(value)
    sanitized: dict[str, list[Any]] = {}
    for name, values in groups.items():
        plain = sanitize_name(name)
        if plain and plain not in groups:
            sanitized.setdefault(plain, []).extend(values)
    return {
        name: values[0] if len(values) == 1 else tuple(values)
        for name, values in (groups | sanitized).items()
    }


_WIKILINK = re.compile(r"!?\[\[[^\[\]\n]+\]\]")


def list_links(note: Note) -> list[tuple[str, tuple[str, ...]]]:
    """Return the links in a note as spelled, with their labels: from its text, its embeds and its
    properties."""
    links = [(link, note.labels.get(link, ())) for link in note.links]
    links += [(f"![[{embed}]]", note.labels.get(embed, ())) for embed in note.embeds]
    links += [(link, ()) for value in note.properties.values() for link in _links_in(value)]
    return [link for link in links if not link[0].startswith("#")]


def _links_in(value: Any, deep: int = 0) -> list[str]:
    if isinstance(value, str):
        return _WIKILINK.findall(value) if "[[" in value else []
    if not isinstance(value, dict | list) or deep > MAX_DEEP:
        return []
    members = value.values() if isinstance(value, dict) else value
    return [link for member in members for link in _links_in(member, deep + 1)]


class NoteSet(Protocol):
    """Lookups for rows: link targets, backlinks, the time."""

    zone: tzinfo | None

    def make_link(self, spelling: str, beside: str, labels: Iterable[str] = ()) -> PageLink: ...
    def find_links(self, text: str, beside: str) -> Iterator[PageLink]: ...
    def links_to(self, path: str) -> tuple[PageLink, ...]: ...
    def moment(self, seconds: float) -> datetime | None: ...


class Page:
    """A note in a set of notes."""

    def __init__(self, note: Note, notes: NoteSet) -> None:
        self.note, self.notes = note, notes
        self._row: LazyRow | None = None
        self._items: dict[int, Item] | None = None

    @property
    def path(self) -> str:
        return self.note.path

    @property
    def row(self) -> LazyRow:
        """Its fields, with `file` for the data about its file."""
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
        """Its list items by line."""
        if self._items is None:
            self._items = {item.line: Item(item, self) for item in self.note.items}
            for item in self._items.values():
                if (above := self._items.get(item.item.parent)) is not None and above is not item:
                    above.children.append(item)
        return self._items

    def link(self, spelling: str, labels: tuple[str, ...] = ()) -> PageLink:
        """Return the link for `[[spelling]]` in this note, with these labels."""
        return self.notes.make_link(spelling, self.path, labels)

    def read(self, text: str) -> Any:
        """Return the value of a field in this note."""
        return read_field(text, self.link, self.notes.zone)

    def _read_fields(self) -> dict[str, Any]:
        zone = self.notes.zone
        pairs = [
            (name, read_property(value, self.link, zone))
            for name, value in self.note.properties.items()
        ]
        pairs += [(name, self.read(text)) for name, text in self.note.fields]
        for item in self.note.items:
            # Fields of a task are not fields of its note.
            if item.status is None and "::" in item.text:
                pairs += [(name, self.read(text)) for name, text in _fields_of(item)]
        return merge_fields(pairs)


class Item:
    """A list item in a note; a task, if it has a status."""

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
        """Return whether it and all tasks below it are done."""
        tasks = (child for child in self.children if child.is_task)
        is_own = self.is_done() or not self.is_task
        return is_own and all(child.is_all_done() for child in tasks)


def _fields_of(item: ListItem) -> list[tuple[str, str]]:
    return find_fields(" ".join(item.text.split("\n")), whole_line=item.status is None)


# -- file fields ----------------------------------------------------------------------------------


def _name(page: Page) -> str:
    return page.path.rsplit("/", 1)[-1].removesuffix(NOTE_SUFFIX)


def _day_of_time(moment: datetime | None) -> datetime | None:
    return moment and moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _tags(page: Page) -> tuple[str, ...]:
    """Return every tag with its ancestors, outermost first."""
    tags: dict[str, None] = {}
    for tag in page.note.tags:
        parts = tag.split("/")
        tags.update(dict.fromkeys("#" + "/".join(parts[: at + 1]) for at in range(len(parts))))
    return tuple(tags)


def _day(page: Page) -> datetime | None:
    """Return the date of a note: from a field named `date` or `day`, or from its name."""
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
    # Specific to Lamina.
    "links": lambda page: page.note.links,
    "embeds": lambda page: page.note.embeds,
    "headings": lambda page: page.note.headings,
}


# -- item fields -----------------------------------------------------------------------------------


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
    """Return the item of a row, if any."""
    owner = row.owner if isinstance(row, LazyRow) else None
    return owner if isinstance(owner, Item) else None


class QueryRow(Struct, frozen=True):
    """A row in a result: its name (a note's path or the value of a group), its cells by column,
    and, for groups, its rows. `size` is the number of these, including those not shown."""

    id: Any
    cells: tuple[Any, ...] = ()
    rows: "tuple[QueryRow, ...] | None" = None
    item: Item | None = None
    size: int = 0


class QueryResult(Struct, frozen=True, kw_only=True):
    """The result of a query. `heads` contains the column names; `id_head` is the heading above the
    first column. `unit` is the kind of row; `fits` counts all rows, `failed` those with nothing to
    show. `warnings` lists what a person should know. `clock` is the validity of the result: always,
    for a day, or for a minute."""

    shape: Shape
    with_id: bool
    heads: tuple[str, ...]
    id_head: str
    rows: tuple[QueryRow, ...] = ()
    unit: Literal["note", "task", "group", "row"] = "note"
    fits: int = 0
    failed: int = 0
    clock: Literal["any", "day", "minute"] = "any"
    warnings: tuple[str, ...] = ()
