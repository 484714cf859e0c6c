"""Requests looked at: taken apart, on the wire, compared, and with the reason for each item."""

from pathlib import Path

import pytest
from tests.apps.web.served_house import Json, ServedHouse, refused
from tests.apps.web.test_cache_timeline import seed_breaks
from tests.browser.vendor import Vendor

from lamina.core.codec import segment_digest
from lamina.core.values.message import Text
from lamina.emulators.answers import EmulatedAnswer, EmulatedCall

READ = EmulatedCall(name="read", arguments={"path": "plan.md"})
GUIDE = "---\ndescription: {about}\ninclude: {include}\npriority: {level}\n---\n{text}\n"
GUIDES = {
    "rules/tone.md": ("How answers sound.", "always", 5, "Be brief."),
    "rules/tides.md": ("When it is about low tide and high tide.", "agent", 20, "Say the hour."),
    "rules/berths.md": ("When it is about a berth for a ship at the quay.", "agent", 30, "Nine."),
    "rules/dues.md": ("When it is about dues a ship pays at the pier.", "agent", 40, "Ask first."),
    "rules/pilots.md": ("When it is about a ship and its pilot.", "agent", 50, "Name them."),
    "references/words.md": ("Words of the sea.", "always", 500, "Ebb: water that goes."),
}


def write_agent(folder: Path, **settings: str) -> None:
    agent = folder / ".lamina/agents/master"
    for path, (about, include, level, text) in GUIDES.items():
        (agent / path).parent.mkdir(parents=True, exist_ok=True)
        guide = GUIDE.format(about=about, include=include, level=level, text=text)
        (agent / path).write_text(guide, "utf-8")
    lines = [f"{name}: {value}" for name, value in settings.items()]
    (agent / "agent.yaml").write_text("\n".join(["name: master", *lines, ""]), "utf-8")
    (agent / "persona.md").write_text("You are the harbour master.\n", "utf-8")


@pytest.fixture
def talked(house: ServedHouse) -> str:
    """Three questions, the second with a note that the third names again."""
    session = house.begin()
    house.ask(session, "When is low tide?", attach=["sea/tides.md"])
    (house.folder / "sea/tides.md").write_text("# Tides\n\nLow tide is at one.\n", "utf-8")
    house.ask(session, "And now?", attach=["sea/tides.md"])
    house.ask(session, "And the plan?", attach=["plan.md"])
    return session


def ids(house: ServedHouse, session: str) -> list[str]:
    return [row["id"] for row in house.get(session, "/requests")["requests"]]


def test_requests_are_listed_with_what_their_provider_reported(
    house: ServedHouse, talked: str
) -> None:
    rows = house.get(talked, "/requests")["requests"]
    assert [row["number"] for row in rows] == [1, 2, 3]
    assert [row["question_text"] for row in rows] == [
        "When is low tide?", "And now?", "And the plan?",
    ]  # fmt: skip
    for row in rows:
        assert row["agree"] + row["new"] == row["tokens"]
        assert 0 <= row["cached"] <= row["input"]
        assert row["cost"] > 0
        assert row["step"] == "question"


def test_every_segment_has_the_text_that_its_digest_is_of(house: ServedHouse, talked: str) -> None:
    last = house.get(talked, f"/requests/{ids(house, talked)[-1]}")
    assert last["proven"]
    assert last["problems"] == []
    start = 0
    for segment in last["segments"]:
        if segment["kind"] == "text":
            digests = {
                segment_digest(segment["role"], Text(segment["text"]), opens=opens)
                for opens in (True, False)
            }
            assert segment["digest"] in digests
            assert segment["bytes"] == len(segment["text"].encode())
        assert segment["start"] == start
        start += segment["tokens"]
    assert start == last["tokens"] == sum(layer["tokens"] for layer in last["layers"])
    for layer in last["layers"]:
        own = [s for s in last["segments"] if s["layer"] == layer["layer"]]
        assert layer["tokens"] == sum(segment["tokens"] for segment in own)
        assert layer["agree"] + layer["new"] == layer["tokens"]


