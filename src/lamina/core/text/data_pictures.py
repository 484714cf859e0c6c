"""Pictures that a note holds itself, as data URIs: what stands in the text in their place.

Law: the text keeps its lines. The bytes of such a picture are an image to a model or nothing, never
text: a photo would be a hundred thousand tokens.
"""

import re

from lamina.core.text.characters import splice
from lamina.core.text.pictures import locate_definitions, locate_pictures

_MOST_ALT = 200
# What is shorter takes no more room than the words about it; no real picture is.
_LONGEST_KEPT = 64
_NAMES = {"svg+xml": "SVG", "x-icon": "ICO", "vnd.microsoft.icon": "ICO"}
_NO_DIGIT = re.compile(r"[^A-Za-z0-9+/_-]")
_BRACKETS = str.maketrans("[]", "()")
# A picture anywhere else: in a property, a style, a script, a drawing. Lines of digits that follow
# belong to it if they are long, or end it.
# How anything begins that can be replaced: what else has `data:` in it, such as YAML in code, need
# not be looked through.
_DATA = re.compile(r"data:(?:\s*+[\w.+/-]*+\s*+(?:;[^,]{0,200})?,|\S{40})", re.IGNORECASE)
_ELSEWHERE = re.compile(
    r"data:image/[\w.+-]{1,40}+(?:;[\w.=-]{1,40}+)*?"
    r"(?:;base64,[ \t]*+(?:\r?\n[ \t>]*+)?[\w+/-]++(?:\r?\n[ \t>]*+[\w+/-]{40,}+)*+"
    r"(?:\r?\n[ \t>]*+[\w+/-]*+={1,2}+)?+={0,2}+|,[^\s\"'()<>`]++)",
    re.IGNORECASE | re.ASCII,
)


def replace_data_pictures(markdown: str) -> str:
    """`markdown` with a few words for each picture that it holds itself: its description, its kind
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
    """A picture in words."""
    head, _, body = uri.partition(",")
    kind = head[len("data:") :].partition(";")[0].strip().lower()
    name = kind.rpartition("/")[2]
    name = _NAMES.get(name, name[:20].upper()) or "unknown kind"
    is_base64 = head.rpartition(";")[2].strip().lower() == "base64"
    size = len(_NO_DIGIT.sub("", body)) * 3 // 4 if is_base64 else len(body)
    words = " ".join(alt.split())[:_MOST_ALT].translate(_BRACKETS)
    return f"[Picture{f': {words}' if words else ''} ({name}, {_say_size(size)})]"


def _say_size(size: int) -> str:
    for unit, scale in (("MB", 1_000_000), ("kB", 1_000)):
        if size >= scale:
            return (
                f"{size / scale:,.1f} {unit}" if size < 10 * scale else f"{size // scale:,} {unit}"
            )
    return f"{size} bytes"
