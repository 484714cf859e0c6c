"""Values to canonical JSON bytes and back, and digests of them.

Law: the same value gives the same bytes in every process, on every platform, for every hash seed.
Keys are sorted, text is UTF-8, numbers are as msgspec writes them, and there is no white space.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, get_args

import msgspec

from lamina.errors import InvalidPatch, InvalidSetting, InvalidText, JournalError
from lamina.values.entry import Entry, UnknownEntry
from lamina.values.patch import MessagesUncachedAppend, OptionsSet, PatchOp

T = TypeVar("T")


class _Shape(msgspec.Struct):
    """What every entry has, of whatever type."""

    type: str
    id: str
    parent: str | None
    at: float


_canonical = msgspec.json.Encoder(order="sorted")
_entries = msgspec.json.Decoder(Entry)
_shapes = msgspec.json.Decoder(_Shape)
_OPS: dict[str, Any] = {str(arg.__struct_config__.tag): arg for arg in get_args(PatchOp)}
# Options stand in no prefix; all other ops are about what is cached.
_SCOPES: dict[Any, str | None] = {MessagesUncachedAppend: "uncached", OptionsSet: None}
# What an entry has from its place in the tree, or from the line that holds it.
_PLACE = ("id", "parent", "at", "type", "more", "skip", "sum")
_TYPES = {str(arg.__struct_config__.tag) for arg in get_args(Entry)}


def canonical_bytes(value: Any) -> bytes:
    """Canonical JSON bytes.

    Raises:
        InvalidText: a string holds a lone surrogate.
    """
    try:
        return _canonical.encode(value)
    except UnicodeEncodeError as error:
        raise InvalidText("a value", error.start) from error


def decode(data: bytes, kind: type[T]) -> T:
    """The value of type `kind` that `canonical` made `data` from.

    Raises:
        JournalError: the bytes are not such a value.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, InvalidSetting) as error:
        raise JournalError(f"not a {kind.__name__}: {error}") from error


def decode_entry(data: bytes) -> Entry:
    """One journal entry; one of a type that a later version may know keeps its place.

    Raises:
        JournalError: the bytes are not an entry.
    """
    try:
        entry: Entry = _entries.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, InvalidSetting, RecursionError) as error:
        return _decode_unknown(data, error)
    return entry


def encode_entry(entry: Entry) -> bytes:
    """One journal entry in canonical form; one that is not known here as it came."""
    if isinstance(entry, UnknownEntry):
        place = {"id": entry.id, "parent": entry.parent, "at": entry.at, "type": entry.kind}
        return canonical_bytes(entry.fields | place)
    return canonical_bytes(entry)


def _decode_unknown(data: bytes, problem: Exception) -> UnknownEntry:
    try:
        shape = _shapes.decode(data)
        fields: dict[str, Any] = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        shape, fields = None, {}
    if shape is None or shape.type in _TYPES:
        raise JournalError(f"not a journal entry: {problem}") from problem
    own = {name: value for name, value in fields.items() if name not in _PLACE}
    return UnknownEntry(id=shape.id, parent=shape.parent, at=shape.at, kind=shape.type, fields=own)


def parse_op(fields: Mapping[str, Any]) -> PatchOp:
    """A patch operation as plain data. `scope` may be given, and must fit; the reason may be called
    `invalidate_cache_reason`.

    Raises:
        InvalidPatch: there is no such op, or its fields do not fit it.
    """
    values = dict(fields)
    if "op" not in values:
        raise InvalidPatch("?", f"an op says which it is: {values!r} has no 'op'")
    name = str(values["op"])
    kind = _OPS.get(name) if name == values["op"] else None
    if kind is None:
        raise InvalidPatch(name, f"there is no such op; known are {', '.join(sorted(_OPS))}")
    own = _SCOPES.get(kind, "cached")
    scope = values.pop("scope", None)
    if scope not in (None, own):
        problem = f"has the scope {own!r}" if own else "has no scope"
        raise InvalidPatch(name, f"{problem}, not {scope!r}")
    if "invalidate_cache_reason" in values:
        reason = values.pop("invalidate_cache_reason")
        if "reason" not in kind.__struct_fields__:
            problem = "moves nothing that is cached, and takes no 'invalidate_cache_reason'"
            raise InvalidPatch(name, problem)
        if values.setdefault("reason", reason) != reason:
            raise InvalidPatch(name, "has two reasons that differ")
    odd_names = sorted(map(str, set(values) - {"op", *kind.__struct_fields__}))
    if odd_names:
        raise InvalidPatch(name, f"has no field {', '.join(map(repr, odd_names))}")
    try:
        op: PatchOp = msgspec.convert(values, kind)
    except (msgspec.ValidationError, InvalidSetting, TypeError) as error:
        raise InvalidPatch(name, str(error)) from error
    if field := _unread(values, op):
        raise InvalidPatch(name, f"has no field {field}")
    return op


def _unread(data: object, value: object) -> str:
    """A field of plain data that the value made of it has no place for, if there is one."""
    if isinstance(data, Mapping) and isinstance(value, msgspec.Struct):
        names = set(value.__struct_fields__) & set(data)
        odd = sorted(map(str, set(data) - names - {value.__struct_config__.tag_field}))
        inside = (_unread(data[name], getattr(value, name)) for name in sorted(names))
        return repr(odd[0]) if odd else next(filter(None, inside), "")
    if isinstance(data, list | tuple) and isinstance(value, list | tuple):
        return next(filter(None, map(_unread, data, value)), "")
    return ""


def digest_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def digest_value(value: Any) -> str:
    return digest_bytes(canonical_bytes(value))


def digest_texts(parts: Iterable[str]) -> str:
    """One digest over several texts; their lengths keep ("ab", "c") and ("a", "bc") apart."""
    hasher = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(8, "big"))
        hasher.update(data)
    return hasher.hexdigest()


def require_text(text: str, what: str) -> str:
    """The text itself, if it can be sent.

    Raises:
        InvalidText: it holds a lone surrogate.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidText(what, error.start) from error
    return text


def mend_text(text: str) -> str:
    """The text with lone surrogates replaced: for what a provider said, which must not be lost."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text


# Ids are minted in order, as hexadecimal numbers.
_ID = re.compile(r"[0-9a-f]{6,16}")


def entry_number(entry_id: str) -> int | None:
    """The number that an id was minted from; None if it is not one of ours."""
    return int(entry_id, 16) if _ID.fullmatch(entry_id) else None


def mint_id(number: int) -> str:
    return f"{number:06x}"
