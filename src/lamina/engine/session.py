"""A session: prepares turns, commits replies, and appends both to its journal before it says so.

Law: the state only moves on when the store has kept the entries; a failed append changes nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import anyio
from msgspec.structs import replace

from lamina.budget import Room, make_room
from lamina.codec import require_text
from lamina.engine.branching import carry_over
from lamina.engine.composing import in_wire_order
from lamina.engine.drafting import Draft
from lamina.engine.hydrating import Attachable, Hydrator
from lamina.engine.planning import plan_results, plan_turn
from lamina.engine.rebuilding import rebuild_prompt
from lamina.engine.recording import Plan
from lamina.engine.shrinking import consolidate
from lamina.engine.turn import Turn
from lamina.engine.writing import Pen
from lamina.errors import TurnState, UsageError
from lamina.journal import State, awaits_results, path_to, replay
from lamina.layers import Assembler, Layout
from lamina.ledger import judge_cache
from lamina.ports import Clock, JournalStore, TargetBook, WorkspaceSource
from lamina.values.entry import (
    Entry,
    ForgetEntry,
    ItemEntry,
    LeaveEntry,
    MessageEntry,
    PinEntry,
    ReplyEntry,
    RequestEntry,
    SessionEntry,
    SettingsEntry,
)
from lamina.values.envelope import Envelope
from lamina.values.item import Attachment, ItemId
from lamina.values.message import Image, Message, ToolDefinition, ToolResult, ToolText
from lamina.values.patch import (
    Display,
    Patch,
    PatchOp,
    SystemPartSet,
    ToolsReplace,
)
from lamina.values.prompt import Prompt
from lamina.values.request import CacheVerdict, LeftOut
from lamina.values.settings import Settings, Target
from lamina.values.usage import Usage
from lamina.values.wire import Reply, WireRequest


class Session:
    """One conversation. Make one with `lamina.open_session`."""

    def __init__(
        self,
        entries: Sequence[Entry],
        *,
        store: JournalStore,
        book: TargetBook,
        clock: Clock,
        workspace: WorkspaceSource,
        always: Sequence[Attachment] = (),
    ) -> None:
        self._entries: dict[str, Entry] = {entry.id: entry for entry in entries}
        self._store = store
        self._book = book
        self._clock = clock
        self._hydrator = Hydrator(workspace, store, always)
        self._lock = anyio.Lock(fast_acquire=True)
        self._assembler: Assembler | None = None
        self._assembled_for: tuple[str, Layout] | None = None
        self._sent: Prompt | None = None
        self._sent_for: str | None = None
        self._state = replay(path_to(entries[-1].id, self._entries))

    @property
    def id(self) -> str:
        return self._state.session.session

    @property
    def state(self) -> State:
        return self._state

    @property
    def envelope(self) -> Envelope:
        return self._state.envelope

    @property
    def settings(self) -> Settings:
        return self._state.settings

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every entry of the session, abandoned branches included, in order of writing."""
        return tuple(self._entries.values())

    @property
    def interrupted(self) -> bool:
        """Whether the last request was prepared and never answered."""
        return self._state.open_request is not None

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
            base = pen.state
            chosen = self._choose_target(target, base.settings)
            found = await self._hydrator.hydrate(attach, base)
            assembler = self._assembler_for(chosen, base.settings)
            draft = Draft(
                text=text,
                attachments=in_wire_order(found.attachments),
                target=chosen,
                room=self._room(chosen, base),
                left_out=found.left_out,
                tool_texts=tuple(tool_texts),
                warnings=found.warnings,
            )
            plan = plan_turn(pen, draft, assembler, self._last_sent(base, assembler))
            await self._keep(plan.entries, plan.state)
            return await self._turn(plan, chosen)

    async def commit(
        self, request: RequestEntry, prompt: Prompt, reply: Reply
    ) -> tuple[Message, CacheVerdict]:
        """Appends an answer and what it cost. Called by `Turn.commit`."""
        async with self._lock:
            state = self._state
            if state.open_request is None or state.open_request.id != request.id:
                raise TurnState(
                    "this turn is not the open one: it was committed already, or another turn "
                    "was prepared after it"
                )
            target = self._book.find(request.target)
            verdict = self._judge(state, request, target, reply.usage)
            pen = self._pen(state)
            message = Message(role="assistant", blocks=reply.blocks, id=pen.next_id())
            pen.write(MessageEntry, message=message, interrupted=not reply.complete)
            pen.write(
                ReplyEntry,
                request=request.id,
                usage=reply.usage,
                stop=reply.stop,
                model=reply.model,
                verdict=verdict,
            )
            await self._keep(pen.written, pen.state)
            self._sent, self._sent_for = prompt, request.id
            return message, verdict

    async def resume(
        self,
        request: RequestEntry,
        results: Sequence[ToolResult],
        attachments: tuple[Attachment, ...],
    ) -> Turn:
        """The turn's next request, with the results of its calls. Called by `Turn.resume`."""
        async with self._lock:
            unanswered = self._state.open_request
            pen = self._pen_beside(unanswered) if unanswered else self._pen(self._state)
            state = pen.state
            if state.last_sent is None or state.last_sent.id != request.id:
                raise TurnState("only the latest answer of a session can be resumed")
            if not awaits_results(state):
                raise TurnState("the calls of this turn have their results already")
            target = self._book.find(request.target)
            # A turn goes on as it began; changed settings hold from the next one on.
            begun = replace(state.settings, promotion=request.promotion)
            assembler = self._assembler_for(target, begun)
            draft = Draft(target=target, room=self._room(target, state))
            plan = plan_results(
                pen, draft, results, assembler,
                self._last_sent(state, assembler), attachments, request.context.left_out,
            )  # fmt: skip
            await self._keep(plan.entries, plan.state)
            return await self._turn(plan, target)

    async def current_turn(self) -> Turn | None:
        """The turn that was left in the middle, as after a restart: one whose request was never
        answered (send `request()` again and commit), or one whose calls wait for their results
        (`resume` it). None if the last turn is complete."""
        async with self._lock:
            state = self._state
            waiting = awaits_results(state)
            request = state.open_request or (state.last_sent if waiting else None)
            if request is None:
                return None
            target = self._book.find(request.target)
            layout = Layout(promotion=request.promotion, wire=target.wire)
            assembler = Assembler(self._book.counter(target).count, layout)
            prompt = rebuild_prompt(path_to(request.id, self._entries), assembler)
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
            if item.id in self._state.pinned:
                return False
            pen = self._pen(self._state)
            if (item.id, item.version) not in pen.state.items:
                pen.write(ItemEntry, item=item)
            pen.write(PinEntry, item=item.id, version=item.version)
            await self._keep(pen.written, pen.state)
            return True

    async def unpin(self, what: str) -> bool:
        """Takes a pin away; `what` is an item id or its path or name. False if there was none."""
        return await self._mark(what, self._state.pinned, PinEntry, pinned=False)

    async def forget(self, what: str) -> bool:
        """Lets an item leave the library at the next boundary. False if none stands there."""
        standing = {each for each in self._state.standing if each not in self._state.forgotten}
        return await self._mark(what, standing, ForgetEntry)

    async def _mark(
        self, what: str, among: Iterable[ItemId], kind: type[Any], **fields: Any
    ) -> bool:
        async with self._lock:
            named = [each for each in among if what in (each, each.partition(":")[2])]
            if not named:
                return False
            pen = self._pen(self._state)
            for each in named:
                pen.write(kind, item=each, **fields)
            await self._keep(pen.written, pen.state)
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
            pen = self._pen(self._state)
            pen.transform(transformer, Patch(ops=ops, display=display))
            await self._keep(pen.written, pen.state)

    async def consolidate(self, reason: str) -> bool:
        """Rebuilds the library now, at the price of the prefix. False if nothing would change."""
        if not reason.strip():
            raise UsageError("consolidating moves bytes already sent: give a reason")
        async with self._lock:
            target = self._choose_target(None, self.settings)
            pen = self._pen(self._state)
            consolidate(pen, self._assembler_for(target, self.settings), reason)
            await self._keep(pen.written, pen.state)
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
            self._choose_target(None, changed)
            pen = self._pen(self._state)
            pen.write(SettingsEntry, settings=changed)
            await self._keep(pen.written, pen.state)
            return changed

    # -- inside ----------------------------------------------------------------------------------

    def _pen_for_prepare(self) -> Pen:
        """Where a new message goes on from. A request that was never answered is left as a branch
        of its own, and the new message becomes its sibling; results that it carried stay."""
        state = self._state
        request = state.open_request
        if request is not None:
            before = replay(path_to(request.before, self._entries))
            pen = self._pen_beside(request, request.parent if awaits_results(before) else None)
            if pen.state.turn_start is not None:
                pen.write(LeaveEntry)
            return pen
        if awaits_results(state):
            calls = ", ".join(call.name for call in state.envelope.cached[-1].calls)
            raise TurnState(f"the last answer calls {calls}: give their results to turn.resume()")
        return self._pen(state)

    def _pen_beside(self, request: RequestEntry, leaf: str | None = None) -> Pen:
        """A pen in front of a request that was never answered, or at `leaf`. What was pinned, set
        or changed since then comes along."""
        path = path_to(self._state.leaf, self._entries)
        pen = self._pen(replay(path_to(leaf or request.before, self._entries)))
        since = path[path.index(request) + 1 :]
        target = self._choose_target(None, self.settings)
        carry_over(pen, since, self._state.items, self._assembler_for(target, self.settings))
        return pen

    def _choose_target(self, name: str | None, settings: Settings) -> Target:
        return self._book.find(name or settings.target)

    def _assembler_for(self, target: Target, settings: Settings) -> Assembler:
        counter = self._book.counter(target)
        layout = Layout(promotion=settings.promotion, wire=target.wire)
        if self._assembler is None or self._assembled_for != (counter.name, layout):
            self._assembler = Assembler(counter.count, layout)
            self._assembled_for = (counter.name, layout)
        return self._assembler

    def _room(self, target: Target, state: State) -> Room:
        factor = state.calibration.get(target.name, 1.0)
        return make_room(state.settings, target, state.envelope.options.max_tokens, factor)

    def _last_sent(self, base: State, assembler: Assembler) -> Prompt | None:
        """The prompt of the last request known to be sent on this path."""
        last = base.last_sent
        if last is None:
            return None
        if self._sent is None or self._sent_for != last.id:
            # Laid out as it was then: the settings may have changed since.
            target = self._book.find(last.target)
            layout = Layout(promotion=last.promotion, wire=target.wire)
            if assembler.layout != layout:
                assembler = Assembler(self._book.counter(target).count, layout)
            self._sent = rebuild_prompt(path_to(last.id, self._entries), assembler)
            self._sent_for = last.id
        return self._sent

    def _judge(
        self, state: State, request: RequestEntry, target: Target, usage: Usage
    ) -> CacheVerdict:
        last = state.last_sent
        lifetime = state.settings.cache_lifetime_s
        rules = target.cache if lifetime is None else replace(target.cache, lifetime_s=lifetime)
        same_model = last is not None and last.target == request.target
        # What the provider counts, over what we counted: the truest factor for this request.
        factor = usage.input / request.tokens if usage.input and request.tokens else 1.0
        return judge_cache(
            request.context.agreement,
            last.cached_tokens if last else 0,
            request.at - last.at if last else None,
            rules,
            usage,
            factor,
            same_cache=same_model,
        )

    def _pen(self, state: State) -> Pen:
        written = len(self._entries)
        return Pen(state, at=self._clock.now(), mint=lambda ahead: f"{written + ahead:06x}")

    async def _keep(self, entries: Sequence[Entry], state: State) -> None:
        if entries:
            await self._store.append(self.id, entries)
            self._entries.update((entry.id, entry) for entry in entries)
            self._state = state

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
            options=self._state.envelope.options,
            blobs=await self._blobs(prompt),
            cache_key=self.id,
        )
        wire = self._book.wire(target)
        return Turn(
            session=self, entry=request, wire=wire, wire_request=wire_request,
            attachments=kept, message=message,
        )  # fmt: skip

    async def _blobs(self, prompt: Prompt) -> Mapping[str, bytes]:
        if not any(item.pictures for item in self._state.items.values()):
            return {}
        wanted = {s.content.picture.digest for s in prompt if isinstance(s.content, Image)}
        return {digest: await self._store.get_blob(digest) for digest in sorted(wanted)}


def start_entry(session: str, at: float, **fields: Any) -> SessionEntry:
    """The header of a new session."""
    return SessionEntry(id="000000", parent=None, at=at, session=session, **fields)
