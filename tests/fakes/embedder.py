"""An embedder that can be looked through: a bag of words, hashed."""

import zlib
from collections.abc import Collection, Sequence

import anyio
import numpy
from numpy.typing import NDArray

from lamina.core.ports import Progress
from lamina.errors import ModelMissing

DIMENSIONS = 64


class FakeEmbedder:
    """Texts that share words are alike. It fails on texts that hold a word of `failing`, is not
    there while `missing` says why, and stops for `held` before the texts that it is told to."""

    def __init__(self, name: str = "fake/1", failing: Collection[str] = ()) -> None:
        self.name = name
        self.failing = set(failing)
        self.missing = ""
        # Every text that was ever embedded, and how many texts each call brought.
        self.texts: list[str] = []
        self.calls: list[int] = []
        # A call whose texts include this one waits for ever.
        self.waits_at = ""
        self.waiting = anyio.Event()

    async def embed(
        self, texts: Sequence[str], progress: Progress | None = None
    ) -> NDArray[numpy.float32]:
        await anyio.lowlevel.checkpoint()
        self.calls.append(len(texts))
        if self.missing:
            raise ModelMissing(self.missing)
        if self.waits_at and any(self.waits_at in text for text in texts):
            self.waiting.set()
            await anyio.Event().wait()
        rows = numpy.zeros((len(texts), DIMENSIONS), numpy.float32)
        for row, text in zip(rows, texts, strict=True):
            if self.failing.intersection(text.split()):
                raise ValueError(f"cannot embed {text!r}")
            row[:] = vector_of(text)
        self.texts.extend(texts)
        if progress is not None:
            progress(len(texts), len(texts))
        return rows


def vector_of(text: str) -> NDArray[numpy.float32]:
    row = numpy.zeros(DIMENSIONS, numpy.float32)
    for word in text.lower().split() or [""]:
        row[zlib.crc32(word.encode("utf-8", "surrogatepass")) % DIMENSIONS] += 1
    unit: NDArray[numpy.float32] = row / numpy.linalg.norm(row)
    return unit
