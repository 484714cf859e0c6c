"""Commands about money."""

from typing import Annotated, Literal

import typer

from lamina.apps.cli.flags import AsJson
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.outcome import refuse_if

app = typer.Typer()
spend_app = typer.Typer(invoke_without_command=True)
app.add_typer(spend_app, name="spend")


@spend_app.callback()
def spend(
    context: typer.Context,
    by: Annotated[
        Literal["day", "model", "session"], typer.Option("--by", help="What to sum up by.")
    ] = "day",
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="DAY",
            help="The first day: as 2026-11-17, today, 7d or 4w. By default the last 30 days.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="From the first day on.")] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Show what was spent, in all workspaces, and what is reserved.

    Every answer is written down with what it cost. Under a limit (spend_turn,
    spend_session, spend_day, or LAMINA_SPEND_DAY for all sessions) the upper
    price of a request is reserved before it is sent; an answer that never came
    stays reserved until `spend clear` frees it.
    """
    if (command := context.invoked_subcommand) is not None:
        is_given = by != "day" or since is not None or everything or as_json
        refuse_if(is_given, f"options stand behind the command: lamina spend {command} ...")
        return
    refuse_if(since is not None and everything, "--since and --all exclude one another")
    from functools import partial

    from lamina.apps.cli.spending_command import show_spending

    run_async(partial(show_spending, by, since, everything=everything, as_json=as_json))


@spend_app.command()
def clear(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID", help="What is freed: ids from `lamina spend`."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that is reserved.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Free what is reserved for answers that never came.

    Shows it, and asks. Look at your vendor's bill first: a request may be charged for although no
    answer came. Whatever still comes in is counted all the same.
    """
    from lamina.apps.cli.spending_command import clear_reserved, find_reserved

    refuse_if(not names and not everything, "name what is to be freed, or give --all")
    refuse_if(names and everything, "ids and --all exclude one another")
    entries = run_async(find_reserved, names or [], everything)
    if not entries:
        typer.echo("nothing is reserved")
        return
    if not yes:
        typer.confirm("Free it?", abort=True, err=True)
    typer.echo(run_async(clear_reserved, entries))
