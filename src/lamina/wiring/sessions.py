"""Opening a session: its store, its workspace, its hooks, and what is given anew."""

import contextlib
import inspect
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import msgspec
from anyio.to_thread import run_sync
from msgspec.structs import replace

from lamina.codec import canonical_bytes, digest_value
from lamina.errors import HookError, UnknownTarget, UsageError
from lamina.ports import (
    Clock,
    GuideSource,
    Index,
    JournalStore,
    MemorySource,
    NoteSource,
    OpenJournal,
    Summarizer,
    SummaryJob,
    TargetBook,
    WebSource,
    WorkspaceSource,
)
from lamina.providers.model_book import DEFAULT_TARGET, load_book
from lamina.session.session import Session
from lamina.sources.hooks import Hooks
from lamina.sources.selector import Selector
from lamina.stores.jsonl import JsonlStore, file_stem
from lamina.text import escape_content, render_project
from lamina.values.entry import SessionEntry, start_entry
from lamina.values.envelope import LIBRARY, Options, SystemPart
from lamina.values.item import MEDIUM, AttachmentSpec, Item, Shape
from lamina.values.message import ToolDefinition
from lamina.values.patch import PatchOp, SystemPartRemove, SystemPartSet, ToolsReplace
from lamina.values.settings import Settings
from lamina.wiring.folders import data_folder
from lamina.wiring.index import LazyIndex
from lamina.wiring.workspaces import LazyWebFetcher, memory_source, open_workspace, workspace_folder
from lamina.workspace.folder import FolderWorkspace

if TYPE_CHECKING:
    from lamina.sources.note_search import WorkspaceSearch
    from lamina.wiring.agent_defaults import AgentDefaults

# The parts of L1 that come from an agent.
AGENT_PARTS = ("persona", "workspace_persona", "user_persona", "project", "memory")


class SystemClock:
    def now(self) -> float:
        return time.time()


def attach(
    what: str | Item,
    *,
    priority: int = MEDIUM,
    essential: bool = False,
    shape: Shape = "attached",
) -> AttachmentSpec:
    """A path or an item with what it is worth: `session.prepare(..., attach=[attach("a.md",
    essential=True)])`. Priority numbers: essential 0, high 3, medium 5, low 10; the higher number
    goes first when room is short."""
    if priority < 0:
        raise UsageError(f"priority {priority!r} is below 0, the number of essentials")
    return AttachmentSpec(what=what, priority=priority, essential=essential, shape=shape)


class _Asking:
    """A summarizer that is a function."""

    def __init__(self, ask: Callable[[SummaryJob], Awaitable[object]]) -> None:
        self._ask = ask

    async def summarize(self, job: SummaryJob) -> object:
        return await self._ask(job)


def default_store(workspace: str | os.PathLike[str] | WorkspaceSource | None = None) -> JsonlStore:
    """The sessions of a workspace, in a folder of their own."""
    if workspace is None or isinstance(workspace, str | os.PathLike):
        return JsonlStore(workspace_folder(workspace or "."))
    return JsonlStore(data_folder() / file_stem(workspace.name))


def default_target() -> str:
    """Whom a session talks to if nothing is said: LAMINA_TARGET, or the embedded model."""
    return os.environ.get("LAMINA_TARGET") or DEFAULT_TARGET


