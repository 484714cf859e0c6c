"""The rules, references and tools in a session, and those that can be added.

Law: completion offers only what was looked up before; typing never waits for a file or server.
"""

from collections.abc import Sequence
from functools import reduce
from pathlib import Path

from msgspec import Struct

from lamina.adapters.agents.agent_reader import AgentFolder
from lamina.apps.views.mentions import mention_guide
from lamina.apps.wiring.agent_finder import bringer_of
from lamina.core.assembly.engine_tools import engine_members
from lamina.core.assembly.inclusion import (
    agent_changes,
    find_item,
    in_session,
    missing_item_error,
    read_member,
)
from lamina.core.journal import Journal, fold_entry, initial_state, path_to
from lamina.core.text import label_of
from lamina.core.values.agent import AgentChange, Problem
from lamina.core.values.entry import AdoptEntry, IncludeEntry, SessionEntry
from lamina.core.values.item import ItemId, kind_of
from lamina.core.values.tool import OfferedTool
from lamina.engine.runners.runner import ChatRunner
from lamina.engine.session.members import SessionItem
from lamina.engine.session.session import core_of
from lamina.engine.sources.selector import describe_problems, name_errors
from lamina.errors import LaminaError


class AgentItem(Struct, frozen=True, kw_only=True):
    """An item of the agent: `include` is its own mode, `about` its description."""

    item: ItemId
    include: str
    about: str = ""
    # It joins when a file that matches one of these patterns is attached.
    globs: tuple[str, ...] = ()
    # Whether a person removed it from the session.
    removed: bool = False


class AgentChangeRow(Struct, frozen=True, kw_only=True):
    """A difference between the session and its agent's files: the include mode `here` and `now`,
    and a description. Without `here` the item is new; without `now` it is gone."""

    item: str
    label: str
    here: str | None
    now: str | None
    detail: str


def change_row(change: AgentChange) -> AgentChangeRow:
    return AgentChangeRow(
        item=change.item,
        label=label_of(change.item),
        here=change.here,
        now=change.now,
        detail=change.detail,
    )


class ItemOverview:
    """The results of the last lookup."""

    def __init__(self, runner: ChatRunner) -> None:
        self._runner = runner
        self.inside: tuple[SessionItem, ...] = ()
        self.known: tuple[AgentItem, ...] = ()
        # Differences between the agent's files and the session's copy of them.
        self.changes: tuple[AgentChangeRow, ...] = ()
        self._failure: tuple[str, ...] = ()
        self._problems: tuple[Problem, ...] = ()

    async def look_up(self, *, tools: bool = False) -> None:
        """Read the agent's files again, and with `tools` query its servers too. Unreadable parts
        keep their previous state."""
        session = self._runner.session
        turns = core_of(session).turns
        try:
            if tools:
                # A session learns its tools with the first question; there may not have been one.
                turns.tools.take(await self._runner.toolset())
            guides = await turns.tools.selector.guides(session.state)
            self.inside = await session.items()
        except (LaminaError, OSError) as error:
            self._failure = (str(error),)
            return
        memberships = session.state.library.members
        offers = [(g.id, g.include, g.description, g.globs) for g in guides.guides]
        modes = session.state.library.include_modes
        tools_there = (
            *in_session(turns.tools.offered, modes),
            *self._engine_tools(turns.tools.offered),
        )
        offers += [(t.id, t.include, t.definition.description, ()) for t in tools_there]
        self.known = tuple(
            AgentItem(
                item=item,
                include=include,
                about=about,
                globs=globs,
                removed=memberships.get(item) == "removed",
            )
            for item, include, about, globs in offers
        )
        self.changes = tuple(map(change_row, guides.changes))
        self._failure, self._problems = (), tuple(guides.problems)

    def _engine_tools(self, tools: Sequence[OfferedTool]) -> list[OfferedTool]:
        """Return the engine's tools that concern a person: those removed or added."""
        members = self._runner.session.state.library.members
        return [tool for tool in engine_members(tools) if tool.id in members]

    @property
    def problems(self) -> tuple[str, ...]:
        """Return the problems of the last lookup."""
        return (*self._failure, *describe_problems(self._problems))

    def list_problems(self) -> tuple[str, ...]:
        """Return the same for a person: how many are mere oddities is reported once per session,
        here or with a request."""
        errors = name_errors(self._problems)
        selector = core_of(self._runner.session).turns.tools.selector
        count = [line for line in describe_problems(self._problems) if line not in errors]
        return (*self._failure, *errors, *selector.take_new_warnings(count))

    async def has_guides(self) -> bool:
        """Return whether there are rules or references to mention."""
        await self.look_up()
        return any(kind_of(item.item) != "tool" for item in self.known)

    def require_known(self, what: str) -> None:
        """
        Raises:
            UsageError: neither the session nor its agent has an item of that name.
        """
        wanted = read_member(what)
        known = [item.item for item in self.known] + [item.item for item in self.inside]
        if find_item(wanted, known) is None:
            raise missing_item_error(wanted, known)

    @property
    def outside(self) -> tuple[AgentItem, ...]:
        """Return the items that can be added."""
        inside = {item.item for item in self.inside}
        return tuple(item for item in self.known if item.item not in inside)

    @property
    def addable(self) -> list[tuple[str, str]]:
        return [(item.item, item.about) for item in self.outside]

    @property
    def removable(self) -> list[tuple[str, str]]:
        inside = [
            (str(item.item), "missing" if item.missing else item.include) for item in self.inside
        ]
        searched = [item for item in self.outside if item.include == "agent" and not item.removed]
        state, names = self._runner.session.state, {item for item, _ in inside}
        offered = {tool.name for tool in state.envelope.tools}
        own = [
            (str(tool.id), "built into Lamina")
            for tool in engine_members(core_of(self._runner.session).turns.tools.offered)
            if tool.definition.name in offered and tool.id not in names
        ]
        return inside + [(item.item, "found by search") for item in searched] + own

    @property
    def mentions(self) -> list[tuple[str, str]]:
        guides = [item for item in self.known if kind_of(item.item) != "tool"]
        return [(mention_guide(guide.item), guide.about) for guide in guides]


async def find_stored_changes(
    journal: Journal, workspace: Path | None
) -> tuple[AgentChangeRow, ...]:
    """Return how the agent's files differ now from what a stored session has of them. Without a
    record of them, or if the agent cannot be read, there are no differences."""
    path = path_to(journal.leaf, journal.entries)
    if not path or not isinstance(path[0], SessionEntry):
        return ()
    entries = (entry for entry in path if isinstance(entry, AdoptEntry | IncludeEntry))
    library = reduce(fold_entry, entries, initial_state(path[0])).library
    if library.include_modes is None or not library.modes_from:
        return ()
    folder = AgentFolder(library.modes_from, bringer_of(library.modes_from, workspace))
    try:
        return tuple(map(change_row, agent_changes(library, await folder.guides())))
    except (LaminaError, OSError):
        return ()
