"""Holds a request that is not decided yet: a turn's draft, the page on which its entries are
written, and the plan that results from both.

Law: the state of a page is always the fold of the entries written on it.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.assembly.budget import Budget
from lamina.core.journal import State, fold_entry, shorten_patch
from lamina.core.values.entry import Entry, EntryBase, RequestEntry, TransformEntry
from lamina.core.values.item import Attachment
from lamina.core.values.message import LoadedTools, Message, ToolResult, ToolText
from lamina.core.values.patch import Display, OnceOps, Patch
from lamina.core.values.prompt import Prompt
from lamina.core.values.request import (
    NOTHING,
    Attachments,
    Boundary,
    ContextTool,
    HistoryPrice,
    LeftOut,
)
from lamina.core.values.sent_prefix import NOTHING_RECENT, RecentPrefixes
from lamina.core.values.settings import Target

E = TypeVar("E", bound=EntryBase)


class Page:
    def __init__(self, state: State, *, at: float, mint: Callable[[int], str]) -> None:
        self.state = state
        self.at = at
        self.began_at = state.leaf
        self._mint = mint
        self._written: list[Entry] = []

    def copy(self) -> "Page":
        """Return a page that continues from here and leaves this one unchanged."""
        page = Page(self.state, at=self.at, mint=self._mint)
        page._written = list(self._written)
        page.began_at = self.began_at
        return page

    def take(self, other: "Page") -> None:
        """Continue from the state that a copy of this page reached."""
        self.state, self._written = other.state, list(other._written)

    @property
    def written(self) -> tuple[Entry, ...]:
        return tuple(self._written)

    def next_id(self) -> str:
        return self._mint(len(self._written))

    def write(self, kind: type[E], /, **fields: Any) -> E:
        entry: Any = kind(id=self.next_id(), parent=self.state.leaf, at=self.at, **fields)
        self.state = fold_entry(self.state, entry)
        self._written.append(entry)
        return cast(E, entry)

    def transform(self, transformer: str, patch: Patch) -> TransformEntry:
        """Write a patch, without the operations that would only repeat the state."""
        state = self.state
        patch = shorten_patch(patch, state.envelope, state.requests.sent is not None)
        return self.write(TransformEntry, transformer=transformer, patch=patch)


class Ephemera(Struct, frozen=True, kw_only=True):
    """Content that hooks add or change for one request only, the names of these hooks, and their
    displays."""

    messages: tuple[Message, ...] = ()
    patches: tuple[OnceOps, ...] = ()
    hooks: tuple[str, ...] = ()
    displays: tuple[Display, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.messages or self.patches)

    def apply_to(self, state: State) -> State:
        """Return the state whose next request includes all of this."""
        envelope = replace(state.envelope, uncached=state.envelope.uncached + self.messages)
        return replace(state, envelope=envelope, once=state.once + self.patches)


NOTHING_ADDED = Ephemera()


class Draft(Struct, frozen=True, kw_only=True):
    """The typed text, the readable contents of the attachments, and the target."""

    target: Target
    room: Budget
    text: str = ""
    attachments: Attachments = NOTHING
    # The listed tools with the reason for each, and those that may be called.
    tools: tuple[ContextTool, ...] = ()
    allowed_tools: tuple[str, ...] | None = None
    tool_texts: tuple[ToolText, ...] = ()
    # Content that hooks add to this request only.
    ephemera: Ephemera = NOTHING_ADDED
    # Items removed by a compaction immediately before the request, and whether there was one.
    reports: tuple[LeftOut, ...] = ()
    boundaries: tuple[Boundary, ...] = ()
    # The cost and savings of that compaction.
    summary: HistoryPrice | None = None
    # Whether the provider already refused this question as too long.
    retry: bool = False
    # Prefixes that others recently sent to the target and that may be in its cache.
    recent: RecentPrefixes = NOTHING_RECENT


class CallResults(Struct, frozen=True, kw_only=True):
    """The answers to the calls of the current turn, beside its draft. `attachments` were sent with
    the turn so far; `left_out` are those it is still without. `wholes` are the digests of results
    cut earlier, where the state does not have them. `found` are the items that the results brought
    and `loads` the tools they load, included if nothing has to make room for them."""

    results: tuple[ToolResult, ...]
    attachments: tuple[Attachment, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    wholes: Mapping[str, str] | None = None
    found: tuple[Attachment, ...] = ()
    loads: tuple[LoadedTools, ...] = ()


class RequestPlan(Struct, frozen=True, kw_only=True):
    """A decided request: the entries to append, and the prompt to send."""

    state: State
    entries: tuple[Entry, ...]
    prompt: Prompt
    request: RequestEntry
    # The included attachments; the next request of the same turn continues with these.
    kept: tuple[Attachment, ...]
