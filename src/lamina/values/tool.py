"""Tools as the engine sees them: what is offered, on which terms, and what came of a call."""

from typing import Literal

from msgspec import Struct

from lamina.values.item import ItemId
from lamina.values.message import ToolDefinition

# Of one tool: whether a person is asked before it runs.
Permission = Literal["required", "free"]
# Of a session: ask before every call, before none, or as each tool says.
Asking = Literal["always", "never", "tool"]
Decision = Literal["allow_once", "allow_session", "deny"]
DENIED = "Tool call denied"


class OfferedTool(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool that can be called. `definition.name` is the name the model is told; `id` is the
    tool's own identity, whatever it is called; `digest` is of the definition, so that another
    description is another digest."""

    id: ItemId
    definition: ToolDefinition
    digest: str
    permission: Permission = "required"
    # What a person is told it is, as `server · tool`.
    label: str = ""


class Withheld(Struct, frozen=True, kw_only=True):
    """A tool or a whole server that is not offered, and why."""

    what: str
    reason: Literal["changed", "unreachable", "invalid", "duplicate"]
    detail: str


class Toolset(Struct, frozen=True, kw_only=True):
    """All that can be offered now, in an order that stays."""

    tools: tuple[OfferedTool, ...] = ()
    withheld: tuple[Withheld, ...] = ()


class ToolOutput(Struct, frozen=True, kw_only=True):
    """What came of a call, as text for the model."""

    text: str
    is_error: bool = False
