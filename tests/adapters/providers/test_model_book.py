"""What is known of models, and how a user's own file changes it."""

from datetime import date
from pathlib import Path

import pytest

from lamina.adapters.providers.model_book import ModelBook, load_book, read_rules
from lamina.adapters.providers.price_table import load_prices
from lamina.adapters.providers.wires import anthropic, gemini, llamacpp, openai
from lamina.core.assembly.budget import make_budget
from lamina.core.values.prices import Prices, PriceTier
from lamina.core.values.settings import Settings
from lamina.errors import InvalidSetting, UnknownTarget


def write(folder: Path, text: str) -> str:
    path = folder / "models.toml"
    path.write_text(text, "utf-8")
    return str(path)


@pytest.mark.parametrize(
    "name", ["mistral:large", "gpt-4o", "", ":", "openai", "openai:", "openai: ", "OpenAI:gpt-4o"]
)
def test_an_unknown_target_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(UnknownTarget) as caught:
        load_book().find(name)
    message = str(caught.value)
    assert repr(name) in message
    for provider in ("openai", "anthropic", "gemini", "compatible", "local"):
        assert provider in message


@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("openai:gpt-4o", 128_000),
        ("openai:gpt-4o-mini", 128_000),
        ("openai:gpt-4", 8_192),
        ("openai:gpt-4-0613", 8_192),
        ("openai:gpt-4-turbo-2024-04-09", 128_000),
        ("openai:gpt-4-1106-preview", 128_000),
        ("openai:gpt-4.1-nano", 1_047_576),
        ("openai:gpt-3.5-turbo", 16_385),
        ("openai:o3-mini", 200_000),
        ("openai:gpt-5.6", 1_050_000),
        ("openai:gpt-5-chat-latest", 128_000),
        ("anthropic:claude-sonnet-5", 1_000_000),
        ("anthropic:claude-sonnet-5-20260901", 1_000_000),
        ("anthropic:claude-haiku-4-5", 200_000),
        ("gemini:gemini-2.5-flash", 1_048_576),
        ("compatible:qwen3:8b", 32_768),
        ("local:smollm2-135m", 8_192),
    ],
)
def test_windows(name: str, window: int) -> None:
    target = load_book().find(name)
    assert target.name == name
    assert target.window == window
    assert target.max_output < window


@pytest.mark.parametrize(
    ("name", "minimum", "lifetime", "write"),
    [
        ("anthropic:claude-opus-5", 512, 300, 1.25),
        ("anthropic:claude-mythos-5-1", 512, 300, 1.25),
        ("anthropic:claude-sonnet-4-6", 1_024, 300, 1.25),
        ("anthropic:claude-opus-4-8", 1_024, 300, 1.25),
        ("anthropic:claude-opus-4-1", 1_024, 300, 1.25),
        ("anthropic:claude-opus-4-7", 2_048, 300, 1.25),
        ("anthropic:claude-opus-4-5-20251101", 4_096, 300, 1.25),
        ("anthropic:claude-haiku-4-5", 4_096, 300, 1.25),
        ("openai:gpt-5.5", 1_024, 300, 1.0),
        ("openai:gpt-5.6", 1_024, 1_800, 1.25),
        ("openai:gpt-6-sol", 1_024, 1_800, 1.25),
        ("gemini:gemini-2.5-pro", 2_048, 300, 1.0),
        ("gemini:gemini-3.8-flash", 4_096, 300, 1.0),
        ("local:smollm2-135m", 0, None, 0.0),
    ],
)
def test_cache_rules(name: str, minimum: int, lifetime: float | None, write: float) -> None:
    target = load_book().find(name)
    rules, prices = target.cache, target.prices
    assert (rules.minimum, rules.lifetime_s) == (minimum, lifetime)
    assert prices is not None
    assert prices.tiers[0].write == pytest.approx(prices.tiers[0].input * write)
    # Written at markers only: Anthropic, and OpenAI from GPT-5.6 on.
    assert rules.explicit == name.startswith(("anthropic:", "openai:gpt-5.6", "openai:gpt-6"))


