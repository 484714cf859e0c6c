"""Implements the session, which prepares turns, commits replies, and appends both to its journal
before confirming them.

`Session` is the public class; `SessionCore` is its internal counterpart, for runners, wiring and
apps.

Laws: the state advances only after the store has kept the entries; a failed append changes nothing.
A session has one lock, and every write holds it.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Any

import anyio
from msgspec.structs import replace

from lamina.core.audit.dropped_history import DroppedHistory, find_dropped_history
from lamina.core.audit.request_rows import list_request_rows
from lamina.core.journal import Journal, State, read_patch
from lamina.core.layers import with_compiled_system
from lamina.core.ports import (
    OpenJournal,
    Progress,
)
from lamina.core.values.agent import AgentChange
from lamina.core.values.damage import Damage
from lamina.core.values.entry import AdoptEntry, CustomEntry, Entry, InfoEntry
from lamina.core.values.envelope import Envelope, Options
from lamina.core.values.item import Include, Item, ItemId
from lamina.core.values.message import Role, ToolCall, ToolDefinition, ToolResult, ToolText
from lamina.core.values.patch import Display, Patch, PatchOp, SystemPartSet, ToolsReplace
from lamina.core.values.request import LeftOut
from lamina.core.values.settings import Settings, Target
from lamina.core.values.spend_limits import SpendStanding
from lamina.core.values.tool import Decision, OfferedTool
from lamina.engine.record.layouts import Layouts
from lamina.engine.record.record import Record
from lamina.engine.session import library, members, session_settings, tree
from lamina.engine.session.compactor import CompactionOutcome
from lamina.engine.session.edited_questions import (
    ask_again,
    find_question,
    find_request,
    in_front_of,
    take_over,
)
from lamina.engine.session.inbox import SessionInbox, add_message
from lamina.engine.session.members import SessionItem
from lamina.engine.session.replies import SNAPSHOT_BYTES
from lamina.engine.session.session_ports import RunnerPorts, SessionPorts
from lamina.engine.session.session_spending import Gate
from lamina.engine.session.turn import Turn
from lamina.engine.session.turn_lifecycle import TurnLifecycle, take_up
from lamina.engine.session.waiting_calls import abandon_turn, keep_decision, pending_calls
from lamina.engine.sources.attachments import Attachable, AttachmentReader, Attachments
from lamina.engine.sources.changes import LibraryChange

if TYPE_CHECKING:
    pass


class SessionCore:
    """The parts of one session."""

    def __init__(self, opened: OpenJournal, ports: SessionPorts) -> None:
        self.ports = ports
        self.clock = ports.clock
        self.record = Record(opened, ports.clock)
        self.layouts = Layouts(ports.book, self.record)
        self.reader = AttachmentReader(ports.workspace, ports.store, ports.web)
        self.hooks = ports.hooks.copy()
        self.turns = TurnLifecycle(self.record, self.layouts, self.reader, self.hooks, ports)
        self.lock = self.turns.lock
        self.inbox = SessionInbox(self.record, self.lock)

    def connect(self, runner: RunnerPorts) -> None:
        """Connect a runner, which works with the session from now on."""
        self.turns.runner = runner

    def ask_before_sending(self, gate: Gate | None) -> None:
        """Call `gate` before a runner sends a turn; an exception raised there prevents the
        sending.
        """
        self.turns.spending.gate = gate

    def show_indexing(self, progress: Progress) -> None:
        """Show the progress of indexing when a question waits for it."""
        self.turns.tools.selector.progress = progress

    def warn(self, *texts: str) -> None:
        """Show a person a warning with the next request."""
        self.turns.warn(*texts)

    async def close(self) -> None:
        # Also when a cancellation ended its block: others wait for the session.
        with anyio.CancelScope(shield=True):
            async with self.lock, AsyncExitStack() as parts:
                for close in reversed(self.ports.closing):
                    parts.push_async_callback(close)
                parts.push_async_callback(self.record.close)
                await self.layouts.keep_snapshot(least=SNAPSHOT_BYTES)

    async def open_again(
        self,
        given: Mapping[str, str],
        ops: Sequence[PatchOp] = (),
        *,
        settings: Settings | None = None,
        options: Options | None = None,
        always: tuple[Item, ...] | None = None,
    ) -> None:
        """Adopt the values that differ from the last time, in one write. `given` are their digests.

        Raises:
            UnknownTarget, InvalidPatch: a value is not possible; nothing was changed.
        """
        async with self.lock:
            await session_settings.open_again(
                self.record, self.layouts, given, ops,
                settings=settings, options=options, always=always,
            )  # fmt: skip

    async def take_over_agent(
        self, include_modes: Mapping[ItemId, Include], name: str, place: str
    ) -> None:
        """Adopt the include modes of an agent, unless the session has its modes from this same
        agent: because another agent was named, or the session began before modes were recorded.
        """
        library = self.record.state.library
        if library.include_modes is not None and library.modes_from == place:
            return
        async with self.lock:
            await self.record.write(
                AdoptEntry, include_modes=dict(include_modes), with_agent=name, with_agent_at=place
            )

    def in_front_of(
        self, question: str, attach: Iterable[Attachable] | None
    ) -> AbstractAsyncContextManager[tuple[Attachable, ...]]:
        """Move the session in front of a question, to ask another one in its place, and yield that
        one's attachments.
        """
        return in_front_of(self.turns, self.record, self.reader, question, attach)

    async def find_attachments(self, question: str) -> tuple[Attachable, ...]:
        """Return a person's attachments to a question."""
        asked = find_question(self.record, question)
        return await take_over(self.record, self.reader, asked, self.turns.warn)

    async def change_settings(self, values: Mapping[str, Any]) -> None:
        """Change settings from the next turn on."""
        await session_settings.update_settings(self.record, self.layouts, values)

    def list_requests(self) -> Iterable[dict[str, Any]]:
        """Return every request as plain data, without texts."""
        entries = {entry.id: entry for entry in self.record.entries.values()}
        return list_request_rows(
            Journal(entries=entries, leaf=self.record.state.leaf), self.layouts.book
        )

    def find_request(self, answer: str | None) -> str:
        """Return the request of an answer; by default, of the last one."""
        return find_request(self.record, answer).id

    async def copy(self, entries: Sequence[Entry], session: str | None) -> "SessionCore":
        """Create a session with these entries and the same parts."""
        at, damaged = self.clock.now(), bool(self.record.damage)
        name = await tree.copy_entries(entries, self.ports.store, session, at, damaged=damaged)
        ports = replace(self.ports, hooks=self.hooks, selector=self.turns.tools.selector)
        return SessionCore(await self.ports.store.open(name), ports)


