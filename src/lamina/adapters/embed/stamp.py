"""Tells a complete graph of ours from a damaged or foreign one without parsing it.

A protobuf message ends where its bytes end, and fields appended to it are part of it. So the stamp
is the last entry of the model's own metadata, and the file remains a valid ONNX file.
"""

import zlib
from typing import Final

KEY: Final = b"lamina"
# metadata_props of ModelProto, and the key and value of its entries: fields of known length.
_ENTRY, _KEY, _VALUE = 0x72, 0x0A, 0x12


def add_stamp(graph: bytes, origin: str) -> bytes:
    """The graph with a stamp that names what it was built from."""
    return graph + _stamp(zlib.crc32(graph), origin)


def is_stamped(content: bytes, origin: str) -> bool:
    """Whether a file holds a graph of this origin, unchanged."""
    length = len(_stamp(0, origin))
    graph = memoryview(content)[:-length]
    return content[-length:] == _stamp(zlib.crc32(graph), origin)


def _stamp(checksum: int, origin: str) -> bytes:
    value = f"{origin} {checksum:08x}".encode()
    entry = _field(_KEY, KEY) + _field(_VALUE, value)
    return _field(_ENTRY, entry)


def _field(tag: int, content: bytes) -> bytes:
    # Shorter lengths take one byte.
    assert len(content) < 0x80
    return bytes((tag, len(content))) + content
