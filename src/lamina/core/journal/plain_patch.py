"""Reads patches from outside: plain data, or values whose annotations alone prove nothing.

Laws: a patch is read exactly, or refused with the name of its operation. Field names may be ours or
those of the original documents, here and in everything nested.
"""

from collections.abc import Iterable, Mapping
from typing import Any, get_args

import msgspec
from msgspec import Struct

from lamina.core.values.envelope import LaidItem, Options, SystemPart
from lamina.core.values.message import Block, Context, Message, ToolDefinition, ToolResult, Use
from lamina.core.values.patch import (
    CompactionApply,
    Display,
    MessagesUncachedAppend,
    OptionsSet,
    Patch,
    PatchOp,
    op_name,
)
from lamina.core.values.settings import require_usable
from lamina.core.values.struct_fields import our_name, with_our_names
from lamina.errors import InvalidPatch, InvalidSetting

# The supported version of the documents' patches.
SCHEMA_VERSION = 1
_OPS: dict[str, Any] = {str(arg.__struct_config__.tag): arg for arg in get_args(PatchOp)}
# The type of a documents' entry that contains a patch. These entries also state when they were
# written, but the journal has its own times.
_ENTRY_TYPE = "context_transform"
_PATCH_FIELDS = ("transformer", "ops", "display", "schema_version", "type", "timestamp")
# Fields that the documents write with an operation, but the journal derives itself.
_KNOWN_ANYWAY: dict[Any, tuple[str, ...]] = {CompactionApply: ("timestamp", "tokens_before")}
# All operations concern cached parts, except these.
_SCOPES: dict[Any, tuple[str, ...]] = {
    MessagesUncachedAppend: ("uncached", "ephemeral"),
    OptionsSet: ("cached", "uncached", "ephemeral"),
}


def _names(*kinds: Any) -> frozenset[str]:
    return frozenset(name for kind in kinds for name in kind.__struct_fields__)


# The lists within an operation, and the names of their objects in errors.
_INSIDE: dict[str, frozenset[str]] = {
    "messages": _names(Message),
    "blocks": _names(*get_args(Block)) | {"type"},
    "uses": _names(Use),
    "absent": frozenset(("label", "why")),
    "results": _names(ToolResult),
    "tools": _names(ToolDefinition),
    "parts": _names(SystemPart),
    "items": _names(LaidItem),
}
assert _names(Context) >= {"uses", "absent"}


class PlainPatch(Struct, frozen=True, kw_only=True):
    """An opened patch whose operations are still to be read. `transformer` is its author, if
    stated."""

    ops: tuple[Any, ...]
    transformer: str = ""
    display: Any = None


def open_patch(value: Any) -> PlainPatch | None:
    """Return an opened patch, given as a patch, one operation, several of them, or in the
    documents' format (`{"transformerName": ..., "patch": [...]}`); None if it is none of these.

    Raises:
        InvalidPatch: it is in the documents' format, and cannot be read.
    """
    if isinstance(value, PatchOp):
        return PlainPatch(ops=(value,))
    if isinstance(value, Mapping):
        return PlainPatch(ops=(value,)) if "op" in value else _open_document(value)
    display, ops = (value.display, value.ops) if isinstance(value, Patch) else (None, value)
    if isinstance(ops, str | bytes | type) or not isinstance(ops, Iterable):
        return None
    return PlainPatch(ops=tuple(ops), display=display)


