"""Runners with everything they need: a session, the models that answer, tools, and a summarizer."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lamina.errors import UsageError
from lamina.ports import Approver, Providers, ToolHost
from lamina.runners.plan import PlanRunner
from lamina.runners.qa import QaRunner
from lamina.runners.runner import MAX_REQUESTS, AgentRunner, ChatRunner
from lamina.session.session import Session
from lamina.session.summarizer import ModelSummarizer
from lamina.sources.note_search import EVERYWHERE, TOP, WorkspaceSearch
from lamina.values.note import Scope
from lamina.values.patch import SystemPartRemove
from lamina.wiring.clients import Clients
from lamina.wiring.folders import data_folder
from lamina.wiring.sessions import open_session

if TYPE_CHECKING:
    from lamina.tools.mcp_client.config import ServerList

# What was agreed to of tools that others write, for all workspaces.
APPROVALS_FILE = "approvals.json"


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


async def open_qa(
    session: str | None = None,
    *,
    scope: Scope = EVERYWHERE,
    top: int = TOP,
    providers: Providers | None = None,
    **opening: Any,
) -> QaRunner:
    """As `open_chat`, answering from the notes of the workspace, with citations: what fits a
    question is searched for (`scope` says where) and sent with it.

    Raises:
        SessionBusy: the session is open elsewhere.
        UsageError: the workspace has no notes that could be searched.
    """
    clients = providers or Clients()
    opening.setdefault("summarizer", ModelSummarizer(clients))
    opened = await open_session(session, **opening)
    try:
        await _withdraw_files(opened)
        runner = QaRunner(opened, clients, require_search(opened), scope=scope, top=top)
    except BaseException:
        await opened.close()
        raise
    _close_with(runner, providers, clients)
    return runner


async def open_plan(
    session: str | None = None,
    *,
    tools: ToolHost | Iterable[Callable[..., Any]] = (),
    mcp: str | os.PathLike[str] | None = None,
    files: bool = False,
    scope: Scope = EVERYWHERE,
    approver: Approver | None = None,
    providers: Providers | None = None,
    **opening: Any,
) -> PlanRunner:
    """As `open_agent`, with one planned batch of tools: the model is asked which to call, they run,
    and it answers once. One of them searches the notes of the workspace, in `scope`. A call that
    needs a person's word is denied without an `approver`.

    Raises:
        SessionBusy: the session is open elsewhere.
        UsageError: a function or the file cannot be used.
    """
    clients = providers or Clients()
    opened, host = await _open_with_tools(session, tools, mcp, files, clients, opening)
    runner = PlanRunner(
        opened, clients, host, search=opened.searcher, scope=scope, approver=approver
    )
    _close_with(runner, providers, clients)
    return runner


async def open_agent(
    session: str | None = None,
    *,
    tools: ToolHost | Iterable[Callable[..., Any]] = (),
    mcp: str | os.PathLike[str] | None = None,
    files: bool = False,
    scope: Scope = EVERYWHERE,
    approver: Approver | None = None,
    max_requests: int = MAX_REQUESTS,
    providers: Providers | None = None,
    **opening: Any,
) -> AgentRunner:
    """As `open_chat`, with tools that the model may call: Python functions, the servers of an
    `mcpServers` file, a tool host of one's own, and those of an `agent`: its servers, and the files
    of its skills. With `files`, also tools to search the workspace's notes (those in `scope`), to
    look at its files and to change them. Use it in `async with`. Before a tool runs that is not
    free, `approver` is asked; without one the turn waits for `decide` and `go_on`.

    Raises:
        SessionBusy: the session is open elsewhere.
        UsageError: a function or the file cannot be used.
    """
    clients = providers or Clients()
    opened, host = await _open_with_tools(session, tools, mcp, files, clients, opening)
    if files and opened.searcher is not None:
        host = with_search(opened, host, scope)
    runner = AgentRunner(opened, clients, host, approver=approver, max_requests=max_requests)
    _close_with(runner, providers, clients)
    return runner


async def _open_with_tools(
    session: str | None,
    tools: ToolHost | Iterable[Callable[..., Any]],
    mcp: str | os.PathLike[str] | None,
    files: bool,
    clients: Providers,
    opening: dict[str, Any],
) -> tuple[Session, ToolHost]:
    opening.setdefault("summarizer", ModelSummarizer(clients))
    hosts = _tool_hosts(tools, mcp)
    agent, folder = opening.get("agent"), opening.get("workspace")
    if agent is not None:
        hosts += await _agent_hosts(agent, folder if isinstance(folder, str | os.PathLike) else ".")
    opened = await open_session(session, **opening)
    try:
        if agent is None and (place := opened.state.session.with_agent_at):
            # The session goes on, and so does its agent, if it is still there.
            with suppress(UsageError):
                hosts += await _agent_hosts(place, ".")
        if files:
            hosts.append(await offer_files(opened))
        else:
            await _withdraw_files(opened)
    except BaseException:
        await opened.close()
        raise
    from lamina.tools.toolbox import Toolbox

    return opened, Toolbox(*hosts)


def with_search(session: Session, host: ToolHost, scope: Scope) -> ToolHost:
    """The tools, and one that searches the notes in `scope`."""
    from lamina.runners.search_tool import SearchTools
    from lamina.tools.toolbox import Toolbox

    assert session.searcher is not None
    return Toolbox(
        host, SearchTools(session.searcher, scope=scope, secrets=session.settings.secrets)
    )


async def offer_files(session: Session) -> ToolHost:
    """The workspace's files as tools, and what the model is told of how to use them.

    Raises:
        UsageError: the workspace is no folder.
    """
    from lamina.tools.functions import FunctionTools
    from lamina.wiring.file_tools import FILES_PART, file_tools
    from lamina.workspace.file_actions.persona import WORKSPACE_PERSONA
    from lamina.workspace.folder import FolderWorkspace

    workspace = session.workspace
    if not isinstance(workspace, FolderWorkspace):
        raise UsageError("the workspace is no folder: it has no files to offer as tools")
    standing = {part.name: part.text for part in session.envelope.system}
    if standing.get(FILES_PART) != WORKSPACE_PERSONA:
        reason = "the workspace's files are offered as tools"
        await session.set_system(FILES_PART, WORKSPACE_PERSONA, reason=reason)
    return FunctionTools(*file_tools(workspace, session))


async def _withdraw_files(session: Session) -> None:
    """A session that goes on without the files is not told of them any more. One that was left in
    the middle of a turn ends it first."""
    from lamina.wiring.file_tools import FILES_PART

    if session.interrupted or session.waiting:
        return
    if any(part.name == FILES_PART for part in session.envelope.system):
        reason = "the workspace's files are no longer offered as tools"
        op = SystemPartRemove(name=FILES_PART, reason=reason)
        await session.apply("lamina.files", op)


def require_search(session: Session) -> WorkspaceSearch:
    """What searches the notes of a session.

    Raises:
        UsageError: there are none.
    """
    if session.searcher is None:
        raise UsageError("the workspace of this session has no notes that could be searched")
    return session.searcher


def _tool_hosts(
    tools: ToolHost | Iterable[Callable[..., Any]], mcp: str | os.PathLike[str] | None
) -> list[ToolHost]:
    from lamina.tools.functions import FunctionTools

    own = cast(ToolHost, tools) if hasattr(tools, "toolset") else None
    functions = () if own else tuple(cast(Iterable[Callable[..., Any]], tools))
    hosts: list[ToolHost] = [own or FunctionTools(*functions)]
    if mcp is not None:
        from lamina.tools.mcp_client.config import read_servers

        hosts.append(_servers(read_servers(Path(mcp))))
    return hosts


async def _agent_hosts(
    agent: str | os.PathLike[str], workspace: str | os.PathLike[str]
) -> list[ToolHost]:
    """The servers of an agent, and the files of its skills."""
    from lamina.tools.mcp_client.config import servers_from
    from lamina.tools.skills import SkillTools
    from lamina.wiring.agent_defaults import read_agent_defaults
    from lamina.wiring.agents import servers_path

    found = (await read_agent_defaults(agent, workspace)).agent
    hosts: list[ToolHost] = []
    if found.servers:
        hosts.append(_servers(servers_from(found.servers, servers_path(found), os.environ)))
    if found.skills:
        hosts.append(SkillTools(found.skills))
    return hosts


def _servers(config: "ServerList") -> ToolHost:
    from lamina.tools.approvals import Approvals
    from lamina.tools.mcp_client.servers import McpServers

    return McpServers(config, approvals=Approvals(data_folder() / APPROVALS_FILE))


__all__ = ["APPROVALS_FILE", "Clients", "open_agent", "open_chat", "open_plan", "open_qa"]
