"""The tools of a session: functions, servers, an agent's own, the workspace's files and search."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lamina.adapters.files.extras import require
from lamina.apps.wiring.folders import data_folder
from lamina.apps.wiring.index import missing_search
from lamina.core.ports import ToolHost
from lamina.core.values.note import Scope
from lamina.core.values.patch import SystemPartRemove
from lamina.core.values.tool import WithheldTool
from lamina.engine.session.session import Session, core_of
from lamina.engine.sources.note_search import WorkspaceSearch
from lamina.errors import UsageError

if TYPE_CHECKING:
    from lamina.adapters.tools.mcp_client.config import ServerConfig, ServerList
    from lamina.apps.wiring.agent_defaults import AgentDefaults

# The approved descriptions of other people's tools, for all workspaces.
APPROVALS_FILE = "approvals.json"


def with_search(session: Session, scope: Scope, *hosts: ToolHost) -> ToolHost:
    """Combine the tools with one that searches the notes in `scope`, if the workspace has notes."""
    from lamina.adapters.tools.toolbox import Toolbox
    from lamina.engine.runners.note_search_tool import SearchTools

    if session.searcher is None:
        return Toolbox(*hosts)
    search = SearchTools(
        session.searcher,
        scope=scope,
        secrets=session.settings.secrets,
        now=core_of(session).clock.now,
    )
    return Toolbox(*hosts, search)


def missing_search_tool() -> tuple[str, ...]:
    """A warning if no tool searches the notes because search is not installed."""
    return (f"no tool searches the notes: {problem}",) if (problem := missing_search()) else ()


async def offer_files(session: Session) -> ToolHost:
    """Offer the workspace's files as tools, with instructions for the model.

    Raises:
        UsageError: the workspace is not a folder.
    """
    from lamina.adapters.tools.functions import FunctionTools
    from lamina.adapters.workspace.file_actions.actions import WORKSPACE_PERSONA
    from lamina.adapters.workspace.folder import FolderWorkspace
    from lamina.apps.wiring.file_tools import FILES_PART, file_tools

    workspace = session.workspace
    if not isinstance(workspace, FolderWorkspace):
        raise UsageError("the workspace is not a folder, so it has no files to offer as tools")
    standing = {part.name: part.text for part in session.envelope.system}
    if standing.get(FILES_PART) != WORKSPACE_PERSONA:
        reason = "the workspace's files are offered as tools"
        await session.set_system(FILES_PART, WORKSPACE_PERSONA, reason=reason)
    return FunctionTools(*file_tools(workspace, session))


async def withdraw_files(session: Session) -> None:
    """Remove the instructions from a session that continues without the files. A session in the
    middle of a turn ends that turn first."""
    from lamina.apps.wiring.file_tools import FILES_PART

    if session.interrupted or session.pending_calls:
        return
    if any(part.name == FILES_PART for part in session.envelope.system):
        reason = "the workspace's files are no longer offered as tools"
        op = SystemPartRemove(name=FILES_PART, reason=reason)
        await session.apply("lamina.files", op)


def require_search(session: Session) -> WorkspaceSearch:
    """Return the search of a session's notes.

    Raises:
        ExtraMissing: search is not installed.
        UsageError: there are no notes.
    """
    if session.searcher is None:
        require("search")
        raise UsageError("the workspace of this session has no notes to search")
    return session.searcher


def list_hosts(
    tools: ToolHost | Iterable[Callable[..., Any]], mcp: str | os.PathLike[str] | None
) -> list[ToolHost]:
    from lamina.adapters.tools.functions import FunctionTools

    own = cast(ToolHost, tools) if hasattr(tools, "toolset") else None
    functions = () if own else tuple(cast(Iterable[Callable[..., Any]], tools))
    hosts: list[ToolHost] = [own or FunctionTools(*functions)]
    if mcp is not None:
        from lamina.adapters.tools.mcp_client.config import read_servers

        hosts.append(_servers(read_servers(Path(mcp))))
    return hosts


def agent_hosts(
    defaults: "AgentDefaults",
    workspace: str | os.PathLike[str] | None,
    *,
    stays: bool = True,
) -> list[ToolHost]:
    """The servers of an agent, if its folder is trusted, and the files of its skills. Unless the
    caller `stays` for another attempt at a server, none is announced."""
    from lamina.adapters.tools.mcp_client.config import ServerList
    from lamina.adapters.tools.skill_files import SkillTools
    from lamina.apps.wiring.trust_lookup import start_check

    folder = defaults.trust
    hosts: list[ToolHost] = []
    if defaults.servers.servers or defaults.servers.problems:
        check = None if folder.standing == "own" else start_check(folder.claims, workspace)
        hosts.append(_servers(defaults.servers, check, stays=stays, of_agent=True))
    elif folder.claims.servers and not folder.counts:
        names = ", ".join(folder.claims.servers)
        withheld = WithheldTool(what=names, reason="untrusted", detail=folder.notice())
        hosts.append(_servers(ServerList(problems=(withheld,))))
    if defaults.agent.skills:
        hosts.append(SkillTools(defaults.agent.skills, defaults.agent.root or None))
    return hosts


def _servers(
    config: "ServerList",
    check: "Callable[[ServerConfig], None] | None" = None,
    *,
    stays: bool = True,
    of_agent: bool = False,
) -> ToolHost:
    from lamina.adapters.tools.approved_definitions import Approvals
    from lamina.adapters.tools.mcp_client.mcp_servers import McpServers, ServerPatience

    approvals = Approvals(data_folder() / APPROVALS_FILE)
    patience = None if stays else ServerPatience(rest=0)
    return McpServers(
        config, approvals=approvals, patience=patience, check=check, of_agent=of_agent
    )