@pytest.mark.parametrize(
    ("name", "input", "output", "read"),
    [
        ("openai:gpt-5.6", 4.0, 20.0, 0.4),
        ("openai:gpt-5.6-sol-2026-07-30", 4.0, 20.0, 0.4),
        ("openai:gpt-4o-mini", 0.15, 0.6, 0.075),
        ("anthropic:claude-sonnet-5", 2.0, 10.0, 0.2),
        ("anthropic:claude-fable-5-1", 10.0, 50.0, 0.25),
        ("anthropic:claude-mythos-5-1", 10.0, 50.0, 0.25),
        ("gemini:gemini-2.5-flash", 0.3, 2.5, 0.03),
        ("local:smollm2-135m", 0.0, 0.0, 0.0),
    ],
)
def test_prices(name: str, input: float, output: float, read: float) -> None:
    prices = load_book().find(name).prices
    assert prices is not None
    first = prices.tiers[0]
    assert (first.input, first.output, first.read) == (input, output, read)
    assert prices.source


def test_long_prompts_an_hour_in_the_cache_and_storage_have_prices_of_their_own() -> None:
    def find(name: str) -> Prices:
        prices = load_book().find(name).prices
        assert prices is not None
        return prices

    assert [tier.above for tier in find("openai:gpt-5.6").tiers] == [0, 272_000]
    assert find("openai:gpt-5.6").tier_for(272_000).input == 4.0
    assert find("openai:gpt-5.6").tier_for(272_001).input == 8.0
    assert find("anthropic:claude-sonnet-5").tiers[0].write_long == 4.0
    assert find("gemini:gemini-2.5-pro").storage == 4.5
    assert find("gemini:gemini-2.5-flash").storage == 1.0


def test_answers_of_claude_5_may_have_128k_tokens() -> None:
    for name in ("sonnet-5", "opus-5", "fable-5-1", "haiku-5-5", "mythos-5"):
        assert load_book().find(f"anthropic:claude-{name}").max_output == 128_000


def test_prices_change_on_the_day_that_the_vendor_named() -> None:
    def price(day: date) -> float:
        book = ModelBook(read_rules(), load_prices(), today=lambda: day)
        prices = book.find("gemini:gemini-4-argon").prices
        assert prices is not None
        return prices.tiers[0].input

    assert price(date(2026, 11, 30)) == 2.0
    assert price(date(2026, 12, 1)) == 4.0
    days = iter([date(2026, 11, 30), date(2026, 12, 1)])
    book = ModelBook(read_rules(), load_prices(), today=lambda: next(days))
    before, after = (book.find("gemini:gemini-4-argon").prices for _ in range(2))
    assert before != after


def test_a_model_nobody_knows_takes_what_its_provider_has_in_common_and_has_no_price() -> None:
    target = load_book().find("gemini:gemini-99-ultra")
    assert (target.wire, target.window) == ("gemini", 1_048_576)
    assert (target.prices, target.limits_source) == (None, "")
    assert load_book().find("gemini:gemini-2.5-pro").limits_source == "litellm 1.109.1"
    assert not load_book().knows("gemini:gemini-99-ultra")
    assert load_book().knows("gemini:gemini-2.5-pro")
    # What a server of one's own charges is for its owner to say.
    assert load_book().find("compatible:qwen3").prices is None


def test_a_prompt_is_no_longer_than_the_model_takes_whatever_its_window() -> None:
    target = load_book().find("openai:gpt-5")
    assert (target.window, target.max_input) == (400_000, 272_000)
    assert make_budget(Settings(), target, None, 1.0).limit == 272_000
    assert make_budget(Settings(window=50_000), target, None, 1.0).window == 50_000


def test_the_book_lists_what_it_knows() -> None:
    names = load_book().names()
    assert names[0] == "openai:*"
    known = {
        "openai:gpt-4.1",
        "openai:gpt-5.6",
        "anthropic:*",
        "anthropic:claude-opus-5",
        "local:*",
    }
    assert known <= set(names)
    assert len(set(names)) == len(names)
    # Every model that is listed is found under the name that it is listed by.
    listed = [name for name in names if not name.endswith("*") and name.startswith("anthropic:")]
    assert all(load_book().find(name).prices for name in listed)


