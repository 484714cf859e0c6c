"""What an application gives when it opens a session that was there before.

Laws: it holds from then on where it differs from the last time, and is a recorded reason. A target
that is named is who is asked, whatever was given or set before.
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from lamina.apps.wiring.session_contents import SessionContents
from lamina.core.codec import canonical_bytes, digest_value
from lamina.core.values.patch import PatchOp, SystemPartRemove, SystemPartSet, ToolsReplace
from lamina.core.values.tool import stricter_policy
from lamina.engine.session.session import Session, core_of

# The parts of L1 that come from an agent.
AGENT_PARTS = ("persona", "workspace_persona", "user_persona", "project", "memory")


async def apply_given(
    session: Session,
    contents: SessionContents,
    target: str | None,
    *,
    whole: bool = False,
    loosens: bool = False,
) -> None:
    """Applies what differs from the last time the session was opened. What is given again as it was
    does not undo what was set in the session meanwhile; a `target` does, which a person named for
    what is asked now. If the `whole` of an agent is given, a part that the agent no longer has
    goes. Only if it `loosens`, because a person said so outright, is the session less strict about
    asking than it was."""
    parts, tools, always = contents.system, contents.tools, contents.always
    settings, options = contents.settings, contents.options
    header = session.state.session
    first_settings = replace(header.settings, target="")
    # What comes now, and what the session began with.
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
            if standing.get(part.name) != part.text
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
    """Whether naming a target says anything: it is not whom the session talks to, nor whom an open
    question is for, or nothing is known of whom the session began with."""
    state = session.state
    if target != state.settings.target:
        return True
    if state.requests.open is not None and target != state.requests.open.target:
        return True
    return not (state.session.settings.target or "target" in state.given)


def _digest(value: Any) -> str:
    """A digest of what a journal would hold: there, a whole number is the same as its fraction."""
    return digest_value(msgspec.json.decode(canonical_bytes(value), type=type(value)))
