"""Defines the values of a Markdown chat.

Law: a chat contains messages and references to the items that applied, never the items' contents.
"""

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.values.item import MEDIUM, Include, ItemId, Shape
from lamina.core.values.message import AbsentAttachment, Block, Context, Text, Thinking, ToolCall
from lamina.core.values.usage import Usage

ChatRole = Literal["user", "ai"]


class ChatReference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reference to an item that applied to a message: its version, format and worth."""

    item: ItemId
    version: str = ""
    form: Literal["full", "named", "left_out"] = "named"
    shape: Shape = "attached"
    priority: int = MEDIUM
    essential: bool = False
    pinned: bool = False
    include: Include = "manual"


class ChatContext(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message's attachments. `other` keeps unknown sections of a context line as they are."""

    references: tuple[ChatReference, ...] = ()
    absent: tuple[AbsentAttachment, ...] = ()
    in_force: tuple[ItemId, ...] | None = None
    other: tuple[str, ...] = ()


class ToolMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message with the results of an answer's calls."""

    id: str = ""
    at: float | None = None
    blocks: tuple[Block, ...] = ()
    extra: dict[str, Any] = {}


class LayoutPiece(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One block of a message whose blocks are not in the usual order. Its text is `size` characters
    of the message's text; for thinking, `block` keeps everything else."""

    kind: Literal["text", "thinking", "call", "block"]
    size: int = 0
    block: Block | None = None


class ChatMessage(Struct, frozen=True, kw_only=True):
    """A question, or an answer with the tool messages that followed it."""

    role: ChatRole
    text: str = ""
    at: float | None = None
    context: ChatContext = ChatContext()
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolMessage, ...] = ()
    interrupted: bool = False
    # None: thinking, then the text, then the calls.
    layout: tuple[LayoutPiece, ...] | None = None
    id: str = ""
    model: str = ""
    usage: Usage | None = None
    extra: dict[str, Any] = {}


class MarkdownChat(Struct, frozen=True, kw_only=True):
    """A conversation in one file. `epoch` and `accessed` are in milliseconds; `frontmatter` keeps
    unknown keys as they are; `preamble` is the text before the messages."""

    topic: str = ""
    epoch: int | None = None
    model: str = ""
    provider: str = ""
    tags: tuple[str, ...] = ()
    accessed: int | None = None
    frontmatter: tuple[str, ...] = ()
    preamble: str = ""
    pinned: tuple[ChatReference, ...] = ()
    messages: tuple[ChatMessage, ...] = ()


def blocks_of(message: ChatMessage) -> tuple[Block, ...]:
    """Return a chat message's blocks, without its context."""
    if message.layout is None or not _fits(message):
        return _plain(message.role, message.thinking, message.text, message.calls)
    blocks: list[Block] = []
    calls = iter(message.calls)
    text = thought = 0
    for piece in message.layout:
        end = text + piece.size
        match piece.kind, piece.block:
            case "text", _:
                blocks.append(Text(message.text[text:end]))
                text = end
            case "thinking", Thinking() as block:
                thought_text = message.thinking[thought : thought + piece.size]
                thought += piece.size
                blocks.append(replace(block, text=thought_text))
            case "call", _:
                blocks.append(next(calls))
            case _, block if block is not None:
                blocks.append(block)
    return tuple(blocks)


def fields_of_blocks(message: ChatMessage, blocks: Sequence[Block]) -> dict[str, Any]:
    """Return the fields of `message` that describe its blocks, without the first context."""
    bare = list(blocks)
    context = next((block for block in bare if isinstance(block, Context)), None)
    if context is not None:
        bare.remove(context)
    text = "".join(block.text for block in bare if isinstance(block, Text))
    thinking = "".join(block.text for block in bare if isinstance(block, Thinking))
    calls = tuple(block for block in bare if isinstance(block, ToolCall))
    is_plain = tuple(bare) == _plain(message.role, thinking, text, calls)
    layout = None if is_plain else tuple(map(_piece, bare))
    return {"text": text, "thinking": thinking, "calls": calls, "layout": layout}


def _plain(
    role: ChatRole, thinking: str, text: str, calls: tuple[ToolCall, ...]
) -> tuple[Block, ...]:
    thoughts = (Thinking(text=thinking),) if thinking else ()
    texts = (Text(text),) if text or role == "user" else ()
    return (*thoughts, *texts, *calls)


def _piece(block: Block) -> LayoutPiece:
    match block:
        case Text(text=text):
            return LayoutPiece(kind="text", size=len(text))
        case Thinking(text=text):
            return LayoutPiece(kind="thinking", size=len(text), block=replace(block, text=""))
        case ToolCall():
            return LayoutPiece(kind="call")
        case _:
            return LayoutPiece(kind="block", block=block)


def _fits(message: ChatMessage) -> bool:
    """Return whether the layout still fits the message's text, which someone may have edited."""
    sizes = {"text": 0, "thinking": 0, "call": 0, "block": 0}
    for piece in message.layout or ():
        sizes[piece.kind] += 1 if piece.kind == "call" else max(0, piece.size)
    texts = {"text": message.text, "thinking": message.thinking, "call": message.calls}
    return all(sizes[kind] == len(text) for kind, text in texts.items())
