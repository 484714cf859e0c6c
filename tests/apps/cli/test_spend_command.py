"""`lamina spend`: sums, what they leave out, what is reserved, and clearing it."""

import json
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from typer.testing import CliRunner

from lamina.adapters.stores.spend_file import SpendFile
from lamina.apps.cli.app import app
from lamina.core.values.spend_limits import Reservation, Settlement, SpendLimits, SpendRequest
from lamina.core.values.usage import Usage

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC).timestamp()


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SpendFile:
    """Two days, two models, two sessions; one answer without usage, one without a price."""
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    ledger = SpendFile(tmp_path / "spend.jsonl")

    async def fill() -> None:
        usage = Usage(input=120_000, cached=90_000, output=1_500)
        for day, target, session, cost, high in (
            ("2026-11-16", "anthropic:claude-sonnet-5", "a" * 16, 0.11, 0.3),
            ("2026-11-17", "anthropic:claude-sonnet-5", "a" * 16, 0.12, 0.3),
            ("2026-11-17", "openai:gpt-5.6", "b" * 16, None, 0.5),
            ("2026-11-17", "compatible:mine", "b" * 16, None, None),
        ):
            await ledger.settle(
                Settlement(
                    at=NOON, day=day, session=session, target=target, cost=cost, high=high,
                    usage=usage if cost else None,
                )
            )  # fmt: skip

    anyio.run(fill)
    return ledger


def hold(ledger: SpendFile) -> Reservation:
    request = SpendRequest(
        at=NOON, day="2026-11-17", session="c" * 16, turn="000002", target="openai:gpt-5.6",
        low=0.01, high=0.25,
    )  # fmt: skip
    held = anyio.run(ledger.reserve, request, SpendLimits())
    assert isinstance(held, Reservation)
    return held


def spend(*words: str, input: str | None = None) -> str:
    result = CliRunner().invoke(app, ["spend", *words], input=input)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_days_are_summed_and_the_sum_says_what_it_leaves_out(account: SpendFile) -> None:
    lines = spend("--all").splitlines()
    assert [line.split() for line in lines[:4]] == [
        ["day", "requests", "in", "cached", "out", "spent"],
        ["2026-11-17", "3", "120,000", "90,000", "1,500", "$0.12*"],
        ["2026-11-16", "1", "120,000", "90,000", "1,500", "$0.11"],
        ["total", "4", "240,000", "180,000", "3,000", "$0.23*"],
    ]
    assert " ".join(" ".join(lines[4:]).split()) == (
        "* The total excludes up to $0.50 more for answers that did not report their usage and 1 "
        "request of unknown price."
    )
    assert all(len(line) <= 80 for line in lines)


def test_models_and_sessions_come_from_the_dearest_on(account: SpendFile) -> None:
    names = [line.split()[0] for line in spend("--by", "model", "--all").splitlines()[1:4]]
    assert names == ["openai:gpt-5.6", "anthropic:claude-sonnet-5", "compatible:mine"]
    names = [line.split()[0] for line in spend("--by", "session", "--all").splitlines()[1:3]]
    assert names == ["b" * 16, "a" * 16]


def test_since_takes_days_and_ages_and_refuses_the_rest(account: SpendFile) -> None:
    report = json.loads(spend("--since", "2026-11-17", "--json"))
    assert [row["name"] for row in report["rows"]] == ["2026-11-17"]
    assert report["total"]["unpriced"] == 1
    assert json.loads(spend("--since", "9999w", "--json"))["total"]["requests"] == 4
    result = CliRunner().invoke(app, ["spend", "--since", "yesterdayish"])
    assert result.exit_code != 0
    assert "write a date (2026-11-17), an age (7d, 4w)" in str(result.exception)


def test_what_is_reserved_is_shown_and_cleared_after_a_question(account: SpendFile) -> None:
    held = hold(account)
    text = spend("--all")
    assert "Reserved: up to $0.25 for an answer that has not arrived" in " ".join(text.split())
    row = next(line for line in text.splitlines() if line.startswith(held.id))
    assert "openai:gpt-5.6" in row
    assert row.endswith("$0.25")
    assert len(row) <= 80
    result = CliRunner().invoke(app, ["spend", "clear", held.id[:6]], input="n\n")
    assert result.exit_code == 1
    assert len(json.loads(spend("--json"))["waiting"]) == 1
    assert "1 released, $0.25 in total" in spend("clear", "--all", input="y\n")
    assert json.loads(spend("--json"))["waiting"] == []
    assert "nothing is reserved" in spend("clear", "--all")


def test_clearing_something_that_is_not_there_says_where_to_look(account: SpendFile) -> None:
    result = CliRunner().invoke(app, ["spend", "clear", "nope", "--yes"])
    assert "`lamina spend` lists all reservations" in str(result.exception)
    result = CliRunner().invoke(app, ["spend", "clear"])
    assert result.exit_code == 2


def test_a_line_that_was_cut_off_is_told_and_left(account: SpendFile) -> None:
    with account.path.open("ab") as file:
        file.write(b'{"act":"res')
    result = CliRunner().invoke(app, ["spend", "--all"])
    assert "not readable and left unchanged: line 5" in result.stderr
    assert "$0.23*" in result.stdout


def test_nothing_spent_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "empty"))
    assert spend("--all").strip() == "Nothing was spent since the beginning."


def test_what_has_no_known_price_is_unknown_and_not_zero(account: SpendFile) -> None:
    rows = json.loads(spend("--by", "model", "--all", "--json"))["rows"]
    spent = {row["name"]: row["spent"] for row in rows}
    assert spent["compatible:mine"] is None
    assert spent["openai:gpt-5.6"] is None
    assert spent["anthropic:claude-sonnet-5"] == 0.23
    (line,) = (row for row in spend("--by", "model", "--all").splitlines() if "mine" in row)
    assert line.split()[-1] == "?*"
