"""The README's example without `await`, run as it stands through the vendor's own SDK."""

from pathlib import Path

import pytest
from tests.docs.test_readme import chat_server, find_block


def test_a_script_asks_as_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "api-docs.md").write_text("POST /login\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with chat_server() as (address, bodies):
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        find_block("def ask_in_a_script")["ask_in_a_script"]()
    assert capsys.readouterr().out.startswith("Answer 1. Usage(")
    assert "POST /login" in bodies[0]["messages"][-1]["content"]
