"""What a segment of a request is, for people: its name, its item, its own bytes and its kind."""

from typing import Literal

from lamina.core.codec import canonical_bytes
from lamina.core.text import label_of
from lamina.core.values.item import ItemId, key_of, kind_of
from lamina.core.values.item_kind import ITEM_KINDS
from lamina.core.values.message import Image, Text, Thinking, ToolCall, ToolDefinition, ToolResult
from lamina.core.values.prompt import Segment, ToolReferences

SegmentKind = Literal["text", "image", "tool_call", "tool_result", "thinking", "tool"]

_KINDS: tuple[tuple[type, SegmentKind], ...] = (
    (Text, "text"), (Image, "image"), (ToolCall, "tool_call"), (ToolResult, "tool_result"),
    (ToolReferences, "tool_result"),
    (Thinking, "thinking"), (ToolDefinition, "tool"),
)  # fmt: skip
_ROLES = {"user": "question", "assistant": "answer", "tool": "results of tools"}
_PREFIXES = {"names": "names of what applies", "frame": "frame of the question"}


def segment_kind(segment: Segment) -> SegmentKind:
    """What its content is."""
    return next(kind for content, kind in _KINDS if isinstance(segment.content, content))


def segment_bytes(segment: Segment) -> bytes:
    """Its own bytes, which its digest is of: the text, or canonical JSON of what is none. The
    vendor's frame around them is not among them."""
    if isinstance(segment.content, Text):
        return segment.content.text.encode("utf-8", "surrogatepass")
    return canonical_bytes(segment.content)


def item_of_segment(segment: Segment) -> tuple[str, str]:
    """The item that a segment is of, and the beginning of its version; empty if it is of none."""
    if segment.role == "tools":
        return "", ""
    item, at, version = segment.source.rpartition("@")
    return (item, version) if at and item.partition(":")[0] in ITEM_KINDS else ("", "")


def label_segment(segment: Segment) -> str:
    """What a person calls it."""
    return label_source(segment.source, segment.role)


def label_source(source: str, role: str = "") -> str:
    """What a person calls a source, as a segment of that role has it."""
    item, at, _ = source.rpartition("@")
    if at and role != "tools" and item.partition(":")[0] in ITEM_KINDS:
        return f"{kind_of(ItemId(item))} {label_of(ItemId(item))}"
    kind, _, key = source.partition(":")
    if kind == "system":
        return "heading of the library" if key == "library" else f"system part {key}"
    if kind == "tool" and key:
        return f"tool {key_of(ItemId(source))}"
    if kind == "message":
        return _ROLES.get(role, "message")
    if source == "tool_texts":
        return "results of planned tools"
    return _PREFIXES.get(kind, source)
