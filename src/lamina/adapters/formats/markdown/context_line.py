"""The context line of a chat message: `[Context: Notes: a.md, b.md | URLs: ...]`.

Law: the line shows people what was attached. Names stand in it as they are, so only known paths
can tell a comma in a name from one between names.
"""

import re

from msgspec.structs import replace

from lamina.adapters.formats.markdown.chat import ChatContext, ChatReference
from lamina.core.notes.names import NoteNames
from lamina.core.values.item import item_id, key_of, kind_of
from lamina.core.values.item_kind import KIND_OF_SUFFIX, TRAITS, ItemKind, Shape, suffix_of

_SECTIONS = ("Notes", "URLs", "Web Tabs", "Tags", "Folders")
_SECTION_OF: dict[str, str] = {kind: traits.chat_section for kind, traits in TRAITS.items()}
# Of the sections that show one kind of item only.
_KIND_OF: dict[str, ItemKind] = {
    "Web Tabs": "url",
    **{row.chat_section: kind for kind, row in TRAITS.items() if row.nature != "file"},
}

_LINE = re.compile(r"\[Context: (.*)\]\s*")
_LABEL = re.compile(r"(?:^| \| )([A-Z][A-Za-z]*(?: [A-Z][A-Za-z]*)*): ?")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


def render_context(context: ChatContext) -> str:
    """The line that shows a context; empty if nothing in it has a section there."""
    sections = []
    for section in _SECTIONS:
        names = [key_of(ref.item) for ref in context.references if section_of(ref) == section]
        if names:
            sections.append(f"{section}: {', '.join(names)}")
    sections += context.other
    return f"[Context: {show_line(' | '.join(sections))}]" if sections else ""


def show_line(text: str) -> str:
    """`text` on one line."""
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def section_of(reference: ChatReference) -> str:
    """The section that shows a reference; empty if none does."""
    if reference.shape == "web_tab":
        return "Web Tabs"
    return _SECTION_OF.get(kind_of(reference.item), "")


def read_context(line: str, note_names: NoteNames) -> ChatContext | None:
    """What a context line shows; None if it is not one."""
    match = _LINE.fullmatch(line)
    labels = list(_LABEL.finditer(match[1])) if match else []
    if not match or not labels or labels[0].start() or labels[0][1] not in _SECTIONS:
        return None
    references: list[ChatReference] = []
    other: list[str] = []
    ends = [label.start() for label in labels[1:]] + [len(match[1])]
    for label, end in zip(labels, ends, strict=True):
        section, names = label[1], match[1][label.end() : end]
        if section == "Notes":
            references += [_note(name) for name in note_names.split(names)]
        elif section in _SECTIONS:
            shape: Shape = "web_tab" if section == "Web Tabs" else "attached"
            references += [
                ChatReference(item=item_id(_KIND_OF[section], name), shape=shape)
                for name in names.split(", ")
                if name.strip()
            ]
        else:
            other.append(f"{section}: {names}")
    return ChatContext(references=tuple(references), other=tuple(other))


def merge_contexts(before: ChatContext, now: ChatContext) -> ChatContext:
    """`now`, as someone edited the line, with what is known from `before` of the same references
    and of those that no line shows."""
    by_key = {(section_of(ref), key_of(ref.item)): ref for ref in before.references}
    references = [by_key.get((section_of(ref), key_of(ref.item)), ref) for ref in now.references]
    references += [ref for ref in before.references if not section_of(ref)]
    return replace(before, references=tuple(references), other=now.other)


def _note(name: str) -> ChatReference:
    # What has no known suffix is the name of a note.
    kind = KIND_OF_SUFFIX.get(suffix_of(name.strip()), "note")
    return ChatReference(item=item_id(kind, name.strip()))
