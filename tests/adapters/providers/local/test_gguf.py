"""What is read of a GGUF file, and what of one that means harm."""

import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.adapters.providers.local import gguf
from lamina.adapters.providers.local.gguf import context_length, read_metadata, thinks_first
from lamina.errors import ModelMissing

Pair = tuple[str, int, Any]
STRING, ARRAY, U32 = 8, 9, 4
LETTERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q"}
PAIRS: tuple[Pair, ...] = (
    ("general.architecture", STRING, "llama"),
    ("general.name", STRING, "Näme"),
    ("general.languages", ARRAY, (STRING, ["en", "日本"])),
    ("llama.context_length", U32, 2048),
    ("llama.rope", 6, 0.5),
    ("some.flags", ARRAY, (7, [True, False])),
    ("tokenizer.ggml.scores", ARRAY, (5, [-1, 2, 3])),
    ("tokenizer.chat_template", STRING, "{{ x }}"),
)


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value_bytes(kind: int, value: Any) -> bytes:
    if kind == STRING:
        return text(value)
    if kind == ARRAY:
        element, values = value
        head = struct.pack("<IQ", element, len(values))
        return head + b"".join(value_bytes(element, value) for value in values)
    return struct.pack(f"<{LETTERS[kind]}", value)


def gguf_bytes(pairs: tuple[Pair, ...] = PAIRS, version: int = 3) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", version, 0, len(pairs))
    return head + b"".join(
        text(key) + struct.pack("<I", kind) + value_bytes(kind, value) for key, kind, value in pairs
    )


def write(folder: Path, data: bytes) -> Path:
    path = folder / "model.gguf"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("version", [2, 3])
def test_wanted_values_are_read_under_the_names_they_were_asked_for(
    tmp_path: Path, version: int
) -> None:
    path = write(tmp_path, gguf_bytes(version=version))
    wanted = ("general.name", "{arch}.context_length", "tokenizer.ggml.scores", "not.there")
    assert read_metadata(path, wanted) == {
        "general.name": "Näme",
        "{arch}.context_length": 2048,
        "tokenizer.ggml.scores": [-1, 2, 3],
    }


def test_a_prefix_stands_for_every_key_that_begins_so(tmp_path: Path) -> None:
    path = write(tmp_path, gguf_bytes())
    assert read_metadata(path, ("general.*", "some.flags")) == {
        "general.architecture": "llama",
        "general.name": "Näme",
        "general.languages": ["en", "日本"],
        "some.flags": [True, False],
    }


def test_the_architecture_may_come_after_what_belongs_to_it(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        gguf_bytes(
            (
                ("clip.context_length", U32, 77),
                ("llama.context_length", U32, 512),
                ("general.architecture", STRING, "llama"),
            )
        ),
    )
    assert read_metadata(path, ("{arch}.context_length",)) == {"{arch}.context_length": 512}


def test_reading_ends_when_everything_was_found(tmp_path: Path) -> None:
    whole = gguf_bytes()
    path = write(tmp_path, whole[: whole.index(b"llama.rope")])
    assert read_metadata(path, ("{arch}.context_length",)) == {"{arch}.context_length": 2048}
    with pytest.raises(ModelMissing, match="in the middle of its header"):
        read_metadata(path, ("tokenizer.chat_template",))


def test_the_real_model_says_what_it_is(embedded_model: Path) -> None:
    wanted = ("general.architecture", "general.name", "{arch}.context_length")
    assert read_metadata(embedded_model, wanted) == {
        "general.architecture": "llama",
        "general.name": "Smollm2 135M 8k Lc100K Mix1 Ep2",
        "{arch}.context_length": 8192,
    }
    template = read_metadata(embedded_model, ("tokenizer.chat_template",))
    assert "<|im_start|>" in template["tokenizer.chat_template"]


def test_a_context_length_is_known_or_not(tmp_path: Path) -> None:
    assert context_length(tmp_path / "gone.gguf") is None
    assert context_length(write(tmp_path, b"nonsense")) is None
    assert context_length(write(tmp_path, gguf_bytes(PAIRS[:2]))) is None
    path = write(tmp_path, gguf_bytes())
    assert context_length(path) == 2048
    # Another file under the same name is read anew.
    changed = tuple((k, t, 99 if k == "llama.context_length" else v) for k, t, v in PAIRS)
    path.write_bytes(gguf_bytes((*changed, ("x.y", U32, 0))))
    assert context_length(path) == 99


