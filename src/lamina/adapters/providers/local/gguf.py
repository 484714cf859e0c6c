"""Reads a GGUF file's facts about its model, and counts tokens exactly with its vocabulary.

Laws: the file is not trusted. No more memory is allocated than the file's own bytes fill, and at
most `LONGEST_HEADER` of them are read, never the weights. Only vocabularies whose way of splitting
text is known exactly are used; for the others there is the estimate.
"""

import struct
from collections.abc import Collection
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from lamina.errors import ModelMissing

MAGIC: Final = b"GGUF"
# In a key that is asked for: the architecture that the file names.
ARCHITECTURE: Final = "{arch}"
CHAT_TEMPLATE: Final = "tokenizer.chat_template"
# What templates of models that think write behind the thoughts of earlier answers.
END_OF_THOUGHT: Final = "</think>"
# The largest vocabularies take about 20 MB.
LONGEST_HEADER = 128 << 20
BLOCK = 1 << 20
VERSIONS = (2, 3)

_STRING, _ARRAY = 8, 9
_NUMBERS = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
_SIZES = {kind: struct.calcsize(f"<{letter}") for kind, letter in _NUMBERS.items()}
_LENGTH = struct.Struct("<Q")


def read_metadata(path: Path, keys: Collection[str]) -> dict[str, Any]:
    """The values of those `keys` that the file has, under the names they were asked for.

    `{arch}.context_length` is that key for the file's own architecture; a name that ends with `*`
    stands for every key with that beginning. Reading stops once everything named is found.

    Raises:
        ModelMissing: the file cannot be read, or is not a GGUF.
    """
    try:
        with path.open("rb") as file:
            return _Search(keys).run(_Header(file))
    except OSError as error:
        raise ModelMissing(f"model file {str(path)!r} cannot be read: {error.strerror}") from error
    except _BrokenFile as error:
        raise ModelMissing(
            f"{str(path)!r} is not a GGUF model that can be used: {error}; get the file again"
        ) from error


def context_length(path: Path) -> int | None:
    """How many tokens the model was made for; None if the file does not say or cannot be read."""
    stamp = file_stamp(path)
    return _context_length(path, stamp) if stamp else None


def thinks_first(path: Path) -> bool:
    """Whether the model's own template lets it think in front of its answer."""
    stamp = file_stamp(path)
    return _thinks_first(path, stamp) if stamp else False


