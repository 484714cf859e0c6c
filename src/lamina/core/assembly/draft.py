"""A turn before anything is decided, and the request that comes of it."""

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.assembly.budget import Budget
from lamina.core.journal import State
from lamina.core.values.entry import Entry, RequestEntry
from lamina.core.values.item import Attachment
from lamina.core.values.message import Message, ToolText
from lamina.core.values.patch import Display, OnceOps
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


class Ephemera(Struct, frozen=True, kw_only=True):
    """What hooks add to one request only and change for it, who they were, and how they want it
    shown."""

    messages: tuple[Message, ...] = ()
    patches: tuple[OnceOps, ...] = ()
    hooks: tuple[str, ...] = ()
    displays: tuple[Display, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.messages or self.patches)

    def apply_to(self, state: State) -> State:
        """The state whose next request has all this."""
        envelope = replace(state.envelope, uncached=state.envelope.uncached + self.messages)
        return replace(state, envelope=envelope, once=state.once + self.patches)


NOTHING_ADDED = Ephemera()


class Draft(Struct, frozen=True, kw_only=True):
    """What was typed, what could be read of what was attached, and where it goes."""

    target: Target
    room: Budget
    text: str = ""
    attachments: Attachments = NOTHING
    # The tools of the list with why they are there, and which may be called.
    tools: tuple[ContextTool, ...] = ()
    allowed_tools: tuple[str, ...] | None = None
    tool_texts: tuple[ToolText, ...] = ()
    # What hooks add to this request only.
    ephemera: Ephemera = NOTHING_ADDED
    # What a compaction right before it took away, and that it was one.
    reports: tuple[LeftOut, ...] = ()
    boundaries: tuple[Boundary, ...] = ()
    # What that compaction costs and saves.
    summary: HistoryPrice | None = None
    # Whether the provider refused this question once before, as too long.
    retry: bool = False
    # What others sent to the target lately, which may be in its cache.
    recent: RecentPrefixes = NOTHING_RECENT


class RequestPlan(Struct, frozen=True, kw_only=True):
    """A request that is decided: what to append, and what to send."""

    state: State
    entries: tuple[Entry, ...]
    prompt: Prompt
    request: RequestEntry
    # What of the attachments is in it; the next request of the same turn goes on with these.
    kept: tuple[Attachment, ...]
