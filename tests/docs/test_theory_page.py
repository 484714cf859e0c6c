"""The snippets of docs/theory.md run in order and print what the page shows below them."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "theory.md").read_text("utf-8")
RESULTS = (ROOT / "bench" / "RESULTS.md").read_text("utf-8")
SNIPPET = re.compile(r"^```python\n(.*?)^```\n\n^```text\n(.*?)^```", re.DOTALL | re.MULTILINE)


def run_snippets() -> list[tuple[str, str]]:
    """What each snippet printed, beside what the page says that it does."""
    names: dict[str, Any] = {}
    outputs = []
    for code, shown in SNIPPET.findall(PAGE):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "theory.md", "exec"), names)
        outputs.append((printed.getvalue(), shown))
    return outputs


def test_every_snippet_prints_what_is_shown() -> None:
    outputs = run_snippets()
    assert len(outputs) == PAGE.count("```python\n") > 10
    for printed, shown in outputs:
        assert printed == shown


def test_the_figures_are_those_that_were_measured() -> None:
    table = PAGE.split("| conversation | naive | eager | lazy |\n", 1)[1].split("\n\n", 1)[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]
    ]
    assert len(rows) >= 5
    for conversation, naive, eager, lazy in rows:
        assert f"| {conversation} | {naive} | {eager} | **{lazy}** |" in RESULTS


def test_the_files_that_are_named_exist() -> None:
    for path in re.findall(r"`((?:tests|bench)/[\w/.]+)`", PAGE):
        assert (ROOT / path).exists(), path
    table = PAGE.split("| to change | read |\n", 1)[1].split("\n\n", 1)[0]
    paths = re.findall(r"`([\w/.]+)`", table)
    assert len(paths) > 8
    for path in paths:
        assert (ROOT / "src" / "lamina" / path).exists(), path


def test_links_of_the_page_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([\w./-]+\.md)\)", PAGE):
        assert (ROOT / "docs" / target).is_file(), target
