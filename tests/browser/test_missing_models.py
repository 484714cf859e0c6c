"""Whom a question would go to cannot answer yet: what to do is a button where the question is."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.browser.house import House
from tests.browser.pages import ChatPage, look
from tests.browser.vendor import Vendor


@pytest.fixture
def no_vendor(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default model of this machine, which is not there."""
    for name in vendor.environment:
        monkeypatch.delenv(name)


@pytest.fixture
def no_key(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    assert vendor.url
    monkeypatch.delenv("OPENAI_API_KEY")


@pytest.mark.usefixtures("no_vendor")
def test_a_model_is_fetched_where_its_question_is_written(
    house: House, embedded_model: Path
) -> None:
    page = house.visit()
    chat = ChatPage(page)
    chat.box.fill("When is high water?")
    fetch = page.get_by_role("button", name=re.compile(r"^Download \d+ MB of SmolLM2"))
    expect(fetch).to_be_visible()
    send = page.get_by_role("button", name="Send")
    expect(send).to_be_disabled()
    # What is for a terminal is not told to somebody in a browser.
    expect(page.get_by_role("main")).not_to_contain_text("lamina models")
    look(page, "model-missing")
    # From here on it can be had without a network.
    models = house.vault.parent / "cache" / "models"
    models.mkdir(parents=True)
    (models / embedded_model.name).symlink_to(embedded_model)
    fetch.click()
    expect(send).to_be_enabled()
    expect(fetch).to_have_count(0)
    expect(chat.box).to_have_value("When is high water?")


@pytest.mark.usefixtures("no_key")
def test_a_key_is_added_where_keys_are(house: House) -> None:
    page = house.visit()
    main = page.get_by_role("main")
    expect(main).to_contain_text("No key for openai yet.")
    expect(main).not_to_contain_text("keyring set")
    main.get_by_role("link", name="Add a key").click()
    expect(main.get_by_role("listitem").filter(has_text="openai")).to_contain_text("no key")
