"""Runners with everything they need: a session, models, tools, and a summarizer."""

import os
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, Unpack

from lamina.adapters.files.extras import Need
from lamina.apps.wiring.clients import Clients
from lamina.apps.wiring.folders import folder_of
from lamina.apps.wiring.opening_arguments import (
    AgentOpening,
    OpeningArguments,
    SessionOpening,
    require_opening,
    require_port,
    takes,
)
from lamina.apps.wiring.sessions import OpenedSession, open_with
from lamina.apps.wiring.tool_hosts import (
    agent_hosts,
    list_hosts,
    missing_search_tool,
    offer_files,
    require_search,
    with_search,
    withdraw_files,
)
from lamina.apps.wiring.web_search import find_web_search, offer_web_search
from lamina.core.ports import Approver, Providers, ToolHost, WebSearch
from lamina.core.values.note import Scope
from lamina.engine.runners.agent import MAX_REQUESTS
from lamina.engine.runners.qa import QaRunner
from lamina.engine.runners.runner import AgentRunner, ChatRunner, PlanRunner
from lamina.engine.session.session import Session, core_of
from lamina.engine.session.summarizer import ModelSummarizer
from lamina.engine.sources.note_search import EVERYWHERE, TOP

R = TypeVar("R", bound=ChatRunner)


@takes(SessionOpening)
async def open_chat(
    session: str | None = None,
    *,
    providers: Providers | None = None,
    **opening: Unpack[SessionOpening],
) -> ChatRunner:
    """Open a session with a model that answers: `async with await open_chat() as chat: await
    chat.run("Hello")`. Accepts the arguments of `open_session`; without a `target` the embedded
    model answers. The session's own model summarises history.

    Raises:
        ExtraMissing: what its target needs is not installed; no session is begun.
        SessionBusy: the session is open elsewhere.
        TypeError: a word is given that it does not take.
    """
    require_opening(open_chat, opening)
    opened, clients = await _open(session, providers, opening)
    return _close_clients(ChatRunner(opened.session, clients), clients, providers)


async def _open(
    session: str | None, providers: Providers | None, opening: AgentOpening, *needs: Need
) -> tuple[OpenedSession, Providers]:
    """The session, with the model that answers in it and summarises its history."""
    clients = providers or Clients()
    opening.setdefault("summarizer", ModelSummarizer(clients))
    arguments, answers = OpeningArguments(**opening), providers is None
    return await open_with(session, arguments, answers=answers, needs=needs), clients


def _close_clients(runner: R, clients: Providers, providers: Providers | None) -> R:
    """Close clients that were created for a runner together with it; callers close their own."""
    if providers is None and isinstance(clients, Clients):
        runner.closing.append(clients.aclose)
    return runner


@takes(SessionOpening)
async def open_qa(
    session: str | None = None,
    *,
    scope: Scope = EVERYWHERE,
    top: int = TOP,
    providers: Providers | None = None,
    **opening: Unpack[SessionOpening],
) -> QaRunner:
    """Open a session like `open_chat`, answering from the notes of the workspace, with citations:
    passages that match a question are found (within `scope`) and sent with it.

    Raises:
        SessionBusy: the session is open elsewhere.
        ExtraMissing: search, or what its target needs, is not installed; no session is begun.
        TypeError: a word is given that it does not take.
        UsageError: the workspace has no notes to search.
    """
    require_opening(open_qa, opening)
    with_agent, clients = await _open(session, providers, opening, "search")
    opened = with_agent.session
    try:
        await withdraw_files(opened)
        runner = QaRunner(opened, clients, require_search(opened), scope=scope, top=top)
    except BaseException:
        await opened.close()
        raise
    return _close_clients(runner, clients, providers)


