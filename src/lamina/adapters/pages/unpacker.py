"""Compressed bodies.

Law: no more is unpacked than was asked for, however small the compressed body is.
"""

import zlib
from typing import Protocol

from lamina.adapters.pages.answers import fetch_failure

# Brotli and the like would need packages of their own.
ACCEPTED_ENCODINGS = "gzip, deflate"
_GZIP, _ZLIB, _RAW = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS


class Unpacker(Protocol):
    def feed(self, data: bytes) -> bytes: ...

    def end(self) -> None:
        """The body has ended.

        Raises:
            FetchFailure: something is missing.
        """
        ...


def find_unpacker(coding: str, limit: int, host: str) -> Unpacker:
    """Unpacks up to one byte more than `limit`, which tells the caller that there was more.

    Raises:
        FetchFailure: `coding` is unknown.
    """
    match coding.strip().lower():
        case "" | "identity":
            return _PlainUnpacker()
        case "gzip" | "x-gzip":
            return _ZlibUnpacker(_GZIP, limit, host)
        case "deflate":
            return _ZlibUnpacker(_ZLIB, limit, host)
        case other:
            raise fetch_failure(
                "unreadable", f"{host} sends the encoding {other!r}, not {ACCEPTED_ENCODINGS}"
            )


class _PlainUnpacker:
    def feed(self, data: bytes) -> bytes:
        return data

    def end(self) -> None:
        """It may end anywhere."""


class _ZlibUnpacker:
    def __init__(self, bits: int, limit: int, host: str) -> None:
        self._bits, self._host = bits, host
        self._remaining = limit + 1
        self._has_begun = False
        self._stream = zlib.decompressobj(bits)

    def feed(self, data: bytes) -> bytes:
        out = []
        while data and self._remaining > 0:
            part = self._step(data)
            out.append(part)
            self._remaining -= len(part)
            # gzip may continue with another member; what follows deflate means nothing.
            data = self._stream.unused_data if self._bits == _GZIP else b""
            if data:
                self._stream = zlib.decompressobj(_GZIP)
        return b"".join(out)

    def _step(self, data: bytes) -> bytes:
        try:
            part = self._stream.decompress(data, self._remaining)
        except zlib.error:
            if self._has_begun or self._bits != _ZLIB:
                raise fetch_failure("unreadable", f"{self._host} sent a broken body") from None
            # Some servers send deflate without the zlib wrapper.
            self._bits, self._stream = _RAW, zlib.decompressobj(_RAW)
            return self._step(data)
        self._has_begun = True
        return part

    def end(self) -> None:
        if self._has_begun and self._remaining > 0 and not self._stream.eof:
            raise fetch_failure("unreadable", f"the body from {self._host} broke off")
