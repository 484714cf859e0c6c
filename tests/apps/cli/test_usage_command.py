"""`lamina agent usage`: what became of an agent's items over all its sessions."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from inline_snapshot import snapshot
from tests.fakes.clock import FakeClock
from tests.fakes.files import session_file
from tests.fakes.replies import openai_reply
from tests.fakes.selection import SelectorFake, guide, open_guided
from typer.testing import CliRunner

from lamina import open_session
from lamina.adapters.providers.model_book import load_book
from lamina.apps.cli.agent_commands import app
from lamina.apps.wiring import default_store
from lamina.core.values.item import ItemId
from lamina.core.values.selection import SelectedItem
from lamina.core.values.settings import Settings
from lamina.errors import UsageError

TARGET = "openai:gpt-4o"
STYLE, TIDES = ItemId("rule:house-style"), ItemId("reference:tides")


def keep(notes: Path, session: str, answers: Sequence[str], agent: str = "pilot") -> Path:
    """A session of an agent, with an answer to each question; its file."""

    async def body() -> None:
        selector = SelectorFake(
            guide("rule", "house-style"),
            guide("rule", "tone"),
            guide("reference", "tides", "agent"),
            finds={"Q": [SelectedItem(item=TIDES, score=0.625)]},
        )
        clock = FakeClock()
        async with await open_guided(
            selector, session, agent=agent, store=default_store(notes), book=load_book(),
            clock=clock, settings=Settings(target=TARGET),
        ) as opened:  # fmt: skip
            for answer in answers:
                clock.pass_by(10)
                turn = await opened.prepare("Q")
                await turn.commit(openai_reply(answer))

    anyio.run(body)
    return session_file(notes, session)


def usage(notes: Path, *arguments: str) -> str:
    done = CliRunner().invoke(app, ["usage", *arguments, "-w", str(notes)], catch_exceptions=False)
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


def refusal(notes: Path, *arguments: str) -> str:
    with pytest.raises(UsageError) as refused:
        usage(notes, *arguments)
    return str(refused.value)


def test_items_are_shown_with_what_became_of_them_and_what_to_change(notes: Path) -> None:
    keep(notes, "one", ["See tides."] * 6)
    keep(notes, "two", ["See tides, by the house-style."] * 5)
    assert usage(notes, "pilot") == snapshot("""\
pilot · 11 answered turns in 2 sessions

item              in force  always  manual  agent  chosen  score  used
rule:house-style        11      11       -      -       -            5
rule:tone               11      11       -      -       -            0
reference:tides         11       -       -     11      11   0.62    11

Suggestions
- rule:tone: never named in an answer, though it was always in or chosen in 11 turns: if it does not
shape answers either, make it manual, or take it out
- reference:tides: needed in 11 of 11 turns: make it always
""")


def test_on_a_narrow_terminal_the_names_of_items_stay_whole(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    keep(notes, "one", ["See tides."])
    assert usage(notes, "pilot") == snapshot("""\
pilot · 1 answered turn in 1 session

item              in force  chosen  score  used
rule:house-style         1       -            0
rule:tone                1       -            0
reference:tides          1       1   0.62     1
""")


def test_every_agent_stands_for_itself(notes: Path) -> None:
    keep(notes, "one", ["Yes."])
    keep(notes, "two", ["By house-style."], agent="cook")
    keep(notes, "three", ["No."], agent="")
    shown = json.loads(usage(notes, "--json"))
    assert [(each["agent"], each["turns"]) for each in shown["agents"]] == [
        ("", 1), ("cook", 1), ("pilot", 1),
    ]  # fmt: skip
    used = {
        each["agent"]: next(row["used"] for row in each["items"] if row["item"] == STYLE)
        for each in shown["agents"]
    }
    assert used == {"": 0, "cook": 1, "pilot": 0}
    assert "(no agent) · 1 answered turn in 1 session\n" in usage(notes)


def test_a_fork_is_not_counted_twice(notes: Path) -> None:
    keep(notes, "one", ["Yes."])

    async def body() -> None:
        async with await open_session("one", workspace=notes) as session:
            fork = await session.fork("other")
            await fork.close()

    anyio.run(body)
    turns = [load["turns"] for load in json.loads(usage(notes, "--json"))["agents"]]
    assert turns == [1]
    session_file(notes, "one").unlink()
    turns = [load["turns"] for load in json.loads(usage(notes, "--json"))["agents"]]
    assert turns == [1]


def test_damaged_sessions_are_named_and_cost_no_others(notes: Path) -> None:
    keep(notes, "one", ["By house-style."])
    hurt = keep(notes, "two", ["By house-style.", "Again by house-style."])
    lines = hurt.read_bytes().splitlines(keepends=True)
    hurt.write_bytes(b"".join([*lines[:-2], b"{broken\n", lines[-1]]))
    gone = keep(notes, "three", ["Yes."])
    gone.write_bytes(b"\x00nothing")
    shown = json.loads(usage(notes, "pilot", "--json"))
    (use,) = (row for row in shown["agents"][0]["items"] if row["item"] == STYLE)
    assert use["used"] >= 2
    assert {each["session"] for each in shown["unread"]} == {"two", "three"}
    drawn = usage(notes)
    assert "! session two: damaged, counted as far as it could be read: " in drawn
    assert "! session three: " in drawn


def test_what_is_exported_can_be_read_again(notes: Path) -> None:
    keep(notes, "one", ["See tides."] * 2, agent="=pilot")
    for name in ("use.json", "use.csv"):
        assert f"{name}: 3 items" in usage(notes, "--export", str(notes / name))
    assert json.loads((notes / "use.json").read_text("utf-8")) == json.loads(usage(notes, "--json"))
    rows = list(csv.DictReader((notes / "use.csv").read_text("utf-8").splitlines()))
    assert rows[-1] == snapshot(
        {
            "agent": "'=pilot",
            "item": "reference:tides",
            "turns": "2",
            "always": "0",
            "manual": "0",
            "agent_mode": "2",
            "chosen": "2",
            "score": "0.6250",
            "used": "2",
            "needed": "2",
            "since": "2",
            "sessions": "1",
            "suggestion": "",
        }
    )


def test_nothing_is_written_over_or_in_a_form_nobody_asked_for(notes: Path) -> None:
    keep(notes, "one", ["Yes."])
    there = notes / "plan.md"
    before = there.read_bytes()
    assert "neither .json nor .csv" in refusal(notes, "--export", str(there))
    taken = notes / "taken.csv"
    taken.write_text("mine", "utf-8")
    said = refusal(notes, "--export", str(taken))
    assert said == f"{taken} exists already; nothing was written"
    assert (there.read_bytes(), taken.read_text("utf-8")) == (before, "mine")
    assert "cannot be written" in refusal(notes, "--export", str(notes / "no" / "use.csv"))


def test_an_agent_that_no_session_names_is_told_from_one_without_turns(notes: Path) -> None:
    assert "No question has been answered in this workspace yet." in usage(notes)
    keep(notes, "one", [])
    assert "pilot · 0 answered turns in 0 sessions" in usage(notes, "pilot")
    said = refusal(notes, "pilto")
    assert "used the agent 'pilto'; agents used here: 'pilot'." in said
