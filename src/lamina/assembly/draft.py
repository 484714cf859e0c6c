"""A turn before anything is decided, and the request that comes of it."""

from msgspec import Struct

from lamina.assembly.budget import Budget
from lamina.journal import State
from lamina.values.entry import Entry, RequestEntry
from lamina.values.item import Attachment
from lamina.values.message import Message, ToolText
from lamina.values.patch import Display
from lamina.values.prompt import Prompt
from lamina.values.request import NOTHING, Attachments, Boundary, ContextTool, LeftOut
from lamina.values.settings import Target


class Ephemera(Struct, frozen=True, kw_only=True):
    """What hooks add to one request only, who they were, and how they want it shown."""

    messages: tuple[Message, ...] = ()
    hooks: tuple[str, ...] = ()
    displays: tuple[Display, ...] = ()


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
    # Whether the provider refused this question once before, as too long.
    retry: bool = False


class RequestPlan(Struct, frozen=True, kw_only=True):
    """A request that is decided: what to append, and what to send."""

    state: State
    entries: tuple[Entry, ...]
    prompt: Prompt
    request: RequestEntry
    # What of the attachments is in it; the next request of the same turn goes on with these.
    kept: tuple[Attachment, ...]
