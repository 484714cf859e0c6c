"""Reads a request file line by line and collects its problems.

Laws: no line, however long, deep or broken, prevents the others from being read. Each problem is
reported with its line, and only a limited number is kept.
"""

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Generic, TypeVar

import msgspec
from msgspec import Struct

from lamina.adapters.formats.imported_session import ImportProblem
from lamina.adapters.formats.json_lines import (
    MAX_COUNT,
    LinePiece,
    Object,
    head_of,
    leading_objects,
    readable_text,
    split_line,
)

# Longer lines are skipped; real ones are a few hundred kilobytes long.
MAX_LINE = 64 * 1024 * 1024
# In longer broken lines, only whole records at the beginning are read.
_MAX_BROKEN = 2 * 1024 * 1024
_MAX_PROBLEMS = 50
_BLANK = b" \t\r\n\x00"

Record = TypeVar("Record")


class ReadProblems:
    """The first problems in a file, and their total number."""

    def __init__(self) -> None:
        self.reports: list[ImportProblem] = []
        self.count = 0

    def add(self, line: int | None, what: str, detail: str) -> None:
        self.count += 1
        if len(self.reports) < _MAX_PROBLEMS:
            self.reports.append(ImportProblem(line=line, what=what, detail=detail))

    def check_figures(self, line: int | None, figures: Mapping[str, Any]) -> None:
        """Report impossible figures, including nested ones; they count as 0."""
        for name, value in figures.items():
            if isinstance(value, dict):
                self.check_figures(line, value)
            elif isinstance(value, int | float) and not 0 <= value <= MAX_COUNT:
                shown = f"{value:,}" if abs(value) <= MAX_COUNT else "out of range"
                self.add(line, "odd", f"{name} is {shown} and counts as 0")


def figures_of(record: Struct | None) -> Object:
    """Return the figures of a record by their names in the file; absent ones are omitted."""
    figures: Object = msgspec.to_builtins(record) or {}
    return figures


class RecordLabels:
    """Labels for record ids: the line number and, after the first record on a line, its
    position."""

    def __init__(self) -> None:
        self._line, self._place = 0, 0

    def next(self, line: int) -> str:
        self._place = self._place + 1 if line == self._line else 1
        self._line = line
        return f"{line}.{self._place}" if self._place > 1 else str(line)


class RecordLines(Generic[Record]):
    """The records in a JSON Lines file, with their line numbers."""

    def __init__(self, stream: BinaryIO, kind: type[Record], problems: ReadProblems) -> None:
        self._stream = stream
        self._decoder = msgspec.json.Decoder(kind)
        self._problems = problems
        self._heads: set[tuple[str, ...]] = set()

    def __iter__(self) -> Iterator[tuple[int, Record]]:
        decode = self._decoder.decode
        for number, line in enumerate(self._lines(), 1):
            try:
                yield number, decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                yield from self._read_broken(number, line, error)

    def _lines(self) -> Iterator[bytes]:
        read = self._stream.readline
        is_first = True
        while line := read(MAX_LINE):
            if is_first:
                line, is_first = line.removeprefix(b"\xef\xbb\xbf"), False
            if len(line) == MAX_LINE and not line.endswith(b"\n"):
                while (rest := read(MAX_LINE)) and not rest.endswith(b"\n"):
                    pass
                line = b'{"\x00": "a line of more than 64 MB"'
            yield line

    def _read_broken(
        self, number: int, line: bytes, error: Exception
    ) -> Iterator[tuple[int, Record]]:
        """Read a line that is not one record: it may contain none, one in another format, or
        several, whole and torn."""
        line = line.strip(_BLANK)
        if not line:
            return
        if isinstance(error, RecursionError):
            self._problems.add(number, "unreadable", "nested too deep")
            return
        if isinstance(error, msgspec.ValidationError):
            self._problems.add(number, "unexpected", f"a record in another format: {error}")
            return
        pieces = self._pieces(readable_text(line))
        records = [piece.text.encode() for piece in pieces if piece.is_object]
        found = 0
        for record in records:
            try:
                value = self._decoder.decode(record)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                continue
            found += 1
            yield number, value
        self._problems.add(
            number, "glued" if found > 1 else "torn", _describe_pieces(found, len(pieces))
        )

    def _pieces(self, text: str) -> list[LinePiece]:
        if len(text) > _MAX_BROKEN:
            return leading_objects(text)
        return split_line(text, self._known_heads())

    def _known_heads(self) -> set[tuple[str, ...]]:
        """Return the possible beginnings of records in this file, from its first lines."""
        if not self._heads and self._stream.seekable():
            here = self._stream.tell()
            self._stream.seek(0)
            for _ in range(20):
                line = self._stream.readline(_MAX_BROKEN)
                try:
                    value = msgspec.json.decode(line)
                except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                    continue
                if isinstance(value, dict):
                    self._heads.add(head_of(value))
            self._stream.seek(here)
        return self._heads


def _describe_pieces(found: int, pieces: int) -> str:
    if not found:
        return "not a whole record"
    return f"{found} of {pieces} {'record' if pieces == 1 else 'records'} on the line could be read"
