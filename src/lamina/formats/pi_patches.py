"""Patches of pi's `context_transform` entries to ours.

Laws: the names of the ops are the same; fields may be in camelCase or in snake_case. A patch is
read whole or not at all. Fields that no op of ours has, and what a display says of its renderer,
are in `left`.
"""

import re
from typing import Any

import msgspec
from msgspec import Struct

from lamina.errors import InvalidSetting
from lamina.formats.call_pairs import pair_calls
from lamina.formats.json_lines import Object, object_in, text_in, without
from lamina.formats.pi_messages import read_message
from lamina.formats.session_builder import SessionBuilder
from lamina.values.message import Message
from lamina.values.patch import Display, Patch, PatchOp

_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")
_DISPLAY = ("title", "summary", "markdown")
_OTHER_NAMES = {
    "invalidate_cache_reason": "reason",
    "part_name": "name",
    "first_kept_index": "first_kept",
    "tool_names": "names",
}
_FIELDS: dict[str, frozenset[str]] = {
    str(kind.__struct_config__.tag): frozenset(kind.__struct_fields__) for kind in PatchOp.__args__
}


class PiPatch(Struct, frozen=True, kw_only=True):
    patch: Patch
    left: dict[str, Any]


def read_patch(value: Object, builder: SessionBuilder, line: int) -> PiPatch | None:
    """The patch of an entry; None, and reported, if an op of it cannot be read."""
    given = value.get("patch")
    ops: list[PatchOp] = []
    left: dict[str, Any] = {}
    beside: dict[str, Any] = {}
    for index, op in enumerate(given if isinstance(given, list) else [given]):
        try:
            read, unknown = _read_op(op, builder, line)
        except (ValueError, msgspec.ValidationError, InvalidSetting) as error:
            builder.report(line, "unreadable_patch", f"op {index}: {error}")
            return None
        ops.append(read)
        if unknown:
            beside[str(index)] = unknown
    if beside:
        left["patch"] = beside
    display, shown = _read_display(value.get("display"))
    if shown:
        left["display"] = shown
    return PiPatch(patch=Patch(ops=tuple(ops), display=display), left=left)


def _read_op(op: Any, builder: SessionBuilder, line: int) -> tuple[PatchOp, Object]:
    if not isinstance(op, dict):
        raise ValueError(f"a {type(op).__name__} is no op")
    tag = text_in(op, "op", "type")
    known = _FIELDS.get(tag)
    if known is None:
        raise ValueError(f"there is no op {tag!r}")
    fields: Object = {"op": tag}
    unknown: Object = {}
    flat = {**without(op, "op", "type", "options"), **object_in(op, "options")}
    for name, held in flat.items():
        ours = snake_case(name)
        ours = _OTHER_NAMES.get(ours, ours)
        if ours == "content" and "text" in known:
            ours = "text"
        if ours in known and ours not in fields:
            fields[ours] = held
        else:
            unknown[name] = held
    if "messages" in known:
        fields["messages"] = _read_messages(fields.get("messages"), builder, line)
    if "tools" in known and isinstance(fields.get("tools"), list):
        fields["tools"] = [_read_tool(tool) for tool in fields["tools"]]
    read: PatchOp = msgspec.convert(fields, PatchOp)
    return read, unknown


def _read_messages(given: Any, builder: SessionBuilder, line: int) -> list[Object]:
    if not isinstance(given, list):
        raise ValueError("it has no list of messages")
    messages: list[Message] = []
    for held in given:
        read = read_message(held, builder, line) if isinstance(held, dict) else None
        if read is None:
            raise ValueError("a message in it has a role that is not known")
        messages.append(read.message)
    paired, told = pair_calls(messages)
    for detail in told:
        builder.report(line, "unpaired", detail)
    plain: list[Object] = msgspec.to_builtins(paired)
    return plain


def _read_tool(tool: Any) -> Any:
    return {snake_case(name): held for name, held in tool.items()} if isinstance(tool, dict) else 0


def _read_display(given: Any) -> tuple[Display | None, Any]:
    """How a person is shown the patch, and what a foreign renderer needs for it."""
    if not isinstance(given, dict):
        return None, given
    title = text_in(given, "title")
    if not title:
        return None, given
    display = Display(
        title=title, summary=text_in(given, "summary"), markdown=text_in(given, "markdown")
    )
    read = [name for name in _DISPLAY if isinstance(given.get(name), str)]
    return display, without(given, *read)


def snake_case(name: str) -> str:
    return _HUMP.sub(lambda match: f"_{match[1].lower()}", name)