def file_stamp(path: Path) -> tuple[int, int] | None:
    """Size and time of a file, which tell it from another at its path; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


@lru_cache(maxsize=32)
def _context_length(path: Path, _stamp: tuple[int, int]) -> int | None:
    key = f"{ARCHITECTURE}.context_length"
    try:
        length = read_metadata(path, (key,)).get(key)
    except ModelMissing:
        return None
    return length if isinstance(length, int) and length > 0 else None


@lru_cache(maxsize=32)
def _thinks_first(path: Path, _stamp: tuple[int, int]) -> bool:
    try:
        template = read_metadata(path, (CHAT_TEMPLATE,)).get(CHAT_TEMPLATE)
    except ModelMissing:
        return False
    return isinstance(template, str) and END_OF_THOUGHT in template


class _BrokenFile(Exception):
    """What is wrong with the file."""


class _Search:
    """Looks for keys among the pairs of a header."""

    def __init__(self, keys: Collection[str]) -> None:
        self._keys = {key for key in keys if not key.endswith("*")}
        self._prefixes = tuple(key[:-1] for key in keys if key.endswith("*"))
        # Of any architecture, until the file's own is known.
        self._endings = tuple(
            key.removeprefix(ARCHITECTURE) for key in self._keys if key.startswith(ARCHITECTURE)
        )
        self._pairs: dict[str, Any] = {}
        self._architecture: str | None = None

    def run(self, header: "_Header") -> dict[str, Any]:
        for _ in range(header.open()):
            if self._is_complete():
                break
            key, kind = header.read_string(), header.read_number(4)
            if key == "general.architecture":
                self._architecture = str(header.read(kind))
                self._pairs[key] = self._architecture
            elif self._wants(key):
                self._pairs[key] = header.read(kind)
            else:
                header.skip(kind)
        return self._answer()

    def _wants(self, key: str) -> bool:
        if key in self._keys or (self._prefixes and key.startswith(self._prefixes)):
            return True
        return bool(self._endings) and key.endswith(self._endings)

    def _is_complete(self) -> bool:
        if self._prefixes or (self._endings and self._architecture is None):
            return False
        return all(self._own(key) in self._pairs for key in self._keys)

    def _own(self, key: str) -> str:
        return key.replace(ARCHITECTURE, self._architecture or ARCHITECTURE, 1)

    def _answer(self) -> dict[str, Any]:
        answer = {
            key: self._pairs[self._own(key)] for key in self._keys if self._own(key) in self._pairs
        }
        if self._prefixes:
            prefix_pairs = {k: v for k, v in self._pairs.items() if k.startswith(self._prefixes)}
            return answer | prefix_pairs
        return answer


class _Header:
    """The beginning of a file, read block by block as needed."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = file.seek(0, 2)
        file.seek(0)
        self._bytes = bytearray()
        self._at = 0

    def open(self) -> int:
        """The number of pairs that follow."""
        if self._size < len(MAGIC) or self._take(len(MAGIC)) != MAGIC:
            raise _BrokenFile("it does not begin with 'GGUF'")
        version = self.read_number(4)
        if version not in VERSIONS:
            versions = " and ".join(map(str, VERSIONS))
            raise _BrokenFile(f"its version is {version}, and only {versions} are read")
        self.read_number(10)  # how many tensors
        return int(self.read_number(10))

    def read(self, kind: int) -> Any:
        if kind == _STRING:
            return self.read_string()
        if kind == _ARRAY:
            return self._read_array()
        return self.read_number(kind)

    def read_number(self, kind: int) -> Any:
        return struct.unpack(f"<{_letter(kind)}", self._take(_SIZES[kind]))[0]

    def read_string(self) -> str:
        return _text(self._take(_LENGTH.unpack(self._take(8))[0]))

    def skip(self, kind: int) -> None:
        if kind == _STRING:
            self._take(self.read_number(10))
        elif kind == _ARRAY:
            element, count = self._open_array()
            if element == _STRING:
                self._walk(count)
            else:
                self._take(count * _SIZES[element])
        else:
            _letter(kind)
            self._take(_SIZES[kind])

    def _read_array(self) -> list[Any]:
        element, count = self._open_array()
        if element == _STRING:
            texts: list[str] = []
            try:
                self._walk(count, texts)
            except UnicodeDecodeError as error:
                raise _BrokenFile("a text in it is not UTF-8") from error
            return texts
        data = self._take(count * _SIZES[element])
        return list(struct.unpack(f"<{count}{_letter(element)}", data))

    def _open_array(self) -> tuple[int, int]:
        element, count = self.read_number(4), self.read_number(10)
        if element != _STRING:
            _letter(element)
        # Before the number is used: can the rest of the file hold that many?
        if count * _SIZES.get(element, _LENGTH.size) > self._size - self._at:
            raise _BrokenFile(f"an array claims {count:,} values, more than the file has")
        return element, count

    def _walk(self, count: int, texts: list[str] | None = None) -> None:
        """Skips `count` strings, and adds them to `texts` if that is given."""
        # Vocabularies have 100,000 of them, so a call per string is avoided.
        at, end, data, unpack = self._at, len(self._bytes), self._bytes, _LENGTH.unpack_from
        for _ in range(count):
            start = at + 8
            if start > end:
                end = self._load(start)
            at = start + unpack(data, at)[0]
            if at > end:
                end = self._load(at)
            if texts is not None:
                texts.append(data[start:at].decode())
        self._at = at

    def _take(self, count: int) -> bytes | bytearray:
        end = self._at + count
        if end > len(self._bytes):
            self._load(end)
        data = self._bytes[self._at : end]
        self._at = end
        return data

    def _load(self, end: int) -> int:
        """Reads on until `end` bytes are loaded; returns how many are."""
        if end > self._size:
            raise _BrokenFile(f"it ends after {self._size:,} bytes, in the middle of its header")
        if end > LONGEST_HEADER:
            raise _BrokenFile(f"its header is longer than {LONGEST_HEADER:,} bytes")
        while len(self._bytes) < end:
            block = self._file.read(max(BLOCK, end - len(self._bytes)))
            if not block:
                raise _BrokenFile("it became shorter while it was read")
            self._bytes += block
        return len(self._bytes)


