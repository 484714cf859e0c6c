"""Runs the commands of the chat. `command_table` says what they are called with, and the modules
beside this one what they do."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from lamina.cli.chat.slash import attachments, session, settings
from lamina.cli.chat.slash.arguments import list_arguments
from lamina.cli.chat.slash.command_table import ALIASES, COMMANDS, similar_commands
from lamina.cli.chat.views import show_help
from lamina.errors import UsageError

if TYPE_CHECKING:
    from lamina.cli.chat.chat import Chat


async def show_commands(chat: "Chat", _: str) -> None:
    chat.screen.show(show_help())


async def leave(chat: "Chat", _: str) -> None:
    chat.leaving = True


# Each gets the text behind the name.
HANDLERS: dict[str, Callable[["Chat", str], Awaitable[None]]] = {
    **attachments.HANDLERS,
    **session.HANDLERS,
    **settings.HANDLERS,
    "help": show_commands,
    "quit": leave,
}


class SlashCommands:
    def __init__(self, chat: "Chat") -> None:
        self._chat = chat

    async def run(self, line: str) -> None:
        """Does what a line that begins with a slash says.

        Raises:
            UsageError: there is no such command, or it is called otherwise.
        """
        name, _, rest = line[1:].strip().partition(" ")
        name, rest = ALIASES.get(name, name), rest.strip()
        if name not in COMMANDS:
            suggestion = " or ".join(f"/{command}" for command in similar_commands(name))
            hint = f"did you mean {suggestion}?" if suggestion else "/help lists them."
            raise UsageError(f"no command /{name}; {hint} // sends a message that begins with /")
        if rest and not COMMANDS[name].usage:
            raise UsageError(f"/{name} takes nothing behind it")
        await HANDLERS[name](self._chat, rest)

    def arguments(self, name: str, words: list[str]) -> Iterable[tuple[str, str]]:
        """What may stand at the last of `words`, with what it is; for completion."""
        return list_arguments(self._chat, name, words)
