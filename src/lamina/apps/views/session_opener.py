"""Opens sessions for every app: a runner for a session of a workspace, with its model if that
runs on this machine.

Law: a request that cannot work is refused before a session exists, so that no unusable session
is left behind.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

import anyio
from msgspec import Struct

from lamina.adapters.files.extras import Need, require
from lamina.adapters.providers.local.model_catalogue import is_model_path
from lamina.adapters.providers.model_book import load_book
from lamina.adapters.stores.memory import MemoryStore
from lamina.adapters.stores.scratch import ScratchStore
from lamina.apps.views.session_options import PromptOptions, SessionOptions, refuse_ignored
from lamina.apps.views.stored_sessions import find_session
from lamina.apps.views.trusted_hooks import load_hooks
from lamina.apps.wiring import default_target
from lamina.apps.wiring.folders import memory_file
from lamina.apps.wiring.runners import Clients, open_agent, open_plan, open_qa
from lamina.apps.wiring.stores import default_store, store_of_file
from lamina.core.notes.references import is_url
from lamina.core.ports import Approver, Clock, Index, JournalStore, WorkspaceSource
from lamina.core.values.request import LeftOut
from lamina.core.values.settings import LOCAL_WIRES, Settings, Target
from lamina.engine.runners.answer import NoProviders
from lamina.engine.runners.runner import ChatRunner
from lamina.engine.session.session import Session, core_of
from lamina.engine.sources.hooks import Hooks
from lamina.engine.sources.note_search import WorkspaceSearch
from lamina.errors import ModelMissing, UsageError

if TYPE_CHECKING:
    from lamina.adapters.tools.mcp_client.config import ServerList
    from lamina.apps.wiring.agent_defaults import AgentDefaults
    from lamina.apps.wiring.trust_lookup import FolderTrust


class Notices(Protocol):
    """How an app shows progress while a session is opened."""

    def say(self, line: str) -> None: ...

    def fetch_model(self, name: str) -> Awaitable[object]:
        """Download a model that is not on this machine, and show progress.

        Raises:
            ModelMissing: it cannot be downloaded.
        """

    def agree(self, folder: "FolderTrust") -> Awaitable[bool]:
        """Ask the person whether they trust what a folder brings; False if no one can be
        asked."""

    def index_progress(
        self, action: str, things: str, *, at_most: bool = False
    ) -> Callable[[int, int], None]:
        """Show indexing progress: `action` is done for a number of `things`, or for up to that
        number with `at_most`."""


def require_extras(
    options: SessionOptions,
    prompt: PromptOptions,
    *needs: Need,
    sends: bool = True,
) -> None:
    """Refuse missing extras before anything is opened, downloaded or written: those for the
    options, for the attachments, and for the target unless nothing is sent. The model of an agent
    or of a stored session is checked when that is read.

    Raises:
        ExtraMissing: something is not installed.
        UnknownTarget: there is no such target.
    """
    wanted = list(needs)
    if sends and (options.target or not (options.agent or options.continued)):
        wanted.append(load_book().find(options.target or default_target()).wire)
    if options.mode == "qa":
        wanted.append("search")
    if sends and options.mcp is not None:
        wanted.append("mcp")
    if sends and options.web_search and not options.web_search.startswith("mcp:"):
        wanted.append("pages")
    for reference in prompt.references:
        if is_url(reference):
            wanted.append("pages")
        elif reference.partition("#")[0].lower().endswith(".pdf"):
            wanted.append("pdf")
    require(*wanted)


class Rehearsal(Struct, frozen=True, kw_only=True):
    """A runner's environment when it only shows what it would send: nothing is sent or stored.
    `clock` None means the usual clock. `store` contains the session to continue; without it, the
    session is opened in its own store, where it must not be open elsewhere."""

    index: Index
    clock: Clock | None = None
    store: JournalStore | None = None


async def open_runner(
    options: SessionOptions,
    notices: Notices,
    *,
    approver: Approver | None = None,
    needs_key: bool = False,
    workspace: WorkspaceSource | None = None,
    rehearsal: Rehearsal | None = None,
) -> ChatRunner:
    """Open a runner; an embedded model that is not on this machine is downloaded. `needs_key`
    refuses a vendor that cannot be reached. `workspace` is the one of the options, if it is open
    already. In a `rehearsal` it can only preview, and needs neither a key nor a model.

    Raises:
        ExtraMissing: what the target needs is not installed.
        KeyMissing, ProviderError: a key or an address is needed and missing.
        UnknownSession: there is no such session.
        SessionBusy: it is open elsewhere.
        ModelMissing: the model cannot be downloaded.
        UsageError: there is no such agent or project, or an option would have no effect.
    """
    refuse_ignored(options)
    hooks = await load_hooks(options, notices)
    agent = await _read_agent(options, notices)
    session, name = options.session, options.target
    store: JournalStore | None = None
    if options.is_new and session is not None:
        await _require_free(session, options)
    if options.continued is not None:
        stored = await find_session(options.continued, options.workspace, can_begin=True)
        session, store = stored.session, stored.store
        if rehearsal is not None:
            store = rehearsal.store or ScratchStore(store)
    elif name is None:
        name = (agent.agent.model if agent else "") or default_target()
    # One person, one conversation: another slot would use memory without any benefit. Like the
    # session, the model's state is kept for the next command.
    clients = Clients(slots=1, remember=True)
    if name is not None and not rehearsal:
        target = load_book().find(name)
        require(target.wire)
        if needs_key and target.wire not in LOCAL_WIRES:
            # Without its address, the target could not answer either.
            await clients.provider(target)
        await ensure_target(target, notices)
    if _is_searched(options, agent):
        await ensure_search(notices)
    runner = await _open(
        session, store, options, agent, approver, clients, workspace, rehearsal, hooks
    )
    runner.closing.append(clients.aclose)
    if rehearsal is not None:
        core_of(runner.session).turns.spending.rehearse()
    try:
        core_of(runner.session).show_indexing(notices.index_progress("indexing", "chunks"))
        if runner.session.searcher is not None:
            show_progress(runner.session.searcher, notices)
        changes = options.changes.as_settings()
        window = changes.pop("window", None)
        await _change(runner.session, changes)
        if not rehearsal:
            await ensure_target(runner.session.target(), notices)
        if window is not None:
            await _change(runner.session, {"window": window})
        await limit_answers(runner.session, options.max_tokens)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await runner.close()
        raise
    return runner


async def _require_free(session: str, options: SessionOptions) -> None:
    """
    Raises:
        UsageError: a session has that id, or the id names a file.
    """
    if store_of_file(session) is not None:
        raise UsageError(f"{session!r} is a path; a session's name must not be a path")
    if await default_store(options.workspace).has(session):
        raise UsageError(
            f"session {session!r} already exists: leave out --new to continue it, or choose "
            f"another name"
        )


async def _open(
    session: str | None,
    store: JournalStore | None,
    options: SessionOptions,
    agent: "AgentDefaults | None",
    approver: Approver | None,
    clients: Clients,
    workspace: WorkspaceSource | None,
    rehearsal: Rehearsal | None,
    hooks: Hooks | None,
) -> ChatRunner:
    window = options.changes.window
    # An agent has settings of its own, and so does an existing session.
    is_plain = options.continued is None and options.agent is None
    opening: dict[str, Any] = {
        "system": _persona(options, agent),
        "agent": agent,
        "project": options.project,
        # For the agent of a continued session; the person was asked about a named one already.
        "trust": options.trust,
        "workspace": workspace or options.workspace,
        "store": store,
        "target": options.target,
        "settings": Settings(window=window) if window is not None and is_plain else None,
        "providers": clients,
        "memory_file": memory_file() if options.memory else None,
        "scope": options.scope,
        "hooks": hooks,
    }
    if rehearsal is not None:
        opening |= {
            "providers": NoProviders(), "store": store or MemoryStore(), "summarizer": None,
            "index": rehearsal.index, "clock": rehearsal.clock,
        }  # fmt: skip
    if options.mode == "qa":
        return await open_qa(session, **opening)
    open_with_tools = open_plan if options.mode == "plan" else open_agent
    return await open_with_tools(
        session, mcp=options.mcp, files=options.files, web_search=options.web_search,
        approver=approver, **opening,
    )  # fmt: skip


async def _read_agent(options: SessionOptions, notices: Notices) -> "AgentDefaults | None":
    """Read the agent as it is now, with what counts of its folder: what the person trusts, or was
    shown and agreed to."""
    if options.agent is None:
        return None
    from lamina.apps.views.folder_trust import settle_trust
    from lamina.apps.wiring.agent_defaults import read_agent_defaults
    from lamina.apps.wiring.session_contents import DEFAULT_PERSONA

    agent = await read_agent_defaults(
        options.agent, options.workspace, project=options.project, default_persona=DEFAULT_PERSONA
    )
    return await settle_trust(agent, notices, trust=options.trust)


def _persona(
    options: SessionOptions, agent: "AgentDefaults | None"
) -> str | tuple[tuple[str, str], ...]:
    """Return the persona: the agent's, or a helpful assistant's; with the workspace's and the
    user's changes. A continued session has one already, unless its agent is named again."""
    if options.system:
        return options.system
    if agent is not None:
        return agent.system
    if options.continued is not None:
        return ""
    from lamina.apps.wiring.agent_finder import persona_parts
    from lamina.apps.wiring.session_contents import DEFAULT_PERSONA

    parts = persona_parts(None, options.workspace, DEFAULT_PERSONA)
    return parts if len(parts) > 1 else DEFAULT_PERSONA


