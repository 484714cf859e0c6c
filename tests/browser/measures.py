"""What a page holds and how long it takes, measured inside of it."""

from playwright.sync_api import Page
from tests.browser.house import House

# When the first messages had come, and when the first of them was painted, in ms of navigation.
FIRST_PAINT = """
window.firstPaint = null;
(() => {
  const look = () => {
    const row = document.querySelector('[role=log] article');
    if (!row) return requestAnimationFrame(look);
    requestAnimationFrame(() => {
      const data = performance.getEntriesByType('resource')
        .filter((entry) => /\\/messages(\\?|$)/.test(entry.name));
      window.firstPaint = { data: data.length ? data[0].responseEnd : 0, paint: performance.now() };
    });
  };
  requestAnimationFrame(look);
})();
"""
# How long every frame took, until it is stopped.
FRAMES = """
() => {
  const times = [];
  let last = performance.now(), goes = true;
  const tick = (now) => {
    times.push(now - last);
    last = now;
    if (goes) requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
  window.stopFrames = () => { goes = false; return times.slice(1); };
}
"""
# From the change of the address until the text stands in the window.
JUMP = """
([hash, text]) => new Promise((resolve) => {
  const start = performance.now();
  location.hash = hash;
  const look = () => {
    for (const row of document.querySelectorAll('[role=log] article')) {
      if (!row.textContent.includes(text)) continue;
      const box = row.getBoundingClientRect();
      if (box.bottom > 0 && box.top < innerHeight) return resolve(performance.now() - start);
    }
    if (performance.now() - start > 10000) return resolve(-1);
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})
"""


def rows_in_dom(page: Page) -> int:
    return page.locator("[role=log] article").count()


def heap_bytes(page: Page) -> int:
    """What is left after the page was cleaned up."""
    client = page.context.new_cdp_session(page)
    client.send("HeapProfiler.collectGarbage")
    used: int = client.send("Runtime.getHeapUsage")["usedSize"]
    client.detach()
    return used


def jump_time(page: Page, house: House, session: str, row: int) -> float:
    """How long it takes until a message stands in the window that was far away, in ms."""
    word = "Question" if row % 2 == 0 else "Answer"
    hash_ = house.place(f"w/{{w}}/s/{session}") + f"?row={row}"
    took: float = page.evaluate(JUMP, [hash_, f"{word} {row}"])
    assert took >= 0, f"row {row} did not come into the window"
    return took
