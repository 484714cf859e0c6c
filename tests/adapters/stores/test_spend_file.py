"""The account of money in a file: limits, crashes, cut lines, totals beside it."""

import os
import tempfile
import time
from datetime import UTC, timedelta, timezone
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lamina.adapters.files.locks import lock_file
from lamina.adapters.stores import spend_file
from lamina.adapters.stores.spend_file import SpendFile
from lamina.core.ledger.spend_book import SpendBook, SpendLine, decode_line, encode_line
from lamina.core.values.spend_limits import (
    ReachedLimit,
    Reservation,
    Settlement,
    SpendLimits,
    SpendRequest,
    SpendSum,
)
from lamina.core.values.usage import Usage
from lamina.errors import SpendLedgerError

pytestmark = pytest.mark.anyio
DAY = "2026-11-17"
ACCOUNT = "spend.jsonl"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def request_for(high: float, **given: Any) -> SpendRequest:
    named: dict[str, Any] = {"session": "s", "turn": "000001", "target": "openai:gpt-4o"}
    return SpendRequest(at=1.0, day=DAY, low=high / 10, high=high, **(named | given))


def settlement_of(reservation: Reservation | None, cost: float | None, **given: Any) -> Settlement:
    named: dict[str, Any] = {"session": "s", "turn": "000001", "target": "openai:gpt-4o"}
    name = reservation.id if reservation else ""
    return Settlement(at=2.0, day=DAY, reservation=name, cost=cost, **(named | given))


async def reserve(ledger: SpendFile, high: float, **given: Any) -> Reservation:
    reserved = await ledger.reserve(request_for(high, **given), SpendLimits())
    assert isinstance(reserved, Reservation)
    return reserved


async def test_what_is_reserved_counts_until_it_is_settled(tmp_path: Path) -> None:
    ledger = SpendFile(tmp_path / ACCOUNT)
    held = await reserve(ledger, 0.5)
    assert (await ledger.standing("s", DAY)).day == SpendSum(reserved=0.5, waiting=1)
    await ledger.settle(settlement_of(held, 0.02, high=0.5, usage=Usage(input=9, output=3)))
    standing = await ledger.standing("s", DAY)
    assert standing.day == standing.session == standing.turn == SpendSum(spent=0.02)
    (entry,) = (await ledger.read()).entries
    assert (entry.state, entry.cost, entry.low, entry.high) == ("settled", 0.02, 0.05, 0.5)


async def test_a_request_that_could_pass_a_limit_is_refused_and_not_written(tmp_path: Path) -> None:
    ledger = SpendFile(tmp_path / ACCOUNT)
    limits = SpendLimits(day=1.0)
    assert isinstance(await ledger.reserve(request_for(0.6), limits), Reservation)
    size = (tmp_path / ACCOUNT).stat().st_size
    reached = await ledger.reserve(request_for(0.5), limits)
    assert reached == ReachedLimit(scope="day", limit=1.0, sum=SpendSum(reserved=0.6, waiting=1))
    assert (tmp_path / ACCOUNT).stat().st_size == size
    assert isinstance(await ledger.reserve(request_for(0.4), limits), Reservation)


async def test_ten_times_ten_cents_fit_a_dollar(tmp_path: Path) -> None:
    ledger = SpendFile(tmp_path / ACCOUNT)
    for _ in range(10):
        held = await ledger.reserve(request_for(0.1), SpendLimits(day=1.0))
        assert isinstance(held, Reservation)
        await ledger.settle(settlement_of(held, 0.1))
    assert isinstance(await ledger.reserve(request_for(1e-9), SpendLimits(day=1.0)), ReachedLimit)


async def test_limits_of_turn_session_and_day_count_what_is_theirs(tmp_path: Path) -> None:
    ledger = SpendFile(tmp_path / ACCOUNT)
    await ledger.settle(settlement_of(await reserve(ledger, 0.3), 0.3))
    later = {"turn": "000009"}
    assert await ledger.reserve(
        request_for(0.3, **later), SpendLimits(turn=0.5, session=0.5)
    ) == ReachedLimit(scope="session", limit=0.5, sum=SpendSum(spent=0.3))
    other = {"session": "other", **later}
    assert isinstance(
        await ledger.reserve(request_for(0.3, **other), SpendLimits(session=0.5)), Reservation
    )
    reached = await ledger.reserve(request_for(0.3, **other), SpendLimits(turn=0.5))
    assert isinstance(reached, ReachedLimit)
    assert reached.scope == "turn"
    assert (await ledger.standing("s", "2026-11-18")).day == SpendSum()


