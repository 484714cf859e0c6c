"""What a session is opened with: the caller's arguments merged with an agent's defaults; and which
of them are applied to an existing session.

Laws: arguments take precedence over an agent's defaults; one table says how. Secrets are replaced
before anything else sees them. Arguments to an existing session apply from then on where they
differ from the last time, with a recorded reason. A named target is asked, whatever was given or
set before.
"""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from lamina.adapters.providers.model_book import DEFAULT_TARGET
from lamina.apps.wiring.opening_arguments import OpeningArguments
from lamina.core.codec import canonical_bytes, digest_value
from lamina.core.text import escape_content, render_project
from lamina.core.values.envelope import LIBRARY, Options, SystemPart
from lamina.core.values.item import Item
from lamina.core.values.message import ToolDefinition
from lamina.core.values.patch import PatchOp, SystemPartRemove, SystemPartSet, ToolsReplace
from lamina.core.values.settings import Settings
from lamina.core.values.tool import stricter_policy
from lamina.engine.session.session import Session, core_of
from lamina.engine.sources.secret_screen import SecretScreen
from lamina.errors import UsageError

if TYPE_CHECKING:
    from lamina.apps.wiring.agent_defaults import AgentDefaults


class SessionContents(Struct, frozen=True, kw_only=True):
    """What a session is opened with; None where nothing was given. `first_target` is the target of
    a new session."""

    system: tuple[SystemPart, ...]
    tools: tuple[ToolDefinition, ...] | None
    always: tuple[Item, ...] | None
    settings: Settings | None
    options: Options | None
    first_target: str

    @property
    def first_settings(self) -> Settings:
        return self.settings or Settings()


def default_target() -> str:
    """The target of a session that does not name one: LAMINA_TARGET, or the embedded model."""
    return os.environ.get("LAMINA_TARGET") or DEFAULT_TARGET


def _agent_words(agent: "AgentDefaults | None") -> dict[str, Any]:
    """An agent's defaults, named as in `OpeningArguments`; None where it has none."""
    if agent is None:
        return {}
    project = agent.project
    return {
        "system": agent.system,
        "project": project.prompt if project else None,
        "project_context": project.context if project else None,
        "memory": agent.agent.memory,
        "settings": agent.settings,
        "options": agent.options,
    }


def _unless_empty(argument: Any, default: Any) -> Any:
    return argument or default


def _unless_none(argument: Any, default: Any) -> Any:
    return argument if argument is not None else default


def _of_agent(argument: Any, default: Any) -> Any:
    # The argument is a project's name; the agent brings its texts.
    return default if default is not None else argument


def merge_settings(argument: Settings | None, agent: Settings) -> Settings:
    """The settings of a session, merged from the argument and the agent's. A setting left at its
    default counts as not given, so changing one setting never undoes an agent's strictness."""
    if argument is None:
        return agent
    own = {
        field.name: value
        for field in fields(Settings)
        if (value := getattr(argument, field.name)) != field.default
    }
    return replace(agent, **own)


# How an argument and an agent's default are merged.
PRECEDENCE: Mapping[str, Callable[[Any, Any], Any]] = {
    "system": _unless_empty,
    "project": _of_agent,
    "project_context": _of_agent,
    "memory": _unless_none,
    "settings": merge_settings,
    "options": _unless_none,
}


def merge_contents(arguments: OpeningArguments, agent: "AgentDefaults | None") -> SessionContents:
    """Merge the contents from the caller and the agent."""
    defaults = _agent_words(agent)
    merged = replace(
        arguments,
        **{
            name: choose(getattr(arguments, name), defaults[name])
            for name, choose in PRECEDENCE.items()
            if name in defaults
        },
    )
    settings = merged.settings
    model = agent.agent.model if agent else ""
    return SessionContents(
        system=_system_parts(merged),
        tools=None if arguments.tools is None else tuple(arguments.tools),
        always=None if arguments.always is None else tuple(arguments.always),
        settings=settings,
        options=merged.options,
        first_target=(
            arguments.target or (settings.target if settings else "") or model or default_target()
        ),
    )


def screen_contents(
    contents: SessionContents, settings: Settings
) -> tuple[SessionContents, tuple[str, ...]]:
    """Return the contents without their secrets, and what a person should know about that."""
    screen = SecretScreen()
    parts, warnings = screen.parts(contents.system, settings.secrets)
    pairs = [screen.item(item, settings.secrets) for item in contents.always or ()]
    warnings += tuple(warning for _, found in pairs for warning in found)
    always = contents.always and tuple(item for item, _ in pairs)
    return replace(contents, system=parts, always=always), warnings


