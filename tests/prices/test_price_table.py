"""Our table of prices says what two packages say, and every difference between them is settled."""

import pytest
from tests.prices.packages import (
    PROVIDERS,
    genai_models,
    genai_name,
    is_chat,
    litellm_models,
    litellm_names,
)
from tests.prices.table import (
    MAX,
    PATH,
    Difference,
    Settled,
    all_differences,
    compare,
    encode_table,
    main,
    make_table,
    read_settlements,
    stale_settlements,
)

from lamina.adapters.providers.price_table import load_prices
from lamina.core.values.prices import PROMPT_STEPS

DAY = load_prices().sources["litellm"].date


def test_no_difference_between_the_packages_is_unexplained() -> None:
    settled = read_settlements()
    differences = list(all_differences(DAY))
    assert differences
    assert [str(found) for found in differences if not settled.find(found)] == []


def test_no_settlement_is_stale_or_without_a_reason() -> None:
    assert stale_settlements(list(all_differences(DAY))) == []
    for settlement, (genai, litellm) in read_settlements().by_figure.values():
        assert len(settlement.why.split()) > 5
        assert genai != litellm


def test_a_settlement_of_other_figures_settles_nothing() -> None:
    [first, *_] = all_differences(DAY)
    settled = read_settlements()
    settlement = settled.find(first)
    assert settlement is not None
    key = (first.provider, first.model, first.field, first.above)
    other = Settled(by_figure={key: (settlement, (first.genai + 1, first.litellm))})
    assert other.find(first) is None


def test_the_table_is_what_the_packages_give() -> None:
    assert PATH.read_bytes() == encode_table(make_table(DAY)), "run `make prices`"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_figure_is_that_of_a_package_within_a_hundredth(provider: str) -> None:
    table, settled = load_prices(), read_settlements()
    for name, figures in litellm_models(provider).items():
        listed = table.find(provider, name)
        assert listed is not None
        known = {field: source for field, source in listed.sources.items() if source == "litellm"}
        assert listed.max_output == figures.max_output
        first = listed.tiers_on(DAY)[0]
        for field, price in figures.tiers[0].items():
            difference = Difference(
                provider=provider, model=name, field=field, above=0,
                genai=getattr(first, field), litellm=price,
            )  # fmt: skip
            is_close = abs(getattr(first, field) - price) <= MAX * max(price, 1e-9)
            assert is_close or field in known or settled.find(difference), difference


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_name_is_priced_as_the_model_that_the_package_finds_for_it(provider: str) -> None:
    """Whatever either package has a name for: models for sound or pictures are not taken for ones
    to talk to because their names begin alike."""
    table, models = load_prices(), genai_models(provider)
    names = litellm_names(provider) | set(models)
    for name in sorted(names):
        listed, wanted = table.find(provider, name), genai_name(provider, name)
        if listed is None:
            assert wanted not in models or not is_chat(name), name
        elif wanted is not None and wanted in models:
            periods = models[wanted].on(DAY).tiers[0]
            assert listed.sources["prices"] == "genai-prices", name
            assert listed.tiers_on(DAY)[0].output == periods["output"], name
        else:
            assert name in litellm_models(provider), name


def test_sums_of_usage_know_every_length_at_which_a_price_changes() -> None:
    lengths = {
        tier.above
        for listed in load_prices().models
        for period in listed.periods
        for tier in period.tiers
    }
    assert lengths <= {0, *PROMPT_STEPS}
    assert all(period.tiers[0].above == 0 for m in load_prices().models for period in m.periods)


def test_packages_that_say_the_same_differ_in_nothing() -> None:
    model = genai_models("anthropic")["claude-sonnet-5"].on(DAY)
    assert list(compare("anthropic", "claude-sonnet-5", model, model)) == []


def test_nothing_is_written_unless_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([])
    assert "--write" in capsys.readouterr().err
    assert main(["--show"]) == 0
    assert capsys.readouterr().out == ""
