"""Every screen, wide and on a phone, light and dark: drawn, axe clean, no wider than its window."""

import pytest
from playwright.sync_api import Page, expect
from tests.browser.house import House
from tests.browser.pages import NARROW, PHONE, WIDE, look
from tests.browser.seeds import write_harbour

# By name: where it is, and words that stand there when it is ready.
SCREENS = {
    "start": ("", ""),
    "new-chat": ("w/{w}", ""),
    "chat": ("w/{w}/s/harbour", "On Sunday it is open."),
    "context": ("w/{w}/s/harbour/context/{last}", "Rules"),
    "layers": ("w/{w}/s/harbour/layers/{last}", "system"),
    "timeline": ("w/{w}/s/harbour/timeline", "Hit rate"),
    "difference": ("w/{w}/s/harbour/difference/{first}/{last}", "Text before and after"),
    "tree": ("w/{w}/s/harbour/tree", "weekend"),
    "session-doctor": ("w/{w}/s/harbour/doctor", ""),
    "doctor": ("doctor", ""),
    "spending": ("spending", ""),
    "agents": ("w/{w}/agents", "pilot"),
    "agent-rules": ("w/{w}/agents/pilot/rules", "tides"),
    "agent-persona": ("w/{w}/agents/pilot/persona", ""),
    "notes": ("w/{w}/notes", ""),
    "models": ("models", ""),
    "settings": ("settings", ""),
    "settings-keys": ("settings/keys", ""),
}


def settled(page: Page, words: str) -> None:
    """Everything was fetched and drawn."""
    main = page.get_by_role("main")
    if words:
        expect(main.get_by_text(words, exact=False).first).to_be_visible()
    expect(main.get_by_role("heading").first).to_be_visible()
    expect(page.locator("[aria-busy=true], .spinner")).to_have_count(0)


# On one server each, so that the session is played once.
GROUPS = {
    "session": ("chat", "tree", "timeline", "session-doctor"),
    "request": ("context", "layers", "difference"),
    "workspace": ("start", "new-chat", "agents", "agent-rules", "agent-persona", "notes"),
    "machine": ("doctor", "spending", "models", "settings", "settings-keys"),
}
VARIANTS = (
    ("wide-light", WIDE, "light"),
    ("wide-dark", WIDE, "dark"),
    ("phone-dark", PHONE, "dark"),
    ("phone-light", PHONE, "light"),
    ("narrow-light", NARROW, "light"),
)


def test_every_screen_is_in_a_group() -> None:
    assert sorted(SCREENS) == sorted(name for names in GROUPS.values() for name in names)


@pytest.mark.parametrize("group", GROUPS)
def test_screens_are_drawn_in_every_size_and_colour(house: House, group: str) -> None:
    write_harbour(house.vault, house.vendor)
    page = house.visit("settings")
    sent = house.api("GET", "workspaces/{w}/sessions/harbour/requests")["requests"]
    for name in GROUPS[group]:
        place, words = SCREENS[name]
        place = place.replace("{first}", sent[0]["id"]).replace("{last}", sent[-1]["id"])
        page.goto(house.url + house.place(place))
        for variant, (width, height), scheme in VARIANTS:
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            settled(page, words)
            look(page, f"{name}-{variant}")


@pytest.mark.parametrize("name", ["chat", "context"])
def test_a_screen_works_at_twice_its_size_with_few_colours_and_no_motion(
    house: House, name: str
) -> None:
    write_harbour(house.vault, house.vendor)
    place, words = SCREENS[name]
    page = house.visit(
        size=(640, 512), device_scale_factor=2, reduced_motion="reduce", forced_colors="active"
    )
    sent = house.api("GET", "workspaces/{w}/sessions/harbour/requests")["requests"]
    page.goto(house.url + house.place(place.replace("{last}", sent[-1]["id"])))
    settled(page, words)
    look(page, f"{name}-zoomed-forced")
