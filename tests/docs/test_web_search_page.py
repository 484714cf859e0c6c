"""The page about searching the web says what is true."""

import json
import re
from pathlib import Path

from lamina.adapters.pages.fetcher import WebLimits
from lamina.adapters.pages.search_endpoint import (
    LONGEST_CONTENT,
    LONGEST_SNIPPET,
    MAX_BYTES,
    MAX_RESULTS,
    read_found,
)
from lamina.apps.wiring.web_search import HEADER, KEY
from lamina.core.values.web_access import FoundPage
from lamina.engine.runners.web_search_tool import LONGEST_QUERY

PAGE = (Path(__file__).parents[2] / "docs" / "web-search.md").read_text("utf-8")


def test_the_form_that_is_told_is_read() -> None:
    question, answer = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert list(json.loads(question)) == ["query", "limit"]
    (page,) = read_found(answer).pages
    assert page == FoundPage(
        title="The harbour",
        url="https://harbour.example/berths",
        snippet="Nine berths ...",
        content="more of the page's text",
        date="2026-05-01",
    )


def test_the_limits_that_are_told_are_kept() -> None:
    assert MAX_RESULTS == 10
    for number in (LONGEST_QUERY, LONGEST_SNIPPET, LONGEST_CONTENT):
        assert f"{number:,}" in PAGE
    assert f"{MAX_BYTES // 1_000_000} MB, within {WebLimits().total_s:g} seconds" in PAGE


def test_the_names_of_the_environment_are_told() -> None:
    assert {KEY, HEADER, "LAMINA_WEB_SEARCH"} <= set(re.findall(r"LAMINA_\w+", PAGE))
