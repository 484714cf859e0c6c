"""From a note's bytes to a `Note`.

Laws: every note loads; what is wrong with it is listed in its problems. Tags, links and headings in
code do not count. Time is in proportion to the size, whatever the note holds.
"""

import hashlib
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from msgspec.structs import replace

from lamina.notes.frontmatter import (
    MOST_HEAD,
    is_unclosed,
    read_properties,
    split_frontmatter,
)
from lamina.notes.names import NOTE_SUFFIX
from lamina.notes.outline import CodeBlock, read_outline
from lamina.notes.passages import cut_passages
from lamina.text.pictures import PICTURE_SUFFIXES, decode_target, find_destination, mask_code
from lamina.text.secrets import find_secrets, list_pieces
from lamina.values.note import Note

__all__ = ["READER_VERSION", "decode_note", "read_note", "split_frontmatter"]

# Goes up when the same bytes give a different note, so that saved notes are read again.
READER_VERSION = 3

QUERY_INFOS = ("lamina-query",)
_MOST_PROBLEMS = 10

# What ends a tag: white space, ASCII punctuation except `-`, `_` and `/`, and punctuation of other
# scripts. The joiner U+200D and the selectors stay: emoji need them.
_TAG = re.compile(
    "#([^\\s\\0#!\"$%&'()*+,.:;<=>?@^`{|}~\\[\\]\\\\"
    "\\u2000-\\u200c\\u200e-\\u206f\\u2e00-\\u2e7f\\u3000-\\u3020\\uff01-\\uff0f\\uff1a-\\uff20]+)"
)
_SEPARATORS = re.compile(r"[,\s]+")
_WIKILINK = re.compile(r"\[\[((?:[^\[\]\n]|\[(?!\[)|\](?!\]))*+)\]\]")
# What looks like a tag in a link is a heading.
_TAG_IN_LINK = re.compile(r"\[\[[^\[\]\n]*\s#")
# Most targets need no decoding; others are read with care.
_LINK = re.compile(r"\](?:\((?:([^\s()<>\\&%]*+)\))?|:[ \t]+(\S++))")
_SCHEME = re.compile(r"//|[A-Za-z][A-Za-z0-9+.-]{1,30}+:")


def read_note(path: str, data: bytes, *, ctime: float = 0.0, mtime: float = 0.0) -> Note:
    """The note with this path and these bytes."""
    text, undecodable = decode_note(data)
    title = path.rsplit("/", 1)[-1].removesuffix(NOTE_SUFFIX)
    head, body, first_line = split_frontmatter(text)
    properties, problems = _read_head(head, text)
    lines = body.split("\n")
    outline = read_outline(lines)
    inline, links, embeds = _read_inline(body)
    note = Note(
        path=path,
        title=title,
        digest=hashlib.sha256(data).hexdigest(),
        ctime=ctime,
        mtime=mtime,
        size=len(data),
        aliases=_find_aliases(properties) if properties else (),
        tags=_distinct([*(_find_tags(properties) if properties else ()), *inline]),
        links=links,
        embeds=embeds,
        headings=tuple([heading.text for heading in outline.headings if heading.text]),
        queries=_find_queries(lines, outline.blocks) if outline.blocks else (),
        properties=properties,
        passages=cut_passages(title, head, lines, first_line, outline.headings, outline.blocks),
        problems=_limit_problems((*undecodable, *problems)),
    )
    safe = _without_secrets(note, head or "")
    return replace(note, safe=safe) if safe else note


