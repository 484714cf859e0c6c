"""Defines patch operations: the only way to change an envelope, apart from appending.

Every operation that changes what was or may have been sent carries `reason`, the journal's
`invalidate_cache_reason`; `item_lay` and appends need none.
"""

from typing import Any, ClassVar, Literal

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.values.envelope import LaidItem, Options, SystemPart
from lamina.core.values.item import ItemId
from lamina.core.values.message import Message, ToolDefinition, ToolResult
from lamina.errors import InvalidPatch, InvalidSetting

# The options that `OptionsSet` can set.
_OPTIONS = ("temperature", "top_p", "max_tokens", "reasoning")


class Op(Struct, frozen=True, kw_only=True, tag_field="op", omit_defaults=True):
    needs_reason: ClassVar[bool] = True


class SystemPartSet(Op, frozen=True, kw_only=True, tag="system_part_set"):
    """Sets a system part: changes it in place, or adds it after the others."""

    name: str
    text: str
    reason: str = ""


class SystemPartRemove(Op, frozen=True, kw_only=True, tag="system_part_remove"):
    """Removes a system part."""

    name: str
    reason: str = ""


class SystemPartsReplace(Op, frozen=True, kw_only=True, tag="system_parts_replace"):
    """Replaces all system parts."""

    parts: tuple[SystemPart, ...]
    reason: str = ""


class ToolsReplace(Op, frozen=True, kw_only=True, tag="tools_replace"):
    """Replaces the tools; `barred` names listed tools that must not be called."""

    tools: tuple[ToolDefinition, ...]
    barred: tuple[str, ...] = ()
    reason: str = ""


class ToolsRemove(Op, frozen=True, kw_only=True, tag="tools_remove"):
    """Removes tools by name."""

    names: tuple[str, ...]
    reason: str = ""


class MessagesCachedReplace(Op, frozen=True, kw_only=True, tag="messages_cached_replace"):
    """Replaces the messages of history after the first `kept` ones."""

    messages: tuple[Message, ...]
    kept: int = 0
    reason: str = ""


class MessagesCachedAppend(Op, frozen=True, kw_only=True, tag="messages_cached_append"):
    """Adds messages at the end of history, where they stay. Nothing that was sent moves, so a
    reason is optional; it is recorded if given. While calls wait for their results, the messages
    are placed after those."""

    needs_reason: ClassVar[bool] = False
    messages: tuple[Message, ...]
    reason: str = ""


class ResultsReplace(Op, frozen=True, kw_only=True, tag="results_replace"):
    """Replaces results in the message with the id `message` by others that answer the same calls:
    shortens what is no longer needed in full, and leaves the rest of history alone."""

    message: str
    results: tuple[ToolResult, ...]
    reason: str = ""


class MessagesUncachedAppend(Op, frozen=True, kw_only=True, tag="messages_uncached_append"):
    """Adds messages for the next request only, after everything that is sent again."""

    needs_reason: ClassVar[bool] = False
    messages: tuple[Message, ...]


class OptionsSet(Op, frozen=True, kw_only=True, tag="options_set"):
    """Sets options from now on; those that are None stay unchanged. The scope `cached` requires a
    reason, which covers the resulting loss of a provider's cache; `uncached` is for one request
    only."""

    needs_reason: ClassVar[bool] = False
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    reasoning: str | None = None
    scope: Literal["cached", "uncached"] | None = None

    def over(self, options: Options) -> Options:
        """Return the options with these changes.

        Raises:
            InvalidPatch: an option is out of range.
        """
        values = {name: getattr(self, name) for name in _OPTIONS}
        changes = {name: value for name, value in values.items() if value is not None}
        try:
            return replace(options, **changes)
        except InvalidSetting as error:
            raise InvalidPatch("options_set", str(error)) from error

    reason: str = ""


class CompactionApply(Op, frozen=True, kw_only=True, tag="compaction_apply"):
    """Replaces cached messages from `after` up to `first_kept` with `summary` (removes them if it
    is empty). Later messages lose references to items that no longer stand above them. `read` and
    `modified` are the files of everything removed so far, carried over by the next compaction."""

    first_kept: int
    after: int = 0
    summary: str = ""
    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    reason: str = ""


class ItemLay(Op, frozen=True, kw_only=True, tag="item_lay"):
    """Lays an item at the end of the library if nothing was sent yet, otherwise after the messages.
    `in_force` are the rules and references that apply from here on, if they changed."""

    needs_reason: ClassVar[bool] = False
    item: ItemId
    version: str
    in_force: tuple[ItemId, ...] | None = None


class ItemSupersede(Op, frozen=True, kw_only=True, tag="item_supersede"):
    """Marks the standing version as no longer applicable; its bytes stay until a boundary."""

    needs_reason: ClassVar[bool] = False
    item: ItemId
    version: str


class LibraryConsolidate(Op, frozen=True, kw_only=True, tag="library_consolidate"):
    """Makes `items` the library; earlier messages keep only what was typed and answered. The
    current question still names the items that apply to it, with `in_place` still in full."""

    items: tuple[LaidItem, ...]
    in_place: tuple[ItemId, ...] = ()
    reason: str = ""


PatchOp = (
    SystemPartSet
    | SystemPartRemove
    | SystemPartsReplace
    | ToolsReplace
    | ToolsRemove
    | MessagesCachedReplace
    | MessagesCachedAppend
    | ResultsReplace
    | MessagesUncachedAppend
    | OptionsSet
    | CompactionApply
    | ItemLay
    | ItemSupersede
    | LibraryConsolidate
)


class Display(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The display of a patch for a person. `data` is for programs: any JSON value. A user interface
    that supports the renderer `renderer_id` may draw it from `renderer_props`, and one with a chat
    may show it there if `show_in_chat` is set; all others show the strings."""

    title: str
    summary: str = ""
    markdown: str = ""
    data: Any = None
    renderer_id: str = ""
    renderer_props: Any = None
    show_in_chat: bool = False


class HookDisplay(Struct, frozen=True, kw_only=True):
    """The display of a patch, and the hook it belongs to."""

    hook: str
    display: Display


class Patch(Struct, frozen=True, kw_only=True):
    """Operations that apply together or not at all, and how they are shown to a person."""

    ops: tuple[PatchOp, ...]
    display: Display | None = None


class OnceOps(Struct, frozen=True, kw_only=True):
    """Operations for one request only, on a copy used for nothing else, and their owner."""

    transformer: str
    ops: tuple[PatchOp, ...]


def op_name(op: PatchOp) -> str:
    return str(op.__struct_config__.tag)


def lacks_reason(op: PatchOp) -> bool:
    """Return whether an operation needs a reason and has none."""
    has_to = op.needs_reason or (isinstance(op, OptionsSet) and op.scope == "cached")
    return has_to and not op_reason(op)


def op_reason(op: PatchOp) -> str:
    reason: Any = getattr(op, "reason", "")
    return str(reason).strip()
