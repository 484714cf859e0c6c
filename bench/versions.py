"""Versions of what a benchmark runs with, and what to install where one of them is missing.

A program asks for the versions of all it compares before it measures anything.
"""

import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


class Missing(SystemExit):
    """A package that is not installed. It ends a program with what to install, as its message."""


def version(name: str) -> str:
    """The version of a package; Lamina's is that of these sources, installed or not.

    Raises:
        Missing: It is not installed.
    """
    if name == "lamina":
        # Peers run in environments without it, too.
        from lamina import __version__

        return __version__
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        raise Missing(f"{name} is not installed in {sys.prefix}: {find_command(name)}") from None


def find_command(name: str) -> str:
    """What installs a package: the first extra of the project that names it, or else its name."""
    extras = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["optional-dependencies"]
    for extra, requirements in extras.items():
        if any(re.split(r"[^\w.-]", line)[0].lower() == name.lower() for line in requirements):
            if extra == "bench":
                # It pins what the tests need in other versions.
                return "`make bench` has an environment with it, .venv-bench"
            return f"python -m pip install -c constraints.txt '.[{extra}]'"
    return f"python -m pip install {name}"
