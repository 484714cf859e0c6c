"""Rules and references in memory, and a selector that finds what a test says it finds."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace
from tests.fakes.book import SMALL, FakeBook
from tests.fakes.clock import FakeClock
from tests.fakes.store import FakeStore
from tests.fakes.workspace import FakeWorkspace

from lamina.core.journal import State
from lamina.core.ports import Clock, JournalStore, TargetBook, WorkspaceSource
from lamina.core.values.agent import Guide, GuideKind, Guides
from lamina.core.values.entry import start_entry
from lamina.core.values.item import Attachment, Include, Item, ItemId
from lamina.core.values.request import LeftOut
from lamina.core.values.selection import SelectedItem
from lamina.core.values.settings import Settings
from lamina.engine.session.session import Session, SessionCore
from lamina.engine.session.session_ports import SessionPorts
from lamina.engine.sources.attachments import Attachments
from lamina.engine.sources.related_items import Pool
from lamina.engine.sources.selector import SearchChoice, Selector


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

    def guide(
        self,
        state: State,
        attached: Sequence[Attachment],
        guides: Guides,
        choice: SearchChoice,
        room: Callable[[Item], int],
        room_left: int,
    ) -> Attachments:
        given = super().guide(state, attached, guides, choice, room, room_left)
        chosen = {hit.item for hit in choice.items}
        lower = tuple(
            LeftOut(what=item, reason="ranked_lower", detail=f"{item}: others fit better")
            for item in _searched(self.guide_pool(state, attached, guides))
            if item not in chosen
        )
        return replace(given, left_out=given.left_out + lower)

    async def choose(self, state: State, question: str, *pools: Pool) -> tuple[SearchChoice, ...]:
        hits = self.found(question)
        return tuple(
            SearchChoice(items=tuple(hit for hit in hits if hit.item in _searched(pool)))
            for pool in pools
        )


def _searched(pool: Pool) -> list[ItemId]:
    return [document.id for document in pool.documents]


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
    ports = SessionPorts(
        store=store,
        book=book or FakeBook(),
        clock=clock,
        workspace=workspace or FakeWorkspace(),
        selector=selector,
    )
    return Session(SessionCore(await store.create(header), ports))
