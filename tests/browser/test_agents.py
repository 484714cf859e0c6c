"""The screens of agents."""

from playwright.sync_api import expect
from tests.browser.house import House
from tests.browser.pages import ChatPage, look


def test_an_agent_that_is_looked_at_can_be_asked(house: House) -> None:
    page = house.visit("w/{w}/agents/pilot/persona")
    page.get_by_role("link", name="Ask pilot").click()
    expect(page.get_by_role("combobox", name="Agent")).to_have_value("pilot")
    chat = ChatPage(page)
    house.vendor.says("Berth 7.")
    chat.ask("Which berth is free?").shows("Berth 7.")
    expect(page.get_by_role("main").locator("header").first).to_contain_text("pilot")
    look(page)
