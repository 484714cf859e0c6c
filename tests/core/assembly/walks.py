"""Conversations that the pure planner plans by itself: no session, no store, nothing to await.

A walk is drawn as plain steps, so that a failing one prints as what a person did. `take` gives a
`Moment` for each request that was planned and a `Refusal` for each that was not; the laws look at
those.
"""

from collections.abc import Sequence

from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace
from tests.fakes.book import OTHER, SMALL
from tests.fakes.sessions import words
from tests.strategies import PICTURE, promotions

from lamina.core.assembly.budget import Budget
from lamina.core.assembly.planner import plan_results, plan_turn
from lamina.core.assembly.request_draft import CallResults, Draft, Page, RequestPlan
from lamina.core.assembly.turn_items import in_wire_order
from lamina.core.journal import State, initial_state
from lamina.core.layers import Assembler, Layout
from lamina.core.ledger.agreement import SentPrompt
from lamina.core.values.entry import (
    ForgetEntry,
    LeaveEntry,
    MessageEntry,
    PinEntry,
    ReplyEntry,
    SessionEntry,
    SettingsEntry,
    TransformEntry,
)
from lamina.core.values.envelope import SystemPart
from lamina.core.values.item import ALWAYS, BY_HAND, Attachment, Item, ItemId, note_id
from lamina.core.values.message import (
    Block,
    Message,
    Text,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolText,
)
from lamina.core.values.patch import (
    MessagesCachedReplace,
    Patch,
    PatchOp,
    SystemPartSet,
    ToolsReplace,
)
from lamina.core.values.prompt import Prompt
from lamina.core.values.request import Attachments, LeftOut
from lamina.core.values.settings import Promotion, Settings, Target
from lamina.core.values.usage import Usage
from lamina.errors import BudgetError

FIND = ToolDefinition(name="find", description="Finds things.")
READ = ToolDefinition(name="read", description="Reads a file.")
RESERVE = 100
LOST = LeftOut(what="note:lost.md", reason="missing", detail="lost.md is not there")


# -- what a person does --------------------------------------------------------------------------


class Want(Struct, frozen=True, kw_only=True):
    """An attachment, before it is read. Another `edition` is another version."""

    item: str
    size: int = 10
    edition: int = 0
    priority: int = 5
    essential: bool = False
    always: bool = False
    pictured: bool = False

    def attachment(self) -> Attachment:
        item = Item(
            id=ItemId(self.item),
            content=f"edition {self.edition} {words(self.size)}",
            pictures=(PICTURE,) if self.pictured else (),
        )
        return Attachment(
            item=item,
            priority=self.priority,
            essential=self.essential,
            provenance=ALWAYS if self.always else BY_HAND,
        )


class Pin(Struct, frozen=True):
    item: str
    pinned: bool = True


class Forget(Struct, frozen=True):
    item: str


class SetSystem(Struct, frozen=True):
    text: str


class SetTools(Struct, frozen=True):
    count: int


class SetPromotion(Struct, frozen=True):
    promotion: Promotion


class Wipe(Struct, frozen=True):
    """History is emptied by hand, and what stands in it goes with it."""


class Ask(Struct, frozen=True, kw_only=True):
    """A turn; `calls` is how many calls each of its answers makes before the last."""

    size: int = 5
    attach: tuple[Want, ...] = ()
    pause: float = 10.0
    target: Target = SMALL
    lost: bool = False
    tool_text: int = 0
    aside: int = 0
    calls: tuple[int, ...] = ()
    result: int = 10
    answer: int = 10


Step = Ask | Pin | Forget | Wipe | SetSystem | SetTools | SetPromotion


class Walk(Struct, frozen=True, kw_only=True):
    steps: tuple[Step, ...]
    window: int = 100_000
    settings: Settings = Settings()
    calibration: float = 1.0
    always: tuple[Want, ...] = ()


# -- what the planner makes of it ----------------------------------------------------------------