def test_a_segment_says_when_it_was_first_sent_why_and_what_it_replaced(
    house: ServedHouse, talked: str
) -> None:
    first, second, third = ids(house, talked)
    segments = house.get(talked, f"/requests/{third}")["segments"]
    by_item: dict[str, list[Json]] = {}
    for segment in segments:
        by_item.setdefault(segment["item"], []).append(segment)
    old, new = by_item["note:sea/tides.md"]
    assert (old["first_number"], old["first_request"]) == (1, first)
    assert (new["first_number"], new["first_request"]) == (2, second)
    (plan,) = by_item["note:plan.md"]
    assert (plan["first_number"], plan["state"]) == (3, "new")
    assert plan["why"] == "attached to this message"
    assert "does not name it" in old["why"]
    (again,) = [
        segment
        for segment in house.get(talked, f"/requests/{second}")["segments"]
        if segment["item"] == "note:sea/tides.md" and segment["state"] == "new"
    ]
    assert "Low tide is at noon." in again["replaced"]["text"]
    assert not again["replaced"]["is_gone"]
    assert again["replaced"]["request"] == 1


def test_what_a_provider_read_is_cached_and_the_rest_is_not(house: ServedHouse) -> None:
    (house.folder / "long.md").write_text("The tide comes and goes. " * 800, "utf-8")
    session = house.begin()
    house.ask(session, "What is this?", attach=["long.md"])
    house.ask(session, "And then?")
    _, second = ids(house, session)
    anatomy = house.get(session, f"/requests/{second}")
    states = [segment["state"] for segment in anatomy["segments"]]
    assert states[0] == "cached"
    assert states[-1] == "new"
    # A cache serves a prefix, and nothing behind it.
    assert states == sorted(states, key=("cached", "agrees", "new").index)
    read = sum(segment["cached_tokens"] for segment in anatomy["segments"])
    assert read == anatomy["cached"] == sum(layer["cached"] for layer in anatomy["layers"])


def test_the_wire_is_what_the_vendor_got(house: ServedHouse, talked: str) -> None:
    last = ids(house, talked)[-1]
    wire = house.get(talked, f"/requests/{last}/wire")
    assert wire["problems"] == []
    assert wire["wire"] == "openai"
    sent = house.vendor.emulator.bodies[-1]
    assert wire["body"]["messages"] == sent["messages"]


def test_a_later_request_of_a_turn_has_its_context_too(house: ServedHouse, vendor: Vendor) -> None:
    session = house.begin(files=True, settings={"ask_before_tools": "never"})
    vendor.says(EmulatedAnswer(calls=(READ,)), "In May.")
    house.ask(session, "When does the pier open?")
    rows = house.get(session, "/requests")["requests"]
    assert [row["step"] for row in rows] == ["question", "results"]
    context = house.get(session, f"/context/{rows[1]['id']}")
    assert context["question"] == "When does the pier open?"
    assert (context["question_number"], context["questions"]) == (1, 1)
    assert {row["what"] for row in context["also_sent"]} >= {"tools", "steps", "results"}
    assert {tool["name"] for tool in context["tools"]} >= {"read"}
    assert context["previous"] == rows[0]["id"]


