"""Replay is a pure function of the entries: in pieces, from bytes, in any process.

`LAMINA_JOURNALS=10000` replays so many journals in other processes instead of a few hundred;
that takes about a minute and a half.
"""

import os
import subprocess
import sys
from collections.abc import Iterable
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.engine.session.conversations import Conversation, Player, conversations, rewritten
from tests.fakes.book import FakeBook
from tests.fakes.sessions import run
from tests.strategies import (
    assemble_state,
    assembler,
    entries_after,
    modest,
    sessions,
    states_along,
    thorough,
)

from lamina.core.audit.verification import verify
from lamina.core.codec import canonical_bytes, decode, decode_entry
from lamina.core.journal import (
    State,
    fold_entry,
    fold_repaired,
    initial_state,
    journal_of,
    path_to,
    replay,
    replay_repaired,
)
from lamina.core.values.collections import Chain, FrozenMap
from lamina.core.values.entry import Entry, SessionEntry
from lamina.core.values.envelope import Options

JOURNALS = int(os.environ.get("LAMINA_JOURNALS", "300"))
SEEDS = ("0", "1", "4242")


# -- a state as bytes ----------------------------------------------------------------------------


def _plain(value: object) -> object:
    """With the order of everything that has one; sets have none."""
    match value:
        case Chain():
            return [_plain(each) for each in value]
        case msgspec.Struct():
            fields = [(name, _plain(getattr(value, name))) for name in value.__struct_fields__]
            return [type(value).__name__, fields]
        case dict() | FrozenMap():
            return [[_plain(key), _plain(each)] for key, each in value.items()]
        case frozenset() | set():
            return sorted(value)
        case tuple() | list():
            return [_plain(each) for each in value]
        case msgspec.UnsetType():
            return "unset"
        case float() if value.is_integer():
            return int(value)  # a temperature of 0 comes back as 0.0
        case _:
            return value


def state_bytes(state: State) -> bytes:
    return msgspec.json.encode(_plain(state))


def digest_of(entries: Iterable[Entry]) -> str:
    """Everything that a journal comes to: its state, and what would be sent."""
    state, _ = replay_repaired(entries)
    digest = sha256(state_bytes(state))
    for promotion in ("lazy", "eager"):
        prompt = assemble_state(assembler(promotion), state)
        for segment in prompt:
            digest.update(segment.digest.encode())
            digest.update(segment.source.encode())
    return digest.hexdigest()


# -- laws ----------------------------------------------------------------------------------------


@thorough
@given(sessions())
def test_replay_can_stop_and_go_on_at_every_entry(entries: list[Entry]) -> None:
    whole = state_bytes(replay(entries))
    for split in range(1, len(entries) + 1):
        state = replay(entries[:split])
        for entry in entries[split:]:
            state = fold_entry(state, entry)
        assert state_bytes(state) == whole


@thorough
@given(sessions())
def test_a_mended_replay_can_stop_and_go_on_at_every_entry(entries: list[Entry]) -> None:
    whole, damage = replay_repaired(entries)
    for split in range(1, len(entries) + 1):
        state, before = replay_repaired(entries[:split])
        state, after = replay_repaired(entries[split:], state)
        assert state_bytes(state) == state_bytes(whole)
        assert before + after == damage


@modest
@given(sessions())
def test_replaying_twice_gives_the_same_bytes_and_shares_nothing(entries: list[Entry]) -> None:
    one, two = replay(entries), replay(entries)
    assert state_bytes(one) == state_bytes(two)
    assert one == two
    assert digest_of(entries) == digest_of(entries)


@modest
@given(sessions())
def test_replaying_what_was_read_back_gives_the_same_bytes(entries: list[Entry]) -> None:
    back = [decode_entry(canonical_bytes(entry)) for entry in entries]
    assert back == entries
    lines = [canonical_bytes(entry) for entry in back]
    assert [canonical_bytes(decode_entry(line)) for line in lines] == lines
    assert digest_of(back) == digest_of(entries)


@modest
@given(sessions())
def test_a_state_holds_no_sets_that_somebody_could_change(entries: list[Entry]) -> None:
    for state in states_along(entries):
        assert isinstance(state.library.forgotten, frozenset)
        assert isinstance(state.library.still_out, frozenset)


@pytest.mark.parametrize("temperature", [0, 1, 0.0, 0.5])
def test_a_number_has_the_same_bytes_before_and_after_it_was_read_back(temperature: float) -> None:
    """Digests are made of bytes: equal values must not have different ones."""
    given = Options(temperature=temperature)
    assert canonical_bytes(decode(canonical_bytes(given), Options)) == canonical_bytes(given)


