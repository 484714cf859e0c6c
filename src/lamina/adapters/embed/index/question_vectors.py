"""What questions mean: their vectors, and whether an embedder can read them at all.

Law: a question is embedded once while it is remembered.
"""

from collections import OrderedDict
from collections.abc import Sequence

from lamina.adapters.embed.index.chunk_maker import embed_texts
from lamina.adapters.embed.index.chunk_table import unpack_vectors
from lamina.adapters.embed.index.corpus import QuestionVectors
from lamina.core.ports import Embedder, FluentEmbedder
from lamina.core.selection.scores import Matrix, is_foreign
from lamina.errors import ModelMissing

REMEMBERED_QUESTIONS = 512


class RememberedQuestions:
    """The vectors of the latest questions."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._vectors: OrderedDict[str, Matrix] = OrderedDict()

    def clear(self) -> None:
        self._vectors.clear()

    async def embed(self, texts: Sequence[str]) -> QuestionVectors:
        """The vectors of questions; the latest ones are remembered."""
        new = [text for text in texts if text not in self._vectors]
        failures: dict[str, str] = {}
        new_vectors: dict[str, bytes] = {}
        if new and self._embedder is not None:
            new_vectors, failures = await embed_texts(self._embedder, new)
        for text, vector in new_vectors.items():
            self._vectors[text] = unpack_vectors([vector])[0]
        vectors = {text: self._vectors[text] for text in texts if text in self._vectors}
        for text in vectors:
            self._vectors.move_to_end(text)
        while len(self._vectors) > REMEMBERED_QUESTIONS:
            self._vectors.popitem(last=False)
        return vectors, failures

    async def reads_any(self, parts: Sequence[str]) -> bool:
        """Whether the embedder can read anything of a question, as far as it can tell."""
        parts = [part for part in parts if part.strip()]
        if not isinstance(self._embedder, FluentEmbedder) or not parts:
            return True
        try:
            fluency = await self._embedder.fluency(parts)
        except ModelMissing:
            # That is found out, and reported, when something is embedded.
            return True
        return not all(map(is_foreign, parts, fluency))
