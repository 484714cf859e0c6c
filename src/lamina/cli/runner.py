"""What `chat`, `ask` and `rpc` share: a runner for a session of a workspace, and its model."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from rich.console import Console

from lamina.cli.index_progress import IndexProgress, attach_progress
from lamina.cli.models import ensure_model
from lamina.errors import ModelMissing, UsageError
from lamina.faces.stored_session import find_session
from lamina.ports import Approver
from lamina.providers.local.models import is_model_path
from lamina.providers.model_book import load_book
from lamina.runners.runner import ChatRunner
from lamina.values.note import Scope
from lamina.values.settings import Settings, Target
from lamina.wiring import default_target
from lamina.wiring.clients import find_key
from lamina.wiring.runners import Clients, open_agent, open_plan, open_qa
from lamina.wiring.workspaces import memory_file

if TYPE_CHECKING:
    from lamina.tools.mcp_client.config import ServerList
    from lamina.wiring.agent_defaults import AgentDefaults

SYSTEM = (
    "You are a helpful assistant. Answer from what is attached where you can, and say so if it "
    "does not tell."
)


Mode = Literal["agent", "qa", "plan"]


class RunOptions(Struct, frozen=True, kw_only=True):
    """How a person wants to talk: `session` is an id or the beginning of one, to go on with it.
    `changes` are settings that are said now, whatever the session or an agent says."""

    workspace: Path = Path()
    session: str | None = None
    target: str | None = None
    system: str = ""
    agent: str | None = None
    project: str | None = None
    mcp: Path | None = None
    settings: Settings | None = None
    max_requests: int = 20
    mode: Mode = "agent"
    # Where questions are answered from.
    scope: Scope = Scope()
    # Whether the model may look at the workspace's files, and change them.
    files: bool = False
    # Whether it is told what the person wants remembered.
    memory: bool = True
    changes: dict[str, Any] = {}


async def open_runner(
    options: RunOptions,
    console: Console,
    *,
    approver: Approver | None = None,
    needs_key: bool = False,
) -> ChatRunner:
    """The runner; an embedded model that is not on this machine is fetched, with a progress bar on
    `console`. With `needs_key` a vendor without a key is refused before there is a session.

    Raises:
        KeyMissing: there is no key, and it is needed.
        UnknownSession: there is no such session.
        SessionBusy: it is open elsewhere.
        ModelMissing: the model cannot be had.
        UsageError: there is no such agent or project.
    """
    refuse_ignored(options)
    session = options.session
    given = await _read_agent(options)
    model = given.agent.model if given else ""
    if session is not None:
        session = (await find_session(session, options.workspace)).session
    else:
        # Before there is a session: one that nobody can talk to would only be in the way.
        wanted = options.target or (options.settings.target if options.settings else "")
        target = load_book().find(wanted or model or default_target())
        if needs_key:
            require_key(target)
        await ensure_target(target, console)
    if options.target is not None:
        load_book().find(options.target)
    await _ensure_search(options, given, console)
    system = options.system or _persona(options, given)
    # One person, one conversation: a slot more would cost memory for nothing. What the model read
    # is kept for the next command, as the session is.
    clients = Clients(slots=1, remember=True)
    runner = await _open(session, system, options, approver, clients)
    runner.closing.append(clients.aclose)
    runner.session.turns.selector.progress = IndexProgress(console)
    if runner.session.searcher is not None:
        attach_progress(runner.session.searcher, console)
    try:
        changes = {
            name: value
            for name, value in options.changes.items()
            if getattr(runner.session.settings, name) != value
        }
        if changes:
            await runner.session.change(**changes)
        await ensure_target(runner.session.target(), console)
    except BaseException:
        await runner.close()
        raise
    return runner


def refuse_ignored(options: RunOptions) -> None:
    """Refuses what would have no effect, before anything is opened or fetched.

    Raises:
        UsageError: something does not go with the mode.
    """
    if options.mode == "qa" and (options.mcp is not None or options.files):
        raise UsageError(
            "--mode qa answers from notes and calls no tools: leave out the "
            "tools, or take --mode plan or agent"
        )
    if options.mode == "agent" and not options.files and options.scope != Scope():
        raise UsageError(
            "--in, --since and --until say where notes are searched, and nothing searches them: "
            "add --mode qa, --mode plan or --files"
        )


async def _open(
    session: str | None,
    system: str | tuple[tuple[str, str], ...],
    options: RunOptions,
    approver: Approver | None,
    clients: Clients,
) -> ChatRunner:
    opening: dict[str, Any] = {
        "system": system,
        "agent": options.agent,
        "project": options.project,
        "workspace": options.workspace,
        "target": options.target,
        "settings": options.settings,
        "providers": clients,
        "memory_file": memory_file() if options.memory else None,
    }
    match options.mode:
        case "qa":
            return await open_qa(session, scope=options.scope, **opening)
        case "plan":
            return await open_plan(
                session,
                mcp=options.mcp,
                files=options.files,
                scope=options.scope,
                approver=approver,
                **opening,
            )
        case "agent":
            return await open_agent(
                session,
                mcp=options.mcp,
                files=options.files,
                scope=options.scope,
                approver=approver,
                max_requests=options.max_requests,
                **opening,
            )


async def _read_agent(options: RunOptions) -> "AgentDefaults | None":
    if options.agent is None:
        if options.project is not None:
            raise UsageError(
                f"--project {options.project!r} needs --agent: projects are an agent's"
            )
        return None
    from lamina.wiring.agent_defaults import read_agent_defaults

    return await read_agent_defaults(
        options.agent, options.workspace, project=options.project, default_persona=SYSTEM
    )


def _persona(
    options: RunOptions, given: "AgentDefaults | None"
) -> str | tuple[tuple[str, str], ...]:
    """Who answers: the agent's own, or a helpful assistant; then as the workspace and the user want
    it. A session that goes on has all that already, unless its agent is named again."""
    if given is not None:
        return given.system
    if options.session is not None:
        return ""
    from lamina.wiring.agents import persona_parts

    parts = persona_parts(None, options.workspace, SYSTEM)
    return parts if len(parts) > 1 else SYSTEM


async def _ensure_search(
    options: RunOptions, given: "AgentDefaults | None", console: Console
) -> None:
    """Fetches the model that search needs, if something is chosen by search. Without it things are
    found by their words, which the first answer says."""
    from lamina.wiring.index import EMBEDDING_MODEL, can_embed

    if can_embed() and _is_searched(options, given):
        try:
            await ensure_model(EMBEDDING_MODEL, console)
        except ModelMissing as error:
            console.print(f"search goes by words alone: {error}", soft_wrap=True, markup=False)


def _is_searched(options: RunOptions, given: "AgentDefaults | None") -> bool:
    if options.mode == "qa":
        return True
    if given is not None and any(guide.include == "agent" for guide in given.agent.guides):
        return True
    configs: list[ServerList] = []
    if options.mcp is not None or (given is not None and given.agent.servers):
        from lamina.tools.mcp_client.config import read_servers, servers_from
        from lamina.wiring.agents import servers_path

        if options.mcp is not None:
            configs.append(read_servers(options.mcp))
        if given is not None:
            place = servers_path(given.agent)
            configs.append(servers_from(given.agent.servers, place, os.environ))
    return any(
        server.include == "agent" or any(tool.include == "agent" for tool in server.tools.values())
        for config in configs
        for server in config.servers
    )


def require_key(target: Target) -> None:
    """Refuses a vendor without a key.

    Raises:
        KeyMissing: there is none.
    """
    if target.wire != "llamacpp" and target.provider != "compatible" and not target.base_url:
        find_key(target)


async def ensure_target(target: Target, console: Console) -> None:
    """Fetches the model of a target, if it is one that can be fetched and is not here.

    Raises:
        ModelMissing: it cannot be had.
    """
    if target.provider == "local" and not is_model_path(target.model):
        await ensure_model(target.model, console)
