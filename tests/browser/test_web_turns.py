"""Answers that outlive the page: whatever happens to the tab, the network or the server, all pages
end with the text that the journal has."""

import re

from playwright.sync_api import Page, expect
from tests.browser.house import House
from tests.browser.pages import ChatPage, look

WORDS = [f"word{number}" for number in range(40)]
ANSWER = " ".join(WORDS)
HALF = 20


def begin(house: House, page: Page) -> ChatPage:
    """A question whose answer has come to its middle, and waits there."""
    house.vendor.says(ANSWER)
    house.vendor.hold(HALF)
    chat = ChatPage(page).ask("Tell me about the harbour.")
    house.vendor.wait_until_held()
    expect(chat.log.get_by_text("word10")).to_be_visible()
    return chat


def session_at(page: Page) -> str:
    expect(page).to_have_url(re.compile(r"/s/"))
    return page.url.rpartition("/s/")[2].partition("/")[0]


def require_answer(house: House, page: Page) -> None:
    """The whole answer, once, and nothing that still moves."""
    chat = ChatPage(page)
    expect(chat.log.get_by_text(ANSWER)).to_have_count(1)
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    assert house.answers(session_at(page)) == [ANSWER]


def test_a_question_is_asked_and_its_answer_streams(house: House) -> None:
    page = house.visit("w/{w}")
    begin(house, page)
    expect(page.get_by_role("log")).to_have_attribute("aria-busy", "true")
    expect(page.get_by_role("status")).to_contain_text("nswer")
    look(page, "chat-answering")
    house.vendor.release()
    require_answer(house, page)
    expect(page.get_by_role("status")).to_contain_text("40 words")
    expect(page.get_by_role("log")).not_to_have_attribute("aria-busy", "true")
    look(page, "chat-answered")


def test_a_page_that_is_reloaded_goes_on_where_it_was(house: House) -> None:
    page = house.visit("w/{w}")
    begin(house, page)
    page.reload()
    expect(page.get_by_role("log").get_by_text("word10")).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    house.vendor.release()
    require_answer(house, page)


def test_two_tabs_show_the_same(house: House) -> None:
    page = house.visit("w/{w}")
    begin(house, page)
    other = house.tab(f"w/{{w}}/s/{session_at(page)}")
    expect(other.get_by_role("log").get_by_text("word10")).to_be_visible()
    house.vendor.release()
    require_answer(house, page)
    require_answer(house, other)
    # What is asked in one is seen in the other.
    house.vendor.says("The second answer.")
    ChatPage(other).ask("And then?").shows("The second answer.")
    ChatPage(page).shows("The second answer.")


def test_half_a_minute_offline_loses_nothing(house: House) -> None:
    page = house.visit("w/{w}")
    page.clock.install()
    begin(house, page)
    house.allow("ERR_INTERNET_DISCONNECTED", "offline", "ERR_NETWORK")
    page.context.set_offline(True)
    page.clock.run_for(30_000)
    house.vendor.release()
    page.context.set_offline(False)
    page.clock.run_for(10_000)
    require_answer(house, page)


def test_a_minute_in_the_background_loses_nothing(house: House) -> None:
    page = house.visit("w/{w}")
    page.clock.install()
    begin(house, page)
    hide(page, hidden=True)
    page.clock.run_for(60_000)
    house.vendor.release()
    hide(page, hidden=False)
    page.clock.run_for(1_000)
    require_answer(house, page)


def hide(page: Page, *, hidden: bool) -> None:
    """As a browser does when another tab is in front, or a phone is locked."""
    page.evaluate(
        """(hidden) => {
          const state = hidden ? 'hidden' : 'visible';
          Object.defineProperty(document, 'visibilityState', { value: state, configurable: true });
          Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
          document.dispatchEvent(new Event('visibilitychange'));
        }""",
        hidden,
    )


def test_a_tab_that_is_closed_stops_nothing(house: House) -> None:
    page = house.visit("w/{w}")
    begin(house, page)
    session = session_at(page)
    page.close()
    house.vendor.release()
    later = house.tab(f"w/{{w}}/s/{session}")
    require_answer(house, later)


def test_a_stopped_answer_keeps_what_came_and_goes_on(house: House) -> None:
    page = house.visit("w/{w}")
    begin(house, page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    expect(page.get_by_role("log").get_by_text("word10")).to_be_visible()
    house.vendor.release()
    look(page, "chat-stopped")
    house.vendor.says("All of it.")
    ChatPage(page).ask("Again, please.").shows("All of it.")


def test_a_server_that_is_killed_goes_on_after_a_restart(house: House) -> None:
    house.start_process()
    page = house.visit("w/{w}")
    begin(house, page)
    session = session_at(page)
    # The turn that it watched is gone with the server.
    house.allow("ERR_", "offline", "status 404: GET .*/turns/")
    house.kill()
    house.vendor.release()
    house.start_process()
    page.reload()
    house.vendor.says(ANSWER)
    resume = page.get_by_role("button", name="Resume")
    expect(resume).to_be_visible()
    look(page, "chat-interrupted")
    resume.click()
    expect(page.get_by_role("log").get_by_text(ANSWER)).to_have_count(1)
    assert house.answers(session) == [ANSWER]


def test_a_server_that_comes_back_is_noticed_without_a_hand(house: House) -> None:
    house.start_process()
    page = house.visit("w/{w}")
    chat = ChatPage(page).ask("Hello")
    chat.shows("You said: Hello")
    house.allow("ERR_", "failed:")
    house.kill()
    away = page.get_by_text("The server is not responding").first
    expect(away).to_be_visible()
    chat.ask("Are you there?")
    expect(page.get_by_role("alert").first).to_contain_text("is not responding")
    expect(chat.box).to_have_value("Are you there?")
    look(page, "server-away")
    house.start_process()
    expect(page.get_by_text("The server is not responding")).to_have_count(0)
    page.get_by_role("button", name="Send").click()
    chat.shows("You said: Are you there?")
