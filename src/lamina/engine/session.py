"""A session: prepares turns, commits replies, and appends both to its journal before it says so.

Law: the state only moves on when the store has kept the entries; a failed append changes nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import anyio
from msgspec.structs import replace

from lamina.codec import mend_text, require_text
from lamina.engine import tree
from lamina.engine.branching import carry_over
from lamina.engine.composing import in_wire_order
from lamina.engine.drafting import Draft
from lamina.engine.hooking import run_context_hooks, run_ephemeral_hooks, run_message_hooks
from lamina.engine.hooks import Hooks
from lamina.engine.hydrating import Attachable, Hydrator
from lamina.engine.keeping import Record
from lamina.engine.laying import Workbench
from lamina.engine.planning import plan_results, plan_turn
from lamina.engine.rebuilding import rebuild_prompt
from lamina.engine.recording import Plan
from lamina.engine.shrinking import consolidate
from lamina.engine.turn import Committed, Turn
from lamina.engine.writing import Pen
from lamina.errors import LaminaError, MessageDropped, TurnState, UsageError
from lamina.journal import State, awaits_results
from lamina.layers import Assembler
from lamina.ports import Clock, JournalStore, OpenJournal, TargetBook, WorkspaceSource
from lamina.values.damage import Damage
from lamina.values.entry import (
    CustomEntry,
    Entry,
    ForgetEntry,
    InfoEntry,
    ItemEntry,
    LeaveEntry,
    MessageEntry,
    OpeningEntry,
    PinEntry,
    ReplyEntry,
    RequestEntry,
    SessionEntry,
    SettingsEntry,
)
from lamina.values.envelope import Envelope
from lamina.values.item import Attachment, ItemId
from lamina.values.message import Image, Message, Text, ToolDefinition, ToolResult, ToolText
from lamina.values.patch import (
    Display,
    Patch,
    PatchOp,
    SystemPartSet,
    ToolsReplace,
)
from lamina.values.prompt import Prompt
from lamina.values.request import LeftOut
from lamina.values.settings import Settings, Target
from lamina.values.wire import Reply, WireRequest

# How much there must be to read before an index pays.
INDEX_BYTES = 1 << 16
# Entries that say what went wrong, and what a hook dropped.
PROBLEM = "lamina.problem"
DROPPED = "lamina.dropped"


class Session:
    """One conversation. Make one with `lamina.open_session`; close it, or use it in `async with`,
    so that others can open it."""

    def __init__(
        self,
        opened: OpenJournal,
        *,
        store: JournalStore,
        book: TargetBook,
        clock: Clock,
        workspace: WorkspaceSource,
        always: Sequence[Attachment] | None = (),
        hooks: Hooks | None = None,
    ) -> None:
        self._record = Record(opened, clock)
        self._bench = Workbench(book, self._record)
        self._store = store
        self._clock = clock
        self._workspace = workspace
        if always is None:
            always = always_of(self._record.state)
        self._hydrator = Hydrator(workspace, store, always)
        self._lock = anyio.Lock(fast_acquire=True)
        # What a person should know before anything is sent: once, with the next request.
        self._untold = [f"journal: {each}" for each in self._record.damage]
        self.hooks = hooks.copy() if hooks else Hooks()

    async def __aenter__(self) -> "Session":
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Lets go of the session's file. What was prepared and not committed stays as it is."""
        async with self._lock:
            try:
                await self._bench.index(least=INDEX_BYTES)
            finally:
                await self._record.close()

    @property
    def id(self) -> str:
        return self._record.state.session.session

    @property
    def state(self) -> State:
        return self._record.state

    @property
    def envelope(self) -> Envelope:
        return self.state.envelope

    @property
    def settings(self) -> Settings:
        return self.state.settings

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
        return self.state.open_request is not None

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
            TurnState: tool calls of the turn before still wait for their results.
        """
        require_text(text, "the message")
        async with self._lock:
            pen = self._pen_for_prepare()
            chosen = self._bench.choose(target, pen.state.settings)
            message, warnings = await self._hook_question(pen, text)
            found = await self._hydrator.hydrate(attach, pen.state)
            await run_context_hooks(
                self.hooks, "before_request", pen, target=chosen.name, message=message
            )
            added = await run_ephemeral_hooks(self.hooks, pen, target=chosen.name, message=message)
            assembler = self._bench.assembler_for(chosen, pen.state.settings.promotion)
            draft = Draft(
                text=message.text,
                attachments=in_wire_order(found.attachments),
                target=chosen,
                room=self._bench.room(chosen, pen.state),
                left_out=found.left_out,
                tool_texts=tuple(tool_texts),
                uncached=added,
                warnings=(*self._untold, *warnings, *found.warnings),
            )
            plan = plan_turn(pen, draft, assembler, self._bench.last_sent(pen.state, assembler))
            await self._record.keep(plan.entries, plan.state)
            self._untold.clear()
            return await self._turn(plan, chosen)

    async def commit(self, request: RequestEntry, prompt: Prompt, reply: Reply) -> Committed:
        """Appends an answer and what it cost. Called by `Turn.commit`."""
        async with self._lock:
            state = self.state
            if state.open_request is None or state.open_request.id != request.id:
                raise TurnState(
                    "this turn is not the open one: it was committed already, or another turn "
                    "was prepared after it"
                )
            verdict = self._bench.judge(state, request, reply.usage)
            pen = self._record.pen()
            message = Message(role="assistant", blocks=reply.blocks, id=pen.next_id())
            message, warnings = await run_message_hooks(
                self.hooks, self.id, message, state.envelope
            )
            pen.write(MessageEntry, message=message, interrupted=not reply.complete)
            pen.write(
                ReplyEntry,
                request=request.id,
                usage=reply.usage,
                stop=reply.stop,
                model=reply.model,
                verdict=verdict,
                warnings=warnings,
            )
            await self._record.keep(pen.written, pen.state)
            self._bench.remember(request, prompt, state)
            if not awaits_results(self.state):
                warnings += await self._end_turn(request.target, message)
            await self._bench.index(least=16 * INDEX_BYTES, share=0.25)
            return Committed(message=message, verdict=verdict, warnings=warnings)

    async def _end_turn(self, target: str, answer: Message) -> tuple[str, ...]:
        """What hooks make of a turn that is over. The answer is kept by now: what goes wrong here
        is written down and said, and takes nothing away."""
        pen = self._record.pen()
        try:
            await run_context_hooks(self.hooks, "turn_end", pen, target=target, message=answer)
        except LaminaError as error:
            pen = self._record.pen()
            problem = {"where": "turn_end", "problem": mend_text(str(error))}
            pen.write(CustomEntry, kind=PROBLEM, data=problem)
            await self._record.keep(pen.written, pen.state)
            return (f"after the turn: {error}",)
        await self._record.keep(pen.written, pen.state)
        return ()

    async def resume(
        self,
        request: RequestEntry,
        results: Sequence[ToolResult],
        attachments: tuple[Attachment, ...],
    ) -> Turn:
        """The turn's next request, with the results of its calls. Called by `Turn.resume`."""
        async with self._lock:
            unanswered = self.state.open_request
            pen = self._pen_beside(unanswered) if unanswered else self._record.pen()
            state = pen.state
            if state.last_sent is None or state.last_sent.id != request.id:
                raise TurnState("only the latest answer of a session can be resumed")
            if not awaits_results(state):
                raise TurnState("the calls of this turn have their results already")
            target = self._bench.book.find(request.target)
            message = Message(role="tool", blocks=tuple(results), id=pen.next_id())
            message, warnings = await run_message_hooks(
                self.hooks, self.id, message, state.envelope
            )
            await run_context_hooks(
                self.hooks, "before_request", pen, target=target.name, message=message
            )
            added = await run_ephemeral_hooks(self.hooks, pen, target=target.name, message=message)
            # A turn goes on as it began; changed settings hold from the next one on.
            assembler = self._bench.assembler_for(target, request.promotion)
            draft = Draft(
                target=target,
                room=self._bench.room(target, pen.state),
                uncached=added,
                warnings=warnings,
            )
            given = [block for block in message.blocks if isinstance(block, ToolResult)]
            plan = plan_results(
                pen, draft, given, assembler,
                self._bench.last_sent(pen.state, assembler), attachments, request.context.left_out,
            )  # fmt: skip
            await self._record.keep(plan.entries, plan.state)
            return await self._turn(plan, target)

    async def current_turn(self) -> Turn | None:
        """The turn that was left in the middle, as after a restart: one whose request was never
        answered (send `request()` again and commit), or one whose calls wait for their results
        (`resume` it). None if the last turn is complete."""
        async with self._lock:
            state = self.state
            waiting = awaits_results(state)
            request = state.open_request or (state.last_sent if waiting else None)
            if request is None:
                return None
            target = self._bench.book.find(request.target)
            assembler = self._bench.fresh_assembler(request)
            prompt = rebuild_prompt(self._record.path(request.id), assembler)
            kept = tuple(
                Attachment(
                    item=state.items[each.item, each.version],
                    priority=each.priority,
                    essential=each.essential,
                    include=each.include,
                )
                for each in request.context.items
                if (each.item, each.version) in state.items
            )
            answer = state.envelope.cached[-1] if state.open_request is None else None
            return await self._turn_of(request, prompt, target, kept, answer)

    # -- what stays ------------------------------------------------------------------------------

    async def pin(self, what: Attachable) -> bool:
        """Makes an item essential, named every turn and kept at boundaries. False if it was.

        Raises:
            UsageError: it cannot be read.
        """
        async with self._lock:
            found = await self._hydrator.read(what)
            if isinstance(found, LeftOut):
                raise UsageError(f"cannot pin: {found.detail}")
            item = found.item
            if item.id in self.state.pinned:
                return False
            pen = self._record.pen()
            if (item.id, item.version) not in pen.state.items:
                pen.write(ItemEntry, item=item)
            pen.write(PinEntry, item=item.id, version=item.version)
            await self._record.keep(pen.written, pen.state)
            return True

    async def unpin(self, what: str) -> bool:
        """Takes a pin away; `what` is an item id or its path or name. False if there was none."""
        return await self._mark(what, self.state.pinned, PinEntry, pinned=False)

    async def forget(self, what: str) -> bool:
        """Lets an item leave the library at the next boundary. False if none stands there."""
        standing = {each for each in self.state.standing if each not in self.state.forgotten}
        return await self._mark(what, standing, ForgetEntry)

    async def _mark(
        self, what: str, among: Iterable[ItemId], kind: type[Any], **fields: Any
    ) -> bool:
        async with self._lock:
            named = [each for each in among if what in (each, each.partition(":")[2])]
            if not named:
                return False
            pen = self._record.pen()
            for each in named:
                pen.write(kind, item=each, **fields)
            await self._record.keep(pen.written, pen.state)
            return True

    async def set_system(self, name: str, text: str, *, reason: str) -> None:
        """Sets one system part: a boundary once something was sent, hence the reason."""
        op = SystemPartSet(name=name, text=text, reason=reason)
        await self.apply("session.set_system", op)

    async def set_tools(self, tools: Sequence[ToolDefinition], *, reason: str) -> None:
        """Replaces the tools, which stand first on every wire."""
        await self.apply("session.set_tools", ToolsReplace(tools=tuple(tools), reason=reason))

    async def apply(self, transformer: str, *ops: PatchOp, display: Display | None = None) -> None:
        """Applies patch operations, whole or not at all.

        Raises:
            InvalidPatch: an op is wrong; nothing was changed.
        """
        async with self._lock:
            pen = self._record.pen()
            pen.transform(transformer, Patch(ops=ops, display=display))
            await self._record.keep(pen.written, pen.state)

    async def consolidate(self, reason: str) -> bool:
        """Rebuilds the library now, at the price of the prefix. False if nothing would change."""
        if not reason.strip():
            raise UsageError("consolidating moves bytes already sent: give a reason")
        async with self._lock:
            pen = self._record.pen()
            consolidate(pen, self._assembler(), reason)
            await self._record.keep(pen.written, pen.state)
            return bool(pen.written)

    async def change(self, **settings: Any) -> Settings:
        """Changes settings of this session from the next turn on.

        Raises:
            InvalidSetting: a value is out of range.
            UsageError: there is no such setting.
        """
        async with self._lock:
            try:
                changed = replace(self.settings, **settings)
            except TypeError as error:
                raise UsageError(f"no such setting: {error}") from error
            self._bench.choose(None, changed)
            pen = self._record.pen()
            pen.write(SettingsEntry, settings=changed)
            await self._record.keep(pen.written, pen.state)
            return changed

    # -- the tree --------------------------------------------------------------------------------

    async def navigate(self, entry: str, *, summary: str = "") -> tree.Position:
        """Goes on at another entry; a question is left in front of, so that it can be asked anew.
        `summary` tells the model what came of the branch that is left.

        Raises:
            UnknownSession: there is no such entry.
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
            pen = self._record.pen()
            pen.write(InfoEntry, name=name.strip())
            await self._record.keep(pen.written, pen.state)

    async def note(self, kind: str, data: Any = None) -> None:
        """Keeps data of an application's own in the journal; it is part of no context."""
        async with self._lock:
            pen = self._record.pen()
            pen.write(CustomEntry, kind=kind, data=data)
            await self._record.keep(pen.written, pen.state)

    async def note_opening(self, given: Mapping[str, str]) -> None:
        """Keeps digests of what was given at this opening; called by `lamina.open_session`."""
        async with self._lock:
            pen = self._record.pen()
            pen.write(OpeningEntry, given=dict(given))
            await self._record.keep(pen.written, pen.state)

    async def fork(self, session: str | None = None, *, at: str | None = None) -> "Session":
        """A session of its own that begins with this one's path, up to `at`. It shares no bytes of
        its journal with this one; prompts begin with the same bytes, so caches are shared.

        Raises:
            UnknownSession: there is no such entry.
            UsageError: there is a session of that id.
        """
        async with self._lock:
            path = self._record.path(self._record.find(at).id if at else self.state.leaf)
            return await self._copy(path, session)

    async def save_as(self, session: str | None = None) -> "Session":
        """The whole tree as another session: for when the file of this one is gone."""
        async with self._lock:
            return await self._copy(self.entries, session)

    async def _copy(self, entries: Sequence[Entry], session: str | None) -> "Session":
        name = session or f"{self.id}-{self._record.next_id()}"
        await tree.copy_entries(entries, self._store, name, self._clock.now())
        return Session(
            await self._store.open(name),
            store=self._store,
            book=self._bench.book,
            clock=self._clock,
            workspace=self._workspace,
            always=self._hydrator.always,
            hooks=self.hooks,
        )

    # -- inside ----------------------------------------------------------------------------------

    def _assembler(self) -> Assembler:
        target = self._bench.choose(None, self.settings)
        return self._bench.assembler_for(target, self.settings.promotion)

    async def _hook_question(self, pen: Pen, text: str) -> tuple[Message, tuple[str, ...]]:
        message = Message(role="user", blocks=(Text(text),))
        try:
            return await run_message_hooks(self.hooks, self.id, message, pen.state.envelope)
        except MessageDropped as drop:
            # Nothing disappears silently: the journal says what was dropped and by whom.
            note = self._record.pen()
            note.write(CustomEntry, kind=DROPPED, data={"hook": drop.hook, "text": text})
            await self._record.keep(note.written, note.state)
            raise

    def _pen_for_prepare(self) -> Pen:
        """Where a new message goes on from. A request that was never answered is left as a branch
        of its own, and the new message becomes its sibling; results that it carried stay."""
        state = self.state
        request = state.open_request
        if request is not None:
            before = self._record.state_at(request.before)
            pen = self._pen_beside(request, request.parent if awaits_results(before) else None)
            if pen.state.turn_start is not None:
                pen.write(LeaveEntry)
            return pen
        if awaits_results(state):
            calls = ", ".join(call.name for call in state.envelope.cached[-1].calls)
            raise TurnState(f"the last answer calls {calls}: give their results to turn.resume()")
        if (asked := unsent_question(state)) is not None:
            # Its request was lost with the power; it was never sent, and stays as a branch.
            parent = self._record.entries[asked].parent
            assert parent is not None
            return self._record.pen(self._record.state_at(parent))
        return self._record.pen()

    def _pen_beside(self, request: RequestEntry, leaf: str | None = None) -> Pen:
        """A pen in front of a request that was never answered, or at `leaf`. What was pinned, set
        or changed since then comes along."""
        path = self.path
        pen = self._record.pen(self._record.state_at(leaf or request.before))
        since = path[path.index(request) + 1 :]
        carry_over(pen, since, self.state.items, self._assembler())
        return pen

    async def _turn(self, plan: Plan, target: Target) -> Turn:
        return await self._turn_of(plan.request, plan.prompt, target, plan.kept)

    async def _turn_of(
        self,
        request: RequestEntry,
        prompt: Prompt,
        target: Target,
        kept: tuple[Attachment, ...],
        message: Message | None = None,
    ) -> Turn:
        wire_request = WireRequest(
            prompt=prompt,
            target=target,
            options=self.envelope.options,
            blobs=await self._blobs(prompt),
            cache_key=self.id,
        )
        wire = self._bench.book.wire(target)
        return Turn(
            session=self, entry=request, wire=wire, wire_request=wire_request,
            attachments=kept, message=message,
        )  # fmt: skip

    async def _blobs(self, prompt: Prompt) -> Mapping[str, bytes]:
        if not any(item.pictures for item in self.state.items.values()):
            return {}
        wanted = {s.content.picture.digest for s in prompt if isinstance(s.content, Image)}
        return {digest: await self._store.get_blob(digest) for digest in sorted(wanted)}


def unsent_question(state: State) -> str | None:
    """The id of a question that stands at the end with no request for it, if one does."""
    cached = state.envelope.cached
    if state.turn_start is None or state.turn_start != len(cached) - 1:
        return None
    asked = cached[-1]
    return asked.id if asked.role == "user" and asked.id == state.asked else None


def always_of(state: State) -> list[Attachment]:
    """What was included in every turn so far, as the last request had it."""
    last = state.last_sent or state.open_request
    return [
        Attachment(item=state.items[each.item, each.version], priority=each.priority,
                   include="always")
        for each in (last.context.items if last else ())
        if each.include == "always" and (each.item, each.version) in state.items
    ]  # fmt: skip


def start_entry(session: str, at: float, **fields: Any) -> SessionEntry:
    """The header of a new session."""
    return SessionEntry(id="000000", parent=None, at=at, session=session, **fields)