def test_every_provider_has_its_wire() -> None:
    book = load_book()
    for name, wire in [
        ("openai:gpt-5", openai),
        ("compatible:x", openai),
        ("local:smollm2-135m", llamacpp),
        ("anthropic:x", anthropic),
        ("gemini:x", gemini),
    ]:
        assert book.wire(book.find(name)) is wire


def test_a_file_of_ones_own_is_merged_over_the_book(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        [providers.openai]
        lifetime_s = 60.0

        [[providers.openai.models]]
        match = "gpt-4o-mini*"
        window = 1000

        [providers.house]
        window = 4096

        [[providers.house.models]]
        match = "big*"
        window = 9000
        """,
    )
    book = load_book(path)
    assert book.find("openai:gpt-4o-mini").window == 1_000
    assert book.find("openai:gpt-4o").window == 128_000
    assert book.find("openai:gpt-4o").cache.lifetime_s == 60.0
    assert book.find("openai:gpt-4.1").window == 1_047_576
    assert book.find("anthropic:claude-opus-5").cache.lifetime_s == 300.0
    house = book.find("house:small")
    assert (house.wire, house.window, house.cache.minimum) == ("openai", 4_096, 0)
    assert book.find("house:big-1").window == 9_000
    # The packaged book is as it was.
    assert load_book().find("openai:gpt-4o-mini").window == 128_000


def test_the_environment_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_book().find("openai:gpt-4o").window == 128_000
    monkeypatch.setenv("LAMINA_MODELS", write(tmp_path, "[providers.openai]\nwindow = 5000"))
    assert load_book().find("openai:gpt-4o").window == 5_000
    monkeypatch.delenv("LAMINA_MODELS")
    assert load_book().find("openai:gpt-4o").window == 128_000


def test_prices_of_ones_own_count_before_those_of_the_table(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        date = "2027-01-02"

        [[providers.openai.models]]
        match = "gpt-5.6"
        input = 3.0
        output = 9.0
        read = 0.2
        long_prompts = [{ above = 272000, input = 6.0, output = 12.0 }]

        [[providers.anthropic.models]]
        match = "claude-sonnet-5"
        read = 0.5

        [providers.house]
        input = 1.0
        output = 2.0
        """,
    )
    book = load_book(path)
    prices = book.find("openai:gpt-5.6").prices
    assert prices is not None
    assert prices.tiers == (
        PriceTier(above=0, input=3.0, output=9.0, read=3.0 * 0.2, write=3.0 * 1.0, write_long=3.0),
        PriceTier(above=272_000, input=6.0, output=12.0, read=6.0 * 0.2, write=6.0, write_long=6.0),
    )
    assert (prices.source, prices.date) == ("your models file", "2027-01-02")
    # A factor alone changes what it is a factor of; the rest is as the table has it.
    sonnet = book.find("anthropic:claude-sonnet-5").prices
    assert sonnet is not None
    assert (sonnet.tiers[0].input, sonnet.tiers[0].read, sonnet.tiers[0].write) == (2.0, 1.0, 2.5)
    assert sonnet.source == "genai-prices 0.2.2, your models file"
    house = book.find("house:any").prices
    assert house is not None
    assert house.tiers[0].output == 2.0
    assert book.knows("openai:gpt-5.6")


def test_a_window_of_ones_own_counts_before_that_of_the_table(tmp_path: Path) -> None:
    path = write(tmp_path, "[[providers.openai.models]]\nmatch = 'gpt-5'\nwindow = 300000")
    target = load_book(path).find("openai:gpt-5")
    assert (target.window, target.max_input, target.max_output) == (300_000, None, 128_000)
    assert target.limits_source.startswith("your models file")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[providers", "cannot be read"),
        ("providers = 3", "Expected `object`"),
        ("[providers]\nopenai = 3", "Expected `object`"),
        ("[providers.openai]\nmodels = 3", "providers.openai.models: Expected `array`"),
        ("[providers.openai]\nwindow = '9k'", "providers.openai.*Expected `int`.*window"),
        ("[providers.openai]\nwindow = 0", "providers.openai.*>= 1.*window"),
        ("[providers.openai]\nwindoww = 9", "unknown field `windoww`"),
        ("[providers.openai]\nwire = 'soap'", "Invalid enum value 'soap'"),
        ("[[providers.openai.models]]\nwindow = 9", "missing required field `match`"),
        ("[providers.openai]\ninput = 2.0", "needs both `input` and `output`"),
        ("[providers.openai]\ninput = -2.0", ">= 0.0.*input"),
        (
            "[providers.openai]\ninput = 1\noutput = 1\n"
            "long_prompts = [{above = 5, input = 1, output = 1}]",
            "`above` is 5, and has to be one of 32000, 100000",
        ),
    ],
)
def test_a_broken_file_is_refused_with_its_place(tmp_path: Path, text: str, problem: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InvalidSetting, match=f"(?s)LAMINA_MODELS='{path}'.*{problem}"):
        load_book(path)


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=r"LAMINA_MODELS.*cannot be read"):
        load_book(str(tmp_path / "none.toml"))
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidSetting, match=r"LAMINA_MODELS.*cannot be read"):
        load_book(str(tmp_path / "bytes.toml"))


