"""`lamina memory`: what every session knows about a person."""

from typing import Annotated

import typer

from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.terminal_text import print_text, visible
from lamina.apps.wiring.folders import memory_file

app = typer.Typer(
    name="memory",
    help="Manage what every chat knows about you: a file that is part of the system prompt.",
    invoke_without_command=True,
)


@app.callback()
def show(context: typer.Context) -> None:
    """Show what every chat knows about you, and add to it.

    It is your own Markdown file (LAMINA_MEMORY, or memory.md in the data folder); edit it with any
    editor. A change moves the prompt once, with the next question, and is reported.
    """
    if context.invoked_subcommand is not None:
        return
    file = memory_file()
    lines = run_async(file.lines)
    for line in lines:
        print_text(f"{line.number:>3}  {visible(line.text)}")
    if lines:
        typer.echo(f"\n{file.path}")
    else:
        print_text(f"no memories yet; add one with `lamina memory add TEXT`, or edit {file.path}")


@app.command()
def add(text: Annotated[list[str], typer.Argument(help="What to remember.")]) -> None:
    """Remember one more thing."""
    is_new = run_async(memory_file().add, " ".join(text))
    typer.echo("remembered" if is_new else "already remembered")


@app.command()
def forget(
    number: Annotated[int, typer.Argument(help="Its number in `lamina memory`.")],
) -> None:
    """Forget one thing."""
    print_text(f"forgotten: {visible(run_async(memory_file().forget, number))}")


@app.command()
def path() -> None:
    """Print the file's path."""
    typer.echo(str(memory_file().path))