async def ensure_search(notices: Notices) -> None:
    """Download the model that search needs. Without it search uses words alone, which the first
    answer reports."""
    from lamina.apps.wiring.index import EMBEDDING_MODEL, can_embed

    if can_embed():
        try:
            await notices.fetch_model(EMBEDDING_MODEL)
        except ModelMissing as error:
            notices.say(f"search uses words alone: {error}")


def _is_searched(options: SessionOptions, agent: "AgentDefaults | None") -> bool:
    if options.mode == "qa":
        return True
    if agent is not None and any(guide.include == "agent" for guide in agent.agent.guides):
        return True
    server_lists: list[ServerList] = []
    if options.mcp is not None or (agent is not None and agent.agent.servers):
        from lamina.adapters.tools.mcp_client.config import read_servers

        if options.mcp is not None:
            server_lists.append(read_servers(options.mcp))
        if agent is not None:
            server_lists.append(agent.servers)
    return any(
        server.include == "agent" or any(tool.include == "agent" for tool in server.tools.values())
        for server_list in server_lists
        for server in server_list.servers
    )


def show_progress(search: WorkspaceSearch, notices: Notices) -> None:
    """Show the progress of a search."""
    search.reading = notices.index_progress("reading", "notes")
    search.indexing = notices.index_progress("indexing", "passages")
    search.comparing = notices.index_progress("comparing", "passages", at_most=True)


