"""The index with its embedder, put together late."""

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from lamina.apps.wiring.index import open_index, search_index_path
from lamina.core.values.item import ItemId
from lamina.core.values.selection import Document

PIER = Document(ItemId("note:pier"), ("the pier opens in may",))


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("LAMINA_EMBED", raising=False)


def test_the_index_is_in_the_data_folder_and_not_there_before_it_is_needed(tmp_path: Path) -> None:
    index = open_index()
    assert not search_index_path().parent.exists()
    anyio.run(index.load, [PIER])
    assert search_index_path() == tmp_path / "data" / "index.sqlite"
    assert search_index_path().exists()
    index.close()


def test_nothing_heavy_is_imported_before_an_index_is_opened() -> None:
    asked = (
        "import sys, lamina.apps.wiring.index, lamina.apps.cli.search_commands;"
        "print([name for name in ('numpy', 'sqlite3', 'onnxruntime') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_opening_an_index_loads_no_model() -> None:
    asked = (
        "import sys; from lamina.apps.wiring.index import open_index; open_index();"
        "print('onnxruntime' in sys.modules, 'tokenizers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


@pytest.mark.parametrize("setting", ["off", "0", "OFF", "no", "false"])
def test_the_environment_switches_embeddings_off(
    monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setenv("LAMINA_EMBED", setting)
    corpus = anyio.run(open_index().load, [PIER])
    assert corpus.lexical == f"embeddings are switched off (LAMINA_EMBED={setting})"


def test_a_model_that_is_not_here_leaves_words_and_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINA_CACHE", str(tmp_path / "empty"))
    # In a process of its own: here, the model may be loaded already.
    asked = (
        "import anyio; from tests.apps.wiring.test_open_index import PIER, open_index;"
        "corpus = anyio.run(open_index().load, [PIER]); print(corpus.lexical);"
        "print(anyio.run(corpus.score, ['pier']).lexical[0][0] > 0)"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    why, found = done.stdout.splitlines()
    assert "lamina models pull minilm" in why
    assert found == "True"
