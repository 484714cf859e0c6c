"""A clone becomes a wheel with the app in it, on a machine without Node. `make long` runs it, as it
fetches a Node and all that the app is built with."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.packaging.environment import ROOT
from tests.packaging.test_web_app import PAGE


def test_a_clone_is_installed_without_any_node_of_the_system(tmp_path: Path) -> None:
    """From what git has, on a PATH with nothing but a shell."""
    clone, tools = tmp_path / "clone", tmp_path / "tools"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    tools.mkdir()
    (tools / "sh").symlink_to("/bin/sh")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(tmp_path)]
    done = subprocess.run(
        [*command, str(clone)], env=os.environ | {"PATH": str(tools)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert PAGE in zipfile.ZipFile(wheel).namelist()
