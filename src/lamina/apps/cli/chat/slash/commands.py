"""Runs the commands of the chat. `command_table` says what they are called with, and the modules
beside this one what they do."""

from collections.abc import Awaitable, Callable

from lamina.apps.cli.chat.conversation import Conversation
from lamina.apps.cli.chat.slash import attachments, session, settings
from lamina.apps.cli.chat.slash.command_table import ALIASES, COMMANDS, similar_commands
from lamina.apps.cli.chat.views import show_help
from lamina.errors import UsageError


async def show_commands(chat: Conversation, _: str) -> None:
    chat.screen.show(show_help())


async def leave(chat: Conversation, _: str) -> None:
    chat.leaving = True


# Each gets the text behind the name.
HANDLERS: dict[str, Callable[[Conversation, str], Awaitable[None]]] = {
    **attachments.HANDLERS,
    **session.HANDLERS,
    **settings.HANDLERS,
    "help": show_commands,
    "quit": leave,
}


async def run_command(chat: Conversation, line: str) -> None:
    """Does what a line that begins with a slash says.

    Raises:
        UsageError: there is no such command, or it takes other arguments.
    """
    name, _, rest = line[1:].strip().partition(" ")
    name, rest = ALIASES.get(name, name), rest.strip()
    if name not in COMMANDS:
        suggestion = " or ".join(f"/{command}" for command in similar_commands(name))
        hint = f"did you mean {suggestion}?" if suggestion else "/help lists them."
        raise UsageError(f"no command /{name}; {hint} // sends a message that begins with /")
    if rest and not COMMANDS[name].usage:
        raise UsageError(f"/{name} takes nothing behind it")
    await HANDLERS[name](chat, rest)
