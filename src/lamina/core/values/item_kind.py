"""The kinds of items, one row each.

Law: what sets a kind apart is written in its row, and other rooms ask the row instead of listing
kinds. A new kind is a row here, a reader in `adapters/workspace/item_reader.py` if it is a file,
and a rendering only if its row cannot say how it reads. What has no default cannot be forgotten.
"""

from typing import Literal, get_args

from msgspec import Struct

ItemKind = Literal[
    "note", "url", "selection", "query", "folder", "tag", "file",
    "rule", "reference", "tool", "pdf", "image", "table",
]  # fmt: skip
ITEM_KINDS: tuple[ItemKind, ...] = get_args(ItemKind)

Shape = Literal["attached", "active", "web_tab"]
# What an item is: a file of the workspace, a part of one (its key is a path, a "#" and which part),
# a group of files, a page of the web, or something that an agent has.
Nature = Literal["file", "part", "group", "page", "guide", "tool"]
Element = Literal["title", "path", "url", "name", "ctime", "mtime", "start_line", "end_line"]

# Pictures by the suffix of their files.
PICTURE_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
    ".tif": "image/tiff",
    ".tiff": "image/tiff",
    ".avif": "image/avif",
    ".heic": "image/heic",
    ".heif": "image/heic",
    ".ico": "image/x-icon",
}
CONTENT = "<content>\n{}\n</content>"


class KindTraits(Struct, frozen=True, kw_only=True):
    """What there is to know about a kind of item."""

    nature: Nature
    # Its place among the attachments of one turn; the lowest comes first.
    rank: int
    # How a model reads it: the tag around it, the elements in front of its content (all of them
    # but `title` hold a part of its key or a time), and what stands around the content.
    tag: str
    head: tuple[Element, ...]
    body: str = CONTENT
    # Whether it is titled after its file if it has no title of its own.
    has_title: bool = False
    # A shape in which it has another tag.
    shape: Shape | None = None
    shape_tag: str = ""
    # Whether it is made of lines, which can be attached by themselves. Folders bring such files in.
    has_lines: bool = False
    # Whether its first line says what the others mean, and is shown with them.
    has_header: bool = False
    # Whether the globs of rules are matched with its path.
    meets_globs: bool = False
    # Whether it stays in the library when room is short, although nobody made it essential.
    is_binding: bool = False
    # The section that shows it in a chat's Markdown; empty if none does.
    chat_section: str = ""
    # Files with these suffixes are of this kind. Where one is not, in spite of its name, or where
    # that kind is asked for, it is read as the other kind.
    suffixes: tuple[str, ...] = ()
    other_kind: "ItemKind | None" = None
    # How its key is read, as a regular expression with named parts, and what people call it by
    # these; by its key if this is empty.
    key_pattern: str = "(?P<key>.*)"
    label: str = ""


TRAITS: dict[ItemKind, KindTraits] = {
    "note": KindTraits(
        nature="file", rank=10, tag="note_context", shape="active", shape_tag="active_note",
        head=("title", "path", "ctime", "mtime"), has_title=True, has_lines=True, meets_globs=True,
        chat_section="Notes", suffixes=(".md", ".markdown", ".mdx"),
    ),
    "url": KindTraits(
        nature="page", rank=80, tag="url_content", shape="web_tab", shape_tag="web_tab_context",
        head=("title", "url"), chat_section="URLs",
    ),
    "selection": KindTraits(
        nature="part", rank=90, tag="selected_text",
        head=("title", "path", "start_line", "end_line"), has_title=True, meets_globs=True,
        key_pattern=r"(?P<path>.*)#L(?P<start_line>\d+)-L(?P<end_line>\d+)",
        label="{path} (lines {start_line}-{end_line})",
    ),
    "query": KindTraits(
        nature="part", rank=50, tag="query_context", head=("title", "path"),
        key_pattern="(?P<note>.+)#(?P<digest>[^#]{0,6})[^#]*", label="{note} (query {digest})",
    ),
    "folder": KindTraits(
        nature="group", rank=70, tag="folder_context", head=("title", "path"), meets_globs=True,
        chat_section="Folders", label="{key}/",
    ),
    "tag": KindTraits(
        nature="group", rank=60, tag="tag_context", head=("title", "name"), chat_section="Tags",
        label="#{key}",
    ),
    # Any file that is of no other kind.
    "file": KindTraits(
        nature="file", rank=20, tag="file_context", head=("title", "name"), has_lines=True,
        meets_globs=True, chat_section="Notes",
    ),
    "rule": KindTraits(
        nature="guide", rank=130, tag="rule_context", head=("name",), body="Rule: {}",
        is_binding=True,
    ),
    "reference": KindTraits(
        nature="guide", rank=120, tag="reference_context", head=("name",), body="Reference: {}"
    ),
    # Its own text begins with what it is called.
    "tool": KindTraits(nature="tool", rank=110, tag="tool_context", head=(), body="{}"),
    "pdf": KindTraits(
        nature="file", rank=30, tag="embedded_pdf", head=("title", "name"), meets_globs=True,
        chat_section="Notes", suffixes=(".pdf",),
    ),
    "image": KindTraits(
        nature="file", rank=40, tag="image_context", head=("title", "path"), meets_globs=True,
        chat_section="Notes", suffixes=tuple(PICTURE_TYPES),
    ),
    "table": KindTraits(
        nature="file", rank=25, tag="table_context", head=("title", "path"), has_title=True,
        has_lines=True, has_header=True, meets_globs=True, chat_section="Notes",
        suffixes=(".csv", ".tsv"), other_kind="file",
    ),
}  # fmt: skip
# Where what is shown in another shape stands among the attachments of a turn.
SHAPE_RANKS: dict[Shape, int] = {"active": 0, "web_tab": 100}


def _kinds(*natures: Nature) -> tuple[ItemKind, ...]:
    return tuple(kind for kind, traits in TRAITS.items() if traits.nature in natures)


FILE_KINDS = _kinds("file")
PART_KINDS = _kinds("part")
GROUP_KINDS = _kinds("group")
GUIDE_KINDS = _kinds("guide")
# What an agent brings; everything else is attached by people.
MEMBER_KINDS = _kinds("guide", "tool")
KIND_OF_SUFFIX: dict[str, ItemKind] = {
    suffix: kind for kind, traits in TRAITS.items() for suffix in traits.suffixes
}


def suffix_of(path: str) -> str:
    """The suffix of a file in lower case, with its dot; a name that begins with a dot has none."""
    stem, dot, suffix = path.rpartition("/")[2].rpartition(".")
    return f"{dot}{suffix.lower()}" if stem else ""


def kind_of_file(path: str, wanted: str = "") -> ItemKind:
    """What kind of item a file is, by its name; the kind that is wanted, if it can be that, too."""
    kind = KIND_OF_SUFFIX.get(suffix_of(path), "file")
    other = TRAITS[kind].other_kind
    return other if other is not None and other == wanted else kind