def _letter(kind: int) -> str:
    if letter := _NUMBERS.get(kind):
        return letter
    raise _BrokenFile(f"it has a value of an unknown type ({kind})")


def _text(data: bytes | bytearray) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _BrokenFile("a text in it is not UTF-8") from error


_BYTE_LEVEL = {
    "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True,
}  # fmt: skip
_QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# How text is split before pieces are merged, by `tokenizer.ggml.pre`, as Hugging Face writes it.
_SPLITTING: Final[dict[str, dict[str, Any]]] = {
    "smollm": {
        "type": "Sequence",
        "pretokenizers": [{"type": "Digits", "individual_digits": True}, _BYTE_LEVEL],
    },
    "qwen2": {
        "type": "Sequence",
        "pretokenizers": [
            {
                "type": "Split",
                "pattern": {"Regex": _QWEN},
                "behavior": "Isolated",
                "invert": False,
            },
            _BYTE_LEVEL | {"use_regex": False},
        ],
    },
}
# The type of tokens that llama.cpp finds in any text; control tokens are found in templates only.
_USER_DEFINED = 4

_KIND = ("tokenizer.ggml.model", "tokenizer.ggml.pre")
_CONTENT = ("tokenizer.ggml.tokens", "tokenizer.ggml.merges", "tokenizer.ggml.token_type")


class VocabularyCounter:
    """Counts with the vocabulary of a file; files with the same vocabulary share a name."""

    exact = True

    def __init__(self, tokenizer: Any, digest: str) -> None:
        self._tokenizer = tokenizer
        self.name = f"gguf:{digest[:12]}"

    def count(self, text: str) -> int:
        # Four bytes per token. The tokenizer knows no control tokens, so it finds none.
        return len(self._tokenizer.encode_flat(text)) // 4

    def tokens(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text)
        return ids


def counter_for_model(path: Path) -> VocabularyCounter | None:
    """The exact counter of a GGUF file; None if the kind of its vocabulary is unknown, or the file
    cannot be read."""
    stamp = file_stamp(path)
    return _load(path, stamp) if stamp else None


@lru_cache(maxsize=4)
def _load(path: Path, _stamp: tuple[int, int]) -> VocabularyCounter | None:
    try:
        kind = read_metadata(path, _KIND)
        splitting = _SPLITTING.get(kind.get(_KIND[1], ""))
        if kind.get(_KIND[0]) != "gpt2" or splitting is None:
            return None
        content = read_metadata(path, _CONTENT)
    except ModelMissing:
        return None
    description = _describe(content, splitting)
    if description is None:
        return None
    from splintr import from_json_bytes

    try:
        tokenizer = from_json_bytes(description)
    except ValueError:
        return None
    return VocabularyCounter(tokenizer, sha256(description).hexdigest())


def _describe(content: dict[str, Any], splitting: dict[str, Any]) -> bytes | None:
    """The vocabulary as a tokenizer.json for Hugging Face; None if it makes no sense."""
    tokens, merges, types = (content.get(key) or [] for key in _CONTENT)
    if not all(isinstance(column, list) and column for column in (tokens, merges, types)):
        return None
    if not isinstance(tokens[0], str) or not isinstance(merges[0], str):
        return None
    vocabulary = {token: number for number, token in enumerate(tokens)}
    if len(vocabulary) != len(tokens) or len(types) != len(tokens):
        return None
    added_tokens = [
        {
            "id": number, "content": token, "single_word": False, "lstrip": False,
            "rstrip": False, "normalized": False, "special": False,
        }
        for number, (token, type_) in enumerate(zip(tokens, types, strict=True))
        if type_ == _USER_DEFINED
    ]  # fmt: skip
    return msgspec.json.encode(
        {
            "version": "1.0",
            "added_tokens": added_tokens,
            "normalizer": None,
            "pre_tokenizer": splitting,
            "post_processor": None,
            "decoder": None,
            "model": {"type": "BPE", "vocab": vocabulary, "merges": merges},
        }
    )
