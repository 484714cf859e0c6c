"""Patches of pi's `context_transform` entries to ours.

Laws: the names of the ops are the same; those of fields may be ours, or the documents'. A patch is
read whole or not at all. Fields that no op of ours has, and what a display says of its renderer,
are in `rest`.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from lamina.adapters.formats.call_pairs import pair_calls
from lamina.adapters.formats.json_fields import Object, object_in, text_in, without
from lamina.adapters.formats.pi_messages import read_message
from lamina.adapters.formats.session_builder import SessionBuilder
from lamina.core.values.field_names import with_our_names
from lamina.core.values.message import Message, ToolDefinition
from lamina.core.values.patch import Display, Patch, PatchOp
from lamina.errors import InvalidSetting

_DISPLAY = ("title", "summary", "markdown")
_FIELDS: dict[str, frozenset[str]] = {
    str(kind.__struct_config__.tag): frozenset(kind.__struct_fields__) for kind in PatchOp.__args__
}
_TOOL = ToolDefinition.__struct_fields__


class PiPatch(Struct, frozen=True, kw_only=True):
    patch: Patch
    rest: dict[str, Any]


def read_patch(
    value: Object, builder: SessionBuilder, line: int, find_place: Callable[[str], int]
) -> PiPatch | None:
    """The patch of an entry; None, and reported, if an op of it cannot be read. `find_place` says
    where in history the messages of a foreign entry begin."""
    patch = value.get("patch")
    ops: list[PatchOp] = []
    rest: dict[str, Any] = {}
    beside: dict[str, Any] = {}
    for index, op in enumerate(patch if isinstance(patch, list) else [patch]):
        try:
            patch_op, other_fields = _read_op(op, builder, line, find_place)
        except (ValueError, msgspec.ValidationError, InvalidSetting) as error:
            builder.report(line, "unreadable_patch", f"op {index}: {error}")
            return None
        ops.append(patch_op)
        if other_fields:
            beside[str(index)] = other_fields
    if beside:
        rest["patch"] = beside
    display, display_rest = _read_display(value.get("display"))
    if display_rest:
        rest["display"] = display_rest
    return PiPatch(patch=Patch(ops=tuple(ops), display=display), rest=rest)


def _read_op(
    op: Any, builder: SessionBuilder, line: int, find_place: Callable[[str], int]
) -> tuple[PatchOp, Object]:
    if not isinstance(op, dict):
        raise ValueError(f"a {type(op).__name__} is no op")
    tag = text_in(op, "op", "type")
    known_fields = _FIELDS.get(tag)
    if known_fields is None:
        raise ValueError(f"there is no op {tag!r}")
    flat = {**without(op, "op", "type", "options"), **object_in(op, "options")}
    if "first_kept" in known_fields and (kept := text_in(flat, "firstKeptEntryId")):
        flat = {"first_kept": find_place(kept), **without(flat, "firstKeptEntryId")}
    named = with_our_names(flat, known_fields)
    if named.get("scope") == "ephemeral" and "scope" in known_fields:
        named["scope"] = "uncached"
    if named.get("scope") == "cached" and not named.get("reason"):
        # Kept as it was said; what needs a reason and has none is not applied here.
        known_fields -= {"scope"}
    fields: Object = {"op": tag, **{name: named[name] for name in named if name in known_fields}}
    other_fields: Object = {name: named[name] for name in named if name not in known_fields}
    if "messages" in known_fields:
        fields["messages"] = _read_messages(fields.get("messages"), builder, line)
    if "tools" in known_fields and isinstance(fields.get("tools"), list):
        fields["tools"] = [_read_tool(tool) for tool in fields["tools"]]
    patch_op: PatchOp = msgspec.convert(fields, PatchOp)
    return patch_op, other_fields


def _read_messages(values: Any, builder: SessionBuilder, line: int) -> list[Object]:
    if not isinstance(values, list):
        raise ValueError("it has no list of messages")
    messages: list[Message] = []
    for value in values:
        pi_message = read_message(value, builder, line) if isinstance(value, dict) else None
        if pi_message is None:
            raise ValueError("a message in it has a role that is not known")
        messages.append(pi_message.message)
    paired_messages, repairs = pair_calls(messages)
    for detail in repairs:
        builder.report(line, "unpaired", detail)
    plain: list[Object] = msgspec.to_builtins(paired_messages)
    return plain


def _read_tool(tool: Any) -> Any:
    return with_our_names(tool, _TOOL) if isinstance(tool, dict) else 0


def _read_display(value: Any) -> tuple[Display | None, Any]:
    """How a person is shown the patch, and what a foreign renderer needs for it."""
    if not isinstance(value, dict):
        return None, value
    title = text_in(value, "title")
    if not title:
        return None, value
    display = Display(
        title=title, summary=text_in(value, "summary"), markdown=text_in(value, "markdown")
    )
    known_names = [name for name in _DISPLAY if isinstance(value.get(name), str)]
    return display, without(value, *known_names)
