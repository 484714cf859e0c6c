"""A session opened with an index of its journal is the session that a full replay gives."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace
from tests.engine.conversations import (
    FIND,
    TONE,
    Ask,
    Conversation,
    Edit,
    Pin,
    Player,
    Reopen,
    SetPromotion,
    asks,
    changes,
    histories,
    promotions,
)
from tests.engine.conversations import modest as playing
from tests.fakes.book import OTHER, FakeBook
from tests.fakes.clock import FakeClock
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, digests, note, rule, run, talk, words
from tests.fakes.workspace import FakeWorkspace

import lamina
from lamina import codec
from lamina.engine.hooks import ContextEvent, Hooks
from lamina.engine.session import Session
from lamina.engine.turn import Turn
from lamina.engine.verifying import verify
from lamina.errors import BudgetError, LaminaError, TurnState
from lamina.journal import State, read_journal
from lamina.stores.indexes import index_path, read_index, write_index
from lamina.stores.jsonl import JsonlStore
from lamina.values.damage import Damage
from lamina.values.entry import Entry
from lamina.values.item import Attachment, Item
from lamina.values.message import Message, Text, ToolText
from lamina.values.patch import MessagesUncachedAppend, OptionsSet, SystemPartSet
from lamina.values.request import CacheVerdict, RequestContext
from lamina.values.settings import Settings
from lamina.values.usage import Usage
from lamina.values.wire import Reply

NAME = "played"


@contextmanager
def indexing_from(least: int) -> Iterator[None]:
    """Indexes are made from so many bytes on, else only for long sessions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lamina.engine.turns.INDEX_BYTES", least)
        patch.setattr("lamina.engine.session.INDEX_BYTES", least)
        yield


