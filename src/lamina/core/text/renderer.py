"""Renders items and layers as text.

Laws: rendering is one-way, nothing here parses rendered text. Attached content can neither close
its wrapper nor imitate our own markers: only the colliding marker is escaped, so benign content
stays byte for byte that of the file. Nothing is random: a nonce would prevent prefix sharing.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import assert_never

from lamina.core.text import headers
from lamina.core.text.characters import fold_text, is_visible, source_positions, splice
from lamina.core.text.wording import Wording
from lamina.core.values.item import (
    GUIDE_KINDS,
    SHAPE_RANKS,
    TRAITS,
    Element,
    Item,
    ItemId,
    ItemKind,
    KindTraits,
    Shape,
    key_of,
    kind_of,
)
from lamina.core.values.message import Context, ToolText, Use

LIBRARY_HEADER = headers.LIBRARY.text
QUERY_FRAME = headers.QUERY.text

# The elements of a search block; see `citations`, where it is rendered.
SEARCH_TAGS = (
    "search_instruction", "search_documents", "search_document", "search_text",
    "source_catalogue", "citation_rules",
)  # fmt: skip
_ITEM_TAGS = {tag for row in TRAITS.values() for tag in (row.tag, row.shape_tag) if tag}
_TAGS = tuple(sorted(_ITEM_TAGS)) + (
    "embedded_note", "project_system_prompt", "project_context", "saved_memories",
)  # fmt: skip
# All of these are searched for in folded text. Possessive (`*+`), so that hostile runs of white
# space cost linear time. Too many slashes, or the wrong ones, may still be understood.
_SLASH = r"/\\\u2044\u2215\u29f8"
_CLOSES = rf"\s*+[{_SLASH}]"
_CLOSES_CONTENT = rf"{_CLOSES}[\s{_SLASH}]*+content\b"
# A model sees a new line after any of these characters, so no marker may follow one.
_BREAKS = r"\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"


def _loosely(phrase: str) -> str:
    """Return a pattern of a phrase with any blanks between words, or none next to a mark."""
    words = re.findall(r"\w+|[^\w\s]| \Z", phrase)
    loose = r"\s*+".join(re.escape(word) if word != " " else r"(?<=\s)" for word in words)
    return re.sub(r"(?<=\w)\\s\*\+(?=\w)", r"\\s++", loose)


def _opening(header: headers.Header) -> str:
    if not header.any_level:
        return _loosely(header.opening)
    return rf"#{{1,6}}\s*+{_loosely(header.opening.lstrip('# '))}\b"


# After a break: text is searched with a break in front of it, which is much faster than `^`; so is
# checking the first character before trying all of them.
_FIRSTS = re.escape("".join(sorted({header.opening[0] for header in headers.HEADERS})))
_OPENINGS = dict.fromkeys(map(_opening, headers.HEADERS))
_PHRASE_STARTS = re.compile(
    rf"[{_BREAKS}][^\S{_BREAKS}]*+(?=[{_FIRSTS}])"
    rf"(?={'|'.join(_OPENINGS)})",
    re.IGNORECASE,
)
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_KEYS = {kind: re.compile(row.key_pattern, re.DOTALL) for kind, row in TRAITS.items()}


def attachment_rank(item: ItemId, shape: Shape) -> int:
    """Return the rank of this kind of attachment among those of one turn."""
    return SHAPE_RANKS[shape] if shape != "attached" else TRAITS[kind_of(item)].rank


def escape_content(text: str, *tags: str) -> str:
    """Return `text` with all markers escaped that would close its wrapper or imitate ours."""
    return _escape(text, _openings(_TAGS + SEARCH_TAGS, tags, _CLOSES_CONTENT))


@lru_cache(maxsize=64)
def _openings(ours: tuple[str, ...], named: tuple[str, ...], closes: str) -> re.Pattern[str]:
    """Match a `<` that begins one of these tags, or one of `closes`. Names given by others may
    continue with a dot or a dash."""
    names = [rf"{re.escape(tag)}\b" for tag in ours]
    names += [rf"{re.escape(fold_text(tag))}(?![\w.-])" for tag in named]
    return re.compile(rf"<(?=[\s{_SLASH}]*+(?:{'|'.join(names)})|{closes})", re.IGNORECASE)


def _escape(text: str, openings: re.Pattern[str], *, phrases: bool = True) -> str:
    folded = fold_text(text)
    marks = {match.start(): "<" for match in openings.finditer(folded)} if "<" in folded else {}
    if phrases:
        for match in _PHRASE_STARTS.finditer(f"\n{folded}"):
            marks[match.end() - 1] = ""
    if folded is not text and folded != text:
        places = source_positions(text, folded)
        marks = {places[at]: opening for at, opening in marks.items()}
        # Checked unfolded, too: an invisible character may also end a name that would continue
        # without it.
        marks |= {match.start(): "<" for match in openings.finditer(text)}
    if not marks:
        return text
    edits = ((at, at + len(mark), "&lt;" if mark else "\\") for at, mark in sorted(marks.items()))
    return splice(text, edits)


def label_of(item: ItemId) -> str:
    """Return an item's label for people and models: its path, URL or name."""
    kind, key = kind_of(item), key_of(item)
    traits = TRAITS.get(kind)
    if traits and traits.label and (parts := _key_parts(kind, key)):
        return traits.label.format(**parts)
    return key


def _key_parts(kind: ItemKind, key: str) -> dict[str, str]:
    """Return the parts of a key by their names; none if it does not match its kind's pattern."""
    match = _KEYS[kind].fullmatch(key)
    return match.groupdict() if match else {}


