"""Totals that grew are those of a whole reading, and say what a list of sessions always said."""

from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.fakes.book import FakeBook
from tests.strategies import modest

from lamina.adapters.providers.model_book import load_book
from lamina.core.audit.requests import waiting_request
from lamina.core.audit.session_totals import add_entries, name_of, sum_totals, total_cost
from lamina.core.codec import mint_id
from lamina.core.journal import Journal, journal_of, path_to, read_journal
from lamina.core.ledger import cost_of
from lamina.core.values.entry import (
    PLAN,
    SUMMARIZED,
    CustomEntry,
    Entry,
    InfoEntry,
    MessageEntry,
    ReplyEntry,
    RequestEntry,
    SessionEntry,
)
from lamina.core.values.message import Message, Text
from lamina.core.values.usage import Usage
from lamina.errors import UnknownTarget

JOURNALS = sorted((Path(__file__).parents[2] / "golden/journals").rglob("*.jsonl"))
HEADER = SessionEntry(id="000000", parent=None, at=0.0, session="s", workspace="w")


def describe(journal: Journal) -> tuple[object, ...]:
    """The figures of a list, reckoned entry by entry and reply by reply."""
    entries = tuple(journal.entries.values())
    active = path_to(journal.leaf, journal.entries)
    usages = [entry.usage for entry in entries if isinstance(entry, ReplyEntry)]
    usages += [e.usage for e in entries if isinstance(e, MessageEntry) and e.usage is not None]
    sides = []
    paid: list[tuple[Usage, str]] = []
    for entry in entries:
        is_side = isinstance(entry, CustomEntry) and entry.kind in (PLAN, SUMMARIZED)
        if isinstance(entry, CustomEntry) and is_side and isinstance(entry.data, dict):
            with suppress(msgspec.ValidationError):
                side = msgspec.convert(entry.data.get("usage"), Usage)
                recorded = float(entry.data.get("cost") or 0.0)
                target = entry.data.get("target")
                paid += [(side, str(target))] if target else []
                sides.append((side, 0.0 if target else recorded))
    usages += [usage for usage, _ in sides]
    targets = {entry.id: entry.target for entry in entries if isinstance(entry, RequestEntry)}
    cost = sum(own_cost for _, own_cost in sides)
    for entry in entries:
        if isinstance(entry, ReplyEntry) and entry.request in targets:
            paid.append((entry.usage, targets[entry.request]))
    for usage, target in paid:
        with suppress(UnknownTarget):
            cost += cost_of(usage, load_book().find(target)) or 0.0
    names = ("input", "cached", "written", "output")
    return (
        sum(isinstance(entry, MessageEntry) for entry in active),
        len(entries),
        Usage(**{name: sum(getattr(usage, name) for usage in usages) for name in names}),
        pytest.approx(cost),
        len(journal.damage),
        bool(waiting_request(active)),
    )


@pytest.mark.parametrize("path", JOURNALS, ids=lambda path: path.stem)
def test_totals_are_what_a_whole_reading_gives(path: Path) -> None:
    journal = read_journal(path.read_bytes(), "s")
    totals = sum_totals(journal)
    assert describe(journal) == (
        totals.messages, totals.entries, totals.usage, total_cost(totals, load_book()).dollars,
        totals.damage, totals.is_waiting,
    )  # fmt: skip
    assert totals.workspace == journal.header.workspace
    assert totals.name == name_of(journal.entries.values())


def assert_grown(entries: list[Entry], cuts: list[int]) -> int:
    """Totals that grow from one cut to the next are those of a whole reading; gives how often they
    had to be summed anew."""
    anew = 0
    totals = sum_totals(journal_of(entries[: cuts[0]]))
    for start, end in pairwise(cuts):
        whole = sum_totals(journal_of(entries[:end]))
        grown = add_entries(totals, entries[start:end])
        anew += grown is None
        assert grown is None or grown == whole
        totals = whole
    return anew


@pytest.mark.parametrize("path", JOURNALS, ids=lambda path: path.stem)
def test_totals_that_grow_entry_by_entry_are_those_of_a_whole_reading(path: Path) -> None:
    entries = list(read_journal(path.read_bytes(), "s").entries.values())
    assert_grown(entries, list(range(1, len(entries) + 1)))


counts = st.integers(0, 9)
usages = st.builds(
    Usage, input=counts, cached=counts, written=counts, output=counts, written_long=counts
)


SAMPLE = next(
    entry
    for path in JOURNALS
    for entry in read_journal(path.read_bytes(), "s").entries.values()
    if isinstance(entry, RequestEntry)
)


def request(entry: str, parent: str, target: str) -> RequestEntry:
    return replace(SAMPLE, id=entry, parent=parent, target=target)