class Moment(Struct, frozen=True, kw_only=True):
    """One request that was planned. `results` are those of the calls that it answers."""

    before: State
    draft: Draft
    sent: Prompt | None
    plan: RequestPlan
    assembler: Assembler
    at: float
    results: tuple[ToolResult, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    without: tuple[LeftOut, ...] = ()

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        return self.plan.request.context.left_out

    @property
    def boundaries(self) -> list[str]:
        return [boundary.kind for boundary in self.plan.request.context.boundaries]

    def plan_again(self) -> RequestPlan:
        """The same plan, by an assembler that remembers nothing."""
        fresh = fresh_assembler(self.assembler.layout)
        page = page_on(self.before, self.at)
        if not self.results:
            return plan_turn(page, self.draft, fresh, as_sent(self.sent, self.before))
        return plan_results(
            page,
            self.draft,
            CallResults(results=self.results, attachments=self.attachments, left_out=self.without),
            fresh,
            as_sent(self.sent, self.before),
        )


class Refusal(Struct, frozen=True, kw_only=True):
    """A request that could not be planned."""

    before: State
    draft: Draft
    error: BudgetError
    assembler: Assembler
    results: tuple[ToolResult, ...] = ()


def as_sent(prompt: Prompt | None, before: State) -> SentPrompt | None:
    """The prompt that was sent last on the path of a state."""
    if prompt is None:
        return None
    last = before.requests.sent
    promotion = last.promotion if last else "lazy"
    return SentPrompt(prompt=prompt, layout=Layout(promotion=promotion))


def count_tokens(text: str) -> int:
    return len(text.split())


def fresh_assembler(layout: Layout) -> Assembler:
    return Assembler(count_tokens, layout)


def page_on(state: State, at: float) -> Page:
    return Page(state, at=at, mint=lambda number: f"{state.leaf}.{number}")


class _Walker:
    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.at = 1_000.0
        self.asked = 0
        self.sent: Prompt | None = None
        settings = replace(walk.settings, window=walk.window, output_reserve=RESERVE)
        system = (SystemPart(name="persona", text="You are terse."),)
        header = SessionEntry(
            id="e",
            parent=None,
            at=0.0,
            session="s",
            settings=settings,
            system=system,
            tools=(FIND,),
        )
        self.state = initial_state(header)
        self.assemblers: dict[Promotion, Assembler] = {}
        self.moments: list[Moment] = []
        self.refusals: list[Refusal] = []

    def take(self, step: Step) -> None:
        page = page_on(self.state, self.at)
        match step:
            case Ask():
                self._ask(step)
                return
            case Pin(item=item, pinned=pinned):
                versions = [version for known, version in self.state.library.items if known == item]
                if versions:
                    page.write(PinEntry, item=ItemId(item), version=versions[-1], pinned=pinned)
            case Forget(item=item):
                page.write(ForgetEntry, item=ItemId(item))
            case Wipe():
                self._patch(page, MessagesCachedReplace(messages=(), reason="a fresh start"))
            case SetSystem(text=text):
                self._patch(page, SystemPartSet(name="persona", text=text, reason="a person"))
            case SetTools(count=count):
                self._patch(page, ToolsReplace(tools=(FIND, READ)[:count], reason="other tools"))
            case SetPromotion(promotion=promotion):
                settings = replace(self.state.settings, promotion=promotion)
                page.write(SettingsEntry, settings=settings)
        self.state = page.state

    def _patch(self, page: Page, op: PatchOp) -> None:
        page.write(TransformEntry, transformer="test", patch=Patch(ops=(op,)))

    def _budget(self) -> Budget:
        return Budget(window=self.walk.window, reserve=RESERVE, calibration=self.walk.calibration)

    def _attachments(self, ask: Ask) -> tuple[Attachment, ...]:
        """What was attached, what always applies, and what is pinned, each once."""
        attachments = {
            attachment.item.id: attachment
            for attachment in (want.attachment() for want in (*self.walk.always, *ask.attach))
        }
        for item, version in self.state.library.pinned.items():
            attachments.setdefault(item, Attachment(item=self.state.library.items[item, version]))
        return in_wire_order(attachments.values())

    def _ask(self, ask: Ask) -> None:
        self.at += ask.pause
        self.asked += 1
        aside = Message(role="user", blocks=(Text(words(ask.aside, "aside")),), id="aside")
        draft = Draft(
            target=ask.target,
            room=self._budget(),
            text=f"question {self.asked} {words(ask.size)}",
            attachments=Attachments(
                attachments=self._attachments(ask), left_out=(LOST,) if ask.lost else ()
            ),
            tool_texts=(ToolText(name="search", text=words(ask.tool_text)),) * bool(ask.tool_text),
        )
        if ask.aside:
            draft = replace(draft, ephemera=replace(draft.ephemera, messages=(aside,)))
        promotion = self.state.settings.promotion
        assembler = self.assemblers.setdefault(
            promotion, fresh_assembler(Layout(promotion=promotion))
        )
        before = self.state
        try:
            sent = as_sent(self.sent, before)
            plan = plan_turn(page_on(before, self.at), draft, assembler, sent)
        except BudgetError as error:
            refusal = Refusal(before=before, draft=draft, error=error, assembler=assembler)
            self.refusals.append(refusal)
            return
        moment = Moment(
            before=before, draft=draft, sent=self.sent, plan=plan, assembler=assembler, at=self.at
        )
        self.moments.append(moment)
        for step, count in enumerate(ask.calls):
            calls = tuple(
                ToolCall(id=f"{self.asked}/{step}/{number}", name="find") for number in range(count)
            )
            self._answer(plan, calls)
            results = tuple(
                ToolResult(
                    call_id=call.id, name=call.name, text=f"{call.id} {words(ask.result + at)}"
                )
                for at, call in enumerate(calls)
            )
            answered = self._resume(moment, results)
            if answered is None:
                # The results cannot be sent: the turn is left, and what was called goes with it.
                self._leave(results)
                return
            moment, plan = answered, answered.plan
        self._answer(plan, (), ask.answer)

    def _answer(self, plan: RequestPlan, calls: Sequence[ToolCall], size: int = 3) -> None:
        page = page_on(plan.state, self.at)
        blocks: tuple[Block, ...] = (Text(f"answer {self.asked} {words(size)}"), *calls)
        message = Message(role="assistant", blocks=blocks, id=page.next_id())
        page.write(MessageEntry, message=message)
        page.write(ReplyEntry, request=plan.request.id, usage=Usage(), stop="end")
        self.state, self.sent = page.state, plan.prompt

    def _resume(self, moment: Moment, results: tuple[ToolResult, ...]) -> Moment | None:
        draft = Draft(target=moment.draft.target, room=self._budget())
        before, kept, without = self.state, moment.plan.kept, moment.left_out
        assembler = moment.assembler
        try:
            plan = plan_results(
                page_on(before, self.at),
                draft,
                CallResults(results=results, attachments=kept, left_out=without),
                assembler,
                as_sent(self.sent, before),
            )
        except BudgetError as error:
            self.refusals.append(
                Refusal(
                    before=before, draft=draft, error=error, assembler=assembler, results=results
                )
            )
            return None
        answered = Moment(
            before=before, draft=draft, sent=self.sent, plan=plan, assembler=assembler,
            at=self.at, results=results, attachments=kept, without=without,
        )  # fmt: skip
        self.moments.append(answered)
        return answered

    def _leave(self, results: tuple[ToolResult, ...]) -> None:
        page = page_on(self.state, self.at)
        short = tuple(replace(result, text="too long") for result in results)
        page.write(MessageEntry, message=Message(role="tool", blocks=short, id=page.next_id()))
        page.write(LeaveEntry)
        self.state = page.state


def take(walk: Walk) -> tuple[list[Moment], list[Refusal]]:
    """Every request that was planned on the way, and every one that was refused."""
    walker = _Walker(walk)
    for step in walk.steps:
        walker.take(step)
    return walker.moments, walker.refusals


# -- strategies ----------------------------------------------------------------------------------

SIZES = {"a.md": 5, "b.md": 20, "c.md": 60, "d.md": 120, "e.md": 300}
NOTES = tuple(note_id(path) for path in SIZES)
SEEN = note_id("seen.md")
GUIDES = (ItemId("rule:tone"), ItemId("reference:names"))


@st.composite
def wants(draw: st.DrawFn, *, always: bool = False) -> Want:
    item = draw(st.sampled_from([*NOTES, *NOTES, *([] if always else [SEEN]), *GUIDES]))
    return Want(
        item=item,
        size=SIZES.get(item.partition(":")[2], 8),
        edition=draw(st.sampled_from([0, 0, 0, 1, 2])),
        priority=draw(st.sampled_from([3, 5, 5, 7, 10])),
        essential=draw(st.integers(0, 7)) == 0,
        always=always,
        pictured=item == SEEN,
    )


def _unique(most: int, *, always: bool = False) -> st.SearchStrategy[tuple[Want, ...]]:
    drawn = st.lists(wants(always=always), max_size=most, unique_by=lambda want: want.item)
    return drawn.map(tuple)


asks = st.builds(
    Ask,
    size=st.integers(1, 80),
    attach=_unique(4),
    pause=st.sampled_from([10.0, 10.0, 10.0, 1_000.0]),
    target=st.sampled_from([SMALL, SMALL, SMALL, SMALL, OTHER]),
    lost=st.integers(0, 7).map(lambda number: number == 0),
    tool_text=st.sampled_from([0, 0, 0, 30]),
    aside=st.sampled_from([0, 0, 0, 10]),
    calls=st.sampled_from([(), (), (), (1,), (2, 1), (1, 3)]),
    result=st.sampled_from([5, 30, 200, 700]),
    answer=st.integers(1, 120),
)
_small = st.sampled_from([*NOTES[:2], *GUIDES])
changes: st.SearchStrategy[Step] = st.one_of(
    st.builds(Pin, _small, st.booleans()),
    st.builds(Forget, st.sampled_from(NOTES)),
    st.builds(Wipe),
    st.builds(SetSystem, st.sampled_from(["You are terse.", "You are kind."])),
    st.builds(SetTools, st.integers(0, 2)),
    st.builds(SetPromotion, promotions),
)
steps: st.SearchStrategy[Step] = st.integers(0, 5).flatmap(
    lambda number: changes if number == 0 else asks
)
_settings = st.builds(
    Settings,
    promotion=promotions,
    attachment_limit=st.sampled_from([None, None, None, 150]),
    history_messages=st.sampled_from([None, None, None, 4]),
    history_tokens=st.sampled_from([None, None, None, 200]),
    history=st.sampled_from(["full", "full", "full", "strip"]),
    strip_turns=st.just(1),
    strip_after_turns=st.just(3),
    summary_tokens=st.sampled_from([40, 250]),
)
walks = st.builds(
    Walk,
    steps=st.lists(steps, min_size=1, max_size=8).map(tuple),
    window=st.sampled_from([350, 500, 700, 1_000, 1_600, 100_000]),
    settings=_settings,
    calibration=st.sampled_from([1.0, 1.0, 1.25, 0.8]),
    always=_unique(2, always=True),
)
