"""Defines messages: a role and blocks. Attachments of a turn are stored as references, not as
text."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import force_setattr, replace

from lamina.core.values.item import ItemId, Picture, Shape

Role = Literal["user", "assistant", "tool"]

# A session has very many of these values, and none can be part of a cycle: `gc=False` lets the
# garbage collector skip them.


class Text(Struct, frozen=True, gc=False, tag="text"):
    """A text block of a message."""

    text: str


class Image(Struct, frozen=True, gc=False, tag="image"):
    """A picture block of a message, by digest."""

    picture: Picture


class ToolCall(Struct, frozen=True, gc=False, tag="tool_call", kw_only=True):
    """A tool call by the model. `arguments` is the JSON text exactly as the model wrote it, because
    sent bytes must not move."""

    id: str
    name: str
    arguments: str = "{}"
    signature: str = ""


class ToolResult(Struct, frozen=True, gc=False, tag="tool_result", kw_only=True):
    """The result of a call, as text for the model."""

    call_id: str
    name: str
    text: str
    is_error: bool = False


class ThinkingBinding(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The binding of a thinking block. `prefix` is the digest of everything before it except other
    thinking; empty if its model binds nothing. `follows` is the preceding thinking, by the digest
    of its signature; empty if there was none."""

    prefix: str = ""
    follows: str = ""


class Thinking(Struct, frozen=True, gc=False, tag="thinking", kw_only=True):
    """A model's thinking, and what its provider needs to accept it back. `binding` is missing if it
    was not recorded; it is never sent."""

    text: str = ""
    signature: str = ""
    redacted: str = ""
    provider: str = ""
    binding: ThinkingBinding | UnsetType = UNSET


# An item is sent in full once; later turns only name it.
Form = Literal["full", "named"]


class Use(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The use of one item in one turn. `replaces` says that an earlier, outdated version stands
    above; `ordinal` and `shown` say which of several standing versions applies again."""

    item: ItemId
    version: str
    form: Form
    shape: Shape = "attached"
    replaces: bool = False
    ordinal: int = 0
    shown: int = 0


class AbsentAttachment(Struct, frozen=True, gc=False, kw_only=True):
    """An attachment that is not sent, with the words sent in its place."""

    label: str
    why: str


class Context(Struct, frozen=True, gc=False, tag="context", kw_only=True, omit_defaults=True):
    """The attachments of a message. `in_force` is set if the rules in force changed."""

    uses: tuple[Use, ...] = ()
    absent: tuple[AbsentAttachment, ...] = ()
    in_force: tuple[ItemId, ...] | None = None


class LoadedTool(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A tool that a vendor loads late: its id, the definition sent for it, and how well it matches
    the search."""

    item: ItemId
    definition: "ToolDefinition"
    score: float | None = None
    source: str = ""


class LoadedTools(Struct, frozen=True, gc=False, tag="loaded_tools", kw_only=True):
    """The tools that the result of `call_id`, in the same message, loads for `model`. For any other
    model, that result describes them."""

    call_id: str
    model: str
    tools: tuple[LoadedTool, ...]


Block = Text | Image | ToolCall | ToolResult | Thinking | Context | LoadedTools


class Message(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A message of the conversation: a role and its blocks. `custom_type` is set by an application
    for its own messages, which the model reads like any other; people see them only if `shown` is
    set. `model` is the author of the thinking in it, if known."""

    role: Role
    blocks: tuple[Block, ...]
    id: str = ""
    custom_type: str = ""
    shown: bool = True
    model: str = ""

    def thought_by(self, model: str) -> "Message":
        """Return the message with any signed thinking marked as written by `model`."""
        signed = (isinstance(b, Thinking) and (b.signature or b.redacted) for b in self.blocks)
        return replace(self, model=model) if any(signed) else self

    @property
    def thinks(self) -> bool:
        """Whether it contains thinking."""
        return Thinking in map(type, self.blocks)

    def without_last_thinking(self, count: int) -> "Message":
        """Return the message without the last `count` blocks of signed thinking."""
        blocks: list[Block] = []
        for block in reversed(self.blocks):
            if count and isinstance(block, Thinking) and (block.signature or block.redacted):
                count -= 1
            else:
                blocks.append(block)
        return replace(self, blocks=tuple(reversed(blocks)))

    @property
    def text(self) -> str:
        """The text, without calls, thinking and attachments."""
        blocks = self.blocks
        # Nearly all messages consist of a single text block.
        if len(blocks) == 1 and isinstance(only := blocks[0], Text):
            return only.text
        return "".join([block.text for block in blocks if isinstance(block, Text)])

    @property
    def pictured(self) -> bool:
        """Whether it has images."""
        return Image in map(type, self.blocks)

    @property
    def context(self) -> Context | None:
        """Its attachments, if any."""
        for block in self.blocks:
            if isinstance(block, Context):
                return block
        return None

    @property
    def loads(self) -> dict[str, LoadedTools]:
        """The tools loaded by its results, by call; only for results that are present."""
        if self.role != "tool":
            return {}
        loads = {block.call_id: block for block in self.blocks if isinstance(block, LoadedTools)}
        calls = {b.call_id for b in self.blocks if isinstance(b, ToolResult)} if loads else ()
        return {call: block for call, block in loads.items() if call in calls}

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls in it."""
        return tuple([block for block in self.blocks if isinstance(block, ToolCall)])


class ToolText(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The result of a planned tool as text for this request only: uncached, gone next turn.
    `time_range` is the time span searched, in words, stated in its block. `citations` are the
    numbers of its sources, if an answer has to cite them: if all texts of a request have some, a
    target that enforces citations writes no statement without one."""

    name: str
    text: str
    time_range: str = ""
    citations: tuple[int, ...] = ()


class ToolDefinition(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool as the model sees it; serializable, matched to an implementation by name.

    Keys of the schema are sorted: a journal that is read back must produce the same bytes.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}

    def __post_init__(self) -> None:
        force_setattr(self, "parameters", sort_keys(self.parameters))


def sort_keys(value: Any) -> Any:
    """Return a JSON value with sorted object keys."""
    match value:
        case dict():
            return {key: sort_keys(value[key]) for key in sorted(value)}
        case list() | tuple():
            return [sort_keys(inner) for inner in value]
        case _:
            return value
