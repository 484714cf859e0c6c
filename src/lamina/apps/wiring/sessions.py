"""Opening a session: its store, its workspace, its agent, its hooks, its clock, and the web as far
as what fetches pages is installed.

Law: nothing is written, and no session is held, before everything that can fail was tried. An
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
    """The web, if what fetches it is installed; opened when something is fetched."""

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
    """A path or an item with what it is worth: `session.prepare(..., attach=[attach("a.md",
    essential=True)])`. Priority numbers: essential 0, high 3, medium 5, low 10; the higher number
    goes first when room is short."""
    if not isinstance(priority, int) or isinstance(priority, bool):
        problem = "is no whole number: essential is 0, high 3, medium 5, low 10"
        raise UsageError(f"priority {priority!r} {problem}")
    if priority < 0:
        raise UsageError(f"priority {priority!r} is below 0, the number of essentials")
    if shape not in get_args(Shape):
        raise UsageError(f"shape {shape!r} is none of {', '.join(get_args(Shape))}")
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


@takes(SessionOpening)
async def open_session(session: str | None = None, **opening: Unpack[SessionOpening]) -> Session:
    """Opens a session: a new one, or one that `store` holds under the id `session`. What is given
    to one that was there before holds from now on, where it differs from the last time.

    Args:
        session: its id; a new one gets one of its own, unless it is named here.
        system: L1, one text or named parts in order.
        project, project_context: a project's prompt and what it is about, in L1. With an `agent`
            that has projects, `project` is the name of one of them.
        memory: what is remembered of the person, in L1.
        memory_file: a file that becomes one part of L1, read again for every question; a change to
            it is a recorded reason.
        always: rules, references and notes that apply to every turn.
        tools: definitions of tools that you run yourself.
        target: who is asked, as `provider:model`. Named here or in `settings` it is who is asked
            from now on, whoever was asked before; nothing else moves a session that is there.
        workspace: the folder that attached paths are read from; the current one by default.
        settings: limits, and how things are chosen. What is set in them wins over the agent's, and
            what is left at its default does not.
        options: temperature, length of answers, reasoning.
        agent: a name or a path. Its persona, memory and settings hold unless others are given, a
            new session begins with its model, and its rules and references apply as their include
            modes say.
        trust: whether the agent's servers, its model and a looser `ask_before_tools` count: True
            for whatever is there now, or the digest of what is. Without it they count if a person
            trusted them as they are (`lamina trust`), or if the agent is one of the user's own.
            Its texts are always read; what does not count is among the warnings of the first turn.
        store: where sessions are kept: a store, or `"jsonl"` or `"sqlite"` for one of these under
            the user's data folder (LAMINA_DATA), one folder per workspace. By default LAMINA_STORE
            says which; without it they are files, `"jsonl"`.
        hooks: take part in every turn.
        summarizer: an object, or a function of a job, async or not; it is asked for a summary when
            history is compacted, and its `job.request()` is ready for your client.
        index: where rules, references, tools and notes are searched; the user's own by default.
        web: fetches pages that are attached, as far as the settings `web` and `allow_hosts` allow.
        book: what is known of providers and models.
        clock: tells the time.
        spend_ledger: where it is written down what requests cost, and kept to limits (the settings
            `spend_turn`, `spend_session`, `spend_day`); the user's own by default, in their data
            folder.

    Raises:
        SessionBusy: the session is open elsewhere.
        TypeError: a word is given that it does not take.
        InvalidSetting: a setting or an option is out of range.
        UsageError: there is no such agent, no such kind of store, or something is of the wrong
            kind.
    """
    require_opening(open_session, opening)
    return (await open_with(session, OpeningArguments(**opening))).session


class OpenedSession(Struct, frozen=True, kw_only=True):
    """A session, and the agent that answers in it: as it was named, or as the session has it."""

    session: Session
    agent: "AgentDefaults | None" = None


async def open_with(
    session: str | None,
    arguments: OpeningArguments,
    *,
    answers: bool = False,
    needs: Sequence[Need] = (),
) -> OpenedSession:
    """Opens a session with what was given, as `open_session` says; its agent is read once. With
    `answers` a new one is refused, and not begun, if what its target needs is not installed; so is
    any if what `needs` names is not."""
    # First of all: what cannot be loaded must not leave a session behind, nor hold one.
    for name, kind in (("settings", Settings), ("options", Options)):
        given = getattr(arguments, name)
        if given is not None and not isinstance(given, kind):
            raise UsageError(f"{name}={given!r} is no lamina.{kind.__name__}")
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
        # The session goes on, and so does its agent, if it is still there; else its items say so.
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
    """Gives a session that was there before what it is opened with now; says what a person should
    know of it."""
    contents, warnings = screen_contents(contents, contents.settings or opened.settings)
    if not opened.settings.target:
        # The header is lost, and its target with it.
        with contextlib.suppress(UnknownTarget):
            await opened.update_settings(target=contents.first_target)
    if arguments.agent is None and agent is not None and not agent.trust.counts:
        policy = opened.settings.ask_before_tools
        if "ask_before_tools" in agent.trust.claims.settings and policy == "never":
            # It began with what a folder said that is trusted no more.
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
    """What a session is opened in: its ports, but for the selector, which takes an agent; what is
    searched, None where search is not installed; and the folder, if the workspace is one."""

    ports: SessionPorts
    index: Index | None
    folder: Path | None


def _surroundings(arguments: OpeningArguments) -> Surroundings:
    """What was given, and of the rest what is usual."""
    require_port(arguments.summarizer, "summarizer", "summarize", or_function=True)
    hooks = load_hooks(arguments.hooks)
    workspace, index, summarizer = arguments.workspace, arguments.index, arguments.summarizer
    # What the caller brought is the caller's to close.
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
    """The place of the agent that a session began with; empty if it had none."""
    header = next(iter(journal.journal.entries.values()), None)
    return header.with_agent_at if isinstance(header, SessionEntry) else ""


def _missing_guides(place: str, folder: Path | None) -> GuideSource | None:
    """The rules of an agent that cannot be read now, if there is one: it may come back."""
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