@takes(AgentOpening)
async def open_plan(
    session: str | None = None,
    *,
    tools: ToolHost | Iterable[Callable[..., Any]] = (),
    mcp: str | os.PathLike[str] | None = None,
    files: bool = False,
    web_search: str | WebSearch | None = None,
    scope: Scope = EVERYWHERE,
    approver: Approver | None = None,
    providers: Providers | None = None,
    **opening: Unpack[AgentOpening],
) -> PlanRunner:
    """Open a session like `open_agent`, with one planned batch of tool calls: the model is asked
    which to call, they run, and it answers once. One tool searches the notes of the workspace,
    within `scope`, and with `web_search` another searches the web, as in `open_agent`. A call that
    needs approval is denied without an `approver`.

    Raises:
        ExtraMissing: what its target or `mcp` needs is not installed; no session is begun.
        SessionBusy: the session is open elsewhere.
        TypeError: a word is given that it does not take.
        UsageError: a function or the file cannot be used.
    """
    require_opening(open_plan, opening)
    require_port(approver, "approver", "decide")
    opened, clients, host = await _open_with_tools(
        session, tools, mcp, files, web_search, providers, opening
    )
    core_of(opened).warn(*missing_search_tool())
    runner = PlanRunner(
        opened, clients, host, search=opened.searcher, scope=scope, approver=approver
    )
    return _close_clients(runner, clients, providers)


@takes(AgentOpening)
async def open_agent(
    session: str | None = None,
    *,
    tools: ToolHost | Iterable[Callable[..., Any]] = (),
    mcp: str | os.PathLike[str] | None = None,
    files: bool = False,
    web_search: str | WebSearch | None = None,
    scope: Scope = EVERYWHERE,
    approver: Approver | None = None,
    max_requests: int = MAX_REQUESTS,
    providers: Providers | None = None,
    **opening: Unpack[AgentOpening],
) -> AgentRunner:
    """Open a session like `open_chat`, with tools that the model may call: Python functions, the
    servers of an `mcpServers` file, your own tool host, and those of an `agent`: its servers, and
    the files of its skills. With `files`, also tools to search the workspace's notes (within
    `scope`), to read its files and to change them. With `web_search`, a tool that searches the web
    at that place: an address (`https://...`), the tool of a server (`mcp:SERVER/TOOL`), or your own
    `WebSearch`. Use it in `async with`. `approver` is asked before a tool runs that is not free;
    without one the turn waits for `decide` and `resume`.

    Raises:
        ExtraMissing: what its target or `mcp` needs is not installed; no session is begun.
        SessionBusy: the session is open elsewhere.
        TypeError: a word is given that it does not take.
        UsageError: a function or the file cannot be used.
    """
    require_opening(open_agent, opening)
    require_port(approver, "approver", "decide")
    opened, clients, host = await _open_with_tools(
        session, tools, mcp, files, web_search, providers, opening
    )
    if files:
        core_of(opened).warn(*missing_search_tool())
        host = with_search(opened, scope, host)
    runner = AgentRunner(opened, clients, host, approver=approver, max_requests=max_requests)
    return _close_clients(runner, clients, providers)


async def _open_with_tools(
    session: str | None,
    tools: ToolHost | Iterable[Callable[..., Any]],
    mcp: str | os.PathLike[str] | None,
    files: bool,
    web_search: str | WebSearch | None,
    providers: Providers | None,
    opening: AgentOpening,
) -> tuple[Session, Providers, ToolHost]:
    hosts = list_hosts(tools, mcp)
    if web_search is not None:
        # Before anything is opened, so that an invalid place is reported at once.
        find_web_search(web_search)
    folder = folder_of(opening.get("workspace"))
    agent, project = opening.get("agent"), opening.get("project")
    if agent is not None:
        from lamina.apps.wiring.agent_defaults import read_agent_defaults

        # Read once, for its tools and for the session.
        trust = opening.get("trust", False)
        opening["agent"] = await read_agent_defaults(agent, folder, project=project, trust=trust)
    needs: tuple[Need, ...] = () if mcp is None else ("mcp",)
    opened, clients = await _open(session, providers, opening, *needs)
    try:
        if opened.agent is not None:
            hosts += agent_hosts(opened.agent, folder)
        servers = tuple(hosts)
        hosts += [await offer_files(opened.session)] if files else []
        hosts += [offer_web_search(web_search, servers)] if web_search is not None else []
        if not files:
            await withdraw_files(opened.session)
    except BaseException:
        await opened.session.close()
        raise
    from lamina.adapters.tools.toolbox import Toolbox

    return opened.session, clients, Toolbox(*hosts)


__all__ = ["Clients", "open_agent", "open_chat", "open_plan", "open_qa"]
