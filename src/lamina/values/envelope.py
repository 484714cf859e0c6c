"""The envelope: everything a request is made of, as values."""

from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from lamina.errors import InvalidSetting
from lamina.values.collections import Chain
from lamina.values.field_types import settle_fields
from lamina.values.item import ItemId
from lamina.values.message import Message, ToolDefinition, ToolText, sort_keys

LIBRARY = "library"


class SystemPart(Struct, frozen=True, kw_only=True):
    """A named part of the system prompt (L1)."""

    name: str
    text: str


class LaidItem(Struct, frozen=True, kw_only=True):
    """An item version that stands in the system library."""

    item: ItemId
    version: str


class Options(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a model is to answer; None leaves it to the vendor. Options do not stand in the prefix,
    so changing them costs no cache."""

    temperature: float | None = None
    """How much chance there is in the answer, from 0 on."""
    top_p: float | None = None
    """The share of likely words that is drawn from, from 0 to 1."""
    max_tokens: int | None = None
    """How long the answer may be."""
    reasoning: str | None = None
    """How much a model is to think before it answers, in the vendor's own word, as `low`."""
    schema: dict[str, Any] | None = None
    """What an answer must be, as a JSON schema; its keys are put in order, as a tool's are."""

    def __post_init__(self) -> None:
        settle_fields(self)
        if self.temperature is not None and not 0 <= self.temperature < float("inf"):
            raise InvalidSetting("temperature", self.temperature, "must be a number from 0 on")
        if self.top_p is not None and not 0 <= self.top_p <= 1:
            raise InvalidSetting("top_p", self.top_p, "must be a number from 0 to 1")
        if self.max_tokens is not None and self.max_tokens < 0:
            raise InvalidSetting("max_tokens", self.max_tokens, "must not be below 0")
        if self.schema is not None:
            force_setattr(self, "schema", sort_keys(self.schema))


class Envelope(Struct, frozen=True, kw_only=True):
    """Everything a request is made of, as values; what hooks get to see."""

    system: tuple[SystemPart, ...] = ()
    library: tuple[LaidItem, ...] = ()
    # What may be called.
    tools: tuple[ToolDefinition, ...] = ()
    # The list as it stands on the wire, where that holds more: what was taken away and could be
    # barred without moving a byte. Empty if it is the same.
    listed: tuple[ToolDefinition, ...] = ()
    cached: Chain[Message] = Chain()
    # Text for the next request only; always behind everything cached that precedes it.
    tool_texts: tuple[ToolText, ...] = ()
    uncached: tuple[Message, ...] = ()
    options: Options = Options()

    @property
    def tool_list(self) -> tuple[ToolDefinition, ...]:
        """The tools that stand on the wire."""
        return self.listed or self.tools
