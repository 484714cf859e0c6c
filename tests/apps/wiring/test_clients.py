"""Who answers for a target, and with which key."""

import pytest

from lamina.adapters.providers.model_book import load_book
from lamina.apps.wiring.clients import Clients, find_key
from lamina.errors import InvalidSetting, KeyMissing, ProviderError


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "LAMINA_COMPATIBLE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.anyio
async def test_a_missing_key_says_where_it_may_be_put() -> None:
    with pytest.raises(
        KeyMissing, match=r"set OPENAI_API_KEY, or store it in the system's keyring"
    ):
        await Clients().provider(load_book().find("openai:gpt-5"))


def test_a_key_is_taken_from_any_name_that_the_vendor_has_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", " secret ")
    assert find_key(load_book().find("gemini:gemini-3-pro")) == "secret"


@pytest.mark.anyio
async def test_a_server_of_ones_own_has_to_have_an_address() -> None:
    with pytest.raises(ProviderError, match="LAMINA_COMPATIBLE_URL"):
        await Clients().provider(load_book().find("compatible:some-model"))


@pytest.mark.parametrize("given", ["0", "-1", "many"])
def test_slots_are_a_number(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_SLOTS", given)
    with pytest.raises(InvalidSetting, match="LAMINA_SLOTS"):
        Clients()
