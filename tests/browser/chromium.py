"""The browser of the tests: `$CHROMIUM`, else one on PATH, else, as root on Debian, installed.

Needs nothing but the standard library: `make test` asks it before it sets anything up, and stops if
there is no browser.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

VARIABLE = "CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
INSTALL = ("apt-get", "install", "--yes", "--no-install-recommends", "chromium", "fonts-liberation")
HINT = (
    "The tests of the web app need Chromium. Install it, and say where it is if not on PATH:\n"
    "    sudo apt-get install chromium        (Debian, Ubuntu)\n"
    "    make test CHROMIUM=/path/to/chromium"
)
# What a browser does on its own has no place in a test; QUIC and the rest want a network.
ARGUMENTS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    # Names of other people that lead to this machine: what an attacker's own name server would say.
    "--host-resolver-rules=MAP *.example 127.0.0.1",
    # Frame times and heaps are read by the benchmark and the test of long sessions.
    "--enable-precise-memory-info",
)


def find() -> Path | None:
    """The browser that is here, if one is.

    Raises:
        SystemExit: `$CHROMIUM` names something that is not a program.
    """
    if named := os.environ.get(VARIABLE):
        if (path := shutil.which(named)) is None:
            sys.exit(f"{VARIABLE}={named} is no program that can be run.\n{HINT}")
        return Path(path)
    return next((Path(path) for name in NAMES if (path := shutil.which(name))), None)


def launch_arguments() -> list[str]:
    """Root has no sandbox to offer."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    return [*ARGUMENTS, *(["--no-sandbox"] if is_root else [])]


def ensure() -> Path:
    """The browser, installed if it can be."""
    if path := find():
        return path
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    if not (is_root and Path("/etc/debian_version").is_file() and shutil.which("apt-get")):
        sys.exit(HINT)
    print("Installing Chromium, once", flush=True)  # noqa: T201
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (("apt-get", "update", "--quiet"), INSTALL):
        done = subprocess.run(command, env=quiet, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{done.stderr}\n{' '.join(command)} failed.\n{HINT}")
    if (path := find()) is None:
        sys.exit(HINT)
    return path


if __name__ == "__main__":
    ensure()