@st.composite
def trees(draw: st.DrawFn) -> list[Entry]:
    entries: list[Entry] = [HEADER]
    for number in range(1, draw(st.integers(1, 14))):
        known = [entry.id for entry in entries]
        parent = draw(st.sampled_from([known[-1]] * 6 + known))
        place = {"id": mint_id(number), "parent": parent, "at": 0.0}
        requests = [entry.id for entry in entries if isinstance(entry, RequestEntry)]
        kind = draw(st.sampled_from(["message", "request", "reply", "info", "side", "answer"]))
        if kind == "request":
            target = draw(st.sampled_from(["openai:gpt-4o", "fake:small", "gone:away"]))
            entries.append(request(place["id"], parent, target))  # type: ignore[arg-type]
        elif kind == "reply":
            to = draw(st.sampled_from([*requests[-1:], *requests, "nobody"]))
            entries.append(ReplyEntry(**place, request=to, usage=draw(usages), stop="stop"))  # type: ignore[arg-type]
        elif kind == "info":
            entries.append(InfoEntry(**place, name=draw(st.sampled_from(["", "Notes"]))))  # type: ignore[arg-type]
        elif kind == "side":
            side = {"usage": {"input": 3}, "cost": 0.5}
            named = {**side, "target": "openai:gpt-4o"}
            data = draw(st.sampled_from([None, side, named, {"cost": 1}]))
            entries.append(CustomEntry(**place, kind=PLAN, data=data))  # type: ignore[arg-type]
        else:
            role = "user" if kind == "message" else "assistant"
            text = draw(st.sampled_from(["", "\n", "Hello", "x" * 99]))
            message = Message(role=role, blocks=(Text(text),), id=place["id"])  # type: ignore[arg-type]
            usage = draw(st.none() | usages)
            entries.append(MessageEntry(**place, message=message, usage=usage))  # type: ignore[arg-type]
    return entries


@modest
@given(trees(), st.data())
def test_any_tree_has_the_totals_of_a_whole_reading_however_it_grew(
    entries: list[Entry], data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(entries)), min_size=1)))
    assert_grown(entries, cuts)
    totals = sum_totals(journal := journal_of(entries))
    assert describe(journal)[:3] == (totals.messages, totals.entries, totals.usage)


@modest
@given(st.lists(usages, max_size=4))
def test_what_was_paid_together_costs_what_it_cost_one_by_one(replies: list[Usage]) -> None:
    entries: list[Entry] = [HEADER]
    for usage in replies:
        number = len(entries)
        entries.append(request(mint_id(number), mint_id(number - 1), "openai:gpt-4o"))
        entries.append(
            ReplyEntry(
                id=mint_id(number + 1), parent=mint_id(number), at=0.0,
                request=mint_id(number), usage=usage, stop="stop",
            )
        )  # fmt: skip
    target = load_book().find("openai:gpt-4o")
    cost = total_cost(sum_totals(journal_of(entries)), load_book())
    assert cost.dollars == pytest.approx(sum(cost_of(usage, target) or 0.0 for usage in replies))
    assert (cost.priced, cost.unpriced) == (len(replies), 0)
    nowhere = total_cost(sum_totals(journal_of(entries)), FakeBook())
    assert (nowhere.known, nowhere.unpriced) == (None if replies else 0.0, len(replies))


def test_short_and_long_prompts_are_paid_for_at_their_own_prices() -> None:
    usages = [Usage(input=length) for length in (272_000, 272_001, 1, 900_000)]
    entries: list[Entry] = [HEADER]
    for usage in usages:
        number = len(entries)
        entries.append(request(mint_id(number), mint_id(number - 1), "openai:gpt-5.6"))
        place = {"id": mint_id(number + 1), "parent": mint_id(number), "at": 0.0}
        entries.append(ReplyEntry(**place, request=mint_id(number), usage=usage, stop="stop"))  # type: ignore[arg-type]
    totals = sum_totals(journal_of(entries))
    target = load_book().find("openai:gpt-5.6")
    expected = sum(cost_of(usage, target) or 0.0 for usage in usages)
    assert total_cost(totals, load_book()).dollars == pytest.approx(expected)
    assert [paid.above for paid in totals.paid] == [256_000, 272_000, 0, 512_000]
    assert sum(paid.requests for paid in totals.paid) == 4


def test_a_sum_of_dollars_says_how_many_requests_it_leaves_out() -> None:
    entries: list[Entry] = [HEADER]
    for name in ("openai:gpt-4o", "openai:gpt-99", "gone:away"):
        number = len(entries)
        entries.append(request(mint_id(number), mint_id(number - 1), name))
        place = {"id": mint_id(number + 1), "parent": mint_id(number), "at": 0.0}
        usage = Usage(input=1_000_000)
        entries.append(ReplyEntry(**place, request=mint_id(number), usage=usage, stop="stop"))  # type: ignore[arg-type]
    cost = total_cost(sum_totals(journal_of(entries)), load_book())
    assert (cost.known, cost.priced, cost.unpriced) == (2.5, 1, 2)


def test_going_on_elsewhere_in_the_tree_has_to_be_summed_anew() -> None:
    one = InfoEntry(id="000001", parent="000000", at=0.0, name="A")
    aside = InfoEntry(id="000002", parent="000000", at=0.0, name="B")
    totals = sum_totals(journal_of([HEADER, one]))
    assert add_entries(totals, [aside]) is None
    assert sum_totals(journal_of([HEADER, one, aside])).name == "B"


def test_an_answer_to_a_request_that_was_answered_has_to_be_summed_anew() -> None:
    asked = request("000001", "000000", "openai:gpt-4o")
    first, second = (
        ReplyEntry(id=entry, parent=parent, at=0.0, request="000001", usage=Usage(), stop="stop")
        for entry, parent in (("000002", "000001"), ("000003", "000002"))
    )
    totals = sum_totals(journal_of([HEADER, asked]))
    assert totals.is_waiting
    answered = add_entries(totals, [first])
    assert answered is not None
    assert not answered.is_waiting
    assert add_entries(answered, [second]) is None
