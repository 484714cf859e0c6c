"""Commands about what every session is told about a person."""

from typing import Annotated

import typer

from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.terminal_text import print_text, visible
from lamina.apps.wiring.folders import memory_file

app = typer.Typer(
    name="memory",
    help="What every chat is told about you: a file that becomes a part of the system prompt.",
    invoke_without_command=True,
)


@app.callback()
def show(context: typer.Context) -> None:
    """Show what every chat is told about you, and add to it.

    It is a Markdown file of your own (LAMINA_MEMORY, or memory.md in the data folder); edit it with
    whatever you like. A change moves the prompt once, with the next question, and says so.
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
        print_text(f"nothing is remembered; `lamina memory add TEXT` does, or edit {file.path}")


@app.command()
def add(text: Annotated[list[str], typer.Argument(help="What to remember.")]) -> None:
    """Remember one more thing."""
    is_new = run_async(memory_file().add, " ".join(text))
    typer.echo("remembered" if is_new else "it is remembered already")


@app.command()
def forget(
    number: Annotated[int, typer.Argument(help="Its number, as `lamina memory` shows it.")],
) -> None:
    """Forget one thing."""
    print_text(f"forgotten: {visible(run_async(memory_file().forget, number))}")


@app.command()
def path() -> None:
    """Print where the file is."""
    typer.echo(str(memory_file().path))
