"""Which models Lamina can fetch, and where they are."""

from pathlib import Path

import pytest
from platformdirs import user_cache_path

from lamina.adapters.files.cache_folder import cache_folder
from lamina.adapters.files.model_files import is_here
from lamina.adapters.providers.local.gguf import read_metadata
from lamina.adapters.providers.local.model_catalogue import (
    DEFAULT_MODEL,
    LOCAL_MODELS,
    LocalModel,
    find_model_file,
)
from lamina.errors import ModelMissing


def test_models_are_kept_where_the_platform_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAMINA_CACHE")
    assert cache_folder() == user_cache_path("lamina", appauthor=False)
    monkeypatch.setenv("LAMINA_CACHE", "/elsewhere")
    assert cache_folder() == Path("/elsewhere")


def test_the_catalogue_is_true_of_the_model(embedded_model: Path, model_cache: Path) -> None:
    entry = LOCAL_MODELS[DEFAULT_MODEL]
    assert embedded_model.stat().st_size == entry.size
    said = read_metadata(embedded_model, ("{arch}.context_length", "general.license"))
    assert said["{arch}.context_length"] == entry.context
    assert said["general.license"] == entry.licence.lower()
    assert find_model_file(DEFAULT_MODEL) == entry.path
    assert find_model_file(f"local:{DEFAULT_MODEL}") == entry.path


def test_a_model_that_is_not_here_says_how_to_get_it(empty_cache: Path) -> None:
    with pytest.raises(ModelMissing, match="`lamina models pull smollm2-135m` \\(93 MB, once\\)"):
        find_model_file(DEFAULT_MODEL)


def test_a_model_nobody_knows_is_refused_with_the_known_ones(empty_cache: Path) -> None:
    with pytest.raises(ModelMissing, match=r"'smollm3'.*\(smollm2-135m, qwen.*\).*local:~/models"):
        find_model_file("smollm3")


def test_a_file_of_the_wrong_size_is_not_the_model(empty_cache: Path, tiny: LocalModel) -> None:
    tiny.path.parent.mkdir(parents=True)
    tiny.path.write_bytes(b"GGUF")
    assert not is_here(tiny.wheel)
    with pytest.raises(ModelMissing, match=r"damaged \(4 bytes.*lamina models pull tiny"):
        find_model_file("tiny")


def test_any_gguf_is_found_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "mine.gguf"
    model.write_bytes(b"GGUF....")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert find_model_file(f"local:{model}") == model
    assert find_model_file("~/mine.gguf") == model
    assert find_model_file("mine.gguf").resolve() == model.resolve()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read: No such file or directory; check the path, or use local:smollm2"),
        (b"", "is not a GGUF file: it begins with b''"),
        (b"PK\3\4", "is not a GGUF file"),
    ],
)
def test_a_path_that_is_no_model_says_why(
    tmp_path: Path, content: bytes | None, problem: str
) -> None:
    path = tmp_path / "mine.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelMissing, match=problem):
        find_model_file(str(path))


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match="cannot be read"):
        find_model_file(f"{tmp_path}/")
