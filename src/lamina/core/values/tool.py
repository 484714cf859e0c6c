"""Defines tools as the engine sees them: offered tools, their terms, and the output of a call."""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from lamina.core.values.item import Include, ItemId
from lamina.core.values.message import ToolDefinition

# For one tool: whether a person is asked before it runs.
Permission = Literal["required", "free"]
# For a session: ask before every call, before none, or as each tool specifies.
ApprovalPolicy = Literal["always", "never", "tool"]
Decision = Literal["allow_once", "allow_session", "deny"]
DENIED = "Tool call denied"


class OfferedTool(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool that can be called. `definition.name` is the model's name for it; `id` is its own
    identity, independent of its name; `digest` covers the definition, so a changed description
    changes it."""

    id: ItemId
    definition: ToolDefinition
    digest: str
    permission: Permission = "required"
    # Whether it is part of every request, only of those that request it, or searched for.
    include: Include = "always"
    # Whether it is provided by the files of the session's agent: then `include` is from those
    # files, and the session may have another mode.
    of_agent: bool = False
    # The label for people, such as `server · tool`.
    label: str = ""
    # The server's description of itself: helps to find the tool, but is not part of its definition.
    about: str = ""


class WithheldTool(Struct, frozen=True, kw_only=True):
    """A tool or a whole server that is not offered, and why."""

    what: str
    reason: Literal["changed", "unreachable", "invalid", "duplicate", "untrusted"]
    detail: str


class Toolset(Struct, frozen=True, kw_only=True):
    """Everything that can be offered now, in a stable order."""

    tools: tuple[OfferedTool, ...] = ()
    withheld: tuple[WithheldTool, ...] = ()


class ToolOutput(Struct, frozen=True, kw_only=True):
    """The output of a call as text for the model, and the whole output if it was cut."""

    text: str
    is_error: bool = False
    whole: str = ""


def stricter_policy(one: ApprovalPolicy, other: ApprovalPolicy) -> ApprovalPolicy:
    """Return the policy that asks a person more often."""
    order: tuple[ApprovalPolicy, ...] = ("never", "tool", "always")
    return max(one, other, key=order.index)


def translate_server_terms(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an `mcpServers` entry with the `permission` and `include` of the server and its
    `tools`, even if they are spelled as in TeamSpark. Our own words take precedence; unknown
    formats are left unchanged, so that a strict reader refuses them."""
    translation = dict(entry)
    defaults = translation.pop("serverToolDefaults", None)
    _translate(translation, defaults)
    tools = dict(_table(translation.get("tools")))
    for name, terms in tools.items():
        if isinstance(terms, Mapping):
            own = dict(terms)
            _translate(own, {key: own.pop(key) for key in ("permissionRequired",) if key in own})
            tools[name] = own
    # The spelling before `serverToolDefaults` existed.
    for old, new in (("toolPermissionRequired", "permissionRequired"), ("toolInclude", "include")):
        older = _table(translation.pop(old, None))
        if "serverDefault" in older:
            _translate(translation, {new: older["serverDefault"]})
        for name, value in _table(older.get("tools")).items():
            own = dict(_table(tools.get(name)))
            _translate(own, {new: value})
            tools[name] = own
    if tools:
        translation["tools"] = tools
    return translation


def _translate(terms: dict[str, Any], theirs: Any) -> None:
    for key, value in _table(theirs).items():
        if key == "permissionRequired":
            words = {True: "required", False: "free"}
            terms.setdefault("permission", words[value] if isinstance(value, bool) else value)
        elif key == "include":
            terms.setdefault("include", value)


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
