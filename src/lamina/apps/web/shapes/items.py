"""Items and settings of a session."""

from typing import Any, Literal

from msgspec import Struct

from lamina.apps.views.items import AgentChangeRow
from lamina.apps.web.route import RequestBody


class MemberRow(Struct, frozen=True, kw_only=True):
    """A rule, a reference or a tool that applies to every question. One that is `missing` was added
    and is gone from the agent."""

    item: str
    label: str
    include: str
    missing: bool
    about: str


class AvailableRow(Struct, frozen=True, kw_only=True):
    """Something that could be added. `removed` says that a person took it out."""

    item: str
    label: str
    include: str
    about: str
    globs: tuple[str, ...]
    removed: bool


class PinnedRow(Struct, frozen=True, kw_only=True):
    """Something that is essential and named with every question."""

    item: str
    label: str


class AdoptedRows(Struct, frozen=True, kw_only=True):
    """What the session took over from its agent's files."""

    changes: tuple[AgentChangeRow, ...]


class ItemRows(Struct, frozen=True, kw_only=True):
    """What the session has, what it could have, what is pinned, how its agent's files differ, and
    what is wrong."""

    items: tuple[MemberRow, ...]
    available: tuple[AvailableRow, ...]
    pins: tuple[PinnedRow, ...]
    changes: tuple[AgentChangeRow, ...]
    problems: tuple[str, ...]


class ItemName(RequestBody, frozen=True, kw_only=True):
    """A member as `rule:NAME`, `ref:NAME` or `tool:SERVER/NAME`; of a pin, its path."""

    what: str


SettingKind = Literal["choice", "boolean", "integer", "number", "text", "texts"]


class SettingRow(Struct, frozen=True, kw_only=True):
    """One setting: its value now and by default, what it may be, and what it is for. A setting with
    parts is a choice of presets, and each of its parts is a row of its own, as
    `guide_search.top_n`."""

    name: str
    group: str
    kind: SettingKind
    value: Any
    default: Any
    choices: tuple[str, ...]
    nullable: bool
    help: str


class SettingRows(Struct, frozen=True, kw_only=True):
    settings: tuple[SettingRow, ...]


class NewSettings(RequestBody, frozen=True, kw_only=True):
    """The settings that change, by name; parts of one by its name with a dot."""

    settings: dict[str, Any]


class ForkBody(RequestBody, frozen=True, kw_only=True):
    """Up to which entry; without one, all of the active path."""

    at: str | None = None
    name: str = ""


class Forked(Struct, frozen=True, kw_only=True):
    session: str


class NavigateBody(RequestBody, frozen=True, kw_only=True):
    """Where to go on; `summary` tells the model what came of the branch that is left. With `end`,
    at the end of the branch that the entry is on."""

    entry: str
    summary: str = ""
    end: bool = False


class Position(Struct, frozen=True, kw_only=True):
    """Where the session goes on. `text` is the question that stood there, to be asked anew."""

    entry: str
    text: str
    leaf: str


class LabelBody(RequestBody, frozen=True, kw_only=True):
    """An empty text takes the label away."""

    text: str


class Labelled(Struct, frozen=True, kw_only=True):
    entry: str
    text: str
