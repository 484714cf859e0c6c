"""A session opened with an index of its journal is the session that a full replay gives."""

import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace
from tests.core.journal.test_replay_laws import state_bytes
from tests.engine.session.conversations import (
    FIND,
    TONE,
    Ask,
    Conversation,
    Edit,
    Pin,
    Player,
    Reopen,
    SetPromotion,
    SetSystem,
    asks,
    changes,
    histories,
    promotions,
    rewritten,
)
from tests.engine.session.conversations import modest as playing
from tests.fakes.book import OTHER, FakeBook
from tests.fakes.clock import FakeClock
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, digests, note, rule, run, talk, words
from tests.fakes.workspace import FakeWorkspace

import lamina
from lamina.adapters.stores.jsonl import JsonlStore
from lamina.adapters.stores.session_file import index_path, read_index, write_index
from lamina.adapters.stores.sqlite import SqliteStore
from lamina.core import codec
from lamina.core.audit.session_totals import sum_totals
from lamina.core.audit.verification import verify
from lamina.core.journal import State, read_journal
from lamina.core.journal.lines import is_checkpoint
from lamina.core.ports import JournalStore
from lamina.core.values.damage import Damage
from lamina.core.values.entry import Entry
from lamina.core.values.item import Attachment, Item
from lamina.core.values.message import Message, Text, ToolText
from lamina.core.values.patch import MessagesUncachedAppend, OptionsSet, SystemPartSet
from lamina.core.values.request import CacheVerdict, RequestContext
from lamina.core.values.settings import Promotion, Settings
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Reply
from lamina.engine.session.session import Session, core_of
from lamina.engine.session.turn import Turn
from lamina.engine.sources.hooks import ContextEvent, Hooks
from lamina.errors import BudgetError, LaminaError, TurnStateError, UsageError

NAME = "played"


@contextmanager
def indexing_from(least: int) -> Iterator[None]:
    """Indexes are made from so many bytes on, else only for long sessions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lamina.engine.session.replies.SNAPSHOT_BYTES", least)
        patch.setattr("lamina.engine.session.session.SNAPSHOT_BYTES", least)
        yield


@contextmanager
def counting_decoded() -> Iterator[list[int]]:
    """How many entries are decoded from their lines."""
    count = [0]

    def decode(data: bytes) -> Entry:
        count[0] += 1
        return codec.decode_entry(data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lamina.core.journal.journal_file.decode_entry", decode)
        patch.setattr("lamina.core.journal.lines.decode_entry", decode)
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
        except (TurnStateError, UsageError):
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
        store = JsonlStore(self.make(index, data), wait=0.0)
        return await look_at(store, attach, hooked=self._hooked)


async def look_at(store: JournalStore, attach: Sequence[Item], *, hooked: bool) -> Seen:
    """Opens the session and goes on in it."""
    session = await lamina.open_session(
        NAME,
        store=store,
        book=FakeBook(),
        clock=FakeClock(1_794_000_900.0),
        workspace=FakeWorkspace(),
        hooks=hooks_that_change_things() if hooked else None,
    )
    # What one of them sends is nothing that the other one knows of.
    core_of(session).turns.prefixes.shared = None
    state, damage = session.state, session.damage
    turns: list[Turn] = []
    verdicts: list[CacheVerdict | None] = []
    refused = ""
    try:
        if current := await session.current_turn():
            turns.append(current)
            if current.pending_calls:
                turns.append(await current.resume({c.id: "found" for c in current.pending_calls}))
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
        after=tuple((await store.read(NAME)).entries.values()),
    )


def assert_same(seen: Seen, expected: Seen) -> None:
    """Field by field, so that a failure says which; the order in mappings counts, too."""
    for name in State.__struct_fields__:
        assert getattr(seen.state, name) == getattr(expected.state, name), name
    assert state_bytes(seen.state) == state_bytes(expected.state)
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
    journey = Conversation(
        steps=tuple(steps),
        promotion=draw(promotions),
        window=draw(st.sampled_from([500, 900, 1_500, 100_000])),
        attachment_limit=draw(st.sampled_from([None, None, 250])),
        history=draw(histories),
        rules=draw(st.booleans()),
        counts=draw(st.sampled_from([None, 1.0, 1.3])),
    )
    return draw(st.just(journey) | rewritten(journey))


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


@contextmanager
def checkpointing_from(least: int) -> Iterator[None]:
    """Checkpoints are made from so many bytes on, whatever they cost."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lamina.adapters.stores.jsonl.CHECKPOINT_BYTES", least)
        patch.setattr("lamina.adapters.stores.jsonl.CHECKPOINT_SHARE", 1 << 60)
        patch.setattr("lamina.adapters.stores.jsonl.CHECKPOINT_COST", 0)
        yield


