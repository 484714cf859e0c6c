"""Items: one identity per artefact, regardless of its source, and one version per content. Also
defines the item kinds, one table row each.

Law: a kind's traits are written in its row, and other rooms read the row instead of listing kinds.
A new kind needs a row here, a reader in `workspace/item_reader.py` if it is a file, and a rendering
only if its row cannot describe how it is shown. Fields without a default cannot be forgotten.
"""

import hashlib
import re
from typing import Literal, NewType, cast, get_args
from urllib.parse import parse_qs, urlsplit, urlunsplit

from msgspec import Struct
from msgspec.structs import force_setattr

ItemKind = Literal[
    "note", "url", "selection", "query", "folder", "tag", "file",
    "rule", "reference", "tool", "pdf", "image", "table",
]  # fmt: skip
ITEM_KINDS: tuple[ItemKind, ...] = get_args(ItemKind)

Shape = Literal["attached", "active", "web_tab"]
# The natures of items: a workspace file, part of a file (its key is a path, a "#" and the part), a
# group of files, a web page, an agent's guide, or an agent's tool.
Nature = Literal["file", "part", "group", "page", "guide", "tool"]
Element = Literal["title", "path", "url", "name", "ctime", "mtime", "start_line", "end_line"]

# Media types of pictures, by file suffix.
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
    """The traits of a kind of item."""

    nature: Nature
    # Its rank among a turn's attachments; lower numbers come first.
    rank: int
    # For models: the enclosing tag, the elements before the content (all but `title` contain a part
    # of the key or a time), and the delimiters of the content.
    tag: str
    head: tuple[Element, ...]
    body: str = CONTENT
    # Whether its file name is used if it has no title.
    has_title: bool = False
    # A shape that has a different tag.
    shape: Shape | None = None
    shape_tag: str = ""
    # Whether it consists of lines that can be attached separately. Folders include such files.
    has_lines: bool = False
    # Whether its first line explains the others and is shown with them.
    has_header: bool = False
    # Whether the globs of rules are matched against its path.
    meets_globs: bool = False
    # Whether it stays in the library when space is short, even if not marked essential.
    is_binding: bool = False
    # The section for it in a chat's Markdown; empty if there is none.
    chat_section: str = ""
    # The suffixes of files of this kind. A file that turns out to be of another kind, or is
    # requested as one, is read as that other kind.
    suffixes: tuple[str, ...] = ()
    other_kind: "ItemKind | None" = None
    # The regular expression with named groups that parses its key, and the label shown to people,
    # made from these groups; if empty, the label is the key.
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
    # Any file of no other kind.
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
    # The content already starts with its name.
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
# The ranks of items shown in other shapes.
SHAPE_RANKS: dict[Shape, int] = {"active": 0, "web_tab": 100}


def _kinds(*natures: Nature) -> tuple[ItemKind, ...]:
    return tuple(kind for kind, traits in TRAITS.items() if traits.nature in natures)


FILE_KINDS = _kinds("file")
PART_KINDS = _kinds("part")
GROUP_KINDS = _kinds("group")
GUIDE_KINDS = _kinds("guide")
# These kinds belong to an agent; all others are attached by people.
MEMBER_KINDS = _kinds("guide", "tool")
KIND_OF_SUFFIX: dict[str, ItemKind] = {
    suffix: kind for kind, traits in TRAITS.items() for suffix in traits.suffixes
}


def suffix_of(path: str) -> str:
    """Return a file's suffix in lower case, with its dot; empty for names that start with a dot."""
    stem, dot, suffix = path.rpartition("/")[2].rpartition(".")
    return f"{dot}{suffix.lower()}" if stem else ""


def kind_of_file(path: str, wanted: str = "") -> ItemKind:
    """Return the item kind of a file by its name, or the `wanted` kind if the file can be that,
    too."""
    kind = KIND_OF_SUFFIX.get(suffix_of(path), "file")
    other = TRAITS[kind].other_kind
    return other if other is not None and other == wanted else kind


# `kind:key`; the key is the path, URL or name exactly as it is, never escaped.
ItemId = NewType("ItemId", str)