async def open_session(
    session: str | None = None,
    *,
    agent: str | os.PathLike[str] | None = None,
    system: str | Sequence[tuple[str, str]] = "",
    project: str | None = None,
    project_context: str | None = None,
    memory: str | None = None,
    tools: Iterable[ToolDefinition] | None = None,
    always: Iterable[Item] | None = None,
    target: str | None = None,
    workspace: str | os.PathLike[str] | WorkspaceSource | None = None,
    settings: Settings | None = None,
    options: Options | None = None,
    store: JournalStore | None = None,
    book: TargetBook | None = None,
    clock: Clock | None = None,
    hooks: Hooks | None = None,
    summarizer: Summarizer | Callable[[SummaryJob], Awaitable[object]] | None = None,
    index: Index | None = None,
    web: WebSource | None = None,
    memory_file: str | os.PathLike[str] | MemorySource | None = None,
) -> Session:
    """Opens a session: a new one, or one that `store` holds under the id `session`.

    `system` is L1: one text, or named parts in order. `always` are rules, references and notes
    that apply to every turn. `workspace` is the folder that attached paths are read from, the
    current one by default. `target` is `provider:model`. Without a `store`, sessions are kept as
    files under the user's data folder (LAMINA_DATA), one folder per workspace. `hooks` take part in
    every turn. A `summarizer` (an object, or an async function of a job) is asked for a summary
    when history is compacted; its `job.request()` is ready for your client.

    `agent` is a name or a path: its persona, memory, model and settings hold unless others are
    given, `project` may name one of its projects, and its rules and references apply as their
    include modes say; those chosen by search are found with `index`, the user's own by default.

    `memory_file` is a file that becomes one part of L1, read again for every question; a change to
    it is a recorded reason. Pages that are attached are fetched by `web`, as far as the settings
    `web` and `allow_hosts` allow.

    Raises:
        SessionBusy: the session is open elsewhere.
        UsageError: there is no such agent.
    """
    # First of all: what cannot be loaded must not leave a session behind, nor hold one.
    loaded = _load_hooks(hooks)
    book = book or load_book()
    clock = clock or SystemClock()
    source: WorkspaceSource = (
        open_workspace(workspace or ".")
        if workspace is None or isinstance(workspace, str | os.PathLike)
        else workspace
    )
    store = store or default_store(workspace)
    place, name_of_agent = "", ""
    relations: dict[str, tuple[str, ...]] = {}
    if agent is not None:
        given = await _read_agent(agent, workspace, project)
        place, relations, name_of_agent = given.place, given.agent.relations, given.agent.name
        system = system or given.system
        memory = memory if memory is not None else given.agent.memory
        settings = settings or given.settings
        options = options or given.options
        target = target or settings.target or given.agent.model or None
        if given.project:
            project, project_context = given.project.prompt, given.project.context
    chosen = settings or Settings()
    offered = None if tools is None else tuple(tools)
    included = None if always is None else tuple(always)
    parts = _system_parts(system, project, project_context, memory)
    if known := bool(session and await store.has(session)):
        opened = await store.open(session or "")
    else:
        name = target or chosen.target or default_target()
        book.find(name)
        header = start_entry(
            session or token_hex(8),
            clock.now(),
            system=parts,
            tools=offered or (),
            included=included or (),
            options=options or Options(),
            settings=replace(chosen, target=name),
            workspace=source.name,
            with_agent=name_of_agent,
            with_agent_at=place,
        )
        opened = await store.create(header)
    if not place:
        place, relations = await _agent_of(opened)
    searched = LazyIndex() if index is None else index
    fetched = LazyWebFetcher() if web is None else web
    session_opened = Session(
        opened,
        store=store,
        book=book,
        clock=clock,
        workspace=source,
        hooks=loaded,
        summarizer=_Asking(summarizer) if callable(summarizer) else summarizer,
        selector=Selector(searched, _guides(place), relations=relations),
        web=fetched,
        memory=memory_source(memory_file),
        searcher=_searcher(source, searched),
    )
    for made in (searched, source):
        # What was given is its giver's.
        if isinstance(made, LazyIndex | FolderWorkspace) and made not in (index, workspace):
            session_opened.closing.append(made.aclose)
    if known:
        try:
            if not session_opened.settings.target:
                # The header is lost, and with it whom the session talks to.
                name = target or chosen.target or default_target()
                with contextlib.suppress(UnknownTarget):
                    await session_opened.change(target=name)
            await _apply_given(
                session_opened, parts, offered, included, settings, target, options,
                whole=agent is not None,
            )  # fmt: skip
        except BaseException:
            await session_opened.close()
            raise
    return session_opened


def _searcher(source: WorkspaceSource, index: Index) -> "WorkspaceSearch | None":
    if not isinstance(source, NoteSource):
        return None
    from lamina.sources.note_search import WorkspaceSearch

    return WorkspaceSearch(source, index)


def _guides(place: str) -> GuideSource | None:
    if not place:
        return None
    from lamina.agents.folder import AgentFolder

    return AgentFolder(place)


async def _read_agent(
    agent: str | os.PathLike[str],
    workspace: str | os.PathLike[str] | WorkspaceSource | None,
    project: str | None,
) -> "AgentDefaults":
    from lamina.wiring.agent_defaults import read_agent_defaults

    folder = workspace if isinstance(workspace, str | os.PathLike) else "."
    return await read_agent_defaults(agent, folder, project=project)


