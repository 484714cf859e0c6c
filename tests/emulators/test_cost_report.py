"""The report of an emulator where nobody knows what a model charges."""

import json

from lamina.adapters.providers.model_book import load_book
from lamina.core.values.usage import Usage
from lamina.emulators.cost_report import CostReport

KNOWN = load_book().find("openai:gpt-4o")
UNKNOWN = load_book().find("openai:gpt-99")


def test_a_request_of_unknown_price_costs_neither_nothing_nor_what_others_cost() -> None:
    report = CostReport()
    report.add(0.0, KNOWN, Usage(input=1_000_000, cached=400_000))
    report.add(1.0, UNKNOWN, Usage(input=1_000_000))
    data = json.loads(report.as_json())
    assert [row["cost"] for row in data["rows"]] == [2.0, None]
    total = data["total"]
    assert (total["cost"], total["uncached_cost"], total["unpriced"]) == (2.0, 2.5, 1)
    text = report.as_text()
    assert "Totals exclude 1 request of unknown price." in text
    assert text.splitlines()[2].split()[-1] == "unknown"


def test_a_report_without_any_known_price_has_no_sum() -> None:
    report = CostReport()
    report.add(0.0, UNKNOWN, Usage(input=10))
    assert json.loads(report.as_json())["total"]["cost"] is None
    assert "would have cost" not in report.as_text()
