"""`lamina targets`: what models charge and hold, who says so, and as of when."""

import json
from datetime import date
from pathlib import Path

import pytest
from tests.apps.cli.commands import LAMINA, error, output
from tests.terminal import Terminal

from lamina.adapters.providers.model_book import ModelBook, load_book, read_rules
from lamina.adapters.providers.price_table import load_prices
from lamina.apps.cli.targets_command import show_targets


def test_every_line_fits_80_columns_and_no_name_is_cut(tmp_path: Path) -> None:
    with Terminal([str(LAMINA), "targets"], cwd=tmp_path, rows=400, is_forked=True) as terminal:
        assert terminal.wait_for_end() == 0
        shown = terminal.everything
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in shown
    row = next(line for line in lines if line.startswith("claude-sonnet-5 "))
    assert row.split() == ["claude-sonnet-5", "2", "10", "0.20", "2.50", "1M", "5m/1h", "genai"]
    at = next(at for at, line in enumerate(lines) if line.startswith("gpt-5.6 "))
    assert lines[at].split() == ["gpt-5.6", "4", "20", "0.40", "5", "1.05M", "30m", "genai"]
    assert lines[at + 1].split() == ["above", "272k", "8", "30", "0.80", "10"]
    table = load_book()
    assert f"genai: genai-prices 0.2.2, as of {table.find('openai:gpt-5').prices.date}" in shown  # type: ignore[union-attr]


def test_what_nobody_knows_is_no_price_and_an_assumed_window(tmp_path: Path) -> None:
    shown = output("targets", "openai:gpt-99", cwd=tmp_path)
    assert "price        unknown; set it in the file that LAMINA_MODELS names" in shown
    assert "128,000 tokens, answers up to 16,384" in shown
    assert "assumed, to be on the safe side" in shown
    others = output("targets", "openai", cwd=tmp_path)
    row = next(line for line in others.splitlines() if line.startswith("any other model"))
    assert row.split()[3:] == ["?", "?", "?", "?", "~128k", "5m"]


def test_prices_that_a_vendor_has_announced_are_shown_until_they_hold(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def shown_on(day: date) -> str:
        book = ModelBook(read_rules(), load_prices(), today=lambda: day)
        show_targets(["gemini:gemini-4-argon"], as_json=False, book=book)
        return capsys.readouterr().out

    before = shown_on(date(2026, 11, 30))
    assert "price            $2 in, $10 out, $0.1 read, $2 written" in before
    assert "from 2026-12-01  $4 in, $20 out" in before
    assert "$4.5 per million tokens and hour" in before
    after = shown_on(date(2026, 12, 1))
    assert "price        $4 in, $20 out" in after
    assert "from 2026" not in after


def test_one_target_is_shown_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    hour = output("targets", "anthropic:claude-sonnet-5", cwd=tmp_path)
    assert "$2.5 written, $4 for 1h" in hour
    assert "price        free" in output("targets", "local:smollm2-135m", cwd=tmp_path)


def test_targets_are_found_by_words_of_their_names(tmp_path: Path) -> None:
    rows = json.loads(output("targets", "gpt-5.6", "LUNA", "--json", cwd=tmp_path))
    assert [row["target"] for row in rows] == ["openai:gpt-5.6-luna"]
    (row,) = rows
    assert (row["window"], row["max_input"], row["max_output"]) == (1_050_000, 922_000, 128_000)
    assert [tier["above"] for tier in row["prices"]["tiers"]] == [0, 272_000]
    assert row["prices"]["source"].startswith("genai-prices ")
    assert row["prices"]["date"]
    (unknown,) = json.loads(output("targets", "compatible:any", "--json", cwd=tmp_path))
    assert unknown["prices"] is None


@pytest.mark.parametrize("words", [("zebra",), ("gpt", "claude")])
def test_words_that_no_name_has_are_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    said = error("targets", *words, cwd=tmp_path)
    assert "no known target contains" in said
    assert "PROVIDER:MODEL" in said


def test_prices_of_ones_own_are_shown_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "models.toml"
    own.write_text("[[providers.compatible.models]]\nmatch='qwen3'\ninput=0.5\noutput=1.5\n")
    monkeypatch.setenv("LAMINA_MODELS", str(own))
    monkeypatch.setenv("COLUMNS", "80")
    show_targets(["compatible"], as_json=False)
    shown = capsys.readouterr().out
    row = next(line for line in shown.splitlines() if line.startswith("qwen3"))
    assert row.split() == ["qwen3", "0.50", "1.50", "0.50", "0.50", "~32.8k", "process", "yours"]
    show_targets(["compatible:qwen3"], as_json=False)
    assert "price from   your models file " in capsys.readouterr().out
