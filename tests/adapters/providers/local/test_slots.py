"""Slots: one request at a time each, a session keeps its own, and nobody waits for ever."""

import asyncio
from collections import Counter

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import thorough

from lamina.adapters.providers.local.slots import Slots


async def slot_of(slots: Slots, session: str) -> int:
    async with slots.lease(session) as lease:
        return lease.number


def test_a_session_keeps_its_slot() -> None:
    async def body() -> None:
        slots = Slots(3)
        first = {name: await slot_of(slots, name) for name in "abc"}
        assert sorted(first.values()) == [0, 1, 2]
        for name in "cabbac":
            assert await slot_of(slots, name) == first[name]

    anyio.run(body)


def test_the_session_that_was_served_longest_ago_loses_its_slot() -> None:
    async def body() -> None:
        slots = Slots(2)
        a, b = await slot_of(slots, "a"), await slot_of(slots, "b")
        assert await slot_of(slots, "a") == a
        assert await slot_of(slots, "c") == b
        assert await slot_of(slots, "a") == a
        assert await slot_of(slots, "b") == b

    anyio.run(body)


def test_a_slot_that_is_in_use_is_not_taken_away() -> None:
    async def body() -> None:
        slots = Slots(2)
        async with slots.lease("a") as a:
            b = await slot_of(slots, "b")
            # `a` was served longest ago, and is at work.
            assert await slot_of(slots, "c") == b
            assert a.number != b

    anyio.run(body)


def test_two_requests_of_one_session_take_turns() -> None:
    async def body() -> None:
        slots = Slots(2)
        order: list[str] = []

        async def work(name: str) -> None:
            async with slots.lease("a") as slot:
                order.append(f"{name} has {slot.number}")
                await anyio.lowlevel.checkpoint()
                order.append(f"{name} done")

        async with anyio.create_task_group() as group:
            group.start_soon(work, "one")
            group.start_soon(work, "two")
        assert order == ["one has 0", "one done", "two has 0", "two done"]

    anyio.run(body)


def test_those_who_wait_are_served_in_order() -> None:
    async def body() -> None:
        slots = Slots(1)
        served: list[str] = []

        async def work(name: str) -> None:
            async with slots.lease(name):
                served.append(name)
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as group, slots.lease("first"):
            for name in "abcdef":
                group.start_soon(work, name)
                await anyio.wait_all_tasks_blocked()
        assert served == list("abcdef")

    anyio.run(body)


def test_a_session_that_comes_back_at_once_does_not_starve_the_others() -> None:
    async def body() -> None:
        slots = Slots(1)
        served: list[str] = []

        async def busy() -> None:
            for _ in range(10):
                async with slots.lease("busy"):
                    served.append("busy")
                    await anyio.wait_all_tasks_blocked()

        async def once(name: str) -> None:
            async with slots.lease(name):
                served.append(name)

        async with anyio.create_task_group() as group:
            group.start_soon(busy)
            await anyio.lowlevel.checkpoint()
            group.start_soon(once, "a")
            group.start_soon(once, "b")
        assert served[:4] == ["busy", "a", "b", "busy"]

    anyio.run(body)


@pytest.mark.parametrize("granted", [False, True])
def test_who_stops_waiting_takes_nothing_along(granted: bool) -> None:
    async def body() -> None:
        slots = Slots(1)
        started: list[str] = []

        async def work() -> None:
            async with slots.lease("b"):
                started.append("b")

        async with slots.lease("a"):
            # A task of asyncio's own: it can be stopped between being woken and going on.
            task = asyncio.create_task(work())
            await anyio.wait_all_tasks_blocked()
            if not granted:
                task.cancel()
                await anyio.wait_all_tasks_blocked()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert started == []
        with anyio.fail_after(1):
            assert await slot_of(slots, "c") == 0
            assert await slot_of(slots, "b") == 0

    anyio.run(body)


def test_a_request_that_fails_gives_its_slot_back() -> None:
    async def body() -> None:
        slots = Slots(1)
        with pytest.raises(ZeroDivisionError):
            async with slots.lease("a"):
                raise ZeroDivisionError
        with anyio.fail_after(1):
            assert await slot_of(slots, "b") == 0

    anyio.run(body)


requests = st.lists(
    st.tuples(st.sampled_from("abcdefg"), st.integers(0, 3), st.booleans()), max_size=30
)


@thorough
@given(st.integers(1, 4), requests)
def test_nobody_shares_a_slot_and_everybody_is_served(
    count: int, wanted: list[tuple[str, int, bool]]
) -> None:
    async def body() -> None:
        slots = Slots(count)
        using: Counter[int] = Counter()
        sessions: Counter[str] = Counter()
        served: list[int] = []

        async def work(number: int, session: str, steps: int, gives_up: bool) -> None:
            with anyio.CancelScope() as scope:
                if gives_up:
                    scope.cancel()
                async with slots.lease(session) as lease:
                    slot = lease.number
                    using[slot] += 1
                    sessions[session] += 1
                    assert using[slot] == sessions[session] == 1
                    assert 0 <= slot < count
                    try:
                        for _ in range(steps):
                            await anyio.lowlevel.checkpoint()
                    finally:
                        using[slot] -= 1
                        sessions[session] -= 1
                    served.append(number)

        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                for number, (session, steps, gives_up) in enumerate(wanted):
                    group.start_soon(work, number, session, steps, gives_up)
                    if steps % 2:
                        await anyio.lowlevel.checkpoint()
        stayed = {number for number, (_, _, gives_up) in enumerate(wanted) if not gives_up}
        assert stayed <= set(served)
        with anyio.fail_after(1):
            async with anyio.create_task_group() as group:
                for name in "hijk"[:count]:
                    group.start_soon(slot_of, slots, name)

    anyio.run(body)
