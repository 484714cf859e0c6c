"""Converts entries to lines of a file, and back.

Laws: every line proves itself with a checksum, so a bad one is detected without its neighbors;
reading never raises, whatever the bytes are, and every proven line is read. Only line feeds
separate lines: JSON escapes them inside strings.

A line is the canonical JSON of an entry with up to three more fields: `more`, how many lines of the
same write follow; `skip`, how many ids were skipped before it; and last `sum`, the CRC-32 of all
bytes of the line before its own comma. A checkpoint (`core/journal/journal_file.py`) is also a
line, but not an entry.
"""

import re
from collections.abc import Iterator, Sequence
from zlib import crc32

from msgspec import Struct

from lamina.core.codec import decode_damaged_entry, decode_entry, encode_entry, entry_number
from lamina.core.values.damage import Damage, DamageKind
from lamina.core.values.entry import Entry
from lamina.errors import JournalError

# `,"sum":"` and its eight digits, `"}`.
_SUM = b',"sum":"'
_SUM_LENGTH = len(_SUM) + 8 + 2
_SUM_FIELD = re.compile(rb',"sum":"[0-9a-f]{8}"}')
_MORE = re.compile(rb'(?:,"more":(\d+))?(?:,"skip":(\d+))?\Z')
# The number of bytes of a bad line shown to a person.
_SHOWN = 60
# Keys are sorted, so every line starts like this; inside strings the quotes are escaped.
_BEGINS = b'{"at":'
# Checkpoints start like this; no entry does, because every entry has a time.
BEGINS_CHECKPOINT = b'{"at":null,"checkpoint":"'
_CUT_CHECKPOINT = re.compile(
    re.escape(BEGINS_CHECKPOINT) + rb'[A-Za-z0-9+/]*=*(?:"[,":sum0-9a-f]{0,17})?'
)
# The number of possible beginnings to try: other objects may have such a key.
_TRIES = 64


class Line(Struct, frozen=True):
    """A proven line: its position, its content, and the fields about its write."""

    entry: Entry
    number: int
    offset: int
    length: int
    more: int = 0
    skip: int = 0


def write_lines(entries: Sequence[Entry], last: int) -> bytes:
    """Return the bytes of one write. `last` is the number of the last id in the file, -1 if there
    is none."""
    lines = []
    for index, entry in enumerate(entries, 1):
        number = entry_number(entry.id)
        # Stated once, at the beginning of a write, so that a reader can recognize it.
        skip = max(0, number - last - 1) if number is not None and index == 1 else 0
        lines.append(write_line(encode_entry(entry), more=len(entries) - index, skip=skip))
    return b"".join(lines)


def write_line(entry: bytes, *, more: int = 0, skip: int = 0) -> bytes:
    """Return one line from the canonical JSON of an entry."""
    body = entry[:-1]
    if more:
        body += b',"more":%d' % more
    if skip:
        body += b',"skip":%d' % skip
    return b'%b%b%08x"}\n' % (body, _SUM, crc32(body))


def is_proven(line: bytes) -> bool:
    """Return whether the line has a correct checksum."""
    if line[-_SUM_LENGTH:-10] != _SUM:
        return False
    return b"%08x" % crc32(memoryview(line)[:-_SUM_LENGTH]) == line[-10:-2]


def read_lines(data: bytes, *, number: int = 1, offset: int = 0) -> Iterator[Line | Damage]:
    """Yield every proven line, and the damage of the others, in order. `number` and `offset` are
    those of the first line, if `data` is not the whole file."""
    lines = data.split(b"\n")
    tail = lines.pop()
    converted = False
    for line in lines:
        if is_proven(line):
            yield from _read(line, number, offset)
        elif line.endswith(b"\r") and is_proven(line[:-1]):
            yield from _read(line[:-1], number, offset)
            if not converted:
                detail = "lines end in CR LF from here on: an editor or git converted the file"
                yield _damage("line_endings", detail, number, offset, line)
            converted = True
        else:
            yield from _salvage(line, number, offset, torn=False)
        number += 1
        offset += len(line) + 1
    if not tail:
        return
    if is_proven(tail):
        yield from _read(tail, number, offset)
        detail = "the last line has no line break"
        yield _damage("no_final_newline", detail, number, offset, tail)
    else:
        yield from _salvage(tail, number, offset, torn=True)


