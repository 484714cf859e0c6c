"""Conversations that could be: drawn as plain steps, then played through the public API.

What is drawn holds no state, so that a failing one prints as what a person did. `play` gives a
`Moment` per request; the laws look at those.
"""

from collections.abc import Iterator

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace
from tests.fakes.book import OTHER, SMALL, THINKER
from tests.fakes.sessions import World, rule, words

from lamina.core.journal import State, path_to, replay
from lamina.core.values.entry import RequestEntry
from lamina.core.values.item import Attachment, Item, ItemId, Picture, note_id
from lamina.core.values.message import (
    Block,
    Message,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolDefinition,
    ToolText,
)
from lamina.core.values.patch import MessagesCachedReplace
from lamina.core.values.settings import Promotion
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Reply
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn
from lamina.errors import BudgetError

# Two slow cores: enough examples to find things, nothing kept on disk.
modest = settings(
    max_examples=60,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow],
)

SIZES = {"a.md": 5, "b.md": 20, "c.md": 40, "d.md": 80, "e.md": 150, "f.md": 300}
PICTURED = "seen.md"
PATHS = (*SIZES, PICTURED)
TONE = rule("tone", "Be brief.")
FIND = ToolDefinition(name="find", description="Finds things.")


class Edit(Struct, frozen=True):
    path: str


class Pin(Struct, frozen=True):
    path: str
    pinned: bool = True


class Forget(Struct, frozen=True):
    path: str


class SetSystem(Struct, frozen=True):
    text: str


class SetPromotion(Struct, frozen=True):
    promotion: Promotion


class Consolidate(Struct, frozen=True):
    """By hand."""


class Reopen(Struct, frozen=True):
    """The process ends; another opens the session from its store."""


class Rewrite(Struct, frozen=True):
    """What was said so far gives way to messages of these roles."""

    roles: tuple[Role, ...]


Change = Edit | Pin | Forget | SetSystem | SetPromotion | Consolidate | Rewrite


class Ask(Struct, frozen=True, kw_only=True):
    """A turn: `attach` are paths with priorities, `loops` how many calls each answer makes, and
    `meanwhile` is what a person does before the first answer is there. With `restarts` the
    process ends at every step of it, and the turn is taken up again from the store; with `leaves`
    the last request of its loop is never answered."""

    size: int
    attach: tuple[tuple[str, int], ...] = ()
    pause: float = 10.0
    target: str = SMALL.name
    tool_text: int = 0
    loops: tuple[int, ...] = ()
    result: int = 10
    answer: int = 10
    commit: bool = True
    meanwhile: tuple[Change, ...] = ()
    restarts: bool = False
    leaves: bool = False


Step = Ask | Change | Reopen


class Conversation(Struct, frozen=True, kw_only=True):
    steps: tuple[Step, ...]
    promotion: Promotion = "lazy"
    window: int = 100_000
    attachment_limit: int | None = None
    history: dict[str, object] = {}
    rules: bool = False
    # What the provider counts, over what we count; None if it reports no usage.
    counts: float | None = None


class Moment(Struct, frozen=True, kw_only=True):
    """One request: what was asked for, what became of it, and the states around it."""

    turn: Turn
    typed: str
    attached: frozenset[ItemId]
    pinned: frozenset[ItemId]
    system: str
    promotion: Promotion
    resumed: bool
    before: State
    after: State
    last: "Moment | None"

    @property
    def entry(self) -> RequestEntry:
        assert self.after.requests.open is not None
        return self.after.requests.open


# -- strategies ----------------------------------------------------------------------------------

paths = st.sampled_from(PATHS)
attached = st.lists(
    st.tuples(paths, st.sampled_from([3, 5, 5, 10])), max_size=4, unique_by=lambda pair: pair[0]
).map(tuple)
promotions: st.SearchStrategy[Promotion] = st.sampled_from(["lazy", "eager"])


@st.composite
def changes(draw: st.DrawFn, often: int) -> tuple[Change, ...]:
    """What a person does besides asking: nothing, all but `often` times in twenty."""
    small = st.sampled_from(["a.md", "b.md"])
    kind = draw(st.integers(0, 19))
    if kind >= often:
        return ()
    match kind % 7:
        case 0:
            return (Edit(draw(paths)),)
        case 1:
            return (Edit(draw(small)),)
        case 2:
            return (Pin(draw(small), draw(st.booleans())),)
        case 3:
            return (Forget(draw(paths)),)
        case 4:
            return (SetSystem(draw(st.sampled_from(["Be kind.", "Be terse."]))),)
        case 5:
            return (SetPromotion(draw(promotions)),)
        case _:
            return (Consolidate(),)