def _without_secrets(note: Note, head: str) -> dict[str, Any]:
    """What a query can show of a note and holds a secret, without it. A value is judged where it
    stands: by itself nobody would know what a password is."""
    shown = "\n".join((head, *note.headings, *note.links, *note.embeds, *note.tags))
    findings = find_secrets(shown)
    if not findings:
        return {}
    pieces = list_pieces(shown, findings)
    return {
        name: safe
        for name in ("properties", "aliases", "tags", "links", "embeds", "headings")
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
        case _:
            # A password may be a number.
            return pieces.get(str(value), value)


def decode_note(data: bytes) -> tuple[str, tuple[str, ...]]:
    """The text of a note without a byte order mark, and what is wrong with its bytes. Its lines
    end at `\\n` only."""
    try:
        return data.decode("utf-8").removeprefix("\ufeff"), ()
    except UnicodeDecodeError as error:
        text = data.decode("utf-8", "replace").removeprefix("\ufeff")
        line = data.count(b"\n", 0, error.start) + 1
        digits = data[error.start : error.end].hex(" ")
        problem = f"line {line}: the byte {digits} is not UTF-8; it and others are shown as U+FFFD"
        return text, (problem,)


def _read_head(head: str | None, text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    if head is not None:
        return read_properties(head)
    if text.startswith("---") and is_unclosed(text):
        problem = "line 1: the frontmatter has no end; it is taken for a part of the text"
        if len(text) > MOST_HEAD:
            problem = f"{problem} (a head may have {MOST_HEAD:,} characters)"
        return {}, (problem,)
    return {}, ()


def _limit_problems(problems: tuple[str, ...]) -> tuple[str, ...]:
    if len(problems) <= _MOST_PROBLEMS:
        return problems
    return (*problems[:_MOST_PROBLEMS], f"and {len(problems) - _MOST_PROBLEMS:,} more problems")


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
    """A text, or the texts of a list; numbers are names, too."""
    for key, value in properties.items():
        if key.lower() not in keys or value is None:
            continue
        if isinstance(value, list):
            yield [str(member) for member in value if isinstance(member, str | int | float)]
        elif isinstance(value, str | int | float):
            yield str(value)


def _read_inline(body: str) -> tuple[list[str], tuple[str, ...], tuple[str, ...]]:
    """The tags, links and embeds of the text."""
    has_tags = next(_find_inline_tags(body), None) is not None
    # Searching for one character is far faster than for two, and many notes have none.
    has_brackets = "]" in body
    has_wikilinks = has_brackets and "[[" in body
    has_links = has_brackets and ("](" in body or "]:" in body)
    has_links = has_links and (NOTE_SUFFIX in body or NOTE_SUFFIX in body.lower())
    if not (has_tags or has_wikilinks or has_links):
        return [], (), ()
    plain_text = body
    if "`" in body or ("~" in body and "~~~" in body):
        plain_text, _ = mask_code(body)
    links: list[tuple[int, str]] = list(_find_links(plain_text, body)) if has_links else []
    embeds: list[str] = []
    if has_wikilinks:
        for start, target in _find_wikilinks(plain_text, body):
            if not start or body[start - 1] != "!":
                links.append((start, target))
            elif not target.partition("#")[0].lower().endswith(PICTURE_SUFFIXES):
                embeds.append(target)
    if has_tags and has_wikilinks and _TAG_IN_LINK.search(body):
        plain_text = _WIKILINK.sub(_blank_out, plain_text)
    tags = list(_find_inline_tags(plain_text)) if has_tags else []
    links.sort(key=lambda link: link[0])
    return tags, tuple(dict.fromkeys([link for _, link in links])), tuple(dict.fromkeys(embeds))


def _find_wikilinks(plain_text: str, body: str) -> Iterator[tuple[int, str]]:
    """The positions of links in double brackets, and their targets without labels."""
    for match in _WIKILINK.finditer(plain_text):
        target = body[match.start(1) : match.end(1)].partition("|")[0].removesuffix("\\").strip()
        # Code in a link is part of its name, but a link that is all code is not a link.
        if target and not match[1].startswith("\0"):
            yield match.start(), target


def _blank_out(match: re.Match[str]) -> str:
    return "\0" * (match.end() - match.start())


def _find_inline_tags(plain_text: str) -> Iterator[str]:
    for match in _TAG.finditer(plain_text):
        start = match.start()
        if start and not plain_text[start - 1].isspace():
            continue
        tag = match[1].strip("/")
        if not tag.replace("/", "").isdigit() and any(map(_says_something, tag)):
            yield tag


def _says_something(character: str) -> bool:
    return character.isalnum() or not character.isascii()


def _find_links(plain_text: str, body: str) -> Iterator[tuple[int, str]]:
    """The positions of Markdown links to notes, and their decoded targets."""
    for match in _LINK.finditer(plain_text):
        at = match.start()
        if match.lastindex:
            start, end = match.span(match.lastindex)
        elif inside := find_destination(plain_text, at + 1):
            start, end, _ = inside
        else:
            continue
        target = body[start:end].strip()
        if NOTE_SUFFIX not in target.lower():
            continue
        target = target if match.lastindex == 1 else decode_target(target)
        path, mark, anchor = target.partition("#")
        if path.lower().endswith(NOTE_SUFFIX) and not _SCHEME.match(path):
            yield at, path + mark + unquote(anchor)


def _find_queries(lines: list[str], blocks: list[CodeBlock]) -> tuple[str, ...]:
    """The texts of a note's query blocks."""
    return tuple(
        "\n".join(lines[block.line + 1 : block.end - block.is_closed])
        for block in blocks
        if block.info.lower() in QUERY_INFOS
    )


def _distinct(tags: list[str]) -> tuple[str, ...]:
    """Each tag once, as it is spelled first: `Draft` and `draft` are the same."""
    if len(tags) < 2:
        return tuple(tags)
    first: dict[str, str] = {}
    for tag in tags:
        first.setdefault(tag.casefold(), tag)
    return tuple(first.values())
