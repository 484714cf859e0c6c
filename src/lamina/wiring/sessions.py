"""Opening a session: its store, its workspace, its agent and its hooks."""

import contextlib
import inspect
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from anyio.to_thread import run_sync
from msgspec.structs import replace

from lamina.errors import UnknownTarget, UsageError
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
from lamina.sources.secrets import SecretScreen
from lamina.sources.selector import Selector
from lamina.text import escape_content, render_project
from lamina.values.entry import start_entry
from lamina.values.envelope import LIBRARY, Options, SystemPart
from lamina.values.item import MEDIUM, AttachmentSpec, Item, Shape
from lamina.values.message import ToolDefinition
from lamina.values.settings import Settings
from lamina.values.trust import Trust
from lamina.wiring.clock import SystemClock
from lamina.wiring.hook_entry_points import load_hooks
from lamina.wiring.index import LazyIndex
from lamina.wiring.pages import LazyWebFetcher
from lamina.wiring.reopened_session import apply_given
from lamina.wiring.stores import default_store
from lamina.wiring.workspaces import folder_of, memory_source, open_workspace
from lamina.workspace.folder import FolderWorkspace

if TYPE_CHECKING:
    from lamina.sources.note_search import WorkspaceSearch


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


class FunctionSummarizer:
    """A function as a summarizer; a plain one is called in a worker thread."""

    def __init__(self, ask: Callable[[SummaryJob], object]) -> None:
        self._ask = ask

    async def summarize(self, job: SummaryJob) -> object:
        if inspect.iscoroutinefunction(self._ask):
            return await self._ask(job)
        result = await run_sync(self._ask, job, abandon_on_cancel=True)
        return await result if inspect.isawaitable(result) else result


def default_target() -> str:
    """The target of a session that names none: LAMINA_TARGET, or the embedded model."""
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
    summarizer: Summarizer | Callable[[SummaryJob], object] | None = None,
    index: Index | None = None,
    web: WebSource | None = None,
    memory_file: str | os.PathLike[str] | MemorySource | None = None,
    trust: Trust = False,
) -> Session:
    """Opens a session: a new one, or one that `store` holds under the id `session`.

    `system` is L1: one text, or named parts in order. `always` are rules, references and notes
    that apply to every turn. `workspace` is the folder that attached paths are read from, the
    current one by default. `target` is `provider:model`; named here or in `settings` it is who is
    asked from now on, whoever was asked before, and nothing else moves a session that is there to
    another one. Without a `store`, sessions are kept as
    files under the user's data folder (LAMINA_DATA), one folder per workspace. `hooks` take part in
    every turn. A `summarizer` (an object, or a function of a job, async or not) is asked for a
    summary when history is compacted; its `job.request()` is ready for your client.

    `agent` is a name or a path: its persona, memory and settings hold unless others are given, a
    new session begins with its model, `project` may name one of its projects, and its rules and
    references apply as their
    include modes say; those chosen by search are found with `index`, the user's own by default.
    What is set in `settings` wins over the agent's, and what is left at its default does not.

    The texts of an agent's folder are always read. Its servers, its model and a looser
    `ask_before_tools` count only if a person trusted them as they are, with `lamina trust`, or if
    `trust` says so: True for whatever is there now, or the digest of what is. The user's own agents
    are trusted. What does not count is among the warnings of the first turn.

    `memory_file` is a file that becomes one part of L1, read again for every question; a change to
    it is a recorded reason. Pages that are attached are fetched by `web`, as far as the settings
    `web` and `allow_hosts` allow.

    Raises:
        SessionBusy: the session is open elsewhere.
        UsageError: there is no such agent.
    """
    # First of all: what cannot be loaded must not leave a session behind, nor hold one.
    all_hooks = load_hooks(hooks)
    book = book or load_book()
    clock = clock or SystemClock()
    source: WorkspaceSource = (
        open_workspace(workspace or ".")
        if workspace is None or isinstance(workspace, str | os.PathLike)
        else workspace
    )
    store = store or default_store(workspace)
    named_target = target or (settings.target if settings else "") or None
    place, agent_name = "", ""
    is_asking_said = bool(settings and settings.ask_before_tools != Settings().ask_before_tools)
    relations: dict[str, tuple[str, ...]] = {}
    notices: tuple[str, ...] = ()
    distrusted: Collection[str] = ()
    folder = folder_of(workspace)
    if agent is not None:
        from lamina.wiring.agent_defaults import merge_settings, read_agent_defaults

        defaults = await read_agent_defaults(agent, folder, project=project, trust=trust)
        place, relations, agent_name = defaults.place, defaults.agent.relations, defaults.agent.name
        notices = defaults.notices
        system = system or defaults.system
        memory = memory if memory is not None else defaults.agent.memory
        settings = merge_settings(settings, defaults.settings)
        options = options or defaults.options
        target = target or settings.target or defaults.agent.model or None
        if defaults.project:
            project, project_context = defaults.project.prompt, defaults.project.context
    first_settings = settings or Settings()
    first_target = target or first_settings.target or default_target()
    definitions = None if tools is None else tuple(tools)
    always_items = None if always is None else tuple(always)
    parts = _system_parts(system, project, project_context, memory)
    warnings: tuple[str, ...] = ()
    if is_known := bool(session and await store.has(session)):
        journal = await store.open(session or "")
    else:
        book.find(first_target)
        parts, always_items, warnings = _screened(parts, always_items, first_settings)
        header = start_entry(
            session or token_hex(8),
            clock.now(),
            system=parts,
            tools=definitions or (),
            included=always_items or (),
            options=options or Options(),
            settings=replace(first_settings, target=first_target),
            workspace=source.name,
            with_agent=agent_name,
            with_agent_at=place,
        )
        journal = await store.create(header)
    if not place:
        place, relations, notices, distrusted = await _agent_of(journal, folder, trust)
    search_index = LazyIndex() if index is None else index
    opened = Session(
        journal,
        store=store,
        book=book,
        clock=clock,
        workspace=source,
        hooks=all_hooks,
        summarizer=FunctionSummarizer(summarizer) if callable(summarizer) else summarizer,
        selector=Selector(
            search_index, _guides(place, folder), relations=relations, notices=notices
        ),
        web=LazyWebFetcher() if web is None else web,
        memory=memory_source(memory_file),
        searcher=_searcher(source, search_index),
    )
    for part in (search_index, source):
        # What the caller brought is the caller's to close.
        if isinstance(part, LazyIndex | FolderWorkspace) and part not in (index, workspace):
            opened.closing.append(part.aclose)
    if is_known:
        try:
            parts, always_items, warnings = _screened(
                parts, always_items, settings or opened.settings
            )
            if not opened.settings.target:
                # The header is lost, and its target with it.
                with contextlib.suppress(UnknownTarget):
                    await opened.update_settings(target=first_target)
            if "ask_before_tools" in distrusted and opened.settings.ask_before_tools == "never":
                # It began with what a folder said that is trusted no more.
                await opened.update_settings(ask_before_tools=Settings().ask_before_tools)
            await apply_given(
                opened, parts, definitions, always_items, settings, named_target, options,
                whole=agent is not None, loosens=is_asking_said,
            )  # fmt: skip
        except BaseException:
            await opened.close()
            raise
    opened.turns.news += warnings
    return opened


