"""The web app with a session of 100,000 messages, with 500 pieces of an answer a second, and while
somebody types: what its DOM holds, how long frames take, and how soon something is seen.

python bench/web.py [--messages N] [--seconds S] [--json FILE]

Everything is real: Chromium, the server and its journal; the vendor is emulated. The app has to be
built (`make app`).
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.browser.browser import BrowserThread
from tests.browser.house import House
from tests.browser.long_session import write_long_session
from tests.browser.measures import FIRST_PAINT, FRAMES, heap_bytes, jump_time, rows_in_dom
from tests.browser.pages import ChatPage
from tests.browser.vault import write_vault
from tests.browser.vendor import Vendor

from versions import version

RATE = 500
PATIENCE_MS = 120_000
LIMITS = {
    "rows in the DOM": 100,
    "first paint after data, ms": 1_000,
    "jump to the first, ms": 200,
    "jump to the last, ms": 200,
    "jump to the middle, ms": 200,
    "heap, MB": 150,
    "frames at 500 pieces a second, p95 ms": 50,
}


def measure_long_session(house: House, messages: int) -> dict[str, float]:
    page = house.visit()
    page.add_init_script(FIRST_PAINT)
    page.goto("about:blank")
    page.goto(house.url + house.place("w/{w}/s/long"))
    page.wait_for_function("() => window.firstPaint")
    paint = page.evaluate("() => window.firstPaint")
    figures = {
        "navigation to data, ms": paint["data"],
        "first paint after data, ms": paint["paint"] - paint["data"],
        "rows in the DOM": max(rows_in_dom(page), 0),
    }
    jumps: dict[str, list[float]] = {"first": [], "last": [], "middle": []}
    for round_ in range(3):
        # Never where one is already, and the middle never twice.
        places = {"first": 0, "last": messages - 1, "middle": messages // (round_ + 3)}
        for name, place in places.items():
            jumps[name].append(jump_time(page, house, "long", place))
            figures["rows in the DOM"] = max(figures["rows in the DOM"], rows_in_dom(page))
    for name, times in jumps.items():
        figures[f"jump to the {name}, ms"] = median(times)
    figures["heap, MB"] = heap_bytes(page) / 1e6
    return figures


def measure_stream(house: House, vendor: Vendor, seconds: float) -> dict[str, float]:
    words = int(RATE * seconds)
    # Paragraphs, lists and code, as answers have them.
    text = " ".join(
        f"word{at}" + ("\n\n" if at % 60 == 59 else "\n- item" if at % 25 == 24 else "")
        for at in range(words)
    )
    vendor.says(text)
    vendor.pace(RATE)
    page = house.visit("w/{w}")
    chat = ChatPage(page)
    chat.ask("Tell me everything.")
    page.get_by_text("word10 ").first.wait_for()
    page.evaluate(FRAMES)
    page.get_by_text(f"word{words - 1}").first.wait_for(timeout=(seconds * 4 + 60) * 1_000)
    frames = sorted(page.evaluate("() => window.stopFrames()"))
    vendor.pace(None)
    return {
        "frames at 500 pieces a second": len(frames),
        "frames at 500 pieces a second, p50 ms": frames[len(frames) // 2],
        "frames at 500 pieces a second, p95 ms": frames[int(len(frames) * 0.95)],
        "frames at 500 pieces a second, max ms": frames[-1],
    }


def measure_preview(house: House, session: str, what: str, rounds: int) -> dict[str, float]:
    """From a key to the figures of what would be sent."""
    page = house.visit(f"w/{{w}}/s/{session}")
    page.set_default_timeout(PATIENCE_MS)
    chat = ChatPage(page)
    chat.box.wait_for()
    times = []
    for at in range(rounds):
        with page.expect_response(lambda answer: "/preview" in answer.url) as info:
            start = page.evaluate("() => performance.now()")
            chat.box.press_sequentially(f"{at} ")
        info.value.finished()
        times.append(page.evaluate("() => performance.now()") - start)
    # The first one opens the session.
    first, *times = times
    times.sort()
    return {
        f"preview in a {what} session, first ms": first,
        f"preview in a {what} session, p50 ms": times[len(times) // 2],
        f"preview in a {what} session, max ms": times[-1],
    }


@contextmanager
def opened(messages: int) -> Iterator[tuple[House, Vendor, BrowserThread]]:
    with TemporaryDirectory() as folder:
        own = {"LAMINA_DATA": f"{folder}/data", "LAMINA_CACHE": f"{folder}/cache"}
        os.environ.update(own | {"LAMINA_EMBED": "off"})
        vault = Path(folder, "harbour")
        vault.mkdir()
        write_vault(vault)
        vendor, thread = Vendor(), BrowserThread()
        os.environ.update(vendor.environment)
        write_long_session(vault, messages)
        write_long_session(vault, 40, "short")
        house = House(vault, vendor, thread)
        house.start()
        try:
            yield house, vendor, thread
        finally:
            thread.run(lambda: house.leave(has_passed=False))
            house.stop()
            vendor.close()
            thread.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="how long the answer streams")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    args = parser.parse_args()
    with opened(args.messages) as (house, vendor, thread):
        figures: dict[str, float] = thread.run(lambda: measure_long_session(house, args.messages))
        figures |= thread.run(lambda: measure_stream(house, vendor, args.seconds))
        figures |= thread.run(lambda: measure_preview(house, "short", "short", 12))
        figures |= thread.run(lambda: measure_preview(house, "long", "long", 4))
        versions: dict[str, Any] = {
            "lamina": version("lamina"),
            "playwright": version("playwright"),
            "chromium": thread.run(lambda: thread.browser.version),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
        }
    print(", ".join(f"{name} {value}" for name, value in versions.items()))
    print(f"a session of {args.messages:,} messages")
    failed = []
    for name, value in figures.items():
        limit = LIMITS.get(name)
        print(f"  {name:42} {value:10,.1f}" + (f"   limit {limit:,}" if limit else ""))
        if limit is not None and value >= limit:
            failed.append(name)
    if args.json:
        report = {"versions": versions, "messages": args.messages, "figures": figures}
        args.json.write_text(json.dumps(report, indent=2) + "\n")
    if failed:
        print(f"over the limit: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
