"""What is known of models, and how a user's own file changes it."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from lamina.errors import InvalidSetting, UnknownTarget
from lamina.providers.model_book import load_book
from lamina.providers.wires import anthropic, gemini, llamacpp, openai


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
        ("openai:gpt-5.6", 400_000),
        ("anthropic:claude-sonnet-5", 200_000),
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
        ("openai:gpt-6", 1_024, 1_800, 1.25),
        ("gemini:gemini-2.5-pro", 2_048, 300, 1.0),
        ("gemini:gemini-3.8-flash", 4_096, 300, 1.0),
        ("local:smollm2-135m", 0, None, 0.0),
    ],
)
def test_cache_rules(name: str, minimum: int, lifetime: float | None, write: float) -> None:
    rules = load_book().find(name).cache
    assert (rules.minimum, rules.lifetime_s, rules.write_price) == (minimum, lifetime, write)
    # Written at markers only: Anthropic, and OpenAI from GPT-5.6 on.
    assert rules.explicit == name.startswith(("anthropic:", "openai:gpt-5.6", "openai:gpt-6"))


def test_a_model_nobody_knows_takes_what_its_provider_has_in_common() -> None:
    target = load_book().find("gemini:gemini-99-ultra")
    assert (target.wire, target.window) == ("gemini", 1_048_576)


def test_the_book_lists_what_it_knows() -> None:
    names = load_book().names()
    assert names[0] == "openai:*"
    assert {"openai:gpt-4.1*", "anthropic:*", "anthropic:claude-opus-5*", "local:*"} <= set(names)
    assert len(set(names)) == len(names)
    assert load_book().find("openai:o[34]*") == replace(
        load_book().find("openai:o3"), model="o[34]*"
    )


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
