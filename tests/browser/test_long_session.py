"""Long sessions: few rows in the page, wherever one looks."""

from playwright.sync_api import expect
from tests.browser.house import House
from tests.browser.long_session import write_long_session
from tests.browser.measures import jump_time, rows_in_dom
from tests.browser.pages import ChatPage, look

MESSAGES = 4_000


def test_a_long_session_has_few_rows_in_the_page(house: House) -> None:
    write_long_session(house.vault, MESSAGES)
    page = house.visit("w/{w}/s/long")
    chat = ChatPage(page).shows(f"Answer {MESSAGES - 1}")
    assert rows_in_dom(page) < 100
    for place in (0, MESSAGES // 2, MESSAGES - 1):
        jump_time(page, house, "long", place)
        assert rows_in_dom(page) < 100
    look(page, "long-session")
    # And found by its words.
    page.get_by_role("heading", level=1).click()
    page.keyboard.press("/")
    page.get_by_role("textbox", name="Find in this session").fill("Question 1234:")
    expect(page.get_by_role("button", name="Next match")).to_be_enabled()
    page.keyboard.press("Enter")
    expect(chat.log.get_by_text("Question 1234: what")).to_be_in_viewport()
    assert rows_in_dom(page) < 100
