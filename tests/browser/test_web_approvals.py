"""Calls that wait for a person: they wait in the journal, for whoever looks first."""

from playwright.sync_api import Locator, Page, expect
from tests.browser.house import House
from tests.browser.pages import PHONE, ChatPage, look

from lamina.emulators.answers import EmulatedAnswer, EmulatedCall

EDIT = EmulatedCall(
    name="edit", arguments={"path": "berths.md", "old": "twelve berths", "new": "thirteen berths"}
)
WRITE = EmulatedCall(name="write", arguments={"path": "new.md", "content": "# New\n\nA note.\n"})


def waiting(house: House, page: Page, *calls: EmulatedCall) -> str:
    """A session in which these calls wait; gives its id."""
    session = house.new_session(files=True, name="Changes")
    page.goto(f"{house.url}{house.place(f'w/{{w}}/s/{session}')}")
    house.vendor.says(EmulatedAnswer(text="I shall change it.", calls=calls), "It is done.")
    ChatPage(page).ask("There are thirteen berths.")
    expect(approvals(page)).to_be_visible()
    return session


def approvals(page: Page) -> Locator:
    return page.get_by_role("region", name="Waiting for you")


def text(house: House, name: str = "berths.md") -> str:
    return (house.vault / name).read_text("utf-8")


def test_a_call_waits_over_a_reload_and_is_allowed_in_another_tab(house: House) -> None:
    page = house.visit("w/{w}")
    session = waiting(house, page, EDIT)
    expect(page.get_by_role("status")).to_contain_text("waiting for you")
    # The change itself can be read: what goes, and what comes.
    expect(approvals(page)).to_contain_text("twelve berths")
    expect(approvals(page)).to_contain_text("thirteen berths")
    look(page, "chat-approval")
    page.reload()
    expect(approvals(page)).to_be_visible()
    other = house.tab(f"w/{{w}}/s/{session}")
    approvals(other).get_by_role("button", name="Allow once").click()
    for tab in (other, page):
        ChatPage(tab).shows("It is done.")
        expect(approvals(tab)).to_have_count(0)
    assert "thirteen berths" in text(house)
    assert house.answers(session)[-1] == "It is done."


def test_a_call_is_denied_on_a_phone(house: House) -> None:
    page = house.visit("w/{w}", size=PHONE, has_touch=True, is_mobile=True)
    waiting(house, page, EDIT)
    look(page, "phone-approval")
    approvals(page).get_by_role("button", name="Deny").tap()
    ChatPage(page).shows("It is done.")
    assert "twelve berths" in text(house)


def test_two_calls_wait_and_the_answer_goes_on_when_both_are_decided(house: House) -> None:
    page = house.visit("w/{w}")
    session = waiting(house, page, EDIT, WRITE)
    expect(approvals(page).get_by_role("article")).to_have_count(2)
    look(page, "chat-two-approvals")
    # By keyboard, out of the message box: the first is denied, the second allowed.
    page.keyboard.press("Tab")
    page.keyboard.press("d")
    expect(approvals(page).get_by_role("article")).to_have_count(1)
    page.keyboard.press("a")
    ChatPage(page).shows("It is done.")
    assert "twelve berths" in text(house)
    assert text(house, "new.md") == "# New\n\nA note.\n"
    assert house.answers(session)[-1] == "It is done."


def test_a_call_waits_while_the_server_is_restarted(house: House) -> None:
    page = house.visit("w/{w}")
    session = waiting(house, page, EDIT)
    house.allow("ERR_", "offline")
    house.stop()
    house.start()
    page.reload()
    expect(approvals(page)).to_contain_text("thirteen berths")
    approvals(page).get_by_role("button", name="Allow for this session").click()
    ChatPage(page).shows("It is done.")
    assert "thirteen berths" in text(house)
    # Allowed for the session: the next one runs without asking.
    again = EmulatedCall(
        name="edit", arguments={"path": "berths.md", "old": "thirteen", "new": "twelve"}
    )
    house.vendor.says(EmulatedAnswer(calls=(again,)), "Back as it was.")
    ChatPage(page).ask("No, twelve.").shows("Back as it was.")
    assert "twelve berths" in text(house)
    assert house.answers(session)[-1] == "Back as it was."