def _open_document(value: Mapping[Any, Any]) -> PlainPatch:
    if not any(our_name(name, _PATCH_FIELDS) == "ops" for name in value if isinstance(name, str)):
        raise InvalidPatch("?", f"an op says which it is: {dict(value)!r} has no 'op'")
    try:
        fields = with_our_names(value, _PATCH_FIELDS)
        _require_moment(fields.get("timestamp", 0))
    except ValueError as error:
        raise InvalidPatch("?", f"a patch cannot be read: {error}") from error
    display = read_display(fields.get("display"))
    if fields.get("type", _ENTRY_TYPE) != _ENTRY_TYPE:
        problem = f"an entry of type {fields['type']!r} is no patch; those are {_ENTRY_TYPE!r}"
        raise InvalidPatch("?", problem)
    if odd := sorted(map(str, set(fields) - set(_PATCH_FIELDS))):
        raise InvalidPatch("?", f"a patch has no field {', '.join(map(repr, odd))}")
    version = fields.get("schema_version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION:
        problem = f"patches of schema version {version!r} are not known, only {SCHEMA_VERSION}"
        raise InvalidPatch("?", problem)
    transformer, ops = fields.get("transformer", ""), fields["ops"]
    if not isinstance(transformer, str):
        raise InvalidPatch("?", f"the name of a transformer is a text, not {transformer!r}")
    if not isinstance(ops, list | tuple):
        raise InvalidPatch("?", f"a patch is a list of ops, not {ops!r}")
    return PlainPatch(ops=tuple(ops), transformer=transformer, display=display)


def read_display(value: Any) -> Display | None:
    """Return the display of a patch, given as plain data or as a value.

    Raises:
        InvalidPatch: it has an unknown field, or one of the wrong type.
    """
    if value is None:
        return None
    try:
        plain = value if isinstance(value, Mapping) else msgspec.to_builtins(value)
        if not isinstance(plain, Mapping):
            raise InvalidPatch("?", f"a display has a title and more, and is not {value!r}")
        fields = with_our_names(plain, _names(Display))
        if odd := sorted(map(str, set(fields) - _names(Display))):
            raise InvalidPatch("?", f"a display has no field {', '.join(map(repr, odd))}")
        return msgspec.convert(fields, Display)
    except (ValueError, TypeError, msgspec.ValidationError) as error:
        raise InvalidPatch("?", f"a display cannot be read: {error}") from error


def read_patch(
    transformer: str,
    values: Iterable[Any],
    display: Display | None = None,
    messages: Iterable[Message] = (),
) -> Patch:
    """Return one patch with the operations and whole patches returned by `transformer`.

    Raises:
        InvalidPatch: one of them is wrong, or names another transformer.
    """
    ops: list[PatchOp] = []
    for value in values:
        plain = open_patch(value)
        if plain is None:
            raise InvalidPatch("?", f"{value!r} is no patch operation")
        if plain.transformer not in ("", transformer):
            problem = f"the patch is of {plain.transformer!r}, and applied as {transformer!r}"
            raise InvalidPatch("?", problem)
        for op in plain.ops:
            if not isinstance(op, PatchOp | Mapping):
                raise InvalidPatch("?", f"{op!r} is no patch operation")
            ops.append(read_op(op, messages))
        display = display or plain.display
    return Patch(ops=tuple(ops), display=read_display(display))


def read_op(op: PatchOp | Mapping[str, Any], messages: Iterable[Message] = ()) -> PatchOp:
    """Return an operation from outside, checked. `messages` are those of history, for operations
    that name one of them (`firstKeptEntryId`).

    Raises:
        InvalidPatch: its content is wrong.
    """
    if isinstance(op, Mapping):
        return parse_op(op, messages)
    try:
        return parse_op(msgspec.to_builtins(op), messages)
    except (TypeError, AttributeError) as error:
        raise InvalidPatch(op_name(op), str(error)) from error


def parse_op(fields: Mapping[str, Any], messages: Iterable[Message] = ()) -> PatchOp:
    """Return a patch operation given as plain data. `scope` is optional, but must be correct; the
    reason may be called `invalidate_cache_reason`, and all names may be in camelCase.

    Raises:
        InvalidPatch: there is no such operation, or its fields do not fit it.
    """
    if "op" not in fields:
        raise InvalidPatch("?", f"an op says which it is: {dict(fields)!r} has no 'op'")
    name = str(fields["op"])
    kind = _OPS.get(name) if name == fields["op"] else None
    if kind is None:
        raise InvalidPatch(name, f"there is no such op; known are {', '.join(sorted(_OPS))}")
    known = {"op", "scope", *kind.__struct_fields__, *_KNOWN_ANYWAY.get(kind, ())}
    if kind is CompactionApply:
        known.add("first_kept_entry_id")
    try:
        values = with_our_names(_flatten_options(fields, kind), known)
        for field in _KNOWN_ANYWAY.get(kind, ()):
            _require_moment(values.pop(field, 0), field)
        values = {field: _with_names_inside(field, value) for field, value in values.items()}
    except ValueError as error:
        raise InvalidPatch(name, str(error)) from error
    _settle_scope(name, kind, values)
    if kind is CompactionApply:
        _settle_first_kept(name, values, messages)
    if odd_names := [field for field in values if field not in known]:
        if any(our_name(str(field), ("reason",)) == "reason" for field in odd_names):
            problem = f"moves nothing that is cached, and takes no {odd_names[0]!r}"
            raise InvalidPatch(name, problem)
        raise InvalidPatch(name, f"has no field {', '.join(sorted(map(repr, odd_names)))}")
    try:
        op: PatchOp = msgspec.convert(values, kind)
        if isinstance(op, OptionsSet):
            require_usable(Options(temperature=op.temperature, max_tokens=op.max_tokens))
    except (msgspec.ValidationError, InvalidSetting, TypeError) as error:
        raise InvalidPatch(name, str(error)) from error
    if field := _unread(values, op):
        raise InvalidPatch(name, f"has no field {field}")
    return op


def _flatten_options(fields: Mapping[Any, Any], kind: Any) -> Mapping[Any, Any]:
    """Return the fields with options moved out of the object in which the documents put them."""
    options = fields.get("options")
    if kind is not OptionsSet or not isinstance(options, Mapping):
        return fields
    rest = {name: value for name, value in fields.items() if name != "options"}
    known = OptionsSet.__struct_fields__
    inner, outer = with_our_names(options, known), with_our_names(rest, known)
    for name in inner.keys() & outer.keys():
        if inner[name] != outer[name]:
            raise ValueError(f"{name!r} stands twice, beside and within 'options', and differs")
    return {**rest, **{name: value for name, value in inner.items() if name not in outer}}


def _settle_scope(name: str, kind: Any, values: dict[Any, Any]) -> None:
    scope = values.pop("scope", None)
    own = _SCOPES.get(kind, ("cached",))
    if scope is not None and (not isinstance(scope, str) or scope not in own):
        scopes = " or ".join(repr(fitting) for fitting in own if fitting != "ephemeral")
        raise InvalidPatch(name, f"has the scope {scopes}, not {scope!r}")
    if kind is OptionsSet and scope is not None:
        values["scope"] = "uncached" if scope == "ephemeral" else scope


def _settle_first_kept(name: str, values: dict[Any, Any], messages: Iterable[Message]) -> None:
    """Resolve the first kept message to its position, if it is named by its entry."""
    if "first_kept_entry_id" not in values:
        return
    entry = values.pop("first_kept_entry_id")
    place = next((i for i, message in enumerate(messages) if message.id == entry), None)
    if place is None:
        raise InvalidPatch(name, f"no message of entry {entry!r} is in history")
    if values.setdefault("first_kept", place) != place:
        problem = (
            f"'first_kept' is {values['first_kept']!r}, and 'first_kept_entry_id' says {place}"
        )
        raise InvalidPatch(name, problem)


def _with_names_inside(field: Any, value: Any) -> Any:
    """Return the content of a field with the names in it replaced by ours."""
    if not isinstance(value, list | tuple) or (known := _INSIDE.get(field)) is None:
        return value
    return [_with_names(known, one) if isinstance(one, Mapping) else one for one in value]


def _with_names(known: frozenset[str], value: Mapping[Any, Any]) -> dict[Any, Any]:
    fields = with_our_names(value, known)
    if "role" in known and "blocks" not in fields and "content" in fields:
        fields["blocks"] = _read_content(fields.pop("content"))
    if "role" in known:
        # The journal records its own times.
        _require_moment(fields.pop("timestamp", 0))
    return {field: _with_names_inside(field, inner) for field, inner in fields.items()}


def _require_moment(value: Any, name: str = "timestamp") -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{name!r} is a number, not {value!r}")


def _read_content(content: Any) -> Any:
    """Return the blocks of a message from another system: a string, or a list of parts."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _unread(data: object, value: object) -> str:
    """Return a plain data field that the resulting value has no place for, if any."""
    if isinstance(data, Mapping) and isinstance(value, msgspec.Struct):
        names = set(value.__struct_fields__) & set(data)
        odd = sorted(map(str, set(data) - names - {value.__struct_config__.tag_field}))
        inside = (_unread(data[name], getattr(value, name)) for name in sorted(names))
        return repr(odd[0]) if odd else next(filter(None, inside), "")
    if isinstance(data, list | tuple) and isinstance(value, list | tuple):
        return next(filter(None, map(_unread, data, value)), "")
    return ""