@pytest.mark.parametrize(
    ("model", "binds", "minimum"),
    [
        ("claude-fable-5-1", True, 512),
        ("claude-fable-5-2-20261101", True, 512),
        ("claude-mythos-5-1", True, 512),
        ("claude-mythos-5-2", True, 512),
        ("claude-opus-5-5", True, 512),
        ("claude-opus-5-5-20260915", True, 512),
        ("claude-sonnet-5-5", True, 512),
        ("claude-haiku-5-5", True, 512),
        ("claude-fable-5", False, 512),
        ("claude-fable-5-20260501", False, 512),
        ("claude-mythos-5-20260501", False, 512),
        ("claude-opus-5", False, 512),
        ("claude-opus-5-20260701", False, 512),
        ("claude-sonnet-5", False, 1_024),
        ("claude-sonnet-5-20260901", False, 1_024),
        ("claude-opus-4-8", False, 1_024),
        ("claude-haiku-4-5", False, 4_096),
    ],
)
def test_which_models_bind_their_thinking(model: str, binds: bool, minimum: int) -> None:
    target = load_book().find(f"anthropic:{model}")
    assert (target.binds_thinking, target.cache.minimum) == (binds, minimum)
    assert bool(target.reads_thinking) == binds
    assert target.takes_sampling == (model == "claude-haiku-4-5")
    assert target.loads_tools


CLAUDES = (
    "fable-5-1", "mythos-5-1", "opus-5-5", "sonnet-5-5", "haiku-5-5",
    "fable-5", "mythos-5", "opus-5", "opus-5-20260701", "sonnet-5", "opus-4-8", "sonnet-4-6",
    "haiku-4-5-20251001",
)  # fmt: skip


@pytest.mark.parametrize(
    ("reader", "unread"),
    [
        ("fable-5-1", {"sonnet-5-5"}),
        ("mythos-5-2", {"sonnet-5-5"}),
        ("opus-5-5", {"fable-5-1", "mythos-5-1", "fable-5", "mythos-5", "sonnet-5-5"}),
        (
            "sonnet-5-5",
            {"fable-5-1", "mythos-5-1", "fable-5", "mythos-5", "opus-5-5", "opus-5",
             "opus-5-20260701"},
        ),
        ("haiku-5-5", {*CLAUDES} - {"haiku-5-5"}),
        ("opus-5", {*CLAUDES} - {"opus-5"}),
    ],
)  # fmt: skip
def test_a_model_reads_its_own_thinking_and_that_of_the_models_in_its_list(
    reader: str, unread: set[str]
) -> None:
    target = load_book().find(f"anthropic:claude-{reader}")
    assert target.reads_thinking_of(target.model)
    assert {name for name in CLAUDES if not target.reads_thinking_of(f"claude-{name}")} == unread


def test_a_models_file_says_whose_thinking_a_model_reads(tmp_path: Path) -> None:
    text = "[[providers.anthropic.models]]\nmatch = 'claude-new'\nbinds_thinking = true\n"
    path = write(tmp_path, text + "reads_thinking = ['claude-opus-*']")
    target = load_book(path).find("anthropic:claude-new")
    assert target.binds_thinking
    assert target.reads_thinking_of("claude-opus-5-5")
    assert not target.reads_thinking_of("claude-fable-5-1")
