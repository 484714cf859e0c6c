"""What a session is made of, wired together: for runners, wiring and faces. People call `Session`.

Law: one lock for one session; whoever writes holds it.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Any

import anyio

from lamina.core.audit.request_rows import list_request_rows
from lamina.core.journal import Journal
from lamina.core.ports import (
    Clock,
    JournalStore,
    MemorySource,
    OpenJournal,
    SentPrefixes,
    SpendLedger,
    Summarizer,
    TargetBook,
    WebSource,
    WorkspaceSource,
)
from lamina.core.values.entry import AdoptEntry, Entry
from lamina.core.values.envelope import Options
from lamina.core.values.item import Include, Item, ItemId
from lamina.core.values.patch import PatchOp
from lamina.core.values.settings import Settings
from lamina.core.values.spending import SpendLimits
from lamina.engine.record.layouts import Layouts
from lamina.engine.record.record import Record
from lamina.engine.session import settings as session_settings
from lamina.engine.session import siblings, tree
from lamina.engine.session.inbox import SessionInbox
from lamina.engine.session.replies import SNAPSHOT_BYTES
from lamina.engine.session.turn_lifecycle import NO_LIMITS, TurnLifecycle
from lamina.engine.sources.attachments import Attachable, AttachmentReader
from lamina.engine.sources.hooks import Hooks
from lamina.engine.sources.selector import Selector

if TYPE_CHECKING:
    from lamina.engine.sources.note_search import WorkspaceSearch


class SessionCore:
    """The parts of one session. `closing` is what was made for it and ends with it."""

    def __init__(
        self,
        opened: OpenJournal,
        *,
        store: JournalStore,
        book: TargetBook,
        clock: Clock,
        workspace: WorkspaceSource,
        hooks: Hooks | None = None,
        summarizer: Summarizer | None = None,
        selector: Selector | None = None,
        web: WebSource | None = None,
        memory: MemorySource | None = None,
        searcher: "WorkspaceSearch | None" = None,
        prefixes: SentPrefixes | None = None,
        spend_ledger: SpendLedger | None = None,
        spend_ceilings: SpendLimits = NO_LIMITS,
        closing: Iterable[Callable[[], Awaitable[None]]] = (),
    ) -> None:
        self.record = Record(opened, clock)
        self.layouts = Layouts(book, self.record)
        self._store = store
        self.clock = clock
        self._web = web
        self.workspace = workspace
        # What searches its notes, if it has any.
        self.searcher = searcher
        self.reader = AttachmentReader(workspace, store, web)
        self.hooks = hooks.copy() if hooks else Hooks()
        self.turns = TurnLifecycle(
            self.record, self.layouts, self.reader, store, self.hooks, summarizer,
            selector or Selector(), memory, prefixes, spend_ledger, spend_ceilings,
        )  # fmt: skip
        self.lock = self.turns.lock
        self.inbox = SessionInbox(self.record, self.lock)
        self.closing = tuple(closing)

    async def close(self) -> None:
        # Also where a cancellation ended its block: others wait for the session.
        with anyio.CancelScope(shield=True):
            async with self.lock, AsyncExitStack() as parts:
                for close in reversed(self.closing):
                    parts.push_async_callback(close)
                parts.push_async_callback(self.record.close)
                await self.layouts.keep_snapshot(least=SNAPSHOT_BYTES)

    async def open_again(
        self,
        given: Mapping[str, str],
        ops: Sequence[PatchOp] = (),
        *,
        settings: Settings | None = None,
        options: Options | None = None,
        always: tuple[Item, ...] | None = None,
    ) -> None:
        """Takes what is given otherwise than the last time, in one write. `given` are digests of
        it.

        Raises:
            UnknownTarget, InvalidPatch: it cannot be; nothing was changed.
        """
        async with self.lock:
            await session_settings.open_again(
                self.record, self.layouts, given, ops,
                settings=settings, options=options, always=always,
            )  # fmt: skip

    async def take_over_agent(
        self, include_modes: Mapping[ItemId, Include], name: str, place: str
    ) -> None:
        """Takes over the include modes of an agent, unless the session has its modes from this
        very agent: another one was named, or the session began before they were recorded."""
        library = self.record.state.library
        if library.include_modes is not None and library.modes_from == place:
            return
        async with self.lock:
            await self.record.write(
                AdoptEntry, include_modes=dict(include_modes), with_agent=name, with_agent_at=place
            )

    def in_front_of(
        self, question: str, attach: Iterable[Attachable] | None
    ) -> AbstractAsyncContextManager[tuple[Attachable, ...]]:
        """The session in front of a question, to ask another one in its place; with what goes along
        with that one."""
        return siblings.in_front_of(self.turns, self.record, self.reader, question, attach)

    async def find_attachments(self, question: str) -> tuple[Attachable, ...]:
        """What a person attached to a question."""
        asked = siblings.find_question(self.record, question)
        return await siblings.take_over(self.record, self.reader, asked, self.turns.news)

    async def change_settings(self, values: Mapping[str, Any]) -> None:
        """Changes settings from the next turn on."""
        await session_settings.update_settings(self.record, self.layouts, values)

    def list_requests(self) -> Iterable[dict[str, Any]]:
        """Every request as plain data, without texts."""
        entries = {entry.id: entry for entry in self.record.entries.values()}
        return list_request_rows(
            Journal(entries=entries, leaf=self.record.state.leaf), self.layouts.book
        )

    def find_request(self, answer: str | None) -> str:
        """The request of an answer; of the last one, if none is named."""
        return siblings.find_request(self.record, answer).id

    async def copy(self, entries: Sequence[Entry], session: str | None) -> "SessionCore":
        """A session of its own with these entries, and with the same parts."""
        at, damaged = self.clock.now(), bool(self.record.damage)
        name = await tree.copy_entries(entries, self._store, session, at, damaged=damaged)
        return SessionCore(
            await self._store.open(name), store=self._store, book=self.layouts.book,
            clock=self.clock, workspace=self.workspace, web=self._web, hooks=self.hooks,
            summarizer=self.turns.compactions.summarizer, selector=self.turns.selector,
            memory=self.turns.memory, searcher=self.searcher,
            prefixes=self.turns.prefixes.shared, closing=self.closing,
            spend_ledger=self.turns.spending.ledger,
            spend_ceilings=self.turns.spending.ceilings,
        )  # fmt: skip
