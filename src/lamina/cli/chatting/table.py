"""The commands of the chat by name: what they are called with, and what they do."""

from difflib import get_close_matches

from msgspec import Struct


class Command(Struct, frozen=True):
    name: str
    usage: str
    about: str
    # Whether its arguments are paths of the workspace.
    takes_paths: bool = False
    # Whether all that stands behind it is one name, spaces and all.
    takes_name: bool = False


MEMBER = "rule:NAME|ref:NAME|tool:SERVER/NAME"
_ALL = (
    Command("context", "[--full]", "what the last request was made of, and why"),
    Command("why", "[N]", "which rules, references and tools question N was answered with"),
    Command(
        "attach",
        "[--essential] REFERENCE...",
        "attach to what follows: a path or name, folder/, #tag, note.md#L3-L9, a URL",
        True,
    ),
    Command("detach", "[REFERENCE...|all]", "attach it no longer"),
    Command("active", "[NOTE|none]", "the note you have open: its pictures go along", True),
    Command("search", "QUERY", "what the notes of this workspace have on it", takes_name=True),
    Command("refresh", "", "show the model what changed in files since it saw them"),
    Command(
        "remember",
        "[TEXT]",
        "tell it to every session from now on; what is told already",
        takes_name=True,
    ),
    Command("pin", "[PATH...]", "keep it in every request, whatever has to go", True),
    Command("unpin", "PATH...", "take the pin away"),
    Command("items", "", "rules, references and tools of this session, and what can be added"),
    Command("add", MEMBER, "let it apply to every message", takes_name=True),
    Command("remove", MEMBER, "keep it out, also of search", takes_name=True),
    Command("compact", "", "let older messages give way to a summary, now"),
    Command("tree", "", "the questions asked, with their branches"),
    Command("branch", "ENTRY", "go back to a question and ask it anew"),
    Command("label", "ENTRY [TEXT]", "give a question a name in the tree"),
    Command("resume", "", "go on with a turn that was left in the middle"),
    Command("model", "[PROVIDER:MODEL]", "who answers; or let another model answer"),
    Command(
        "settings",
        "[NAME VALUE]",
        "all settings; or change one (or to none), as guide_search.top_n 3",
    ),
    Command("tools", "", "what the model may call, and what is withheld"),
    Command("name", "[TEXT]", "give this session a name"),
    Command("log", "[COUNT]", "the last entries of the journal"),
    Command("help", "", "this list"),
    Command("quit", "", "leave; the session is kept"),
)
COMMANDS = {command.name: command for command in _ALL}
ALSO = {"exit": "quit", "q": "quit", "?": "help"}


def near(name: str) -> list[str]:
    """The commands that may have been meant."""
    begin = [each for each in COMMANDS if name and each.startswith(name)]
    return begin or get_close_matches(name, COMMANDS, n=3, cutoff=0.5)
