"""Finds the links, embeds and pictures in a note.

Laws: nothing inside code or comments is a link. Targets stay as spelled: resolving them takes the
names in the whole workspace. Time is proportional to the size.
"""

import re
from collections.abc import Iterator
from urllib.parse import unquote

from msgspec import Struct

from lamina.core.notes.note_names import NOTE_SUFFIX
from lamina.core.text.code_and_comments import mask_comments
from lamina.core.text.pictures import (
    PICTURE_SUFFIXES,
    decode_target,
    find_destination,
    find_pictures,
)

# A link's label matters only if it is a name, and names are short; their number per note is
# limited.
_MAX_LABEL = 200
_MAX_LABELS = 1_000
WIKILINK = re.compile(r"\[\[((?:[^\[\]\n]|\[(?!\[)|\](?!\]))*+)\]\]")
# Most targets need no decoding; the others are parsed fully.
_LINK = re.compile(r"\](?:\((?:([^\s()<>\\&%]*+)\))?|:[ \t]+(\S++))")
_SCHEME = re.compile(r"//|[A-Za-z][A-Za-z0-9+.-]{1,30}+:")


class NoteLinks(Struct, frozen=True, kw_only=True):
    """The targets of links and embeds, each once and in order; `labels` maps targets to the labels
    of their links, if any; `pictures` lists the pictures that are files."""

    links: tuple[str, ...] = ()
    embeds: tuple[str, ...] = ()
    labels: dict[str, tuple[str, ...]] = {}
    pictures: tuple[str, ...] = ()


def read_links(body: str, plain_text: str) -> NoteLinks:
    """Return the links in a note's text; `plain_text` is the same text with code masked."""
    # Searching for one character is far faster than for two, and many notes have no links.
    if "]" not in body and "<" not in body:
        return NoteLinks()
    pictures = _find_files(body) if "![" in body or "<img" in body.lower() else ()
    has_wikilinks = "[[" in body
    has_links = "](" in body or "]:" in body
    has_links = has_links and (NOTE_SUFFIX in body or NOTE_SUFFIX in body.lower())
    if not (has_wikilinks or has_links):
        return NoteLinks(pictures=pictures)
    if "%%" in body or "<!--" in body:
        plain_text = mask_comments(plain_text)
    links = list(_find_links(plain_text, body)) if has_links else []
    embeds: list[str] = []
    labels: dict[str, dict[str, None]] = {}
    for start, target, label in _find_wikilinks(plain_text, body) if has_wikilinks else ():
        if not start or body[start - 1] != "!":
            links.append((start, target))
        elif not target.partition("#")[0].lower().endswith(PICTURE_SUFFIXES):
            embeds.append(target)
        if 0 < len(label) <= _MAX_LABEL and len(labels) < _MAX_LABELS:
            labels.setdefault(target, {})[label] = None
    links.sort(key=lambda link: link[0])
    return NoteLinks(
        links=tuple(dict.fromkeys([link for _, link in links])),
        embeds=tuple(dict.fromkeys(embeds)),
        labels={target: tuple(names)[:_MAX_LABELS] for target, names in labels.items()},
        pictures=pictures,
    )


def _find_files(body: str) -> tuple[str, ...]:
    references = (reference for reference in find_pictures(body) if reference.kind == "path")
    files = (file.target for file in references if not _SCHEME.match(file.target))
    return tuple(file for file in files if file.lower().endswith(PICTURE_SUFFIXES))


def _find_wikilinks(plain_text: str, body: str) -> Iterator[tuple[int, str, str]]:
    """Yield the positions, targets and labels of double-bracket links."""
    for match in WIKILINK.finditer(plain_text):
        target, _, label = body[match.start(1) : match.end(1)].partition("|")
        target = target.removesuffix("\\").strip()
        # Code in a link is part of its name, but a link that is all code is not a link.
        if target and not match[1].startswith("\0"):
            yield match.start(), target, label.strip()


def _find_links(plain_text: str, body: str) -> Iterator[tuple[int, str]]:
    """Yield the positions of Markdown links to notes, and their decoded targets."""
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
