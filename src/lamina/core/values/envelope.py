"""Defines the envelope: everything a request is made from, as values."""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import force_setattr

from lamina.core.values.collections import Chain
from lamina.core.values.item import ItemId
from lamina.core.values.message import Message, ToolDefinition, ToolText, sort_keys
from lamina.core.values.struct_fields import settle_fields
from lamina.errors import InvalidSetting

LIBRARY = "library"
# The parts of L1 about one person: these, and all whose names start with the prefix.
_PERSONAL, _PERSONAL_PREFIX = ("memory", "user"), "user_"


class SystemPart(Struct, frozen=True, kw_only=True):
    """A named part of the system prompt (L1)."""

    name: str
    text: str


def is_personal(part: str) -> bool:
    """Return whether a part of L1, by its name, is about one person: `memory`, `user`,
    `user_...`."""
    return part in _PERSONAL or part.startswith(_PERSONAL_PREFIX)


class SystemOrder(Struct, frozen=True, kw_only=True):
    """The parts of L1 in sending order: those before the library, and those after it."""

    before: tuple[SystemPart, ...]
    behind: tuple[SystemPart, ...] = ()


def order_parts(
    parts: Iterable[SystemPart], *, shared_first: bool, library_first: bool
) -> SystemOrder:
    """Return the parts as given or, with `shared_first`, with personal parts last, so that two
    people who use one agent share everything before them. With `library_first`, that includes the
    library."""
    parts = tuple(parts)
    if not shared_first:
        return SystemOrder(before=parts)
    shared = tuple(part for part in parts if not is_personal(part.name))
    personal = tuple(part for part in parts if is_personal(part.name))
    if library_first:
        return SystemOrder(before=shared, behind=personal)
    return SystemOrder(before=shared + personal)


class SystemParts(tuple[SystemPart, ...]):
    """The parts of a system prompt in order, and `compiled`: the text sent for them, with the
    library in its place among them. Sessions and hooks expose this text as a whole; it is built on
    first access."""

    _compile: Callable[[], str] | None

    def __new__(
        cls, parts: Iterable[SystemPart] = (), compile_text: Callable[[], str] | None = None
    ) -> Self:
        system = super().__new__(cls, parts)
        system._compile = compile_text
        return system

    @property
    def parts(self) -> tuple[SystemPart, ...]:
        """The named parts, without the library."""
        return tuple(self)

    @cached_property
    def compiled(self) -> str:
        """The system prompt as sent to a model."""
        if self._compile is not None:
            return self._compile()
        return "\n\n".join(text for part in self if (text := part.text.strip()))


class LaidItem(Struct, frozen=True, kw_only=True):
    """An item version in the system library."""

    item: ItemId
    version: str


class Options(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Options for a model's answer; None leaves a choice to the vendor. Options are not in the
    prefix, so changing them does not affect the cache."""

    temperature: float | None = None
    """The randomness of the answer, from 0 to 2."""
    top_p: float | None = None
    """The share of likely words to sample from, from 0 to 1."""
    max_tokens: int | None = None
    """The maximum length of the answer."""
    reasoning: str | None = None
    """The reasoning effort, in the vendor's own words, such as `low`. For `off`, which no vendor
    accepts, nothing is sent."""
    schema: dict[str, Any] | None = None
    """The JSON schema of the answer; its keys are sorted, like those of a tool schema."""

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

    @property
    def effort(self) -> str | None:
        """The `reasoning` value sent to a vendor: None if it is off."""
        return None if self.reasoning == "off" else self.reasoning


class Envelope(Struct, frozen=True, kw_only=True):
    """Everything a request is made from, as values; this is what hooks see."""

    system: SystemParts = SystemParts()
    library: tuple[LaidItem, ...] = ()
    # The items laid down because they apply to every turn, in any version.
    always: frozenset[ItemId] = frozenset()
    # The tools that may be called.
    tools: tuple[ToolDefinition, ...] = ()
    # The list as it is on the wire, if longer: it still contains removed tools that could be barred
    # without moving a byte. Empty if it is the same.
    listed: tuple[ToolDefinition, ...] = ()
    cached: Chain[Message] = Chain()
    # Text for the next request only; always after all cached content before it.
    tool_texts: tuple[ToolText, ...] = ()
    uncached: tuple[Message, ...] = ()
    options: Options = Options()

    def __post_init__(self) -> None:
        if type(self.system) is not SystemParts:
            force_setattr(self, "system", SystemParts(self.system))

    @property
    def tool_list(self) -> tuple[ToolDefinition, ...]:
        """The tools on the wire."""
        return self.listed or self.tools