async def _agent_of(opened: OpenJournal) -> tuple[str, dict[str, tuple[str, ...]]]:
    """Where the agent of a session that goes on is, and its relations; nothing if it is gone, which
    its items then say."""
    header = next(iter(opened.journal.entries.values()), None)
    place = header.with_agent_at if isinstance(header, SessionEntry) else ""
    if not place:
        return "", {}
    from lamina.agents.agent_reader import read_agent

    try:
        return place, (await run_sync(read_agent, place)).relations
    except UsageError:
        return place, {}


async def _apply_given(
    session: Session,
    parts: tuple[SystemPart, ...],
    tools: tuple[ToolDefinition, ...] | None,
    always: tuple[Item, ...] | None,
    settings: Settings | None,
    target: str | None,
    options: Options | None,
    *,
    whole: bool = False,
) -> None:
    """What an application says otherwise than the last time it opened the session holds from now
    on. What it says again does not undo what was set in the session meanwhile. If the `whole` of
    an agent is given, a part that it has no more goes."""
    header = session.state.session
    given: dict[str, Any] = {
        "system": parts or None,
        "tools": tools,
        "always": always,
        "settings": None if settings is None else replace(settings, target=""),
        "target": target or (settings.target if settings else "") or None,
        "options": options,
    }
    said = {name: _digest(value) for name, value in given.items() if value is not None}
    before = {
        "system": _digest(header.system),
        "tools": _digest(header.tools),
        "always": _digest(header.included),
        "settings": _digest(replace(header.settings, target="")),
        "target": _digest(header.settings.target),
        "options": _digest(header.options),
        **session.state.given,
    }
    new = {name: digest for name, digest in said.items() if before[name] != digest}
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
        named = {part.name for part in parts}
        ops += [
            SystemPartRemove(name=name, reason=f"no {name} came with the agent this time")
            for name in AGENT_PARTS
            if whole and name in standing and name not in named
        ]
    if "tools" in new:
        reason = "other tools were given when the session was opened"
        ops.append(ToolsReplace(tools=tools or (), reason=reason))
    wanted = session.settings
    if "settings" in new and settings:
        wanted = replace(settings, target=wanted.target)
    if "target" in new:
        wanted = replace(wanted, target=given["target"])
    await session.open_again(
        new,
        ops,
        settings=wanted,
        options=options if "options" in new else None,
        always=always if "always" in new else None,
    )


def _digest(value: Any) -> str:
    """A digest of what a journal would hold: there, a whole number is the same as its fraction."""
    return digest_value(msgspec.json.decode(canonical_bytes(value), type=type(value)))


def _load_hooks(given: Hooks | None) -> Hooks:
    """The hooks of installed packages (entry points `lamina.hooks`, each called with a `Hooks`),
    then those that were given. LAMINA_HOOKS=off leaves the packages' out.

    Raises:
        HookError: a package's hooks cannot be loaded.
    """
    hooks = Hooks()
    if os.environ.get("LAMINA_HOOKS", "on").lower() not in ("off", "0", "no", "false"):
        for point in _hook_points():
            owner = f" of {point.dist.name}" if point.dist else ""
            try:
                made = point.load()(hooks)
            except Exception as error:
                problem = f"cannot be loaded: {type(error).__name__}: {error}; LAMINA_HOOKS=off"
                raise HookError(f"{point.value}{owner}", f"{problem} goes on without it") from error
            if inspect.iscoroutine(made):
                made.close()
                problem = "is not awaited: register with a plain function; LAMINA_HOOKS=off"
                raise HookError(f"{point.value}{owner}", f"{problem} goes on without it")
    return hooks.joined(given) if given else hooks


@cache
def _hook_points() -> tuple[EntryPoint, ...]:
    # Sorted, for the same order on every machine.
    return tuple(sorted(entry_points(group="lamina.hooks"), key=lambda point: point.name))


def _system_parts(
    system: str | Sequence[tuple[str, str]],
    project: str | None,
    project_context: str | None,
    memory: str | None,
) -> tuple[SystemPart, ...]:
    named = [("system", system)] if isinstance(system, str) else list(system)
    # Most volatile last: a change in memory must not move the project.
    named.append(("project", render_project("", project, project_context)))
    if memory and memory.strip():
        named.append(
            ("memory", f"<saved_memories>\n{escape_content(memory.strip())}\n</saved_memories>")
        )
    parts = tuple(SystemPart(name=name, text=text) for name, text in named if text.strip())
    for part in parts:
        if part.name == LIBRARY:
            raise UsageError(f"the system part {LIBRARY!r} is reserved for the library")
    return parts
