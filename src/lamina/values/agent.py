"""Agents: who answers, by which rules and references, with which tools and memory."""

from typing import Any, Literal

from msgspec import Struct

from lamina.values.item import Include, Item, ItemId, item_id

GuideKind = Literal["rule", "reference"]
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


class Guides(Struct, frozen=True, kw_only=True):
    """The rules and references there are now, and what is odd about them."""

    guides: tuple[Guide, ...] = ()
    problems: tuple[Problem, ...] = ()


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
