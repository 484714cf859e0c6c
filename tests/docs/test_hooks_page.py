"""What docs/hooks.md shows is run as it stands."""

import io
import re
import sys
from pathlib import Path

import pytest
from tests.apps.cli.inside import lamina, output
from tests.apps.cli.test_ask_modes import ClientsFake
from tests.fakes.providers import ProviderFake, saying

PAGE = (Path(__file__).parents[2] / "docs" / "hooks.md").read_text("utf-8")
_, FILE, WAITING = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("LAMINA_EMBED", "off")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "plan.md").write_text("The pier opens in May.", "utf-8")
    (folder / "hooks.py").write_text(FILE, "utf-8")
    return folder


def test_the_file_of_the_page_does_what_the_page_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = ProviderFake(saying("Call 555-1234 in May."))
    monkeypatch.setattr(
        "lamina.apps.views.session_opener.Clients", lambda **_: ClientsFake(provider)
    )
    code, out, err = lamina(
        "ask", "When does the pier open?", "-a", "plan.md", "--hooks", "hooks.py", "--trust",
        "-m", "openai:gpt-4o", cwd=folder,
    )  # fmt: skip
    assert (code, out) == (0, "Call ***-1234 in May.\n")
    assert "5 words attached (by hooks.count_words)" in err
    assert "waiting for hook hooks.hide_numbers" in err
    assert "Attached notes have 5 words." in provider.bodies[0]["messages"][0]["content"]


def test_the_preview_of_the_page_has_the_hooks_in_it(folder: Path) -> None:
    shown = output(
        "context", "When?", "-a", "plan.md", "--hooks", "hooks.py", "--trust",
        "-m", "openai:gpt-4o", cwd=folder,
    )  # fmt: skip
    assert "### 5 words attached" in shown
    assert "Attached notes have 5 words." in shown


def test_every_option_and_event_that_the_page_names_is_there() -> None:
    import lamina.types as types

    for name in ("AnswerHeld", "AnswerChanged", "HookShown"):
        assert name in PAGE
        assert hasattr(types, name)
    compile(WAITING, "hooks.md", "exec")
