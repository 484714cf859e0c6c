"""`lamina info`: what is here, and where."""

import json
from pathlib import Path

import pytest
from tests.cli.inside import output
from tests.cli.test_session_commands import ask_twice, keep

from lamina.extras import REQUIREMENTS
from lamina.wiring.folders import data_folder


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
    assert (
        "chat       the embedded model, typing at a terminal: missing (xllamacpp): "
        "pip install 'lamina-context[chat]'"
    ) in lines
    assert "search     search, search by meaning: here" in lines
