"""Finds the pictures in a note: those it refers to, and those embedded as data URIs.

Laws: time is proportional to the length of the note, whatever it contains. Anything in code or in a
comment is not a reference. Nothing is opened here: a reference is text until a workspace reads it.
Where a few words replace the bytes of a picture, the text keeps its lines. A model gets such bytes
as an image or not at all, never as text: a photo would be a hundred thousand tokens.
"""

import html
import re
from collections.abc import Iterator, Mapping
from typing import Literal
from urllib.parse import unquote

from msgspec import Struct

from lamina.core.text.characters import splice
from lamina.core.text.code_and_comments import (
    Fence,
    find_fence,
    is_escaped,
    line_spans,
    mask_code,
    mask_comments,
)

__all__ = [
    "PICTURE_SUFFIXES", "Fence", "PicturePlace", "PictureRef", "count_pictures", "decode_target",
    "find_destination", "find_fence", "find_pictures", "is_escaped", "line_spans",
    "locate_definitions", "locate_pictures", "mask_code",
]  # fmt: skip

PICTURE_SUFFIXES = (
    ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".avif", ".heic", ".heif",
    ".ico", ".svg",
)  # fmt: skip

_MARK = re.compile(r"\\[^\n]|!\[\[[^\[\]\n]*+\]\]|!?\[|\]|\n[ \t\r]*+(?=\n)")
# The name of a definition after an image, and a definition.
_NAMED = re.compile(r"\[([^\[\]\n]{0,1000})\]")
_DEFINITION = re.compile(
    r"^ {0,3}\[([^\[\]\n]{1,1000})\]:[ \t]*+(<[^<>\n]*+>|[^\s<]\S*+)", re.MULTILINE
)
_TAG = re.compile(r"<img(?=[\s/])[^<>]*+>", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    r"""(?<![^\s"'])([a-zA-Z-]{1,40})[ \t\n]{0,9}=[ \t\n]{0,9}("[^"]*+"|'[^']*+'|[^\s"'>]++)"""
)
_GAP = re.compile(r"[ \t]*+(?:\r?\n[ \t]*+)?")
_BLANKS = re.compile(r"[ \t]*+")
_ANGLED = re.compile(r"<((?:[^<>\\\n]|\\[^\n])*+)>")
_TITLE = re.compile(
    r""""(?:[^"\\]|\\[\s\S])*+"|'(?:[^'\\]|\\[\s\S])*+'|\((?:[^()\\]|\\[\s\S])*+\)"""
)
_PLAIN = re.compile(r"[^\s()\\]++")
# Deeper nesting is not a destination; the limit also keeps the scan linear.
_MAX_DEPTH = 8
# The maximum examined length of a description.
_MAX_ALT = 1_000

_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_AFTER_SUFFIX = re.compile(
    rf"(?<=\.)({'|'.join(name[1:] for name in PICTURE_SUFFIXES)})[?#].*+", re.IGNORECASE | re.DOTALL
)
_URL = re.compile(r"//|[a-z][a-z0-9+.-]{1,30}+://", re.IGNORECASE)


class PictureRef(Struct, frozen=True, kw_only=True):
    """A picture that a note refers to: a decoded path, a data URI or a URL."""

    kind: Literal["path", "data", "url"]
    target: str


class PicturePlace(Struct, frozen=True, kw_only=True):
    """The place of a picture in a text, from `start` to before `end`, and its description.
    `has_definition` if its target is defined elsewhere."""

    reference: PictureRef
    start: int
    end: int
    alt: str = ""
    has_definition: bool = False


class _Definition(Struct, frozen=True):
    target: str
    start: int
    end: int


def find_pictures(markdown: str) -> tuple[PictureRef, ...]:
    """Return the pictures of a note in order, each once: `![[x.png]]`, `![alt](target "title")`,
    `![alt][name]` with a line `[name]: target`, and `<img src="target">`."""
    return tuple(dict.fromkeys(place.reference for place in locate_pictures(markdown)))


def count_pictures(markdown: str) -> int:
    """Return how many pictures a note refers to; most have none, and are not searched."""
    if "![" not in markdown and "<img" not in markdown.lower():
        return 0
    return len(find_pictures(markdown))


def locate_pictures(markdown: str) -> tuple[PicturePlace, ...]:
    """Return the pictures of a note and their places, in order."""
    text = _mask(markdown)
    places = list(_locate_images(markdown, text)) if "![" in text else []
    if tags := list(_locate_tags(markdown, text)):
        places = sorted([*places, *tags], key=lambda place: place.start)
    return tuple(places)


