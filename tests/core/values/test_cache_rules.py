"""How long a session takes entries to live, and what keeping them longer costs."""

import pytest
from msgspec.structs import replace

from lamina.adapters.providers.model_book import load_book
from lamina.core.ledger import cost_of
from lamina.core.values.settings import CacheTtl, Settings, cache_rules
from lamina.core.values.usage import Usage
from lamina.errors import InvalidSetting

BOOK = load_book()
CLAUDE, GPT = BOOK.find("anthropic:claude-sonnet-5"), BOOK.find("openai:gpt-4o")


@pytest.mark.parametrize(("ttl", "lifetime"), [("5m", 300.0), ("1h", 3_600.0)])
def test_entries_live_as_long_as_the_setting_says_where_there_is_a_choice(
    ttl: CacheTtl, lifetime: float
) -> None:
    settings = Settings(cache_ttl=ttl)
    assert cache_rules(settings, CLAUDE).lifetime_s == lifetime
    assert cache_rules(settings, GPT) == GPT.cache


def test_a_lifetime_of_ones_own_goes_before_the_choice() -> None:
    settings = Settings(cache_ttl="1h", cache_lifetime_s=60.0)
    assert cache_rules(settings, CLAUDE).lifetime_s == 60.0


def test_another_lifetime_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="must be one of 5m, 1h"):
        Settings(cache_ttl="30m")  # type: ignore[arg-type]


def test_what_is_kept_for_longer_costs_more_to_write() -> None:
    million = Usage(input=1_000_000, written=1_000_000)
    assert cost_of(million, CLAUDE) == pytest.approx(1.25 * 2.0)
    assert cost_of(replace(million, written_long=1_000_000), CLAUDE) == pytest.approx(2.0 * 2.0)
    assert cost_of(replace(million, written_long=500_000), CLAUDE) == pytest.approx(1.625 * 2.0)
