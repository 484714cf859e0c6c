"""Parses the bytes of a note into a `Note`.

Laws: every note loads; anything wrong with it is listed in its problems. Tags, links and headings
in code do not count. Queries in code blocks are found but not run; scripts are also found, so that
a reader can report that they were left out. Time is proportional to the size, regardless of the
content.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from lamina.core.notes.frontmatter import MAX_HEAD, is_unclosed, read_properties, split_frontmatter
from lamina.core.notes.note_links import WIKILINK, NoteLinks, read_links
from lamina.core.notes.note_names import NOTE_SUFFIX
from lamina.core.notes.note_outline import CodeBlock, Outline, find_items, read_outline
from lamina.core.notes.note_passages import cut_passages
from lamina.core.notes.tags_and_fields import find_fields, find_tags
from lamina.core.text.pictures import mask_code, replace_data_pictures
from lamina.core.text.secrets import find_secrets, list_pieces
from lamina.core.values.note import ListItem, Note, NoteQuery

QUERY_INFOS: dict[str, Literal["block", "search", "script"]] = {
    "lamina-query": "block",
    "dataview": "block",
    "query": "search",
    "dataviewjs": "script",
}
MAX_INLINE = 200
_QUOTE = re.compile(r"[ \t]*>[ \t]?")
# Code that starts with `=` and continues like an expression; `==` and `=>` belong to code about
# code.
_INLINE = re.compile(r"(?<!`)`(?P<mark>\$?=)(?P<text>(?![=>])[^`\n]*[^`\s][^`\n]*)`(?!`)")


def find_queries(
    lines: Sequence[str], blocks: Sequence[CodeBlock], body: str
) -> tuple[NoteQuery, ...]:
    """Return the queries in a note's text: its blocks in order, then inline queries."""
    queries = list(_find_blocks(lines, blocks))
    if "`=" in body or "`$=" in body:
        inline, scripts = _find_inline(lines, blocks)
        if inline:
            queries.append(NoteQuery("inline", "\n".join(inline)))
        queries += [NoteQuery("script", text) for text in scripts]
    return tuple(queries)


def _find_blocks(lines: Sequence[str], blocks: Sequence[CodeBlock]) -> Iterator[NoteQuery]:
    for block in blocks:
        kind = QUERY_INFOS.get(block.info.lower().strip())
        if kind is not None:
            inside = lines[block.line + 1 : block.end - block.is_closed]
            # In a quote or callout, every line starts with a marker.
            for _ in range(_count_quotes(lines[block.line])):
                inside = [_QUOTE.sub("", line, count=1) for line in inside]
            yield NoteQuery(kind, "\n".join(inside))