def locate_definitions(markdown: str) -> tuple[PicturePlace, ...]:
    """Return the targets that lines like `[name]: target` define for pictures and links, with their
    places."""
    definitions = _find_definitions(markdown, _mask(markdown)) if "]:" in markdown else {}
    return tuple(
        PicturePlace(reference=_refer(target.target), start=target.start, end=target.end)
        for target in definitions.values()
        if target.target
    )


def _mask(markdown: str) -> str:
    text, _ = mask_code(markdown)
    return mask_comments(text) if "%%" in text or "<!--" in text else text


def _locate_images(markdown: str, text: str) -> list[PicturePlace]:
    """Yield images in Markdown syntax; `text` is the note with its code and comments masked."""
    places: list[PicturePlace] = []
    open_brackets: list[int] = []  # where an image's `![` stands; -1 for a plain bracket
    definitions: Mapping[str, _Definition] | None = None if "]:" in text else {}
    position = 0
    while mark := _MARK.search(text, position):
        position = mark.end()
        match mark[0]:
            case "![":
                open_brackets.append(mark.start())
            case "[":
                open_brackets.append(-1)
            case "]" if open_brackets:
                start = open_brackets.pop()
                if start < 0:
                    continue
                alt = markdown[max(start + 2, mark.start() - _MAX_ALT) : mark.start()]
                definition = None
                if inside := find_destination(text, position):
                    target_start, target_end, end = inside
                    target = decode_target(markdown[target_start:target_end].strip())
                else:
                    if definitions is None:
                        definitions = _find_definitions(markdown, text)
                    named = _NAMED.match(text, position)
                    definition = definitions.get(_fold_name((named and named[1]) or alt))
                    if definition is None:
                        continue
                    target, end = definition.target, named.end() if named else position
                position = end
                # A picture in another one's description is only words.
                while places and places[-1].start > start:
                    places.pop()
                if target:
                    places.append(
                        PicturePlace(
                            reference=_refer(target),
                            start=start,
                            end=end,
                            alt=alt,
                            has_definition=definition is not None,
                        )
                    )
            case wiki if wiki.startswith("![["):
                name = markdown[mark.start() + 3 : mark.end() - 2].partition("|")[0]
                name = name.removesuffix("\\").partition("#")[0].strip()
                if name.lower().endswith(PICTURE_SUFFIXES):
                    places.append(
                        PicturePlace(reference=_refer(name), start=mark.start(), end=mark.end())
                    )
            case gap if gap.startswith("\n"):
                open_brackets.clear()
    return places


def _locate_tags(markdown: str, text: str) -> Iterator[PicturePlace]:
    """Yield images in HTML syntax."""
    for tag in _TAG.finditer(text):
        attributes = {
            match[1].lower(): html.unescape(match[2].strip("\"'").strip())
            for match in _ATTRIBUTE.finditer(markdown, tag.start() + 4, tag.end())
        }
        if source := attributes.get("src"):
            target = source if _is_data(source) or _URL.match(source) else decode_target(source)
            yield PicturePlace(
                reference=_refer(target),
                start=tag.start(),
                end=tag.end(),
                alt=attributes.get("alt", ""),
            )


def _find_definitions(markdown: str, text: str) -> dict[str, _Definition]:
    """Return the targets that lines like `[name]: target` define; the first of a name counts."""
    definitions: dict[str, _Definition] = {}
    for match in _DEFINITION.finditer(text):
        start, end = match.span(2)
        target = markdown[start:end].removeprefix("<").removesuffix(">").strip()
        name = _fold_name(markdown[match.start(1) : match.end(1)])
        definitions.setdefault(name, _Definition(decode_target(target), start, end))
    return definitions


def _fold_name(name: str) -> str:
    return " ".join(name.split()).casefold()


def find_destination(text: str, at: int) -> tuple[int, int, int] | None:
    """Return start and end of the target in `(target "title")` at `at`, and the end of the
    whole."""
    if not text.startswith("(", at):
        return None
    start = _skip(_GAP, text, at + 1)
    if text.startswith("<", start):
        brackets = _ANGLED.match(text, start)
        end = _close(text, brackets.end()) if brackets else None
        return (*brackets.span(1), end) if brackets and end else None
    position, depth = start, 0
    while position < len(text):
        character = text[position]
        if character == "\\":
            position += 2
        elif character == "(":
            depth += 1
            position += 1
            if depth > _MAX_DEPTH:
                return None
        elif character == ")" and depth:
            depth -= 1
            position += 1
        elif character == ")" or character.isspace():
            # Spaces are not allowed in a bare target, but people write them.
            if depth == 0 and (end := _close(text, position)):
                return start, position, end
            if character in ")\n":
                return None
            position = _skip(_BLANKS, text, position + 1)
        else:
            position = _skip(_PLAIN, text, position)
    return None


