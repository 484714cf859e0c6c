"""Converts values to canonical JSON bytes and back, and computes their digests.

Law: the same value gives the same bytes in every process, on every platform, for every hash seed.
Keys are sorted, text is UTF-8, numbers are as msgspec writes them, and there is no white space.

Private: see `lamina` for what is public.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Any, TypeVar, get_args

import msgspec

from lamina.core.values.entry import Entry, MessageEntry, RequestEntry, UnknownEntry
from lamina.core.values.envelope import Options
from lamina.core.values.message import Block, Text
from lamina.core.values.prompt import Content
from lamina.core.values.settings import Settings
from lamina.errors import InvalidEntry, InvalidSetting, InvalidText, JournalError

T = TypeVar("T")


class _Shape(msgspec.Struct):
    """The fields common to entries of any type."""

    type: str
    id: str
    parent: str | None
    at: float


_canonical = msgspec.json.Encoder(order="sorted")
_entries = msgspec.json.Decoder(Entry)
_shapes = msgspec.json.Decoder(_Shape)
# The fields that depend on an entry's place in the tree, or on its line.
_PLACE = ("id", "parent", "at", "type", "more", "skip", "sum")
_TYPES = {str(arg.__struct_config__.tag) for arg in get_args(Entry)}


def canonical_bytes(value: Any) -> bytes:
    """Return canonical JSON bytes.

    Raises:
        InvalidText: a string contains a lone surrogate.
    """
    try:
        return _canonical.encode(value)
    except UnicodeEncodeError as error:
        raise InvalidText("a value", error.start) from error


def decode(data: bytes, kind: type[T]) -> T:
    """Return the value of type `kind` from its canonical bytes.

    Raises:
        JournalError: the bytes are not such a value.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, InvalidSetting) as error:
        raise JournalError(f"not a {kind.__name__}: {error}") from error


def decode_entry(data: bytes) -> Entry:
    """Return one journal entry; one of an unknown type, as later versions may write, keeps its
    place.

    Raises:
        JournalError: the bytes are not an entry.
    """
    try:
        entry: Entry = _entries.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, InvalidSetting, RecursionError) as error:
        return _decode_unknown(data, error)
    return entry


def decode_damaged_entry(data: bytes) -> tuple[Entry, tuple[str, ...]]:
    """Return an entry without its unreadable settings or options, and the problem with each.
    Earlier versions wrote values they could not read: `Settings(guide_search="normal")`.

    Raises:
        JournalError: it has no such problem that could be fixed.
    """
    try:
        fields = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise JournalError(f"not a journal entry: {error}") from error
    problems: list[str] = []
    for name, holder in (("settings", Settings), ("options", Options)):
        if isinstance(values := fields.get(name), dict):
            fields[name] = _readable_values(values, holder, problems)
    if not problems:
        raise JournalError("not a journal entry, whatever its settings are")
    return decode_entry(canonical_bytes(fields)), tuple(problems)


def _readable_values(
    values: dict[str, Any], holder: type[Settings | Options], problems: list[str]
) -> dict[str, Any]:
    """Return the readable settings or options; problems with the others are added to `problems`."""
    readable: dict[str, Any] = {}
    for name, value in values.items():
        try:
            msgspec.convert({name: value}, holder)
            readable[name] = value
        except (msgspec.ValidationError, InvalidSetting):
            try:
                # The equivalent of a person's shorthand, such as a preset name.
                meant = getattr(holder(**{name: value}), name)
                readable[name] = msgspec.to_builtins(meant)
                problems.append(f"{name}={value!r} was kept as it was typed; what it means is used")
            except InvalidSetting as error:
                problems.append(f"{error}; it is lost, and its default holds")
    return readable


def encode_entry(entry: Entry) -> bytes:
    """Return one journal entry in canonical format; an unknown one unchanged. The only gate to
    journals: nothing passes that would not be read back unchanged.

    Raises:
        InvalidEntry: it would be read back as something else, or not at all.
        InvalidText: a string contains a lone surrogate.
    """
    if _is_own_work(entry):
        return canonical_bytes(entry)
    value: Any = entry
    try:
        if isinstance(entry, UnknownEntry):
            place = {"id": entry.id, "parent": entry.parent, "at": entry.at, "type": entry.kind}
            value = entry.fields | place
        data = canonical_bytes(value)
        if (copy := decode_entry(data)) != entry:
            _require_likeness(entry, copy)
    except (TypeError, ValueError, RecursionError, JournalError) as error:
        raise InvalidEntry(_tag_of(entry), str(error.__cause__ or error)) from error
    return data


def _is_own_work(entry: Entry) -> bool:
    """Return whether an entry was made here, from one string and from numbers and digests, so that
    it needs no proof. This is true of most questions, answers and requests, and a proof takes
    longer than writing."""
    if isinstance(entry, RequestEntry):
        context = entry.context
        return not (context.items or context.left_out or context.warnings or context.tools)
    if isinstance(entry, MessageEntry):
        blocks = entry.message.blocks
        return (
            len(blocks) == 1
            and type(blocks) is tuple
            and type(block := blocks[0]) is Text
            and type(block.text) is str
            and not (entry.extra or entry.usage or entry.model)
        )
    return False


def _require_likeness(entry: Entry, copy: Entry) -> None:
    """Check that an entry is read back as equal. A tuple in free data comes back as a list, and a
    record as an object: these count as equal."""
    before, after = (
        _plain(msgspec.to_builtins(value, builtin_types=(bytes, bytearray)))
        for value in (entry, copy)
    )
    for name in before.keys() | after.keys():
        if before.get(name) != after.get(name):
            problem = f"{name!r} would be read back as {after.get(name)!r}"
            raise InvalidEntry(_tag_of(entry), problem)


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case _:
            return value


def _tag_of(entry: Entry) -> str:
    return str(type(entry).__struct_config__.tag)


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


def digest_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def digest_value(value: Any) -> str:
    return digest_bytes(canonical_bytes(value))


def segment_digest(role: str, content: Content | Block, *, opens: bool) -> str:
    """Return the digest of a segment on the wire: its role, whether it opens a message, and its
    content."""
    first = "1" if opens else "0"
    if isinstance(content, Text):
        data = f"{role}\x1f{first}\x1ftext\x1f{content.text}".encode("utf-8", "surrogatepass")
    else:
        data = f"{role}\x1f{first}\x1fblock\x1f".encode() + canonical_bytes(content)
    return hashlib.sha256(data).hexdigest()


def digest_texts(parts: Iterable[str]) -> str:
    """Return one digest of several strings; their lengths distinguish ("ab", "c") from ("a",
    "bc")."""
    hasher = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(8, "big"))
        hasher.update(data)
    return hasher.hexdigest()


def require_text(text: str, what: str) -> str:
    """Return the string unchanged if it can be sent.

    Raises:
        InvalidText: it contains a lone surrogate.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidText(what, error.start) from error
    return text


def mend_text(text: str) -> str:
    """Return the string with lone surrogates replaced: for a provider's output, which must not be
    lost."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text


# Ids are assigned in order, as hexadecimal numbers.
_ID = re.compile(r"[0-9a-f]{6,16}")


def entry_number(entry_id: str) -> int | None:
    """Return the number of an id; None if the id was not assigned by Lamina."""
    return int(entry_id, 16) if _ID.fullmatch(entry_id) else None


def mint_id(number: int) -> str:
    return f"{number:06x}"
