"""A folder, a vendor and a server for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.apps.web.served_house import ServedHouse
from tests.browser.vendor import Vendor

NOTES = {
    "plan.md": "# Plan\n\nThe pier opens in May.\n",
    "sea/tides.md": "# Tides\n\nLow tide is at noon.\n\n## Berths\n\nThe north quay has nine.\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("LAMINA_EMBED", "off")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "harbour"
    for path, text in NOTES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    (tmp_path / "home").mkdir()
    return folder


@pytest.fixture
def vendor(monkeypatch: pytest.MonkeyPatch) -> Iterator[Vendor]:
    vendor = Vendor()
    for name, value in vendor.environment.items():
        monkeypatch.setenv(name, value)
    yield vendor
    vendor.close()


@pytest.fixture
def house(folder: Path, vendor: Vendor) -> Iterator[ServedHouse]:
    house = ServedHouse(folder, vendor).start()
    yield house
    house.vendor.release()
    house.stop()
