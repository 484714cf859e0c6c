"""Commands about what every session is told of a person."""

from typing import Annotated

import anyio
import typer

from lamina.cli.terminal_text import visible

app = typer.Typer()
memory = typer.Typer(
    help="What every chat is told of you: a file that becomes one part of the system prompt.",
    invoke_without_command=True,
)
app.add_typer(memory, name="memory")


@memory.callback()
def show(context: typer.Context) -> None:
    """Show what every chat is told of you, and add to it.

    A Markdown file of your own (LAMINA_MEMORY, or memory.md in the data folder); edit it with
    whatever you like. A change moves the prompt once, with the next question, and says so.
    """
    if context.invoked_subcommand is None:
        typer.echo(anyio.run(_show), nl=False)


@memory.command()
def add(
    text: Annotated[list[str], typer.Argument(help="What is to be remembered.")],
) -> None:
    """Remember one thing more."""
    from lamina.wiring.workspaces import memory_file

    file = memory_file()
    added = anyio.run(file.add, " ".join(text))
    typer.echo("remembered" if added else "it is remembered already")


@memory.command()
def forget(
    number: Annotated[int, typer.Argument(help="Its number, as `lamina memory` shows it.")],
) -> None:
    """Forget one thing."""
    from lamina.wiring.workspaces import memory_file

    gone = anyio.run(memory_file().forget, number)
    typer.echo(f"forgotten: {visible(gone)}")


@memory.command()
def path() -> None:
    """Say where the file is."""
    from lamina.wiring.workspaces import memory_file

    typer.echo(str(memory_file().path))


async def _show() -> str:
    from lamina.wiring.workspaces import memory_file

    file = memory_file()
    held = await file.lines()
    if not held:
        return f"nothing is remembered; `lamina memory add TEXT` does, or edit {file.path}\n"
    lines = [f"{line.number:>3}  {visible(line.text)}" for line in held]
    return "\n".join([*lines, f"\n{file.path}", ""])
