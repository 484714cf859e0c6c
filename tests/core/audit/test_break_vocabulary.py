"""Kinds, blames and certainties: one table."""

from typing import get_args

import pytest

from lamina.core.audit.break_causes import (
    CAUSES,
    Blame,
    BreakKind,
    CauseName,
    Certainty,
    RecordDepth,
    blame_of,
    cap_certainty,
    fix_for,
    name_verdict,
)
from lamina.core.values.request import Agreement, Break, CacheMeaning, CacheVerdict, MovedPlace


def test_every_cause_has_a_row_and_every_row_a_cause() -> None:
    assert set(CAUSES) == set(get_args(CauseName))
    assert {row.kind for row in CAUSES.values()} == set(get_args(BreakKind))


@pytest.mark.parametrize("cause", get_args(CauseName))
def test_a_cause_is_told_in_words_that_fit_a_line(cause: CauseName) -> None:
    row = CAUSES[cause]
    assert 0 < len(row.label) <= 38
    assert row.fix.endswith(".")
    for is_own in (True, False):
        assert blame_of(cause, is_own=is_own) in get_args(Blame)
        assert fix_for(cause, "openai", is_own=is_own)


@pytest.mark.parametrize("depth", ["transcript", "usage"])
@pytest.mark.parametrize("cause", get_args(CauseName))
def test_nothing_is_proven_without_bytes(cause: CauseName, depth: RecordDepth) -> None:
    assert cap_certainty("proven", cause, depth) != "proven"


def test_what_a_vendor_did_is_never_proven() -> None:
    for cause, row in CAUSES.items():
        if row.blame == "vendor":
            assert cap_certainty("proven", cause, "bodies") == "likely"


def test_a_cap_never_makes_anything_surer() -> None:
    order = get_args(Certainty)
    for wanted in order:
        assert order.index(cap_certainty(wanted, "idle", "bodies")) >= order.index(wanted)


@pytest.mark.parametrize("meaning", get_args(CacheMeaning))
def test_every_verdict_of_the_ledger_has_its_words(meaning: CacheMeaning) -> None:
    verdict = CacheVerdict(expected=1, reported=0, meaning=meaning, detail="")
    words = name_verdict(verdict, Agreement())
    if meaning in ("as_expected", "more_than_expected", "nothing_sent_before", "not_reported"):
        assert words is None
    else:
        assert words is not None
        assert CAUSES[words.cause].kind == words.kind
    if meaning == "routed_elsewhere":
        assert words is not None
        assert (words.kind, words.blame, words.certainty) == ("missed", "vendor", "likely")


def test_a_prefix_that_moved_is_a_boundary_only_where_all_of_it_has_a_reason() -> None:
    verdict = CacheVerdict(expected=9, reported=0, meaning="prefix_moved", detail="")
    broke = Break(layer="L1", segment=0, source="policy", reason="a new policy")
    explained = name_verdict(verdict, Agreement(broke=broke))
    assert explained is not None
    assert (explained.kind, explained.cause) == ("expected", "boundary")
    place = MovedPlace(layer="L1", segment=0, source="policy")
    moved = name_verdict(verdict, Agreement(broke=broke, unexplained=(place,)))
    assert moved is not None
    assert (moved.kind, moved.cause, moved.blame) == ("moved", "system_changed", "you")
