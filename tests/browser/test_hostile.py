"""Two hundred hostile strings everywhere a stranger's words are shown: none of them runs."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser.browser import run_apart
from tests.browser.hostile import MARK, STRINGS, as_file_name
from tests.browser.house import House
from tests.browser.pages import ChatPage

from lamina.apps.wiring.session_importer import import_data
from lamina.emulators.answers import EmulatedAnswer

SCROLL = """
async (element) => {
  // From the top to the bottom, so that every row was in the page once.
  element.scrollTop = 0;
  for (let last = -1; element.scrollTop !== last; ) {
    last = element.scrollTop;
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    element.scrollTop += element.clientHeight * 0.8;
  }
}
"""
# The element that scrolls, at or around what was found.
SCROLLER = """
(element) => {
  const all = [element, ...element.querySelectorAll('*')];
  return all.find((one) => one.scrollHeight > one.clientHeight + 4
    && /auto|scroll/.test(getComputedStyle(one).overflowY)) ?? element;
}
"""


def scroll_through(page: Page, selector: str) -> None:
    place = page.locator(selector).first.evaluate_handle(SCROLLER)
    page.evaluate(SCROLL, place)


def require_nothing_ran(house: House, page: Page) -> None:
    assert page.evaluate(f"() => document.documentElement.dataset.{MARK} ?? null") is None
    requests = [line for visitor in house.visitors for line in visitor.watch.requests]
    # Names of files and agents may stand in addresses of our own API.
    assert not [line for line in requests if MARK in line and "/api/" not in line]


def lines(texts: tuple[str, ...]) -> bytes:
    """A session of Claude Code in which a tool is called as each says, with its result."""
    rows: list[dict[str, object]] = []

    def add(kind: str, content: object, **more: object) -> None:
        at = len(rows)
        parent = f"u{at - 1}" if at else None
        rows.append(
            {
                "type": kind,
                "uuid": f"u{at}",
                "parentUuid": parent,
                "sessionId": "h",
                "timestamp": "2026-03-01T08:00:00Z",
                "message": {"role": kind, "content": content, **more},
            }
        )

    for number, text in enumerate(texts):
        call = f"t{number}"
        use = {"type": "tool_use", "id": call, "name": text, "input": {"path": text, text: text}}
        add("user", text)
        add("assistant", [{"type": "text", "text": text}, use], model=text, id=f"m{number}")
        add("user", [{"type": "tool_result", "tool_use_id": call, "content": text}])
        add("assistant", [{"type": "text", "text": f"Done: {text}"}], model="m", id=f"n{number}")
    return b"\n".join(json.dumps(row).encode() for row in rows) + b"\n"


async def write_session(vault: Path, session: str, data: bytes) -> None:
    await import_data(data, name="h.jsonl", session=session, workspace=vault, target="openai:gpt-5")


async def write_titles(vault: Path) -> None:
    for number, text in enumerate(STRINGS):
        row = {
            "type": "user", "uuid": "u0", "parentUuid": None, "sessionId": f"s{number}",
            "timestamp": "2026-03-01T08:00:00Z", "message": {"role": "user", "content": text},
        }  # fmt: skip
        await write_session(vault, f"s{number}", json.dumps(row).encode() + b"\n")


@pytest.mark.parametrize("half", [STRINGS[:100], STRINGS[100:]], ids=["first", "second"])
def test_as_questions_answers_tools_and_results(house: House, half: tuple[str, ...]) -> None:
    run_apart(write_session, house.vault, "hostile", lines(half))
    page = house.visit("w/{w}/s/hostile")
    expect(page.get_by_role("log").get_by_role("article").first).to_be_visible()
    # What is folded is opened on the way.
    page.evaluate(
        """() => new MutationObserver(() => {
          for (const fold of document.querySelectorAll('[role=log] details')) fold.open = true;
          for (const fold of document.querySelectorAll('[role=log] [aria-expanded=false]')) {
            if (!fold.dataset.opened) { fold.dataset.opened = 1; fold.click(); }
          }
        }).observe(document.querySelector('[role=log]'), { childList: true, subtree: true })"""
    )
    scroll_through(page, "[role=log]")
    page.goto(house.url + house.place("w/{w}/s/hostile/tree"))
    expect(page.get_by_role("tree")).to_be_visible()
    scroll_through(page, "main")
    require_nothing_ran(house, page)


def test_as_titles_of_sessions(house: House) -> None:
    run_apart(write_titles, house.vault)
    page = house.visit("w/{w}")
    rows = page.get_by_role("navigation", name="Sessions").get_by_role("listitem")
    expect(rows.first).to_be_visible()
    scroll_through(page, "nav[aria-label=Sessions]")
    page.goto(house.url + house.place("spending"))
    expect(page.get_by_role("main").get_by_role("heading").first).to_be_visible()
    require_nothing_ran(house, page)


def test_as_names_and_headings_of_notes(house: House) -> None:
    for text in STRINGS:
        name = as_file_name(text)
        heading = " ".join(text.split())
        note = f"# {heading}\n\nharbour tide {text}\n\n[[{heading}]] #x\n"
        (house.vault / f"{name}.md").write_text(note, "utf-8")
    page = house.visit("w/{w}/notes")
    box = page.get_by_role("searchbox").last
    for words in ("harbour tide", "alert hostile", "fetch", "dataset", "Image"):
        box.fill(words)
        box.press("Enter")
        expect(page.get_by_role("list", name="Passages").get_by_role("link").first).to_be_visible()
        scroll_through(page, "main")
    page.goto(house.url + house.place("w/{w}"))
    chat = ChatPage(page)
    # Offered while one types, attached, sent, and shown with the answer.
    chat.box.press_sequentially("@alert")
    expect(page.get_by_role("listbox").get_by_role("option").first).to_be_visible()
    chat.box.press("Enter")
    house.vendor.says(STRINGS[0])
    chat.box.press_sequentially(" what is it?")
    chat.box.press("Enter")
    expect(chat.log.get_by_role("article", name="Lamina").last).to_be_visible()
    require_nothing_ran(house, page)


def test_as_names_of_agents_and_their_rules(house: House) -> None:
    for number, text in enumerate(STRINGS):
        folder = house.vault / ".lamina" / "agents" / f"a{number}"
        (folder / "rules").mkdir(parents=True)
        quoted = json.dumps(text)
        (folder / "agent.yaml").write_text(f"name: {quoted}\ndescription: {quoted}\n", "utf-8")
        rule = f"---\nname: {quoted}\ndescription: {quoted}\ninclude: always\n---\n{text}\n"
        (folder / "rules" / "r.md").write_text(rule, "utf-8")
    page = house.visit("w/{w}/agents")
    expect(page.get_by_role("main").get_by_role("heading").first).to_be_visible()
    scroll_through(page, "main")
    for number in range(0, 200, 40):
        page.goto(house.url + house.place(f"w/{{w}}/agents/a{number}/rules"))
        expect(page.get_by_role("main").get_by_role("heading").first).to_be_visible()
    require_nothing_ran(house, page)


def test_as_citations_and_what_was_sent(house: House) -> None:
    for number, text in enumerate(STRINGS[:40]):
        note = f"# {' '.join(text.split())}\n\nThe tide at pier {number}: {text}\n"
        (house.vault / f"pier {number}.md").write_text(note, "utf-8")
    page = house.visit("w/{w}")
    session = house.new_session(mode="qa")
    page.goto(house.url + house.place(f"w/{{w}}/s/{session}"))
    chat = ChatPage(page)
    for number in range(3):
        cited = " ".join(f"{STRINGS[number * 5 + at]} [^{at + 1}]" for at in range(5))
        house.vendor.says(EmulatedAnswer(text=cited))
        chat.ask(f"The tide at pier {number}?")
        expect(chat.log.get_by_role("article", name="Lamina")).to_have_count(number + 1)
        expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    scroll_through(page, "[role=log]")
    sent = house.api("GET", f"workspaces/{{w}}/sessions/{session}/requests")["requests"]
    for view in ("context", "layers"):
        page.goto(house.url + house.place(f"w/{{w}}/s/{session}/{view}/{sent[-1]['id']}"))
        expect(page.get_by_role("main").get_by_role("heading").first).to_be_visible()
        scroll_through(page, "main")
    page.goto(
        house.url + house.place(f"w/{{w}}/s/{session}/difference/{sent[0]['id']}/{sent[-1]['id']}")
    )
    expect(page.get_by_role("main")).to_contain_text("Text before and after")
    require_nothing_ran(house, page)