ONE_PAIR = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k")
BROKEN = {
    "empty": (b"", "does not begin with 'GGUF'"),
    "another kind": (b"PK\3\4" * 100, "does not begin with 'GGUF'"),
    "version 1": (gguf_bytes(version=1), "its version is 1"),
    "big-endian": (b"GGUF" + struct.pack(">I", 3) + bytes(40), "its version is 50331648"),
    "a string as long as the sea": (
        b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**63),
        "in the middle of its header",
    ),
    "pairs without end": (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**64 - 1), "in the middle"),
    "an array without end": (
        ONE_PAIR + struct.pack("<IIQ", ARRAY, 0, 2**62),
        "4,611,686,018,427,387,904 values, more than the file has",
    ),
    "strings without end": (
        ONE_PAIR + struct.pack("<IIQ", ARRAY, STRING, 2**61),
        "more than the file has",
    ),
    "arrays in arrays": (
        ONE_PAIR + struct.pack("<IIQ", ARRAY, ARRAY, 1) + bytes(100),
        r"unknown type \(9\)",
    ),
    "an unknown type": (gguf_bytes((("k", U32, 1),)).replace(b"k\4", b"k\x63"), "unknown type"),
    "bytes that are no text": (gguf_bytes().replace("ä".encode(), b"\xff\xff"), "not UTF-8"),
}


@pytest.mark.parametrize(("data", "problem"), BROKEN.values(), ids=BROKEN.keys())
@pytest.mark.parametrize("wanted", [("k", "general.name", "z"), ("*",)])
def test_a_broken_file_says_what_is_wrong(
    tmp_path: Path, data: bytes, problem: str, wanted: tuple[str, ...]
) -> None:
    path = write(tmp_path, data)
    tracemalloc.start()
    with pytest.raises(ModelMissing, match=problem):
        read_metadata(path, wanted)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * gguf.BLOCK


def test_a_header_is_read_only_so_far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf, "LONGEST_HEADER", 100)
    monkeypatch.setattr(gguf, "BLOCK", 10)
    with pytest.raises(ModelMissing, match="longer than 100 bytes"):
        read_metadata(write(tmp_path, gguf_bytes()), ("tokenizer.chat_template",))


def test_every_truncated_file_is_refused(tmp_path: Path) -> None:
    whole = gguf_bytes()
    assert "tokenizer.chat_template" in read_metadata(write(tmp_path, whole), ("*",))
    for length in range(len(whole)):
        with pytest.raises(ModelMissing):
            read_metadata(write(tmp_path, whole[:length]), ("*",))


@given(changes=st.dictionaries(st.integers(4, 400), st.integers(0, 255), max_size=12))
@settings(
    max_examples=400,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_file_with_any_bytes_changed_is_read_or_refused(
    tmp_path: Path, changes: dict[int, int]
) -> None:
    data = bytearray(gguf_bytes())
    for at, byte in changes.items():
        data[at % len(data)] = byte
    for wanted in (("*",), ("{arch}.context_length", "tokenizer.ggml.scores")):
        try:
            found = read_metadata(write(tmp_path, bytes(data)), wanted)
        except ModelMissing:
            continue
        assert isinstance(found, dict)


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match=r"gone.gguf' cannot be read: No such file"):
        read_metadata(tmp_path / "gone.gguf", ("k",))


def test_a_template_that_closes_thoughts_is_that_of_a_model_that_thinks_first(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, gguf_bytes())
    assert not thinks_first(path)
    template = ("tokenizer.chat_template", STRING, "{{ x.split('</think>')[-1] }}")
    write(tmp_path, gguf_bytes((*PAIRS[:-1], template)))
    assert thinks_first(path)
    assert not thinks_first(write(tmp_path, b"GGUF"))
    assert not thinks_first(tmp_path / "none.gguf")
