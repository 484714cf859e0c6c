"""Other people's pages: nothing that they send is heard, and nothing is told to them."""

import json
import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.browser.foreign import HOST, foreign_page
from tests.browser.house import House


def test_a_name_that_leads_here_is_not_answered(house: House) -> None:
    page = house.visit()
    house.allow(HOST)
    for path in ("", "?token=x", "api/workspaces", "assets/x.js"):
        answer = page.goto(house.url.replace("127.0.0.1", HOST) + path)
        assert answer is not None
        assert answer.status == 421
    page.goto(house.url)


def test_a_foreign_page_reads_and_changes_nothing(house: House) -> None:
    page = house.visit()
    before = known_folders()
    with foreign_page(house.url) as address:
        # All of it is refused, by the server or already by the browser.
        house.allow(HOST, "status 4", "failed: ", "console: ", "socket: ", "violation: ")
        page.goto(address)
        expect(page).to_have_title(re.compile("socket"))
        title = page.title()
        results = dict(part.split(": ") for part in title.split(", "))
        assert results.pop("blind") in ("opaque", "refused")
        assert results.pop("plain post") in ("opaque", "refused")
        assert set(results.values()) == {"refused"}, title
        frame = page.frame_locator("iframe").locator("main")
        expect(frame).to_have_count(0)
        page.get_by_role("button", name="Win").click()
        expect(page.locator("body")).to_contain_text("refused")
        assert known_folders() == before
        page.goto(house.url)


def known_folders() -> object:
    path = Path(os.environ["LAMINA_DATA"]) / "web-workspaces.json"
    return json.loads(path.read_text("utf-8"))


def test_an_address_works_once_and_a_stranger_is_told_what_to_do(house: House) -> None:
    page = house.visit()
    assert "token" not in page.url
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert house.door is not None
    stranger = page.context.browser
    assert stranger is not None
    other = stranger.new_context()
    try:
        fresh = other.new_page()
        address = f"{house.url}?token={house.door.issue_token()}"
        fresh.goto(address)
        expect(fresh.locator("main")).to_be_visible()
        other.clear_cookies()
        answer = fresh.goto(address)
        assert answer is not None
        assert answer.status == 401
        expect(fresh.locator("body")).to_contain_text("lamina web")
    finally:
        other.close()


@pytest.mark.parametrize("table", ["tcp", "tcp6"])
def test_nothing_listens_beyond_the_loopback(house: House, table: str) -> None:
    house.start_process()
    rows = [line.split() for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
    places = [row[1].split(":") for row in rows if row[3] == "0A"]
    port = f"{int(house.url.rsplit(':', 1)[1].strip('/')):04X}"
    assert {address for address, bound in places if bound == port} <= {"0100007F"}
