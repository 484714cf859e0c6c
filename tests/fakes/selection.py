"""Rules and references in memory, and a selector that finds what a test says it finds."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace
from tests.fakes.book import SMALL, FakeBook
from tests.fakes.clock import FakeClock
from tests.fakes.store import FakeStore
from tests.fakes.workspace import FakeWorkspace

from lamina.assembly.inclusion import Inclusion
from lamina.journal import State
from lamina.ports import Clock, JournalStore, TargetBook, WorkspaceSource
from lamina.session.core import SessionCore
from lamina.session.session import Session
from lamina.sources.attachments import Attachments
from lamina.sources.selector import SearchChoice, Selector
from lamina.values.agent import Guide, GuideKind, Guides
from lamina.values.entry import start_entry
from lamina.values.item import Attachment, Include, Item
from lamina.values.request import LeftOut
from lamina.values.selection import SelectedItem
from lamina.values.settings import Settings
from lamina.values.tool import OfferedTool


def guide(kind: GuideKind, name: str, include: Include = "always", **given: Any) -> Guide:
    """A rule or reference whose text says its name, unless another one is given."""
    given.setdefault("text", f"# What {name} says\n\nMore of {name}.")
    return Guide(kind=kind, name=name, include=include, **given)


class GuideSourceFake:
    """A test changes `listed` as a person edits an agent's folder."""

    def __init__(self, *guides: Guide) -> None:
        self.listed: Sequence[Guide] = guides

    async def guides(self) -> Guides:
        return Guides(guides=tuple(self.listed))


class SelectorFake(Selector):
    """Chooses for a question what stands in `finds` under a word of it."""

    def __init__(
        self, *guides: Guide, finds: Mapping[str, Sequence[SelectedItem]] | None = None
    ) -> None:
        self.source = GuideSourceFake(*guides)
        super().__init__(source=self.source)
        self.finds = dict(finds or {})

    def found(self, question: str) -> list[SelectedItem]:
        return [hit for word, hits in self.finds.items() if word in question for hit in hits]

    async def guide(
        self,
        state: State,
        question: str,
        attached: Sequence[Attachment],
        guides: Guides,
        room: Callable[[Item], int],
        room_left: int,
    ) -> Attachments:
        searched = {
            each.id: each
            for each in guides.guides
            if each.include == "agent" and not each.globs and each.id not in state.library.members
        }
        rest = Guides(guides=tuple(each for each in guides.guides if each.id not in searched))
        given = await super().guide(state, question, attached, rest, room, room_left)
        hits = [hit for hit in self.found(question) if hit.item in searched]
        chosen = tuple(
            Attachment(
                item=searched[hit.item].item(),
                provenance=replace(hit.provenance, level=searched[hit.item].level),
            )
            for hit in hits
        )
        # It is there, and was only not chosen this time.
        left = tuple(omission for omission in given.left_out if omission.what not in searched)
        lower = tuple(
            LeftOut(what=item, reason="ranked_lower", detail=f"{item}: others fit better")
            for item in searched
            if item not in {hit.item for hit in hits}
        )
        return replace(given, attachments=given.attachments + chosen, left_out=(*left, *lower))

    async def choose_tools(
        self, state: State, question: str, roll: Inclusion[OfferedTool]
    ) -> SearchChoice:
        there = {tool.id for tool in roll.agent}
        return SearchChoice(items=tuple(hit for hit in self.found(question) if hit.item in there))


async def open_guided(
    selector: Selector,
    session: str = "talk",
    *,
    agent: str = "pilot",
    store: JournalStore | None = None,
    book: TargetBook | None = None,
    clock: Clock | None = None,
    workspace: WorkspaceSource | None = None,
    settings: Settings | None = None,
) -> Session:
    """A new session of an agent, with a selector of the test's own."""
    store, clock = store or FakeStore(), clock or FakeClock()
    settings = settings or Settings()
    header = start_entry(
        session,
        clock.now(),
        settings=replace(settings, target=settings.target or SMALL.name),
        workspace="notes",
        with_agent=agent,
    )
    core = SessionCore(
        await store.create(header),
        store=store,
        book=book or FakeBook(),
        clock=clock,
        workspace=workspace or FakeWorkspace(),
        selector=selector,
    )
    return Session(core)