async def test_a_turn_goes_on_in_another_opening(tmp_path: Path) -> None:
    await reserve(SpendFile(tmp_path / ACCOUNT), 0.3, turn="00000a")
    reached = await SpendFile(tmp_path / ACCOUNT).reserve(
        request_for(0.3, turn=None), SpendLimits(turn=0.5)
    )
    assert isinstance(reached, ReachedLimit)
    assert reached.sum.reserved == 0.3


async def test_an_answer_that_did_not_say_what_it_took_counts_its_upper_price(
    tmp_path: Path,
) -> None:
    ledger = SpendFile(tmp_path / ACCOUNT)
    await ledger.settle(settlement_of(await reserve(ledger, 0.3), None, high=0.3))
    await ledger.settle(settlement_of(None, None))
    standing = await ledger.standing("s", DAY)
    assert standing.day == SpendSum(assumed=0.3, unpriced=1)
    assert standing.day.counted == 0.3


async def test_what_a_sender_or_a_person_frees_counts_no_more(tmp_path: Path) -> None:
    ledger = SpendFile(tmp_path / ACCOUNT)
    first, second = await reserve(ledger, 0.1), await reserve(ledger, 0.2)
    assert await ledger.free([first.id], 3.0, "sender") == (first.id,)
    assert await ledger.free([first.id, second.id, "nobody"], 4.0, "person") == (second.id,)
    assert (await ledger.standing("s", DAY)).day == SpendSum()
    states = [entry.state for entry in (await ledger.read()).entries]
    assert states == ["released", "cleared"]


async def test_an_answer_that_comes_after_its_reservation_was_cleared_counts(
    tmp_path: Path,
) -> None:
    ledger = SpendFile(tmp_path / ACCOUNT)
    held = await reserve(ledger, 0.2)
    await ledger.free([held.id], 3.0, "person")
    await ledger.settle(settlement_of(held, 0.15))
    assert (await ledger.standing("s", DAY)).day == SpendSum(spent=0.15)
    assert [entry.state for entry in (await ledger.read()).entries] == ["settled"]


async def test_an_answer_counts_on_the_day_that_it_was_reserved_for(tmp_path: Path) -> None:
    ledger = SpendFile(tmp_path / ACCOUNT)
    held = await reserve(ledger, 0.2)
    late = Settlement(
        at=9.0, day="2026-11-18", session="s", target="t", reservation=held.id, cost=0.1
    )
    await ledger.settle(late)
    assert (await ledger.standing("s", DAY)).day.spent == 0.1
    assert (await ledger.standing("s", "2026-11-18")).day.spent == 0


def test_a_day_is_that_of_the_zone() -> None:
    midnight = 1_794_873_600.0 - 1
    assert SpendFile("a", zone=UTC).day_of(midnight) == "2026-11-16"
    assert SpendFile("a", zone=timezone(timedelta(hours=2))).day_of(midnight) == DAY


async def test_machines_in_three_time_zones_share_one_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noon, limits = 1_794_916_800.0, SpendLimits(day=0.02)
    outcomes = []
    try:
        for zone in ("Pacific/Kiritimati", "UTC", "Etc/GMT+12"):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            ledger = SpendFile(tmp_path / ACCOUNT)
            request = replace(request_for(0.015), at=noon, day=ledger.day_of(noon))
            outcomes.append(await ledger.reserve(request, limits))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert [type(outcome) for outcome in outcomes] == [Reservation, ReachedLimit, ReachedLimit]


async def test_an_account_has_one_zone_and_refuses_others(tmp_path: Path) -> None:
    berlin = timezone(timedelta(hours=1))
    await reserve(SpendFile(tmp_path / ACCOUNT, zone=berlin), 0.01)
    with pytest.raises(SpendLedgerError, match=r"counts days in zone UTC\+01:00, not UTC"):
        await reserve(SpendFile(tmp_path / ACCOUNT), 0.01)
    await reserve(SpendFile(tmp_path / ACCOUNT, zone=berlin), 0.01)


# -- damage --------------------------------------------------------------------------------------


