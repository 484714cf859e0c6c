"""Versions of what a benchmark runs with. Lamina's is that of these sources, installed or not."""

from importlib import metadata

from lamina import __version__


def version(name: str) -> str:
    return __version__ if name == "lamina" else metadata.version(name)
