"""Tests that use a page run on the browser's thread; each has a server and a browser of its own."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.browser.browser import BrowserThread
from tests.browser.house import House
from tests.browser.vault import write_vault
from tests.browser.vendor import Vendor

_THREAD = pytest.StashKey[BrowserThread]()
_PASSED = pytest.StashKey[bool]()


@pytest.fixture(scope="session")
def browser_thread(request: pytest.FixtureRequest) -> Iterator[BrowserThread]:
    thread = BrowserThread()
    request.config.stash[_THREAD] = thread
    yield thread
    thread.close()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if "browser_thread" not in pyfuncitem.fixturenames:
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    test: Any = pyfuncitem.obj
    pyfuncitem.config.stash[_THREAD].run(partial(test, **arguments))
    pyfuncitem.stash[_PASSED] = True
    return True


@pytest.fixture
def vendor(monkeypatch: pytest.MonkeyPatch) -> Iterator[Vendor]:
    """An emulated vendor, which every target of OpenAI's leads to."""
    vendor = Vendor()
    for name, value in vendor.environment.items():
        monkeypatch.setenv(name, value)
    yield vendor
    vendor.close()


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of notes with an agent, and a place of its own for what is kept."""
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("LAMINA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LAMINA_EMBED", "off")
    folder = tmp_path / "harbour"
    folder.mkdir()
    return write_vault(folder)


@pytest.fixture
def house(
    vault: Path, vendor: Vendor, browser_thread: BrowserThread, request: pytest.FixtureRequest
) -> Iterator[House]:
    """The app's server on the vault, in this process, and the browsers that visit it."""
    house = House(vault, vendor, browser_thread)
    house.start()
    yield house
    try:
        browser_thread.run(partial(house.leave, has_passed=_PASSED in request.node.stash))
    finally:
        house.stop()
