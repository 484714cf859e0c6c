"""Indexes beside their journals, rebuilt whenever they are missing, damaged or old.

Law: an index is trusted only if its checksum is right; it is replaced as a whole or not at all.
"""

import os
from pathlib import Path
from zlib import crc32

import msgspec

from lamina.core.journal.line_index import LineIndex

# Lines that the first version covered may not be readable: it knew no gate for what is written.
_MAGIC = b"lamina-index-2\n"
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(LineIndex)


def index_path(journal: Path) -> Path:
    return journal.with_suffix(".index")


def write_index(path: Path, index: LineIndex) -> None:
    """Writes an index. It is not flushed to disk: damage by a crash shows in its checksum.

    Raises:
        OSError: it cannot be written.
    """
    draft = _write_draft(path, index)
    try:
        os.replace(draft, path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def write_first_index(path: Path, index: LineIndex) -> None:
    """Writes an index where there is none, and never over one that somebody else has written
    meanwhile: theirs may hold more.

    Raises:
        OSError: there is one, or it cannot be written.
    """
    draft = _write_draft(path, index)
    try:
        os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _write_draft(path: Path, index: LineIndex) -> Path:
    body = _encoder.encode(index)
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        draft.write_bytes(_MAGIC + crc32(body).to_bytes(4, "big") + body)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    return draft


def read_index(path: Path) -> LineIndex | None:
    """The index; None if there is none, or its checksum is wrong."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    head = len(_MAGIC)
    body = memoryview(data)[head + 4 :]
    if data[:head] != _MAGIC or int.from_bytes(data[head : head + 4], "big") != crc32(body):
        return None
    try:
        return _decoder.decode(body)
    except msgspec.MsgspecError:
        return None
