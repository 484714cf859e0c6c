"""Whom the first question of a new session goes to, known before there is a session.

Law: it is the target that `open_session` would choose.
"""

from collections.abc import Mapping
from typing import Any

from lamina.extras import require
from lamina.providers.model_book import load_book
from lamina.values.settings import Settings, Target
from lamina.wiring.sessions import default_store, default_target
from lamina.wiring.workspaces import folder_of


async def require_first_target(session: str | None, opening: Mapping[str, Any]) -> None:
    """Refuses a new session that nobody here could answer in; one that is kept has its own target.

    Raises:
        ExtraMissing: what its target needs is not installed.
        UnknownTarget: there is no such target.
    """
    store = opening.get("store") or default_store(opening.get("workspace"))
    if session is None or not await store.has(session):
        require((await find_first_target(opening)).wire)


async def find_first_target(opening: Mapping[str, Any]) -> Target:
    settings = opening.get("settings") or Settings()
    name, agent = opening.get("target") or settings.target, opening.get("agent")
    if not name and agent is not None:
        from lamina.wiring.agent_defaults import merge_settings, read_agent_defaults

        folder = folder_of(opening.get("workspace"))
        defaults = await read_agent_defaults(agent, folder, trust=opening.get("trust", False))
        name = merge_settings(settings, defaults.settings).target or defaults.agent.model
    return (opening.get("book") or load_book()).find(name or default_target())
