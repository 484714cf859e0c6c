"""What the ledger makes of caches that were made by hand: at least what they hold is read."""

import pytest

from lamina.core.ledger import judge_cache
from lamina.core.values.request import Agreement, CacheVerdict
from lamina.core.values.settings import CacheRules
from lamina.core.values.usage import Usage

RULES = CacheRules(minimum=4_096, lifetime_s=300.0)


def judge(
    cached: int, explicit: int, *, before: bool = True, elapsed: float | None = 10.0,
    same_cache: bool = True, first: bool = False,
) -> CacheVerdict:  # fmt: skip
    agreement = Agreement(segments=9, tokens=0 if first else 18_000, first=first)
    usage = Usage(input=20_000, cached=cached, explicit=explicit)
    return judge_cache(
        agreement, 18_000, elapsed, RULES, usage, 1.0,
        same_cache=same_cache, explicit_before=before,
    )  # fmt: skip


@pytest.mark.parametrize("reported", [9_000, 18_000], ids=["just that", "and more"])
def test_what_the_cache_holds_is_expected_and_more_is_welcome(reported: int) -> None:
    verdict = judge(reported, 9_000)
    assert (verdict.meaning, verdict.expected) == ("as_expected", 9_000)
    assert verdict.detail == "the explicit cache was read"


def test_it_is_read_by_the_first_request_and_after_any_pause() -> None:
    assert judge(9_000, 9_000, first=True, before=False, elapsed=None).meaning == "as_expected"
    assert judge(9_000, 9_000, elapsed=3_000.0).meaning == "as_expected"


def test_less_than_it_holds_is_not_as_expected() -> None:
    assert judge(0, 9_000).meaning == "routed_elsewhere"


def test_a_cache_that_is_not_used_again_leaves_nothing_behind() -> None:
    verdict = judge(0, 0)
    assert (verdict.meaning, verdict.expected) == ("lifetime_passed", 0)
    assert "explicit cache" in verdict.detail
    assert judge(18_000, 0).meaning == "more_than_expected"
    assert judge(0, 0, same_cache=False).meaning == "model_changed"
