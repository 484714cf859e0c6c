"""The commands of the chat by name: what they are called with, and what they do."""

from difflib import get_close_matches

from msgspec import Struct


class SlashCommand(Struct, frozen=True):
    name: str
    usage: str
    about: str
    # Whether its arguments are paths of the workspace.
    takes_paths: bool = False
    # Whether all that stands behind it is one name, spaces and all.
    takes_name: bool = False


MEMBER = "rule:NAME|ref:NAME|tool:SERVER/NAME"
_ALL = (
    SlashCommand("context", "[--full]", "what the last request was made of, and why"),
    SlashCommand("why", "[N]", "which rules, references and tools question N was answered with"),
    SlashCommand(
        "attach",
        "[--essential] REFERENCE...",
        "attach to what follows: a path or name, folder/, #tag, note.md#L3-L9, a URL",
        True,
    ),
    SlashCommand("detach", "[REFERENCE...|all]", "attach it no longer"),
    SlashCommand("active", "[NOTE|none]", "the note you have open: its pictures go along", True),
    SlashCommand("search", "QUERY", "what the notes of this workspace have on it", takes_name=True),
    SlashCommand("refresh", "", "show the model what changed in files since it saw them"),
    SlashCommand(
        "remember",
        "[TEXT]",
        "tell it to every session from now on; what is told already",
        takes_name=True,
    ),
    SlashCommand("pin", "[PATH...]", "keep it in every request, whatever has to go", True),
    SlashCommand("unpin", "PATH...", "take the pin away"),
    SlashCommand(
        "items",
        "[adopt]",
        "rules, references and tools of this session, and what can be added; adopt takes over "
        "what changed in the agent's files",
    ),
    SlashCommand("add", MEMBER, "let it apply to every message", takes_name=True),
    SlashCommand("remove", MEMBER, "keep it out, also of search", takes_name=True),
    SlashCommand("compact", "", "let older messages give way to a summary, now"),
    SlashCommand("tree", "", "the questions asked, with their branches"),
    SlashCommand("branch", "ENTRY", "go back to a question and ask it anew"),
    SlashCommand(
        "edit", "[ENTRY] [TEXT]", "ask a question otherwise in its place, the last one by default"
    ),
    SlashCommand(
        "regenerate",
        "[ENTRY] [PROVIDER:MODEL]",
        "ask for an answer again, the last one by default; the other one stays in the tree",
    ),
    SlashCommand("label", "ENTRY [TEXT]", "give a question a name in the tree"),
    SlashCommand("resume", "", "go on with a turn that was left in the middle"),
    SlashCommand("model", "[PROVIDER:MODEL]", "who answers; or let another model answer"),
    SlashCommand(
        "settings",
        "[NAME VALUE]",
        "all settings; or change one (or to none), as guide_search.top_n 3",
    ),
    SlashCommand("tools", "", "what the model may call, and what is withheld"),
    SlashCommand("name", "[TEXT]", "give this session a name"),
    SlashCommand("log", "[COUNT]", "the last entries of the journal"),
    SlashCommand("help", "", "this list"),
    SlashCommand("quit", "", "leave; the session is kept"),
)
COMMANDS = {command.name: command for command in _ALL}
ALIASES = {"set": "settings", "retry": "regenerate", "exit": "quit", "q": "quit", "?": "help"}


def similar_commands(name: str) -> list[str]:
    """The commands that may have been meant."""
    completions = [command for command in COMMANDS if name and command.startswith(name)]
    return completions or get_close_matches(name, COMMANDS, n=3, cutoff=0.5)


def usage_of(name: str) -> str:
    return f"use it as /{name} {COMMANDS[name].usage}"
