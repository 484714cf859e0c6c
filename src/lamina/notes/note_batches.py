"""Notes from their bytes, many at a time, with the texts that are searched.

Law: a note of a batch is what `read_note` makes of its bytes.
"""

from lamina.notes.note_reader import read_note
from lamina.values.note import Note

# Path, bytes, ctime, mtime.
NoteBytes = tuple[str, bytes, float, float]
# A note, and what is searched of each passage.
NoteWithTexts = tuple[Note, list[str]]


def read_note_texts(file: NoteBytes) -> NoteWithTexts:
    """A note, and what is searched of each of its passages."""
    path, data, ctime, mtime = file
    texts: list[str] = []
    return read_note(path, data, ctime=ctime, mtime=mtime, texts=texts), texts


def read_notes(files: list[NoteBytes]) -> list[NoteWithTexts | None]:
    """The notes of a batch; None for one that would not arrive in another process as it is: what
    is safe of it may be of any type."""
    return [pair if not pair[0].safe else None for pair in map(read_note_texts, files)]
