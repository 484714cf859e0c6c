"""Files read into notes: one by one, or very many with the help of a second process.

Laws: a note is what `read_note` makes of its bytes, wherever that is done. Files are opened here
and nowhere else, through the root.
"""

import hashlib
import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from lamina.adapters.files.paths import PathRefused, say_too_large
from lamina.adapters.files.root import MAX_FILE_BYTES, Root
from lamina.adapters.files.second_process import share_work
from lamina.adapters.workspace.catalogue_file import KnownNote
from lamina.adapters.workspace.fresh_terms import FreshTerms
from lamina.core.notes.note_batches import (
    NoteBytes,
    NoteWithTerms,
    read_notes,
    read_searched_notes,
    read_with_terms,
)
from lamina.core.notes.note_reader import read_note

# From this many bytes on a second process pays, which takes 0.1 seconds to start.
SHARED_BYTES = 1_000_000
# How many bytes are read at a time, as one batch.
BATCH_BYTES = 50_000
# What it imports, and what it imports besides where terms are wanted.
PACKAGES, TERM_PACKAGES = ("lamina", "msgspec", "yaml"), ("numpy", "Stemmer")
# How far the time of a write may lag behind the clock, in nanoseconds: the kernel's tick, or two
# seconds where times are whole seconds, as on FAT.
TICK, COARSE_TICK = 100_000_000, 2_000_000_000
SECOND = 1_000_000_000
STAMP = struct.Struct("<qqqQ")
TEXT_BEGINNING = 8192
BITS_64 = (1 << 64) - 1


class SeenFile(NamedTuple):
    """A file as it was when it was checked, before it is read."""

    path: str
    stamp: bytes
    status: os.stat_result


class FileReader:
    """Reads files as they are at `now`. `before` is called with each path before it is opened;
    terms of what is searched go into `fresh_terms`, if there is any."""

    def __init__(
        self,
        root: Root,
        known: Mapping[str, KnownNote],
        now: int,
        before: Callable[[str], None],
        fresh_terms: FreshTerms | None,
    ) -> None:
        self._root = root
        self._known = known
        self._now = now
        self._before = before
        self._fresh_terms = fresh_terms

    def read(self, files: Sequence[SeenFile]) -> Iterator[tuple[SeenFile, KnownNote | PathRefused]]:
        """What becomes of each file, in any order."""
        # Files of which nothing has to be parsed, and those that are being parsed.
        done: list[tuple[SeenFile, KnownNote | PathRefused]] = []
        by_path: dict[str, SeenFile] = {}
        batches = self._open_all(files, done, by_path)
        for batch, notes in self._parse_all(batches, sum(file.status.st_size for file in files)):
            for note_bytes, pair in zip(batch, notes, strict=True):
                file = by_path.pop(note_bytes[0])
                yield file, self._take(file, pair or self._parse_one(note_bytes))
            yield from done
            done.clear()

    def _open_all(
        self,
        files: Sequence[SeenFile],
        done: list[tuple[SeenFile, KnownNote | PathRefused]],
        by_path: dict[str, SeenFile],
    ) -> Iterator[list[NoteBytes]]:
        """The files in batches; the last one may be empty."""
        batch: list[NoteBytes] = []
        size = 0
        for file in files:
            outcome = self._open(file)
            if not isinstance(outcome, bytes):
                done.append((file, outcome))
                continue
            by_path[file.path] = file
            batch.append((file.path, outcome, file.status.st_ctime, file.status.st_mtime))
            size += len(outcome)
            if size >= BATCH_BYTES:
                yield batch
                batch, size = [], 0
        yield batch

    def _parse_all(
        self, batches: Iterator[list[NoteBytes]], size: int
    ) -> Iterator[tuple[list[NoteBytes], list[NoteWithTerms | None]]]:
        parse = read_notes if self._fresh_terms is None else read_searched_notes
        if size < SHARED_BYTES:
            return ((batch, parse(batch)) for batch in batches)
        packages = PACKAGES if self._fresh_terms is None else (*PACKAGES, *TERM_PACKAGES)
        return share_work(parse, batches, packages)

    def _parse_one(self, note_bytes: NoteBytes) -> NoteWithTerms:
        if self._fresh_terms is not None:
            return read_with_terms([note_bytes])[0]
        path, data, ctime, mtime = note_bytes
        return read_note(path, data, ctime=ctime, mtime=mtime), []

    def _open(self, file: SeenFile) -> bytes | KnownNote | PathRefused:
        """The bytes of a file; or its note, if it has not changed; or why it is not read."""
        self._before(file.path)
        status = file.status
        if status.st_size > MAX_FILE_BYTES:
            # Otherwise it would be read up to the limit each time, only to be refused.
            size = say_too_large(status.st_size, MAX_FILE_BYTES)
            return PathRefused("unreadable", f"{file.path} has {size}")
        try:
            data, _ = self._root.read(file.path)
        except PathRefused as refusal:
            return refusal
        if b"\0" in data[:TEXT_BEGINNING]:
            return PathRefused("unreadable", f"{file.path} is not text")
        old = self._known.get(file.path)
        if old is None or old.note.digest != hashlib.sha256(data).hexdigest():
            return data
        is_same = (old.note.ctime, old.note.mtime) == (status.st_ctime, status.st_mtime)
        times = {"ctime": status.st_ctime, "mtime": status.st_mtime}
        note = old.note if is_same else replace(old.note, **times)
        return KnownNote(file.stamp, _is_settled(status, self._now), note)

    def _take(self, file: SeenFile, pair: NoteWithTerms) -> KnownNote:
        note, terms = pair
        if self._fresh_terms is not None:
            digests = [passage.digest for passage in note.passages]
            self._fresh_terms.add(digests, terms, self._now)
        # The status from before the read: a write in between shows as a different stamp.
        return KnownNote(file.stamp, _is_settled(file.status, self._now), note)


def stamp_of(status: os.stat_result) -> bytes:
    """Changes with every write, as far as the system can tell."""
    return STAMP.pack(
        status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino & BITS_64
    )


def _is_settled(status: os.stat_result, now: int) -> bool:
    """Whether a write after `now` cannot leave the same stamp. A write sets ctime, which nothing
    else can set; on Windows, ctime is when the file was created."""
    write_time = status.st_mtime_ns if os.name == "nt" else status.st_ctime_ns
    return write_time < now - (TICK if write_time % SECOND else COARSE_TICK)
