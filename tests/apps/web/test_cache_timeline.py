"""The cache timeline: prices as the vendor charges them, every break named, unknown never 0."""

import os
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from tests.apps.web.served_house import Json, ServedHouse
from tests.browser.played import play_breaks
from tests.browser.vendor import Vendor

import lamina
from lamina.emulators.answers import ScriptedAnswers
from lamina.emulators.anthropic.emulator import AnthropicEmulator
from lamina.emulators.cost_report import CostRow
from lamina.emulators.emulator import Emulator, serve_emulator
from lamina.emulators.gemini.emulator import GeminiEmulator
from lamina.emulators.openai.emulator import OpenAIEmulator

SYSTEM = " ".join(f"Rule {number}: berth {number} is for ship {number}." for number in range(900))
# By vendor: its emulator, a model, and the variables that lead to it.
VENDORS: dict[str, tuple[type[Emulator], str, dict[str, str]]] = {
    "openai": (OpenAIEmulator, "openai:gpt-4o", {"OPENAI_BASE_URL": "{url}/v1"}),
    "anthropic": (
        AnthropicEmulator,
        "anthropic:claude-sonnet-5",
        {"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "any"},
    ),
    "gemini": (
        GeminiEmulator,
        "gemini:gemini-2.5-flash",
        {"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "any"},
    ),
}


async def play(
    emulator: Emulator, target: str, folder: Path, connect: Callable[[str], None]
) -> list[CostRow]:
    """Questions, a pause past the cache's lifetime, and a changed system prompt."""
    async with serve_emulator(emulator) as url:
        connect(url)
        async with await lamina.open_agent(
            "played", workspace=folder, system=SYSTEM, target=target, clock=emulator.clock
        ) as agent:
            await agent.run("When is low water?")
            emulator.clock.move(20)
            await agent.run("And high water?")
            emulator.clock.move(86_400)
            await agent.run("And today?")
            emulator.clock.move(20)
            await agent.session.set_system("tone", "Be brief.", reason="a person asked for it")
            await agent.run("Which berth is free?")
    return emulator.report.rows


@pytest.mark.parametrize("vendor_name", VENDORS)
def test_every_request_costs_what_its_vendor_charged(
    vendor_name: str, house: ServedHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, target, variables = VENDORS[vendor_name]

    def connect(url: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value.format(url=url))

    emulator = kind(answers=ScriptedAnswers(["At noon. " * 40]))
    charged = anyio.run(play, emulator, target, house.folder, connect)
    timeline = house.get("played", "/timeline")
    rows = timeline["rows"]
    assert len(rows) == len(charged) == 4
    for row, charge in zip(rows, charged, strict=True):
        assert row["cost"] == charge.cost
        assert row["uncached_cost"] == charge.uncached_cost
        assert (row["input"], row["output"]) == (charge.usage.input, charge.usage.output)
        assert row["cached"] == charge.usage.cached <= row["input"]
        assert row["fresh"] == row["input"] - row["cached"]
    totals = timeline["totals"]
    assert totals["cost"] == pytest.approx(sum(charge.cost or 0 for charge in charged))
    inputs = sum(charge.usage.input for charge in charged)
    assert totals["hit"] == pytest.approx(sum(c.usage.cached for c in charged) / inputs)
    # What the cache saved is what it would have cost without one, less what it cost.
    saved = sum((charge.uncached_cost or 0) - (charge.cost or 0) for charge in charged)
    assert totals["saved"] == pytest.approx(saved)
    assert totals["saved"] == pytest.approx(totals["read_discount"] - totals["write_premium"])
    assert [row["broke"]["kind"] for row in rows if row["broke"]] == ["expired", "expected"]


def seed_breaks(house: ServedHouse) -> list[CostRow]:
    def connect(url: str) -> None:
        os.environ["OPENAI_BASE_URL"] = f"{url}/v1"

    rows = play_breaks(house.folder, "breaks", connect)
    os.environ["OPENAI_BASE_URL"] = f"{house.vendor.url}/v1"
    return rows


def test_every_break_has_its_kind_its_blame_its_words_and_its_price(house: ServedHouse) -> None:
    seed_breaks(house)
    rows = house.get("breaks", "/timeline")["rows"]
    breaks = {row["request"]["number"]: row["broke"] for row in rows if row["broke"]}
    assert [(number, broke["kind"]) for number, broke in breaks.items()] == [
        (3, "expected"), (4, "moved"), (5, "expected"), (6, "expired"), (7, "missed"),
    ]  # fmt: skip
    assert "a person asked for it" in breaks[3]["words"]
    assert (breaks[4]["cause"], breaks[4]["blame"]) == ("system_changed", "you")
    assert breaks[6]["certainty"] == "proven"
    assert (breaks[7]["cause"], breaks[7]["blame"]) == ("other_machine", "vendor")
    assert breaks[7]["certainty"] == "likely"
    for number in (6, 7):
        # What was lost costs the difference between fresh and read tokens, at list price.
        lost = breaks[number]["tokens"]
        assert lost > 1_000
        assert breaks[number]["price"] == pytest.approx(lost * (2.5 - 1.25) / 1e6)
        assert breaks[number]["fix"]


def test_what_a_server_does_not_tell_is_unknown_and_never_zero(house: ServedHouse) -> None:
    seed_breaks(house)
    timeline = house.get("breaks", "/timeline")
    last, totals = timeline["rows"][-1], timeline["totals"]
    for name in ("input", "cached", "fresh", "written", "output", "cost", "saved"):
        assert last[name] is None, name
    assert last["answered"]
    assert (totals["reported"], totals["unknown"], totals["unpriced"]) == (7, 1, 1)
    assert totals["hit"] == totals["cached"] / totals["reported_input"]
    row = house.get("breaks", "/requests")["requests"][-1]
    assert (row["input"], row["cached"], row["cost"]) == (None, None, None)
    anatomy = house.get("breaks", f"/requests/{row['id']}")
    assert anatomy["cached"] is None
    assert {layer["cached"] for layer in anatomy["layers"]} == {None}
    assert {segment["state"] for segment in anatomy["segments"]} == {"agrees", "new"}


def test_a_session_without_requests_has_an_empty_timeline(house: ServedHouse) -> None:
    session = house.begin()
    timeline: Json = house.get(session, "/timeline")
    totals = timeline["totals"]
    assert timeline["rows"] == []
    assert (totals["hit"], totals["cost"], totals["saved"]) == (None, None, None)


def test_a_request_under_way_stands_in_it_without_figures(
    house: ServedHouse, vendor: Vendor
) -> None:
    session = house.begin()
    vendor.says("word " * 40)
    vendor.hold()
    turn = house.post(session, "/turns", {"text": "When?"})["turn"]
    vendor.wait_until_held()
    timeline = house.get(session, "/timeline")
    (row,) = timeline["rows"]
    assert (row["answered"], row["input"], row["cost"]) == (False, None, None)
    assert timeline["totals"]["unanswered"] == 1
    assert row["request"]["open"]
    # What it was made of can be looked at meanwhile.
    context = house.get(session, f"/context/{row['id']}")
    assert context["question"] == "When?"
    assert house.get(session, f"/requests/{row['id']}")["proven"]
    vendor.release()
    house.watch(session, turn)