def test_rules_references_and_near_misses_are_told_with_scores_and_thresholds(
    house: ServedHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_agent(house.folder, search="{preset: normal, top_n: 1, top_k: 5}")
    session = house.begin(agent="master")
    house.ask(session, "Which berth at the quay has the ship?")
    (request,) = ids(house, session)
    context = house.get(session, f"/context/{request}")
    rules = [(rule["place"], rule["name"], rule["badge"]) for rule in context["rules"]]
    assert rules[0] == ("005 •", "tone", "Always")
    assert any(name == "berths" and badge.startswith("Agent") for _, name, badge in rules)
    assert [r["name"] for r in context["references"]] == ["words"]
    near = {miss["name"]: miss for miss in context["near"]}
    assert near
    assert "berths" not in near
    for miss in near.values():
        assert miss["as_of"] == "request"
        assert (miss["floor"], miss["threshold"], miss["most"]) == (0.15, 0.7, 1)
        assert miss["why"]
    assert all(left["reason"] != "ranked_lower" for left in context["left_out"])


def test_what_was_left_out_says_why(house: ServedHouse) -> None:
    session = house.begin()
    house.ask(session, "What of this?", attach=["nowhere.md", "plan.md"])
    context = house.get(session, f"/context/{ids(house, session)[0]}")
    assert [(left["what"], left["reason"]) for left in context["left_out"]] == [
        ("note:nowhere.md", "missing")
    ]
    notes = {row["what"]: row for row in context["also_sent"]}
    assert notes["note"]["count"] == 1
    assert notes["note"]["tokens"] > 0
    assert [item["item"] for item in context["items"]] == ["note:plan.md"]


def test_the_first_moved_byte_is_named_with_who_moved_it_and_what_it_cost(
    house: ServedHouse,
) -> None:
    seed_breaks(house)
    requests = ids(house, "breaks")
    third, fourth = requests[2], requests[3]
    difference = house.get("breaks", f"/requests/{third}/difference/{fourth}")
    moved = difference["moved"]
    assert (moved["layer"], moved["source"]) == ("L1", "system:hour")
    assert not moved["expected"]
    before = house.get("breaks", f"/requests/{third}")["segments"]
    assert (
        moved["byte"] == sum(s["bytes"] for s in before[: moved["segment"]]) + moved["in_segment"]
    )
    assert "bytes" in moved["bytes_counted"]
    assert [(mover["kind"], mover["reason"]) for mover in difference["movers"]] == [
        ("hook", "the hour")
    ]
    assert "set_hour" in difference["movers"][0]["name"]
    assert "ephemeral" in difference["fix"]
    timeline = house.get("breaks", "/timeline")["rows"][3]["broke"]
    assert (difference["again"], difference["price"]) == (timeline["tokens"], timeline["price"])
    assert ("added", "It is noon.") in [
        (line["mark"], line["text"]) for line in difference["lines"]
    ]


def test_a_changed_part_is_shown_line_by_line(house: ServedHouse) -> None:
    session = house.begin(system="Be brief.\nName the hour.\nBe kind.")
    house.ask(session, "When?")
    # Another branch of the same session, with another question in its place.
    rows = house.rows(session)
    turn = house.post(session, "/edit", {"question": rows[0]["id"], "text": "When exactly?"})
    house.watch(session, turn["turn"])
    one, other = ids(house, session)
    difference = house.get(session, f"/requests/{one}/difference/{other}")
    assert not difference["is_base"]
    assert [(line["mark"], line["text"]) for line in difference["lines"]] == [
        ("removed", "When?"), ("added", "When exactly?"),
    ]  # fmt: skip
    assert difference["moved"]["in_segment"] == len("When")
    same = house.get(session, f"/requests/{one}/difference/{one}")
    assert (same["moved"], same["again"], same["lines"]) == (None, 0, [])


FOREIGN = ("999999", "%2e%2e", "%2e%2e%2f%2e%2e", "a" * 3_000, "%00", "1", "%F0%9F%92%A3")


def test_a_request_of_nobody_is_not_found(house: ServedHouse, talked: str) -> None:
    for rest in ("/requests/{x}", "/requests/{x}/wire", "/context/{x}",
                 "/requests/{x}/difference/{x}"):  # fmt: skip
        for foreign in FOREIGN:
            answer = house.client.get(house.place(talked, rest.replace("{x}", foreign)))
            assert answer.status_code == 404, (rest, foreign, answer.status_code, answer.text)


def test_a_session_of_nobody_is_not_found(house: ServedHouse) -> None:
    for rest in ("/requests", "/timeline", "/tree", "/verify", "/doctor", "/spending",
                 "/requests/last", "/context/last"):  # fmt: skip
        for foreign in (*FOREIGN, "nobody"):
            answer = house.client.get(house.place(foreign, rest))
            assert answer.status_code == 404, (rest, foreign, answer.status_code, answer.text)


def test_a_session_of_another_folder_is_not_found_here(
    house: ServedHouse, talked: str, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    answer = house.client.post("/api/workspaces", json={"path": str(other)})
    workspace = answer.json()["id"]
    place = f"/api/workspaces/{workspace}/sessions/{talked}/timeline"
    assert refused(house.client.get(place))[0] == 404