async def write_three(path: Path) -> list[bytes]:
    """An account of three requests: settled at 0.01, settled at 0.02, and one that waits."""
    ledger = SpendFile(path)
    for cost in (0.01, 0.02):
        await ledger.settle(settlement_of(await reserve(ledger, 0.5), cost, high=0.5))
    await reserve(ledger, 0.25)
    return (await anyio.Path(path).read_bytes()).splitlines(keepends=True)


async def test_cut_off_at_any_byte_no_more_is_forgotten_than_was_acknowledged(
    tmp_path: Path,
) -> None:
    """A write that was cut off was acknowledged by nobody: all in front of it counts, and the
    account goes on behind it."""
    whole = tmp_path / "whole.jsonl"
    lines = await write_three(whole)
    data = b"".join(lines)
    ends = [len(b"".join(lines[:count])) for count in range(len(lines) + 1)]
    # What must count once so many lines were acknowledged: what was spent, and what may be.
    least = (0.0, 0.5, 0.01, 0.51, 0.03, 0.28)
    cut = tmp_path / ACCOUNT
    for size in range(len(data) + 1):
        cut.write_bytes(data[:size])
        cut.with_suffix(".totals").unlink(missing_ok=True)
        # A line that lacks nothing but its line break proves itself.
        acknowledged = max(count for count, end in enumerate(ends) if end - 1 <= size)
        ledger = SpendFile(cut)
        counted = (await ledger.standing("s", DAY)).day.counted
        assert counted >= least[acknowledged] - 1e-12, size
        await ledger.settle(settlement_of(None, 1.0))
        for reader in (ledger, SpendFile(cut)):
            after = await reader.standing("s", DAY)
            assert after.day.counted == pytest.approx(counted + 1.0), size
        is_torn = size not in ends and data[size : size + 1] != b"\n"
        account = await ledger.read()
        assert len(account.damage) == is_torn, size
        assert cut.read_bytes().startswith(data[:size]), "what was cut off stays as it is"


@given(st.integers(0, 4), st.integers(0, 200), st.integers(1, 255))
def test_a_changed_byte_costs_its_own_line_and_is_named(line: int, at: int, change: int) -> None:
    async def body(folder: Path) -> None:
        lines = await write_three(folder / "whole.jsonl")
        row = bytearray(lines[line])
        place = at % (len(row) - 1)
        row[place] ^= change
        if row[place] == ord("\n"):
            return
        path = folder / ACCOUNT
        path.write_bytes(b"".join([*lines[:line], bytes(row), *lines[line + 1 :]]))
        account = await SpendFile(path).read()
        assert [damage.line for damage in account.damage] == [line + 1]
        counted = (await SpendFile(path).standing("s", DAY)).day.counted
        # What was spent counts although a line is lost, unless it is the last word on the matter.
        assert counted >= 0.03 - 1e-12 or line == 4
        assert counted > 0

    with tempfile.TemporaryDirectory() as folder:
        anyio.run(body, Path(folder))


async def test_a_file_that_cannot_be_written_is_an_error_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    ledger = SpendFile(tmp_path / "folder")
    with pytest.raises(SpendLedgerError, match=r"cannot be written.*make room") as raised:
        await reserve(ledger, 0.1)
    assert raised.value.code == "spend_ledger"


async def test_a_file_that_somebody_holds_is_waited_for_and_then_told_of(tmp_path: Path) -> None:
    path = tmp_path / ACCOUNT
    await reserve(SpendFile(path), 0.1)
    handle = os.open(path, os.O_RDWR)
    try:
        assert lock_file(handle)
        with pytest.raises(SpendLedgerError, match="in use by another process"):
            await reserve(SpendFile(path, wait=0.01), 0.1)
    finally:
        os.close(handle)
    await reserve(SpendFile(path, wait=0.01), 0.1)


async def test_a_file_that_is_replaced_is_read_anew(tmp_path: Path) -> None:
    ledger = SpendFile(tmp_path / ACCOUNT)
    await reserve(ledger, 0.1)
    (tmp_path / ACCOUNT).unlink()
    assert (await ledger.standing("s", DAY)).day == SpendSum()
    await reserve(ledger, 0.3)
    assert (await ledger.standing("s", DAY)).day.reserved == 0.3


# -- totals --------------------------------------------------------------------------------------


@pytest.fixture
def small_totals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spend_file, "TOTALS_BYTES", 1_000)


