"""A tab on the app, and what a person does there in one breath."""

import os
import re
from pathlib import Path
from typing import Any, Self

from playwright.sync_api import Browser, Locator, Page, expect
from tests.browser.axe import require_accessible
from tests.browser.watch import Watch

WIDE, PHONE, NARROW = (1280, 860), (390, 844), (320, 640)
# Where every screen that a test looks at is drawn, if anybody wants to see.
SCREENSHOTS = "LAMINA_SCREENSHOTS"
expect.set_options(timeout=15_000)


class Visitor:
    """A browser of its own: its cookies, its tabs, and what they did wrong."""

    def __init__(self, browser: Browser, address: str, **options: Any) -> None:
        width, height = options.pop("size", WIDE)
        self.context = browser.new_context(
            viewport={"width": width, "height": height},
            locale="en-GB",
            timezone_id="UTC",
            **options,
        )
        self.context.set_default_timeout(15_000)
        self.watch = Watch(self.context)
        self.page = self.context.new_page()
        self.page.goto(address)

    def new_page(self, address: str) -> Page:
        page = self.context.new_page()
        page.goto(address)
        return page

    def finish(self, *, has_passed: bool = True) -> None:
        """Asks every tab that is still open whether it is in order, and leaves."""
        try:
            if has_passed:
                for page in self.context.pages:
                    if not page.is_closed() and page.url.startswith("http"):
                        require_accessible(page)
                self.watch.require_clean()
        finally:
            self.context.close()


class ChatPage:
    """The chat of a session, by the names that its parts have for everybody."""

    def __init__(self, page: Page) -> None:
        self.page = page

    @property
    def box(self) -> Locator:
        return self.page.get_by_role("textbox", name="Message")

    @property
    def log(self) -> Locator:
        return self.page.get_by_role("log")

    def ask(self, text: str) -> Self:
        self.box.fill(text)
        self.page.get_by_role("button", name="Send").click()
        return self

    def shows(self, text: str | re.Pattern[str]) -> Self:
        expect(self.log.get_by_text(text).last).to_be_visible()
        return self


def look(page: Page, name: str = "") -> None:
    """What every screen has to pass when it is shown; draws it, if it is wanted."""
    require_accessible(page)
    require_no_overflow(page)
    if (folder := os.environ.get(SCREENSHOTS)) and name:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder, f"{name}.png"))


def require_no_overflow(page: Page) -> None:
    """Nothing makes the page wider than the window."""
    wide = page.evaluate(
        "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert wide <= 0, f"{page.url} is {wide} px wider than its window"