async def _check_checkpoints(journey: Conversation, hooked: bool, cut: int) -> None:
    """However much of the file there is, its checkpoints give what its entries do."""
    with TemporaryDirectory() as name:
        home = Path(name)
        player = DiskPlayer(journey, home / "played", hooked=hooked)
        await player.play()
        await player.session.close()
        lines = player.path.read_bytes().splitlines(keepends=True)
        lines = lines[: len(lines) - cut % max(1, len(lines) // 2)]
        copies = Copies(home, b"".join(lines), hooked=hooked, blobs=home / "played" / "blobs")
        attach = [player.item("a.md"), player.item("seen.md"), note("new.md", "new")]
        entries = b"".join(line for line in lines if not is_checkpoint(line.rstrip(b"\n")))
        seen, replayed = await copies.look(None, attach), await copies.look(None, attach, entries)
        if seen.damage:
            # A write that was cut through: where it stands differs by the checkpoints' lines.
            kinds = [damage.kind for damage in seen.damage]
            assert kinds == [damage.kind for damage in replayed.damage]
            return
        assert_same(seen, replayed)


# What the first request was sent with is not what stands when its answer comes.
CHANGED_MEANWHILE = Conversation(steps=(Ask(size=5, meanwhile=(SetSystem("Be kind."),)),))


@settings(playing, max_examples=40)
@given(journeys(), st.booleans(), st.integers(0, 99), st.sampled_from([1, 3_000]))
def test_checkpoints_give_what_a_full_replay_gives(
    journey: Conversation, hooked: bool, cut: int, least: int
) -> None:
    with checkpointing_from(least):
        run(_check_checkpoints(journey, hooked, cut))


@settings(playing, max_examples=40)
@given(journeys(), st.booleans(), st.tuples(st.integers(0, 99), st.integers(0, 99)))
@example(CHANGED_MEANWHILE, False, (0, 0))
def test_an_index_of_any_age_gives_what_a_full_replay_gives(
    journey: Conversation, hooked: bool, chosen: tuple[int, int]
) -> None:
    with indexing_from(1):
        run(_check_every_index(journey, hooked, chosen))


class RowPlayer(DiskPlayer):
    """Plays into a database."""

    def __init__(self, conversation: Conversation, folder: Path, *, hooked: bool) -> None:
        super().__init__(conversation, folder, hooked=hooked)
        folder.mkdir()
        self.world.store = SqliteStore(folder / "kept.sqlite", wait=0.0)  # type: ignore[assignment]


async def _check_rows(journey: Conversation, hooked: bool) -> None:
    with TemporaryDirectory() as name:
        home = Path(name)
        player = RowPlayer(journey, home / "played", hooked=hooked)
        await player.play()
        await player.session.close()
        attach = [player.item("a.md"), player.item("seen.md"), note("new.md", "new")]
        seen = []
        for folder, forgets in ((home / "with", False), (home / "without", True)):
            shutil.copytree(home / "played", folder)
            if forgets:
                with closing(sqlite3.connect(folder / "kept.sqlite")) as connection, connection:
                    connection.execute("delete from snapshot")
            store = SqliteStore(folder / "kept.sqlite", wait=0.0)
            seen.append(await look_at(store, attach, hooked=hooked))
        assert_same(*seen)
        (listed,) = await store.list_sessions()
        assert listed.totals == sum_totals(await store.read(NAME))


@settings(playing, max_examples=20)
@given(journeys(), st.booleans())
def test_a_snapshot_in_a_row_gives_what_a_full_replay_gives(
    journey: Conversation, hooked: bool
) -> None:
    with indexing_from(1):
        run(_check_rows(journey, hooked))


# -- one rich session ----------------------------------------------------------------------------

RICH: tuple[Any, ...] = (
    Ask(size=5, attach=(("a.md", 5), ("seen.md", 5)), loops=(2, 1), tool_text=15),
    Pin("b.md"),
    Ask(size=9, attach=(("c.md", 3),), target="fake:thinker"),
    Edit("a.md"),
    Ask(size=9, attach=(("a.md", 5),), pause=400.0),
    Ask(size=9, attach=(("d.md", 5),), loops=(1,)),
    SetPromotion("eager"),
    Ask(size=30, attach=(("a.md", 5), ("d.md", 5)), answer=90),
    Compact(),
    Ask(size=30, attach=(("d.md", 5),), answer=90),
    Ask(size=30, attach=(("e.md", 5),), commit=False),
)


class Rich(Struct, frozen=True, kw_only=True):
    """A journal with an index of all of it, and with older ones."""

    copies: Copies
    data: bytes
    index: bytes
    older: tuple[bytes, ...]


async def make_rich(home: Path, steps: Sequence[Any] = RICH) -> Rich:
    with indexing_from(1):
        journey = Conversation(steps=tuple(steps), window=1_500, rules=True, counts=1.3)
        player = DiskPlayer(journey, home / "played", hooked=True)
        await player.play()
        await player.session.close()
        player._keep_index()
    *older, last = (player.indexes[index] for index in sorted(player.indexes))
    data = player.path.read_bytes()
    copies = Copies(home, data, hooked=True, blobs=home / "played" / "blobs")
    return Rich(copies=copies, data=data, index=last, older=tuple(older))


def test_a_rich_session_is_the_same_with_each_of_its_indexes(tmp_path: Path) -> None:
    async def body() -> None:
        rich = await make_rich(tmp_path)
        assert len(rich.older) > 1
        replayed = await rich.copies.look(None)
        for index in (*rich.older, rich.index):
            assert_same(await rich.copies.look(index), replayed)

    run(body())


def test_an_index_says_nothing_of_entries_on_another_branch(tmp_path: Path) -> None:
    """The index is of the trunk; what was written since stands elsewhere in the tree."""

    async def body() -> None:
        for which in (0, 3, 7, 20):
            home = tmp_path / str(which)
            rich = await make_rich(home, (*RICH[:5], Move(which), *RICH[3:6]))
            replayed = await rich.copies.look(None)
            for index in rich.older:
                assert_same(await rich.copies.look(index), replayed)

    run(body())


def test_compaction_by_hand_is_in_the_index(tmp_path: Path) -> None:
    async def body() -> None:
        steps = [Ask(size=60, answer=120, attach=(("c.md", 5),)) for _ in range(9)]
        rich = await make_rich(tmp_path, (*steps, Compact(), Ask(size=5)))
        replayed = await rich.copies.look(None)
        assert any(message.id == "summary" for message in replayed.state.envelope.cached)
        for index in (*rich.older, rich.index):
            assert_same(await rich.copies.look(index), replayed)

    run(body())


def test_no_damage_to_an_index_changes_a_session(tmp_path: Path) -> None:
    async def body() -> None:
        rich = await make_rich(tmp_path)
        replayed = await rich.copies.look(None)
        index, size = rich.index, len(rich.index)
        for at in (*range(24), *range(24, size, size // 12)):
            flipped = index[:at] + bytes([index[at] ^ 0x41]) + index[at + 1 :]
            for damaged in (flipped, index[:at]):
                folder = rich.copies.make(damaged)
                assert read_index(index_path(JsonlStore(folder).path_of(NAME))) is None, at
        for damaged in (index[:-1], index + b"\0", index[: size // 2], b"", bytes(size)):
            assert_same(await rich.copies.look(damaged), replayed)

    run(body())


def test_an_index_whose_words_were_exchanged_is_not_believed(tmp_path: Path) -> None:
    """It proves itself, but not what it says of the journal."""

    async def body() -> None:
        rich = await make_rich(tmp_path)
        replayed = await rich.copies.look(None)
        path = tmp_path / "exchanged"
        path.write_bytes(rich.index)
        true = read_index(path)
        assert true is not None
        older = tmp_path / "older"
        older.write_bytes(rich.older[-1])
        before = read_index(older)
        assert before is not None
        for wrong in (
            replace(true, covered=0),
            replace(true, covered=true.covered - 1),
            replace(true, covered=len(rich.data) + 1),
            replace(true, checksum=true.checksum ^ 1),
            replace(true, covered=before.covered),
            replace(true, state=b""),
            replace(true, state=true.state[:-1]),
            replace(true, state=b"\xc0"),
        ):
            write_index(path, wrong)
            assert_same(await rich.copies.look(path.read_bytes()), replayed)

    run(body())


def test_an_index_of_another_session_or_of_other_content_is_not_believed(tmp_path: Path) -> None:
    async def body() -> None:
        rich = await make_rich(tmp_path / "one")
        replayed = await rich.copies.look(None)
        other = await make_rich(tmp_path / "two", RICH[:4])
        assert_same(await rich.copies.look(other.index), replayed)
        # The same length, other words, and right checksums.
        twin = await make_rich(tmp_path / "three", (*RICH[:-1], Ask(size=31)))
        same_length = twin.data[: len(rich.data)].ljust(len(rich.data), b"x")
        seen = await rich.copies.look(rich.index, data=same_length)
        assert_same(seen, await rich.copies.look(None, data=same_length))

    run(body())


def test_damage_in_front_of_an_indexs_end_and_behind_it_is_found(tmp_path: Path) -> None:
    async def body() -> None:
        rich = await make_rich(tmp_path)
        size = len(rich.data)
        for index in (rich.index, rich.older[len(rich.older) // 2], rich.older[0]):
            for at in range(3, size, size // 7):
                flipped = rich.data[:at] + bytes([rich.data[at] ^ 1]) + rich.data[at + 1 :]
                with_index = await rich.copies.look(index, data=flipped)
                assert with_index.damage, at
                assert_same(with_index, await rich.copies.look(None, data=flipped))
            torn = rich.data[:-9]
            with_index = await rich.copies.look(index, data=torn)
            assert with_index.damage
            assert_same(with_index, await rich.copies.look(None, data=torn))

    run(body())


def test_a_damaged_journal_gets_no_index_and_keeps_telling_of_its_damage(tmp_path: Path) -> None:
    async def body() -> None:
        rich = await make_rich(tmp_path)
        folder = rich.copies.make(rich.index, rich.data[:-9])
        with indexing_from(1):
            for _ in range(3):
                async with await opened(folder) as session:
                    assert session.damage
                    await talk(session, "Q")

    run(body())


# -- what it is for ------------------------------------------------------------------------------


async def opened(folder: Path, book: FakeBook | None = None, **given: Any) -> Session:
    return await lamina.open_session(
        NAME,
        store=JsonlStore(folder, wait=0.0),
        book=book or FakeBook(),
        clock=FakeClock(),
        workspace=FakeWorkspace(),
        **given,
    )


async def make_long(folder: Path, turns: int, promotion: Promotion = "lazy") -> None:
    limits = Settings(target="fake:small", window=10**6, promotion=promotion)
    async with await opened(folder, settings=limits) as made:
        for number in range(turns):
            texts = [ToolText(name="search", text="found")] if number % 3 == 0 else []
            attached = [note(f"{number % 5}.md", words(20))]
            turn = await made.prepare(f"Q{number}", attach=attached, tool_texts=texts)
            if number % 4 == 0:
                turn = await turn.commit(openai_reply(None, calls=[(f"c{number}", "find")]))
                turn = await turn.resume({f"c{number}": words(9)})
            await turn.commit(openai_reply(f"A{number}", input=50, cached=20))


@pytest.mark.parametrize("promotion", ["lazy", "eager"])
def test_opening_with_an_index_does_not_decode_the_journal(
    promotion: Promotion, tmp_path: Path
) -> None:
    async def body() -> None:
        costs = []
        for turns in (20, 60):
            folder = tmp_path / str(turns)
            with indexing_from(1):
                await make_long(folder, turns, promotion)
            with counting_decoded() as decoded:
                session = await opened(folder)
                costs.append(decoded[0])
                await talk(session, "Q", note("0.md", words(20)))
                await talk(session, "Q")
                costs.append(decoded[0])
                await session.close()
        assert costs[0] <= 4
        assert costs[2] <= costs[0] + 1, "opening costs more in a longer session"
        assert costs[3] <= costs[1] + 2, "a turn costs more in a longer session"

    run(body())


def test_a_turn_after_opening_with_an_index_counts_only_what_is_new(tmp_path: Path) -> None:
    async def body() -> None:
        asked = []
        for turns in (20, 60):
            folder = tmp_path / str(turns)
            with indexing_from(1):
                await make_long(folder, turns)
            book = FakeBook()
            async with await opened(folder, book) as session:
                for _ in range(2):
                    await talk(session, "Q")
                    asked.append(book.words.asked)
        assert asked[2] <= asked[0] + 2
        assert asked[3] <= asked[1] + 2

    run(body())


def test_many_short_openings_do_not_let_the_unindexed_part_grow(tmp_path: Path) -> None:
    """Each adds less than makes an index worth while, all of them together much more."""

    async def body() -> None:
        with indexing_from(8_000):
            await make_long(tmp_path, 12)
            decoded_at_openings = []
            for number in range(24):
                with counting_decoded() as decoded:
                    session = await opened(tmp_path)
                    decoded_at_openings.append(decoded[0])
                await talk(session, f"more {number}")
                await session.close()
        size = JsonlStore(tmp_path).path_of(NAME).stat().st_size
        index = read_index(index_path(JsonlStore(tmp_path).path_of(NAME)))
        assert index is not None
        assert size - index.covered < 16_000
        assert max(decoded_at_openings) < 60, decoded_at_openings

    run(body())


@pytest.mark.parametrize("why", ["another branch", "another version"])
def test_an_index_that_could_not_be_used_is_made_anew(why: str, tmp_path: Path) -> None:
    async def body() -> None:
        with indexing_from(1):
            await make_long(tmp_path, 20)
        if why == "another branch":
            session = await opened(tmp_path)
            await session.navigate([each.id for each in session.path][-12])
            await session.close()
        else:
            path = index_path(JsonlStore(tmp_path).path_of(NAME))
            index = read_index(path)
            assert index is not None
            write_index(path, replace(index, state=b"\xc0"))
        with indexing_from(1):
            await (await opened(tmp_path)).close()
        with counting_decoded() as decoded:
            await (await opened(tmp_path)).close()
        assert decoded[0] <= 4

    run(body())


def test_a_session_that_was_only_looked_at_writes_nothing(tmp_path: Path) -> None:
    async def body() -> None:
        with indexing_from(1):
            await make_long(tmp_path, 5)
            path = JsonlStore(tmp_path).path_of(NAME)
            before = path.read_bytes(), index_path(path).stat().st_ino
            await (await opened(tmp_path)).close()
            assert (path.read_bytes(), index_path(path).stat().st_ino) == before

    run(body())


def test_an_index_made_by_hand_from_a_replayed_state_is_the_same_session(tmp_path: Path) -> None:
    """No turn was prepared in the opening that made it, so it holds no totals."""

    async def body() -> None:
        await make_long(tmp_path / "plain", 9)
        path = JsonlStore(tmp_path / "plain").path_of(NAME)
        index_path(path).unlink(missing_ok=True)
        with indexing_from(1):
            await (await opened(tmp_path / "plain")).close()
        copies = Copies(tmp_path, path.read_bytes(), blobs=tmp_path / "none")
        with_index = await copies.look(index_path(path).read_bytes())
        assert_same(with_index, await copies.look(None))

    run(body())


def test_rules_of_every_turn_survive_with_an_index(tmp_path: Path) -> None:
    async def body() -> None:
        given: dict[str, Any] = {"settings": Settings(target="fake:small")}
        with indexing_from(1):
            async with await opened(tmp_path, always=[rule("tone", "Be brief.")], **given) as made:
                await talk(made, "Q")
            async with await opened(tmp_path) as again:
                turn = await again.prepare("Q2")
                assert [item.label for item in turn.context.items] == ["tone"]

    run(body())