@pytest.mark.usefixtures("small_totals")
async def test_totals_say_the_same_as_all_lines(tmp_path: Path) -> None:
    path = tmp_path / ACCOUNT
    ledger = SpendFile(path)
    for number in range(20):
        held = await reserve(ledger, 0.5, session=f"s{number % 3}", turn=f"{number:06}")
        if number % 4:
            await ledger.settle(settlement_of(held, 0.01, session=f"s{number % 3}"))
    assert ledger.totals_path.exists()
    book = SpendBook()
    for row in path.read_bytes().splitlines():
        book.take(decode_line(row))
    for session in ("s0", "s1", "s2"):
        assert await SpendFile(path).standing(session, DAY) == book.standing(session, DAY)


@pytest.mark.usefixtures("small_totals")
@pytest.mark.parametrize("damage", ["gone", "cut", "changed", "of another file"])
async def test_totals_that_are_damaged_are_made_anew(tmp_path: Path, damage: str) -> None:
    path = tmp_path / ACCOUNT
    ledger = SpendFile(path)
    for _ in range(20):
        await ledger.settle(settlement_of(None, 0.01))
    totals = ledger.totals_path
    data = totals.read_bytes()
    match damage:
        case "gone":
            totals.unlink()
        case "cut":
            totals.write_bytes(data[:-9])
        case "changed":
            totals.write_bytes(data[:40] + bytes([data[40] ^ 1]) + data[41:])
        case _:
            other = SpendFile(tmp_path / "other.jsonl")
            for _ in range(20):
                await other.settle(settlement_of(None, 7.0))
            totals.write_bytes(other.totals_path.read_bytes())
    assert (await SpendFile(path).standing("s", DAY)).day.spent == pytest.approx(0.2)


@pytest.mark.usefixtures("small_totals")
async def test_what_an_opening_reads_does_not_grow_with_the_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / ACCOUNT
    ledger = SpendFile(path)
    for _ in range(200):
        await ledger.settle(settlement_of(None, 0.01))
    taken = 0
    read = spend_file._read_from

    def count(handle: int, start: int, end: int) -> bytes:
        nonlocal taken
        taken += end - start
        return read(handle, start, end)

    monkeypatch.setattr(spend_file, "_read_from", count)
    await SpendFile(path).standing("s", DAY)
    assert path.stat().st_size > 20_000
    assert taken < 2_500


# -- the lines -----------------------------------------------------------------------------------

amounts = st.one_of(st.none(), st.floats(0, 1_000).map(lambda amount: round(amount, 9)))
lines = st.builds(
    SpendLine,
    at=st.floats(0, 2e9),
    act=st.sampled_from(["reserve", "settle", "release", "clear"]),
    id=st.sampled_from("abcdef"),
    day=st.sampled_from(["2026-11-16", DAY]),
    session=st.sampled_from(["s", "t", "\n\u2028é"]),
    turn=st.sampled_from(["000001", "000002"]),
    high=amounts,
    cost=amounts,
)


@given(lines)
def test_a_line_is_read_as_it_was_written(line: SpendLine) -> None:
    data = encode_line(line)
    assert data.count(b"\n") == 1
    assert decode_line(data[:-1]) == line


@given(st.lists(lines, max_size=12), st.integers(0, 12))
def test_what_was_spent_and_may_be_never_shrinks_by_a_lost_settlement_or_release(
    acts: list[SpendLine], lost: int
) -> None:
    """Whoever loses the word that ends a reservation counts its upper price instead."""
    # A request is reserved once, before anything else is said of it, at a price that is the upper.
    reservations = {line.id: line for line in acts if line.act == "reserve" and line.high}
    ends = {
        line.id: line
        for line in acts
        if line.act != "reserve" and line.id in reservations
    }  # fmt: skip
    story = list(reservations.values())
    for name, end in ends.items():
        held = reservations[name]
        cost = None if end.cost is None else min(end.cost, held.high or 0.0)
        story.append(
            SpendLine(
                at=end.at, act=end.act, id=name, day=held.day, session=held.session,
                turn=held.turn, high=held.high, cost=cost,
            )
        )  # fmt: skip
    whole, less = SpendBook(), SpendBook()
    for number, line in enumerate(story):
        whole.take(line)
        if number != lost or line.act == "reserve":
            less.take(line)
    for day in ("2026-11-16", DAY):
        before = whole.sum_of("day", "", "", day).counted
        assert less.sum_of("day", "", "", day).counted >= before - 1e-9
