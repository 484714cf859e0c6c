"""The cache timeline on an emulated vendor: every break named and priced as its own report."""

import os
import re

from playwright.sync_api import Locator, Page, expect
from tests.browser.house import House
from tests.browser.pages import look
from tests.browser.played import play_breaks

KINDS = ["expected", "moved", "expected", "expired", "missed"]


def seeded(house: House) -> list[float | None]:
    """Plays the session; gives what the vendor charged for each request."""

    def connect(url: str) -> None:
        os.environ["OPENAI_BASE_URL"] = f"{url}/v1"

    rows = play_breaks(house.vault, "breaks", connect)
    os.environ["OPENAI_BASE_URL"] = f"{house.vendor.url}/v1"
    return [row.cost for row in rows]


def cells(page: Page, row: int) -> Locator:
    table = page.get_by_role("table", name="All requests with their cache use")
    return table.get_by_role("row").nth(row).get_by_role("cell")


def cents(text: str) -> float:
    return float(text.replace("$", "").replace(",", "").replace("~", "").strip())


def test_every_break_is_drawn_named_and_priced(house: House) -> None:
    charged = seeded(house)
    page = house.visit("w/{w}/s/breaks/timeline")
    table = page.get_by_role("table", name="All requests with their cache use")
    expect(table.get_by_role("row")).to_have_count(len(charged) + 1)
    paid = [cells(page, row).nth(6).inner_text() for row in range(1, len(charged))]
    # To the cent, and beyond it as far as it is shown.
    for told, cost in zip(paid, charged[:-1], strict=True):
        assert cost is not None
        assert abs(cents(told) - cost) <= 0.00051, (told, cost)
    panel = page.get_by_role("region", name="Breaks")
    expect(panel.get_by_role("listitem")).to_have_count(len(KINDS))
    for place, kind in enumerate(KINDS):
        expect(panel.get_by_role("listitem").nth(place)).to_contain_text(kind)
    expect(panel).to_contain_text("a person asked for it")
    expect(panel).to_contain_text("the cache had expired")
    expect(panel).to_contain_text("another machine")
    look(page, "timeline")


def test_what_was_not_reported_is_unknown_and_never_zero(house: House) -> None:
    charged = seeded(house)
    page = house.visit("w/{w}/s/breaks/timeline")
    last = cells(page, len(charged))
    for column in (3, 4, 5, 6):
        expect(last.nth(column)).to_have_text(re.compile("unknown|–|—"))
    expect(page.locator("dl")).to_contain_text("7 reported")
    for measure in ("Money", "Seconds"):
        page.get_by_role("tab", name=measure).click()
        expect(page.get_by_role("tab", name=measure)).to_have_attribute("aria-selected", "true")
    look(page, "timeline-seconds")


def test_two_requests_are_compared_down_to_the_byte_that_moved(house: House) -> None:
    seeded(house)
    page = house.visit("w/{w}/s/breaks/timeline")
    panel = page.get_by_role("region", name="Breaks")
    panel.get_by_role("listitem").nth(1).get_by_role("link", name="Show what changed").click()
    expect(page).to_have_url(re.compile("/difference/"))
    body = page.get_by_role("main")
    expect(body).to_contain_text("It is noon.")
    expect(body).to_contain_text("system:hour")
    expect(body).to_contain_text("First byte")
    look(page, "difference")
    page.go_back()
    # By keyboard and checkbox, any two.
    for number in (1, 8):
        page.get_by_role("checkbox", name=f"Compare request {number}").check()
    page.get_by_role("link", name="Compare the two").click()
    expect(body).to_contain_text("First byte")
