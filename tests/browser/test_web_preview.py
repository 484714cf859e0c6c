"""What the app shows before a message is sent is what is then sent."""

import re

from playwright.sync_api import Locator, Page, expect
from tests.browser.house import House
from tests.browser.pages import ChatPage, look
from tests.browser.seeds import write_harbour

from lamina.core.audit.requests import list_requests


def gauge(page: Page) -> Locator:
    return page.get_by_role("region", name="This request")


def test_the_preview_is_digest_for_digest_what_is_sent(house: House) -> None:
    write_harbour(house.vault, house.vendor)
    page = house.visit("w/{w}/s/harbour")
    chat = ChatPage(page).shows("On Sunday it is open.")
    text = "See @berths.md : is berth 7 free?"
    with page.expect_response(
        lambda answer: "/preview" in answer.url and "berths" in (answer.request.post_data or "")
    ) as info:
        chat.box.fill(text)
    preview = info.value.json()
    expect(gauge(page)).to_contain_text("new")
    look(page, "chat-preview")
    house.vendor.says("It is free.")
    chat.box.press("Enter")
    chat.shows("It is free.")
    sent = list_requests(house.journal("harbour")).listed[-1].request
    shown = [segment["digest"] for segment in preview["segments"]]
    assert shown == list(digests_of(house, sent.id))
    assert preview["tokens"] == sent.tokens


def digests_of(house: House, request: str) -> list[str]:
    anatomy = house.api("GET", f"workspaces/{{w}}/sessions/harbour/requests/{request}")
    return [segment["digest"] for segment in anatomy["segments"]]


def test_what_does_not_fit_is_shown_before_it_is_sent(house: House) -> None:
    (house.vault / "log.md").write_text("The log of the harbour. " * 6_000, "utf-8")
    page = house.visit("w/{w}")
    session = house.new_session(settings={"window": 8_000, "output_reserve": 500})
    page.goto(house.url + house.place(f"w/{{w}}/s/{session}"))
    chat = ChatPage(page)
    chat.box.fill("Sum it up: @log.md ")
    expect(gauge(page)).to_contain_text(re.compile("left out"))
    expect(gauge(page)).to_contain_text("log.md")
    look(page, "chat-left-out")
    house.vendor.says("It is too long.")
    chat.box.press("Enter")
    chat.shows("It is too long.")
    context = house.api("GET", f"workspaces/{{w}}/sessions/{session}/requests")["requests"][-1]
    shown = house.api("GET", f"workspaces/{{w}}/sessions/{session}/context/{context['id']}")
    assert "log.md" in str(shown["left_out"])


def test_what_is_pinned_or_removed_changes_the_preview(house: House) -> None:
    write_harbour(house.vault, house.vendor)
    page = house.visit("w/{w}/s/harbour")
    chat = ChatPage(page).shows("On Sunday it is open.")
    chat.box.fill("And on Monday?")
    expect(gauge(page)).to_contain_text("style")
    house.api("POST", "workspaces/{w}/sessions/harbour/items/remove", {"what": "rule:style"})
    chat.box.fill("And on Tuesday?")
    expect(gauge(page)).not_to_contain_text("style")
