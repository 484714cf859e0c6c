"""`lamina models`: which models run on this machine, and getting them here."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table

from lamina.errors import ModelMissing
from lamina.providers.local.catalogue import (
    CATALOGUE,
    DEFAULT_MODEL,
    LocalModel,
    bare_name,
    find_entry,
    find_model,
    is_here,
    is_path,
)
from lamina.providers.local.fetching import Progress as Report
from lamina.providers.local.fetching import pull

# Where nothing can be redrawn, a line at each of these shares of a download.
SHARES = (0.25, 0.5, 0.75)


def show_models(as_json: bool) -> str:
    """The catalogue, for machines; or drawn, and nothing to print."""
    if as_json:
        rows = [msgspec.structs.asdict(model) | _place(model) for model in CATALOGUE.values()]
        return msgspec.json.format(msgspec.json.encode(rows), indent=2).decode()
    table = Table(box=None)
    for heading in ("name", "model", "size", "licence", "context", "here"):
        numeric = heading in ("size", "context")
        table.add_column(heading, justify="right" if numeric else "left", no_wrap=True)
    for model in CATALOGUE.values():
        table.add_row(
            model.name,
            model.title,
            _megabytes(model.size),
            model.licence,
            f"{model.context:,}",
            "yes" if is_here(model) else "no",
        )
    console = Console()
    console.print(table)
    console.print(
        f"\nGet one: lamina models pull {DEFAULT_MODEL}; then it is local:{DEFAULT_MODEL}."
    )
    console.print("Any other GGUF chat model is used by its path: local:~/models/mine.gguf")
    return ""


def _place(model: LocalModel) -> dict[str, str | None]:
    return {"target": f"local:{model.name}", "path": str(model.path) if is_here(model) else None}


async def pull_model(name: str, console: Console, source: Path | None, verify: bool) -> Path:
    """Gets a model, drawing how far it is.

    Raises:
        ModelMissing: it could not be had.
    """
    name = bare_name(name)
    if is_path(name) and name not in CATALOGUE:
        raise ModelMissing(
            f"{name!r} is a path: such a model is used where it is, as local:{name}; "
            f"what can be pulled: {', '.join(CATALOGUE)}"
        )
    model = find_entry(name)
    with _drawn(model, console) as report:
        return await pull(name, progress=report, source=source, verify=verify)


async def ensure_model(name: str, console: Console) -> Path:
    """The file of a model, pulled before the person's eyes if the catalogue has it and this
    machine does not.

    Raises:
        ModelMissing: it could not be had.
    """
    try:
        return find_model(name)
    except ModelMissing:
        if bare_name(name) not in CATALOGUE:
            raise
    return await pull_model(name, console, None, False)


@contextmanager
def _drawn(model: LocalModel, console: Console) -> Iterator[Report]:
    if not console.is_terminal:
        yield _Lines(model, console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        tasks: dict[int, TaskID] = {}

        def report(done: int, total: int) -> None:
            if total not in tasks:
                step = "unpacking" if total == model.size else "fetching"
                tasks[total] = progress.add_task(f"{step} {model.name}", total=total)
            progress.update(tasks[total], completed=done)

        yield report


class _Lines:
    """A few plain lines instead of a bar."""

    def __init__(self, model: LocalModel, console: Console) -> None:
        self._model = model
        self._console = console
        self._said: set[str] = set()

    def __call__(self, done: int, total: int) -> None:
        if total == self._model.size:
            self._say(f"unpacking {self._model.name} ({_megabytes(total)})")
            return
        self._say(f"fetching {self._model.name} ({_megabytes(total)}) with pip")
        reached = [share for share in SHARES if done >= share * total]
        if reached and done < total:
            self._say(f"  {reached[-1]:.0%}")

    def _say(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self._console.print(line, highlight=False, soft_wrap=True)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB"
