"""Opening a session: its store, workspace, agent, hooks and clock, and web access if the fetcher is
installed.

Law: nothing is written, and no session is locked, before everything that can fail was tried. An
agent is read once.
"""

import contextlib
import inspect
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Unpack, get_args

from anyio.to_thread import run_sync
from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.files.extras import Need, install_hint, is_installed, require
from lamina.adapters.providers.model_book import load_book
from lamina.apps.wiring.folders import folder_of, memory_source, open_folder
from lamina.apps.wiring.hook_entry_points import load_hooks
from lamina.apps.wiring.index import LazyIndex, missing_search
from lamina.apps.wiring.opening_arguments import (
    OpeningArguments,
    SessionOpening,
    require_opening,
    require_port,
    takes,
)
from lamina.apps.wiring.session_contents import (
    SessionContents,
    apply_given,
    merge_contents,
    screen_contents,
)
from lamina.apps.wiring.spending_account import default_ledger, limits_of_environment
from lamina.apps.wiring.stores import choose_store, open_prefixes
from lamina.core.ports import (
    GuideSource,
    Index,
    NoteSource,
    OpenJournal,
    SummaryJob,
    WorkspaceSource,
)
from lamina.core.values.entry import SessionEntry, start_entry
from lamina.core.values.envelope import Options
from lamina.core.values.item import MEDIUM, AttachmentSpec, Item, LoadedItem, Shape, url_id
from lamina.core.values.request import LeftOut
from lamina.core.values.settings import Settings, require_usable
from lamina.core.values.web_access import FetchedResource, UnfetchedResource, WebRules
from lamina.engine.record.snapshot import first_origins
from lamina.engine.session.session import Session, SessionCore, core_of
from lamina.engine.session.session_ports import SessionPorts
from lamina.engine.sources.attachments import NO_WEB
from lamina.engine.sources.selector import Selector
from lamina.errors import UnknownTarget, UsageError

if TYPE_CHECKING:
    from lamina.adapters.pages.fetcher import WebFetcher
    from lamina.apps.wiring.agent_defaults import AgentDefaults
    from lamina.engine.sources.note_search import WorkspaceSearch


class SystemClock:
    def now(self) -> float:
        return time.time()


class LazyWebFetcher:
    """The web, if the fetcher is installed; opened at the first fetch."""

    def __init__(self) -> None:
        self._web: WebFetcher | None = None

    async def page(self, url: str, rules: WebRules) -> LoadedItem | LeftOut:
        if rules.access == "off":
            detail = f"{url}: {NO_WEB}"
            return LeftOut(what=url_id(url), reason="refused", detail=detail)
        if (web := self._open()) is None:
            detail = f"{url}: pages cannot be fetched: {install_hint('pages')}"
            return LeftOut(what=url_id(url), reason="unreadable", detail=detail)
        return await web.page(url, rules)

    async def picture(
        self, url: str, rules: WebRules, limit: int
    ) -> FetchedResource | UnfetchedResource:
        if rules.access == "off":
            return UnfetchedResource(reason="refused", detail=NO_WEB)
        if (web := self._open()) is None:
            return UnfetchedResource(
                reason="unreadable", detail=f"it cannot be fetched: {install_hint('pages')}"
            )
        return await web.picture(url, rules, limit)

    def _open(self) -> "WebFetcher | None":
        if self._web is None and is_installed("pages"):
            from lamina.adapters.pages.fetcher import WebFetcher
            from lamina.adapters.workspace.pdf import read_pdf

            self._web = WebFetcher(read_pdf=lambda data: read_pdf(data).text)
        return self._web


def attach(
    what: str | Item,
    *,
    priority: int = MEDIUM,
    essential: bool = False,
    shape: Shape = "attached",
) -> AttachmentSpec:
    """Give a path or an item a priority: `session.prepare(..., attach=[attach("a.md",
    essential=True)])`. Priority numbers: essential 0, high 3, medium 5, low 10; higher numbers are
    dropped first when room is short."""
    if not isinstance(priority, int) or isinstance(priority, bool):
        problem = "is not a whole number: essential is 0, high 3, medium 5, low 10"
        raise UsageError(f"priority {priority!r} {problem}")
    if priority < 0:
        raise UsageError(f"priority {priority!r} is below 0, the number of essentials")
    if shape not in get_args(Shape):
        raise UsageError(f"shape {shape!r} is not one of {', '.join(get_args(Shape))}")
    return AttachmentSpec(what=what, priority=priority, essential=essential, shape=shape)


class FunctionSummarizer:
    """A function as a summarizer; a sync function is called in a worker thread."""

    def __init__(self, ask: Callable[[SummaryJob], object]) -> None:
        self._ask = ask

    async def summarize(self, job: SummaryJob) -> object:
        if inspect.iscoroutinefunction(self._ask):
            return await self._ask(job)
        result = await run_sync(self._ask, job, abandon_on_cancel=True)
        return await result if inspect.isawaitable(result) else result


