"""A turn as asked for, before anything is decided."""

from msgspec import Struct

from lamina.assembly.budget import Budget
from lamina.sources.hook_runs import Ephemera
from lamina.values.item import Attachment
from lamina.values.message import ToolText
from lamina.values.request import Boundary, ContextTool, LeftOut
from lamina.values.settings import Target


class Draft(Struct, frozen=True, kw_only=True):
    """What was typed, what could be read of what was attached, and where it goes."""

    target: Target
    room: Budget
    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    # The tools of the list with why they are there, and which may be called.
    tools: tuple[ContextTool, ...] = ()
    allowed_tools: tuple[str, ...] | None = None
    tool_texts: tuple[ToolText, ...] = ()
    # What hooks add to this request only.
    ephemera: Ephemera = Ephemera()
    warnings: tuple[str, ...] = ()
    # What a compaction right before it took away, and that it was one.
    reports: tuple[LeftOut, ...] = ()
    boundaries: tuple[Boundary, ...] = ()
    # Whether the provider refused this question once before, as too long.
    retry: bool = False
