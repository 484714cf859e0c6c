"""Items and layers to text.

Laws: rendering is one-way, nothing here parses what it rendered. Attached content cannot close
its wrapper nor imitate our own markers: just the colliding marker is escaped, so benign content
is byte for byte what the file holds. Nothing random: a nonce would kill prefix sharing.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from lamina.text.characters import fold_text, is_visible, source_positions, splice
from lamina.values.item import Item, ItemId, Shape, key_of, kind_of
from lamina.values.message import Context, ToolText, Use

LIBRARY_HEADER = "## Context Library\n\nThe following notes are available for reference:\n\n"
QUERY_FRAME = "---\n\n[User query]:\n\n"
TOOLS_HEADER = "# Additional context:\n\n"
NAMES_HEADER = "Context attached to this message:\n"
FIND_IN_LIBRARY = "Find them in the Context Library in the system prompt above."
FIND_ABOVE = "Find them in the context above."
CHANGED_HEADER = "Changed since it was last shown; the version below replaces the one above:\n"
ABSENT_HEADER = "Attached, but not included here:\n"
IN_FORCE_HEADER = "Rules and references in force from here on:\n"
NONE_IN_FORCE = "No rules or references are in force from here on."
RULES_SENTENCE = (
    "Rules and references apply only while the latest list of those in force names them; "
    "those it does not name do not apply."
)

# kind -> (tag, tag when active or a web tab, name of the key's element)
_WRAPPERS: dict[str, tuple[str, str, str]] = {
    "note": ("note_context", "active_note", "path"),
    "url": ("url_content", "web_tab_context", "url"),
    "selection": ("selected_text", "selected_text", "path"),
    "query": ("query_context", "query_context", "path"),
    "folder": ("folder_context", "folder_context", "path"),
    "tag": ("tag_context", "tag_context", "name"),
    "file": ("file_context", "file_context", "name"),
    "pdf": ("embedded_pdf", "embedded_pdf", "name"),
    "image": ("image_context", "image_context", "path"),
    "rule": ("rule_context", "rule_context", "name"),
    "reference": ("reference_context", "reference_context", "name"),
    "tool": ("tool_context", "tool_context", "name"),
}
_GUIDE_LABELS = {"rule": "Rule", "reference": "Reference"}
# What a search block is made of; see `citations`, where it is rendered.
SEARCH_TAGS = (
    "search_instruction", "search_documents", "search_document", "search_text",
    "source_catalogue", "citation_rules",
)  # fmt: skip
_TAGS = tuple(sorted({tag for tags in _WRAPPERS.values() for tag in tags[:2]})) + (
    "embedded_note", "project_system_prompt", "project_context", "saved_memories",
)  # fmt: skip
# All of these are looked for in folded text. Possessive (`*+`), so that hostile runs of white space
# cost linear time. Too many slashes, or the wrong ones, may still be understood.
_SLASH = r"/\\\u2044\u2215\u29f8"
_CLOSES = rf"\s*+[{_SLASH}]"
_CLOSES_CONTENT = rf"{_CLOSES}[\s{_SLASH}]*+content\b"
# A model sees a new line where any of these stands, so a marker may not follow one.
_BREAKS = r"\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
_PHRASES = (
    "[User query]:", "# Additional context:", "Context attached to this message:",
    "Find them in the ", "Changed since it was last shown", "Attached, but not included here:",
    "Rules and references in force", "No rules or references are in force",
    "[Earlier messages were removed", "The question that is being worked on:",
)  # fmt: skip


def _loosely(phrase: str) -> str:
    """A phrase whatever its blanks are, also none beside a mark."""
    words = re.findall(r"\w+|[^\w\s]| \Z", phrase)
    loose = r"\s*+".join(re.escape(word) if word != " " else r"(?<=\s)" for word in words)
    return re.sub(r"(?<=\w)\\s\*\+(?=\w)", r"\\s++", loose)


# Behind a break: text is searched with one in front of it, which is much faster than `^`; so is a
# look at the first character before all of them are tried.
_FIRSTS = re.escape("".join(sorted({"#", *(phrase[0] for phrase in _PHRASES)})))
_PHRASE_STARTS = re.compile(
    rf"[{_BREAKS}][^\S{_BREAKS}]*+(?=[{_FIRSTS}])"
    rf"(?=#{{1,6}}\s*+Context\s++Library\b|{'|'.join(map(_loosely, _PHRASES))})",
    re.IGNORECASE,
)
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SELECTION_KEY = re.compile(r"(.*)#L(\d+)-L(\d+)", re.DOTALL)

# References before rules; the rest in the order people are used to.
_ORDER = (
    "active", "note", "file", "pdf", "image", "query", "tag", "folder",
    "url", "selection", "web_tab", "tool", "reference", "rule",
)  # fmt: skip
_RANK = {name: rank for rank, name in enumerate(_ORDER)}


def attachment_rank(item: ItemId, shape: Shape) -> int:
    """Where an attachment of this kind stands among those of one turn."""
    return _RANK[shape if shape != "attached" else kind_of(item)]


def escape_content(text: str, *tags: str) -> str:
    """`text` with the markers escaped that would close its wrapper or pass for ours."""
    return _escape(text, _openings(_TAGS + SEARCH_TAGS, tags, _CLOSES_CONTENT))


@lru_cache(maxsize=64)
def _openings(ours: tuple[str, ...], named: tuple[str, ...], closes: str) -> re.Pattern[str]:
    """A `<` that begins one of these tags, or one of `closes`. Names given by others may go on
    with a dot or a dash."""
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
        # As it stands, too: what nobody sees may also end a name that would go on without it.
        marks |= {match.start(): "<" for match in openings.finditer(text)}
    if not marks:
        return text
    edits = ((at, at + len(mark), "&lt;" if mark else "\\") for at, mark in sorted(marks.items()))
    return splice(text, edits)


def label_of(item: ItemId) -> str:
    """How a person and the model call an item: its path, URL or name."""
    key = key_of(item)
    match kind_of(item):
        case "selection" if match := _SELECTION_KEY.fullmatch(key):
            return f"{match[1]} (lines {match[2]}-{match[3]})"
        case "tag":
            return f"#{key}"
        case "folder":
            return f"{key}/"
        case "query":
            path, _, digest = key.rpartition("#")
            return f"{path} (query {digest[:6]})" if path else key
    return key


def one_line(value: str) -> str:
    """A name on one line that cannot close the element it stands in."""
    line = _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), value)
    return _escape(line, _openings(_TAGS + SEARCH_TAGS, (), _CLOSES), phrases=False)


def _list_line(value: str) -> str:
    return f"- {one_line(value)}"


def render_item(item: Item, shape: Shape = "attached") -> str:
    """The block of one item as it stands in a message or in the library."""
    tag, special, key_name = _WRAPPERS[item.kind]
    if (item.kind, shape) in (("note", "active"), ("url", "web_tab")):
        tag = special
    content = escape_content(item.content)
    lines = [f"<{tag}>"]
    match item.kind:
        case "rule" | "reference":
            label = _GUIDE_LABELS[item.kind]
            lines += [f"<name>{one_line(item.key)}</name>", f"{label}: {content}"]
        case "note":
            lines += [
                f"<title>{one_line(item.title or _stem(item.key))}</title>",
                f"<path>{one_line(item.key)}</path>",
                f"<ctime>{one_line(item.ctime or 'Unknown')}</ctime>",
                f"<mtime>{one_line(item.mtime or 'Unknown')}</mtime>",
                f"<content>\n{content}\n</content>",
            ]
        case "selection":
            match = _SELECTION_KEY.fullmatch(item.key)
            path, start, end = match.groups() if match else (item.key, "?", "?")
            lines += [
                f"<title>{one_line(item.title or _stem(path))}</title>",
                f"<path>{one_line(path)}</path>",
                f"<start_line>{start}</start_line>",
                f"<end_line>{end}</end_line>",
                f"<content>\n{content}\n</content>",
            ]
        case "tool":
            # Its own text begins with what it is called.
            lines.append(content)
        case _:
            if item.title:
                lines.append(f"<title>{one_line(item.title)}</title>")
            lines += [
                f"<{key_name}>{one_line(item.key)}</{key_name}>",
                f"<content>\n{content}\n</content>",
            ]
    lines.append(f"</{tag}>")
    return "\n".join(lines)


def render_bare(item: Item) -> str | None:
    """The original request form of rules and references, which has no wrapper."""
    label = _GUIDE_LABELS.get(item.kind)
    return f"{label}: {escape_content(item.content)}".strip() if label else None


def render_names(context: Context, *, in_library: bool) -> str:
    """What a turn says of its attachments besides the text of the new ones; empty if nothing."""
    sections = []
    if names := [_name_line(use) for use in context.uses if use.form == "named"]:
        find = FIND_IN_LIBRARY if in_library else FIND_ABOVE
        sections.append(NAMES_HEADER + "\n".join([*names, "", find]))
    changes = [use.item for use in context.uses if use.form == "full" and use.replaces]
    if changes:
        sections.append(CHANGED_HEADER + _bullets(map(label_of, changes)))
    if context.absent:
        absences = (f"{absent.label} ({absent.why})" for absent in context.absent)
        sections.append(ABSENT_HEADER + _bullets(absences))
    if context.in_force:
        sections.append(IN_FORCE_HEADER + _bullets(map(label_of, context.in_force)))
    elif context.in_force is not None:
        sections.append(NONE_IN_FORCE)
    return "\n\n".join(sections)


def _name_line(use: Use) -> str:
    line = _list_line(label_of(use.item))
    if use.shown > 1:
        line += f" (changed back: version {use.ordinal} of the {use.shown} shown applies again)"
    return line


def _bullets(labels: Iterable[str]) -> str:
    return "\n".join(map(_list_line, labels))


def render_tool_texts(texts: Sequence[ToolText]) -> str:
    """Results of planned tools, one wrapper each."""
    tags = tuple(_tool_tag(text.name) for text in texts)
    # A search block has markers of its own; it was escaped when it was rendered.
    openings = _openings(_TAGS, tags, _CLOSES_CONTENT)
    blocks = [
        f"<{tag}>\n{_escape(text.text, openings)}\n</{tag}>"
        for tag, text in zip(tags, texts, strict=True)
    ]
    return TOOLS_HEADER + "\n\n".join(blocks)


def _tool_tag(name: str) -> str:
    """A tool's name as a tag; one that reads as a tag of ours says what it is."""
    tag = "".join(sign if sign in ".-" or _is_in_tag(sign) else "_" for sign in name) or "tool"
    is_ours = fold_text(tag).lower() in (*_TAGS, *SEARCH_TAGS, "content")
    return f"tool_{tag}" if is_ours else tag


def _is_in_tag(character: str) -> bool:
    return (character.isalnum() or character == "_") and is_visible(character)


def render_project(base: str, system_prompt: str | None, context: str | None) -> str:
    """L1 of a project: base prompt, then the project's own blocks; what is missing has no block."""
    parts = [base.strip()]
    for tag, text in (("project_system_prompt", system_prompt), ("project_context", context)):
        if text and text.strip():
            parts.append(f"<{tag}>\n{escape_content(text)}\n</{tag}>")
    return "\n\n".join(part for part in parts if part)


def _stem(path: str) -> str:
    name = path.rsplit("/", 1)[-1]
    return name.rsplit(".", 1)[0] if "." in name[1:] else name