@takes(SessionOpening)
async def open_session(session: str | None = None, **opening: Unpack[SessionOpening]) -> Session:
    """Open a session: a new one, or the one that `store` has under the id `session`. Arguments to
    an existing session apply from now on, where they differ from the last time.

    Args:
        session: the session's id; by default a new session gets a generated one.
        system: L1, as one text or named parts in order.
        project, project_context: a project's prompt and background, in L1. With an `agent` that has
            projects, `project` is the name of one of them.
        memory: what is remembered about the person, in L1.
        memory_file: a file that becomes one part of L1, read again for every question; a change is
            a recorded reason.
        always: rules, references and notes that apply to every turn.
        tools: definitions of tools that you run yourself.
        target: the model to ask, as `provider:model`. Named here or in `settings`, it applies from
            now on, whatever was used before; nothing else changes an existing session's target.
        workspace: the folder from which attached paths are read; the current one by default.
        settings: limits, and how items are selected. Values set here override the agent's; values
            left at their default do not.
        options: temperature, length of answers, reasoning.
        agent: a name or a path. Its persona, memory and settings apply unless others are given, a
            new session begins with its model, and its rules and references apply according to their
            include modes.
        trust: whether the agent's servers, its model and a looser `ask_before_tools` count: True
            for the current version, or a digest for a certain one. By default they count if a
            person trusted the current version (`lamina trust`), or if the agent is one of the
            user's own. Its texts are always read; the first turn's warnings list what does not
            count.
        store: where sessions are stored: a store, or `"jsonl"` or `"sqlite"` for one of these under
            the user's data folder (LAMINA_DATA), one folder per workspace. The default is
            LAMINA_STORE, or else `"jsonl"`.
        hooks: take part in every turn.
        summarizer: an object, or a function of a job, async or not; it makes the summary when
            history is compacted, and `job.request()` is ready for your client.
        index: the index of rules, references, tools and notes; the user's own by default.
        web: fetches pages that are attached, as far as the settings `web` and `allow_hosts` allow.
        book: the data on providers and models.
        clock: the source of the current time.
        spend_ledger: records what requests cost and enforces limits (the settings `spend_turn`,
            `spend_session`, `spend_day`); the user's own by default, in their data folder.

    Raises:
        SessionBusy: the session is open elsewhere.
        TypeError: an argument is unknown.
        InvalidSetting: a setting or an option is out of range.
        UsageError: there is no such agent or kind of store, or an argument has the wrong type.
    """
    require_opening(open_session, opening)
    return (await open_with(session, OpeningArguments(**opening))).session


class OpenedSession(Struct, frozen=True, kw_only=True):
    """A session, and the agent that answers in it, from the arguments or from the session."""

    session: Session
    agent: "AgentDefaults | None" = None


async def open_with(
    session: str | None,
    arguments: OpeningArguments,
    *,
    answers: bool = False,
    needs: Sequence[Need] = (),
) -> OpenedSession:
    """Open a session with the given arguments, as in `open_session`; its agent is read once. With
    `answers`, a new session is refused before it begins if its target's requirements are not
    installed; with `needs`, any session is refused without the extras named there."""
    # Before anything else: if loading fails, no session may be created or locked.
    for name, kind in (("settings", Settings), ("options", Options)):
        given = getattr(arguments, name)
        if given is not None and not isinstance(given, kind):
            raise UsageError(f"{name}={given!r} is not a lamina.{kind.__name__}")
        if given is not None:
            require_usable(given)
    surroundings = _surroundings(arguments)
    ports, folder = surroundings.ports, surroundings.folder
    agent = await _named_agent(arguments, folder)
    contents = merge_contents(arguments, agent)
    warnings: tuple[str, ...] = ()
    if is_known := bool(session and await ports.store.has(session)):
        require(*needs)
        journal = await ports.store.open(session or "")
        await journal.read_ahead(first_origins(journal.journal))
    else:
        target = ports.book.find(contents.first_target)
        require(*((target.wire,) if answers else ()), *needs)
        contents, warnings = screen_contents(contents, contents.first_settings)
        journal = await ports.store.create(_header(session, contents, ports, agent))
    place = agent.place if agent else _place_in(journal)
    if agent is None and place:
        # The session continues with its agent, if that still exists; else its items report it.
        with contextlib.suppress(UsageError):
            agent = await _read_agent(place, folder, arguments)
    opened = _session(journal, surroundings, place, agent)
    if is_known:
        try:
            warnings = await _apply_again(opened, arguments, contents, agent)
        except BaseException:
            await opened.close()
            raise
    core_of(opened).warn(*warnings)
    return OpenedSession(session=opened, agent=agent)


