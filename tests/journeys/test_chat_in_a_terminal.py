"""A newcomer talks to the embedded model in a real terminal, leaves, comes back, and is not lost
when something ends the chat in the middle."""

import re
import signal
import subprocess
from pathlib import Path

import pytest
from tests.apps.cli.commands import LAMINA
from tests.terminal import Terminal

SHORT, LONG = 10, 600
STORY = "Tell me a long story about a ship."


@pytest.fixture
def notes(tmp_path: Path, model_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of notes, with sessions of its own."""
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "plan.md").write_text("The pier opens in May. Ines is the harbour master.\n", "utf-8")
    return folder


def chat(folder: Path, *options: str) -> Terminal:
    return Terminal([str(LAMINA), "chat", *options], cwd=folder)


def cached_share(shown: str) -> int:
    """What the status line says of the cache, in percent."""
    found = re.search(r"prompt [\d,]+ · (\d+)% cached · [\d,]+ re-processed · answer \d+", shown)
    assert found, shown
    return int(found[1])


def test_a_person_talks_looks_stops_an_answer_and_comes_back(notes: Path) -> None:
    with chat(notes, "--max-tokens", str(SHORT), "--system", "Be brief.") as terminal:
        terminal.wait_for("local:smollm2-135m · notes · session ")
        shown = terminal.say("Say hello.")
        assert cached_share(shown) == 0
        assert " s · free" in shown
        assert len(shown.splitlines()[0].split()) > 1
        assert "L5 message" in terminal.say("/context")
        assert "attached plan.md (51 characters)" in terminal.say("/attach plan.md")
        assert cached_share(terminal.say("Who is the harbour master?")) > 0
        assert re.search(r"plan\.md +\d+ +this message, in full", terminal.say("/context"))
        terminal.say("/detach all")

        terminal.say(f"/settings max_tokens {LONG}")
        terminal.enter(STORY)
        terminal.wait_for_words(8)
        terminal.type("\x03")
        terminal.wait_for("(stopped)")
        terminal.wait_for_prompt()
        assert not terminal.cursor_is_hidden

        terminal.say(f"/settings max_tokens {SHORT}")
        assert cached_share(terminal.say("Where was that?")) > 0
        tree = terminal.say("/tree")
        asked = ["Say hello.", "Who is the harbour master?", STORY, "Where was that?"]
        assert [line.partition("  ")[2] for line in tree.splitlines()[:4]] == asked
        terminal.enter("/quit")
        assert terminal.wait_for_end() == 0

    with chat(notes, "--continue") as terminal:
        terminal.wait_for("Say hello. · 4 questions · local:smollm2-135m")
        terminal.wait_for_prompt()
        assert "› Where was that?\n  " in terminal.shown
        # What the model read is there again, though it is another process.
        assert cached_share(terminal.say("Thank you.")) > 50
        assert cached_share(terminal.say("Goodbye.")) > 50
        terminal.type("\x04")
        assert terminal.wait_for_end() == 0


def test_an_answer_that_was_killed_is_shown_as_interrupted_and_sent_again(notes: Path) -> None:
    with chat(notes, "--max-tokens", str(LONG), "--system", "You tell stories.") as terminal:
        terminal.enter(STORY)
        terminal.wait_for_words(5)
        terminal.kill(signal.SIGKILL)
        assert terminal.wait_for_end() == -signal.SIGKILL
    with chat(notes, "--continue", "--max-tokens", str(SHORT)) as terminal:
        terminal.wait_for("! interrupted: this question was never answered. /resume sends it again")
        terminal.wait_for_prompt()
        assert f"› {STORY}" in terminal.shown
        assert cached_share(terminal.say("/resume")) == 0
        assert "nothing to continue" in terminal.say("/resume")


@pytest.mark.parametrize("end", ["terminate", "hang up"])
def test_what_came_of_an_answer_is_kept_when_the_terminal_goes(notes: Path, end: str) -> None:
    with chat(notes, "--max-tokens", str(LONG), "--system", "You tell stories.") as terminal:
        terminal.enter(STORY)
        terminal.wait_for_words(5)
        if end == "terminate":
            terminal.kill(signal.SIGTERM)
            assert terminal.wait_for_end() == 128 + signal.SIGTERM
            assert not terminal.cursor_is_hidden
        else:
            assert terminal.hang_up() == 128 + signal.SIGHUP
    with chat(notes, "--continue") as terminal:
        terminal.wait_for_prompt()
        assert f"› {STORY}" in terminal.shown
        assert "(stopped)" in terminal.shown
        assert "interrupted" not in terminal.shown


def test_lines_through_a_pipe_are_answered_on_standard_output_alone(notes: Path) -> None:
    done = subprocess.run(
        [str(LAMINA), "chat", "--max-tokens", str(SHORT), "--system", "Be brief."],
        cwd=notes,
        input="Say hello.\n\nAnd goodbye.\n/attach gone.md\n",
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) >= 2
    assert "cached" not in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    first, second = (cached_share(line) for line in done.stderr.splitlines() if "prompt" in line)
    assert first == 0 < second
    assert "error: not attached: gone.md does not exist in the workspace" in done.stderr