def _system_parts(arguments: OpeningArguments) -> tuple[SystemPart, ...]:
    system, memory = arguments.system, arguments.memory
    texts = [("system", system)] if isinstance(system, str) else list(system)
    # The most volatile part last: a change in memory must not move the project.
    texts.append(("project", render_project("", arguments.project, arguments.project_context)))
    if memory and memory.strip():
        texts.append(
            ("memory", f"<saved_memories>\n{escape_content(memory.strip())}\n</saved_memories>")
        )
    for name, text in texts:
        if not isinstance(text, str):
            raise UsageError(f"the system part {name!r} must be text, not {text!r}")
    parts = tuple(SystemPart(name=name, text=text) for name, text in texts if text.strip())
    for part in parts:
        if part.name == LIBRARY:
            raise UsageError(f"the system part {LIBRARY!r} is reserved for the library")
    return parts


# The persona where none is written, and its former words: a session that has those keeps them.
DEFAULT_PERSONA = (
    "You are a helpful assistant. Answer from the attachments where you can, and say so if they "
    "don't contain the answer."
)
_FORMER_PERSONAS = frozenset(
    {
        "You are a helpful assistant. Answer from what is attached where you can, and say so if it "
        "does not tell."
    }
)
# The parts of L1 that an agent brings.
AGENT_PARTS = ("persona", "workspace_persona", "user_persona", "project", "memory")


def is_same_text(standing: str | None, text: str) -> bool:
    """Whether a part of L1 can stay as it stands where `text` is given for it."""
    return standing == text or (text == DEFAULT_PERSONA and standing in _FORMER_PERSONAS)


async def apply_given(
    session: Session,
    contents: SessionContents,
    target: str | None,
    *,
    whole: bool = False,
    loosens: bool = False,
) -> None:
    """Apply what differs from the last time the session was opened. Repeated arguments do not undo
    changes made in the session since; a `target` does, as a person named it for the next question.
    If the `whole` of an agent is given, parts that the agent no longer has are removed. Only with
    `loosens`, because a person explicitly said so, does the session ask less than before."""
    parts, tools, always = contents.system, contents.tools, contents.always
    settings, options = contents.settings, contents.options
    header = session.state.session
    first_settings = replace(header.settings, target="")
    # The arguments now, and those that the session began with.
    values: dict[str, tuple[Any, Any]] = {
        "system": (parts or None, header.system),
        "tools": (tools, header.tools),
        "always": (always, header.included),
        "settings": (settings and replace(settings, target=""), first_settings),
        "options": (options, header.options),
    }
    new: dict[str, str] = {}
    for name, (value, first) in values.items():
        before = session.state.given.get(name) or _digest(first)
        if value is not None and (digest := _digest(value)) != before:
            new[name] = digest
    if target and _is_named_anew(session, target):
        new["target"] = _digest(target)
    if not new:
        return
    ops: list[PatchOp] = []
    if "system" in new:
        standing = {part.name: part.text for part in session.envelope.system}
        reason = "the system prompt was given anew when the session was opened"
        ops += [
            SystemPartSet(name=part.name, text=part.text, reason=reason)
            for part in parts
            if not is_same_text(standing.get(part.name), part.text)
        ]
        names = {part.name for part in parts}
        ops += [
            SystemPartRemove(name=name, reason=f"no {name} came with the agent this time")
            for name in AGENT_PARTS
            if whole and name in standing and name not in names
        ]
    if "tools" in new:
        reason = "other tools were given when the session was opened"
        ops.append(ToolsReplace(tools=tools or (), reason=reason))
    next_settings = session.state.settings
    if "settings" in new and settings:
        asking = settings.ask_before_tools
        if not loosens:
            asking = stricter_policy(asking, session.settings.ask_before_tools)
        next_settings = replace(settings, target=next_settings.target, ask_before_tools=asking)
    if "target" in new and target:
        next_settings = replace(next_settings, target=target)
    await core_of(session).open_again(
        new,
        ops,
        settings=next_settings,
        options=options if "options" in new else None,
        always=always if "always" in new else None,
    )


def _is_named_anew(session: Session, target: str) -> bool:
    """Whether a named target changes anything: it is neither the session's target nor that of an
    open question, or the target that the session began with is unknown."""
    state = session.state
    if target != state.settings.target:
        return True
    if state.requests.open is not None and target != state.requests.open.target:
        return True
    return not (state.session.settings.target or "target" in state.given)


def _digest(value: Any) -> str:
    """A digest of a value as a journal stores it, where 1 and 1.0 are the same."""
    return digest_value(msgspec.json.decode(canonical_bytes(value), type=type(value)))
