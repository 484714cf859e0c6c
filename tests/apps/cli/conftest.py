"""What tests of several commands share."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of notes, with a home of its own for sessions: where they are kept by default."""
    for name in ("LAMINA_DATA", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    settings = {"HOME": str(tmp_path / "home"), "TZ": "UTC", "COLUMNS": "100", "NO_COLOR": "1"}
    with monkeypatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        time.tzset()
        folder = tmp_path / "notes"
        folder.mkdir()
        (folder / "plan.md").write_text("# Plan\n\nThe pier opens in May.\n", "utf-8")
        yield folder
    time.tzset()
