"""The outermost group of commands.

Law: an option of its own that stands behind a command is answered with where it belongs.
"""

from itertools import takewhile
from typing import Any

import typer
from typer.core import TyperGroup


class CommandGroup(TyperGroup):
    """Commands below options that go before all of them."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        own = {option for parameter in self.params for option in parameter.opts}
        command, *words = args
        for word in takewhile(lambda word: word != "--", words):
            if word in own:
                place = f"lamina {word} {command}"
                raise typer.BadParameter(f"{word} stands before the command: {place} ...", ctx=ctx)
        return super().resolve_command(ctx, args)
