"""`lamina info`: what is here, and where."""

import json
from pathlib import Path

import pytest
from tests.apps.cli.inside import output
from tests.apps.cli.test_session_commands import ask_twice, keep

from lamina.adapters.files.extras import REQUIREMENTS
from lamina.apps.cli.info_command import WIDTH, Installation, InstalledExtra, Place, render_info
from lamina.apps.wiring.folders import data_folder


def test_everything_is_told_with_its_place_and_size(notes: Path) -> None:
    size = keep(notes, "harbour", ask_twice).stat().st_size
    (data_folder() / "memory.md").write_text("I like tea.")
    info = json.loads(output("info", "--json", cwd=notes))
    places = {place["what"]: place for place in info["places"]}
    assert places["data"]["path"] == str(data_folder())
    assert places["data"]["bytes"] >= size
    assert places["memory"] == {
        "what": "memory",
        "path": str(data_folder() / "memory.md"),
        "bytes": 11,
    }
    assert places["search index"]["bytes"] is None
    assert (info["store"], places["sessions of this workspace"]["bytes"]) == ("jsonl", size)
    assert (info["sessions"], info["workspaces"]) == (1, 1)
    assert info["target"] == "local:smollm2-135m"
    extras = {extra["extra"] for extra in info["extras"]}
    assert extras == {requirement.extra for requirement in REQUIREMENTS.values()}


def test_a_store_that_is_one_file_is_told(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_STORE", "sqlite")
    keep(notes, "harbour", ask_twice)
    info = json.loads(output("info", "--json", cwd=notes))
    places = {place["what"]: place for place in info["places"]}
    assert (info["store"], info["sessions"]) == ("sqlite", 1)
    assert places["sessions of this workspace"]["path"].endswith("/sessions.sqlite")
    assert output("sessions", "delete", "harb", "--yes", cwd=notes) == "Deleted: 1 session.\n"
    assert json.loads(output("info", "--json", cwd=notes))["sessions"] == 0


def test_keys_are_named_and_never_shown(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GEMINI_API_KEY", "private-thing")
    for option in ((), ("--json",)):
        told = output("info", *option, cwd=notes)
        assert "GEMINI_API_KEY" in told
        assert "private-thing" not in told
        assert "OPENAI_API_KEY" not in told


def test_what_is_missing_is_told_with_how_to_install_it(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    lines = output("info", cwd=notes).splitlines()
    at = lines.index("chat       the embedded model, typing at a terminal: missing xllamacpp")
    assert lines[at + 1] == "           pip install 'lamina-context[chat]'"
    assert "search     search, search by meaning: installed" in lines


def installation(sessions: int, workspaces: int) -> Installation:
    return Installation(
        lamina="0.1.0", python="3.12.1", platform="Linux-6.8.0-some-long-flavour-x86_64-with-glibc",
        environment="/env", target="local:smollm2-135m", store="jsonl",
        places=(Place(what="data", path="/data"),), workspaces=workspaces, sessions=sessions,
        keys=("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GROQ_API_KEY"),
        extras=(
            InstalledExtra(
                extra="search", uses=("search", "search by meaning"),
                missing=("numpy", "Stemmer", "onnxruntime", "onnx", "tokenizers"), hint="pip it",
            ),
        ),
        packages={f"package-{number}": f"1.{number}" for number in range(30)},
    )  # fmt: skip


def test_nothing_but_paths_is_wider_than_80_columns() -> None:
    lines = render_info(installation(3, 2)).splitlines()
    assert max(map(len, lines)) <= WIDTH
    packages = lines[lines.index("packages:") + 1 :]
    # In columns, each read downwards.
    assert len(packages) < 10
    assert packages[0].startswith("  package-0 1.0 ")
    assert packages[1].startswith("  package-1 1.1 ")
    assert sorted(" ".join(packages).split()[::2]) == sorted(f"package-{n}" for n in range(30))
    assert "  pip it" in "\n".join(lines)


@pytest.mark.parametrize(
    ("counts", "line"),
    [
        ((1, 1), "1 session in 1 workspace, store: jsonl"),
        ((3, 1), "3 sessions in 1 workspace, store: jsonl"),
        ((0, 0), "0 sessions in 0 workspaces, store: jsonl"),
    ],
)
def test_one_is_one(counts: tuple[int, int], line: str) -> None:
    assert line in render_info(installation(*counts)).splitlines()