def _close(text: str, at: int) -> int | None:
    """Return the end of an optional title and `)` at `at`; None if something else is there."""
    position = _skip(_GAP, text, at)
    if position > at and (title := _TITLE.match(text, position)):
        position = _skip(_GAP, text, title.end())
    return position + 1 if text.startswith(")", position) else None


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def decode_target(target: str) -> str:
    """Return the intended target of a link: without escapes, and a path without percent signs."""
    target = _ENTITY.sub(lambda match: html.unescape(match[0]), target)
    target = _ESCAPED.sub(r"\1", target)
    if _is_data(target) or _URL.match(target):
        return target
    return unquote(_AFTER_SUFFIX.sub(r"\1", target, count=1))


def _refer(target: str) -> PictureRef:
    if _is_data(target):
        return PictureRef(kind="data", target=target)
    return PictureRef(kind="url" if _URL.match(target) else "path", target=target)


def _is_data(target: str) -> bool:
    return target[:5].lower() == "data:"


_MAX_DESCRIPTION = 200
# Shorter data needs no more room than its description; no real picture is that short.
_LONGEST_KEPT = 64
_NAMES = {"svg+xml": "SVG", "x-icon": "ICO", "vnd.microsoft.icon": "ICO"}
_NO_DIGIT = re.compile(r"[^A-Za-z0-9+/_-]")
_BRACKETS = str.maketrans("[]", "()")
# A picture anywhere else: in a property, a style, a script, a drawing. Lines of digits that follow
# belong to it if they are long, or end it. This is how everything replaceable starts: other text
# with `data:` in it, such as YAML in code, need not be searched.
_DATA = re.compile(r"data:(?:\s*+[\w.+/-]*+\s*+(?:;[^,]{0,200})?,|\S{40})", re.IGNORECASE)
_ELSEWHERE = re.compile(
    r"data:image/[\w.+-]{1,40}+(?:;[\w.=-]{1,40}+)*?"
    r"(?:;base64,[ \t]*+(?:\r?\n[ \t>]*+)?[\w+/-]++(?:\r?\n[ \t>]*+[\w+/-]{40,}+)*+"
    r"(?:\r?\n[ \t>]*+[\w+/-]*+={1,2}+)?+={0,2}+|,[^\s\"'()<>`]++)",
    re.IGNORECASE | re.ASCII,
)


def replace_data_pictures(markdown: str) -> str:
    """Return `markdown` with a few words for each picture that it embeds: its description, its kind
    and its size, as `[Picture: a chart (PNG, 225 kB)]`."""
    if not _DATA.search(markdown):
        return markdown
    # A definition may serve several pictures, which keep their own descriptions.
    places = [place for place in locate_pictures(markdown) if not place.has_definition]
    edits: list[tuple[int, int, str]] = []
    for place in sorted((*places, *locate_definitions(markdown)), key=lambda place: place.start):
        is_long = place.reference.kind == "data" and len(place.reference.target) > _LONGEST_KEPT
        if is_long and (not edits or place.start >= edits[-1][1]):
            words = describe_data(place.alt, place.reference.target)
            lines = markdown.count("\n", place.start, place.end)
            edits.append((place.start, place.end, words + "\n" * lines))
    return _ELSEWHERE.sub(_describe_match, splice(markdown, edits) if edits else markdown)


def _describe_match(match: re.Match[str]) -> str:
    uri = match[0]
    if len(uri) <= _LONGEST_KEPT:
        return uri
    return describe_data("", uri) + "\n" * uri.count("\n")


def describe_data(alt: str, uri: str) -> str:
    """Return a picture described in words."""
    head, _, body = uri.partition(",")
    kind = head[len("data:") :].partition(";")[0].strip().lower()
    name = kind.rpartition("/")[2]
    name = _NAMES.get(name, name[:20].upper()) or "unknown kind"
    is_base64 = head.rpartition(";")[2].strip().lower() == "base64"
    size = len(_NO_DIGIT.sub("", body)) * 3 // 4 if is_base64 else len(body)
    words = " ".join(alt.split())[:_MAX_DESCRIPTION].translate(_BRACKETS)
    return f"[Picture{f': {words}' if words else ''} ({name}, {_say_size(size)})]"


def _say_size(size: int) -> str:
    for unit, scale in (("MB", 1_000_000), ("kB", 1_000)):
        if size >= scale:
            return (
                f"{size / scale:,.1f} {unit}" if size < 10 * scale else f"{size // scale:,} {unit}"
            )
    return f"{size} bytes"
