"""Empty environments into which the built wheel is installed, as a stranger would install it."""

import os
import subprocess
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path
from venv import EnvBuilder

from msgspec import Struct

from lamina.adapters.files.extras import DISTRIBUTION

ROOT = Path(__file__).parents[2]


class Environment(Struct, frozen=True, kw_only=True):
    """An environment with Lamina in it, and nothing else that it did not bring. What it keeps is
    under `data`, what it fetches under `cache`; it is run in `folder`."""

    place: Path
    data: Path
    cache: Path
    folder: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a program of the environment: nobody is asked, and no index can be reached."""
        kept = {name: os.environ[name] for name in ("SYSTEMROOT", "TEMP") if name in os.environ}
        unreachable = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_CONFIG_FILE": os.devnull}
        own = {
            "HOME": str(self.folder), "LAMINA_DATA": str(self.data),
            "LAMINA_CACHE": str(self.cache), "COLUMNS": "100", "PYTHONIOENCODING": "utf-8",
        }  # fmt: skip
        return subprocess.run(
            [str(self.place / "bin" / command[0]), *command[1:]],
            cwd=self.folder, env=kept | unreachable | own, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, encoding="utf-8", check=False,
        )  # fmt: skip

    def lamina(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run("lamina", *arguments)

    def kept_files(self) -> list[Path]:
        """What it keeps and what it fetched."""
        return [path for place in (self.data, self.cache) for path in sorted(place.rglob("*"))]

    def distributions(self) -> list[Distribution]:
        (packages,) = self.place.glob("lib/python*/site-packages")
        return list(distributions(path=[str(packages)]))

    def names(self) -> set[str]:
        return {dist.metadata["Name"].lower().replace("_", "-") for dist in self.distributions()}

    def size(self) -> int:
        """The bytes of all that is installed, without what Python compiles of it."""
        return sum(
            path.stat().st_size
            for dist in self.distributions()
            for file in dist.files or ()
            if (path := Path(str(dist.locate_file(file)))).suffix != ".pyc" and path.is_file()
        )


def build_wheel(folder: Path) -> Path:
    """The wheel of these sources."""
    _pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path, folder: Path, *extras: str) -> Environment:
    """A new environment with the wheel and these extras in it, at the versions of the constraints
    file."""
    place = folder / "environment"
    EnvBuilder(with_pip=False, symlinks=os.name != "nt").create(place)
    requirement = f"{DISTRIBUTION}[{','.join(extras)}] @ {wheel.as_uri()}"
    _pip(
        "--python", str(place / "bin" / "python"), "install", "--no-compile",
        "--constraint", str(ROOT / "constraints.txt"), requirement,
    )  # fmt: skip
    names = ("data", "cache", "notes")
    data, cache, notes = (folder / name for name in names)
    for path in (data, cache, notes):
        path.mkdir()
    return Environment(place=place, data=data, cache=cache, folder=notes)


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