class Session:
    """A conversation. Open one with `lamina.open_session`; close it, or use it in `async with`, so
    that it can be opened elsewhere.
    """

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._record, self._turns, self._lock = core.record, core.turns, core.lock
        self.workspace = core.ports.workspace
        self.searcher = core.ports.searcher
        self.hooks = core.hooks

    async def __aenter__(self) -> "Session":
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Release the session's file. A prepared request that was not committed stays as it is."""
        await self._core.close()

    @property
    def id(self) -> str:
        """The id used to reopen the session."""
        return self._record.state.session.session

    def target(self, name: str | None = None) -> Target:
        """Return the session's target, or another target by name.

        Raises:
            UnknownTarget: no target has that name.
        """
        return self._core.layouts.choose(name, self.settings)

    @property
    def state(self) -> State:
        """The current state of the session: the fold of its path. Its composition is private."""
        return self._record.state

    @property
    def envelope(self) -> Envelope:
        """The content of the next request before a question is added: system parts, library, tools,
        messages, options. `system.compiled` is the system prompt as one string.
        """
        state = self.state
        in_force = replace(state.envelope, options=state.options)
        return with_compiled_system(in_force, state)

    @property
    def settings(self) -> Settings:
        """The current settings, including options of the same names set by an agent, a program or a
        hook. `update_settings` changes them.
        """
        return self.state.settings_in_force

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries of the session, including those of abandoned branches, in the order of
        writing.
        """
        return tuple(self._record.entries.values())

    @property
    def path(self) -> tuple[Entry, ...]:
        """The entries from the header to the current position: those that are in effect."""
        return self._record.path(self.state.leaf)

    @property
    def damage(self) -> tuple[Damage, ...]:
        """Damage found in the journal when it was opened."""
        return self._record.damage

    @property
    def interrupted(self) -> bool:
        """Whether the last request was prepared and never answered."""
        return self.state.requests.open is not None

    # -- a turn ----------------------------------------------------------------------------------

    async def prepare(
        self,
        text: str,
        *,
        attach: Iterable[Attachable] = (),
        target: str | None = None,
        tool_texts: Iterable[ToolText] = (),
    ) -> Turn:
        """Return the next request: the typed text, and everything that applies to it.

        `attach` accepts workspace paths and items; `lamina.attach` gives them a priority.
        `tool_texts` are results of planned tools, for this request only.

        Raises:
            BudgetError: what must be sent does not fit.
            PrefixMoved: bytes already sent would move without a recorded reason.
            SpendLimit: the request could cost more than a limit leaves.
            TurnStateError: tool calls of the previous turn still wait for their results.
        """
        return await self._turns.prepare(text, attach, target, tuple(tool_texts))

    async def current_turn(self, *, target: str | None = None) -> Turn | None:
        """Return the unfinished turn, for example after a restart: one whose request was never
        answered (send `request()` again and commit; its price is reserved as in `prepare`), or one
        whose calls wait for their results (`resume` it). None if the last turn is complete. If a
        `target` is named, here or for the session since then, the turn continues there: its request
        is made again.
        """
        return await take_up(self._turns, self._record, target)

    async def edit(
        self,
        question: str,
        text: str,
        *,
        attach: Iterable[Attachable] | None = None,
        target: str | None = None,
    ) -> Turn:
        """Edit an earlier question: return the request for `text` in its place. The original
        question and everything after it stay as a branch. Its attachments are attached again,
        unless `attach` replaces them; the current settings and pins apply.

        Raises:
            NoSuchEntry: the entry does not exist.
            UsageError: the entry is not a question.
            BudgetError, PrefixMoved, SpendLimit: as `prepare`; the session then continues where it
                was, as it does if the request gets no answer and something else is prepared.
        """
        async with self._core.in_front_of(question, attach) as attachments:
            return await self.prepare(text, attach=attachments, target=target)

    async def attachments_of(self, question: str) -> tuple[Attachable, ...]:
        """Return a person's attachments to a question, which are attached again if it is edited.

        Raises:
            NoSuchEntry: the entry does not exist.
            UsageError: the entry is not a question.
        """
        return await self._core.find_attachments(question)

    async def regenerate(self, answer: str | None = None, *, target: str | None = None) -> Turn:
        """Ask for an answer again, by default the last one: its request is repeated with the same
        items and tool results, as a sibling. The entry of a question refers to its whole turn. The
        current settings and target apply. If no answer arrives and something else is prepared, that
        follows the original answer.

        Raises:
            NoSuchEntry: the entry does not exist.
            TurnStateError: nothing has been asked yet.
            UsageError: the entry is neither a question nor an answer, or was imported.
        """
        return await ask_again(self._turns, self._record, answer, target)

    async def compact(self) -> CompactionOutcome:
        """Replace the older part of history by a summary, now. The dropped messages stay in the
        journal: see `compactions`.

        Raises:
            TurnStateError: a request is open.
        """
        async with self._lock:
            return await self._turns.compactions.by_hand()

    @property
    def compactions(self) -> tuple[DroppedHistory, ...]:
        """The messages that compactions and prunes removed from the context of this path."""
        return tuple(find_dropped_history(self.path))

    # -- waiting calls ----------------------------------------------------------------------------

    @property
    def pending_calls(self) -> tuple[ToolCall, ...]:
        """Calls of the last answer that have no result yet."""
        return pending_calls(self._record)

    async def keep_result(self, result: ToolResult, *, whole: str = "") -> ToolResult:
        """Store a tool's result while other calls of its turn still wait, so that it is not run
        again; `resume` uses it. `whole` is the full text of a cut result. Return the result as
        stored.
        """
        return await self._turns.results.keep(result, whole)

    async def read_result(self, what: str) -> str:
        """Return the full result of a tool, including the part that was not sent: by its call's id,
        or a digest.
        """
        return await self._turns.results.read(what)

    async def keep_decision(
        self, call_id: str, tool: OfferedTool, decision: Decision, *, planned: bool = False
    ) -> None:
        """Store a person's decision about a call; a `planned` call belongs to no answer."""
        async with self._lock:
            await keep_decision(self._record, call_id, tool, decision, planned=planned)

    async def abandon_turn(self, why: str = "The call was not run: the turn was stopped.") -> bool:
        """End a turn whose calls wait, so that something else can be asked. Calls that ran keep
        their results, the others get `why`. Return False if no call waits.
        """
        async with self._lock:
            return await abandon_turn(self._record, self._turns.hooks, why)

    # -- rules, references and tools
    # ------------------------------------------------------------------

    async def items(self) -> tuple[SessionItem, ...]:
        """Return the items that the session's agent always includes, then those added by hand;
        missing ones are marked.
        """
        return await members.list_items(self._turns, self.state)

    async def add(self, what: str) -> bool:
        """Add a rule, a reference or a tool to the session: `rule:NAME`, `ref:NAME`,
        `tool:SERVER/NAME`, or `tool:NAME` for a function or one of Lamina's own tools. Return False
        if it is already in the session.

        Raises:
            UsageError: nothing has that name.
        """
        async with self._lock:
            return await members.add(self._record, self._turns, what)

    async def remove(self, what: str) -> bool:
        """Remove a rule, a reference or a tool from the session. It stays out, and search does not
        find it, until it is added again. Return False if it was not in the session.

        Raises:
            UsageError: `what` is not of the form `rule:NAME`, `ref:NAME` or `tool:SERVER/NAME`.
        """
        async with self._lock:
            return await members.remove(self._record, self._turns, what)

    async def find_agent_changes(self) -> tuple[AgentChange, ...]:
        """Return how the agent's files now differ from those that the session adopted when it
        began: rules, references and tools that are new, gone, or have another include mode. Nothing
        is changed; `adopt_agent` does that.
        """
        return await members.find_agent_changes(self._turns, self.state)

    async def adopt_agent(self) -> tuple[AgentChange, ...]:
        """Adopt the agent's current files, from the next turn on. Items that a person added or
        removed stay so. Return the changes; none if nothing differs.

        Raises:
            UsageError: the agent cannot be read.
        """
        async with self._lock:
            return await members.adopt_agent(self._record, self._turns)

    # -- the library
    # ----------------------------------------------------------------------------------

    async def pin(self, what: Attachable) -> bool:
        """Make an item essential, named every turn and kept at boundaries. Return False if it
        already was.

        Raises:
            UsageError: the item cannot be read.
        """
        async with self._lock:
            return await library.pin(self._record, self._core.reader, what)

    async def preload(self, attach: Iterable[Attachable]) -> tuple[LeftOut, ...]:
        """Lay items down before anything is asked: in the library, or behind what was sent. Return
        those that could not be read.
        """
        async with self._lock:
            return await library.preload(self._record, self._core.reader, attach)

    async def preview_attachment(self, what: Attachable) -> Attachments:
        """Return the items that an attachment would add, or why it cannot be read; nothing is
        attached.
        """
        async with self._lock:
            return await self._core.reader.read(what, self.state, keep=False)

    async def find_changes(self) -> tuple[LibraryChange, ...]:
        """Return items in the context that no longer match the workspace: edited, moved, deleted.
        Nothing is changed; `refresh` does that.
        """
        async with self._lock:
            return await library.find_changes(self._record, self._core.reader)

    async def refresh(self) -> tuple[LibraryChange, ...]:
        """Bring the items in the context up to date: current versions are laid down, and deleted or
        moved ones leave at the next boundary. Return the changes.
        """
        async with self._lock:
            return await library.refresh(self._record, self._core.reader)

    async def unpin(self, what: str) -> bool:
        """Remove a pin; `what` is an item's id, path or name. Return False if it was not pinned."""
        async with self._lock:
            return await library.unpin(self._record, what)

    async def forget(self, what: str) -> bool:
        """Remove an item from the library at the next boundary. Return False if it is not there."""
        async with self._lock:
            return await library.forget(self._record, what)

    async def set_system(self, name: str, text: str, *, reason: str) -> None:
        """Set one system part: this is a boundary once a request was sent, hence the reason."""
        op = SystemPartSet(name=name, text=text, reason=reason)
        await self.apply("session.set_system", op)

    async def set_tools(self, tools: Sequence[ToolDefinition], *, reason: str) -> None:
        """Replace the tools, which come first in every wire format."""
        await self.apply("session.set_tools", ToolsReplace(tools=tuple(tools), reason=reason))

    async def apply(
        self,
        transformer: str,
        *ops: PatchOp | Patch | Mapping[str, Any],
        display: Display | None = None,
    ) -> None:
        """Apply patch operations, all or none. They may be plain data, with Lamina's field names or
        those of the original documents (`invalidateCacheReason`).

        Raises:
            InvalidPatch: an op is wrong; nothing was changed.
        """
        async with self._lock, self._record.writing() as page:
            patch = read_patch(transformer, ops, display, page.state.envelope.cached)
            page.transform(transformer, patch)

    async def add_message(
        self, text: str, *, role: Role = "user", custom_type: str = "", shown: bool = True
    ) -> None:
        """Add a message to history that is not a question: the next request and all later ones
        include it. `custom_type` is the name that an application gives it; people see it if it is
        `shown`.

        Raises:
            TurnStateError: a turn is in progress; a runner's `send_message` reaches it.
            UsageError: the message is blank, or its role is that of a tool.
        """
        async with self._lock, self._record.writing() as page:
            add_message(page, text, role=role, custom_type=custom_type, shown=shown)

    async def rebuild_library(self, reason: str) -> bool:
        """Rebuild the library now, at the price of the prefix. Return False if nothing would
        change.
        """
        async with self._lock:
            return await library.rebuild(self._record, self._core.layouts, reason)

    @session_settings.takes_fields_of(Settings)
    async def update_settings(self, **settings: Any) -> Settings:
        """Change settings of this session from the next turn on. A search setting accepts the name
        of a preset, or a mapping of the parts that change.

        Raises:
            InvalidSetting: a value has the wrong type or is out of range; nothing was changed.
            UsageError: the setting does not exist.
        """
        async with self._lock:
            await self._core.change_settings(settings)
            return self.settings

    async def export_requests(self) -> tuple[dict[str, Any], ...]:
        """Return every request as plain data, without texts; docs/requests.md describes the
        fields.
        """
        return tuple(self._core.list_requests())

    async def spending(self) -> SpendStanding:
        """Return the spending of this session, of its last turn, and of all sessions today; with
        the limits in force.
        """
        return await self._turns.spending.standing()

    # -- the tree --------------------------------------------------------------------------------

    async def navigate(self, entry: str, *, summary: str = "") -> tree.TreePosition:
        """Continue from another entry, or from just before it if it is a question, so that it can
        be asked again. `summary` informs the model about the branch left behind.

        Raises:
            NoSuchEntry: the entry does not exist.
        """
        async with self._lock:
            return await tree.navigate(self._record, entry, summary)

    async def label(self, entry: str, text: str) -> None:
        """Give an entry a label; an empty one removes it."""
        async with self._lock:
            await tree.label(self._record, entry, text)

    async def rename(self, name: str) -> None:
        """Give the session a name for people to see."""
        async with self._lock:
            await self._record.write(InfoEntry, name=name.strip())

    async def add_custom_entry(self, kind: str, data: Any = None) -> None:
        """Store an application's own data in the journal; it is not part of any context."""
        async with self._lock:
            await self._record.write(CustomEntry, kind=kind, data=data)

    async def fork(self, session: str | None = None, *, at: str | None = None) -> "Session":
        """Return a new session that begins with this one's path, up to `at`. The two share no
        journal; their prompts begin with the same bytes, so they share caches.

        Raises:
            NoSuchEntry: the entry does not exist.
            UsageError: a session with that id exists already.
        """
        async with self._lock:
            return Session(await self._core.copy(tree.path_until(self._record, at), session))

    async def save_as(self, session: str | None = None) -> "Session":
        """Save the whole tree as another session, for example because this session's file is
        gone.
        """
        async with self._lock:
            return Session(await self._core.copy(self.entries, session))


def core_of(session: Session) -> SessionCore:
    """Return the core of a session: for runners, wiring and apps, not for applications."""
    return session._core
