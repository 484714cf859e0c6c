"""One Chromium per test process, on a thread of its own.

Playwright's blocking API keeps an event loop running on the thread that it was started on, where
nothing else could then run one. So it lives on this thread, and tests with a page run there too.
"""

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from anyio.from_thread import start_blocking_portal
from playwright.sync_api import Browser, Playwright, sync_playwright
from tests.browser.chromium import ensure, launch_arguments

T = TypeVar("T")


def run_apart(work: Callable[..., Awaitable[T]], *arguments: Any) -> T:
    """Runs something async on a thread of its own: the browser's has a loop already."""
    with start_blocking_portal() as portal:
        return portal.call(work, *arguments)


class BrowserThread:
    """Starts the browser with the first call that needs it."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "browser")
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None

    def run(self, work: Callable[[], T]) -> T:
        """Runs `work` on the browser's thread; what it raises is raised here."""
        return self._thread.submit(work).result()

    @property
    def browser(self) -> Browser:
        """The browser; only on its own thread."""
        if self._browser is None:
            self._playwright = sync_playwright().start()
            self._browser = self._playwright.chromium.launch(
                executable_path=ensure(), args=launch_arguments()
            )
        return self._browser

    def close(self) -> None:
        self.run(self._close)
        self._thread.shutdown()

    def _close(self) -> None:
        if self._browser is not None:
            self._browser.close()
        if self._playwright is not None:
            self._playwright.stop()
