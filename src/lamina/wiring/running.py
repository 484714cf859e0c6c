"""Runners with everything they need: a session, the models that answer, tools, and a summarizer."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

import anyio

from lamina.engine.runner import MAX_REQUESTS, AgentRunner, ChatRunner
from lamina.engine.summarizing import ModelSummarizer
from lamina.errors import InvalidSetting, ProviderError
from lamina.ports import Approver, Provider, Providers, ToolHost
from lamina.values.settings import Target
from lamina.wiring.opening import data_folder, open_session

SLOTS = 4
# What was agreed to of tools that others write, for all workspaces.
APPROVALS = "approvals.json"


class Clients:
    """Who answers for a target. An embedded model is loaded when it is first asked, once for all
    sessions of the process; `slots` of them are served at a time. Each slot takes memory for a
    whole window: `window` makes it smaller than the target's own, and the sessions' setting of that
    name should say the same."""

    def __init__(self, *, slots: int | None = None, window: int | None = None) -> None:
        self._slots = slots or _slots_wanted()
        self._window = window
        self._found: dict[str, Provider] = {}

    async def provider(self, target: Target) -> Provider:
        """The provider of a target.

        Raises:
            ModelMissing: the embedded model is not on this machine.
            ProviderError: there is no client for it.
        """
        if target.name not in self._found:
            if target.provider != "local":
                raise ProviderError(
                    f"Lamina has no client of its own for {target.provider!r} yet: prepare the "
                    f"turn and send turn.request() with yours, or use a local model"
                )
            self._found[target.name] = await self._embedded(target)
        return self._found[target.name]

    async def _embedded(self, target: Target) -> Provider:
        from lamina.providers.local.catalogue import find_model
        from lamina.providers.local.client import EmbeddedModel
        from lamina.providers.local.serving import Serving, serve

        path = await anyio.to_thread.run_sync(find_model, target.model)
        window = min(target.window, self._window or target.window)
        serving = Serving(path=path, window=window, slots=self._slots)
        return EmbeddedModel(await serve(serving))


def _slots_wanted() -> int:
    given = os.environ.get("LAMINA_SLOTS", "")
    if not given:
        return SLOTS
    if not given.isdigit() or int(given) < 1:
        raise InvalidSetting("LAMINA_SLOTS", given, "must be a number from 1 on")
    return int(given)


async def open_chat(
    session: str | None = None, *, providers: Providers | None = None, **opening: Any
) -> ChatRunner:
    """A session with a model that answers: `async with await open_chat() as chat: await
    chat.run("Hello")`. Takes what `open_session` takes; without a `target` the embedded model
    answers. History is summarised by the session's own model.

    Raises:
        SessionBusy: the session is open elsewhere.
    """
    clients = providers or Clients()
    opening.setdefault("summarizer", ModelSummarizer(clients))
    return ChatRunner(await open_session(session, **opening), clients)


async def open_agent(
    session: str | None = None,
    *,
    tools: ToolHost | Iterable[Callable[..., Any]] = (),
    mcp: str | os.PathLike[str] | None = None,
    approver: Approver | None = None,
    max_requests: int = MAX_REQUESTS,
    providers: Providers | None = None,
    **opening: Any,
) -> AgentRunner:
    """As `open_chat`, with tools that the model may call: Python functions, the servers of an
    `mcpServers` file, or a tool host of one's own. Use it in `async with`. Before a tool runs that
    is not free, `approver` is asked; without one the turn waits for `decide` and `go_on`.

    Raises:
        SessionBusy: the session is open elsewhere.
        UsageError: a function or the file cannot be used.
    """
    clients = providers or Clients()
    opening.setdefault("summarizer", ModelSummarizer(clients))
    host = _tool_host(tools, mcp)
    opened = await open_session(session, **opening)
    return AgentRunner(opened, clients, host, approver=approver, max_requests=max_requests)


def _tool_host(
    tools: ToolHost | Iterable[Callable[..., Any]], mcp: str | os.PathLike[str] | None
) -> ToolHost:
    from lamina.tools.functions import FunctionTools
    from lamina.tools.toolbox import Toolbox

    own = cast(ToolHost, tools) if hasattr(tools, "toolset") else None
    functions = () if own else tuple(cast(Iterable[Callable[..., Any]], tools))
    hosts: list[ToolHost] = [own or FunctionTools(*functions)]
    if mcp is not None:
        from lamina.tools.approvals import Approvals
        from lamina.tools.config import read_servers
        from lamina.tools.mcp import McpServers

        approvals = Approvals(data_folder() / APPROVALS)
        hosts.append(McpServers(read_servers(Path(mcp)), approvals=approvals))
    return Toolbox(*hosts)
