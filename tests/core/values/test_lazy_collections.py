"""What is loaded late cannot be told from what was there at once."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import thorough

from lamina.core.values.collections import Chain, FrozenMap, LazyList

numbers = st.lists(st.integers(0, 9), max_size=6)
keys = st.sampled_from("abcdefgh")


class Loader:
    """Gives values by position, once each."""

    def __init__(self, values: Sequence[int]) -> None:
        self._values = tuple(values)
        self.loaded: list[int] = []

    def __call__(self, index: int) -> int:
        assert 0 <= index < len(self._values), f"no value at {index}"
        self.loaded.append(index)
        return self._values[index]


# -- Deferred ------------------------------------------------------------------------------------


@thorough
@given(numbers, numbers, st.lists(st.integers(-8, 14), max_size=6))
def test_a_deferred_list_is_read_like_a_list(
    older: list[int], newer: list[int], places: list[int]
) -> None:
    deferred = LazyList(len(older), Loader(older))
    deferred.extend(newer)
    model = older + newer
    assert len(deferred) == len(model)
    for place in places:
        if -len(model) <= place < len(model):
            assert deferred[place] == model[place]
        else:
            with pytest.raises(IndexError):
                deferred[place]


@thorough
@given(
    numbers,
    numbers,
    st.builds(slice, *[st.none() | st.integers(-8, 14)] * 2, st.sampled_from([None, 1, 2, -1])),
)
def test_a_deferred_list_is_sliced_like_a_list(
    older: list[int], newer: list[int], part: slice
) -> None:
    deferred = LazyList(len(older), Loader(older))
    deferred.extend(newer)
    assert deferred[part] == (older + newer)[part]


@thorough
@given(numbers, st.lists(st.integers(0, 5), max_size=9))
def test_each_value_is_loaded_once_and_only_when_it_is_looked_at(
    values: list[int], places: list[int]
) -> None:
    load = Loader(values)
    deferred = LazyList(len(values), load)
    wanted = [place for place in places if place < len(values)]
    for place in wanted:
        deferred[place]
    assert load.loaded == list(dict.fromkeys(wanted))


def test_what_cannot_be_loaded_is_tried_again_the_next_time() -> None:
    fails = [True]

    def load(index: int) -> int:
        if fails.pop():
            raise LookupError(index)
        return 7

    deferred = LazyList(1, load)
    with pytest.raises(LookupError):
        deferred[0]
    fails.append(False)
    assert deferred[0] == 7


# -- chains that begin with what is loaded late --------------------------------------------------


@thorough
@given(numbers, st.lists(st.tuples(st.integers(0, 99), numbers, st.integers(-2, 12)), max_size=10))
def test_chains_that_grow_from_a_deferred_one_never_change_one_that_somebody_holds(
    stem: list[int], steps: list[tuple[int, list[int], int]]
) -> None:
    first: Chain[int] = Chain.lazy(LazyList(len(stem), Loader(stem)))
    held: list[tuple[Chain[int], tuple[int, ...]]] = [(first, tuple(stem))]
    for which, added, length in steps:
        chain, model = held[which % len(held)]
        held.append((chain.extend(added), model + tuple(added)))
        held.append((chain.until(length), model[: max(0, length)]))
    for each, expected in held:
        assert tuple(each) == expected
        assert each == Chain(expected)
        assert hash(each) == hash(Chain(expected))
        assert each.since(1) == expected[1:]
        assert [each[-at] for at in range(1, len(each) + 1)] == list(reversed(expected))


@thorough
@given(numbers, numbers, numbers)
def test_growing_a_deferred_chain_twice_gives_two_branches(
    stem: list[int], left: list[int], right: list[int]
) -> None:
    base: Chain[int] = Chain.lazy(LazyList(len(stem), Loader(stem)))
    one, two = base.extend(left), base.extend(right)
    assert (tuple(base), tuple(one), tuple(two)) == (
        tuple(stem), tuple(stem + left), tuple(stem + right)
    )  # fmt: skip
    assert one.since(0)[: one.shared_with(two)] == two.since(0)[: one.shared_with(two)]


def test_appending_to_a_deferred_chain_loads_nothing() -> None:
    load = Loader(range(1_000))
    chain: Chain[int] = Chain.lazy(LazyList(1_000, load))
    for number in range(100):
        chain = chain.extend([number])
    assert (len(chain), chain[-1], load.loaded) == (1_100, 99, [])
    assert (chain[5], load.loaded) == (5, [5])


def test_going_on_beside_somebody_else_loads_nothing_and_shares_what_is_before() -> None:
    load = Loader(range(1_000))
    chain: Chain[int] = Chain.lazy(LazyList(1_000, load))
    left = chain.until(990).extend([-1])
    right = left.until(990).extend([-2])
    other = left.until(500).extend([-3])
    assert load.loaded == []
    assert chain.shared_with(left) == left.shared_with(right) == right.shared_with(chain) == 990
    assert other.shared_with(right) == other.shared_with(chain) == 500
    assert (left[-1], right[-1], other[-1], len(chain)) == (-1, -2, -3, 1_000)
    assert left[7] is right[7] is other[7] is chain[7]
    assert load.loaded == [7]


@thorough
@given(numbers, st.lists(st.tuples(st.integers(0, 99), numbers, st.integers(-2, 12)), max_size=10))
def test_what_branches_share_is_the_same(
    stem: list[int], steps: list[tuple[int, list[int], int]]
) -> None:
    held: list[Chain[int]] = [Chain.lazy(LazyList(len(stem), Loader(stem)))]
    for which, added, length in steps:
        chain = held[which % len(held)]
        held += [chain.extend(added), chain.until(length)]
    for one in held:
        for two in held:
            shared = one.shared_with(two)
            assert shared == two.shared_with(one)
            assert all(one[at] is two[at] for at in range(shared))


# -- catalogues ----------------------------------------------------------------------------------

Held = tuple[FrozenMap[str, int], dict[str, int]]


def same(catalogue: FrozenMap[str, int], model: dict[str, int]) -> None:
    assert dict(catalogue) == model
    assert catalogue == model
    assert list(catalogue) == list(model)
    assert list(catalogue.items()) == list(model.items())
    assert len(catalogue) == len(model)
    for key in "abcdefgh":
        assert (key in catalogue) == (key in model)
        assert catalogue.get(key, -1) == model.get(key, -1)
        if key not in model:
            with pytest.raises(KeyError):
                catalogue[key]


def added(model: dict[str, int], key: str, value: int) -> dict[str, int]:
    """A key that is set anew goes to the end."""
    return {**{k: v for k, v in model.items() if k != key}, key: value}


def grow(first: Held, steps: list[tuple[int, str, int]]) -> None:
    held = [first]
    for which, key, value in steps:
        catalogue, model = held[which % len(held)]
        held.append((catalogue.with_entry(key, value), added(model, key, value)))
        for each, expected in held:
            same(each, expected)


steps_of_growth = st.lists(st.tuples(st.integers(0, 99), keys, st.integers(0, 99)), max_size=10)


@thorough
@given(st.dictionaries(keys, st.integers(0, 9), max_size=5), steps_of_growth)
def test_growing_a_catalogue_never_changes_one_that_somebody_holds(
    start: dict[str, int], steps: list[tuple[int, str, int]]
) -> None:
    grow((FrozenMap(start), dict(start)), steps)


@thorough
@given(st.dictionaries(keys, st.integers(0, 9), max_size=5), steps_of_growth)
def test_a_catalogue_whose_values_are_loaded_late_grows_like_any_other(
    start: dict[str, int], steps: list[tuple[int, str, int]]
) -> None:
    late = FrozenMap.lazy(list(start), Loader(list(start.values())))
    grow((late, dict(start)), steps)


def test_growing_one_catalogue_twice_gives_two_that_do_not_know_of_one_another() -> None:
    base = FrozenMap({"a": 1})
    left, right = base.with_entry("l", 2), base.with_entry("r", 3)
    again = base.with_entry("l", 4)
    assert [dict(each) for each in (base, left, right, again)] == [
        {"a": 1}, {"a": 1, "l": 2}, {"a": 1, "r": 3}, {"a": 1, "l": 4}
    ]  # fmt: skip


def test_setting_a_key_anew_leaves_the_older_catalogue_its_value() -> None:
    base = FrozenMap({"a": 1, "b": 2})
    anew = base.with_entry("a", 3)
    assert (base["a"], anew["a"], list(anew)) == (1, 3, ["b", "a"])
    assert len(anew) == 2


def test_adding_to_a_catalogue_and_asking_for_a_key_loads_nothing() -> None:
    load = Loader(range(500))
    catalogue = FrozenMap.lazy([f"k{number}" for number in range(500)], load)
    for number in range(50):
        catalogue = catalogue.with_entry(f"new{number}", number)
    assert "k7" in catalogue
    assert "k500" not in catalogue
    assert len(list(catalogue)) == 550
    assert load.loaded == []
    assert (catalogue["k7"], load.loaded) == (7, [7])


def test_growing_a_catalogue_that_somebody_else_grew_loads_nothing() -> None:
    load = Loader(range(500))
    base = FrozenMap.lazy([f"k{number}" for number in range(500)], load)
    left, right = base.with_entry("l", 1), base.with_entry("r", 2)
    assert load.loaded == []
    assert ("l" in right, "r" in left, len(left), len(right)) == (False, False, 501, 501)
    assert (right["k3"], left["k3"], base["k3"], load.loaded) == (3, 3, 3, [3])


def test_a_catalogue_may_grow_while_somebody_goes_through_it() -> None:
    """As a chain may: whoever holds it sees what was there."""
    catalogue = grown = FrozenMap({"a": 1, "b": 2})
    seen = []
    for key in catalogue:
        seen.append(key)
        grown = grown.with_entry(key * 2, 0)
    assert seen == ["a", "b"]
    assert list(grown) == ["a", "b", "aa", "bb"]


@pytest.mark.parametrize("make", [FrozenMap, lambda: FrozenMap.lazy([], Loader([]))])
def test_the_empty_catalogue_lends_its_table_to_nobody(
    make: Callable[[], FrozenMap[str, int]],
) -> None:
    empty = make()
    one, two = empty.with_entry("a", 1), empty.with_entry("b", 2)
    assert (dict(empty), dict(one), dict(two)) == ({}, {"a": 1}, {"b": 2})


def test_a_catalogue_is_equal_to_any_mapping_of_the_same() -> None:
    late = FrozenMap.lazy(["a", "b"], Loader([1, 2]))
    assert late == FrozenMap({"b": 2, "a": 1}) == {"a": 1, "b": 2}
    assert late != {"a": 1}
    assert late != FrozenMap({"a": 1, "b": 3})
    assert object() not in late
