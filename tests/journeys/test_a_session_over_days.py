"""A session over days: killed, opened again, branched, compacted, carried out and brought back.

What kills it is real: the first day is a process of its own that ends without closing anything.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import anyio
import pytest
from tests.apps.cli.commands import output
from tests.fakes.clock import FakeClock
from tests.fakes.replies import openai_reply

import lamina

TARGET = "openai:gpt-4o"
DAY = 86_400.0
FIRST_DAY = dedent("""
    import os, sys
    import anyio
    import lamina

    def reply(text):
        return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 5}}

    class Clock:
        def now(self):
            return 1_794_000_000.0

    async def main():
        session = await lamina.open_session(
            "trip", system="Answer from the notes.", workspace=sys.argv[1],
            target="openai:gpt-4o", clock=Clock(),
        )
        await session.pin("rules.md")
        turn = await session.prepare("Where do we sleep?", attach=["docs/hut.md", "docs/boat.md"])
        await turn.commit(reply("In the hut."))
        await session.prepare("How do we get there?", attach=["docs/train.md"])
        os.kill(os.getpid(), 9)

    anyio.run(main)
""")


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four notes, and a home of its own for what is kept of talking about them."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TZ", "UTC")
    for name in ("LAMINA_DATA", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "trip notes"
    (folder / "docs").mkdir(parents=True)
    (folder / "old").mkdir()
    (folder / "rules.md").write_text("Nobody pays more than 30 a night.\n", "utf-8")
    (folder / "docs" / "hut.md").write_text("The hut has 12 beds.\n", "utf-8")
    (folder / "docs" / "boat.md").write_text("The boat leaves at 9.\n", "utf-8")
    (folder / "docs" / "train.md").write_text("The train leaves at 7.\n", "utf-8")
    return folder


def is_sound(notes: Path, session: str) -> bool:
    """Whether every request can be rebuilt, byte for byte."""
    verdict = json.loads(output("verify", session, "--json", cwd=notes))
    return bool(verdict["sound"])


async def ask(session: lamina.Session, text: str, *attach: str, answer: str) -> lamina.Turn:
    turn = await session.prepare(text, attach=attach)
    return await turn.commit(openai_reply(answer, input=turn.prompt.tokens, cached=0))


def said(turn: lamina.Turn) -> list[str]:
    messages: list[dict[str, Any]] = turn.request()["messages"]
    return [str(message["content"]) for message in messages]


def spend_the_first_day(notes: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_DAY, str(notes)], env=os.environ.copy(), check=False,
        capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (-9, "")


async def spend_the_second_day(notes: Path) -> None:
    """The question that was under way is answered; another way is tried and left."""
    clock = FakeClock(1_794_000_000.0 + DAY)
    async with await lamina.open_session("trip", workspace=notes, clock=clock) as session:
        assert (session.damage, session.interrupted) == ((), True)
        turn = await session.current_turn()
        assert turn is not None
        # The same bytes again, from the journal.
        assert "The train leaves at 7." in said(turn)[-1]
        await turn.commit(openai_reply("By train.", input=turn.prompt.tokens, cached=0))
        crossroads = session.path[-1].id
        await ask(session, "Could we swim?", answer="No.")
        await session.navigate(crossroads, summary="Swimming was ruled out.")
        await session.label(crossroads, "before the boat")
        turn = await ask(session, "When does the boat leave?", "docs/boat.md", answer="At 9.")
        assert "Swimming was ruled out." in "\n".join(said(turn))
        assert "Could we swim?" not in said(turn)
        await session.rename("The trip")


async def spend_the_third_day(notes: Path) -> None:
    """Much is said, and gives way to a summary."""
    clock = FakeClock(1_794_000_000.0 + 2 * DAY)
    settings = lamina.Settings(window=6_000)
    async with await lamina.open_session(
        "trip", workspace=notes, clock=clock, settings=settings
    ) as session:
        for number in range(12):
            await ask(session, f"Item {number}? " + "rope " * 150, answer="yes " * 150)
        done = await session.compact()
        assert (done.changed, done.by) == (True, "extract")
        turn = await ask(session, "What is the goal?", answer="To get to the hut.")
        assert "Where do we sleep?" not in said(turn)
        # What everyone must heed is still there.
        assert "Nobody pays more than 30 a night." in "\n".join(said(turn))


def change_the_notes(notes: Path) -> None:
    (notes / "docs" / "hut.md").write_text("The hut has 8 beds now.\n", "utf-8")
    (notes / "docs" / "boat.md").unlink()
    (notes / "docs" / "train.md").rename(notes / "old" / "train.md")


async def go_on(notes: Path, session_id: str) -> None:
    clock = FakeClock(1_794_000_000.0 + 4 * DAY)
    async with await lamina.open_session(session_id, workspace=notes, clock=clock) as session:
        turn = await session.prepare("How many beds?", attach=["docs/hut.md", "docs/boat.md"])
        library, *history, last = said(turn)
        assert "The hut has 8 beds now." in library
        assert "12 beds" not in library
        assert "<path>old/train.md</path>" in library
        assert "The train leaves at 7." in library
        assert "Nobody pays more than 30 a night." in library
        assert "The boat leaves at 9." not in "\n".join([library, *history, last])
        # The chat tells people all of it, also what had given way to the summary.
        assert history[0] == "Where do we sleep?"
        assert history[-1] == "To get to the hut."
        assert "- docs/boat.md (not found)" in last
        assert "8 beds" not in last
        await turn.commit(openai_reply("Eight."))


def test_a_session_lives_through_kills_branches_compaction_and_another_form(notes: Path) -> None:
    spend_the_first_day(notes)
    assert is_sound(notes, "trip")
    anyio.run(spend_the_second_day, notes)
    assert is_sound(notes, "trip")
    tree = output("log", "trip", "--tree", cwd=notes)
    assert re.search(r"^  ├─\w{6} transform Boundary: 86400 s since", tree, re.MULTILINE)
    assert re.search(r"^  │ \w{6} user Could we swim\?$", tree, re.MULTILINE)
    assert "«before the boat»" in tree
    anyio.run(spend_the_third_day, notes)
    assert is_sound(notes, "trip")
    assert "Where do we sleep?" in output("log", "trip", "--dropped", cwd=notes)

    output("export", "trip", "-o", "trip.md", cwd=notes)
    change_the_notes(notes)
    report = json.loads(output("import", "trip.md", "-s", "again", "--json", cwd=notes))
    (ported,) = report["imported"]
    assert ported["laid"] == ["note:docs/hut.md", "note:rules.md", "note:old/train.md"]
    told = {problem["what"]: problem["detail"] for problem in ported["problems"]}
    assert "'docs/boat.md'" in told["missing"]
    assert "'old/train.md'" in told["moved"]
    assert is_sound(notes, "again")
    anyio.run(go_on, notes, "again")
    assert is_sound(notes, "again")
    # The session it came from is as it was.
    assert is_sound(notes, "trip")
    rows = json.loads(output("sessions", "--json", cwd=notes))
    assert {(row["session"], row["name"]) for row in rows} == {
        ("trip", "The trip"),
        ("again", "The trip"),
    }
