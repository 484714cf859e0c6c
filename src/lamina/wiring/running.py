"""Runners with everything they need: a session, the models that answer, tools, and a summarizer."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

from lamina.engine.runner import MAX_REQUESTS, AgentRunner, ChatRunner
from lamina.engine.summarizing import ModelSummarizer
from lamina.ports import Approver, Providers, ToolHost
from lamina.wiring.clients import Clients
from lamina.wiring.opening import data_folder, open_session

# What was agreed to of tools that others write, for all workspaces.
APPROVALS = "approvals.json"


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
    runner = ChatRunner(await open_session(session, **opening), clients)
    _close_with(runner, providers, clients)
    return runner


def _close_with(runner: ChatRunner, given: Providers | None, clients: Providers) -> None:
    """What was made for a runner is closed with it; what it was given is its giver's."""
    if given is None and isinstance(clients, Clients):
        runner.closing.append(clients.aclose)


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
    runner = AgentRunner(opened, clients, host, approver=approver, max_requests=max_requests)
    _close_with(runner, providers, clients)
    return runner


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


__all__ = ["APPROVALS", "Clients", "open_agent", "open_chat"]