asks = st.builds(
    Ask,
    size=st.integers(1, 120),
    attach=attached,
    pause=st.sampled_from([10.0, 10.0, 10.0, 400.0]),
    target=st.sampled_from([*[SMALL.name] * 5, OTHER.name, THINKER.name]),
    tool_text=st.sampled_from([0, 0, 15]),
    loops=st.sampled_from([(), (), (1,), (2, 1), (3,), (1, 1, 1)]),
    result=st.sampled_from([5, 60, 400]),
    answer=st.integers(1, 120),
    commit=st.sampled_from([True, True, True, False]),
    meanwhile=changes(4),
    restarts=st.sampled_from([False, False, False, True]),
    leaves=st.sampled_from([False, False, False, False, True]),
)


@st.composite
def turns(draw: st.DrawFn, most: int = 7) -> tuple[Step, ...]:
    drawn: list[Step] = []
    for _ in range(draw(st.integers(2, most))):
        drawn += draw(changes(9))
        drawn += [Reopen()] if draw(st.integers(0, 9)) == 0 else []
        drawn.append(draw(asks))
    return tuple(drawn)


histories: st.SearchStrategy[dict[str, object]] = st.sampled_from(
    [
        {},
        {},
        {"history_messages": 6},
        {"history_tokens": 200},
        {"history": "strip", "strip_after_turns": 4},
    ]
)


conversations: st.SearchStrategy[Conversation] = st.builds(
    Conversation,
    steps=turns(),
    promotion=promotions,
    window=st.sampled_from([500, 900, 1_500, 100_000]),
    attachment_limit=st.sampled_from([None, None, 250]),
    history=histories,
    rules=st.booleans(),
    counts=st.sampled_from([None, 1.0, 1.3]),
)


rewrites: st.SearchStrategy[Change] = st.sampled_from(
    [
        Rewrite(()),
        Rewrite(("user",)),
        Rewrite(("user", "assistant")),
        Rewrite(("assistant",)),
        SetSystem("Be kind."),
        SetPromotion("eager"),
        Consolidate(),
    ]
)


@st.composite
def rewritten(draw: st.DrawFn, conversation: Conversation) -> Conversation:
    """The conversation, with what was sent changed while requests are open. Apart from the others:
    a question that was taken out is no longer sent."""
    steps: list[Step] = []
    for step in conversation.steps:
        if isinstance(step, Ask) and draw(st.booleans()):
            step = replace(step, meanwhile=(*step.meanwhile, draw(rewrites)))
        steps.append(step)
    return replace(conversation, steps=tuple(steps))


# -- playing -------------------------------------------------------------------------------------


