"""Defines agents with their rules, references, tools and memory, and the parts that take effect
only after a person trusts the folder they came from."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from msgspec import Struct

from lamina.core.values.item import Include, Item, ItemId, item_id, tool_id
from lamina.core.values.tool import translate_server_terms

GuideKind = Literal["rule", "reference"]
# Represents all tools of a server, in place of a tool name.
EVERY_TOOL = "*"
LOWEST_LEVEL, HIGHEST_LEVEL, DEFAULT_LEVEL = 0, 999, 500


class Guide(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rule or a reference. `level` orders guides of one kind (lower numbers first); it does not
    decide what is dropped when space is short. A guide with `globs` joins when a matching path is
    attached. `place` is its location for people: a file and a line."""

    kind: GuideKind
    name: str
    text: str
    description: str = ""
    level: int = DEFAULT_LEVEL
    include: Include = "manual"
    globs: tuple[str, ...] = ()
    place: str = ""

    @property
    def id(self) -> ItemId:
        """Its item id."""
        return item_id(self.kind, self.name)

    def item(self) -> Item:
        """The guide as an item to send."""
        # The description is for people; the model receives the text.
        return Item(id=self.id, content=self.text, title=self.description)


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem in an agent file. After a `warning` everything still works; after an `error` the
    named part could not be used as written."""

    path: str
    problem: str
    line: int | None = None
    level: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        return f"{self.path}{f':{self.line}' if self.line else ''}: {self.problem}"


class AgentChange(Struct, frozen=True, kw_only=True):
    """A difference between a session and the current files of its agent. `here` is the include mode
    in the session, None if the item is new; `now` is the mode in the files, None if the item is
    gone. `tool:SERVER/*` represents all tools of a server."""

    item: ItemId
    here: Include | None
    now: Include | None

    @property
    def detail(self) -> str:
        """The difference in words."""
        if self.here is None:
            return f"{self.item} is new in the agent's files (include: {self.now})"
        if self.now is None:
            return f"{self.item} is gone from the agent's files (include here: {self.here})"
        return f"{self.item} is {self.now} in the agent's files, and {self.here} in this session"


class Guides(Struct, frozen=True, kw_only=True):
    """The current rules and references, and any problems found in them. `tool_modes` are the
    include modes of tools in the agent's files. For a session, `changes` are its differences from
    the files; `gone` says why the files can no longer be read."""

    guides: tuple[Guide, ...] = ()
    problems: tuple[Problem, ...] = ()
    tool_modes: dict[ItemId, Include] = {}
    changes: tuple[AgentChange, ...] = ()
    gone: str = ""


class Project(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent's project, with its own system prompt and context in L1."""

    name: str
    prompt: str = ""
    context: str = ""


class Skill(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent's skill. Its text is a reference of the same name; its other files are in `folder`
    and are read on request. `tools` are those its author lists as required."""

    name: str
    description: str = ""
    folder: str = ""
    license: str = ""
    compatibility: str = ""
    tools: tuple[str, ...] = ()
    metadata: dict[str, str] = {}
    # From the author: the argument hint, whether a model may choose it without being asked, and
    # whether people see it.
    argument_hint: str = ""
    model_invocable: bool = True
    user_invocable: bool = True
    # Frontmatter keys that have no effect here, and other folders that link to this one.
    unused: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


class Agent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent as stored on disk. `settings` and `options` are its values for those, checked and
    named as in `Settings` and `Options`; `servers` is an `mcpServers` object as written, with
    include modes and permissions translated to our terms."""

    name: str
    description: str = ""
    version: str = ""
    model: str = ""
    persona: str = ""
    memory: str = ""
    settings: dict[str, Any] = {}
    options: dict[str, Any] = {}
    guides: tuple[Guide, ...] = ()
    servers: dict[str, Any] = {}
    projects: tuple[Project, ...] = ()
    skills: tuple[Skill, ...] = ()
    # The items that a chosen item brings along, by id: `tool:fs/read_file` brings others.
    relations: dict[str, tuple[str, ...]] = {}
    problems: tuple[Problem, ...] = ()
    # Information that is not a problem: items left out because they are already present, and
    # foreign settings that have no meaning here.
    notes: tuple[str, ...] = ()
    # Whether its author wants it to work without asking for permission.
    autonomous: bool = False
    # The folder or file it was read from, and the folder through which all its files are opened.
    place: str = ""
    root: str = ""


def tool_modes(servers: Mapping[str, Any]) -> dict[ItemId, Include]:
    """Return the include modes set by an `mcpServers` object: for all tools of a server, under the
    id `tool:SERVER/*`, and for single tools. Disabled or unreadable entries have none."""
    modes: dict[ItemId, Include] = {}
    for server, entry in servers.items():
        if not isinstance(entry, Mapping) or entry.get("disabled"):
            continue
        entry = translate_server_terms(entry)
        modes[tool_id(server, EVERY_TOOL)] = _read_include(entry) or "always"
        tools = entry.get("tools")
        for name, terms in tools.items() if isinstance(tools, Mapping) else ():
            if isinstance(terms, Mapping) and (include := _read_include(terms)):
                modes[tool_id(server, name)] = include
    return modes


def _read_include(terms: Mapping[str, Any]) -> Include | None:
    include = terms.get("include")
    return include if include in get_args(Include) else None


# A caller's trust in a folder: None to use the recorded decision; True to trust everything in its
# current state; or the digest of the trusted state.
Trust = bool | str


class NamedFile(Struct, frozen=True, kw_only=True):
    """A file named by a server command, with the digest of its content. `digest` is a word in
    brackets if the file could not be read."""

    server: str
    path: str
    digest: str


class Claims(Struct, frozen=True, kw_only=True):
    """An agent's requests beyond text: servers as written, settings that loosen protections, and
    the model to use; for a hooks file, the file itself. `place` is its real path, `digest` covers
    all of this, and `lines` are shown to a person. `problem` says why the claims cannot be
    determined."""

    place: str
    digest: str
    servers: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    model: str = ""
    files: tuple[NamedFile, ...] = ()
    hooks: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    problem: str = ""

    @property
    def is_empty(self) -> bool:
        return not (self.servers or self.settings or self.model or self.hooks)


class TrustRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person's decision to trust: the trusted digest, the lines they were shown, and the time
    (seconds since 1970)."""

    digest: str
    lines: tuple[str, ...] = ()
    at: float = 0.0