@contextmanager
def counting_decoded() -> Iterator[list[int]]:
    """How many entries are decoded from their lines."""
    count = [0]

    def decode(data: bytes) -> Entry:
        count[0] += 1
        return codec.decode_entry(data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lamina.journal.indexing.decode_entry", decode)
        patch.setattr("lamina.journal.lines.decode_entry", decode)
        yield count


# -- playing on disk -----------------------------------------------------------------------------


class Move(Struct, frozen=True):
    """To any entry of the tree."""

    which: int
    summary: str = ""


class Compact(Struct, frozen=True):
    """By hand."""


def hooks_that_change_things() -> Hooks:
    hooks = Hooks()

    @hooks.context(name="options")
    def set_options(event: ContextEvent) -> OptionsSet | None:
        return OptionsSet(temperature=0.5) if len(event.envelope.cached) % 3 == 2 else None

    @hooks.context(reason="ephemeral", name="clock")
    def tell_time(event: ContextEvent) -> MessagesUncachedAppend:
        text = f"It is {len(event.envelope.cached)} o'clock."
        return MessagesUncachedAppend(messages=(Message(role="user", blocks=(Text(text),)),))

    @hooks.context(reason="turn_end", name="memory")
    def remember(event: ContextEvent) -> SystemPartSet | None:
        if len(event.envelope.cached) % 5 != 4:
            return None
        return SystemPartSet(name="memory", text=f"{event.reason} was seen", reason="learnt")

    return hooks


class DiskWorld(World):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.store = JsonlStore(folder, wait=0.0)  # type: ignore[assignment]


class DiskPlayer(Player):
    """Plays into a file, and keeps every index that there was meanwhile."""

    def __init__(self, conversation: Conversation, folder: Path, *, hooked: bool) -> None:
        super().__init__(conversation)
        self.world = DiskWorld(folder)
        self.hooks = hooks_that_change_things() if hooked else None
        self.path = JsonlStore(folder).path_of(NAME)
        self.indexes: dict[int, bytes] = {}

    async def _open(self, session: str | None) -> None:
        if session is not None:
            await self.session.close()
            self._keep_index()
        given = self.given
        self.session = await self.world.open(
            NAME,
            system="You are a clerk.",
            tools=[FIND],
            always=[TONE] if given.rules else [],
            promotion=given.promotion,
            window=given.window,
            output_reserve=100,
            attachment_limit=given.attachment_limit,
            hooks=self.hooks,
            **given.history,
        )

    def _keep_index(self) -> None:
        if index := read_index(index_path(self.path)):
            self.indexes[index.covered] = index_path(self.path).read_bytes()

    async def _take(self, step: Any) -> bool:
        try:
            match step:
                case Move(which, summary):
                    entries = self.session.entries
                    await self.session.navigate(entries[which % len(entries)].id, summary=summary)
                case Compact():
                    await self.session.compact()
                case _:
                    return await super()._take(step)
        except TurnState:
            pass  # calls wait for their results, or a request is open
        finally:
            self._keep_index()
        return True

    def _justify(self, error: BudgetError, ask: Ask) -> None:
        """Not what is looked at here; going about in the tree changes what is pinned."""


class Seen(Struct, frozen=True, kw_only=True):
    """What can be told of a session from outside, and of how it goes on."""

    state: State
    path: tuple[Entry, ...]
    entries: tuple[Entry, ...]
    damage: tuple[Damage, ...]
    requests: tuple[tuple[dict[str, Any], tuple[str, ...], RequestContext], ...]
    verdicts: tuple[CacheVerdict | None, ...]
    refused: str
    after: tuple[Entry, ...]


class Copies:
    """Openings of a journal, each with another index or with none."""

    def __init__(self, folder: Path, data: bytes, *, hooked: bool = False, blobs: Path) -> None:
        self._folder = folder
        self._data = data
        self._hooked = hooked
        self._blobs = blobs
        self._made = 0

    def make(self, index: bytes | None, data: bytes | None = None) -> Path:
        self._made += 1
        folder = self._folder / f"copy{self._made}"
        path = JsonlStore(folder).path_of(NAME)
        path.parent.mkdir(parents=True)
        path.write_bytes(self._data if data is None else data)
        if index is not None:
            index_path(path).write_bytes(index)
        if self._blobs.exists():
            shutil.copytree(self._blobs, folder / "blobs")
        return folder

    async def look(
        self, index: bytes | None, attach: Sequence[Item] = (), data: bytes | None = None
    ) -> Seen:
        folder = self.make(index, data)
        session = await lamina.open_session(
            NAME,
            store=JsonlStore(folder, wait=0.0),
            book=FakeBook(),
            clock=FakeClock(1_794_000_900.0),
            workspace=FakeWorkspace(),
            hooks=hooks_that_change_things() if self._hooked else None,
        )
        state, damage = session.state, session.damage
        turns: list[Turn] = []
        verdicts: list[CacheVerdict | None] = []
        refused = ""
        try:
            if current := await session.current_turn():
                turns.append(current)
                if current.pending:
                    turns.append(await current.resume({c.id: "found" for c in current.pending}))
            for target in (None, OTHER.name, None):
                turn = await session.prepare(
                    "And now?", attach=[Attachment(item=item) for item in attach], target=target
                )
                turns.append(turn)
                usage = Usage(input=turn.prompt.tokens, cached=7, cache_reported=True)
                done = await turn.commit(Reply(blocks=(Text("Fine."),), usage=usage, stop="stop"))
                verdicts.append(done.verdict)
        except LaminaError as error:
            refused = f"{error.code}: {error}"
        after = session.entries
        path = session.path
        await session.close()
        return Seen(
            state=state,
            path=path,
            entries=after,
            damage=damage,
            requests=tuple((t.request(), tuple(digests(t)), t.context) for t in turns),
            verdicts=tuple(verdicts),
            refused=refused,
            after=tuple((await JsonlStore(folder).read(NAME)).entries.values()),
        )


def assert_same(seen: Seen, expected: Seen) -> None:
    """Field by field, so that a failure says which."""
    for name in State.__struct_fields__:
        assert getattr(seen.state, name) == getattr(expected.state, name), name
    for name in Seen.__struct_fields__:
        assert getattr(seen, name) == getattr(expected, name), name


# -- the law -------------------------------------------------------------------------------------

moves = st.builds(Move, st.integers(0, 200), st.sampled_from(["", "", "It led nowhere."]))


@st.composite
def journeys(draw: st.DrawFn) -> Conversation:
    steps: list[Any] = []
    for _ in range(draw(st.integers(1, 6))):
        steps += draw(changes(9))
        match draw(st.integers(0, 9)):
            case 0 | 1:
                steps.append(Reopen())
            case 2:
                steps.append(draw(moves))
            case 3:
                steps.append(Compact())
            case _:
                pass
        steps.append(draw(asks))
    return Conversation(
        steps=tuple(steps),
        promotion=draw(promotions),
        window=draw(st.sampled_from([500, 900, 1_500, 100_000])),
        attachment_limit=draw(st.sampled_from([None, None, 250])),
        history=draw(histories),
        rules=draw(st.booleans()),
        counts=draw(st.sampled_from([None, 1.0, 1.3])),
    )


async def _check_every_index(journey: Conversation, hooked: bool, chosen: Sequence[int]) -> None:
    with TemporaryDirectory() as name:
        home = Path(name)
        player = DiskPlayer(journey, home / "played", hooked=hooked)
        await player.play()
        await player.session.close()
        player._keep_index()
        data = player.path.read_bytes()
        copies = Copies(home, data, hooked=hooked, blobs=home / "played" / "blobs")
        attach = [player.item("a.md"), player.item("seen.md"), note("new.md", "new")]
        replayed = await copies.look(None, attach)
        kept = sorted(player.indexes)
        looked_at = {kept[-1], *(kept[each % len(kept)] for each in chosen)} if kept else set()
        for covered in looked_at:
            assert_same(await copies.look(player.indexes[covered], attach), replayed)
        assert verify(read_journal(data, NAME), FakeBook()).sound


@settings(playing, max_examples=40)
@given(journeys(), st.booleans(), st.tuples(st.integers(0, 99), st.integers(0, 99)))
def test_an_index_of_any_age_gives_what_a_full_replay_gives(
    journey: Conversation, hooked: bool, chosen: tuple[int, int]
) -> None:
    with indexing_from(1):
        run(_check_every_index(journey, hooked, chosen))
