"""Reads a model's facts from its GGUF file, and counts tokens exactly with its vocabulary.

Laws: the file is not trusted. No more memory is allocated than the file's own bytes fill, and at
most `LONGEST_HEADER` of them are read, never the weights. Only vocabularies whose text splitting is
known exactly are used; for the others there is the estimate.
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
# In a requested key: the architecture that the file names.
ARCHITECTURE: Final = "{arch}"
CHAT_TEMPLATE: Final = "tokenizer.chat_template"
# Text that the templates of thinking models write after the thoughts in earlier answers.
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
    """Return the values of those `keys` that the file has, under the requested names.

    `{arch}.context_length` is that key for the file's own architecture; a name that ends with `*`
    matches every key with that prefix. Reading stops once all named keys are found.

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
    """Return the context length that the model was made for, in tokens; None if the file does not
    say or cannot be read."""
    stamp = file_stamp(path)
    return _context_length(path, stamp) if stamp else None


def thinks_first(path: Path) -> bool:
    """Return whether the model's own template lets it think before its answer."""
    stamp = file_stamp(path)
    return _thinks_first(path, stamp) if stamp else False


def file_stamp(path: Path) -> tuple[int, int] | None:
    """Return a file's size and time, which reveal its replacement; None if it does not exist."""
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
    """A GGUF file is malformed."""


class _Search:
    """Searches a header's pairs for keys."""

    def __init__(self, keys: Collection[str]) -> None:
        self._keys = {key for key in keys if not key.endswith("*")}
        self._prefixes = tuple(key[:-1] for key in keys if key.endswith("*"))
        # For any architecture, until the file's own is known.
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
        """Return the number of pairs that follow."""
        if self._size < len(MAGIC) or self._take(len(MAGIC)) != MAGIC:
            raise _BrokenFile("it does not begin with 'GGUF'")
        version = self.read_number(4)
        if version not in VERSIONS:
            versions = " and ".join(map(str, VERSIONS))
            raise _BrokenFile(f"its version is {version}, and only {versions} are read")
        self.read_number(10)  # number of tensors
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
        # Checked before the number is used: can the rest of the file contain that many?
        if count * _SIZES.get(element, _LENGTH.size) > self._size - self._at:
            raise _BrokenFile(f"an array claims {count:,} values, more than the file has")
        return element, count

    def _walk(self, count: int, texts: list[str] | None = None) -> None:
        """Skip `count` strings, and add them to `texts` if given."""
        # Vocabularies have 100,000 of them, so one call per string is avoided.
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
        """Continue reading until `end` bytes are loaded; return how many are."""
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
# Patterns that split text before pieces are merged, by `tokenizer.ggml.pre`, in Hugging Face's
# notation.
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
# The type of tokens that llama.cpp matches in any text; control tokens are matched in templates
# only.
_USER_DEFINED = 4

_KIND = ("tokenizer.ggml.model", "tokenizer.ggml.pre")
_CONTENT = ("tokenizer.ggml.tokens", "tokenizer.ggml.merges", "tokenizer.ggml.token_type")


class VocabularyCounter:
    """Counts tokens with a file's vocabulary; files with the same vocabulary share a name."""

    exact = True

    def __init__(self, tokenizer: Any, digest: str) -> None:
        self._tokenizer = tokenizer
        self.name = f"gguf:{digest[:12]}"

    def count(self, text: str) -> int:
        # Four bytes per token. The tokenizer has no control tokens, so it finds none.
        return len(self._tokenizer.encode_flat(text)) // 4

    def tokens(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text)
        return ids


def counter_for_model(path: Path) -> VocabularyCounter | None:
    """Return a GGUF file's exact counter; None if its kind of vocabulary is unknown, or the file
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
    """Describe the vocabulary as a Hugging Face tokenizer.json; None if it is inconsistent."""
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
