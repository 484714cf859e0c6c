"""The message box: what is asked is seen as asked, and its buttons stay where they are."""

from playwright.sync_api import FloatRect, Locator, Route, expect
from tests.browser.house import House
from tests.browser.pages import ChatPage, look

# A name that no bar has room for, and a model whose name fills the box.
LONG = "What is said of the harbour, of its berths and of the lights on the north pier? " * 2


def test_the_first_question_is_seen_as_asked_at_once(house: House) -> None:
    page = house.visit()
    held: list[Route] = []
    # The server is busy: it takes its time to begin a session.
    page.route("**/sessions", lambda route: hold(route, held))
    house.vendor.hold()
    chat = ChatPage(page)
    chat.ask("When can I come in?")
    chat.shows("When can I come in?")
    expect(chat.box).to_have_value("")
    look(page, "new-session-asked")
    held.pop().continue_()
    # Nothing is lost on the way into the session, and the next words go to the box.
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    chat.shows("When can I come in?")
    expect(chat.box).to_be_focused()
    house.vendor.release()
    chat.shows("You said: When can I come in?")
    expect(chat.log.get_by_role("article", name="You")).to_have_count(1)


def test_a_question_that_is_refused_comes_back_into_the_box(house: House) -> None:
    page = house.visit()
    page.route("**/sessions", lambda route: route.abort() if is_post(route) else route.continue_())
    house.allow("ERR_FAILED")
    chat = ChatPage(page)
    chat.ask("When can I come in?")
    expect(page.get_by_role("alert")).to_contain_text("is not responding")
    expect(chat.box).to_have_value("When can I come in?")


def test_nothing_that_can_be_pressed_is_covered(house: House) -> None:
    session = house_with_long_names(house)
    page = house.visitors[-1].page
    page.goto(f"{house.url}{house.place(f'w/{{w}}/s/{session}')}")
    chat = ChatPage(page).ask("Hello")
    chat.shows("You said: Hello")
    chat.box.fill("And then?")
    for width in (1920, 1280, 1000, 800):
        page.set_viewport_size({"width": width, "height": 800})
        expect(page.get_by_role("button", name="Send")).to_be_visible()
        require_apart(page.locator("main header").first, width)
        require_apart(page.get_by_role("form", name="Message"), width)
        send, box = place(page.get_by_role("button", name="Send")), place(chat.box)
        assert send["x"] + send["width"] / 2 > box["x"] + box["width"] / 2, (
            f"Send is left at {width}"
        )
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_role("button", name="More for this session").click()
    page.get_by_role("menuitem", name="Summarise history now").click()
    notice = page.get_by_role("region", name="Notices").locator("div").first
    expect(notice).to_be_visible()
    box, notes = place(page.get_by_role("form", name="Message")), place(notice)
    assert notes["y"] + notes["height"] <= box["y"]


def house_with_long_names(house: House) -> str:
    house.visit("settings")
    return house.new_session(name=LONG[:200], target="openai:gpt-4o-mini-2024-07-18", files=True)


def hold(route: Route, held: list[Route]) -> None:
    if is_post(route):
        held.append(route)
    else:
        route.continue_()


def is_post(route: Route) -> bool:
    return route.request.method == "POST"


def place(locator: Locator) -> FloatRect:
    box = locator.bounding_box()
    assert box is not None
    return box


def require_apart(inside: Locator, width: int) -> None:
    """No link or button lies upon another, or beyond the window."""
    boxes = [
        (element.inner_text() or element.get_attribute("aria-label") or "", place(element))
        for element in inside.locator("a, button").all()
        if element.is_visible()
    ]
    assert boxes
    for at, (name, one) in enumerate(boxes):
        assert one["x"] + one["width"] <= width, f"{name} is cut off at {width}"
        for other, two in boxes[at + 1 :]:
            x = min(one["x"] + one["width"], two["x"] + two["width"]) - max(one["x"], two["x"])
            y = min(one["y"] + one["height"], two["y"] + two["height"]) - max(one["y"], two["y"])
            assert x <= 1 or y <= 1, f"{name} and {other} overlap at {width}"


def test_a_model_is_chosen_by_typing_a_part_of_its_name(house: House) -> None:
    page = house.visit()
    page.get_by_role("button", name="openai:gpt-5").click()
    search = page.get_by_role("textbox", name="Search models")
    expect(search).to_be_focused()
    search.fill("gpt-5 nano")
    best = page.get_by_role("list", name="Models").get_by_role("button").first
    expect(best).to_contain_text("openai:gpt-5-nano")
    search.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="openai:gpt-5-nano")).to_be_visible()


def test_an_at_sign_offers_the_rules_of_the_agent_and_names_each_kind_once(house: House) -> None:
    page = house.visit()
    page.get_by_role("combobox", name="Agent").select_option("pilot")
    chat = ChatPage(page)
    chat.box.press_sequentially("@t")
    offered = page.get_by_role("listbox").get_by_role("option")
    expect(offered.filter(has_text="high water")).to_contain_text("rule")
    chat.box.fill("")
    chat.box.press_sequentially("@berths")
    expect(offered).to_have_count(1)
    assert offered.inner_text().split() == ["berths.md", "note"]
    chat.box.press("Enter")
    expect(chat.box).to_have_value("@berths.md ")
