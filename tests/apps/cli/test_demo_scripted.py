"""`lamina demo --no-model`: the answers of a script, and what each way would cost."""

import json
import re
from pathlib import Path

import pytest
from tests.apps.cli.commands import error, output


def test_the_scripted_demo_shows_every_turn_and_what_each_way_cost(tmp_path: Path) -> None:
    shown = output("demo", "--no-model", cwd=tmp_path)
    script = json.loads(output("demo", "--show-script", cwd=tmp_path))
    turns = script["turns"]
    assert re.findall(r"^turn (\d+) ", shown, re.MULTILINE) == [
        str(number) for number in range(1, len(turns) + 1)
    ]
    flat = " ".join(shown.split())
    for turn in turns:
        assert turn["ask"] in flat
    for way in ("lazy", "eager", "naive"):
        bars = re.findall(
            rf"^  {way} +([░█]+) +([\d,]+) stay +([\d,]+) again$", shown, re.MULTILINE
        )
        assert len(bars) == len(turns)
        again = sum(int(bar[2].replace(",", "")) for bar in bars)
        row = re.search(rf"^│ {way} +│ +[\d,]+ │ +([\d,]+) │ +([\d.]+)x │", shown, re.MULTILINE)
        assert row is not None
        assert int(row[1].replace(",", "")) == again
    ratios = [float(ratio) for ratio in re.findall(r"([\d.]+)x │ +\d+x │", shown)]
    assert ratios[0] == 1.0
    assert ratios == sorted(ratios)
    assert max(map(len, shown.splitlines())) <= 100


def test_the_scripted_demo_says_the_same_every_time(tmp_path: Path) -> None:
    assert output("demo", "--no-model", cwd=tmp_path) == output("demo", "--no-model", cwd=tmp_path)


def test_the_scripted_demo_plays_a_conversation_of_ones_own_and_leaves_the_folder_alone(
    tmp_path: Path,
) -> None:
    (tmp_path / "plan.txt").write_text("one", "utf-8")
    turns = [
        {"ask": "One?", "attach": ["plan.txt"], "answer": "1"},
        {"ask": "Two?", "attach": ["plan.txt"], "edit": {"plan.txt": "two"}},
    ]
    (tmp_path / "talk.json").write_text(json.dumps({"title": "Mine", "turns": turns}), "utf-8")
    arguments = (
        "demo",
        "--no-model",
        "-w",
        ".",
        "--script",
        "talk.json",
        "-t",
        "anthropic:claude-sonnet-4-5",
    )
    shown = output(*arguments, cwd=tmp_path)
    assert "Mine: 2 turns, no model." in shown
    assert "Counted as anthropic:claude-sonnet-4-5 does" in shown
    assert "turn 2 · attached: plan.txt, plan.txt edited" in shown
    assert (tmp_path / "plan.txt").read_text("utf-8") == "one"


def test_the_bars_of_a_short_conversation_stay_on_their_lines(tmp_path: Path) -> None:
    (tmp_path / "plan.txt").write_text("one", "utf-8")
    turns = [{"ask": "Q?", "attach": ["plan.txt"], "answer": "A"} for _ in range(4)]
    (tmp_path / "talk.json").write_text(json.dumps({"turns": turns}), "utf-8")
    shown = output("demo", "--no-model", "-w", ".", "--script", "talk.json", cwd=tmp_path)
    assert max(map(len, shown.splitlines())) <= 100


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("--workspace", "."), 2, "--workspace and --script need each other"),
        (("--workspace", ".", "--script", "gone.json"), 1, "cannot read the script"),
        (("--target", "nobody:x"), 1, "'nobody:x' is not 'provider:model'"),
    ],
)
def test_a_demo_that_cannot_be_played_says_why(
    tmp_path: Path, arguments: tuple[str, ...], code: int, problem: str
) -> None:
    assert problem in error("demo", "--no-model", *arguments, cwd=tmp_path, code=code)