def _find_inline(
    lines: Sequence[str], blocks: Sequence[CodeBlock]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return inline expressions and scripts, each once, as spelled."""
    in_blocks = {at for block in blocks for at in range(block.line, block.end)}
    spellings: dict[str, list[str]] = {"=": [], "$=": []}
    for at, line in enumerate(lines):
        if ("`=" not in line and "`$=" not in line) or at in in_blocks:
            continue
        for match in _INLINE.finditer(line):
            spellings[match["mark"]].append(f"{match['mark']} {match['text'].strip()}")
    inline, scripts = (tuple(dict.fromkeys(found))[:MAX_INLINE] for found in spellings.values())
    return inline, scripts


def _count_quotes(line: str) -> int:
    return line[: len(line) - len(line.lstrip("> \t"))].count(">")


__all__ = ["READER_VERSION", "decode_note", "read_note", "split_frontmatter"]

# Raised when the same bytes parse to a different note, so that saved notes are read again.
READER_VERSION = 6

MAX_FIELDS = 5_000
# The parts of a note that queries can show.
SHOWN_FIELDS = (
    "properties", "aliases", "tags", "links", "embeds", "headings", "fields", "items",
)  # fmt: skip
_MAX_PROBLEMS = 10

_SEPARATORS = re.compile(r"[,\s]+")
# Text in a link that looks like a tag is a heading.
_TAG_IN_LINK = re.compile(r"\[\[[^\[\]\n]*\s#")


def read_note(
    path: str,
    data: bytes,
    *,
    ctime: float = 0.0,
    mtime: float = 0.0,
    texts: list[str] | None = None,
) -> Note:
    """Return the note with this path and these bytes. The searched text of each passage is added to
    `texts`, if given."""
    text, undecodable = decode_note(data)
    title = path.rsplit("/", 1)[-1].removesuffix(NOTE_SUFFIX)
    head, body, first_line = split_frontmatter(text)
    properties, problems = _read_head(head, text)
    lines = body.split("\n")
    outline = read_outline(lines)
    inline, links = _read_inline(body)
    items = find_items(lines, outline.blocks, outline.headings, first_line)
    note = Note(
        path=path,
        title=title,
        digest=hashlib.sha256(data).hexdigest(),
        ctime=ctime,
        mtime=mtime,
        size=len(data),
        aliases=_find_aliases(properties) if properties else (),
        tags=_distinct([*(_find_tags(properties) if properties else ()), *inline]),
        links=links.links,
        embeds=links.embeds,
        labels=links.labels,
        pictures=links.pictures,
        headings=tuple([heading.text for heading in outline.headings if heading.text]),
        queries=find_queries(lines, outline.blocks, body) if "`" in body or "~" in body else (),
        properties=properties,
        fields=_find_fields(lines, outline, items, first_line) if "::" in body else (),
        items=items,
        passages=cut_passages(
            title, head, lines, first_line, outline.headings, outline.blocks, texts
        ),
        problems=_limit_problems((*undecodable, *problems)),
    )
    safe = _without_secrets(note, head or "")
    return replace(note, safe=safe) if safe else note


def _find_fields(
    lines: list[str], outline: Outline, items: tuple[ListItem, ...], first_line: int
) -> tuple[tuple[str, str], ...]:
    """Return the inline fields of a text, except those in lists, which belong to their items."""
    skipped = {at for block in outline.blocks for at in range(block.line, block.end)}
    for item in items:
        start = item.line - first_line + 1
        skipped.update(range(start, start + item.line_count))
    return tuple(
        field
        for at, line in enumerate(lines)
        if "::" in line and at not in skipped
        for field in find_fields(line.strip())
    )[:MAX_FIELDS]


def _without_secrets(note: Note, head: str) -> dict[str, Any]:
    """Return the parts of a note that queries can show and that contain a secret, with the secret
    removed. A value is judged in context: on its own, a password cannot be recognised."""
    fields = (f"{name}: {value}" for name, value in note.fields)
    items = (item.text for item in note.items)
    shown = "\n".join(
        (head, *note.headings, *note.links, *note.embeds, *note.tags, *fields, *items)
    )
    findings = find_secrets(shown)
    if not findings:
        return {}
    pieces = list_pieces(shown, findings)
    return {
        name: safe
        for name in SHOWN_FIELDS
        if (safe := _hide(value := getattr(note, name), pieces)) != value
    }


def _hide(value: Any, pieces: dict[str, str]) -> Any:
    match value:
        case str():
            for piece, mark in pieces.items():
                value = value.replace(piece, mark)
            return value
        case dict():
            return {name: _hide(inner, pieces) for name, inner in value.items()}
        case list() | tuple():
            return type(value)(_hide(inner, pieces) for inner in value)
        case ListItem():
            return replace(value, text=_hide(value.text, pieces))
        case _:
            # A password may be a number.
            return pieces.get(str(value), value)


def decode_note(data: bytes) -> tuple[str, tuple[str, ...]]:
    """Return the text of a note without a byte order mark, and any problems with its bytes. Its
    lines end only at `\\n`. Embedded pictures are replaced by a few words."""
    try:
        return replace_data_pictures(data.decode("utf-8").removeprefix("\ufeff")), ()
    except UnicodeDecodeError as error:
        text = data.decode("utf-8", "replace").removeprefix("\ufeff")
        line = data.count(b"\n", 0, error.start) + 1
        digits = data[error.start : error.end].hex(" ")
        problem = f"line {line}: the byte {digits} is not UTF-8; it and others are shown as U+FFFD"
        return replace_data_pictures(text), (problem,)


def _read_head(head: str | None, text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    if head is not None:
        return read_properties(head)
    if text.startswith("---") and is_unclosed(text):
        problem = "line 1: the frontmatter has no end; it is taken for a part of the text"
        if len(text) > MAX_HEAD:
            problem = f"{problem} (a head may have {MAX_HEAD:,} characters)"
        return {}, (problem,)
    return {}, ()


def _limit_problems(problems: tuple[str, ...]) -> tuple[str, ...]:
    if len(problems) <= _MAX_PROBLEMS:
        return problems
    return (*problems[:_MAX_PROBLEMS], f"and {len(problems) - _MAX_PROBLEMS:,} more problems")


def _find_aliases(properties: dict[str, Any]) -> tuple[str, ...]:
    names: list[str] = []
    for value in _find_values(properties, ("aliases", "alias")):
        names += value.split(",") if isinstance(value, str) else map(str, value)
    return tuple(dict.fromkeys(filter(None, map(str.strip, names))))


def _find_tags(properties: dict[str, Any]) -> Iterator[str]:
    for value in _find_values(properties, ("tags", "tag")):
        tags = _SEPARATORS.split(value) if isinstance(value, str) else map(str, value)
        for tag in tags:
            if name := tag.strip().removeprefix("#").strip("/ "):
                yield name


def _find_values(properties: dict[str, Any], keys: tuple[str, ...]) -> Iterator[str | list[str]]:
    """Yield strings and lists of strings; numbers count as names, too."""
    for key, value in properties.items():
        if key.lower() not in keys or value is None:
            continue
        if isinstance(value, list):
            yield [str(member) for member in value if isinstance(member, str | int | float)]
        elif isinstance(value, str | int | float):
            yield str(value)


def _read_inline(body: str) -> tuple[list[str], NoteLinks]:
    """Return the tags and links in the text."""
    has_tags = next(find_tags(body), None) is not None
    has_links = "]" in body or "<" in body
    if not (has_tags or has_links):
        return [], NoteLinks()
    plain_text = body
    if "`" in body or ("~" in body and "~~~" in body):
        plain_text, _ = mask_code(body)
    links = read_links(body, plain_text)
    if has_tags and "[[" in body and _TAG_IN_LINK.search(body):
        plain_text = WIKILINK.sub(_blank_out, plain_text)
    return list(find_tags(plain_text)) if has_tags else [], links


def _blank_out(match: re.Match[str]) -> str:
    return "\0" * (match.end() - match.start())


def _distinct(tags: list[str]) -> tuple[str, ...]:
    """Return each tag once, as first spelled: `Draft` and `draft` are the same."""
    if len(tags) < 2:
        return tuple(tags)
    first: dict[str, str] = {}
    for tag in tags:
        first.setdefault(tag.casefold(), tag)
    return tuple(first.values())