ESSENTIAL, HIGH, MEDIUM, LOW = 0, 3, 5, 10

_BINDING_KINDS = tuple(kind for kind, traits in TRAITS.items() if traits.is_binding)
_YOUTUBE_HOSTS = {
    "youtube.com",
    "www.youtube.com",
    "m.youtube.com",
    "music.youtube.com",
    "youtube-nocookie.com",
    "www.youtube-nocookie.com",
}
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_VIDEO_ID = re.compile(r"[\w-]{11}")


def item_id(kind: ItemKind, key: str) -> ItemId:
    """Return the id of an item from its kind and its path, URL or name."""
    return ItemId(f"{kind}:{key}")


def kind_of(item: ItemId) -> ItemKind:
    """Return the kind of an item. Ids written by a later version may have an unlisted kind."""
    return cast(ItemKind, item.partition(":")[0])


def is_guidance(item: ItemId) -> bool:
    """Return whether an item is a rule or a reference: named in the list in force, not turn by
    turn."""
    return kind_of(item) in GUIDE_KINDS


def is_binding(item: ItemId) -> bool:
    """Return whether an item stays when space is short, even if not marked essential."""
    return kind_of(item) in _BINDING_KINDS


def is_member(item: ItemId) -> bool:
    """Return whether an item is a rule, a reference or a tool: provided by an agent, never attached
    by people."""
    return kind_of(item) in MEMBER_KINDS


def key_of(item: ItemId) -> str:
    return item.partition(":")[2]


def file_of(item: ItemId) -> str:
    """Return the path of the file that an item is or belongs to; empty for other items."""
    kind, _, key = item.partition(":")
    if kind in PART_KINDS:
        return key.rpartition("#")[0] or key
    return key if kind in FILE_KINDS else ""


def reference_to(item: ItemId) -> str:
    """Return the reference by which a workspace can find an item again; empty if the item is from
    elsewhere."""
    kind, _, key = item.partition(":")
    if kind in FILE_KINDS:
        # The path suffices, unless it would be read as another kind.
        return key if kind_of_file(key) == kind_of_file(key, kind) else item
    return item if kind in PART_KINDS + GROUP_KINDS else ""


def note_id(path: str) -> ItemId:
    """Return the id of a note by its path in the workspace."""
    return item_id("note", path)


def selection_id(path: str, start_line: int, end_line: int) -> ItemId:
    """Return the id of lines `start_line` to `end_line` of a file."""
    return item_id("selection", f"{path}#L{start_line}-L{end_line}")


def query_id(path: str, query: str) -> ItemId:
    """Return the id of a query result in a note."""
    digest = hashlib.sha256(query.encode("utf-8", "surrogatepass")).hexdigest()
    return item_id("query", f"{path}#{digest[:16]}")


def tool_id(server: str, name: str) -> ItemId:
    """Return the id of a tool from its server and its name. A slash in the server name is escaped
    as `%2F`, so that the first slash ends it."""
    place = server.replace("%", "%25").replace("/", "%2F")
    return item_id("tool", f"{place}/{name}")


def url_id(url: str) -> ItemId:
    """Return the id of a web page, the same for all spellings of its address."""
    return item_id("url", canonical_url(url))


def canonical_url(url: str) -> str:
    """Return the canonical full URL: scheme and host in lower case, no fragment, one format for all
    YouTube video addresses."""
    text = url.strip()
    if "://" not in text:
        text = f"https://{text}"
    try:
        parts = urlsplit(text)
    except ValueError:
        return text  # not an address anyone can read; its spelling is its identity
    host = (parts.hostname or "").lower()
    video = None
    if host in {"youtu.be", "www.youtu.be"}:
        video = parts.path.strip("/").split("/")[0]
    elif host in _YOUTUBE_HOSTS:
        pieces = parts.path.strip("/").split("/")
        if pieces[0] in {"shorts", "embed", "live", "v"} and len(pieces) > 1:
            video = pieces[1]
        else:
            video = next(iter(parse_qs(parts.query).get("v", ())), None)
    if video and _VIDEO_ID.fullmatch(video):
        return f"https://www.youtube.com/watch?v={video}"
    user, at, place = parts.netloc.rpartition("@")
    place = place.lower().removesuffix(_DEFAULT_PORTS.get(parts.scheme, " "))
    netloc = f"{user}{at}{place}"
    return urlunsplit((parts.scheme.lower(), netloc, parts.path or "/", parts.query, ""))


