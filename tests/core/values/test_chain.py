"""A chain is a frozen sequence: whatever grows from it, its holder sees the same elements."""

import gc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import thorough

from lamina.core.values.collections import Chain
from lamina.core.values.envelope import Envelope
from lamina.core.values.message import Message

numbers = st.lists(st.integers(0, 3), max_size=5)


@thorough
@given(st.lists(st.tuples(st.integers(0, 99), numbers, st.integers(-2, 9)), max_size=12))
def test_growing_and_cutting_chains_never_changes_one_that_somebody_holds(
    steps: list[tuple[int, list[int], int]],
) -> None:
    held: list[tuple[Chain[int], tuple[int, ...]]] = [(Chain(), ())]
    for which, added, length in steps:
        chain, model = held[which % len(held)]
        held.append((chain.extend(added), model + tuple(added)))
        held.append((chain.until(length), model[: max(0, length)]))
        for each, expected in held:
            assert tuple(each) == expected
            assert len(each) == len(expected)
            assert each.since(0) == expected
            assert [each[index] for index in range(len(each))] == list(expected)


@thorough
@given(numbers, numbers, numbers)
def test_two_branches_of_one_chain_share_only_what_stood_before_them(
    stem: list[int], left: list[int], right: list[int]
) -> None:
    base = Chain(stem)
    one, two = base.extend(left), base.extend(right)
    assert (tuple(base), tuple(one), tuple(two)) == (
        tuple(stem),
        tuple(stem + left),
        tuple(stem + right),
    )
    shared = one.shared_with(two)
    assert one.since(0)[:shared] == two.since(0)[:shared]


def test_a_chain_shares_its_buffer_with_what_it_grew_into_and_not_with_a_branch() -> None:
    base = Chain("ab")
    grown = base.extend("c")
    branch = base.extend("d")
    assert grown.shared_with(base) == base.shared_with(grown) == 2
    assert branch.shared_with(grown) == 0
    assert grown.until(1).shared_with(grown) == 1


def test_growing_by_nothing_gives_the_same_chain() -> None:
    base = Chain("ab")
    assert base.extend(()) is base


def test_iterating_stops_where_the_chain_ended_although_it_grows_meanwhile() -> None:
    chain = Chain([1, 2])
    seen = []
    for value in chain:
        seen.append(value)
        chain = chain.extend([value * 10])
    assert seen == [1, 2]
    assert tuple(chain) == (1, 2, 10, 20)


def test_a_chain_may_grow_by_itself() -> None:
    base = Chain("ab")
    assert tuple(base.extend(base)) == ("a", "b", "a", "b")


@thorough
@given(numbers, numbers)
def test_chains_are_equal_when_their_elements_are_and_then_hash_alike(
    left: list[int], right: list[int]
) -> None:
    one, two = Chain(left), Chain[int]().extend(right)
    assert (one == two) == (left == right)
    assert one != tuple(left)
    if one == two:
        assert hash(one) == hash(two)
    grown = one.extend([9])
    assert grown != one
    assert grown.until(len(one)) == one


@thorough
@given(numbers, numbers, st.integers(-6, 12))
def test_indexing_and_since_count_from_the_end_of_the_chain_not_of_its_buffer(
    stem: list[int], more: list[int], index: int
) -> None:
    chain = Chain(stem)
    chain.extend(more)
    assert chain.since(index) == tuple(stem)[index:]
    if -len(stem) <= index < len(stem):
        assert chain[index] == stem[index]
    else:
        with pytest.raises(IndexError):
            chain[index]


class _Marked(list[int]):
    """Something that a weak reference can watch."""


def test_the_empty_chain_that_sessions_start_from_keeps_nothing_of_them_alive() -> None:
    shared: Chain[_Marked] = Chain()
    value = _Marked()
    watch = weakref.ref(value)
    grown = shared.extend([value])
    del value, grown
    gc.collect()
    assert len(shared) == 0
    assert watch() is None


def test_envelopes_made_from_nothing_do_not_meet_in_one_buffer() -> None:
    message = Message(role="user", blocks=())
    one = Envelope().cached.extend((message,))
    two = Envelope().cached.extend((message,))
    assert one == two
    assert one.shared_with(two) == 0
    assert len(Envelope().cached) == 0