def read_line(line: bytes, *, number: int = 1, offset: int = 0) -> Iterator[Line | Damage]:
    """Yield the content of one line, without its line break, as if read among others."""
    if is_proven(line):
        yield from _read(line, number, offset)
    else:
        yield from _salvage(line, number, offset, torn=False)


def is_whole_checkpoint(line: bytes) -> bool:
    return line.startswith(BEGINS_CHECKPOINT) and line.endswith(b'"}') and is_proven(line)


def is_checkpoint(line: bytes) -> bool:
    """Return whether a line is a checkpoint, or the beginning of one whose write was interrupted:
    then nothing is lost with the rest."""
    if line.startswith(BEGINS_CHECKPOINT):
        return is_whole_checkpoint(line) or _CUT_CHECKPOINT.fullmatch(line) is not None
    return len(line) > len(_BEGINS) and BEGINS_CHECKPOINT.startswith(line)


def _read(line: bytes, number: int, offset: int) -> Iterator[Line | Damage]:
    if line.startswith(BEGINS_CHECKPOINT) and is_whole_checkpoint(line):
        return
    problems: tuple[str, ...] = ()
    try:
        entry = decode_entry(line)
    except JournalError as error:
        try:
            entry, problems = decode_damaged_entry(line)
        except JournalError:
            yield _damage("not_an_entry", str(error), number, offset, line)
            return
    more, skip = 0, 0
    # Fields of the write follow those of the entry; nearly all lines have none.
    tail = line[-_SUM_LENGTH - 48 : -_SUM_LENGTH]
    if (fields := _MORE.search(tail)) and fields.group():
        more, skip = (int(digits or 0) for digits in fields.groups())
    yield Line(entry, number, offset, len(line), more, skip)
    for problem in problems:
        yield _damage("lost_setting", problem, number, offset, line)


def _salvage(line: bytes, number: int, offset: int, *, torn: bool) -> Iterator[Line | Damage]:
    """Yield what can be recovered from an unproven line: two lines whose line break was lost still
    prove themselves separately, and so does one after garbage."""
    start = count = 0
    for field in _SUM_FIELD.finditer(line):
        begin = _find_begin(line, start, field.end())
        if begin is None:
            continue
        if begin > start and not is_checkpoint(line[start:begin]):
            yield _describe(line[start:begin], number, offset + start, torn=False)
        yield from _read(line[begin : field.end()], number, offset + begin)
        start = field.end()
        count += 1
    if start < len(line):
        if not is_checkpoint(line[start:]):
            yield _describe(line[start:], number, offset + start, torn=torn)
    elif not line:
        yield _damage("not_an_entry", "an empty line", number, offset, line)
    elif count > 1:
        detail = f"{count} lines without a line break between them"
        yield _damage("no_line_break", detail, number, offset, line)


def _find_begin(line: bytes, start: int, end: int) -> int | None:
    """Return the start of the proven line that ends at `end`, if there is one."""
    at = end
    for _ in range(_TRIES):
        at = line.rfind(_BEGINS, start, at)
        if at < 0:
            return None
        if is_proven(line[at:end]):
            return at
    return None


def _describe(rubbish: bytes, number: int, offset: int, *, torn: bool) -> Damage:
    beginning = repr(rubbish[:_SHOWN].decode("utf-8", "backslashreplace"))
    kind: DamageKind = "no_checksum"
    detail = f"no checksum; the line begins {beginning}"
    if not rubbish.strip(b"\0"):
        kind, detail = "nul_bytes", f"{len(rubbish):,} NUL bytes where a line should be"
    elif torn:
        kind, detail = "torn", f"the last write was cut off; it begins {beginning}"
    elif _SUM_FIELD.search(rubbish[-_SUM_LENGTH:]):
        kind, detail = "checksum", f"the checksum does not fit; the line begins {beginning}"
    return _damage(kind, detail, number, offset, rubbish)


def _damage(kind: DamageKind, detail: str, number: int, offset: int, line: bytes) -> Damage:
    return Damage(kind=kind, detail=detail, line=number, offset=offset, length=len(line))
