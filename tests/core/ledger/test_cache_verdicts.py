"""What it means that a provider reported so many cached tokens: one row per meaning."""

from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from tests.strategies import thorough

from lamina.core.ledger import expected_cached_tokens, judge_cache
from lamina.core.values.request import Agreement, Break, CacheVerdict
from lamina.core.values.settings import CacheRules
from lamina.core.values.usage import Usage

RULES = CacheRules(minimum=1_024, step=128, lifetime_s=300.0)
MOVED = Break(layer="L1", segment=0, source="system:persona", reason="new persona")


class Row(Struct, frozen=True, kw_only=True):
    meaning: str
    expected: int
    reported: int
    agree: int = 10_000
    first: bool = False
    broke: Break | None = None
    written: int = 10_000
    elapsed: float | None = 10.0
    rules: CacheRules = RULES
    factor: float = 1.0
    same_cache: bool = True
    says: bool = True


ROWS = {
    "found": Row(meaning="as_expected", expected=9_984, reported=9_984),
    "found within a step": Row(meaning="as_expected", expected=9_984, reported=9_856),
    "found within 5%": Row(meaning="as_expected", expected=9_984, reported=9_500),
    "scaled to their counting": Row(
        meaning="as_expected", expected=11_904, reported=11_904, factor=1.2
    ),
    "first request": Row(
        meaning="nothing_sent_before", expected=0, reported=0, first=True, agree=0, elapsed=None
    ),
    "first request, known elsewhere": Row(
        meaning="more_than_expected", expected=0, reported=5_000, first=True, agree=0
    ),
    "another model": Row(meaning="model_changed", expected=0, reported=0, same_cache=False),
    "too late": Row(meaning="lifetime_passed", expected=0, reported=0, elapsed=301.0),
    "too late, yet found": Row(
        meaning="more_than_expected", expected=0, reported=9_984, elapsed=301.0
    ),
    "nearly too late": Row(meaning="lifetime_passed", expected=9_984, reported=0, elapsed=250.0),
    "too short": Row(meaning="below_minimum", expected=0, reported=0, agree=1_000),
    "moved": Row(
        meaning="prefix_moved", expected=1_920, reported=1_920, agree=2_000, broke=MOVED
    ),
    "moved at once": Row(meaning="prefix_moved", expected=0, reported=0, agree=0, broke=MOVED),
    "moved so early that too little is left": Row(
        meaning="prefix_moved", expected=0, reported=0, agree=500, broke=MOVED
    ),
    "another machine": Row(meaning="routed_elsewhere", expected=9_984, reported=0),
    "half of it gone": Row(meaning="routed_elsewhere", expected=9_984, reported=5_000),
    "a short prefix not found": Row(
        meaning="routed_elsewhere", expected=60, reported=0, agree=60, rules=CacheRules()
    ),
    "no lifetime": Row(
        meaning="routed_elsewhere", expected=10_000, reported=0, elapsed=10**6,
        rules=CacheRules(lifetime_s=None),
    ),
    "nothing said": Row(meaning="not_reported", expected=9_984, reported=0, says=False),
    "only what was written counts": Row(
        meaning="as_expected", expected=5_000, reported=5_000, written=5_000,
        rules=CacheRules(explicit=True),
    ),
}  # fmt: skip


def judge(row: Row) -> CacheVerdict:
    agreement = Agreement(segments=3, tokens=row.agree, broke=row.broke, first=row.first)
    usage = Usage(input=12_000, cached=row.reported, cache_reported=row.says)
    return judge_cache(
        agreement, row.written, row.elapsed, row.rules, usage, row.factor,
        same_cache=row.same_cache,
    )  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_what_a_report_means(name: str) -> None:
    row = ROWS[name]
    verdict = judge(row)
    assert (verdict.meaning, verdict.expected, verdict.reported) == (
        row.meaning,
        row.expected,
        row.reported,
    )
    assert verdict.detail


def test_there_is_a_row_for_every_meaning() -> None:
    hints: dict[str, Any] = get_type_hints(CacheVerdict)
    assert {row.meaning for row in ROWS.values()} == set(get_args(hints["meaning"]))


def test_a_verdict_explains_itself_with_figures() -> None:
    assert judge(ROWS["too short"]).detail == (
        "1,000 tokens could be in the cache; nothing under 1,024 is kept"
    )
    assert judge(ROWS["too late"]).detail == "301 s since the last request; entries live 300 s"
    assert judge(ROWS["moved"]).detail == "moved at system:persona: as expected"
    assert "10 s old" in judge(ROWS["another machine"]).detail


def test_a_prefix_that_was_never_written_is_not_called_too_short() -> None:
    explicit = CacheRules(minimum=1_024, explicit=True)
    verdict = judge(Row(meaning="", expected=0, reported=0, written=0, rules=explicit))
    assert verdict.expected == 0
    assert "10,000" not in verdict.detail


@thorough
@given(st.integers(0, 5_000), st.integers(0, 5_000), st.integers(0, 2_000), st.integers(0, 300),
       st.booleans())  # fmt: skip
def test_what_may_be_expected_is_whole_steps_of_what_agrees(
    tokens: int, written: int, minimum: int, step: int, explicit: bool
) -> None:
    rules = CacheRules(minimum=minimum, step=step, explicit=explicit)
    expected = expected_cached_tokens(tokens, written, rules)
    reachable = min(tokens, written) if explicit else tokens
    assert expected % max(1, step) == 0
    assert expected == 0 if reachable < minimum else reachable - expected < max(1, step)
    assert expected <= reachable
