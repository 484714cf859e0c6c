"""`lamina info`: what is installed, where data is stored, and how large it is.

Laws: keys are named by their variable; their values are never shown. Paths and commands are never
wrapped, so that they can be copied; everything else fits 80 columns.
"""

import os
import platform
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import typer
from msgspec import Struct

from lamina import __version__
from lamina.adapters.files.cache_folder import cache_folder, models_folder, slots_folder
from lamina.adapters.files.extras import DISTRIBUTION, REQUIREMENTS, install_hint, missing_modules
from lamina.adapters.providers.model_book import load_book
from lamina.apps.cli.flags import AsJson, SessionWorkspace
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.terminal_text import format_bytes, visible
from lamina.apps.views.plain_text import format_json
from lamina.apps.wiring import default_target
from lamina.apps.wiring.agent_finder import agent_folders
from lamina.apps.wiring.clients import key_names
from lamina.apps.wiring.folders import data_folder, memory_file
from lamina.apps.wiring.index import search_index_path
from lamina.apps.wiring.stores import list_stores, store_name, store_place
from lamina.errors import LaminaError

app = typer.Typer()

_NAME = re.compile(r"[A-Za-z0-9._-]+")


class Place(Struct, frozen=True, kw_only=True):
    """Something stored on this machine; `bytes` is None if there is nothing yet."""

    what: str
    path: str
    bytes: int | None = None


class InstalledExtra(Struct, frozen=True, kw_only=True):
    """An extra: what it is for, what is missing, and how to install it."""

    extra: str
    uses: tuple[str, ...]
    missing: tuple[str, ...] = ()
    hint: str = ""


class Installation(Struct, frozen=True, kw_only=True):
    """The contents of `lamina info`."""

    lamina: str
    python: str
    platform: str
    # The Python environment.
    environment: str
    target: str
    # The kind of store for sessions.
    store: str
    places: tuple[Place, ...]
    workspaces: int
    sessions: int
    # Stores that cannot be read and are not counted.
    problems: tuple[str, ...] = ()
    # Environment variables that contain keys.
    keys: tuple[str, ...]
    extras: tuple[InstalledExtra, ...]
    # Versions of Lamina's installed requirements, by distribution.
    packages: dict[str, str]


async def describe_installation(workspace: Path) -> Installation:
    """Describe this installation, as seen from a workspace."""
    counts: list[int] = []
    problems: list[str] = []
    for listed in list_stores():
        try:
            counts.append(len(await listed.store.sessions()))
        except LaminaError as error:
            problems.append(str(error))
    return Installation(
        lamina=__version__,
        python=platform.python_version(),
        platform=platform.platform(),
        environment=sys.prefix,
        target=default_target(),
        store=store_name(),
        places=_places(workspace),
        workspaces=sum(count > 0 for count in counts),
        sessions=sum(counts),
        problems=tuple(problems),
        keys=tuple(name for name in _key_names() if os.environ.get(name, "").strip()),
        extras=tuple(_extras()),
        packages=_packages(),
    )


def _places(workspace: Path) -> tuple[Place, ...]:
    own_agents = dict(agent_folders(workspace))["user"]
    book = os.environ.get("LAMINA_MODELS")
    paths = {
        "data": data_folder(),
        "sessions of this workspace": store_place(workspace),
        "search index": search_index_path(),
        "memory": memory_file().path,
        "own agents": own_agents,
        "cache": cache_folder(),
        "models": models_folder(),
        "slots of the embedded model": slots_folder(),
        **({"models file": Path(book)} if book else {}),
    }
    return tuple(
        Place(what=what, path=str(path), bytes=_size(path)) for what, path in paths.items()
    )


def _size(path: Path) -> int | None:
    """The size in bytes of a file, or of all files below a folder."""
    if not path.exists():
        return None
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.lstat().st_size for file in files if file.is_file())


def _key_names() -> list[str]:
    book = load_book()
    targets = (book.find(name) for name in book.names() if not name.startswith("local:"))
    return list(dict.fromkeys(name for target in targets for name in key_names(target)))


def _extras() -> list[InstalledExtra]:
    extras = []
    for extra in dict.fromkeys(requirement.extra for requirement in REQUIREMENTS.values()):
        needs = [need for need, what in REQUIREMENTS.items() if what.extra == extra]
        missing = dict.fromkeys(name for need in needs for name in missing_modules(need))
        extras.append(
            InstalledExtra(
                extra=extra,
                uses=tuple(dict.fromkeys(REQUIREMENTS[need].noun for need in needs)),
                missing=tuple(missing),
                hint=install_hint(*needs) if missing else "",
            )
        )
    return extras


def _packages() -> dict[str, str]:
    """Versions of the distribution's requirements; empty if it is not installed as one."""
    packages: dict[str, str] = {}
    try:
        wanted = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return packages
    for requirement in wanted:
        # Requirements for development only are left out.
        if re.search(r"extra == .(dev|bench|all)", requirement):
            continue
        if (name := _NAME.match(requirement)) and name[0] != DISTRIBUTION:
            try:
                packages[name[0]] = version(name[0])
            except PackageNotFoundError:
                continue
    return dict(sorted(packages.items(), key=lambda pair: pair[0].lower()))


WIDTH = 80
GAP = 2


def render_info(info: Installation) -> str:
    return visible("\n".join(_lines(info)))


def _lines(info: Installation) -> Iterator[str]:
    yield _fold(f"lamina {info.lamina}, Python {info.python}, {info.platform}")
    yield f"installed in {info.environment}"
    yield ""
    width = max(len(place.what) for place in info.places)
    for place in info.places:
        size = "-" if place.bytes is None else format_bytes(place.bytes)
        yield f"{place.what:<{width}}  {size:>9}  {place.path}"
    yield ""
    sessions, workspaces = _count(info.sessions, "session"), _count(info.workspaces, "workspace")
    yield f"{sessions} in {workspaces}, store: {info.store}"
    yield from (f"! not counted: {problem}" for problem in info.problems)
    yield f"default target: {info.target}"
    yield _fold(f"keys in the environment: {', '.join(info.keys) or 'none'}", indent=2)
    yield ""
    width = max(len(extra.extra) for extra in info.extras) + GAP
    for extra in info.extras:
        state = f"missing {', '.join(extra.missing)}" if extra.missing else "installed"
        yield _fold(f"{extra.extra:<{width}}{', '.join(extra.uses)}: {state}", indent=width)
        if extra.hint:
            yield f"{'':<{width}}{extra.hint}"
    if info.packages:
        yield "\npackages:"
        yield from _arrange([f"{name} {number}" for name, number in info.packages.items()])


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _fold(line: str, indent: int = 0) -> str:
    return textwrap.fill(
        line, WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False, break_long_words=False,
    )  # fmt: skip


def _arrange(cells: Sequence[str]) -> Iterator[str]:
    """The cells in columns, read downwards."""
    width = max(map(len, cells)) + GAP
    columns = max(1, WIDTH // width)
    rows = -(-len(cells) // columns)
    for row in range(rows):
        yield "".join(f"  {cell:<{width - GAP}}" for cell in cells[row::rows]).rstrip()


@app.command()
def info(workspace: SessionWorkspace = Path(), as_json: AsJson = False) -> None:
    """Show where data is stored and how large it is, versions, and what is missing.

    Keys are named but never shown.
    """
    installation = run_async(describe_installation, workspace)
    typer.echo(format_json(installation) if as_json else render_info(installation))