class Player:
    """Plays steps. A budget error ends a turn, and must leave no trace of it."""

    def __init__(self, conversation: Conversation) -> None:
        self.given = conversation
        self.world = World()
        self.revisions: dict[str, int] = dict.fromkeys(PATHS, 0)
        self.picture = Picture(digest="", media_type="image/png", width=10, height=10)
        # What was said to hold, to be compared with what the session makes of it.
        self.pinned: set[ItemId] = set()
        self.system = "You are a clerk."
        self.promotion = conversation.promotion
        self.moments: list[Moment] = []
        self.session: Session
        self._asked = 0

    async def play(self) -> list[Moment]:
        digest = await self.world.store.put_blob(b"image")
        self.picture = Picture(digest=digest, media_type="image/png", width=10, height=10)
        await self._open(None)
        for step in self.given.steps:
            if not await self._take(step):
                break
        return self.moments

    async def _open(self, session: str | None) -> None:
        given = self.given
        self.session = await self.world.open(
            session,
            system="You are a clerk.",
            tools=[FIND],
            always=[TONE] if given.rules else [],
            promotion=given.promotion,
            window=given.window,
            output_reserve=100,
            attachment_limit=given.attachment_limit,
            **given.history,
        )

    def item(self, path: str) -> Item:
        # Two contents by turns: what is edited twice has changed back.
        revision = self.revisions[path] % 2
        if path == PICTURED:
            content = words(10, f"seen{revision}")
            return Item(id=note_id(path), content=content, pictures=(self.picture,))
        return Item(id=note_id(path), content=words(SIZES[path], f"{path[0]}{revision}"))

    async def _take(self, step: Step) -> bool:
        """Whether the conversation can go on."""
        match step:
            case Ask():
                return await self._ask(step)
            case Reopen():
                await self._open(self.session.id)
            case _:
                await self._change(step)
        return True

    async def _change(self, change: Change) -> None:
        session = self.session
        match change:
            case Edit(path):
                self.revisions[path] += 1
            case Pin(path, True):
                await session.pin(self.item(path))
                self.pinned.add(note_id(path))
            case Pin(path):
                await session.unpin(path)
                self.pinned.discard(note_id(path))
            case Forget(path):
                await session.forget(path)
            case SetSystem(text):
                await session.set_system("system", text, reason="the tone changed")
                self.system = text
            case SetPromotion(promotion):
                await session.update_settings(promotion=promotion)
                self.promotion = promotion
            case Consolidate():
                await session.rebuild_library("by hand")
            case Rewrite(roles):
                messages = tuple(Message(role=role, blocks=(Text("Well."),)) for role in roles)
                rewritten = MessagesCachedReplace(messages=messages, reason="told anew")
                await session.apply("rewrite", rewritten)

    async def _ask(self, ask: Ask) -> bool:
        self._asked += 1
        typed = words(ask.size, f"q{self._asked}")
        self.world.clock.pass_by(ask.pause)
        attach = [Attachment(item=self.item(path), priority=worth) for path, worth in ask.attach]
        texts = [ToolText(name="search", text=words(ask.tool_text))] if ask.tool_text else []
        before, entries = self.session.state, self.session.entries
        try:
            turn = await self.session.prepare(
                typed, attach=attach, target=ask.target, tool_texts=texts
            )
        except BudgetError as error:
            assert self.session.state is before
            assert self.session.entries == entries
            self._justify(error, ask)
            return True
        always = {TONE.id} if self.given.rules else set()
        named = frozenset({a.item.id for a in attach} | self.pinned | always)
        self._note(turn, typed, named, resumed=False)
        for change in ask.meanwhile:
            await self._change(change)
        if not ask.commit:
            return True
        turn = await self._restarted(turn, ask)
        for number, calls in enumerate(ask.loops):
            # Not in the order in which they are written down as keys.
            made = [(f"c{self._asked}-{number}-{9 - call}", "find") for call in range(calls)]
            blocks = [ToolCall(id=call, name=name) for call, name in made]
            turn = await turn.commit(self._reply(turn, *blocks))
            turn = await self._restarted(turn, ask)
            results = {call: words(ask.result, "found") for call, _ in made}
            try:
                turn = await turn.resume(results)
            except BudgetError as error:
                # Nothing can be asked before the results fit: the end of this conversation.
                self._justify(error, ask)
                return False
            self._note(turn, typed, named, resumed=True)
            turn = await self._restarted(turn, ask)
        if ask.leaves and ask.loops:
            return True
        await turn.commit(self._reply(turn, Text(words(ask.answer, f"r{self._asked}"))))
        return True

    async def _restarted(self, turn: Turn, ask: Ask) -> Turn:
        if not ask.restarts:
            return turn
        await self._open(self.session.id)
        again = await self.session.current_turn()
        assert again is not None
        assert again.request() == turn.request()
        assert again.pending_calls == turn.pending_calls
        return again

    def _justify(self, error: BudgetError, ask: Ask) -> None:
        """A request may be refused only if what it cannot do without might not fit: question,
        pins, and some slack for names, calls and notices. Everything else can give way."""
        pinned = sum(SIZES[path] + 8 for path in SIZES if note_id(path) in self.pinned)
        assert error.limit < ask.size + ask.tool_text + pinned + 250, error

    def _reply(self, turn: Turn, *blocks: Block) -> Reply:
        counts = self.given.counts
        usage = Usage(input=round(turn.prompt.tokens * counts)) if counts else Usage()
        if turn.context.target == THINKER.name:
            thought = Thinking(text="hm", signature="signed", provider=THINKER.wire)
            blocks = (thought, *blocks)
        return Reply(blocks=blocks, usage=usage, stop="stop")

    def _base(self, turn: Turn) -> State:
        entries = {entry.id: entry for entry in self.session.entries}
        request = entries[turn.id]
        assert isinstance(request, RequestEntry)
        return replay(path_to(request.before, entries))

    def _note(self, turn: Turn, typed: str, named: frozenset[ItemId], *, resumed: bool) -> None:
        before = self._base(turn)
        sent = before.requests.sent
        last = next((m for m in self.moments if sent is not None and m.turn.id == sent.id), None)
        self.moments.append(
            Moment(
                turn=turn,
                typed=typed,
                attached=named,
                pinned=frozenset(self.pinned),
                system=self.system,
                promotion=self.promotion,
                resumed=resumed,
                before=before,
                after=self.session.state,
                last=last,
            )
        )


async def play(conversation: Conversation) -> tuple[Player, list[Moment]]:
    player = Player(conversation)
    return player, await player.play()


def standing_blocks(turn: Turn) -> Iterator[str]:
    """The source of every block of an item that stands in a request, pictures aside."""
    for segment in turn.prompt:
        if "@" in segment.source and segment.text:
            yield segment.source
