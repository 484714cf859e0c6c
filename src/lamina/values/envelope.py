"""The envelope: everything a request is made of, as values."""

from msgspec import Struct

from lamina.values.chain import Chain
from lamina.values.item import ItemId
from lamina.values.message import Message, ToolDefinition, ToolText

LIBRARY = "library"


class SystemPart(Struct, frozen=True, kw_only=True):
    name: str
    text: str


class Laid(Struct, frozen=True, kw_only=True):
    """An item version that stands in the system library."""

    item: ItemId
    version: str


class Options(Struct, frozen=True, kw_only=True, omit_defaults=True):
    temperature: float | None = None
    max_tokens: int | None = None
    reasoning: str | None = None


class Envelope(Struct, frozen=True, kw_only=True):
    system: tuple[SystemPart, ...] = ()
    library: tuple[Laid, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    cached: Chain[Message] = Chain()
    # Text for the next request only; always behind everything cached that precedes it.
    tool_texts: tuple[ToolText, ...] = ()
    uncached: tuple[Message, ...] = ()
    options: Options = Options()
