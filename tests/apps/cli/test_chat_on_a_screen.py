"""The chat in a real terminal of 80 by 24, with a model that plays a script."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.terminal import Terminal

ROOT = Path(__file__).parents[3]


@pytest.fixture
def terminal(notes: Path, tmp_path: Path) -> Iterator[Terminal]:
    (notes / "a b.md").write_text("Spaces.\n", "utf-8")
    env = {"LAMINA_DATA": str(tmp_path / "data"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.apps.cli.scripted_chat"]
    with Terminal(command, cwd=notes, env=env) as opened:
        yield opened


def test_a_chat_on_a_screen(terminal: Terminal) -> None:
    # An answer longer than the screen is there whole, and once.
    shown = terminal.say("Which berths are free?")
    berths = [line.strip() for line in shown.splitlines() if "berth number" in line]
    assert berths == [f"{n} The berth number {n} is free." for n in range(1, 61)]

    # A call is asked about; what was typed before is no decision, nor is a sentence.
    terminal.enter("Wipe the harbour.")
    terminal.type("o\r")
    terminal.wait_for("[d]eny")
    assert '{"path":"/harbour"}' in terminal.shown
    terminal.type("please do not\rs\r")
    terminal.wait_for("type o, s or d, then Enter\nallow it? [o]nce, [s]ession, [d]eny")
    assert "allowed" not in terminal.shown
    terminal.type("s\rAnd more.\r")
    terminal.wait_for("Wiped.")
    assert "  allowed for this session" in terminal.shown
    terminal.wait_for_prompt()
    assert "And more." not in terminal.everything

    # Keys that are pressed while it answers are not echoed into the answer.
    terminal.enter("Go on and on.")
    terminal.wait_for("It will not end")
    terminal.type("typed ahead")
    terminal.type("\x03")
    terminal.wait_for("(stopped)")
    terminal.wait_for_prompt()
    assert "typed ahead" not in terminal.everything.partition("(stopped)")[0]
    assert not terminal.cursor_is_hidden

    # Stopped before its first word, a question is kept.
    terminal.enter("And now?")
    terminal.wait_for("reading 512 of 3,210 tokens …")
    terminal.type("\x03")
    terminal.wait_for("(stopped before the first word; /resume sends the question again)")
    assert "reading" not in terminal.shown

    # Codes in an answer are shown and do nothing.
    evil = terminal.say("/resume")
    assert r"Evil \x1b[2J\x1b]0;owned\x07 and" in evil
    assert b"\x1b]0;" not in terminal.written

    # In front of its first question, a session is as worth keeping.
    first = terminal.say("/tree").split()[1]
    terminal.enter(f"/branch {first}")
    terminal.wait_for("› Which berths are free?\n")
    terminal.wait_for("edit it and press Enter")
    terminal.wait_for_prompt()
    terminal.type("\x03")

    # Ctrl-C at an empty prompt says how to leave, and then leaves.
    terminal.type("\x03")
    terminal.wait_for("press Ctrl-C again, or Ctrl-D, or type /quit to leave; the session is kept")
    terminal.wait_for_prompt()
    terminal.type("\x03")
    assert terminal.wait_for_end() == 0
    session = terminal.everything.partition(" · session ")[2].split()[0]
    assert (
        f"the session is kept; to continue it:\n  lamina chat -s {session}\n" in terminal.everything
    )


def test_completion_and_several_lines_on_a_screen(terminal: Terminal) -> None:
    terminal.wait_for_prompt()
    terminal.type("/att")
    terminal.wait_for("/attach [--essential] REFERENCE...")
    terminal.type("\x03")
    terminal.type("see @B.M")
    terminal.wait_for("a b.md")
    terminal.type("\t")
    terminal.wait_for('› see @"a b.md"')
    # The first Enter takes the path, Esc-Enter begins a line, and the last one sends.
    terminal.type("\r")
    terminal.type(" and\x1b\rsay what it is")
    terminal.wait_for("  say what it is")
    terminal.type("\r")
    terminal.wait_for("The berth number 60 is free.")
    terminal.wait_for_prompt()
    assert "left out" not in terminal.everything
    assert "a b.md" in terminal.say("/context")
    assert "1 The berth number 1 is free." in terminal.everything
