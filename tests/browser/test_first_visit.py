"""The first visit: a model of one's own machine is asked, and shows what it was given and why."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.browser.house import House
from tests.browser.pages import ChatPage, look
from tests.browser.vendor import Vendor


def test_the_app_opens_on_its_folder(house: House) -> None:
    page = house.visit()
    expect(page).to_have_url(re.compile(f"#/w/{house.workspace}$"))
    expect(ChatPage(page).box).to_be_focused()
    expect(page).to_have_title(re.compile("Lamina"))
    look(page, "first-visit")


@pytest.fixture
def own_models(
    vault: Path,
    vendor: Vendor,
    embedded_model: Path,
    embedding_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The models of this machine, and no vendor."""
    models = vault.parent / "cache" / "models"
    models.mkdir(parents=True)
    (models / embedded_model.name).symlink_to(embedded_model)
    (models / embedding_model.name).mkdir()
    for path in embedding_model.iterdir():
        (models / embedding_model.name / path.name).symlink_to(path)
    for name in ("LAMINA_EMBED", *vendor.environment):
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("own_models")
def test_the_embedded_model_answers_and_its_context_opens(house: House) -> None:
    page = house.visit()
    page.get_by_role("combobox", name="Agent").select_option("pilot")
    chat = ChatPage(page)
    chat.ask("When is high water, and who pays the bill for the harbour dues?")
    answer = chat.log.get_by_role("article", name="Lamina")
    expect(answer.get_by_role("link", name="Context")).to_be_visible(timeout=120_000)
    answer.get_by_role("link", name="Context").click()
    rules = page.get_by_role("region", name="Rules")
    expect(rules.get_by_role("listitem")).to_have_count(3)
    rows = [" ".join(text.split()) for text in rules.get_by_role("listitem").all_inner_texts()]
    # As the original documents draw it: priority, name, badge, two decimals, in their order.
    assert re.match(r"001 • style Always", rows[0]), rows
    assert re.match(r"020 • tides Agent - 0\.\d\d\b", rows[1]), rows
    assert re.match(r"900 • billing Agent - 0\.\d\d\b", rows[2]), rows
    references = page.get_by_role("region", name="References").get_by_role("listitem")
    expect(references.first).to_contain_text(re.compile(r"005\s*•\s*harbour-map\s*Always"))
    expect(page.get_by_role("region", name="Tools")).to_be_visible()
    look(page, "context-embedded")