class Picture(Struct, frozen=True, kw_only=True):
    """An image by digest; its bytes are stored as a blob beside the journal."""

    digest: str
    media_type: str
    width: int = 0
    height: int = 0


class Item(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One version of one artefact. `ctime` and `mtime` are shown but are not content: a touched
    file is not a new version."""

    id: ItemId
    content: str
    title: str = ""
    ctime: str = ""
    mtime: str = ""
    pictures: tuple[Picture, ...] = ()
    # The number of further pictures that are not shown; stated, but not part of the version.
    unseen_pictures: int = 0
    version: str = ""
    # The workspace it was read from. Empty in a journal, which belongs to one workspace.
    workspace: str = ""

    def __post_init__(self) -> None:
        if not self.version:
            force_setattr(self, "version", content_version(self.content, self.pictures))

    @property
    def kind(self) -> ItemKind:
        """Its kind, such as `note`."""
        return kind_of(self.id)

    @property
    def key(self) -> str:
        """The path, URL or name, without the kind."""
        return key_of(self.id)


def content_version(content: str, pictures: tuple[Picture, ...] = ()) -> str:
    """Return the sha256 of the content's bytes (as printed by `sha256sum` for a text file),
    followed by its images."""
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass"))
    for picture in pictures:
        # A byte that never occurs in encoded text, so that text cannot pass for an image.
        digest.update(b"\xff" + picture.digest.encode())
    return digest.hexdigest()


Include = Literal["always", "manual", "agent"]

# The ways an item can come along with another one.
_BROUGHT = ("embed", "query", "folder", "tag")


class Provenance(Struct, frozen=True, kw_only=True):
    """The origin of an item in a turn. Recorded with the request exactly as found."""

    include: Include = "manual"
    # For items chosen for a question: how well they match, how they were found, and from which
    # source.
    score: float | None = None
    origin: str = ""
    source: str = ""
    # For rules and references: their own order, lower numbers first.
    level: int | None = None
    # Its priority before relevance changed it.
    priority_before: int | None = None

    @property
    def brought_by(self) -> str:
        """The folder, tag or note that brought it; empty if it was named directly."""
        return self.source if self.origin in _BROUGHT else ""


BY_HAND = Provenance()
ALWAYS = Provenance(include="always")


class Attachment(Struct, frozen=True, kw_only=True):
    """An item that applies to one turn, and its priority. Higher numbers go first."""

    item: Item
    priority: int = MEDIUM
    essential: bool = False
    shape: Shape = "attached"
    provenance: Provenance = BY_HAND

    @property
    def is_essential(self) -> bool:
        """Whether it must never be left out."""
        return self.essential or self.priority <= ESSENTIAL


class AttachmentSpec(Struct, frozen=True, kw_only=True):
    """An attachment as given by a caller: a workspace reference or an item, and its priority."""

    what: str | Item
    priority: int = MEDIUM
    essential: bool = False
    shape: Shape = "attached"


class Excerpt(Struct, frozen=True, kw_only=True):
    """Part of a text. `secrets` are the kinds of secrets in it, including partial ones, judged in
    the whole text; `safe` is the part without them, empty if there are none."""

    text: str
    safe: str = ""
    secrets: tuple[str, ...] = ()


class LoadedItem(Struct, frozen=True, kw_only=True):
    """An item as read, with the bytes of its images. For part of something larger, its content is
    the `excerpt`. If another item brought it, `provenance` says so."""

    item: Item
    excerpt: Excerpt | None = None
    blobs: tuple[bytes, ...] = ()
    warnings: tuple[str, ...] = ()
    provenance: Provenance = BY_HAND
