"""Maintains the catalogue of a folder's notes: reads files into notes and keeps them up to date.

Laws: `refresh` returns the same result as rereading every note. A file is read only if its stamp
(times, size, inode number) has changed, or if it was read so soon after a write that another write
may have left the same stamp. A note with unchanged bytes remains the same value, except for its
times; if nothing changed at all, so does the whole catalogue. Notes are opened only here, through
the root.
"""

import hashlib
import os
import stat
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import RLock
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from lamina.adapters.files.paths import PathRefused, is_sayable, say_too_large
from lamina.adapters.files.root import MAX_FILE_BYTES, Root
from lamina.adapters.workspace.catalogue_file import CatalogueFile, KnownNote
from lamina.adapters.workspace.file_secrets import FileSecrets, line_span
from lamina.adapters.workspace.folder_watcher import FolderWatcher
from lamina.core.notes.note_names import NoteNames
from lamina.core.notes.note_passages import searched_text
from lamina.core.notes.note_reader import decode_note, read_note
from lamina.core.ports import Progress
from lamina.core.values.item import TRAITS, Excerpt
from lamina.core.values.note import Catalogue, Passage

# With at least this many passages, the terms of newly read ones are packed.
PACKED_AT_ONCE = 100
# The number of passages whose terms are kept until a search takes them: some 32 MB.
MAX_FRESH_TERMS = 100_000
# The maximum lag of a write's time behind the clock, in nanoseconds: the kernel's tick, or two
# seconds where times are whole seconds, as on FAT.
TICK, COARSE_TICK = 100_000_000, 2_000_000_000
SECOND = 1_000_000_000
STAMP = struct.Struct("<qqqQ")
TEXT_BEGINNING = 8192
BITS_64 = (1 << 64) - 1


class SeenFile(NamedTuple):
    """A file's state when checked, before it is read."""

    path: str
    stamp: bytes
    status: os.stat_result


class FileReader:
    """A reader of files as of `now`. `before` is called with each path before it is opened; packed
    terms of searched texts are added to `terms`, if given, by text digest."""

    def __init__(
        self,
        root: Root,
        known: Mapping[str, KnownNote],
        now: int,
        before: Callable[[str], None],
        terms: dict[bytes, bytes] | None,
    ) -> None:
        self._root = root
        self._known = known
        self._now = now
        self._before = before
        self._terms = terms
        # Searched texts of the latest notes whose terms are not packed yet.
        self._texts: dict[bytes, str] = {}

    def read(self, files: Sequence[SeenFile]) -> Iterator[tuple[SeenFile, KnownNote | PathRefused]]:
        """Yield each file with its note or the reason why it cannot be read."""
        for file in files:
            outcome = self._open(file)
            yield file, self._parse(file, outcome) if isinstance(outcome, bytes) else outcome
        self._pack_terms()

    def _parse(self, file: SeenFile, data: bytes) -> KnownNote:
        status = file.status
        texts: list[str] | None = None if self._terms is None else []
        note = read_note(file.path, data, ctime=status.st_ctime, mtime=status.st_mtime, texts=texts)
        if texts is not None:
            digests = [passage.digest for passage in note.passages]
            self._texts.update(zip(digests, texts, strict=True))
            if len(self._texts) >= PACKED_AT_ONCE:
                self._pack_terms()
        # The status from before the read, so that a write in between changes the stamp.
        return KnownNote(file.stamp, _is_settled(status, self._now), note)

    def _pack_terms(self) -> None:
        if self._terms is None or not self._texts:
            return
        if len(self._terms) < MAX_FRESH_TERMS:
            # Imported here so that only searches load it.
            from lamina.core.selection.lexicon import pack_texts

            packed = pack_texts([*self._texts.values()])
            self._terms.update(zip(self._texts, packed, strict=True))
        self._texts = {}

    def _open(self, file: SeenFile) -> bytes | KnownNote | PathRefused:
        """Return a file's bytes, its note if unchanged, or the reason why it is not read."""
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


def stamp_of(status: os.stat_result) -> bytes:
    """Return a stamp that changes with every write that the system can detect."""
    return STAMP.pack(
        status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino & BITS_64
    )


def _is_settled(status: os.stat_result, now: int) -> bool:
    """Check that no write after `now` can leave the same stamp. A write sets ctime, which cannot be
    set otherwise; on Windows, ctime is the creation time."""
    write_time = status.st_mtime_ns if os.name == "nt" else status.st_ctime_ns
    return write_time < now - (TICK if write_time % SECOND else COARSE_TICK)