async def _apply_again(
    opened: Session,
    arguments: OpeningArguments,
    contents: SessionContents,
    agent: "AgentDefaults | None",
) -> tuple[str, ...]:
    """Apply the current arguments to an existing session; return what a person should know about
    it."""
    contents, warnings = screen_contents(contents, contents.settings or opened.settings)
    if not opened.settings.target:
        # The header is lost, and its target with it.
        with contextlib.suppress(UnknownTarget):
            await opened.update_settings(target=contents.first_target)
    if arguments.agent is None and agent is not None and not agent.trust.counts:
        policy = opened.settings.ask_before_tools
        if "ask_before_tools" in agent.trust.claims.settings and policy == "never":
            # It began with a model from a folder that is no longer trusted.
            await opened.update_settings(ask_before_tools=Settings().ask_before_tools)
    if agent is not None:
        await core_of(opened).take_over_agent(agent.include_modes, agent.agent.name, agent.place)
    await apply_given(
        opened,
        contents,
        arguments.named_target,
        whole=arguments.agent is not None,
        loosens=arguments.loosens,
    )
    return warnings


# -- what a session works with -------------------------------------------------------------------


class Surroundings(Struct, frozen=True, kw_only=True):
    """The surroundings of a session: its ports, except the selector, which needs an agent; the note
    search, None if search is not installed; and the folder, if the workspace is one."""

    ports: SessionPorts
    index: Index | None
    folder: Path | None


def _surroundings(arguments: OpeningArguments) -> Surroundings:
    """The given surroundings, with defaults for the rest."""
    require_port(arguments.summarizer, "summarizer", "summarize", or_function=True)
    hooks = load_hooks(arguments.hooks)
    workspace, index, summarizer = arguments.workspace, arguments.index, arguments.summarizer
    # The caller closes what the caller brought.
    closing: list[Callable[[], Awaitable[None]]] = []
    if missing_search():
        index = None
    elif index is None:
        index = (own_index := LazyIndex())
        closing.append(own_index.aclose)
    if workspace is None or isinstance(workspace, str | os.PathLike):
        workspace = (own_workspace := open_folder(workspace or "."))
        closing.append(own_workspace.aclose)
    store = choose_store(arguments.store, arguments.workspace)
    prefixes = open_prefixes(store)
    closing.append(prefixes.aclose)
    ports = SessionPorts(
        store=store,
        book=arguments.book or load_book(),
        clock=arguments.clock or SystemClock(),
        workspace=workspace,
        hooks=hooks,
        summarizer=FunctionSummarizer(summarizer) if callable(summarizer) else summarizer,
        web=LazyWebFetcher() if arguments.web is None else arguments.web,
        memory=memory_source(arguments.memory_file),
        searcher=_searcher(workspace, index),
        prefixes=prefixes,
        spend_ledger=arguments.spend_ledger or default_ledger(),
        spend_ceilings=limits_of_environment(),
        closing=tuple(closing),
    )
    return Surroundings(ports=ports, index=index, folder=folder_of(arguments.workspace))


def _session(
    journal: OpenJournal, surroundings: Surroundings, place: str, agent: "AgentDefaults | None"
) -> Session:
    folder, index = surroundings.folder, surroundings.index
    selector = Selector(
        index,
        agent.guides(folder) if agent else _missing_guides(place, folder),
        relations=agent.agent.relations if agent else {},
        notices=agent.notices if agent else (),
        no_index="" if index is not None else missing_search(),
    )
    return Session(SessionCore(journal, replace(surroundings.ports, selector=selector)))


def _searcher(source: WorkspaceSource, index: Index | None) -> "WorkspaceSearch | None":
    if index is None or not isinstance(source, NoteSource):
        return None
    from lamina.engine.sources.note_search import WorkspaceSearch

    return WorkspaceSearch(source, index)


# -- its agent -----------------------------------------------------------------------------------


async def _named_agent(arguments: OpeningArguments, folder: Path | None) -> "AgentDefaults | None":
    if arguments.agent is None:
        return None
    return await _read_agent(arguments.agent, folder, arguments, arguments.project)


async def _read_agent(
    agent: str | os.PathLike[str],
    folder: Path | None,
    arguments: OpeningArguments,
    project: str | None = None,
) -> "AgentDefaults":
    from lamina.apps.wiring.agent_defaults import read_agent_defaults

    return await read_agent_defaults(agent, folder, project=project, trust=arguments.trust)


def _place_in(journal: OpenJournal) -> str:
    """The place of the agent that a session began with; empty without an agent."""
    header = next(iter(journal.journal.entries.values()), None)
    return header.with_agent_at if isinstance(header, SessionEntry) else ""


def _missing_guides(place: str, folder: Path | None) -> GuideSource | None:
    """The rules of an agent that cannot be read now, if the session has one: it may come back."""
    if not place:
        return None
    from lamina.adapters.agents.agent_reader import AgentFolder
    from lamina.apps.wiring.agent_finder import bringer_of

    return AgentFolder(place, bringer_of(place, folder))


def _header(
    session: str | None,
    contents: SessionContents,
    ports: SessionPorts,
    agent: "AgentDefaults | None",
) -> SessionEntry:
    return start_entry(
        session or token_hex(8),
        ports.clock.now(),
        system=contents.system,
        tools=contents.tools or (),
        included=contents.always or (),
        options=contents.options or Options(),
        settings=replace(contents.first_settings, target=contents.first_target),
        workspace=ports.workspace.name,
        with_agent=agent.agent.name if agent else "",
        with_agent_at=agent.place if agent else "",
        include_modes=agent.include_modes if agent else None,
    )