def one_line(value: str) -> str:
    """Return a name on one line that cannot close its enclosing element."""
    line = _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), value)
    return _escape(line, _openings(_TAGS + SEARCH_TAGS, (), _CLOSES), phrases=False)


def _list_line(value: str) -> str:
    return f"- {one_line(value)}"


def render_item(item: Item, words: Wording, shape: Shape = "attached") -> str:
    """Render an item as its block in a message or in the library."""
    traits = TRAITS[item.kind]
    tag = traits.shape_tag if shape == traits.shape else traits.tag
    head, content = _head(item, traits), escape_content(item.content)
    lines = [f"<{name}>{one_line(text)}</{name}>" for name, text in head if text or name != "title"]
    lines.append(traits.body.format(content))
    if item.unseen_pictures:
        lines.append(_say_unseen(item.unseen_pictures, bool(item.pictures), words))
    return "\n".join([f"<{tag}>", *lines, f"</{tag}>"])


# Replaces a picture for models that cannot see any.
UNSEEN_PICTURE = "[An image, which this model cannot see.]"


def _say_unseen(count: int, shows_some: bool, words: Wording) -> str:
    """Return the line below content that refers to missing pictures."""
    more = " more" if shows_some else ""
    line = words.unseen_picture if count == 1 else words.unseen_pictures
    return line.format(count=count, more=more)


def _head(item: Item, traits: KindTraits) -> Iterator[tuple[Element, str]]:
    """Yield the elements before an item's content."""
    parts = _key_parts(item.kind, item.key)
    path = parts.get("path", item.key)
    for name in traits.head:
        match name:
            case "title":
                yield name, item.title or (_stem(path) if traits.has_title else "")
            case "path" | "url" | "name":
                yield name, path
            case "ctime":
                yield name, item.ctime or "Unknown"
            case "mtime":
                yield name, item.mtime or "Unknown"
            case "start_line" | "end_line":
                yield name, parts.get(name, "?")
            case _:
                assert_never(name)


def render_bare(item: Item) -> str | None:
    """Render rules and references as in the original request format, without a wrapper."""
    if item.kind not in GUIDE_KINDS:
        return None
    return TRAITS[item.kind].body.format(escape_content(item.content)).strip()


def render_names(context: Context, *, in_library: bool) -> str:
    """Render what a turn says about its attachments, apart from the text of new ones; empty if
    there is nothing to say."""
    sections = []
    if names := [_name_line(use) for use in context.uses if use.form == "named"]:
        find = headers.IN_LIBRARY if in_library else headers.ABOVE
        sections.append(headers.NAMES.text + "\n".join([*names, "", find.text]))
    changes = [use.item for use in context.uses if use.form == "full" and use.replaces]
    if changes:
        sections.append(headers.CHANGED.text + _bullets(map(label_of, changes)))
    if context.absent:
        absences = (f"{absent.label} ({absent.why})" for absent in context.absent)
        sections.append(headers.ABSENT.text + _bullets(absences))
    if context.in_force:
        sections.append(headers.IN_FORCE.text + _bullets(map(label_of, context.in_force)))
    elif context.in_force is not None:
        sections.append(headers.NONE_IN_FORCE.text)
    return "\n\n".join(sections)


def _name_line(use: Use) -> str:
    line = _list_line(label_of(use.item))
    if use.shown > 1:
        line += f" (changed back: version {use.ordinal} of the {use.shown} shown applies again)"
    return line


def _bullets(labels: Iterable[str]) -> str:
    return "\n".join(map(_list_line, labels))


def render_tool_texts(texts: Sequence[ToolText]) -> str:
    """Render the results of planned tools, one wrapper each."""
    tags = tuple(_tool_tag(text.name) for text in texts)
    # A search block has its own markers; it was escaped when it was rendered.
    openings = _openings(_TAGS, tags, _CLOSES_CONTENT)
    blocks = [
        f"{open_block(tag, text.time_range)}\n{_escape(text.text, openings)}\n</{tag}>"
        for tag, text in zip(tags, texts, strict=True)
    ]
    return headers.TOOLS.text + "\n\n".join(blocks)


def open_block(tag: str, time_range: str = "") -> str:
    """Return the opening tag of a tool's block, with its time range, if any."""
    if not time_range:
        return f"<{tag}>"
    value = _CONTROLS.sub(" ", time_range).replace("&", "&amp;").replace('"', "&quot;")
    return f'<{tag} timeRange="{value.replace("<", "&lt;").replace(">", "&gt;")}">'


def _tool_tag(name: str) -> str:
    """Return a tool's name as a tag; a name that looks like one of our tags is marked as a tool."""
    tag = "".join(sign if sign in ".-" or _is_in_tag(sign) else "_" for sign in name) or "tool"
    is_ours = fold_text(tag).lower() in (*_TAGS, *SEARCH_TAGS, "content")
    return f"tool_{tag}" if is_ours else tag


def _is_in_tag(character: str) -> bool:
    return (character.isalnum() or character == "_") and is_visible(character)


def render_project(base: str, system_prompt: str | None, context: str | None) -> str:
    """Render L1 of a project: base prompt, then the project's own blocks; missing parts have no
    block."""
    parts = [base.strip()]
    for tag, text in (("project_system_prompt", system_prompt), ("project_context", context)):
        if text and text.strip():
            parts.append(f"<{tag}>\n{escape_content(text)}\n</{tag}>")
    return "\n\n".join(part for part in parts if part)


def _stem(path: str) -> str:
    name = path.rsplit("/", 1)[-1]
    return name.rsplit(".", 1)[0] if "." in name[1:] else name