async def _change(session: Session, changes: dict[str, Any]) -> None:
    changes = {
        name: value for name, value in changes.items() if getattr(session.settings, name) != value
    }
    if changes:
        await session.update_settings(**changes)


async def limit_answers(session: Session, tokens: int | None) -> None:
    """Limit the length of the session's answers, starting with the next."""
    if tokens not in (None, session.state.options.max_tokens):
        await session.update_settings(max_tokens=tokens)


async def ensure_target(target: Target, notices: Notices) -> None:
    """Download the model of a target, if it can be downloaded and is missing.

    Raises:
        ExtraMissing: what the target needs is not installed.
        ModelMissing: it cannot be downloaded.
    """
    require(target.wire)
    if target.provider == "local" and not is_model_path(target.model):
        await notices.fetch_model(target.model)


def require_fetchable(references: Iterable[str], options: SessionOptions) -> None:
    """Refuse pages that a new session may not fetch; an existing one has its own settings.

    Raises:
        UsageError: a page may not be fetched.
    """
    if options.continued is not None or options.changes.web not in (None, "off"):
        return
    for reference in filter(is_url, references):
        raise UsageError(
            f"cannot attach {reference}: fetching pages is off by default; "
            f"--allow-host HOST allows one host, --web public any public host"
        )


async def require_readable(references: Iterable[str], workspace: WorkspaceSource) -> None:
    """Refuse what cannot be attached: an answer without it would miss what was asked. Pages are
    fetched later.

    Raises:
        UsageError: something cannot be read.
    """
    problems: list[str] = []
    for reference in references:
        if not is_url(reference):
            content = await workspace.read(reference, "attached")
            if isinstance(content, LeftOut):
                problems.append(content.detail)
    if problems:
        raise UsageError(f"cannot attach: {'; '.join(problems)}")
