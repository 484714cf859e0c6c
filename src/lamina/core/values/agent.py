"""Agents: who answers, by which rules and references, with which tools and memory; and what of
that counts only once a person trusts the folder it came from.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from msgspec import Struct

from lamina.core.values.item import Include, Item, ItemId, item_id, tool_id
from lamina.core.values.tool import translate_server_terms

GuideKind = Literal["rule", "reference"]
# In place of a tool's name, all tools of its server.
EVERY_TOOL = "*"
LOWEST_LEVEL, HIGHEST_LEVEL, DEFAULT_LEVEL = 0, 999, 500


class Guide(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rule or a reference. `level` orders guides of one kind (the lower number first); it says
    nothing of what goes when room is short. With `globs` it joins when a matching path is
    attached. `place` is where a person finds it: a file, with its line."""

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
        """Its identity as an item."""
        return item_id(self.kind, self.name)

    def item(self) -> Item:
        """The guide as an item, which is how it is sent."""
        # What it is for is shown to people; the model gets the text.
        return Item(id=self.id, content=self.text, title=self.description)


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something odd about a file of an agent. A `warning` costs nothing; an `error` means that the
    thing it is about could not be used as it is written."""

    path: str
    problem: str
    line: int | None = None
    level: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        return f"{self.path}{f':{self.line}' if self.line else ''}: {self.problem}"


class AgentChange(Struct, frozen=True, kw_only=True):
    """A difference between a session and the files of its agent as they are today. `here` is the
    include mode in the session, None if the item is new; `now` the one in the files, None if the
    item is gone. `tool:SERVER/*` stands for all tools of a server."""

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
    """The rules and references there are now, and what is odd about them. `tool_modes` are the
    include modes that the agent's files give to tools. As a session has them, `changes` are its
    differences to the files; `gone` says why there is nothing to read any more."""

    guides: tuple[Guide, ...] = ()
    problems: tuple[Problem, ...] = ()
    tool_modes: dict[ItemId, Include] = {}
    changes: tuple[AgentChange, ...] = ()
    gone: str = ""


class Project(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A project of an agent: a system prompt and a context of its own, in L1."""

    name: str
    prompt: str = ""
    context: str = ""


class Skill(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A skill of an agent. Its text is a reference of the same name; its other files are in
    `folder`, and are read when they are asked for. `tools` are those its author says it needs."""

    name: str
    description: str = ""
    folder: str = ""
    license: str = ""
    compatibility: str = ""
    tools: tuple[str, ...] = ()
    metadata: dict[str, str] = {}
    # What its author says may follow its name, whether a model may choose it by itself, and whether
    # people are to be shown it.
    argument_hint: str = ""
    model_invocable: bool = True
    user_invocable: bool = True
    # What else its head says and nothing here acts upon; other folders that are links to this one.
    unused: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


class Agent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent as it stands on disk. `settings` and `options` are what it says of those, by the
    names of `Settings` and `Options`, checked; `servers` is an `mcpServers` object as it is
    written, with include modes and permissions in our words."""

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
    # What comes along with an item that was chosen, by id: `tool:fs/read_file` with others.
    relations: dict[str, tuple[str, ...]] = {}
    problems: tuple[Problem, ...] = ()
    # What is as it should be, and worth knowing: what was left out because it stands there already,
    # and what of others has no meaning here.
    notes: tuple[str, ...] = ()
    # Whether its author wants it to work without asking back.
    autonomous: bool = False
    # The folder or file it was read from, and the folder that all its files are opened through.
    place: str = ""
    root: str = ""


def tool_modes(servers: Mapping[str, Any]) -> dict[ItemId, Include]:
    """The include modes that an `mcpServers` object gives: to all tools of a server, under the id
    `tool:SERVER/*`, and to single ones. What is disabled or unreadable has none."""
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


# What a caller says of a folder: nothing, so that what was recorded counts; that all is trusted as
# it is now; or the digest of what is trusted.
Trust = bool | str


class NamedFile(Struct, frozen=True, kw_only=True):
    """A file that the command of a server names, by its content. `digest` is a word in brackets if
    it could not be read."""

    server: str
    path: str
    digest: str


class Claims(Struct, frozen=True, kw_only=True):
    """What an agent says beyond texts: servers as they are written, settings that loosen what keeps
    a person safe, and the model that is to be asked; of a file of hooks, that file. `place` is its
    real path, `digest` that of all of this, and `lines` what a person is shown. `problem` says why
    it cannot be known as it is."""

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
    """What a person trusted: the digest, what they were shown, and when (seconds since 1970)."""

    digest: str
    lines: tuple[str, ...] = ()
    at: float = 0.0
