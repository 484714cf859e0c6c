"""What docs/spending.md says of limits is so, and its example runs."""

import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner

from lamina.apps.cli.app import app
from lamina.apps.wiring.spending_account import limits_of_environment
from lamina.core.values.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "spending.md").read_text("utf-8")
ROWS = re.findall(r"^\| `(spend_\w+)` \| `(--[\w-]+)` \| `(LAMINA_\w+)` \|", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("setting", "option", "variable"), ROWS)
def test_a_limit_is_a_setting_an_option_and_a_variable(
    setting: str, option: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = setting.removeprefix("spend_")
    given: dict[str, Any] = {setting: 2.0}
    assert getattr(Settings(**given).spend_limits, scope) == 2.0
    monkeypatch.setenv(variable, "3")
    assert getattr(limits_of_environment(), scope) == 3.0
    monkeypatch.setenv("COLUMNS", "200")
    assert option in CliRunner().invoke(app, ["ask", "--help"]).stdout


def test_all_limits_are_on_the_page() -> None:
    assert [row[0] for row in ROWS] == ["spend_turn", "spend_session", "spend_day"]
    assert Settings().ask_above_cost == 0.25
    assert "($0.25)" in PAGE


def test_the_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path))
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(code, names)
    anyio.run(names["ask"], "Hello?")
    assert capsys.readouterr().out.startswith("CostRange(low=")
    monkeypatch.setenv("LAMINA_SPEND_DAY", "0.001")
    anyio.run(names["ask"], "Hello?")
    assert capsys.readouterr().out.startswith("day 0.001 0.0 ")
