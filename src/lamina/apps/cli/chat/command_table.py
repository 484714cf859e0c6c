"""The chat's commands by name: their arguments, and what they do."""

from difflib import get_close_matches

from msgspec import Struct


class SlashCommand(Struct, frozen=True):
    name: str
    usage: str
    about: str
    # Whether its arguments are paths of the workspace.
    takes_paths: bool = False
    # Whether everything after it is one name, spaces included.
    takes_name: bool = False


MEMBER = "rule:NAME|ref:NAME|tool:SERVER/NAME"
_ALL = (
    SlashCommand("context", "[--full]", "show the contents of the last request, and why"),
    SlashCommand("why", "[N]", "show which rules, references and tools answered question N"),
    SlashCommand(
        "attach",
        "[--essential] REFERENCE...",
        "attach to later messages: a path or name, folder/, #tag, note.md#L3-L9, a URL",
        True,
    ),
    SlashCommand("detach", "[REFERENCE...|all]", "stop attaching it"),
    SlashCommand(
        "active", "[NOTE|none]", "set the note you have open; its pictures are sent too", True
    ),
    SlashCommand("search", "QUERY", "search this workspace's notes", takes_name=True),
    SlashCommand("refresh", "", "show the model what has changed in files since it saw them"),
    SlashCommand(
        "remember",
        "[TEXT]",
        "remember this in every session; without text, list memories",
        takes_name=True,
    ),
    SlashCommand("pin", "[PATH...]", "keep it in every request, whatever else is dropped", True),
    SlashCommand("unpin", "PATH...", "remove the pin"),
    SlashCommand(
        "items",
        "[adopt]",
        "list this session's rules, references and tools, and what can be added; adopt applies "
        "changes in the agent's files",
    ),
    SlashCommand("add", MEMBER, "apply it to every message", takes_name=True),
    SlashCommand("remove", MEMBER, "keep it out of the session, and of search", takes_name=True),
    SlashCommand("compact", "", "replace older messages with a summary now"),
    SlashCommand("tree", "", "show the questions, with their branches"),
    SlashCommand("branch", "ENTRY", "go back to a question and ask it again"),
    SlashCommand(
        "edit", "[ENTRY] [TEXT]", "edit a question and ask again; by default the last one"
    ),
    SlashCommand(
        "regenerate",
        "[ENTRY] [PROVIDER:MODEL]",
        "regenerate an answer, by default the last one; the old one stays in the tree",
    ),
    SlashCommand("label", "ENTRY [TEXT]", "give a question a name in the tree"),
    SlashCommand("resume", "", "continue an interrupted turn"),
    SlashCommand("model", "[PROVIDER:MODEL]", "show the model, or switch to another one"),
    SlashCommand(
        "settings",
        "[NAME VALUE]",
        "show all settings, or change one (none unsets it), such as guide_search.top_n 3",
    ),
    SlashCommand("tools", "", "list what the model may call, and what is withheld"),
    SlashCommand("name", "[TEXT]", "give this session a name"),
    SlashCommand("log", "[COUNT]", "show the last entries of the journal"),
    SlashCommand("help", "", "show this list"),
    SlashCommand("quit", "", "leave; the session is kept"),
)
COMMANDS = {command.name: command for command in _ALL}
ALIASES = {"set": "settings", "retry": "regenerate", "exit": "quit", "q": "quit", "?": "help"}


def similar_commands(name: str) -> list[str]:
    """Commands with a similar name."""
    completions = [command for command in COMMANDS if name and command.startswith(name)]
    return completions or get_close_matches(name, COMMANDS, n=3, cutoff=0.5)


def usage_of(name: str) -> str:
    return f"usage: /{name} {COMMANDS[name].usage}"
