"""The rules, references and tools that a session has, and that it could have.

Law: what completion offers was looked up before; typing never waits for a file or a server.
"""

from msgspec import Struct

from lamina.cli.chatting.mentions import mention_guide
from lamina.cli.escaping import one_line
from lamina.engine.members import SessionItem
from lamina.engine.runner import ChatRunner
from lamina.engine.selecting import say_problems
from lamina.errors import LaminaError
from lamina.values.item import ItemId, kind_of

ABOUT = 60


class Member(Struct, frozen=True, kw_only=True):
    """Something that the agent has: `include` is its own mode, `about` what it says of itself."""

    item: ItemId
    include: str
    about: str = ""
    # It joins when a file that fits one of these is attached.
    globs: tuple[str, ...] = ()
    # Whether a person took it out of the session.
    removed: bool = False


class Members:
    """What was last looked up."""

    def __init__(self, runner: ChatRunner) -> None:
        self._runner = runner
        self.inside: tuple[SessionItem, ...] = ()
        self.known: tuple[Member, ...] = ()
        self.problems: tuple[str, ...] = ()

    async def look_up(self, *, tools: bool = False) -> None:
        """Looks at the agent's files again, and with `tools` asks its servers as well. What cannot
        be read stays as it was."""
        session = self._runner.session
        turns = session.turns
        try:
            if tools:
                # A session learns of its tools with a question; there may not have been one.
                turns.toolset = await self._runner.toolset()
            guides = await turns.selector.guides()
            self.inside = await session.items()
        except (LaminaError, OSError) as error:
            self.problems = (str(error),)
            return
        said = session.state.members
        found = [
            Member(item=each.id, include=each.include, about=each.description, globs=each.globs)
            for each in guides.guides
        ]
        found += [
            Member(item=each.id, include=each.include, about=each.definition.description)
            for each in turns.toolset.tools
        ]
        self.known = tuple(
            Member(
                item=each.item,
                include=each.include,
                about=one_line(each.about, ABOUT),
                globs=each.globs,
                removed=said.get(each.item) == "removed",
            )
            for each in found
        )
        self.problems = tuple(say_problems(guides.problems))

    async def has_guides(self) -> bool:
        """Whether there are rules or references to mention."""
        await self.look_up()
        return any(kind_of(each.item) != "tool" for each in self.known)

    @property
    def outside(self) -> tuple[Member, ...]:
        """What can be added."""
        inside = {each.item for each in self.inside}
        return tuple(each for each in self.known if each.item not in inside)

    @property
    def addable(self) -> list[tuple[str, str]]:
        return [(each.item, each.about) for each in self.outside]

    @property
    def removable(self) -> list[tuple[str, str]]:
        inside = [
            (str(each.item), "missing" if each.missing else each.include) for each in self.inside
        ]
        searched = [each for each in self.outside if each.include == "agent" and not each.removed]
        return inside + [(each.item, "found by search") for each in searched]

    @property
    def mentions(self) -> list[tuple[str, str]]:
        guides = [each for each in self.known if kind_of(each.item) != "tool"]
        return [(mention_guide(each.item), each.about) for each in guides]
