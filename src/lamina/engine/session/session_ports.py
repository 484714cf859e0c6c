"""Defines the ports that a session receives: its access to the outside world, and the runner that
works with it.

Law: both are frozen records, passed once and never changed.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from lamina.core.ports import (
    Clock,
    JournalStore,
    MemorySource,
    SentPrefixes,
    SpendLedger,
    Summarizer,
    TargetBook,
    WebSource,
    WorkspaceSource,
)
from lamina.core.values.event import Event
from lamina.core.values.spend_limits import SpendLimits
from lamina.core.values.tool import Toolset
from lamina.engine.sources.hooks import Hooks
from lamina.engine.sources.selector import Selector

if TYPE_CHECKING:
    from lamina.engine.sources.note_search import WorkspaceSearch

Emit = Callable[[Event], Awaitable[None]]


class Warn(Protocol):
    """A callable that shows a person a warning once, with the next request, before anything else is
    sent.
    """

    def __call__(self, *texts: str) -> None: ...


class SessionPorts(Struct, frozen=True, kw_only=True):
    """A session's access to the outside world. `searcher` searches the notes of the workspace, if
    it has any. Without a `spend_ledger` there is no account and no limit; `spend_ceilings` are
    limits in addition to those of the settings. `closing` was made for the session and ends with
    it.
    """

    store: JournalStore
    book: TargetBook
    clock: Clock
    workspace: WorkspaceSource
    hooks: Hooks = field(default_factory=Hooks)
    summarizer: Summarizer | None = None
    selector: Selector = field(default_factory=Selector)
    web: WebSource | None = None
    memory: MemorySource | None = None
    searcher: "WorkspaceSearch | None" = None
    prefixes: SentPrefixes | None = None
    spend_ledger: SpendLedger | None = None
    spend_ceilings: SpendLimits = SpendLimits()
    closing: tuple[Callable[[], Awaitable[None]], ...] = ()


class RunnerPorts(Struct, frozen=True, kw_only=True):
    """A session's access to its runner: the listener to a turn, and the function that lists its
    tools, if it runs any.
    """

    emit: Emit
    list_tools: Callable[[], Awaitable[Toolset]] | None = None
