"""Searching the notes: what is in sight is what was found, and stays there."""

from playwright.sync_api import Route, expect
from tests.browser.house import House
from tests.browser.pages import look


def searches(house: House) -> int:
    wanted = [line for line in house.visitors[-1].watch.requests if "/notes?" in line]
    return len(wanted)


def test_opening_a_note_searches_nothing_again(house: House) -> None:
    page = house.visit("w/{w}/notes?q=water")
    passages = page.get_by_role("list", name="Passages").get_by_role("listitem")
    expect(passages.first).to_contain_text("water")
    before = searches(house)
    passages.first.get_by_role("link").click()
    expect(page.get_by_role("heading", name="Lights")).to_be_visible()
    expect(passages.first).to_be_visible()
    assert searches(house) == before


def test_what_was_found_before_is_not_called_the_result_of_the_next_search(house: House) -> None:
    page = house.visit("w/{w}/notes")
    expect(page.get_by_text("Recently changed")).to_be_visible()
    held: list[Route] = []
    page.route("**/notes?q=*", lambda route: held.append(route))
    page.get_by_role("searchbox", name="Search notes").fill("water")
    expect(page.get_by_role("main").get_by_text("Searching…")).to_be_visible()
    # The latest notes are still to be seen, and none of them was found by these words.
    passages = page.get_by_role("list", name="Passages")
    expect(passages).to_contain_text("March")
    expect(passages).not_to_contain_text("words")
    look(page, "notes-searching")
    release(held)
    expect(passages).to_contain_text("words")
    expect(passages).not_to_contain_text("March")


def release(held: list[Route]) -> None:
    for route in held:
        route.continue_()
    held.clear()
