"""What the doctor says of a session, by figures and by bytes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.doctor.doctor_requests import automatic, examine, marked, only, target_of

from lamina.core.audit.break_causes import RecordDepth
from lamina.core.values.usage import Usage
from lamina.doctor.findings import diagnose, price_loss
from lamina.doctor.observed_request import ObservedRequest, PromptChange


def test_whatever_was_read_up_to_its_cached_end_is_no_break() -> None:
    # The first leaves a tail of 4,000 behind its marker: it was never there to lose.
    tail = examine(marked(1, 0, 20_000, 4_000), marked(2, 20_000, 9_000), marked(3, 29_000, 10))
    retry = examine(marked(1, 0, 20_000), marked(2, 20_000, 0), marked(3, 20_000, 0))
    assert not tail.findings
    assert not retry.findings


def test_hits_of_automatic_caches_end_up_to_three_blocks_early() -> None:
    assert not examine(automatic(1, 9_000, 0), automatic(2, 9_500, 8_576)).findings
    assert only(automatic(1, 9_000, 0), automatic(2, 9_500, 8_192)).tokens == 768


def test_a_pause_longer_than_the_lifetime_of_the_last_write() -> None:
    finding = only(marked(1, 0, 20_000), marked(2, 0, 21_000, at=1_400.0))
    assert (finding.kind, finding.cause, finding.blame) == ("expired", "idle", "you")
    assert finding.certainty == "likely"
    assert finding.tokens == 20_000
    assert finding.detail == "6 min since the previous request; entries live 5 min"


def test_entries_that_were_written_for_an_hour_live_for_one() -> None:
    first = marked(1, 0, 20_000)
    long = replace(first, usage=replace(first.usage, written_long=20_000))
    finding = only(long, marked(2, 0, 21_000, at=1_400.0))
    assert finding.cause == "unexplained"
    assert finding.place.stopped == "nothing"


def test_reading_that_stops_at_the_floor_is_located_and_its_candidates_are_named() -> None:
    finding = only(
        marked(1, 14_000, 20_000), marked(2, 34_000, 900), marked(3, 14_000, 22_000, step="turn")
    )
    assert finding.place.stopped == "floor"
    assert (finding.certainty, finding.cause, finding.blame) == ("located", "unexplained", None)
    assert finding.candidates == ("first_message", "parameter")
    assert finding.avoidable is None
    assert finding.avoidable_cost is None


def test_an_event_beside_the_break_makes_it_likely_unless_hits_have_it_as_well() -> None:
    start = (marked(1, 14_000, 20_000), marked(2, 34_000, 900))
    broken = marked(9, 14_000, 22_000, events=("skill",))
    rare = only(*start, broken)
    assert (rare.cause, rare.certainty, rare.chance) == ("first_message", "likely", 0.0)
    often = [marked(n, 34_900, 0, events=("skill",)) for n in range(3, 9)]
    assert only(*start, *often, broken).certainty == "located"


def test_a_miss_inside_a_loop_that_stops_at_an_older_end_is_the_vendors() -> None:
    finding = only(
        automatic(1, 20_000, 0), automatic(2, 40_000, 19_968), automatic(3, 60_000, 39_936),
        automatic(4, 61_000, 39_936),
    )  # fmt: skip
    assert (finding.kind, finding.cause, finding.blame) == ("missed", "other_machine", "vendor")
    assert (finding.place.stopped, finding.place.request) == ("end_of", 2)
    assert finding.certainty == "likely"
    assert finding.avoidable is False
    assert finding.chance is not None
    assert finding.chance < 0.1


def test_the_same_at_a_turn_has_two_candidates_and_none_is_chosen() -> None:
    finding = only(
        automatic(1, 20_000, 0), automatic(2, 40_000, 19_968), automatic(3, 60_000, 39_936),
        automatic(4, 61_000, 39_936, step="turn", thought=True),
    )  # fmt: skip
    assert finding.certainty == "located"
    assert finding.candidates == ("thinking", "other_machine")


def test_a_front_that_breaks_when_a_person_speaks_is_a_pattern_with_its_chance() -> None:
    requests, total = [marked(1, 0, 20_000, step="turn")], 20_000
    for number in range(2, 26):
        if number % 4 == 0:
            requests.append(marked(number, 0, total + 500, step="turn"))
        else:
            requests.append(marked(number, total, 500))
        total += 500
    findings = examine(*requests).findings
    assert {(f.cause, f.certainty) for f in findings} == {("clock", "likely")}
    assert all(f.chance is not None and f.chance < 0.1 for f in findings)


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"events": ("compaction",)}, "compaction"),
        ({"model": "claude-opus-4-1"}, "model"),
        ({"version": "2"}, "update"),
        ({"parameters": (("effort", "low"),)}, "parameter"),
        ({"events": ("tools",)}, "tools_changed"),
        ({"events": ("results_cleared",)}, "history_edited"),
        ({"events": ("image",)}, "image"),
    ],
)
def test_what_a_transcript_records_of_the_moment(fields: dict[str, Any], cause: str) -> None:
    first = marked(1, 14_000, 20_000, version="1", parameters=(("effort", "high"),))
    common = {"version": "1", "parameters": (("effort", "high"),)}
    finding = only(first, marked(2, 14_000, 22_000, **(common | fields)))
    assert (finding.cause, finding.certainty) == (cause, "likely")


def test_requests_without_a_marker_lose_everything_they_could_have_read() -> None:
    finding = only(marked(1, 0, 0, 20_000), marked(2, 0, 0, 21_000))
    assert (finding.cause, finding.blame, finding.tokens) == ("marker", "tool", 20_000)


def test_a_prompt_below_the_minimum_is_nobodys_fault() -> None:
    finding = only(marked(1, 0, 0, 900), marked(2, 0, 0, 950))
    assert (finding.cause, finding.blame, finding.avoidable) == ("below_minimum", "nobody", False)


def test_subagents_do_not_break_each_other() -> None:
    diagnosis = examine(
        marked(1, 0, 20_000), marked(2, 0, 9_000, agent="a", at=1_100.0),
        marked(3, 20_000, 500, at=1_110.0), marked(4, 9_000, 400, agent="a", at=1_120.0),
    )  # fmt: skip
    assert not diagnosis.findings


def test_a_branch_is_compared_with_the_request_it_goes_on_from() -> None:
    requests = [marked(1, 0, 20_000), marked(2, 20_000, 9_000, parent="r1")]
    assert not examine(*requests, marked(3, 20_000, 700, parent="r1")).findings


def test_with_the_bytes_a_change_is_proven_and_has_its_place() -> None:
    change = PromptChange(
        cause="clock", layer="system", place="system", offset=9, before=b"07", after=b"41",
        detail="a time", shared=100, size=900,
    )  # fmt: skip
    finding = only(
        automatic(1, 20_000, 0, depth="bodies", is_own=True),
        automatic(2, 21_000, 2_048, depth="bodies", parent="r1", change=change, is_own=True),
    )
    assert (finding.cause, finding.certainty, finding.blame) == ("clock", "proven", "you")
    assert (finding.place.segment, finding.place.offset) == ("system", 9)
    assert (finding.before, finding.after) == (b"07", b"41")


def test_bytes_that_agree_and_were_not_read_are_the_vendors() -> None:
    change = PromptChange(shared=900, size=900)
    finding = only(
        automatic(1, 20_000, 0, depth="bodies"),
        automatic(2, 21_000, 0, depth="bodies", parent="r1", change=change),
    )
    assert (finding.cause, finding.certainty) == ("other_machine", "likely")


def test_a_loss_is_paid_as_it_was_written_and_would_have_been_read() -> None:
    target = target_of(marked(1, 0, 1))
    assert target is not None
    assert target.prices is not None
    tier = target.prices.tiers[0]
    usage = Usage(input=30_000, cached=5_000, written=20_000, written_long=6_000)
    paid, would = price_loss(usage, 22_000, target)
    expected = 14_000 * tier.write + 6_000 * tier.write_long + 2_000 * tier.input
    assert paid == pytest.approx(expected / 1e6)
    assert would == pytest.approx(22_000 * tier.read / 1e6)


def test_an_hours_lifetime_is_weighed_against_what_writing_for_it_costs() -> None:
    target = target_of(marked(1, 0, 1))
    assert target is not None
    assert target.prices is not None
    tier = target.prices.tiers[0]
    diagnosis = examine(marked(1, 0, 20_000), marked(2, 0, 21_000, at=1_400.0))
    (finding,) = diagnosis.findings
    assert finding.extra is not None
    # What would still have been there is not written again.
    more = 21_000 * (tier.write_long - tier.write) / 1e6
    assert diagnosis.hour_gain == pytest.approx(finding.extra - more)
    assert examine(automatic(1, 9_000, 0), automatic(2, 9_500, 0)).hour_gain is None


def test_an_unknown_price_is_none_and_never_zero() -> None:
    requests = (marked(1, 0, 20_000), marked(2, 0, 21_000))
    (finding,) = diagnose(requests, lambda _: None).findings
    assert finding.paid is None
    assert finding.extra is None


_EVENTS = ("compaction", "skill", "image", "tools", "interruption", "results_cleared")


@st.composite
def recorded(draw: st.DrawFn, depth: RecordDepth) -> list[ObservedRequest]:
    requests = []
    at = 0.0
    for number in range(draw(st.integers(1, 12))):
        at += draw(st.sampled_from([1.0, 40.0, 250.0, 400.0, 4_000.0]))
        read = draw(st.sampled_from([0, 900, 9_000, 14_000, 20_000]))
        written = draw(st.sampled_from([0, 500, 9_000, 20_000]))
        fresh = draw(st.integers(1, 9_000))
        usage = Usage(
            input=read + written + fresh, cached=read, written=written,
            cache_reported=draw(st.booleans()),
        )  # fmt: skip
        is_marked = draw(st.booleans())
        requests.append(ObservedRequest(
            source="x", session="s", id=str(number), usage=usage, depth=depth, at=at, ended=at + 3,
            provider="anthropic" if is_marked else "openai",
            model="claude-sonnet-4-5" if is_marked else "gpt-5",
            step=draw(st.sampled_from(["turn", "loop", ""])),
            events=tuple(draw(st.sets(st.sampled_from(_EVENTS), max_size=2))),
            agent=draw(st.sampled_from(["", "a"])), blocks=draw(st.none() | st.integers(1, 40)),
        ))  # fmt: skip
    return requests


DEPTHS: tuple[RecordDepth, ...] = ("transcript", "usage")


@given(st.sampled_from(DEPTHS).flatmap(recorded))
def test_nothing_is_proven_where_the_record_has_no_bytes(requests: list[ObservedRequest]) -> None:
    diagnosis = examine(*requests)
    assert len(diagnosis.requests) == len(requests)
    for finding in diagnosis.findings:
        assert finding.certainty != "proven"
        assert finding.place.segment == ""
        assert finding.before == finding.after == b""
        row = diagnosis.requests[finding.request - 1]
        # No more is lost than was sent again.
        assert 0 < finding.tokens <= row.input - (row.read or 0)
        assert finding.paid is None or finding.paid >= (finding.would_have_cost or 0.0)
