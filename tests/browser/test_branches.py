"""Branches: edited questions, the way between them, and the tree by keyboard alone."""

import re

from playwright.sync_api import Page, expect
from tests.browser.house import House
from tests.browser.pages import ChatPage, look
from tests.browser.seeds import write_harbour


def open_harbour(house: House, place: str = "") -> Page:
    write_harbour(house.vault, house.vendor)
    return house.visit(f"w/{{w}}/s/harbour{place}")


def test_a_question_is_asked_otherwise_and_both_answers_stay(house: House) -> None:
    page = house.visit("w/{w}")
    house.vendor.says("Low at noon.", "High at six.", "Low at midnight.")
    chat = ChatPage(page).ask("When is low water?").shows("Low at noon.")
    question = chat.log.get_by_role("article", name="You").first
    question.hover()
    question.get_by_role("button", name=re.compile("Edit")).first.click()
    box = question.get_by_role("textbox")
    box.fill("When is high water?")
    question.get_by_role("button", name=re.compile("Ask|Send|Save")).first.click()
    chat.shows("High at six.")
    expect(chat.log.get_by_text("Low at noon.")).to_have_count(0)
    expect(chat.log).to_contain_text(re.compile(r"2\s*/\s*2"))
    look(page, "chat-siblings")
    # Back by the arrow, and the notice tells what is elsewhere.
    page.get_by_role("button", name=re.compile("Previous|Earlier|before")).first.click()
    chat.shows("Low at noon.")
    expect(page.get_by_role("main")).to_contain_text(re.compile("on (an)?other branch"))
    # And by key.
    page.get_by_role("heading", level=1).click()
    page.keyboard.press("j")
    page.keyboard.press("]")
    chat.shows("High at six.")


def test_an_answer_is_asked_for_again(house: House) -> None:
    page = house.visit("w/{w}")
    house.vendor.says("First try.", "Second try.")
    chat = ChatPage(page).ask("Say something.").shows("First try.")
    answer = chat.log.get_by_role("article", name="Lamina").first
    answer.hover()
    answer.get_by_role("button", name=re.compile("again|Regenerate", re.IGNORECASE)).first.click()
    chat.shows("Second try.")
    expect(chat.log).to_contain_text(re.compile(r"2\s*/\s*2"))


def test_the_tree_is_walked_labelled_and_gone_on_with_by_keyboard(house: House) -> None:
    page = open_harbour(house, "/tree")
    tree = page.get_by_role("tree", name="Branches of the session")
    expect(tree).to_be_visible()
    place = page.get_by_role("region", name="Selected node")
    expect(place).to_contain_text("you are here")
    page.keyboard.press("n")
    expect(place).to_contain_text("forks into 2")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    expect(place).to_contain_text("And on Friday?")
    page.keyboard.press("ArrowDown")
    expect(place).to_contain_text("On Friday the pier is closed.")
    page.keyboard.press("l")
    page.get_by_role("textbox", name="Label").fill("weekday")
    page.keyboard.press("Enter")
    expect(place).to_contain_text("weekday")
    look(page, "tree-labelled")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/s/harbour$"))
    chat = ChatPage(page).shows("On Friday the pier is closed.")
    expect(chat.log.get_by_text("On Sunday it is open.")).to_have_count(0)


def test_a_session_is_forked_from_a_place_in_the_tree(house: House) -> None:
    page = open_harbour(house, "/tree")
    place = page.get_by_role("region", name="Selected node")
    expect(place).to_contain_text("you are here")
    page.keyboard.press("f")
    expect(page).to_have_url(re.compile(r"/s/(?!harbour$)[^/]+$"))
    ChatPage(page).shows("On Sunday it is open.")


def test_a_request_that_was_never_answered_is_resumed_from_the_tree(house: House) -> None:
    house.start_process()
    page = house.visit("w/{w}")
    house.vendor.hold(0)
    ChatPage(page).ask("Are you there?")
    house.vendor.wait_until_held()
    expect(page).to_have_url(re.compile(r"/s/"))
    session = page.url.rpartition("/s/")[2]
    house.allow("ERR_", "offline", "status 404: GET .*/turns/")
    house.kill()
    house.vendor.release()
    house.start_process()
    page.goto(house.url + house.place(f"w/{{w}}/s/{session}/tree"))
    house.vendor.says("Yes, I am.")
    tree = page.get_by_role("tree", name="Branches of the session")
    expect(tree).to_contain_text("Not answered")
    page.get_by_role("region", name="Selected node").get_by_role("button", name="Resume").click()
    ChatPage(page).shows("Yes, I am.")
