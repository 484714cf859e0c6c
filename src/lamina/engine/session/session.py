"""A session: prepares turns, commits replies, and appends both to its journal before it says so.

`Session` is what people call; `SessionCore` is what it is made of, for runners, wiring and apps.

Laws: the state only moves on when the store has kept the entries; a failed append changes nothing.
One lock for one session; whoever writes holds it.
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
        """From now on this runner works with the session."""
        self.turns.runner = runner

    def ask_before_sending(self, gate: Gate | None) -> None:
        """Asks `gate` before a runner sends a turn; what it raises keeps that from being sent."""
        self.turns.spending.gate = gate

    def show_indexing(self, progress: Progress) -> None:
        """Shows how far indexing is when a question waits for it."""
        self.turns.tools.selector.progress = progress

    def warn(self, *texts: str) -> None:
        """Tells a person something with the next request."""
        self.turns.warn(*texts)

    async def close(self) -> None:
        # Also where a cancellation ended its block: others wait for the session.
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
        """Takes what is given otherwise than the last time, in one write. `given` are digests of
        it.

        Raises:
            UnknownTarget, InvalidPatch: it cannot be; nothing was changed.
        """
        async with self.lock:
            await session_settings.open_again(
                self.record, self.layouts, given, ops,
                settings=settings, options=options, always=always,
            )  # fmt: skip

    async def take_over_agent(
        self, include_modes: Mapping[ItemId, Include], name: str, place: str
    ) -> None:
        """Takes over the include modes of an agent, unless the session has its modes from this
        very agent: another one was named, or the session began before they were recorded."""
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
        """The session in front of a question, to ask another one in its place; with what goes along
        with that one."""
        return in_front_of(self.turns, self.record, self.reader, question, attach)

    async def find_attachments(self, question: str) -> tuple[Attachable, ...]:
        """What a person attached to a question."""
        asked = find_question(self.record, question)
        return await take_over(self.record, self.reader, asked, self.turns.warn)

    async def change_settings(self, values: Mapping[str, Any]) -> None:
        """Changes settings from the next turn on."""
        await session_settings.update_settings(self.record, self.layouts, values)

    def list_requests(self) -> Iterable[dict[str, Any]]:
        """Every request as plain data, without texts."""
        entries = {entry.id: entry for entry in self.record.entries.values()}
        return list_request_rows(
            Journal(entries=entries, leaf=self.record.state.leaf), self.layouts.book
        )

    def find_request(self, answer: str | None) -> str:
        """The request of an answer; of the last one, if none is named."""
        return find_request(self.record, answer).id

    async def copy(self, entries: Sequence[Entry], session: str | None) -> "SessionCore":
        """A session of its own with these entries, and with the same parts."""
        at, damaged = self.clock.now(), bool(self.record.damage)
        name = await tree.copy_entries(entries, self.ports.store, session, at, damaged=damaged)
        ports = replace(self.ports, hooks=self.hooks, selector=self.turns.tools.selector)
        return SessionCore(await self.ports.store.open(name), ports)


class Session:
    """One conversation. Make one with `lamina.open_session`; close it, or use it in `async with`,
    so that others can open it."""

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
        """Lets go of the session's file. What was prepared and not committed stays as it is."""
        await self._core.close()

    @property
    def id(self) -> str:
        """The id that the session is opened with again."""
        return self._record.state.session.session

    def target(self, name: str | None = None) -> Target:
        """The target the session talks to, or another one by name.

        Raises:
            UnknownTarget: there is none of that name.
        """
        return self._core.layouts.choose(name, self.settings)

    @property
    def state(self) -> State:
        """What the session amounts to now: the fold of its path. How it is made up is private."""
        return self._record.state

    @property
    def envelope(self) -> Envelope:
        """What the next request is made of, before a question is added: system parts, library,
        tools, messages, options. `system.compiled` is the system prompt as one text."""
        state = self.state
        in_force = replace(state.envelope, options=state.options)
        return with_compiled_system(in_force, state)

    @property
    def settings(self) -> Settings:
        """The settings in force: also where an agent, a program or a hook set an option of that
        name. `update_settings` changes them."""
        return self.state.settings_in_force

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every entry of the session, abandoned branches included, in order of writing."""
        return tuple(self._record.entries.values())

    @property
    def path(self) -> tuple[Entry, ...]:
        """The entries from the header to where the session goes on: all that counts."""
        return self._record.path(self.state.leaf)

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What was wrong with the journal when it was opened."""
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
        """The next request: what was typed, with what applies to it.

        `attach` takes workspace paths and items; `lamina.attach` gives them a priority.
        `tool_texts` are results of planned tools, for this request only.

        Raises:
            BudgetError: what must be sent does not fit.
            PrefixMoved: bytes already sent would move without a recorded reason.
            SpendLimit: it could cost more than a limit leaves.
            TurnStateError: tool calls of the turn before still wait for their results.
        """
        return await self._turns.prepare(text, attach, target, tuple(tool_texts))

    async def current_turn(self, *, target: str | None = None) -> Turn | None:
        """The turn that was left in the middle, as after a restart: one whose request was never
        answered (send `request()` again and commit; that is reserved as in `prepare`), or one whose
        calls wait for their results (`resume` it). None if the last turn is complete. If a `target`
        is named, here or for the session since, it goes on there: its request is made anew."""
        return await take_up(self._turns, self._record, target)

    async def edit(
        self,
        question: str,
        text: str,
        *,
        attach: Iterable[Attachable] | None = None,
        target: str | None = None,
    ) -> Turn:
        """Asks an earlier question otherwise: the request for `text` in its place. The question of
        that entry stays as a branch, with all that came of it. What was attached to it goes along
        again, unless `attach` says what does; settings and pins are those of now.

        Raises:
            NoSuchEntry: there is no such entry.
            UsageError: it is no question.
            BudgetError, PrefixMoved, SpendLimit: as `prepare`; the session then goes on where it
                was, as it does if the request gets no answer and something else is prepared.
        """
        async with self._core.in_front_of(question, attach) as attachments:
            return await self.prepare(text, attach=attachments, target=target)

    async def attachments_of(self, question: str) -> tuple[Attachable, ...]:
        """What a person attached to a question: what goes along if it is edited.

        Raises:
            NoSuchEntry: there is no such entry.
            UsageError: it is no question.
        """
        return await self._core.find_attachments(question)

    async def regenerate(self, answer: str | None = None, *, target: str | None = None) -> Turn:
        """Asks for an answer again, the last one if none is named: its request once more, with the
        same items and results of tools, as a sibling of it. The entry of a question means its whole
        turn. Settings are those of now, also whom it goes to. If it gets no answer and something
        else is prepared, that comes behind the answer there was.

        Raises:
            NoSuchEntry: there is no such entry.
            TurnStateError: nothing was asked yet.
            UsageError: it is neither a question nor an answer, or was imported.
        """
        return await ask_again(self._turns, self._record, answer, target)

    async def compact(self) -> CompactionOutcome:
        """Lets the older part of history give way to a summary, now. What it dropped stays in the
        journal: see `compactions`.

        Raises:
            TurnStateError: a request is open.
        """
        async with self._lock:
            return await self._turns.compactions.by_hand()

    @property
    def compactions(self) -> tuple[DroppedHistory, ...]:
        """What compactions and prunes took out of the context of this path, with its messages."""
        return tuple(find_dropped_history(self.path))

    # -- calls that wait -------------------------------------------------------------------------

    @property
    def pending_calls(self) -> tuple[ToolCall, ...]:
        """Calls of the last answer that have no result yet."""
        return pending_calls(self._record)

    async def keep_result(self, result: ToolResult, *, whole: str = "") -> ToolResult:
        """Writes down what a tool gave while other calls of its turn still wait, so that it is not
        run again; `resume` takes it up. `whole` is all of a cut one. Gives it as it is kept."""
        return await self._turns.results.keep(result, whole)

    async def read_result(self, what: str) -> str:
        """All of what a tool gave, also what was not sent: by its call's id, or a digest."""
        return await self._turns.results.read(what)

    async def keep_decision(
        self, call_id: str, tool: OfferedTool, decision: Decision, *, planned: bool = False
    ) -> None:
        """Writes down what a person decided about a call; a `planned` one belongs to no answer."""
        async with self._lock:
            await keep_decision(self._record, call_id, tool, decision, planned=planned)

    async def abandon_turn(self, why: str = "The call was not run: the turn was stopped.") -> bool:
        """Ends a turn whose calls wait, so that something else can be asked. What ran keeps its
        result, the rest gets `why`. False if none waits."""
        async with self._lock:
            return await abandon_turn(self._record, self._turns.hooks, why)

    # -- what is in ------------------------------------------------------------------------------

    async def items(self) -> tuple[SessionItem, ...]:
        """What the session's agent always includes, then what was added by hand; what is missing
        is marked."""
        return await members.list_items(self._turns, self.state)

    async def add(self, what: str) -> bool:
        """Adds a rule, a reference or a tool (`rule:NAME`, `ref:NAME`, `tool:SERVER/NAME`; of a
        function or one of Lamina's own `tool:NAME`) to the session. False if it is in already.

        Raises:
            UsageError: there is none of that name.
        """
        async with self._lock:
            return await members.add(self._record, self._turns, what)

    async def remove(self, what: str) -> bool:
        """Takes a rule, a reference or a tool out of the session; it stays out, also of search,
        until it is added. False if it was not there.

        Raises:
            UsageError: `what` is not of the form `rule:NAME`, `ref:NAME` or `tool:SERVER/NAME`.
        """
        async with self._lock:
            return await members.remove(self._record, self._turns, what)

    async def find_agent_changes(self) -> tuple[AgentChange, ...]:
        """How the files of the session's agent differ by now from what the session took over when
        it began: rules, references and tools that are new, gone, or under another include mode.
        Changes nothing; `adopt_agent` does."""
        return await members.find_agent_changes(self._turns, self.state)

    async def adopt_agent(self) -> tuple[AgentChange, ...]:
        """Takes over what the agent's files say by now, from the next turn on. What a person added
        or took out stays. Gives the changes; none if nothing differs.

        Raises:
            UsageError: the agent cannot be read.
        """
        async with self._lock:
            return await members.adopt_agent(self._record, self._turns)

    # -- what stays ------------------------------------------------------------------------------

    async def pin(self, what: Attachable) -> bool:
        """Makes an item essential, named every turn and kept at boundaries. False if it was.

        Raises:
            UsageError: it cannot be read.
        """
        async with self._lock:
            return await library.pin(self._record, self._core.reader, what)

    async def preload(self, attach: Iterable[Attachable]) -> tuple[LeftOut, ...]:
        """Lays items down before anything is asked: in the library, or behind what was sent. Gives
        back what could not be had."""
        async with self._lock:
            return await library.preload(self._record, self._core.reader, attach)

    async def preview_attachment(self, what: Attachable) -> Attachments:
        """What an attachment would bring, or why it cannot be had; nothing is attached."""
        async with self._lock:
            return await self._core.reader.read(what, self.state, keep=False)

    async def find_changes(self) -> tuple[LibraryChange, ...]:
        """What stands in the context and is no longer as the workspace has it: edited, moved,
        deleted. Changes nothing; `refresh` does."""
        async with self._lock:
            return await library.find_changes(self._record, self._core.reader)

    async def refresh(self) -> tuple[LibraryChange, ...]:
        """Brings what stands up to date: present versions are laid down, and what was deleted or
        moved leaves at the next boundary. Gives what changed."""
        async with self._lock:
            return await library.refresh(self._record, self._core.reader)

    async def unpin(self, what: str) -> bool:
        """Takes a pin away; `what` is an item id or its path or name. False if there was none."""
        async with self._lock:
            return await library.unpin(self._record, what)

    async def forget(self, what: str) -> bool:
        """Lets an item leave the library at the next boundary. False if none stands there."""
        async with self._lock:
            return await library.forget(self._record, what)

    async def set_system(self, name: str, text: str, *, reason: str) -> None:
        """Sets one system part: a boundary once something was sent, hence the reason."""
        op = SystemPartSet(name=name, text=text, reason=reason)
        await self.apply("session.set_system", op)

    async def set_tools(self, tools: Sequence[ToolDefinition], *, reason: str) -> None:
        """Replaces the tools, which stand first on every wire."""
        await self.apply("session.set_tools", ToolsReplace(tools=tuple(tools), reason=reason))

    async def apply(
        self,
        transformer: str,
        *ops: PatchOp | Patch | Mapping[str, Any],
        display: Display | None = None,
    ) -> None:
        """Applies patch operations, whole or not at all. They may be plain data, with our names of
        fields or those of the original documents (`invalidateCacheReason`).

        Raises:
            InvalidPatch: an op is wrong; nothing was changed.
        """
        async with self._lock, self._record.writing() as page:
            patch = read_patch(transformer, ops, display, page.state.envelope.cached)
            page.transform(transformer, patch)

    async def add_message(
        self, text: str, *, role: Role = "user", custom_type: str = "", shown: bool = True
    ) -> None:
        """Adds a message to history that is no question: the next request carries it, and all
        after it. `custom_type` is what an application calls it; people see it if it is `shown`.

        Raises:
            TurnStateError: a turn is under way; a runner's `send_message` reaches it.
            UsageError: the message is blank, or of the role of a tool.
        """
        async with self._lock, self._record.writing() as page:
            add_message(page, text, role=role, custom_type=custom_type, shown=shown)

    async def rebuild_library(self, reason: str) -> bool:
        """Rebuilds the library now, at the price of the prefix. False if nothing would change."""
        async with self._lock:
            return await library.rebuild(self._record, self._core.layouts, reason)

    @session_settings.takes_fields_of(Settings)
    async def update_settings(self, **settings: Any) -> Settings:
        """Changes settings of this session from the next turn on. A search takes the name of a
        preset, or a mapping of the parts that change.

        Raises:
            InvalidSetting: a value is of another type, or out of range; nothing was changed.
            UsageError: there is no such setting.
        """
        async with self._lock:
            await self._core.change_settings(settings)
            return self.settings

    async def export_requests(self) -> tuple[dict[str, Any], ...]:
        """Every request as plain data, without texts; docs/requests.md names the fields."""
        return tuple(self._core.list_requests())

    async def spending(self) -> SpendStanding:
        """What this session spent, its last turn, and everybody today; with the limits in force."""
        return await self._turns.spending.standing()

    # -- the tree --------------------------------------------------------------------------------

    async def navigate(self, entry: str, *, summary: str = "") -> tree.TreePosition:
        """Goes on at another entry; a question is left in front of, so that it can be asked anew.
        `summary` tells the model about the branch that is left behind.

        Raises:
            NoSuchEntry: there is no such entry.
        """
        async with self._lock:
            return await tree.navigate(self._record, entry, summary)

    async def label(self, entry: str, text: str) -> None:
        """Gives an entry a name; an empty one takes it away."""
        async with self._lock:
            await tree.label(self._record, entry, text)

    async def rename(self, name: str) -> None:
        """Gives the session a name that people are shown."""
        async with self._lock:
            await self._record.write(InfoEntry, name=name.strip())

    async def add_custom_entry(self, kind: str, data: Any = None) -> None:
        """Keeps data of an application's own in the journal; it is part of no context."""
        async with self._lock:
            await self._record.write(CustomEntry, kind=kind, data=data)

    async def fork(self, session: str | None = None, *, at: str | None = None) -> "Session":
        """A session of its own that begins with this one's path, up to `at`. It shares no bytes of
        its journal with this one; prompts begin with the same bytes, so caches are shared.

        Raises:
            NoSuchEntry: there is no such entry.
            UsageError: there is a session of that id.
        """
        async with self._lock:
            return Session(await self._core.copy(tree.path_until(self._record, at), session))

    async def save_as(self, session: str | None = None) -> "Session":
        """The whole tree as another session: for when the file of this one is gone."""
        async with self._lock:
            return Session(await self._core.copy(self.entries, session))


def core_of(session: Session) -> SessionCore:
    """What a session is made of: for runners, wiring and apps, not for applications."""
    return session._core