R = TypeVar("R")

# Up to this many notes, every file is checked each time: this takes milliseconds and is reliable.
MAX_WALKED_NOTES = 5_000
# After this many nanoseconds, every file is checked anyway: a watcher misses some changes.
WALK_INTERVAL_NS = 300_000_000_000
# Notes are saved in batches of this size, so little is lost if reading is interrupted.
SAVE_BATCH = 16_384
# With at least this many notes, the last batch is saved later, while the notes are already in use.
SAVED_LATER = 500
# Progress is reported once per this many files.
PROGRESS_STEP = 50
SUFFIXES = TRAITS["note"].suffixes


class FolderScan(NamedTuple):
    """The result of checking files: which to read, which are gone, and which could not be
    checked."""

    suspects: list[SeenFile]
    lost_paths: set[str]
    unread: tuple[str, ...]


class NoteCatalogue:
    """The notes below `root`, saved in `file`, if given, for later processes. `watcher` is started
    only if there are more than `max_walked` notes. Thread-safe."""

    def __init__(
        self,
        root: Root,
        file: Path | None = None,
        *,
        watcher: FolderWatcher | None = None,
        max_walked: int = MAX_WALKED_NOTES,
        now: Callable[[], int] = time.time_ns,
    ) -> None:
        self._root = root
        self._file = None if file is None else CatalogueFile(file)
        self._watcher = watcher
        self._is_watching = False
        self._most_walked = max_walked
        self._now = now
        self._lock = RLock()
        self._known: dict[str, KnownNote] | None = None
        # Files that were too fresh when read, or changed by us: reread whatever the stamp says.
        self._doubts: set[str] = set()
        # Files that could not be read, with the reason; retried each time.
        self._refusals: dict[str, str] = {}
        self._catalogue = Catalogue()
        # Whether anything changed since the catalogue was built, or reading was interrupted.
        self._is_stale = True
        self._names: tuple[Catalogue, NoteNames] | None = None
        # When all files were last checked.
        self._last_walk: int | None = None
        self._unread: tuple[str, ...] = ()
        self._secrets = FileSecrets()
        # Keyed by text digest: whatever happens to a note, they are either correct or unused.
        self._fresh_terms: dict[bytes, bytes] = {}

    # -- for callers ------------------------------------------------------------------------------

    def refresh(self, progress: Progress | None = None, *, for_search: bool = False) -> Catalogue:
        """Return all current notes; `progress` is called for files that have to be read. With
        `for_search`, the terms of these files can be taken afterwards, and new notes are not saved
        until `save`."""
        with self._lock:
            notes = self._open()
            # Set before anything is checked, so that files written from now on count as fresh.
            now = self._now()
            if for_search:
                # Terms not taken by the previous search.
                self._fresh_terms.clear()
            paths, last_walk = self._find_changes(now), self._last_walk
            # The watcher reports each change only once: after a failure from here on, we have to
            # walk.
            self._last_walk = None
            try:
                scan = self._walk(notes) if paths is None else self._look_at(notes, paths)
            except PathRefused as refusal:
                return self._without_folder(refusal)
            self._drop(notes, scan)
            self._read_all(notes, scan.suspects, now, progress, for_search=for_search)
            if self._is_stale:
                self._catalogue = self._list_notes(notes)
                self._is_stale = False
            self._last_walk = now if paths is None else last_walk
            return self._catalogue

    def mark(self, path: str) -> None:
        """Mark `path` as changed by us, so that it is reread whatever its stamp says."""
        # Without the lock, so that changing a file need not wait for others to be read. A path is
        # removed before its file is read, so a later mark remains.
        self._doubts.add(path)

    def texts(self, passages: Sequence[tuple[str, Passage]]) -> tuple[str | None, ...]:
        """Return the searched text of passages, given with their note's path; None if the note
        changed."""
        return self._cut_all(passages, lambda _passage, _lines, text: text)

    def take_terms(self, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the packed terms of passages just read for a search, by text digest; each is
        returned once."""
        fresh = self._fresh_terms
        return {digest: fresh.pop(digest) for digest in {*digests} if digest in fresh}

    def save(self) -> None:
        """Save notes read for a search, in the background."""
        if self._file:
            self._file.write_later()

    def excerpts(self, passages: Sequence[tuple[str, Passage]]) -> tuple[Excerpt | None, ...]:
        """Return the original text of passages, given with their note's path; None if the note
        changed."""
        return self._cut_all(passages, lambda passage, lines, _: self._excerpt(passage, lines))

    def names(self, catalogue: Catalogue) -> NoteNames:
        """Return the names of a catalogue's notes, computed once per catalogue."""
        latest = self._names
        if latest is None or latest[0] is not catalogue:
            aliases = {note.path: note.aliases for note in catalogue.notes if note.aliases}
            names = NoteNames((note.path for note in catalogue.notes), aliases)
            latest = self._names = (catalogue, names)
        return latest[1]

    def take_warnings(self) -> tuple[str, ...]:
        """Return new problems with saving and watching since the last call; no notes are lost."""
        warnings = self._file.take_warnings() if self._file else ()
        return warnings + (self._watcher.take_warnings() if self._watcher else ())

    def close(self) -> None:
        """Release files and handles; the catalogue can be used again."""
        with self._lock:
            if self._watcher:
                self._watcher.stop()
                self._is_watching = False
            if self._file:
                self._file.close()
            self._fresh_terms.clear()

    # -- texts -------------------------------------------------------------------------------------

    def _cut_all(
        self,
        passages: Sequence[tuple[str, Passage]],
        cut: Callable[[Passage, list[str], str], R],
    ) -> tuple[R | None, ...]:
        """Extract passages from notes, given their lines and the searched text."""
        results: list[R | None] = [None] * len(passages)
        places: dict[str, list[int]] = {}
        for place, (path, _) in enumerate(passages):
            places.setdefault(path, []).append(place)
        # One note at a time, to keep only one in memory.
        for path, inside in places.items():
            title, lines = self._title(path), self._lines(path)
            for place in inside:
                passage = passages[place][1]
                text = _find_text(title, passage, lines)
                results[place] = None if text is None else cut(passage, lines, text)
        return tuple(results)

    def _excerpt(self, passage: Passage, lines: list[str]) -> Excerpt:
        text = "\n".join(lines)
        start, end = line_span(text, passage.start, passage.end)
        if passage.part:
            start, end = start + passage.part[0], start + passage.part[1]
        return self._secrets.cut(text, start, end)

    def _lines(self, path: str) -> list[str]:
        """Return a note's current lines; none if it cannot be read."""
        try:
            data, _ = self._root.read(path)
        except PathRefused:
            return []
        return decode_note(data)[0].split("\n")

    def _title(self, path: str) -> str:
        entry = (self._known or {}).get(path)
        return entry.note.title if entry else ""

    # -- checking --------------------------------------------------------------------------------

    def _open(self) -> dict[str, KnownNote]:
        if self._known is None:
            self._known = self._file.load() if self._file else {}
            self._doubts |= {path for path, note in self._known.items() if not note.settled}
        return self._known

    def _find_changes(self, now: int) -> set[str] | None:
        """Return the paths to check; None for all."""
        if self._watcher is None or len(self._known or ()) <= self._most_walked:
            return None
        if not self._is_watching:
            # Only once: a folder that cannot be watched is not retried.
            self._watcher.start()
            self._is_watching = True
        paths = self._watcher.take()
        is_fresh = self._last_walk is not None and 0 <= now - self._last_walk < WALK_INTERVAL_NS
        if paths is None or not is_fresh or not all(map(is_sayable, paths)):
            return None
        return paths | self._doubts | self._refusals.keys()

    def _walk(self, notes: dict[str, KnownNote]) -> FolderScan:
        """Check all files."""
        suspects, unread = list[SeenFile](), list[str]()
        lost_paths = {*notes, *self._refusals}
        for path, status in self._root.walk(unread=unread):
            if not _is_note(path):
                continue
            lost_paths.discard(path)
            if suspect := self._suspect(notes, path, status):
                suspects.append(suspect)
        return FolderScan(suspects, lost_paths, tuple(unread))

    def _look_at(self, notes: dict[str, KnownNote], paths: Iterable[str]) -> FolderScan:
        """Check only the given files."""
        suspects, lost_paths = list[SeenFile](), set[str]()
        for path in sorted(filter(_is_note, paths)):
            try:
                status = self._root.stat(path)
            except PathRefused:
                lost_paths.add(path)
                continue
            if not stat.S_ISREG(status.st_mode):
                lost_paths.add(path)
            elif suspect := self._suspect(notes, path, status):
                suspects.append(suspect)
        return FolderScan(suspects, lost_paths, self._unread)

    def _suspect(
        self, notes: dict[str, KnownNote], path: str, status: os.stat_result
    ) -> SeenFile | None:
        """Return the file if it has to be reread."""
        stamp, old = stamp_of(status), notes.get(path)
        is_changed = old is None or old.stamp != stamp or path in self._doubts
        return SeenFile(path, stamp, status) if is_changed else None

    def _without_folder(self, refusal: PathRefused) -> Catalogue:
        """Return a catalogue for an unreadable folder, for example on a removed disk. Its notes are
        not forgotten, because the folder may reappear."""
        problems = (f"{self._root.path}: {refusal.detail}",)
        if self._catalogue != Catalogue(unreadable=problems):
            self._catalogue = Catalogue(unreadable=problems)
        self._is_stale = True
        return self._catalogue

    # -- reading -----------------------------------------------------------------------------------

    def _drop(self, notes: dict[str, KnownNote], scan: FolderScan) -> None:
        """Forget notes that are gone."""
        lost_notes = [path for path in scan.lost_paths if notes.pop(path, None)]
        lost_refusals = [path for path in scan.lost_paths if self._refusals.pop(path, None)]
        self._doubts -= scan.lost_paths
        if lost_notes or lost_refusals or scan.unread != self._unread:
            self._unread = scan.unread
            self._is_stale = True
        if lost_notes and self._file:
            self._file.keep((), lost_notes)

    def _read_all(
        self,
        notes: dict[str, KnownNote],
        suspects: Sequence[SeenFile],
        now: int,
        progress: Progress | None,
        *,
        for_search: bool,
    ) -> None:
        # The mark is removed before the file is read, so a later mark remains.
        terms = self._fresh_terms if for_search else None
        reader = FileReader(self._root, notes, now, self._doubts.discard, terms)
        batch: list[tuple[str, KnownNote]] = []
        unread_doubts = self._doubts.intersection(file.path for file in suspects)
        try:
            for number, (file, new) in enumerate(reader.read(suspects)):
                if progress and number % PROGRESS_STEP == 0:
                    progress(number, len(suspects))
                unread_doubts.discard(file.path)
                if isinstance(new, PathRefused):
                    self._refuse(notes, file.path, new)
                elif self._take(notes, file.path, new):
                    batch.append((file.path, new))
                if len(batch) >= SAVE_BATCH:
                    self._keep(batch)
                    batch = []
        finally:
            # If reading stops half way, nothing is lost.
            self._doubts |= unread_doubts
            self._keep(batch)
        if not for_search:
            self.save()
        if progress and suspects:
            progress(len(suspects), len(suspects))

    def _take(self, notes: dict[str, KnownNote], path: str, new: KnownNote) -> bool:
        """Add a note; return whether there is anything new to save."""
        old = notes.get(path)
        notes[path] = new
        if not new.settled:
            self._doubts.add(path)
        if self._refusals.pop(path, None) or old is None or old.note is not new.note:
            self._is_stale = True
        return new != old

    def _refuse(self, notes: dict[str, KnownNote], path: str, refusal: PathRefused) -> None:
        """Forget an unreadable note; one that was just deleted is not a problem."""
        old = notes.pop(path, None)
        if old and self._file:
            self._file.keep((), (path,))
        detail = None if refusal.reason == "missing" else refusal.detail
        if old or self._refusals.get(path) != detail:
            self._is_stale = True
        if detail is None:
            self._refusals.pop(path, None)
        else:
            self._refusals[path] = detail

    def _keep(self, batch: list[tuple[str, KnownNote]]) -> None:
        if self._file:
            self._file.keep(batch, (), later=SAVED_LATER <= len(batch) < SAVE_BATCH)

    def _list_notes(self, notes: dict[str, KnownNote]) -> Catalogue:
        refusals = (detail for _, detail in sorted(self._refusals.items()))
        return Catalogue(
            notes=tuple(notes[path].note for path in sorted(notes)),
            unreadable=(*self._unread, *refusals),
        )


def _find_text(title: str, passage: Passage, lines: list[str]) -> str | None:
    """Return the searched text of a passage if the lines still contain it."""
    if passage.end > len(lines):
        return None
    text = searched_text(title, passage, lines)
    is_same = hashlib.sha256(text.encode("utf-8", "replace")).digest() == passage.digest
    return text if is_same else None


def _is_note(path: str) -> bool:
    return path.lower().endswith(SUFFIXES)
