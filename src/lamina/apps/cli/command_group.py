"""Commands and groups of them, as Typer is told to make them.

Laws: an option of the outermost group that stands behind a command is answered with where it
belongs. In the help a flag stands alone: it takes no value, so none is named behind it.
"""

from itertools import takewhile
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class PlainCommand(TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_values(super().get_params(ctx))


class PlainGroup(TyperGroup):
    """Commands under one name."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_values(super().get_params(ctx))


def _without_values(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


class CommandGroup(PlainGroup):
    """Commands below options that go before all of them."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        own = {option for parameter in self.params for option in parameter.opts}
        command, *words = args
        for word in takewhile(lambda word: word != "--", words):
            if word in own:
                place = f"lamina {word} {command}"
                raise typer.BadParameter(f"{word} stands before the command: {place} ...", ctx=ctx)
        return super().resolve_command(ctx, args)
