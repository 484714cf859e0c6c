"""Notes from their bytes, many at a time; with the terms of their passages, if they are searched.

Laws: a note of a batch is what `read_note` makes of its bytes, and its terms are those of what is
searched of each passage. Only what is asked for terms needs what packs them.
"""

from itertools import islice

from lamina.core.notes.note_reader import read_note
from lamina.core.values.note import Note

# Path, bytes, ctime, mtime.
NoteBytes = tuple[str, bytes, float, float]
# A note, and the terms of each passage, unless they were not asked for.
NoteWithTerms = tuple[Note, list[bytes]]


def read_notes(files: list[NoteBytes]) -> list[NoteWithTerms | None]:
    """The notes of a batch, without terms; None for one that would not arrive in another process as
    it is: what is safe of it may be of any type."""
    pairs = [(_read(file, None), list[bytes]()) for file in files]
    return [pair if not pair[0].safe else None for pair in pairs]


def read_searched_notes(files: list[NoteBytes]) -> list[NoteWithTerms | None]:
    """The same with terms."""
    return [pair if not pair[0].safe else None for pair in read_with_terms(files)]


def read_with_terms(files: list[NoteBytes]) -> list[NoteWithTerms]:
    """The notes of a batch, all of them, with the terms of their passages."""
    from lamina.core.selection.packed_terms import pack_texts

    texts: list[str] = []
    notes = [_read(file, texts) for file in files]
    terms = iter(pack_texts(texts))
    return [(note, list(islice(terms, len(note.passages)))) for note in notes]


def _read(file: NoteBytes, texts: list[str] | None) -> Note:
    path, data, ctime, mtime = file
    return read_note(path, data, ctime=ctime, mtime=mtime, texts=texts)