def _screened(
    parts: tuple[SystemPart, ...], always: tuple[Item, ...] | None, settings: Settings
) -> tuple[tuple[SystemPart, ...], tuple[Item, ...] | None, tuple[str, ...]]:
    """What a session is opened with, without its secrets, and what a person should know of it."""
    screen = SecretScreen()
    parts, warnings = screen.parts(parts, settings.secrets)
    pairs = [screen.item(item, settings.secrets) for item in always or ()]
    warnings += tuple(warning for _, found in pairs for warning in found)
    return parts, always and tuple(item for item, _ in pairs), warnings


def _searcher(source: WorkspaceSource, index: Index) -> "WorkspaceSearch | None":
    if not isinstance(source, NoteSource):
        return None
    from lamina.sources.note_search import WorkspaceSearch

    return WorkspaceSearch(source, index)


def _guides(place: str, folder: Path | None) -> GuideSource | None:
    if not place:
        return None
    from lamina.agents.folder import AgentFolder
    from lamina.wiring.agents import bringer_of

    return AgentFolder(place, bringer_of(place, folder))


async def _agent_of(
    journal: OpenJournal, folder: Path | None, trust: Trust
) -> tuple[str, dict[str, tuple[str, ...]], tuple[str, ...], Collection[str]]:
    """The place of a session's agent, its relations, what does not count of it as a person is told,
    and the settings among that; none if the agent is gone, which its items then say."""
    place = journal.journal.header.with_agent_at
    if not place:
        return "", {}, (), ()
    from lamina.wiring.agent_defaults import read_agent_defaults

    try:
        defaults = await read_agent_defaults(place, folder, trust=trust)
    except UsageError:
        return place, {}, (), ()
    distrusted = () if defaults.trust.counts else defaults.trust.claims.settings
    return place, defaults.agent.relations, defaults.notices, distrusted


def _system_parts(
    system: str | Sequence[tuple[str, str]],
    project: str | None,
    project_context: str | None,
    memory: str | None,
) -> tuple[SystemPart, ...]:
    texts = [("system", system)] if isinstance(system, str) else list(system)
    # Most volatile last: a change in memory must not move the project.
    texts.append(("project", render_project("", project, project_context)))
    if memory and memory.strip():
        texts.append(
            ("memory", f"<saved_memories>\n{escape_content(memory.strip())}\n</saved_memories>")
        )
    for name, text in texts:
        if not isinstance(text, str):
            raise UsageError(f"the system part {name!r} is no text, but {text!r}")
    parts = tuple(SystemPart(name=name, text=text) for name, text in texts if text.strip())
    for part in parts:
        if part.name == LIBRARY:
            raise UsageError(f"the system part {LIBRARY!r} is reserved for the library")
    return parts