@modest
@given(sessions(), st.data())
def test_other_branches_do_not_count(entries: list[Entry], data: st.DataObject) -> None:
    states = states_along(entries)
    at = data.draw(st.integers(0, len(states) - 1))
    other = data.draw(entries_after(states[at], "other", most=5))
    tree = {entry.id: entry for entry in (*entries, *other)}
    assert digest_of(path_to(entries[-1].id, tree)) == digest_of(entries)
    assert digest_of(path_to([*entries[: at + 1], *other][-1].id, tree)) == digest_of(
        [*entries[: at + 1], *other]
    )


@modest
@given(sessions(), st.data())
def test_a_journal_with_holes_still_replays(entries: list[Entry], data: st.DataObject) -> None:
    """Whatever is missing, no call stands without its result in front of another message."""
    gone = data.draw(st.sets(st.integers(1, len(entries) - 1)))
    kept = [entry for at, entry in enumerate(entries) if at not in gone]
    damage: list[Any] = []
    state = initial_state(kept[0])
    for entry in kept[1:]:
        state = fold_repaired(state, entry, damage)
        assert state.leaf == entry.id
    cached = list(state.envelope.cached)
    for message, following in pairwise(cached):
        if message.calls and message.id.startswith("m"):
            assert following.role == "tool"


# -- journals of real conversations --------------------------------------------------------------


async def _journal_of(conversation: Conversation) -> tuple[list[Entry], State, bool]:
    player = Player(conversation)
    await player.play()
    journal = await player.world.store.read(player.session.id)
    return list(journal.entries.values()), player.session.state, verify(journal, FakeBook()).sound


@settings(modest, max_examples=60)
@given(conversations | conversations.flatmap(rewritten))
def test_the_live_state_is_the_replayed_one(conversation: Conversation) -> None:
    async def body() -> None:
        entries, live, sound = await _journal_of(conversation)
        assert sound
        path = path_to(live.leaf, journal_of(entries).entries)
        assert state_bytes(replay(path)) == state_bytes(live)
        state, damage = replay_repaired(path)
        assert damage == []
        assert state_bytes(state) == state_bytes(live)

    run(body())


def _draw_journals(count: int) -> list[list[Entry]]:
    """So many journals: nine in ten drawn entry by entry, the rest of real conversations."""
    made: list[list[Entry]] = []
    often = settings(
        max_examples=max(1, count * 9 // 10),
        database=None,
        deadline=None,
        phases=[Phase.generate],
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )

    @often
    @given(sessions())
    def collect(entries: list[Entry]) -> None:
        made.append(entries)

    @settings(often, max_examples=max(1, count // 10))
    @given(conversations)
    def collect_played(conversation: Conversation) -> None:
        async def body() -> None:
            player = Player(conversation)
            await player.play()
            made.append(list(player.session.path))

        run(body())

    collect()
    collect_played()
    return made


def test_replay_gives_the_same_bytes_for_every_hash_seed(tmp_path: Path) -> None:
    journals = _draw_journals(JOURNALS)
    assert len(journals) >= JOURNALS * 0.5
    file = tmp_path / "journals"
    file.write_bytes(
        b"\n".join(b"\n".join(map(canonical_bytes, entries)) + b"\n" for entries in journals)
    )
    here = [digest_of(entries) for entries in journals]
    assert len(set(here)) > len(here) // 3
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.core.journal.test_replay_laws", str(file)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in SEEDS
    ]
    printed = [process.communicate()[0].split() for process in running]
    assert [process.returncode for process in running] == [0] * len(SEEDS)
    for seed, digests in zip(SEEDS, printed, strict=True):
        wrong = [at for at, pair in enumerate(zip(digests, here, strict=True)) if len({*pair}) > 1]
        assert not wrong, f"seed {seed}: journals {wrong[:5]}"


def replay_file(path: Path) -> list[str]:
    """The digest of each journal of a file; an empty line stands between two."""
    digests = []
    for journal in path.read_bytes().removesuffix(b"\n").split(b"\n\n"):
        entries = [decode_entry(line) for line in journal.split(b"\n")]
        assert isinstance(entries[0], SessionEntry)
        digests.append(digest_of(entries))
    return digests


if __name__ == "__main__":
    sys.stdout.write("\n".join(replay_file(Path(sys.argv[1]))))
